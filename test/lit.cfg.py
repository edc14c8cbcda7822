# Compiler and command-line tests: .mlir and .test files run by lit.
import os
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "mega"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["runtime", "golden", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.mega_test_dir

llvm_config.use_default_substitutions()
llvm_config.add_tool_substitutions(
    ["mega-opt", "megac", "megart", "mega-data", "not", "split-file",
     ToolSubst("%python", f'"{sys.executable}"')],
    [config.mega_tools_dir, config.llvm_tools_dir])
config.substitutions += [
    ("%bin", config.mega_tools_dir),
    ("%examples", os.path.join(config.mega_source_dir, "examples")),
    ("%dialects", os.path.join(config.mega_source_dir, "dialects")),
    # `%exits 74 megac ...` wants that exit code; `not` takes any but 0.
    ("%exits", f'"{sys.executable}" '
     + os.path.join(config.test_source_root, "tools", "exits.py")),
]
