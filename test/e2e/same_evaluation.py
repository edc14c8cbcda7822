"""Compares what two `megart eval` print.

    python3 same_evaluation.py A B

Batches of another size are cut into other tiles, so a token's loss may differ
by a few roundings of f32 (6e-8 each); the sum over tokens is in f64, and the
printed loss has six digits after the point: 2e-6 in all.
"""

import re
import sys


def read(path):
    with open(path) as file:
        loss, tokens = re.fullmatch(r"loss ([\d.]+) over (\d+) tokens\n",
                                    file.read()).groups()
    return float(loss), int(tokens)


(a, m), (b, n) = read(sys.argv[1]), read(sys.argv[2])
if m != n or abs(a - b) > 2e-6:
    sys.exit(f"{a} over {m} tokens against {b} over {n}")
