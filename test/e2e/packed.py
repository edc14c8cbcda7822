"""Trains on rows of several documents, and on each document in a row of its own.

    python3 packed.py BIN EXAMPLES FOLDER

With --packed
- both have the same loss and gradients, on one rank and on many;
- what a document holds changes no bit of the gradients of another one's loss.
Without it, neither holds, which is checked too: or else nothing here could fail.
"""

import array
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

from compare_tensors import read as read_tensors

IGNORED = 0  # the token whose labels do not count
# Rows of a run that datasets can share out exactly (docs/data.md).
EXACT = [n for n in range(1, 500) if 126000 % n == 0]
LOSS, GRADIENT = 1e-5, 1e-4  # as in parity.py


def write_dataset(prefix, documents):
    """Megatron's format, docs/data.md: a sequence per document, u16."""
    lengths = [len(document) for document in documents]
    tokens = [token for document in documents for token in document]
    starts = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    pathlib.Path(f"{prefix}.bin").write_bytes(array.array("H", tokens).tobytes())
    pathlib.Path(f"{prefix}.idx").write_bytes(
        struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, len(lengths), len(lengths) + 1)
        + array.array("i", lengths).tobytes() + array.array("q", starts).tobytes()
        + array.array("q", range(len(lengths) + 1)).tobytes())


def cut(tokens, lengths):
    """Documents of these lengths, and of what is left."""
    documents = []
    for length in lengths:
        documents.append(tokens[:length])
        tokens = tokens[length:]
    return documents + [tokens] * bool(tokens)


