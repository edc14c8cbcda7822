"""Compares the losses and gradient norms of two runs.

    python3 compare_logs.py A.jsonl B.jsonl RELATIVE_TOLERANCE

The same samples cut into other micro-batches are summed in another order, so
runs agree to rounding: DESIGN's bound for fp32 is 1e-5 on losses over 20 steps.
"""

import json
import sys


def read(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "loss" in line]


a, b, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
if len(a) != len(b) or not a:
    sys.exit(f"{len(a)} steps against {len(b)}")
worst = 0
for x, y in zip(a, b):
    for key, factor in (("loss", 1), ("grad_norm", 10)):
        difference = abs(x[key] - y[key]) / abs(x[key]) / factor
        worst = max(worst, difference)
        if difference > tolerance:
            sys.exit(f"step {x['step']}: {key} {x[key]} against {y[key]}")
print(f"{len(a)} steps agree, worst {worst:.2e}")
