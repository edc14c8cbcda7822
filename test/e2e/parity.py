"""Trains meshes of ranks and one rank on the same batches, and compares.

    python3 parity.py BIN EXAMPLES FOLDER

runs a cover of FACTORS, in which any values of any three factors occur together,
and CORNERS; with MEGA_EXHAUSTIVE set, all of PRODUCTS that run. Data sets, plans
and what differs are left in FOLDER. Bounds are DESIGN's and docs/testing.md's. What
megac has to refuse counts if it does, with exit code 1 and the values that are legal.
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
    "micro_batches": (1, 2, 3, 5, 8),
    "labels": ("all", "uneven", "silent"),
    "recompute": ("none", "selective", "full"),
    "pp": (1, 2, 3, 4),
    "vpp": (1, 2),
    "schedule": ("", "gpipe", "zero-bubble"),  # the default is 1f1b, or interleaved by vpp
}
# With sequences over ranks; of all else, less.
CONTEXT = {name: FACTORS[name] for name in ("model", "tp", "sp", "zero", "labels")} | {
    "cp": (1, 2, 4), "cp_method": ("", "ring", "gather", "all-to-all"), "dp": (1, 2),
    "pp": (1, 2), "micro_batches": (1, 3), "recompute": ("none", "full"),
}
MOST_RANKS = 32  # of a case with cp: threads on few processors

# What an exhaustive run multiplies; other factors have their first value.
PRODUCTS = (
    {name: FACTORS[name] for name in ("model", "tp", "sp", "dp", "zero", "labels")}
    | {"micro_batches": (1, 3)},
    {name: FACTORS[name] for name in ("sp", "zero", "micro_batches", "pp", "vpp",
                                      "schedule")}
    | {"model": ("gpt2-tiny", "llama-tiny"), "tp": (1, 2), "dp": (1, 2),
       "recompute": ("none", "full")},
    {name: FACTORS[name] for name in ("model", "labels", "micro_batches", "pp", "vpp",
                                      "schedule")},
    {name: CONTEXT[name] for name in ("model", "sp", "zero", "labels", "cp", "cp_method",
                                      "dp", "pp", "micro_batches")} | {"tp": (1, 2)},
)

# Models that are no example: the file, and what is replaced in it.
EDITED = {
    "gpt2-97": ("gpt2-tiny", ("257x", "97x")),
    "gpt2-5": ("gpt2-tiny", ("257x", "5x")),
    "qwen2-168": ("qwen2-tiny", ("164x", "168x")),
    "qwen2-mqa": ("qwen2-tiny", ("164x", "168x"), ("28x", "14x"), ("x2x14x", "x1x14x")),
    "qwen3-126": ("qwen3-tiny", ("124x", "126x")),
    "gpt2-L3": ("gpt2-tiny", ("times 6", "times 3")),
    "gpt2-L7": ("gpt2-tiny", ("times 6", "times 7")),
    "llama-L7": ("llama-tiny", ("times 6", "times 7")),
    "llama-L10": ("llama-tiny", ("times 6", "times 10")),
    # A window that is smaller than a chunk of 4, reaches across chunks, or further
    # than a row.
    **{f"llama-w{window}": ("llama-tiny", ("causal scale",
                                           f"causal window({window}) scale"))
       for window in (2, 6, 99)},
    "gpt2-w3": ("gpt2-tiny-dropout", ("causal scale", "causal window(3) scale")),
    # Every query sees every key.
    "gpt2-both": ("gpt2-tiny", ("causal scale", "scale")),
}
LAYERS = collections.defaultdict(lambda: 6, {
    "gemma3-tiny": 7, "qwen3-tiny": 4, "gpt2-L3": 3, "gpt2-L7": 7, "llama-L7": 7,
    "llama-L10": 10})
TIED = {"gpt2-tiny", "gpt2-tiny-dropout", "gpt2-L3", "gpt2-L7", "gemma3-tiny"}
HEADS = {"gpt2-tiny": (8, 8), "gpt2-tiny-dropout": (8, 8), "llama-tiny": (8, 2),
         "qwen3-tiny": (6, 2)}  # of queries, and of keys and values
VOCABULARY = collections.defaultdict(lambda: 257, {"gpt2-97": 97, "gpt2-5": 5})

LIMIT = 120  # seconds after which a command hangs
IGNORED = 0  # the token whose labels do not count
CLIP = 0.3
EPSILON = 1e-3  # as large as gradients, or else no update depends on their scale
# Relative; of a gradient's largest element; of the way that a weight has gone.
BOUNDS = {
    "fp32": {"loss": 1e-5, "grad_norm": 1e-4, "gradient": 1e-4, "weights": 1e-3},
    "bf16": {"loss": 2e-2, "grad_norm": math.inf, "gradient": 0.15,
             "weights": math.inf},
}


# Rows of a step, of which the first that the micro-batches divide is taken: with few
# sizes, one run of one rank serves many cases.
BATCHES = (18, 16, 24, 30)


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    tp: int = 1
    sp: bool = False
    dp: int = 1
    zero: int = 0
    micro_batches: int = 1
    labels: object = "all"  # or the number that count in each row of a step
    recompute: str = "none"
    pp: int = 1
    vpp: int = 1
    schedule: str = ""
    cp: int = 1
    cp_method: str = ""
    stages: str = ""
    packed: bool = False
    precision: str = "fp32"
    batch: int = 0  # that of BATCHES
    length: int = 0  # 12, or what cp divides
    steps: int = 4
    processes: bool = False  # also run as processes, which give the same bits
    refusal: str = ""  # what the refusal says, if it is one

    def __post_init__(self):
        if not self.batch:
            batch = next(batch for batch in BATCHES
                         if batch % (self.dp * self.micro_batches) == 0)
            object.__setattr__(self, "batch", batch)
        if not self.length:
            object.__setattr__(self, "length", 12 if self.cp == 1 else 16)

    def __str__(self):
        words = [self.model, f"tp {self.tp}", "sp" * self.sp, f"dp {self.dp}",
                 f"zero {self.zero}", f"micro-batches {self.micro_batches}",
                 f"labels {self.labels}"]
        words += [f"{field.name} {getattr(self, field.name)}"
                  for field in dataclasses.fields(self)[7:-1]
                  if getattr(self, field.name) != field.default]
        return ", ".join(filter(None, words))

    @property
    def ranks(self):
        return self.tp * self.cp * self.dp * self.pp

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
        return row * row // 3 % (self.length + 1)

    def refusals(self):
        """What a refusal may say: for every rule that is broken, its words."""
        broken = [self.refusal] if self.refusal else []
        if self.sp and self.tp == 1:
            broken.append("--sp .* --tp, which is 1; give --tp 2 or more")
        if self.model == "qwen3-tiny" and self.tp == 4:
            broken.append(r"--tp 4 does not divide 6 heads .*\(legal: 1, 2, 6\)")
        if self.cp_method and self.cp == 1:
            broken.append("--cp-method .* --cp, which is 1; give --cp 2 or more")
        if self.cp_method == "all-to-all" and self.model in HEADS:
            left = [max(1, heads // self.tp) for heads in HEADS[self.model]]
            if any(heads % self.cp for heads in left):
                legal = ", ".join(str(cp) for cp in range(1, min(left) + 1)
                                  if not any(heads % cp for heads in left))
                broken.append(rf"--cp-method all-to-all .* --cp {self.cp}, .* "
                              rf"\(legal --cp: {legal}\)")
        if self.pp == 1:
            broken += [f"--{flag} .* --pp is 1; give --pp 2 or more, or leave --{flag}"
                       for flag, given in (("vpp", self.vpp > 1),
                                           ("schedule", self.schedule)) if given]
            return broken
        interleaved = (self.schedule or ("interleaved" if self.vpp > 1 else "1f1b")
                       ) == "interleaved"
        if self.vpp > 2 and self.schedule == "zero-bubble":
            broken.append(rf"--vpp is {self.vpp} \(legal: 1, 2\)")
        elif self.vpp > 1 and not interleaved and self.schedule != "zero-bubble":
            broken.append(f"--schedule {self.schedule} has one part on each stage, and "
                          f"--vpp is {self.vpp}; .* --schedule interleaved")
        if self.vpp == 1 and interleaved:
            broken.append("--schedule interleaved .* --vpp is 1; give --vpp 2 or more")
        if interleaved and self.micro_batches % self.pp:
            group = self.pp * self.rows * self.dp
            below = self.batch // group * group
            nearest = (f"{below}, " if below else "") + str(below + group)
            broken.append(f"groups of {self.pp}, and --global-batch-size {self.batch} "
                          rf"makes {self.micro_batches} of them \(nearest: {nearest}\)")
        parts, units = self.pp * self.vpp, LAYERS[self.model] + 2
        if parts > units:
            broken.append(f"{parts} pipeline parts .* as many units of the model, "
                          rf"which has {units}: .*\(legal: 1 to {units} parts\)")
        return broken


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
        *(Case(model, tp=2, pp=2, dp=2, zero=1, micro_batches=3, precision="bf16",
               steps=20) for model in ("gpt2-tiny", "llama-tiny")),
    ],
    "A04: parts of unequal numbers of layers, each layer once": [
        *(Case(model, pp=pp, micro_batches=3)
          for model in ("gpt2-L7", "llama-L7") for pp in (2, 3, 4)),
        Case("llama-L10", pp=3, micro_batches=5),
        Case("gpt2-L7", pp=2, vpp=2, micro_batches=8),
        Case("llama-L10", pp=3, vpp=2, micro_batches=3),
        # As many parts as units, and one more.
        Case("gpt2-L3", pp=5, micro_batches=5),
        Case("gpt2-L3", pp=6, micro_batches=8),
        Case("gpt2-L3", pp=3, vpp=2, micro_batches=3),
    ],
    "A06: fewer micro-batches than stages": [
        *(Case(model, pp=4, micro_batches=micro_batches, schedule=schedule)
          for model in ("gpt2-tiny", "llama-tiny")
          for schedule in ("1f1b", "gpipe") for micro_batches in (1, 2, 3)),
        *(Case("gpt2-tiny", pp=4, vpp=2, micro_batches=micro_batches)
          for micro_batches in (1, 2, 3)),
    ],
    "A07: both directions meet the same peer": [
        *(Case(model, pp=2, vpp=2, micro_batches=micro_batches, schedule="interleaved")
          for model in ("gpt2-tiny", "llama-tiny") for micro_batches in (2, 4, 6)),
        Case("gpt2-tiny", pp=2, vpp=2, micro_batches=4, processes=True),
        Case("gpt2-tiny", pp=2, vpp=4, micro_batches=6),
    ],
    "groups of micro-batches that are not full": [
        Case("gpt2-tiny", pp=4, vpp=2, micro_batches=5),
        Case("gpt2-tiny", pp=4, vpp=2, micro_batches=6),
        Case("llama-tiny", pp=2, vpp=2, micro_batches=3),
    ],
    "a schedule needs its number of chunks": [
        Case("gpt2-tiny", pp=2, micro_batches=2, schedule="interleaved"),
        Case("gpt2-tiny", pp=2, vpp=2, micro_batches=2, schedule="1f1b"),
    ],
    "embedding and head share a weight, which is on two stages": [
        *(Case("gpt2-tiny", pp=pp, zero=zero, dp=2, tp=tp, sp=tp > 1, micro_batches=2)
          for pp in (2, 3) for zero in (0, 1) for tp in (1, 2)),
        Case("gpt2-97", tp=4, pp=2, vpp=2, zero=1, dp=2, micro_batches=2),
        # All layers beside the embedding, the head alone.
        Case("gpt2-tiny", pp=2, stages="E 6L | H", dp=3, zero=1, micro_batches=3),
    ],
    "stages as they are written": [
        Case("gpt2-tiny", pp=2, stages="E 5L | L H", micro_batches=3),
        Case("llama-tiny", pp=3, stages="E | 6L | H", micro_batches=3),
        Case("llama-tiny", pp=2, vpp=2, stages="E | 4L | L | L H", dp=2,
             micro_batches=2),
        Case("gpt2-tiny", pp=2, stages="E 7L | H",
             refusal="--pp 2 --stages .*: part 0 has 7 layers: 7 of 6"),
        Case("gpt2-tiny", pp=3, stages="E 3L | 3L H",
             refusal=r"--pp 3 --stages .*: 2 parts are written, 3 \(stages x chunks\)"),
        Case("gpt2-tiny", pp=2, stages="E 3L | 2L H",
             refusal="--pp 2 --stages .*: part 1 has H where the model has L"),
        Case("gpt2-tiny", stages="E 6L H",
             refusal="--stages .* --pp is 1; give --pp 2 or more"),
    ],
    "cycles of layer kinds, cut inside": [
        Case("gemma3-tiny", pp=3, micro_batches=3, length=32),
        Case("gemma3-tiny", pp=3, vpp=2, micro_batches=3, length=32),
        Case("gemma3-tiny", tp=2, pp=3, dp=2, zero=1, micro_batches=3, length=32,
             recompute="selective"),
    ],
    "dropout by global index, on the stage that has the layer": [
        Case("gpt2-tiny-dropout", pp=3, micro_batches=3),
        Case("gpt2-tiny-dropout", pp=2, vpp=2, micro_batches=8, recompute="full"),
        Case("gpt2-tiny-dropout", pp=4, vpp=2, tp=2, sp=True, dp=2, micro_batches=8),
        Case("gpt2-tiny-dropout", pp=4, schedule="gpipe", micro_batches=5,
             recompute="selective"),
    ],
    "gradients of weights that wait": [
        *(Case(model, pp=pp, vpp=vpp, micro_batches=micro_batches,
               schedule="zero-bubble")
          for model in ("gpt2-tiny", "llama-tiny") for pp in (2, 4) for vpp in (1, 2)
          for micro_batches in (1, 2, 5, 8) if pp * vpp <= 8),
        # Both ends of a V are on the first stage, and so is a weight they share.
        *(Case("gpt2-tiny", pp=2, vpp=2, zero=zero, dp=2, tp=2, sp=True,
               micro_batches=3, schedule="zero-bubble") for zero in (0, 1)),
        Case("llama-L10", pp=3, vpp=2, micro_batches=5, schedule="zero-bubble"),
        Case("gpt2-L7", pp=3, vpp=2, micro_batches=5, schedule="zero-bubble",
             stages="E 2L | L | L | L | L | L H"),
        Case("llama-L7", pp=3, micro_batches=5, schedule="zero-bubble", zero=1, dp=2,
             stages="E 2L | 4L | L H"),
        Case("gemma3-tiny", pp=3, vpp=2, micro_batches=3, length=32,
             schedule="zero-bubble"),
        # What its attention drops is drawn again, with what is computed again.
        *(Case("gpt2-tiny-dropout", tp=2, sp=True, pp=2, vpp=vpp, dp=2,
               micro_batches=2, recompute=recompute, schedule="zero-bubble")
          for vpp in (1, 2) for recompute in ("none", "selective", "full")),
        *(Case(model, tp=2, pp=2, vpp=vpp, zero=1, micro_batches=3, precision="bf16",
               steps=20, schedule="zero-bubble")
          for model in ("gpt2-tiny", "llama-tiny") for vpp in (1, 2)),
        Case("gpt2-tiny", tp=2, sp=True, pp=2, vpp=2, dp=2, zero=1, micro_batches=8,
             schedule="zero-bubble", processes=True),
        Case("gpt2-tiny", pp=2, vpp=4, micro_batches=2, schedule="zero-bubble"),
    ],
    "documents in one row": [
        Case("gpt2-tiny", tp=2, sp=True, dp=2, zero=1, labels="uneven", packed=True),
        Case("gpt2-tiny-dropout", tp=4, sp=True, dp=2, micro_batches=3,
             recompute="full", packed=True),
        Case("gpt2-tiny-dropout", tp=2, dp=3, pp=2, zero=1, micro_batches=3,
             labels="silent", recompute="selective", packed=True),
        Case("llama-tiny", tp=8, micro_batches=3, packed=True),
        Case("llama-tiny", tp=4, sp=True, dp=2, pp=2, vpp=2, zero=1, micro_batches=2,
             packed=True, processes=True),
        Case("qwen3-tiny", tp=2, sp=True, micro_batches=3, packed=True),
        Case("gemma3-tiny", tp=2, pp=3, vpp=2, dp=2, micro_batches=3, length=32,
             packed=True),
        *(Case(model, tp=2, sp=True, pp=2, dp=2, zero=1, micro_batches=3,
               precision="bf16", packed=True)
          for model in ("gpt2-tiny-dropout", "llama-tiny")),
    ],
    "A08: sequences that chunks do not divide": [
        *(Case("llama-tiny", cp=2, length=length,
               refusal=rf"--cp 2 cuts sequences of {length} into 4 chunks .*"
                       rf"\(nearest: {nearest}\)")
          for length, nearest in ((30, "28, 32"), (31, "28, 32"), (2, "4"))),
        Case("llama-tiny", cp=4, length=12,
             refusal=r"--cp 4 .* 12 into 8 chunks .*\(nearest: 8, 16\)"),
        Case("llama-tiny", cp=4, length=8),
        Case("llama-tiny", cp=2, tp=4, sp=True, length=12,
             refusal=r"--sp .* over --tp 4: .* multiple of 8 \(nearest: 8, 16\)"),
        Case("gpt2-both", cp=2, length=30),
        Case("gpt2-both", cp=4, length=30,
             refusal=r"--cp 4 .* 30 into 4 chunks: .*\(nearest: 28, 32\)"),
    ],
    "A24: the mean of the tokens that count, wherever they are": [
        *(Case(model, cp=cp, cp_method=method, labels="uneven", micro_batches=3,
               zero=zero)
          for model in ("gpt2-tiny", "llama-tiny") for cp in (2, 4) for zero in (0, 1)
          for method in ("ring", "gather")),
        # Of the first chunk only: the first rank has all of them.
        *(Case("gpt2-tiny", cp=cp, cp_method=method, labels=(2, 1, 2, 2), batch=4, dp=dp)
          for cp in (2, 4) for method in ("ring", "gather", "all-to-all")
          for dp in (1, 2)),
    ],
    "windows over chunks of other ranks": [
        *(Case(model, cp=cp, cp_method=method)
          for model in ("llama-w2", "llama-w6", "llama-w99") for cp in (2, 4)
          for method in ("ring", "gather")),
        *(Case("gpt2-w3", cp=cp, cp_method=method, tp=2, sp=True)
          for cp in (2, 4) for method in ("ring", "gather", "all-to-all")),
        Case("gemma3-tiny", cp=2, cp_method="ring", pp=3, micro_batches=3, length=32),
    ],
    "queries that see all keys": [
        Case("gpt2-both", cp=cp, cp_method=method, tp=2, sp=True)
        for cp in (2, 4) for method in ("ring", "gather", "all-to-all")
    ],
    "documents over ranks": [
        *(Case(model, cp=cp, cp_method=method, packed=True, labels=labels)
          for model in ("gpt2-tiny", "llama-w6", "gpt2-tiny-dropout")
          for cp in (2, 4) for method in ("ring", "gather")
          for labels in ("all", "uneven")),
        Case("gpt2-tiny", cp=2, tp=2, cp_method="all-to-all", packed=True),
        *(Case("llama-tiny", cp=2, cp_method=method, tp=2, sp=True, dp=2, pp=2, zero=1,
               micro_batches=3, packed=True, length=32, recompute="selective")
          for method in ("ring", "gather")),
        Case("gpt2-tiny-dropout", cp=2, cp_method="ring", tp=2, sp=True, pp=2, vpp=2,
             schedule="zero-bubble", micro_batches=3, packed=True, processes=True),
    ],
    "keys of other ranks, with all else": [
        *(Case(model, cp=2, cp_method=method, tp=2, sp=True, dp=2, pp=2, zero=1,
               micro_batches=3, precision="bf16", steps=20)
          for model in ("gpt2-tiny-dropout", "llama-tiny")
          for method in ("ring", "gather")),
        *(Case("gpt2-tiny", cp=2, cp_method=method, tp=2, sp=True, dp=2, zero=1,
               processes=True) for method in ("ring", "gather", "all-to-all")),
        *(Case("gpt2-tiny-dropout", cp=cp, cp_method=method, tp=2, sp=True,
               recompute=recompute, micro_batches=3, pp=2)
          for cp in (2, 4) for method in ("ring", "gather", "all-to-all")
          for recompute in ("selective", "full")),
        Case("llama-tiny", cp=2, cp_method="ring", tp=4, dp=2, zero=1, labels="silent"),
    ],
    "everything together": [
        *(Case(model, tp=2, sp=True, dp=2, pp=2, vpp=2, zero=1, recompute="full",
               micro_batches=2)
          for model in FACTORS["model"]),
        Case("gpt2-tiny-dropout", tp=2, sp=True, dp=2, pp=2, vpp=2, zero=1,
             recompute="full", micro_batches=8, labels="silent", processes=True),
    ],
    "processes": [
        Case("gpt2-tiny", pp=2, micro_batches=3, processes=True),
        Case("gpt2-tiny", pp=4, vpp=2, micro_batches=8, processes=True),
        Case("llama-tiny", dp=2, pp=2, zero=1, micro_batches=3, processes=True),
        Case("gpt2-tiny", tp=4, processes=True, labels="uneven"),
        Case("gpt2-tiny-dropout", dp=3, zero=1, processes=True),
        Case("llama-tiny", tp=2, sp=True, dp=2, zero=1, micro_batches=3,
             processes=True),
        Case("qwen3-tiny", tp=2, dp=2, micro_batches=3, processes=True),
    ],
}


def cover(factors, cases, strength):
    """Few of the cases, tuples of values, so that of any factors, as many as strength
    says, all values occur together that do so in a case. Greedily: of some cases that
    have what is missing, the one that has most of it."""
    getters = {at: operator.itemgetter(*at)
               for at in itertools.combinations(range(len(factors)), strength)}
    missing = {(at, part): None for at, get in getters.items()
               for part in dict.fromkeys(map(get, cases))}  # in order, as no set is
    draw, chosen = random.Random(2026), []

    def found(case):
        return [(at, get(case)) for at, get in getters.items()
                if (at, get(case)) in missing]

    while missing:
        at, part = next(iter(missing))
        having = [case for case in cases if getters[at](case) == part]
        best = max(draw.sample(having, min(len(having), 64)),
                   key=lambda case: len(found(case)))
        chosen.append(best)
        for part in found(best):
            del missing[part]
    return chosen


def refusals(factors, every, runs):
    """For two or three values that no case that runs has together, and that are not
    refused for fewer of them, one case: that which breaks the fewest rules."""
    chosen, known = [], []
    for count in (2, 3):
        for names in itertools.combinations(factors, count):
            get = operator.attrgetter(*names)
            possible = set(map(get, runs))
            for values in itertools.product(*map(factors.get, names)):
                part = dict(zip(names, values)).items()
                if values not in possible and not any(k <= part for k in known):
                    known.append(part)
                    case = min((case for case in every if get(case) == values),
                               key=lambda case: len(case.refusals()))
                    if case.refusals():  # else too many ranks
                        chosen.append(case)
    return list(dict.fromkeys(chosen))


def product(factors):
    return [Case(**dict(zip(factors, values)))
            for values in itertools.product(*factors.values())]


def combinations(exhaustive):
    chosen, refused = [], []
    for factors in FACTORS, CONTEXT:
        every = product(factors)
        runs = [case for case in every
                if not case.refusals() and (case.cp == 1 or case.ranks <= MOST_RANKS)]
        if not exhaustive:
            values = list(map(operator.attrgetter(*factors), runs))
            chosen += [Case(**dict(zip(factors, case)))
                       for case in cover(factors, values, 3)]
        refused += refusals(factors, every, runs)
    if exhaustive:
        chosen = [case for case in itertools.chain(*map(product, PRODUCTS))
                  if not case.refusals()]
    return list(dict.fromkeys(chosen + refused))


def write_dataset(prefix, tokens, lengths):
    """Megatron's format, docs/data.md: one sequence per document, u16."""
    starts = [2 * start for start in itertools.accumulate(lengths, initial=0)][:-1]
    pathlib.Path(f"{prefix}.bin").write_bytes(array.array("H", tokens).tobytes())
    pathlib.Path(f"{prefix}.idx").write_bytes(
        struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, len(lengths), len(lengths) + 1)
        + array.array("i", lengths).tobytes() + array.array("q", starts).tobytes()
        + array.array("q", range(len(lengths) + 1)).tobytes())


