"""Makes the golden values of the tokenizers: test/golden/tokenizers/.

    python3 -m venv .venv
    .venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.0
    .venv/bin/python test/golden/make_tokenizer_golden.py

writes 10,000 lines of text (lines.jsonl.xz), small tokenizers of every kind
that is supported, trained on them (NAME.json.xz, NAME.model.xz), and per
tokenizer a CRC-32 of the ids of each line (NAME.crc, little endian). What the
ids are comes from the reference libraries alone; compare_tokens.py needs only
these files. From 0.2.1 on sentencepiece decides between segmentations of a
unigram model that score the same (runs of one character) in another way; the
library that Debian 12 has does as 0.2.0. Run it again only to add to them: a text that is there is kept.

    .venv/bin/python test/golden/make_tokenizer_golden.py --show NAME LINE

prints the reference's ids of a line, to look at a difference.
"""

import json
import lzma
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, trainers)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from corpus import WORDS, numbers  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "tokenizers"
ROOT = pathlib.Path(__file__).parents[2]
COUNT = 10000

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

SPECIAL = ["<|endoftext|>", "<|begin|>", "<|end|>", "<|end|><|end|>"]

# What synthetic lines are made of: ranges of characters, and pieces.
RANGES = [(0x20, 0x7e), (0xa1, 0x17f), (0x370, 0x3ff), (0x400, 0x45f),
          (0x5d0, 0x5ea), (0x5b0, 0x5bd), (0x621, 0x64a), (0x64b, 0x652),
          (0x660, 0x669), (0x905, 0x939), (0x93e, 0x94d), (0x966, 0x96f),
          (0xe01, 0xe3a), (0xe40, 0xe4e), (0x1100, 0x1112), (0x1161, 0x1175),
          (0x1e00, 0x1eff), (0x2010, 0x2027), (0x2150, 0x2188),
          (0x2200, 0x22ff), (0x2460, 0x24ff), (0x3041, 0x3096),
          (0x30a1, 0x30fa), (0x4e00, 0x4eff), (0xac00, 0xacff),
          (0xf900, 0xf92f), (0xfb00, 0xfb06), (0xff01, 0xff5e),
          (0x1d400, 0x1d45f), (0x1f300, 0x1f5ff), (0x20000, 0x2002f)]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\r", "\v", "\f",
          "\u0085", "\u00a0", "\u1680", "\u180e", "\u2003", "\u2009", "\u200a",
          "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000",
          "\ufeff", " \n ", "\n  ", "\t\t "]
PIECES = [
    "e\u0301", "E\u0308\u0304", "o\u0323\u0302", "n\u0303a\u0300", "\u0301x",
    "\u1e9b\u0323", "\u212b", "A\u030a", "\u2126", "\u1112\u1161\u11ab",
    "\ud55c", "\u0344", "\u0958", "\u2adc", "\U0001d15e", "\ufb01", "\ufdfa",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f", "1\ufe0f\u20e3",
    "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "\u200f\u202bRTL\u202c",
    "\u0645\u064e\u0631\u0652\u062d", "\u0627\u0644\u0639\u0627\u0644\u0645",
    "\x00", "\x01\x02", "\x07", "\x1b[31m", "\x7f", "\u0080\u009f", "\ufffd",
    "\uffff", "\U0010ffff", "\ue000", "it's", "IT'S", "we'LL've", "don't",
    "I'd'm", "'\u017f", "'\u017fx", "y'all'RE", "\u2019s", "'", "''t", "'ve",
    "3.14159", "1234567890", "0x1F", "1,000,000", "\u0661\u0662\u0663",
    "\u00b2\u00b3", "\u216b", "\u00bd", "12\u0663", "\u4e00\u4e8c",
    "<|endoftext|>", "<|end|>", "<|end|><|end|>", "<|end|", "<|begin|>",
    " <|pad|> ", "<mask>", " <mask> ", "\t<mask>", "word", "words", "wordy",
    "a word b", "<s>", "</s>", "<unk>", "<0x0A>", "\u2581", "\u2581\u2581a",
    "\u0120", "\u0120the", "caf\u00e9", "cafe\u0301", "-->", "!!!", "???...",
    "/* */", "==", "{}[]()", "\\n", "\u2026", "\u00ab\u00bb", "_", "__init__",
    "CamelCaseWord", "HTTPServer", "iPhone", "\u01c5x", "\u02b0\u02b1",
]


