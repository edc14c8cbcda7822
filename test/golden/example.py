"""Reads off an example which parameters it has: names, shapes, initial values.

Not a parser of MLIR: it knows the form of the files in examples/, and no more.
With it the golden side can be checked before, and without, a compiler.
"""

import os
import re
import zlib

import torch

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")
ALIAS = re.compile(r"(![a-z]\w*) = tensor<([\dx?]+)x[fi]32>")
SHARED = re.compile(r'tfm\.shared @\w+ = "([^"]+)" init\(([^)]*)\) : (!\w+)')
PARAM = re.compile(r'tfm\.param "([^"]+)" init\(([^)]*)\) : (!\w+)')
CALL = re.compile(r"tfm\.call @(\w+)")
REPEAT = re.compile(r'tfm\.repeat (\[[^]]*\]|@\w+) times (\d+)\(.*prefix "([^"]+)"')


def cycle_of(text):
    """["sliding", "sliding", "full"] of "[@sliding x2, @full]"."""
    kinds = []
    for name, times in re.findall(r"@(\w+)(?: x(\d+))?", text):
        kinds += [name] * int(times or 1)
    return kinds


def parameters(name):
    """{logical name: (shape, initial value as a list of strings)} of an example."""
    with open(os.path.join(EXAMPLES, f"{name}.mlir")) as file:
        text = file.read()
    shapes = {}
    for alias, sizes in ALIAS.findall(text):
        if "?" not in sizes:
            shapes[alias] = tuple(map(int, sizes.split("x")))

    def describe(found):
        return {n: (shapes[t], init.split(", ")) for n, init, t in found}

    blocks = {}
    for block in re.findall(r"tfm\.block @(\w+)\(.*?\n}", text, re.S):
        body = re.search(rf"tfm\.block @{block}\(.*?\n}}", text, re.S).group()
        blocks[block] = describe(PARAM.findall(body))
    result = describe(SHARED.findall(text))
    for block in CALL.findall(text):
        result.update(blocks[block])
    for kinds, times, prefix in REPEAT.findall(text):
        kinds = cycle_of(kinds)
        for i in range(int(times)):
            for n, description in blocks[kinds[i % len(kinds)]].items():
                result[f"{prefix}.{i}.{n}"] = description
    return result


def initial_weights(name, seed=1):
    """Weights distributed as the example says, in float32. They are not those
    of `megart`, which has its own generator."""
    weights = {}
    for parameter, (shape, init) in parameters(name).items():
        kind, values = init[0], [float(v) for v in init[1:]]
        generator = torch.Generator().manual_seed(seed + zlib.crc32(parameter.encode()))
        weights[parameter] = {
            "zeros": lambda: torch.zeros(shape),
            "ones": lambda: torch.ones(shape),
            "constant": lambda: torch.full(shape, *values),
            "normal": lambda: torch.randn(shape, generator=generator) * values[0],
        }[kind]()
    return weights