def document_lengths(tokens, length, draw):
    """From one token to more than a row, one of them; most are shorter."""
    lengths = [1]
    while sum(lengths) < tokens:
        lengths.append(min(1 + int(1.5 * length * draw() ** 2), tokens - sum(lengths)))
    return lengths


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
        for model in FACTORS["model"] + tuple(LAYERS):
            text = self.model(model).read_text()
            assert f"times {LAYERS[model]}(" in text, model
            assert (model in TIED) == ("tfm.shared" in text), model

    def model(self, name):
        return (self.folder if name in EDITED else self.examples) / f"{name}.mlir"

    def call(self, tool, *arguments):
        """What hangs is ended: nothing here takes longer than a few seconds."""
        return subprocess.run([self.binaries / tool, *map(str, arguments)],
                              capture_output=True, text=True, timeout=LIMIT)

    def demand(self, *command):
        done = self.call(*command)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code "
                               f"{done.returncode}\n{done.stderr}")
        return done

    def dataset_of(self, case):
        """A prefix. Every row of the run reads another sample, whose labels count
        as the case says."""
        samples, length = case.batch * case.steps, case.length
        valid = tuple(map(case.valid, range(samples)))
        key = VOCABULARY[case.model], case.batch, length, valid, case.packed
        if key not in self.data:
            prefix = self.folder / f"data{len(self.data)}"
            draw = random.Random(2026).random
            tokens = [1 + int((key[0] - 1) * draw() ** 2)
                      for _ in range(samples * length + 1)]
            documents = (document_lengths(len(tokens), length, draw) if case.packed
                         else [len(tokens)])
            write_dataset(prefix, tokens, documents)
            done = self.demand(
                "mega-data", "samples", prefix, "--seq-length", length,
                "--global-batch-size", case.batch, "--steps", case.steps)
            order = json.loads(done.stdout)["samples"]
            places = [slice(sample * length + 1, (sample + 1) * length + 1)
                      for step in order for sample in step]
            for place, count in zip(places, valid):
                tokens[place] = tokens[place][:count] + [IGNORED] * (length - count)
            write_dataset(prefix, tokens, documents)
            self.data[key] = prefix, [sum(token != IGNORED for token in tokens[place])
                                      for place in places]
        prefix, counts = self.data[key]
        self.check_counts(case, counts)
        return prefix

    def check_counts(self, case, counts):
        """What the case is about holds for the labels of each row of the run:
        replica d reads row (m * dp + d) * B + j."""
        differ = False
        for step in range(case.steps):
            found = [sum(counts[step * case.batch + (m * case.dp + d) * case.rows + j]
                         for m in range(case.micro_batches) for j in range(case.rows))
                     for d in range(case.dp)]
            silent = case.labels == "silent" and case.dp > 1
            differ |= len(set(found)) > 1
            if not sum(found) or silent != (found[-1] == 0):
                sys.exit(f"{case}: step {step}: replicas have {found} labels")
        if case.labels == "uneven" and case.dp > 1 and not differ:
            sys.exit(f"{case}: replicas have the same number of labels in every step")

    def compile(self, case, plan):
        return self.call(
            "megac", self.model(case.model), *["--sp"] * case.sp,
            *["--packed"] * case.packed,
            "--tp", case.tp, "--dp", case.dp, "--zero", case.zero,
            "--pp", case.pp, "--vpp", case.vpp, "--cp", case.cp,
            *["--cp-method", case.cp_method] * bool(case.cp_method),
            *["--schedule", case.schedule] * bool(case.schedule),
            *["--stages", case.stages] * bool(case.stages),
            "--micro-batch-size", case.rows,
            "--global-batch-size", case.batch, "--seq-length", case.length,
            "--precision", case.precision, "--recompute", case.recompute, "-o", plan)

    def train(self, case, folder, data, *options):
        """Of the case's plan in the folder."""
        done = self.demand(
            "megart", "train", folder / "plan.mega", "--data", data,
            "--steps", case.steps, "--lr", 1e-3, "--weight-decay", 0.1,
            "--clip", CLIP, "--epsilon", EPSILON, "--ignore-token", IGNORED,
            "--threads", 1, "--timeout", LIMIT // 2, "--log-file", folder / "log.jsonl",
            "--dump", f"gradients@1={folder}",
            "--dump", f"weights@{case.steps}={folder}",
            *options)
        ranks = case.ranks
        threads = ranks > 1 and "--processes" not in options  # they do not say it
        if threads and f" on {ranks} ranks" not in done.stderr:
            raise RuntimeError(f"{folder}: not on {ranks} ranks\n{done.stderr}")
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
            pp=1, vpp=1, schedule="", stages="", cp=1, cp_method="", labels=self.dataset_of(case),
            processes=False)

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
        if wanted := case.refusals():
            if done.returncode == 1 and re.search("|".join(wanted), done.stderr):
                return "refused", []
            return "", [f"not refused with {' or '.join(map(repr, wanted))}: exit code "
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
                               if not case.refusals()))

    def attempt(number):
        try:
            return sweep.run(number, cases[number])
        except (RuntimeError, subprocess.TimeoutExpired) as error:
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
