"""examples.py MEGA-OPT FOLDER: parses every example of the .td files.

An example is a ```mlir block in a description. Each is parsed, printed and
parsed again by mega-opt. An example whose ops only stand in something else
shows that too, so nothing is added here. Names the file, line and op of what
fails.
"""
import pathlib
import re
import subprocess
import sys

DEFINITION = re.compile(r"^def (\w+)")


def examples(path):
    """Yields (line number, definition, text) of the blocks of one file."""
    definition, start, block = "", 0, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := DEFINITION.match(line):
            definition = found.group(1)
        if block is not None:
            if line.strip() == "```":
                yield start, definition, "\n".join(block) + "\n"
                block = None
            else:
                block.append(line)
        elif line.strip() == "```mlir":
            start, block = number + 1, []
    if block is not None:
        yield start, definition, "```mlir without an end"


def main(mega_opt, folder):
    count = failed = 0
    for path in sorted(pathlib.Path(folder).rglob("*.td")):
        for line, definition, text in examples(path):
            count += 1
            for _ in range(2):
                run = subprocess.run([mega_opt, "-"], input=text, text=True,
                                     capture_output=True)
                if run.returncode != 0:
                    failed += 1
                    print(f"{path}:{line}: the example of {definition} does "
                          f"not parse\n{run.stderr}")
                    break
                text = run.stdout
    print(f"{count} examples, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
