"""Sequences over the ranks of cp, at real lengths.

    python3 context.py BIN EXAMPLES FOLDER

- what llama3-8b saves of 8,192 tokens falls with cp;
- attention is the same work for every rank of a causal model, whatever the method;
- the method that is chosen is one that can be: heads are not traded where they do not
  divide;
- a model trains on 16,384 tokens as on one rank, in the memory that was planned.
"""

import json
import pathlib
import re
import subprocess
import sys

binaries, examples, folder = map(pathlib.Path, sys.argv[1:])
failed = False


def expect(what, holds, found):
    global failed
    failed |= not holds
    print(f"{what}: {found}{'' if holds else ' FAILS'}", flush=True)


def call(tool, *arguments):
    done = subprocess.run([binaries / tool, *map(str, arguments)], capture_output=True,
                          text=True, timeout=500)
    if done.returncode:
        sys.exit(f"{tool} {arguments}: exit code {done.returncode}\n{done.stderr}")
    return done


def report(model, *flags):
    return call("megac", model, *flags, "-o", folder / "report.mega", "--report").stdout


def number(text, pattern):
    found = re.search(pattern, text, re.M)
    if not found:
        sys.exit(f"no {pattern!r} in\n{text}")
    return int(found.group(1).replace(",", ""))


def saved_frames():
    model = examples / "llama3-8b.mlir"
    for precision in ("fp32", "bf16"):
        pool = {cp: number(report(model, "--seq-length", 8192, "--cp", cp,
                                  "--precision", precision), r"^  pool +([\d,]+)")
                for cp in (1, 2, 4)}
        ratio = pool[1] / pool[4]
        expect(f"saved frames of llama3-8b, {precision}, cp 1 to 4", ratio >= 3.5,
               f"{ratio:.3f} times less")


def work():
    pairs = {}
    for cp in (1, 2, 4):
        for method in ("ring", "gather", "all-to-all") if cp > 1 else ("",):
            text = report(examples / "gpt2-tiny.mlir", "--cp", cp,
                          *["--cp-method", method] * bool(method))
            if cp == 1:
                continue
            pairs[cp, method] = number(text, r"^attention .*; ([\d,]+) query-key")
            expect(f"work of attention, cp {cp}, {method}",
                   f"attention         {method}; " in text
                   and "at most 1.000 of the mean" in text,
                   re.search("^attention.*", text, re.M).group())
    # 8 heads, 6 layers, 4 micro-batches of 128 tokens.
    whole = 8 * 6 * 4 * 128 * 129 // 2
    for (cp, method), found in pairs.items():
        expect(f"pairs of all ranks, cp {cp}, {method}", found * cp == whole,
               f"{found} x {cp}")
    text = report(examples / "llama-tiny.mlir", "--cp", 4, "--tp", 2)
    expect("the method for one key/value head on a rank",
           re.search("^attention +(ring|gather);", text, re.M),
           re.search("^attention.*", text, re.M).group())
    text = report(examples / "gpt2-tiny.mlir", "--cp", 2, "--packed")
    expect("packed rows", "tokens of a rank, balanced" in text
           and "if rows are one document" in text,
           re.search("^sequence  .*", text, re.M).group())


def long_rows():
    """Two layers, or one rank would take too long."""
    length, steps = 16384, 2
    model = folder / "long.mlir"
    model.write_text((examples / "llama-tiny.mlir").read_text()
                     .replace("times 6", "times 2")
                     .replace("max_sequence(128)", f"max_sequence({length})"))
    losses = {}
    for flags in ((), ("--cp", 4, "--cp-method", "ring"),
                  ("--cp", 4, "--cp-method", "gather", "--packed")):
        name = " ".join(map(str, flags)) or "one rank"
        call("megac", model, *flags, "--global-batch-size", 1, "-o", folder / "p.mega")
        log = folder / "log.jsonl"
        log.unlink(missing_ok=True)
        done = call("megart", "train", folder / "p.mega", "--data", folder / "corpus",
                    "--steps", steps, "--lr", 1e-3, "--log-file", log)
        losses[name] = [json.loads(line)["loss"] for line in log.open()]
        memory = re.search(r"memory: planned .*", done.stderr + done.stdout).group()
        beside = re.search(r": ([\d.]+) (\w+) beside the plan \(reserve ([\d.]+) (\w+)\)",
                           memory)
        units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        used, reserve = (float(beside.group(i)) * units[beside.group(i + 1)]
                         for i in (1, 3))
        expect(f"16,384 tokens, {name}", used <= reserve, memory)
    one = losses["one rank"]
    for name, found in losses.items():
        # One document, which --packed changes nothing about.
        off = max(abs(a / b - 1) for a, b in zip(found, one))
        expect(f"losses of 16,384 tokens, {name}", off <= 1e-5 and len(found) == steps,
               f"{found}, off by {off:.1e}")


saved_frames()
work()
long_rows()
sys.exit(failed)
