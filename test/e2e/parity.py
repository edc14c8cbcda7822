"""Trains meshes of ranks and one rank on the same batches, and compares.

    python3 parity.py BIN EXAMPLES FOLDER

runs a cover of FACTORS, in which any values of any three factors occur together,
and CORNERS; with MEGA_EXHAUSTIVE set, all combinations. Data sets, plans and what
differs are left in FOLDER. Bounds are DESIGN's and docs/testing.md's. What megac
has to refuse counts if it does, with exit code 1 and the values that are legal.
"""

import array
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import math
import operator
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import time

from compare_tensors import read as read_tensors

FACTORS = {
    "model": ("gpt2-tiny", "gpt2-tiny-dropout", "llama-tiny", "qwen3-tiny"),
    "tp": (1, 2, 4),
    "sp": (False, True),
    "dp": (1, 2, 3),
    "zero": (0, 1),
    "micro_batches": (1, 3),
    "labels": ("all", "uneven", "silent"),
}

# Models that are no example: the file, and what is replaced in it.
EDITED = {
    "gpt2-97": ("gpt2-tiny", ("257x", "97x")),
    "gpt2-5": ("gpt2-tiny", ("257x", "5x")),
    "qwen2-168": ("qwen2-tiny", ("164x", "168x")),
    "qwen2-mqa": ("qwen2-tiny", ("164x", "168x"), ("28x", "14x"), ("x2x14x", "x1x14x")),
    "qwen3-126": ("qwen3-tiny", ("124x", "126x")),
}
VOCABULARY = collections.defaultdict(lambda: 257, {"gpt2-97": 97, "gpt2-5": 5})

IGNORED = 0  # the token whose labels do not count
CLIP = 0.3
EPSILON = 1e-3  # as large as gradients, or else no update depends on their scale
# Relative; of a gradient's largest element; of the way that a weight has gone.
BOUNDS = {
    "fp32": {"loss": 1e-5, "grad_norm": 1e-4, "gradient": 1e-4, "weights": 1e-3},
    "bf16": {"loss": 2e-2, "grad_norm": math.inf, "gradient": 0.15,
             "weights": math.inf},
}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    tp: int = 1
    sp: bool = False
    dp: int = 1
    zero: int = 0
    micro_batches: int = 1
    labels: object = "all"  # or the number that count in each row of a step
    precision: str = "fp32"
    recompute: str = "none"
    batch: int = 18
    length: int = 12
    steps: int = 4
    processes: bool = False  # also run as processes, which give the same bits
    refusal: str = ""  # what the refusal says, if it is one

    def __str__(self):
        words = [self.model, f"tp {self.tp}", "sp" * self.sp, f"dp {self.dp}",
                 f"zero {self.zero}", f"micro-batches {self.micro_batches}",
                 f"labels {self.labels}"]
        words += [f"{field.name} {getattr(self, field.name)}"
                  for field in dataclasses.fields(self)[7:-1]
                  if getattr(self, field.name) != field.default]
        return ", ".join(filter(None, words))

    @property
    def rows(self):
        """Rows of a micro-batch."""
        return self.batch // (self.dp * self.micro_batches)

    def replica(self, row):
        return row % self.batch // self.rows % self.dp

    def valid(self, row):
        """How many labels of a row of the run count."""
        if self.labels == "all":
            return self.length
        if not isinstance(self.labels, str):
            return self.labels[row % self.batch]
        if self.labels == "silent":
            # The last replica, or else micro-batch, or else half of the batch.
            last = self.batch - self.batch // max(2, self.micro_batches)
            if self.dp > 1:
                silent = self.replica(row) == self.dp - 1
            else:
                silent = row % self.batch >= last
            if silent:
                return 0
        return (3 * row * row + 7 * row) % (self.length + 1)

    def refused(self):
        if self.sp and self.tp == 1:
            return "--sp .* --tp, which is 1; give --tp 2 or more"
        if self.model == "qwen3-tiny" and self.tp == 4:
            return r"--tp 4 does not divide 6 heads .*\(legal: 1, 2, 6\)"
        return self.refusal