def pieces(documents, length):
    """What the rows of a dataset have of its documents, each with the label of its
    last token."""
    tokens = [token for document in documents for token in document]
    starts = {sum(map(len, documents[:i])) for i in range(len(documents))}
    for row in range((len(tokens) - 1) // length):
        first, end = row * length, (row + 1) * length
        bounds = sorted({first, end} | {s for s in starts if first < s < end})
        for begin, stop in zip(bounds, bounds[1:]):
            yield tokens[begin:stop + 1]


class Runs:
    def __init__(self, binaries, examples, folder):
        self.binaries, self.examples = pathlib.Path(binaries), pathlib.Path(examples)
        self.folder, self.number = pathlib.Path(folder), 0

    def demand(self, tool, *arguments):
        command = [self.binaries / tool, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
        return done

    def train(self, model, length, datasets, *options, micro_batch=1):
        """Loss and gradients of one step that reads all rows of the datasets."""
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        weights = [(sum(map(len, documents)) - 1) // length for documents in datasets]
        data = []
        for i, (documents, rows) in enumerate(zip(datasets, weights)):
            write_dataset(folder / f"data{i}", documents)
            data += [rows, folder / f"data{i}"]
        assert sum(weights) in EXACT, weights
        self.demand("megac", self.examples / f"{model}.mlir", "--seq-length", length,
                    "--micro-batch-size", micro_batch,
                    "--global-batch-size", sum(weights), *options,
                    "-o", folder / "plan.mega")
        self.demand("megart", "train", folder / "plan.mega", "--data", *data,
                    "--steps", 1, "--lr", 1e-3, "--ignore-token", IGNORED,
                    "--threads", 1, "--log-file", folder / "log.jsonl",
                    "--dump", f"gradients@1={folder}")
        line = json.loads((folder / "log.jsonl").read_text().splitlines()[0])
        return line["loss"], read_tensors(folder / "gradients.safetensors")


def compare(one, other):
    """The worst deviations of loss and gradients, over their bounds."""
    worst = abs(one[0] / other[0] - 1) / LOSS
    for name, (_, wanted) in other[1].items():
        # GPT-2's key biases have no gradient but rounding.
        scale = max(map(abs, other[1][name.replace("attn.k.bias", "attn.q.bias")][1]))
        off = max(abs(a - b) for a, b in zip(one[1][name][1], wanted))
        worst = max(worst, off / scale / GRADIENT if scale else math.inf * bool(off))
    return worst


def expect(what, holds, text):
    print(f"{what}: {text}", flush=True)
    if not holds:
        sys.exit(f"{what}: this is not as it has to be")


def same(one, other):
    return one[0] == other[0] and all(one[1][name][1] == other[1][name][1]
                                      for name in one[1])


def compare_with_separate(runs, model, length, meshes):
    """Documents of one token, as long as a row and longer, and on both sides of the
    sliding windows of the models, 24; some begin before their row."""
    draw = random.Random(2026)
    datasets = []
    for lengths in ([length], [1, 1, 3, 25], [24, 23], [1] * length, [length // 2 + 3],
                    [length - 1], [30, 1, 7], [length + 5, 9], [2 * length + 13],
                    [length - 2, 4, length + 30]):
        rows = -(-sum(lengths) // length)
        tokens = [draw.randrange(1, 257) for _ in range(rows * length + 1)]
        datasets.append(cut(tokens, lengths))
    separate = [piece + [IGNORED] * (length + 1 - len(piece))
                for documents in datasets for piece in pieces(documents, length)]
    rows = sum((sum(map(len, documents)) - 1) // length for documents in datasets)
    extra = next(n for n in EXACT if n >= rows and n % 4 == 0) - rows
    alone = next(n for n in EXACT if n >= len(separate)) - len(separate)
    silent = [IGNORED] * (length + 1)
    datasets += [[silent]] * extra
    separate = [[row] for row in separate + [silent] * alone]
    wanted = runs.train(model, length, separate)
    for options in meshes:
        options = f"--packed {options}".strip()
        found = compare(runs.train(model, length, datasets, *options.split(),
                                   micro_batch=2), wanted)
        expect(f"{model} {options}, against documents alone", found <= 1,
               f"{found:.2g} of the bounds")
    found = compare(runs.train(model, length, datasets), wanted)
    expect(f"{model} without --packed, against documents alone", found > 10,
           f"{found:.2g} times the bounds")


def leak(runs, model, length, options):
    """Two documents in every row. Labels of the first one do not count, and the token
    that it begins with is another one."""
    def run(first, options):
        draw = random.Random(7)
        datasets = []
        for end in (1, length // 3, length - 2, length // 2):
            one = [first] + [IGNORED] * (end - 1)
            two = [IGNORED] + [draw.randrange(1, 257) for _ in range(length - end)]
            datasets.append([one, two])
        return runs.train(model, length, datasets, *options, micro_batch=2)

    for packed in (True, False):
        flags = ["--packed"] * packed + options.split()
        agree = same(run(5, flags), run(9, flags))
        expect(" ".join([model, *flags]) + ", another first document",
               agree == packed, "the same bits" if agree else "other bits")


def written(runs, model, length):
    """A model that has the inputs itself is the same with --packed and without."""
    path = runs.folder / f"{model}-written"
    done = runs.demand("mega-opt", runs.examples / f"{model}.mlir",
                       "--mega-place-tokens=packed")
    pathlib.Path(f"{path}.mlir").write_text(done.stdout)
    draw = random.Random(1)
    data = [cut([draw.randrange(1, 257) for _ in range(2 * length + 1)], [5, length])]
    ours = runs.train(model, length, data, "--packed")
    for flags in ([], ["--packed"]):
        agree = same(ours, runs.train(path, length, data, *flags))
        expect(" ".join([f"{model} with inputs of its own", *flags]), agree,
               "the same bits" if agree else "other bits")


def main():
    runs = Runs(*sys.argv[1:])
    compare_with_separate(runs, "gpt2-tiny", 40, (
        "", "--tp 2 --sp", "--dp 2 --zero 1", "--pp 2", "--recompute full",
        "--tp 2 --sp --dp 2 --zero 1 --pp 2 --vpp 2 --recompute selective",
        "--cp 2 --cp-method ring", "--cp 4 --cp-method gather --zero 1",
        "--cp 2 --cp-method all-to-all --tp 2 --sp --pp 2"))
    compare_with_separate(runs, "llama-tiny", 40, (
        "", "--tp 4", "--tp 2 --sp --dp 2", "--pp 2 --recompute full",
        "--cp 4 --cp-method ring --tp 2", "--cp 2 --cp-method gather --dp 2"))
    for model in ("mistral-tiny", "gemma2-tiny"):
        compare_with_separate(runs, model, 56, (
            "", "--recompute selective --dp 2", "--cp 2 --cp-method ring --dp 2"))
    for model, options in (
            ("gpt2-tiny", ""), ("gpt2-tiny-dropout", ""),
            ("gpt2-tiny-dropout", "--precision bf16 --tp 2 --sp --recompute full"),
            ("llama-tiny", "--pp 2"), ("gemma2-tiny", "--precision bf16"),
            ("mistral-tiny", "--dp 2 --zero 1"),
            *(("gpt2-tiny-dropout", f"--cp {cp} --cp-method {method}")
              for cp in (2, 4) for method in ("ring", "gather", "all-to-all")),
            ("llama-tiny", "--cp 4 --cp-method ring --precision bf16 --tp 2 --sp")):
        leak(runs, model, 48, options)
    written(runs, "llama-tiny", 24)


if __name__ == "__main__":
    main()
