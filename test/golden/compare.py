"""Compares a training run with golden values; needs nothing but Python.

    python3 test/golden/compare.py test/golden/gpt2-tiny.json \\
        [--log metrics.jsonl] [--weights DIR] [--gradients DIR] [--precision bf16]

takes the `--log-file` of `megart train` and the folders of its `--dump
weights@0` and `--dump gradients@1`, run with the golden file's settings. Bounds
are those of BOUNDS for the plan's precision, and 1e-6 for initial weights, which
are float32 in all. Exits 1 when one does not hold.
"""

import argparse
import dataclasses
import json
import math
import os
import struct
import sys

ENTRIES = 64


@dataclasses.dataclass(frozen=True)
class Bounds:
    loss: float  # relative, of every step
    grad_norm: float  # relative, of every step
    gradient: float  # of one tensor, see gradient_error()


# float32 PyTorch is within 1e-7, 2e-6 and 2e-6 of the float64 that a golden file
# holds. PyTorch's bfloat16 over float32 parameters (make_golden.py --compare
# bfloat16) is within 8e-4, 3e-3 and 6e-2: the bounds are about three times that.
BOUNDS = {
    "fp32": Bounds(loss=1e-5, grad_norm=1e-4, gradient=1e-4),
    "bf16": Bounds(loss=2e-3, grad_norm=1e-2, gradient=0.15),
}


def sample_indices(size):
    """Up to 64 positions of a flat tensor, spread over rows and columns: the
    multiplier is a prime above any size, so no two of them coincide."""
    return [i * 2654435761 % size for i in range(min(size, ENTRIES))]


def sign_of(index):
    """+1 or -1, as the top bit of a 32-bit multiplicative hash."""
    return 1.0 if index * 2654435761 & 0x80000000 else -1.0


def summarise(values):
    return {
        "max_abs": max(map(abs, values)),
        "sum": sum(values),
        "sum_abs": sum(map(abs, values)),
        "projection": sum(v * sign_of(i) for i, v in enumerate(values)),
        "entries": [values[i] for i in sample_indices(len(values))],
    }


def read_safetensors(path):
    """{name: (shape, values)} of a file that holds F32 tensors only."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        if tensor["dtype"] != "F32":
            sys.exit(f"{path}: {name} is {tensor['dtype']}, not F32")
        begin, end = tensor["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        tensors[name] = (tensor["shape"], values)
    return tensors


class Report:
    def __init__(self):
        self.failures = 0
        self.nearest = 0.0, "nothing"

    def expect(self, what, error, bound):
        self.nearest = max(self.nearest, (error / bound, what))
        # Written so that a NaN fails.
        if not error <= bound:
            self.failures += 1
            print(f"{what}: off by {error:.2e}, bound {bound:.2g}")

    def expect_names(self, what, got, want):
        for name in sorted(set(want) - set(got)):
            self.failures += 1
            print(f"{what}: {name} is missing")
        for name in sorted(set(got) - set(want)):
            self.failures += 1
            print(f"{what}: {name} is not in the golden file")
        return sorted(set(got) & set(want))


def gradient_error(precision, got, want, scale):
    """Of sampled entries. In float32 the worst one, as a part of the tensor's
    largest: a single wrong element shows. In bfloat16 single elements are noise,
    so there the distance of the two vectors, as a part of the vector's length.
    Samples that happen to be small or zero are not divided by themselves: their
    length counts as if they were a tenth of the largest."""
    if precision == "fp32":
        return max(abs(a - b) for a, b in zip(got, want)) / scale
    length = max(math.hypot(*want), 0.1 * scale * len(want) ** 0.5)
    return math.dist(got, want) / length


def compare_log(report, golden, path, bounds, norms=True):
    with open(path) as file:
        records = [json.loads(line) for line in file if line.strip()]
    records = [r for r in records if "loss" in r]
    if len(records) != len(golden["losses"]):
        report.failures += 1
        print(f"{path}: {len(records)} steps, expected {len(golden['losses'])}")
    for step, (r, loss, norm) in enumerate(
        zip(records, golden["losses"], golden["grad_norms"]), 1
    ):
        report.expect(f"loss of step {step}", abs(r["loss"] / loss - 1), bounds.loss)
        if norms:
            report.expect(
                f"gradient norm of step {step}",
                abs(r["grad_norm"] / norm - 1),
                bounds.grad_norm,
            )


def compare_weights(report, golden, path):
    tensors = read_safetensors(path)
    for name in report.expect_names(path, tensors, golden["weights"]):
        values, want = tensors[name][1], golden["weights"][name]
        scale = max(want["sum_abs"], 1e-30)
        for key, got in (("sum", sum(values)), ("sum_abs", sum(map(abs, values)))):
            report.expect(
                f"initial {name}: {key}", abs(got - want[key]) / scale, 1e-6
            )


def compare_gradients(report, golden, path, precision):
    bound = BOUNDS[precision].gradient
    tensors = read_safetensors(path)
    for name in report.expect_names(path, tensors, golden["gradients"]):
        (shape, values), want = tensors[name], golden["gradients"][name]
        if shape != want["shape"]:
            report.failures += 1
            print(f"gradient of {name}: shape {shape}, expected {want['shape']}")
            continue
        got = summarise(values)
        error = gradient_error(
            precision, got["entries"], want["entries"], want["scale"]
        )
        report.expect(f"gradient of {name}", error, bound)
        largest = abs(got["max_abs"] - want["max_abs"])
        report.expect(f"gradient of {name}: largest", largest / want["scale"], bound)
        # Sums see what happens to many elements, sampled or not; one wrong
        # element that is neither sampled nor the largest goes unseen.
        total = max(want["sum_abs"], want["scale"] * len(values) ** 0.5)
        for key in ("sum", "sum_abs", "projection"):
            report.expect(
                f"gradient of {name}: {key}", abs(got[key] - want[key]) / total, bound
            )


def main():
    parser = argparse.ArgumentParser(description="Compares a run with golden values.")
    parser.add_argument("golden")
    parser.add_argument("--log", metavar="JSONL")
    parser.add_argument("--weights", metavar="DIR")
    parser.add_argument("--gradients", metavar="DIR")
    parser.add_argument("--precision", choices=BOUNDS, default="fp32")
    parser.add_argument("--no-norms", action="store_true",
                        help="leave out the gradient norms of the log")
    args = parser.parse_args()
    if not (args.log or args.weights or args.gradients):
        parser.error("nothing to compare: give --log, --weights or --gradients")
    with open(args.golden) as file:
        golden = json.load(file)
    report = Report()
    if args.weights:
        compare_weights(
            report, golden, os.path.join(args.weights, "weights.safetensors")
        )
    if args.gradients:
        compare_gradients(
            report,
            golden,
            os.path.join(args.gradients, "gradients.safetensors"),
            args.precision,
        )
    if args.log:
        compare_log(report, golden, args.log, BOUNDS[args.precision], not args.no_norms)
    if report.failures:
        print(f"{args.golden}: {report.failures} values differ")
        sys.exit(1)
    part, what = report.nearest
    print(f"{args.golden}: agrees; nearest to its bound, at {part:.1%}, is the {what}")


if __name__ == "__main__":
    main()