# Reason, and cases that a cover may miss or that are none of its values.
CORNERS = {
    "ranks share a key/value head, whose gradients add up": [
        Case("llama-tiny", tp=4, dp=2, zero=1, labels="uneven"),
        Case("llama-tiny", tp=8, micro_batches=3),
        Case("llama-tiny", tp=8, sp=True, dp=2, zero=1, length=16),
        Case("llama-tiny", tp=3, refusal=r"--tp 3 .*\(legal: 1, 2, 4, 8\)"),
        Case("qwen2-168", tp=6, dp=2, zero=1, micro_batches=3),
        # 164 features, padded.
        Case("qwen2-tiny", tp=6),
    ],
    "one key/value head with biases": [
        Case("qwen2-mqa", tp=2, dp=2, zero=1),
        Case("qwen2-mqa", tp=2, sp=True, dp=3, zero=1, micro_batches=3),
        Case("qwen2-mqa", tp=6, sp=True),
    ],
    "query and key norms see the heads of their rank only": [
        Case("qwen3-tiny", tp=2),
        Case("qwen3-126", tp=6, sp=True, dp=2, zero=1, micro_batches=3),
    ],
    "norms and biases see their piece of the sequence only": [
        Case("gpt2-tiny", tp=2, sp=True),
        Case("gpt2-tiny", tp=4, sp=True),
        Case("llama-tiny", tp=2, sp=True),
        Case("llama-tiny", tp=4, sp=True),
        Case("llama-tiny", tp=4, sp=True, length=30,
             refusal=r"30 over --tp 4, .*\(nearest: 28, 32\)"),
    ],
    "rows of the vocabulary that are padding, at the end and on a whole rank": [
        Case("gpt2-tiny", tp=4, labels="uneven"),
        Case("gpt2-97", tp=2),
        Case("gpt2-97", tp=4, sp=True, dp=2, zero=1),
        Case("gpt2-5", tp=4),
        Case("gpt2-5", tp=4, sp=True, dp=2, zero=1, labels="silent"),
    ],
    "pieces of the optimizer state that dp does not divide": [
        Case("gpt2-tiny", dp=3, zero=1),
        Case("qwen3-tiny", dp=3, zero=1, labels="uneven"),
        Case("gpt2-tiny", dp=6, zero=1, micro_batches=3),
    ],
    "a replica without a label": [
        Case("gpt2-tiny", dp=3, labels="silent"),
        Case("gpt2-tiny", tp=2, sp=True, dp=3, zero=1, micro_batches=3,
             labels="silent"),
        Case("llama-tiny", tp=2, dp=2, zero=1, labels="silent"),
    ],
    "dropout by global index": [
        Case("gpt2-tiny-dropout", tp=4, sp=True, dp=2),
        Case("gpt2-tiny-dropout", tp=4, sp=True, dp=2, micro_batches=3,
             recompute="full"),
        Case("gpt2-tiny-dropout", tp=2, dp=3, zero=1, micro_batches=3),
    ],
    "a token mean, not one of micro-batches or replicas": [
        Case("gpt2-tiny", dp=dp, micro_batches=micro_batches, labels=(3, 17, 32, 1),
             batch=4, length=32)
        for dp, micro_batches in ((1, 4), (1, 2), (2, 2), (2, 1))
    ],
    "what is computed again is communicated again": [
        Case("llama-tiny", tp=2, sp=True, dp=2, recompute="selective"),
        Case("llama-tiny", tp=4, sp=True, recompute="full"),
    ],
    "twenty steps": [
        Case("llama-tiny", tp=2, sp=True, dp=2, zero=1, micro_batches=3, steps=20),
        Case("gpt2-tiny", tp=4, dp=3, zero=1, labels="uneven", steps=20),
    ],
    "bf16": [
        Case("gpt2-tiny-dropout", tp=2, dp=3, zero=1, precision="bf16", steps=20),
        Case("llama-tiny", tp=4, sp=True, dp=2, zero=1, precision="bf16", steps=20),
        Case("qwen3-tiny", tp=2, sp=True, micro_batches=3, precision="bf16", steps=20),
    ],
    "processes": [
        Case("gpt2-tiny", tp=4, processes=True, labels="uneven"),
        Case("gpt2-tiny-dropout", dp=3, zero=1, processes=True),
        Case("llama-tiny", tp=2, sp=True, dp=2, zero=1, micro_batches=3,
             processes=True),
        Case("qwen3-tiny", tp=2, dp=2, micro_batches=3, processes=True),
    ],
}


