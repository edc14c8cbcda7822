"""sum_of_parts.py REPORT: planned memory is the sum of the parts above it."""
import re
import sys

total, parts, planned = 0, 0, None
for line in open(sys.argv[1], encoding="utf-8"):
    # Parts are indented by two, the regions of a part by four.
    if found := re.match(r"  (\w+) +([\d,]+) .*%$", line):
        size = int(found.group(2).replace(",", ""))
        if found.group(1) == "planned":
            planned = size
        else:
            total, parts = total + size, parts + 1
assert parts >= 5, parts
assert total == planned, (total, planned)
