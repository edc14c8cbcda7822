"""compare_tokens.py MEGA-DATA FOLDER: our tokenizers against the reference's.

Tokenizes the 10,000 lines of test/golden/tokenizers with every tokenizer there
and compares the ids of each line, by CRC-32, with those of the reference
libraries (make_tokenizer_golden.py). Works in FOLDER; needs no packages.
"""

import json
import lzma
import pathlib
import struct
import subprocess
import sys
import zlib

GOLDEN = pathlib.Path(__file__).parent / "tokenizers"


def documents(prefix):
    """The ids of each document of a dataset that mega-data wrote."""
    index = pathlib.Path(f"{prefix}.idx").read_bytes()
    code = index[17]
    count, = struct.unpack_from("<Q", index, 18)
    lengths = struct.unpack_from(f"<{count}i", index, 34)
    letter = {8: "H", 4: "i"}[code]
    data = pathlib.Path(f"{prefix}.bin").read_bytes()
    ids = struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}",
                        data)
    at = 0
    for length in lengths:
        yield ids[at:at + length]
        at += length


def compare(mega_data, name, tokenizer, lines, folder):
    prefix = folder / name
    subprocess.run([mega_data, "tokenize", folder / "lines.jsonl",
                    "--tokenizer", tokenizer, "-o", prefix, "--workers", "2"],
                   check=True, stdout=subprocess.DEVNULL)
    sums = (GOLDEN / f"{name}.crc").read_bytes()
    wanted = struct.unpack(f"<{len(sums) // 4}I", sums)
    found = list(documents(prefix))
    if not len(found) == len(wanted) == len(lines):
        print(f"{name}: {len(found)} documents, expected {len(wanted)}")
        return False
    different = []
    for line, ids in enumerate(found):
        # The last one ends the document.
        ids = ids[:-1]
        if zlib.crc32(struct.pack(f"<{len(ids)}i", *ids)) != wanted[line]:
            different.append(line)
    print(f"{name}: {len(lines) - len(different)} of {len(lines)} lines agree")
    for line in different[:5]:
        print(f"  line {line}: {lines[line]!r}\n    {list(found[line])}")
    return not different


def main(mega_data, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = lzma.decompress((GOLDEN / "lines.jsonl.xz").read_bytes())
    (folder / "lines.jsonl").write_bytes(text)
    lines = [json.loads(line)["text"] for line in text.decode().splitlines()]
    agree = True
    packed = sorted(GOLDEN.glob("*.json.xz")) + sorted(GOLDEN.glob("*.model.xz"))
    for path in packed:
        tokenizer = folder / path.stem
        tokenizer.write_bytes(lzma.decompress(path.read_bytes()))
        agree &= compare(mega_data, path.name.split(".")[0], tokenizer, lines,
                         folder)
    print(f"{len(packed)} tokenizers")
    return 0 if agree and packed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