def parts(case):
    """All triples of the case's values."""
    values = [(name, getattr(case, name)) for name in FACTORS]
    return set(itertools.combinations(values, 3))


def cover(cases, wanted):
    """Few of the cases, in which all wanted triples occur: greedily the one with
    the most that are missing."""
    of, missing, chosen = {case: parts(case) for case in cases}, set(wanted), []
    while missing:
        best = max(cases, key=lambda case: len(of[case] & missing))
        chosen.append(best)
        missing -= of[best]
    return chosen


def combinations(exhaustive):
    every = [Case(**dict(zip(FACTORS, values)))
             for values in itertools.product(*FACTORS.values())]
    if exhaustive:
        return every
    runs = [case for case in every if not case.refused()]
    possible = set().union(*map(parts, runs))
    chosen = cover(runs, possible)
    # Of two values that are refused together, one case is enough.
    for a, b in itertools.combinations(FACTORS, 2):
        for pair in itertools.product(FACTORS[a], FACTORS[b]):
            having = [case for case in every
                      if (getattr(case, a), getattr(case, b)) == pair]
            if not set(having) & set(chosen):
                chosen.append(having[0])
                assert having[0].refused(), having[0]
    return chosen


def write_dataset(prefix, tokens):
    """Megatron's format, docs/data.md: one sequence, one document, u16."""
    pathlib.Path(f"{prefix}.bin").write_bytes(array.array("H", tokens).tobytes())
    pathlib.Path(f"{prefix}.idx").write_bytes(struct.pack(
        "<9sQBQQiqqq", b"MMIDIDX\0\0", 1, 8, 1, 2, len(tokens), 0, 0, 1))


@dataclasses.dataclass
class Run:
    steps: list
    gradients: dict
    weights: dict