def prose(draw):
    words = []
    for _ in range(3 + next(draw) % 12):
        word = WORDS[next(draw) % len(WORDS) * (next(draw) % 1000) // 1000]
        kind = next(draw) % 24
        if kind == 0:
            word = word.upper()
        elif kind == 1:
            word += ["'s", "n't", "'ll", "'re", "'ve", "'d"][next(draw) % 6]
        elif kind == 2:
            word = str(next(draw) % 10**(1 + next(draw) % 8))
        elif kind == 3:
            word += [",", ";", ":", " -", "!", "?"][next(draw) % 6]
        words.append(word)
    return " ".join(words).capitalize() + [".", "", "...", "\n"][next(draw) % 4]


def synthetic(draw):
    text = ""
    for _ in range(1 + next(draw) % 12):
        kind = next(draw) % 10
        if kind < 3:
            first, last = RANGES[next(draw) % len(RANGES)]
            text += "".join(chr(first + next(draw) % (last - first + 1))
                            for _ in range(1 + next(draw) % 8))
        elif kind < 6:
            text += PIECES[next(draw) % len(PIECES)]
        elif kind < 8:
            text += SPACES[next(draw) % len(SPACES)]
        elif kind < 9:
            text += WORDS[next(draw) % len(WORDS)]
        else:
            piece = (PIECES + SPACES + ["a", "0", "=", "\u4e2d"])[
                next(draw) % (len(PIECES) + len(SPACES) + 4)]
            text += piece * (next(draw) % 24)
    return text or "."


def make_lines():
    draw = numbers(2026)
    names = subprocess.run(
        ["git", "ls-files", "*.cpp", "*.h", "*.md", "*.py", "*.mlir", "*.sh"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    source = [line for name in names
              for line in (ROOT / name).read_text().splitlines() if line.strip()]
    lines = [prose(draw) for _ in range(COUNT * 3 // 10)]
    while len(lines) < COUNT * 6 // 10:
        at = next(draw) % len(source)
        # Most are one line; some are a few.
        lines.append("\n".join(source[at:at + 1 + (next(draw) % 8 == 0) * 3]))
    while len(lines) < COUNT:
        lines.append(synthetic(draw))
    return lines


def train_bpe(lines, vocabulary, pre_tokenizer, normalizer=None, special=(),
              alphabet=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(special),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        if alphabet is None else alphabet, limit_alphabet=400)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def byte_level(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def text_of(tokenizer, change=None):
    data = json.loads(tokenizer.to_str())
    if change:
        change(data)
    return json.dumps(data, ensure_ascii=False)


def make_json(lines):
    """Yields name and content of each tokenizer.json."""
    gpt2 = train_bpe(lines, 2500, pre_tokenizers.ByteLevel(
        add_prefix_space=False), special=SPECIAL[:1])
    yield "gpt2", text_of(gpt2, lambda data: data["model"].update(
        merges=[" ".join(pair) for pair in data["model"]["merges"]]))

    prefix = train_bpe(lines, 1200, pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=True)]), special=SPECIAL[:1])
    yield "digits", text_of(prefix)

    # Words that no merge leads to: only ignore_merges finds them.
    def drop_merges(data):
        data["model"]["ignore_merges"] = True
        data["model"]["merges"] = [
            pair for i, pair in enumerate(data["model"]["merges"]) if i % 7]

    yield "llama3", text_of(train_bpe(lines, 2500, byte_level(LLAMA3),
                                      special=SPECIAL), drop_merges)
    yield "gpt4o", text_of(train_bpe(lines, 1500, byte_level(GPT4O),
                                     special=SPECIAL[:1]))

    qwen = train_bpe(lines, 1500, byte_level(QWEN2),
                     normalizer=normalizers.NFC(), special=SPECIAL[:1])
    qwen.add_tokens([
        AddedToken("<mask>", lstrip=True, normalized=False),
        AddedToken("<|pad|>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("caf\u00e9", normalized=True),
        AddedToken("A\u030a", normalized=True)])
    yield "qwen", text_of(qwen)

    # Like sentencepiece: no pre-tokenizer, bytes for what has no token.
    fallback = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]

    def llama2(data):
        data["pre_tokenizer"] = None
        data["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "},
             "content": "\u2581"}]}
        data["model"].update(byte_fallback=True, fuse_unk=True)
        data["added_tokens"] = data["added_tokens"][:3]
        data["model"]["merges"] = [" ".join(pair)
                                   for pair in data["model"]["merges"]]

    spaced = train_bpe(lines, 2000, pre_tokenizers.Metaspace(),
                       special=fallback, alphabet=[], unk_token="<unk>")
    yield "llama2", text_of(spaced, llama2)

    def metaspace(data):
        data["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581",
                                 "prepend_scheme": "first", "split": True}
        data["model"].update(fuse_unk=True)
        data["added_tokens"] = data["added_tokens"][:3]

    yield "metaspace", text_of(spaced, metaspace)


