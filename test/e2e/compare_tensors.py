"""Compares two safetensors files of f32, tensor by tensor.

    python3 compare_tensors.py A B BOUND

wants max |a - b| <= BOUND * max |b| of each: DESIGN's bound for the gradients of
the first step of two meshes is 1e-4. Losses alone do not see a reduction that is
missing.
"""

import array
import json
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (info["shape"],
                   array.array("f", data[slice(*info["data_offsets"])]))
            for name, info in header.items()}


def main():
    a, b, bound = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
    if a.keys() != b.keys() or not a:
        sys.exit(f"{sorted(a)} against {sorted(b)}")
    worst = 0
    for name in a:
        if a[name][0] != b[name][0]:
            sys.exit(f"{name}: {a[name][0]} against {b[name][0]}")
        scale = max(map(abs, b[name][1]))
        error = max(abs(x - y) for x, y in zip(a[name][1], b[name][1])) / scale
        worst = max(worst, error)
        if not error <= bound:
            sys.exit(f"{name}: off by {error:.1e} of its largest element")
    print(f"{len(a)} tensors agree, worst {worst:.1e}")


if __name__ == "__main__":
    main()