class Sweep:
    def __init__(self, binaries, examples, folder):
        self.binaries, self.folder = pathlib.Path(binaries), pathlib.Path(folder)
        self.examples = pathlib.Path(examples)
        self.data, self.references = {}, {}
        for name, (source, *edits) in EDITED.items():
            text = (self.examples / f"{source}.mlir").read_text()
            for edit in edits:
                text = text.replace(*edit)
            (self.folder / f"{name}.mlir").write_text(text)

    def call(self, tool, *arguments):
        return subprocess.run([self.binaries / tool, *map(str, arguments)],
                              capture_output=True, text=True)

    def demand(self, *command):
        done = self.call(*command)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code "
                               f"{done.returncode}\n{done.stderr}")
        return done.stdout

    def dataset_of(self, case):
        """A prefix. Every row of the run reads another sample, whose labels count
        as the case says."""
        samples, length = case.batch * case.steps, case.length
        valid = tuple(map(case.valid, range(samples)))
        key = VOCABULARY[case.model], case.batch, length, valid
        if key not in self.data:
            prefix = self.folder / f"data{len(self.data)}"
            draw = random.Random(2026).random
            tokens = [1 + int((key[0] - 1) * draw() ** 2)
                      for _ in range(samples * length + 1)]
            write_dataset(prefix, tokens)
            order = json.loads(self.demand(
                "mega-data", "samples", prefix, "--seq-length", length,
                "--global-batch-size", case.batch, "--steps", case.steps))["samples"]
            places = [slice(sample * length + 1, (sample + 1) * length + 1)
                      for step in order for sample in step]
            for place, count in zip(places, valid):
                tokens[place] = tokens[place][:count] + [IGNORED] * (length - count)
            write_dataset(prefix, tokens)
            self.data[key] = prefix, [sum(token != IGNORED for token in tokens[place])
                                      for place in places]
        prefix, counts = self.data[key]
        self.check_counts(case, counts)
        return prefix

    def check_counts(self, case, counts):
        """What the case is about holds for the labels of each row of the run:
        replica d reads row (m * dp + d) * B + j."""
        for step in range(case.steps):
            found = [sum(counts[step * case.batch + (m * case.dp + d) * case.rows + j]
                         for m in range(case.micro_batches) for j in range(case.rows))
                     for d in range(case.dp)]
            silent = case.labels == "silent" and case.dp > 1
            uneven = case.labels == "uneven" and case.dp > 1
            if (not sum(found) or silent != (found[-1] == 0)
                    or uneven and len(set(found)) == 1):
                sys.exit(f"{case}: step {step}: replicas have {found} labels")

    def compile(self, case, plan):
        models = self.folder if case.model in EDITED else self.examples
        return self.call(
            "megac", models / f"{case.model}.mlir", *["--sp"] * case.sp,
            "--tp", case.tp, "--dp", case.dp, "--zero", case.zero, "--micro-batch-size", case.rows,
            "--global-batch-size", case.batch, "--seq-length", case.length,
            "--precision", case.precision, "--recompute", case.recompute, "-o", plan)

    def train(self, case, folder, data, *options):
        """Of the case's plan in the folder."""
        self.demand(
            "megart", "train", folder / "plan.mega", "--data", data,
            "--steps", case.steps, "--lr", 1e-3, "--weight-decay", 0.1,
            "--clip", CLIP, "--epsilon", EPSILON, "--ignore-token", IGNORED,
            "--threads", 1, "--log-file", folder / "log.jsonl",
            "--dump", f"gradients@1={folder}",
            "--dump", f"weights@{case.steps}={folder}",
            *options)
        with open(folder / "log.jsonl") as file:
            steps = [json.loads(line) for line in file]
        if [step["step"] for step in steps] != list(range(1, case.steps + 1)):
            raise RuntimeError(f"{folder}: not a line for every step")
        return Run(steps, read_tensors(folder / "gradients.safetensors"),
                   read_tensors(folder / "weights.safetensors"))

    def alone(self, case):
        """The same batches on one rank."""
        return dataclasses.replace(
            case, tp=1, sp=False, dp=1, zero=0, micro_batches=1, recompute="none",
            labels=self.dataset_of(case), processes=False)

    def train_alone(self, number, case):
        folder = self.folder / f"one{number}"
        folder.mkdir()
        done = self.compile(case, folder / "plan.mega")
        if done.returncode:
            sys.exit(f"{case}: {done.stderr}")
        start = folder / "start"
        run = self.train(case, folder, case.labels, "--dump", f"weights@0={start}")
        if not run.steps[0]["grad_norm"] > CLIP:
            sys.exit(f"{case}: nothing is clipped")
        self.references[case] = run, read_tensors(start / "weights.safetensors")
        shutil.rmtree(folder)

    def run(self, number, case):
        """What was found, in words, and whether it is as it has to be."""
        folder = self.folder / f"case{number}"
        folder.mkdir()
        done = self.compile(case, folder / "plan.mega")
        if case.refused():
            if done.returncode == 1 and re.search(case.refused(), done.stderr):
                return "refused", []
            return "", [f"not refused with '{case.refused()}': exit code "
                        f"{done.returncode}, {done.stderr}"]
        if done.returncode:
            return "", [done.stderr]
        data = self.dataset_of(case)
        found = self.train(case, folder, data)
        text, errors = compare(case, found, *self.references[self.alone(case)])
        if case.processes:
            other = folder / "processes"
            other.mkdir()
            shutil.copy(folder / "plan.mega", other)
            errors += same_bits(found, self.train(case, other, data, "--processes"))
            text += ", the same bits from processes"
        if not errors:
            shutil.rmtree(folder)
        return text, errors


