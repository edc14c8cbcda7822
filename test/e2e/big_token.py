"""Copies a u16 dataset with one token changed.

    python3 big_token.py PREFIX COPY POSITION TOKEN
"""

import shutil
import struct
import sys

prefix, copy, position, token = sys.argv[1:]
shutil.copy(prefix + ".idx", copy + ".idx")
with open(prefix + ".bin", "rb") as file:
    data = bytearray(file.read())
struct.pack_into("<H", data, 2 * int(position), int(token))
with open(copy + ".bin", "wb") as file:
    file.write(data)
