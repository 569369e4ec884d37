"""See sentencepiece.sh, which runs this."""

import argparse
import glob
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece

ROOT = Path(__file__).resolve().parents[2]
PIECES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/pieces"

USER = ["[user]", "<sep>", "▁x▁"]
CASES = {
    "unigram, nmt_nfkc": dict(model_type="unigram"),
    "unigram, identity": dict(model_type="unigram", normalization_rule_name="identity", user_defined_symbols=USER),
    "unigram, nfkc_cf, bytes": dict(
        model_type="unigram", normalization_rule_name="nfkc_cf", byte_fallback=True, split_by_whitespace=False),
    "unigram, spaces kept": dict(
        model_type="unigram", remove_extra_whitespaces=False, add_dummy_prefix=False, user_defined_symbols=USER),
    "bpe, nmt_nfkc": dict(model_type="bpe"),
    "bpe, identity, bytes": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True),
    "bpe, user-defined, spaces kept": dict(
        model_type="bpe", user_defined_symbols=USER, remove_extra_whitespaces=False),
    "bpe, unused pieces": dict(model_type="bpe", unused=True),
    "unigram, unused pieces": dict(model_type="unigram", unused=True),
    "char, nfkc": dict(model_type="char", normalization_rule_name="nfkc"),
}

FIXED = [
    "", " ", "   ", "\t", "▁", "▁▁ ▁", "</s>", "<s>", "<unk>", "<pad>", "<0x41>", "[user]", "<sep>x", "\0", "a\0b",
    "e\u0301", "\u0301", "ﬁ ﬀ ½ ① Å ™ ㎒ ﷺ", "ｶﾞ", "\u1112\u1161\u11ab", "\u200b\ufeff\u00ad", "\u2028\u0085\r\n", "\ufffd",
    "\U0010ffff\ue000", "👩‍👩‍👧‍👦🇩🇪👍🏽", "İ ẞ ß ΑΣ", "x▁x▁x", " [user] ", "…" * 30, "a" * 300, " a" * 100, "龍" * 100,
]
RANGES = [
    (0x20, 0x7e), (0x00, 0x1f), (0x80, 0xff), (0x100, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff),
    (0x590, 0x6ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff), (0x1e00, 0x1fff), (0x2000, 0x206f),
    (0x2070, 0x218f), (0x2460, 0x24ff), (0x2580, 0x259f), (0x3000, 0x30ff), (0x3200, 0x33ff), (0x4e00, 0x9fff),
    (0xac00, 0xd7a3), (0xf900, 0xfaff), (0xfb00, 0xfdff), (0xfe00, 0xffef), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff),
]


def strings(corpus, count, rng):
    """Corpus lines, damaged lines, and random characters of many scripts."""

    def noise(length):
        low, high = rng.choice(RANGES)
        return "".join(chr(rng.randint(low, high)) for _ in range(length))

    yield from FIXED
    for number in range(count - len(FIXED)):
        line = rng.choice(corpus)
        kind = number % 8
        if kind == 0:
            yield line
        elif kind == 1:
            characters = list(line)
            rng.shuffle(characters)
            yield "".join(characters)
        elif kind == 2:
            yield noise(rng.randint(1, 60))
        elif kind == 3:
            yield " ".join(noise(rng.randint(1, 8)) for _ in range(rng.randint(1, 12)))
        elif kind == 4:
            yield rng.choice(line) * rng.randint(1, 80)
        elif kind == 5:
            yield line.replace(" ", rng.choice(["  ", "\t", "\u3000", "\u00a0", "▁", " ▁", ""]))
        elif kind == 6:
            place = rng.randint(0, len(line))
            yield line[:place] + rng.choice(FIXED + USER) + noise(3) + line[place:]
        else:
            yield line.upper() if rng.random() < 0.5 else line.title() + line[::-1]


def train(corpus, options):
    options = dict(options)
    unused = options.pop("unused", False)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus[:20000]), model_writer=model, vocab_size=1500, hard_vocab_limit=False,
        num_threads=2, minloglevel=2, **options)
    return mark_unused(model.getvalue()) if unused else model.getvalue()


def mark_unused(model):
    """Every third piece becomes unused. A piece is a field of the file: the key 0x0a, a length, and fields of
    its own, of which the type is the last one. Normal pieces have no type."""
    out, place = bytearray(), 0
    number = 0
    while place < len(model) and model[place] == 0x0A:
        length = model[place + 1]
        assert length < 0x7E
        body = model[place + 2 : place + 2 + length]
        is_normal = body[1] + 2 + 5 == length
        if is_normal and number % 3 == 0:
            body += b"\x18\x05"
        out += bytes([0x0A, len(body)]) + body
        place += 2 + length
        number += 1
    return bytes(out) + model[place:]


def score(processor, pieces):
    """The sum of the scores of a unigram segmentation; unknown pieces count the same in both."""
    ids = [processor.piece_to_id(piece) for piece in pieces]
    return sum(processor.get_score(i) for i in ids if not processor.is_unknown(i))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", default="data/quickstart/train")
    parser.add_argument("--strings", type=int, default=2000)
    arguments = parser.parse_args()
    corpus = []
    for path in sorted(glob.glob(f"{arguments.corpus}.*")):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as lines:
            corpus.extend(line.rstrip("\n") for line in lines)
    corpus = [line for line in corpus if line]
    rng = random.Random(1)
    rng.shuffle(corpus)
    texts = list(strings(corpus, arguments.strings, rng))
    given = "".join(json.dumps(text) + "\n" for text in texts)
    failed = False
    print(f"{'model':32} {'strings':>8} {'equal':>8} {'ties':>6} {'different':>10} {'decoded otherwise':>18}")
    for name, options in CASES.items():
        model = train(corpus, options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        with tempfile.NamedTemporaryFile(suffix=".model") as file:
            file.write(model)
            file.flush()
            run = subprocess.run([PIECES, file.name], input=given.encode(), capture_output=True, check=True)
        equal = ties = different = decoded = 0
        for text, line in zip(texts, run.stdout.decode().split("\n")):
            ours, theirs = json.loads(line), processor.encode(text, out_type=str)
            if ours["pieces"] == theirs:
                equal += 1
            elif name.startswith("unigram") and abs(score(processor, ours["pieces"]) - score(processor, theirs)) < 1e-4:
                ties += 1
            else:
                different += 1
                if different <= 3:
                    print(f"{text!r}:\n  ours   {ours['pieces']}\n  theirs {theirs}", file=sys.stderr)
            # A tag at the beginning is a token of its own here, and unused pieces are tokens of the vocabulary.
            if not text.startswith(">>") and "unused" not in options:
                expected = processor.decode(processor.encode(text)).replace(" ⁇ ", "<unk>")
                decoded += ours["decoded"] != expected
        print(f"{name:32} {len(texts):8} {equal:8} {ties:6} {different:10} {decoded:18}")
        failed |= different + decoded > 0
    sys.exit(failed)


main()
