"""Writes the golden values of one model: what its first training steps compute.

    bash test/golden/run.sh gpt2-tiny fp32 /tmp/gpt2
    mega-data samples /tmp/gpt2/corpus --seq-length 64 --global-batch-size 8 \\
        --steps 20 >/tmp/gpt2/samples.json
    python3 test/golden/make_golden.py gpt2-tiny --weights /tmp/gpt2/weights.safetensors \\
        --data /tmp/gpt2/corpus --samples /tmp/gpt2/samples.json

It needs torch, transformers, numpy and safetensors; the tests that read the result
need none of them (compare.py). GPT-2 and Llama are computed by oracle.py, other
families by transformers (families.py). Values are computed in float64: the truth,
against which other precisions are allowed their rounding. `--compare float32` or
`bfloat16` prints how far PyTorch itself is from it, which tells what a tolerance
can ask for.

SAMPLES is a JSON list with, per step, the list of the sample numbers in the
global batch (or an object that has it as "samples"). Sample i reads tokens
[i * S, i * S + S], the last one as a label only.

The result, test/golden/MODEL.json:

    model, settings, dtype   what was run
    data       tokens and their sha256 (of little-endian int32), to notice another text
    samples    as given
    losses     of each step: sum / count over the global batch
    grad_norms of each step, before clipping
    weights    per parameter, initial: sum, sum_abs, to tell a changed
               initialisation from a changed computation
    gradients  per parameter, first step, before clipping:
      shape, max_abs, sum, sum_abs
      projection  sum over all elements i of g[i] * sign(i), see sign_of()
      entries     values at sample_indices(size), at most 64
      scale       what errors are compared with: max_abs, or where the gradient
                  is zero but for rounding (key biases), that of its siblings
"""

import argparse
import hashlib
import json
import os
import struct
import sys

import numpy as np
import torch
from safetensors.torch import load_file

import compare
import families
import oracle

DTYPES = {"float32": torch.float32, "float64": torch.float64,
          "bfloat16": torch.bfloat16}
TOKEN_TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}


def read_tokens(prefix):
    """All tokens of PREFIX.idx and PREFIX.bin, sequences in index order."""
    with open(prefix + ".idx", "rb") as file:
        index = file.read()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    if magic != b"MMIDIDX\0\0" or version != 1 or code not in TOKEN_TYPES:
        sys.exit(f"{prefix}.idx is not a token index this script reads")
    lengths = np.frombuffer(index, "<i4", sequences, offset=34)
    offsets = np.frombuffer(index, "<i8", sequences, offset=34 + 4 * sequences)
    kind = np.dtype(TOKEN_TYPES[code])
    data = np.fromfile(prefix + ".bin", np.uint8)
    pieces = [
        data[offset : offset + length * kind.itemsize].view(kind)
        for offset, length in zip(offsets, lengths)
    ]
    tokens = np.concatenate(pieces).astype("<i4")
    if len(tokens) != lengths.sum():
        sys.exit(f"{prefix}.bin is shorter than its index says")
    return tokens


def read_samples(path, settings):
    with open(path) as file:
        samples = json.load(file)
    if isinstance(samples, dict):
        samples = samples["samples"]
    samples = samples[: settings["steps"]]
    if len(samples) != settings["steps"]:
        sys.exit(f"{path} has samples of {len(samples)} steps, not {settings['steps']}")
    for step in samples:
        if len(step) != settings["global_batch_size"]:
            sys.exit(f"{path} has a step of {len(step)} samples, not the global "
                     f"batch size {settings['global_batch_size']}")
    return samples


def make_batches(tokens, samples, length):
    for step in samples:
        rows = np.stack([tokens[i * length : i * length + length + 1] for i in step])
        rows = torch.from_numpy(rows.astype(np.int64))
        yield rows[:, :-1], rows[:, 1:]


def short(value):
    """Nine digits: more than float32 holds, and a small file."""
    return float(f"{value:.9g}")


def summarise(gradient):
    values = gradient.double().flatten().tolist()
    summary = compare.summarise(values)
    return {
        "shape": list(gradient.shape),
        **{k: short(summary[k]) for k in ("max_abs", "sum", "sum_abs", "projection")},
        "entries": [short(v) for v in summary["entries"]],
    }


def add_scales(gradients):
    """Siblings are parameters of the same module with the same last name, as
    attn.q.bias, attn.k.bias, attn.v.bias and attn.o.bias."""

    def family(name):
        parts = name.split(".")
        return (".".join(parts[:-2]), parts[-1])

    largest = {}
    for name, g in gradients.items():
        largest[family(name)] = max(largest.get(family(name), 0.0), g["max_abs"])
    for name, g in gradients.items():
        zero = g["max_abs"] < 1e-6 * largest[family(name)]
        g["scale"] = largest[family(name)] if zero else g["max_abs"]


