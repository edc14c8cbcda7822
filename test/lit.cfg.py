# Compiler and command-line tests: .mlir and .test files run by lit.
import os
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "mega"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["runtime", "golden", "Inputs", "corpus"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.mega_test_dir

llvm_config.use_default_substitutions()
llvm_config.add_tool_substitutions(
    ["mega-opt", "megac", "megart", "mega-data", "mega-lsp-server", "plan-mutants", "write-report", "not", "split-file",
     ToolSubst("%python", f'"{sys.executable}"')],
    [config.mega_tools_dir, config.llvm_tools_dir])
config.substitutions += [
    ("%bin", config.mega_tools_dir),
    ("%build", config.mega_build_dir),
    ("%source", config.mega_source_dir),
    ("%examples", os.path.join(config.mega_source_dir, "examples")),
    ("%dialects", os.path.join(config.mega_source_dir, "dialects")),
    # `%exits 74 megac ...` wants that exit code; `not` takes any but 0.
    ("%exits", f'"{sys.executable}" '
     + os.path.join(config.test_source_root, "tools", "exits.py")),
]

# scripts/test.sh --exhaustive: wider sweeps, but all of them in one build only.
if "MEGA_EXHAUSTIVE" in os.environ and not config.mega_sanitize:
    config.environment["MEGA_EXHAUSTIVE"] = "1"

# A test that needs a machine without our dependencies makes one: a Debian root
# by debootstrap, entered with chroot. Both are for root only; elsewhere such a
# test is reported as unsupported. The root is kept in build/, for all presets.
if os.geteuid() == 0 and shutil.which("debootstrap"):
    config.available_features.add("bare-root")
config.substitutions.append(
    ("%bare_root", os.path.join(config.mega_source_dir, "build", "bare-root")))

# Hosts that are network namespaces need root, iproute2, and a machine that
# allows them (many containers do not). Elsewhere lit says that the test
# `requires: network-namespaces`.
def has_namespaces():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"megaprobe{os.getpid()}"

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], stderr=subprocess.DEVNULL).returncode == 0

    if not ip("netns", "add", name):
        return False
    good = ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", "p0") \
        and ip("-n", name, "link", "add", "br0", "type", "bridge")
    ip("netns", "del", name)
    return good


if has_namespaces():
    config.available_features.add("network-namespaces")

# Sanitizers want /proc and libraries of the compiler.
if config.mega_sanitize:
    config.available_features.add("sanitizer")