def make_models(lines):
    """Yields name and content of each tokenizer.model."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "lines.txt")
        path.write_text("\n".join(line.replace("\n", " ").replace("\0", " ")
                                  for line in lines))
        for name, kind, options in [
                ("sp-bpe", "bpe", {"byte_fallback": True,
                                   "normalization_rule_name": "identity",
                                   "remove_extra_whitespaces": False,
                                   "split_digits": True,
                                   "user_defined_symbols": ["<mask>"]}),
                ("sp-unigram", "unigram", {})]:
            sentencepiece.SentencePieceTrainer.train(
                input=str(path), model_prefix=f"{folder}/{name}",
                vocab_size=2000, model_type=kind, character_coverage=0.98,
                num_threads=1, minloglevel=2, **options)
            yield name, pathlib.Path(folder, f"{name}.model").read_bytes()


def encoder(name):
    packed = FOLDER / f"{name}.json.xz"
    if packed.exists():
        tokenizer = Tokenizer.from_str(lzma.decompress(
            packed.read_bytes()).decode())
        return lambda text: tokenizer.encode(
            text, add_special_tokens=False).ids
    model = lzma.decompress((FOLDER / f"{name}.model.xz").read_bytes())
    return sentencepiece.SentencePieceProcessor(model_proto=model).encode


def read_lines():
    text = lzma.decompress((FOLDER / "lines.jsonl.xz").read_bytes())
    return [json.loads(line)["text"] for line in text.decode().splitlines()]


def pack(path, content):
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def main():
    if sys.argv[1:2] == ["--show"]:
        print(encoder(sys.argv[2])(read_lines()[int(sys.argv[3])]))
        return
    FOLDER.mkdir(exist_ok=True)
    if not (FOLDER / "lines.jsonl.xz").exists():
        pack(FOLDER / "lines.jsonl.xz", "".join(
            json.dumps({"text": line}) + "\n" for line in make_lines()).encode())
    lines = read_lines()
    for name, content in make_json(lines):
        pack(FOLDER / f"{name}.json.xz", content.encode())
    for name, content in make_models(lines):
        pack(FOLDER / f"{name}.model.xz", content)
    for path in sorted(FOLDER.glob("*.json.xz")) + sorted(
            FOLDER.glob("*.model.xz")):
        name = path.name.split(".")[0]
        encode = encoder(name)
        sums, count = b"", 0
        for line in lines:
            ids = encode(line)
            count += len(ids)
            sums += struct.pack("<I", zlib.crc32(struct.pack(
                f"<{len(ids)}i", *ids)))
        (FOLDER / f"{name}.crc").write_bytes(sums)
        print(f"{name}: {len(lines)} lines, {count} ids")


if __name__ == "__main__":
    main()
