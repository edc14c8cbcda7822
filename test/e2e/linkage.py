"""Checks how the tools are linked.

    python3 linkage.py MEGART MEGAC

megart has to run on a node without LLVM: neither its libraries nor its symbols
name it. What tokenizers need is mega-data's business alone. megac links MLIR as one shared library: a strong MLIR symbol of its own
would be a second copy.
"""

import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def strong(symbols):
    """Names of defined functions and data that are not weak."""
    return {line.split()[-1] for line in symbols.splitlines()
            if re.search(r" [TDBR] ", line)}


megart, megac = sys.argv[1], sys.argv[2]
libraries = output("ldd", megart)
if re.search("LLVM|MLIR", libraries):
    sys.exit(f"megart links LLVM:\n{libraries}")
if re.search("pcre2|sentencepiece|utf8proc", libraries):
    sys.exit(f"megart links what only tokenizers need:\n{libraries}")
names = output("nm", megart)
if re.search(r"4llvm|4mlir", names):
    sys.exit("megart has LLVM symbols")

mlir = re.search(r"=> (\S*libMLIR\S*)", output("ldd", megac))
if not mlir:
    sys.exit("megac does not link the shared MLIR library")
shared = strong(output("nm", "-D", "--defined-only", mlir.group(1)))
if len(shared) < 1000:
    sys.exit(f"only {len(shared)} symbols in {mlir.group(1)}")
# What the linker puts into every program and library.
common = {"_init", "_fini", "_edata", "_end", "__bss_start"}
twice = (strong(output("nm", "--defined-only", megac)) & shared) - common
if twice:
    sys.exit("megac defines symbols of libMLIR again: "
             + ", ".join(sorted(twice)[:10]))
print("ok")