def sibling(name):
    """On whose scale a parameter is compared: the gradient of GPT-2's key biases is
    zero but for rounding."""
    return name.replace("attn.k.bias", "attn.q.bias")


def compare(case, found, one, start):
    """The worst deviations in words, and those beyond their bounds."""
    errors, worst = [], collections.defaultdict(float)
    bounds = BOUNDS[case.precision]

    def expect(what, key, value, wanted, deviation):
        worst[key] = max(worst[key], deviation)
        if not deviation <= bounds[key]:  # written so that a NaN fails
            errors.append(f"{what}: {value} against {wanted} of one rank, off by "
                          f"{deviation:.2e}, bound {bounds[key]:.0e}")

    for a, b in zip(found.steps, one.steps):
        for key in ("loss", "grad_norm"):
            if a[key] is None or b[key] is None:
                errors.append(f"step {a['step']}: {key} {a[key]} against {b[key]}")
            else:
                expect(f"step {a['step']}: {key}", key, a[key], b[key],
                       abs(a[key] / b[key] - 1))
    for ours, theirs in ((found.gradients, one.gradients), (found.weights, start)):
        if {n: t[0] for n, t in ours.items()} != {n: t[0] for n, t in theirs.items()}:
            return "", errors + ["names or shapes of tensors differ"]
    for name, (_, wanted) in one.gradients.items():
        values, scale = found.gradients[name][1], one.gradients[sibling(name)][1]
        off = list(map(abs, map(operator.sub, values, wanted)))
        at = max(range(len(off)), key=off.__getitem__)
        expect(f"step 1: gradient of {name}, element {at}", "gradient", values[at],
               wanted[at], off[at] / max(map(abs, scale)))
    for name, (_, wanted) in one.weights.items():
        off = math.dist(found.weights[name][1], wanted)
        way = math.dist(one.weights[sibling(name)][1], start[sibling(name)][1])
        expect(f"step {case.steps}: {name}", "weights", f"a distance of {off}",
               f"a way of {way}", off / way)
    return ", ".join(f"{key} {value:.1e}" for key, value in worst.items()), errors


def same_bits(threads, processes):
    errors = [f"step {a['step']}: {key} {a[key]} of threads, {b[key]} of processes"
              for a, b in zip(threads.steps, processes.steps)
              for key in ("loss", "grad_norm") if a[key] != b[key]]
    for what in ("gradients", "weights"):
        a, b = getattr(threads, what), getattr(processes, what)
        errors += [f"{what} of {name}: other bits from processes" for name in a
                   if a[name][1].tobytes() != b[name][1].tobytes()]
    return errors


def main():
    started = time.time()
    sweep = Sweep(*sys.argv[1:])
    corners = {case: why for why, cases in CORNERS.items() for case in cases}
    cases = combinations("MEGA_EXHAUSTIVE" in os.environ)
    cases = [case for case in cases if case not in corners] + list(corners)
    alone = list(dict.fromkeys(sweep.alone(case) for case in cases
                               if not case.refused()))

    def attempt(number):
        try:
            return sweep.run(number, cases[number])
        except RuntimeError as error:
            return "", [str(error)]

    refused = differ = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(sweep.train_alone, range(len(alone)), alone))
        for case, (text, errors) in zip(cases, pool.map(attempt, range(len(cases)))):
            why = f" ({corners[case]})" if case in corners else ""
            print(f"{case}{why}: {'DIFFERS' if errors else text}", flush=True)
            for error in errors:
                print(f"  {error}", flush=True)
            refused += text == "refused"
            differ += bool(errors)
    print(f"{len(cases)} combinations: {len(cases) - refused - differ} agree, "
          f"{refused} refused as they must be, {differ} differ")
    print(f"{time.time() - started:.0f} s")
    sys.exit(differ != 0)


if __name__ == "__main__":
    main()
