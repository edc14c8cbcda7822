"""Prints a small English-like text, the same bytes on every machine.

Golden values need tokens that never change, and real text does: it comes with
packages that get updates. Words follow a Zipf-like law, so that there is
something to learn.

    python3 test/golden/corpus.py >corpus.txt
    mega-data tokenize corpus.txt --tokenizer byte -o corpus
"""

import sys

WORDS = """the of and to a in is that it for as was with be by on not he this
are or his from at which but have an had they you were there one all we can her
has their been if more when will would who so no out up into do any your what
than other how time layer weight gradient tensor stage batch plan rank loss step
reduce gather scatter memory frame schedule compiler pipeline""".split()


def numbers(state):
    """The upper half of Knuth's 64-bit linear congruential generator."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 32


def main(size=20000):
    draw = numbers(2026)
    text = ""
    while len(text) < size:
        # A product of two uniform numbers favours the front of the list.
        length = 4 + next(draw) % 12
        words = [
            WORDS[next(draw) % len(WORDS) * (next(draw) % 1000) // 1000]
            for _ in range(length)
        ]
        text += " ".join(words).capitalize() + (".\n" if next(draw) % 4 == 0 else ". ")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
