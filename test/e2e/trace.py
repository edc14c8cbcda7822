"""trace.py TRACE... --stages P --steps N --micro-batches M [--chunks V] [--ranks R]:
what megart train --trace has written holds a step's worth of events for every rank."""
import argparse
import collections
import json

parser = argparse.ArgumentParser()
parser.add_argument("traces", nargs="+")
parser.add_argument("--stages", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--micro-batches", type=int, required=True)
parser.add_argument("--chunks", type=int, default=1)
parser.add_argument("--ranks", type=int)
options = parser.parse_args()
ranks = options.ranks or options.stages
perStage = ranks // options.stages

events = []
for path in options.traces:
    with open(path, encoding="utf-8") as file:
        events += json.load(file)

# One process for each rank, named after it.
names = {event["pid"]: event["args"]["name"] for event in events
         if event["name"] == "process_name"}
assert names == {rank: f"rank {rank}" + (f" (stage {rank // perStage})"
                                         if options.stages > 1 else "")
                 for rank in range(ranks)}, names
threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
           if event["name"] == "thread_name"}

# Every forward and backward of every part and micro-batch, once in each step.
runs = collections.Counter()
spans = collections.defaultdict(list)
for event in events:
    if event["ph"] != "X":
        continue
    thread = (event["pid"], event["tid"])
    assert threads[thread] == "compute" or event["cat"] == "transfer", event
    spans[thread].append((event["ts"], event["ts"] + event["dur"]))
    if event["cat"] in ("forward", "backward"):
        args = event["args"]
        runs[event["pid"], event["cat"], args["step"], args["part"], args["micro_batch"]] += 1
wanted = {(rank, work, step, rank // perStage + chunk * options.stages, microBatch)
          for rank in range(ranks) for work in ("forward", "backward")
          for step in range(1, options.steps + 1) for chunk in range(options.chunks)
          for microBatch in range(options.micro_batches)}
assert set(runs) == wanted, set(runs) ^ wanted
assert set(runs.values()) == {1}, runs

# A thread does one thing at a time. Times have nanoseconds.
for thread, intervals in spans.items():
    intervals.sort()
    for (_, end), (begin, _) in zip(intervals, intervals[1:]):
        assert begin >= end - 5e-4, (thread, begin, end)

# Each arrow has a start and an end, later, on another rank, and both lie in an event.
arrows = collections.defaultdict(dict)
for event in events:
    if event["ph"] in "sf":
        assert event["ph"] not in arrows[event["id"]], event
        arrows[event["id"]][event["ph"]] = event
        assert any(begin - 5e-4 <= event["ts"] <= end + 5e-4
                   for begin, end in spans[event["pid"], event["tid"]]), event
for name, arrow in arrows.items():
    assert set(arrow) == {"s", "f"}, (name, arrow)
    assert arrow["s"]["pid"] != arrow["f"]["pid"], arrow
    assert arrow["s"]["ts"] <= arrow["f"]["ts"], arrow
    assert threads[arrow["s"]["pid"], arrow["s"]["tid"]] == f"send to rank {arrow['f']['pid']}"
    assert threads[arrow["f"]["pid"], arrow["f"]["tid"]] == f"receive from rank {arrow['s']['pid']}"
boundaries = options.stages * options.chunks - 1
transfers = 2 * boundaries * options.micro_batches * options.steps * perStage
assert len(arrows) == transfers, (len(arrows), transfers)
print(f"{len(spans)} threads of {ranks} ranks, {len(arrows)} arrows")
