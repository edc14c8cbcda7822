"""Checks `megac --report` of long-8k at two lengths: the head's scratch is below
the logits it stands for, and attention's grows with the sequence, not its
square.

    python3 long_sequence.py REPORT_4096 REPORT_8192
"""

import re
import sys

VOCABULARY = 50304


def scratch(path):
    with open(path) as file:
        text = file.read()
    return {
        name: int(re.search(rf"^  {name} +([\d,]+)", text, re.M).group(1)
                  .replace(",", ""))
        for name in ("attention lse", "attention_grad delta",
                     "head_stats scratch", "head_stats_grad scratch")
    }


short, long = scratch(sys.argv[1]), scratch(sys.argv[2])
for name in ("head_stats scratch", "head_stats_grad scratch"):
    logits = 8192 * VOCABULARY * 4
    if not long[name] < logits:
        sys.exit(f"{name}: {long[name]} bytes, full logits {logits}")
for name in ("attention lse", "attention_grad delta"):
    if long[name] != 2 * short[name]:
        sys.exit(f"{name}: {short[name]} at 4096, {long[name]} at 8192")
print("ok")