def model_of(name, dtype):
    """Where both sides have a model, the oracle's: it is the independent one."""
    if name in oracle.MODELS and dtype != torch.bfloat16:
        return oracle.MODELS[name]
    if name not in families.FAMILIES:
        sys.exit(f"there is no {name} in {dtype}")
    return families.Family(name, dtype)


def run(name, weights, tokens, samples, settings, dtype):
    """(losses, gradient norms, first step's gradients)

    In bfloat16 parameters and their gradients stay float32."""
    model = model_of(name, dtype)
    held = torch.float32 if dtype == torch.bfloat16 else dtype
    weights = {n: w.to(held) for n, w in weights.items()}
    batches = make_batches(tokens, samples, settings["seq_length"])
    losses, norms, first = [], [], None
    for step, loss, norm, gradients in oracle.train(model, weights, batches, settings):
        losses.append(loss)
        norms.append(norm)
        first = first or gradients
    return losses, norms, first


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Writes the golden values of one model.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", choices=sorted({*oracle.MODELS, *families.FAMILIES}))
    parser.add_argument("--weights", required=True, metavar="SAFETENSORS")
    parser.add_argument("--data", required=True, metavar="PREFIX")
    parser.add_argument("--samples", required=True, metavar="JSON")
    parser.add_argument("-o", "--output", help="default: MODEL.json beside this script")
    parser.add_argument("--dtype", choices=DTYPES, default="float64")
    parser.add_argument("--compare", choices=DTYPES, metavar="DTYPE",
                        help="also run in DTYPE and print the differences")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seq-length", type=int, default=64)
    parser.add_argument("--micro-batch-size", type=int, default=2)
    parser.add_argument("--global-batch-size", type=int, default=8)
    # At 3e-3 float32 PyTorch itself is 6e-6 from float64 after 20 steps, at 1e-3
    # it is 1e-7: only there a difference of 1e-5 is a mistake and not chaos.
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--min-lr", type=float, default=0.0)
    parser.add_argument("--lr-schedule", default="cosine",
                        choices=["constant", "linear", "cosine"])
    parser.add_argument("--warmup-steps", type=int, default=5)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--betas", type=float, nargs=2, default=[0.9, 0.95])
    parser.add_argument("--epsilon", type=float, default=1e-8)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    named = ("steps seq_length micro_batch_size global_batch_size lr min_lr lr_schedule "
             "warmup_steps weight_decay clip betas epsilon").split()
    settings = {name: getattr(args, name) for name in named}
    weights = load_file(args.weights)
    tokens = read_tokens(args.data)
    samples = read_samples(args.samples, settings)

    losses, norms, first = run(
        args.model, weights, tokens, samples, settings, DTYPES[args.dtype])
    gradients = {name: summarise(g) for name, g in first.items()}
    add_scales(gradients)
    golden = {
        "model": args.model,
        "settings": settings,
        "dtype": args.dtype,
        "data": {"tokens": len(tokens),
                 "sha256": hashlib.sha256(tokens.tobytes()).hexdigest()},
        "samples": samples,
        "losses": [short(v) for v in losses],
        "grad_norms": [short(v) for v in norms],
        "weights": {name: {"sum": short(w.double().sum().item()),
                           "sum_abs": short(w.double().abs().sum().item())}
                    for name, w in weights.items()},
        "gradients": gradients,
    }
    output = args.output or os.path.join(os.path.dirname(__file__), f"{args.model}.json")
    with open(output, "w") as file:
        # One line per parameter: readable differences without a line per number.
        blocks = []
        for key, value in golden.items():
            if key in ("weights", "gradients"):
                lines = (f"  {json.dumps(n)}: {json.dumps(v)}" for n, v in value.items())
                blocks.append(f"{json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n}")
            else:
                blocks.append(f"{json.dumps(key)}: {json.dumps(value)}")
        file.write("{\n" + ",\n".join(blocks) + "\n}\n")
    print(f"{output}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, {len(gradients)} "
          f"gradients, {os.path.getsize(output)} bytes")

    if args.compare:
        other = run(
            args.model, weights, tokens, samples, settings, DTYPES[args.compare])
        loss = max(abs(a - b) / b for a, b in zip(other[0], losses))
        norm = max(abs(a - b) / b for a, b in zip(other[1], norms))
        precision = "bf16" if args.compare == "bfloat16" else "fp32"
        worst, name = max(
            (compare.gradient_error(precision, summarise(other[2][n])["entries"],
                                    g["entries"], g["scale"]), n)
            for n, g in gradients.items())
        print(f"{args.compare} against {args.dtype}: losses {loss:.1e}, gradient norms "
              f"{norm:.1e}, first gradients {worst:.1e} ({name}), as compare.py "
              f"measures them in {precision}")


if __name__ == "__main__":
    main()
