"""Golden files of SentencePiece: small models, strings, and how the models segment them.

    python3 -m venv /tmp/golden-venv
    /tmp/golden-venv/bin/pip install sentencepiece==0.2.3
    /tmp/golden-venv/bin/python scripts/golden/sentencepiece.py

Writes crates/data/tests/golden/: for each case `<case>.model` and `<case>.json`, a list of
`[text, pieces, decoded]`, where `decoded` is the text that the ids of the pieces give.
"""

import io
import json
import sys
from pathlib import Path

sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]
import sentencepiece  # noqa: E402  (this file has the same name)

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "crates/data/tests/golden"

ODD = [
    "", " ", "  ", "\t", "a", " a", "a ", "  two  spaces  ", "tab\there", "no\u00a0break\u3000wide",
    "</s>", "<unk>", "<s>", "<pad>", "a</s>b <unk> <pad>", "▁", "▁▁", "a▁b", " ▁ ", "▁the", "<0x41>",
    "the dog", "The dog sees the house.", "Der Hund sieht das Haus.", "Äpfel, Öl und Übermut: größer!",
    "e\u0301", "ﬁne ﬀ ½ ① Å ™ ㎒ ﷺ", "ＦＵＬＬ　ｗｉｄｔｈ", "ｶﾞｷﾞ", "Ⅷ ² ³ ℃", "한국어 \u1112\u1161\u11ab",
    "Привет, мир", "שלום עולם", "مرحبا بالعالم", "敏捷的棕色狐狸", "こんにちは", "ภาษาไทย", "हिन्दी",
    "👍", "👩‍👩‍👧‍👦 and 🇩🇪 and 👍🏽", "\u0000", "nul \u0000 and bell \u0007", "\u0001\u001f", "\u200b\ufeff\u00ad",
    "zero\u200bwidth", "line\u2028and\u0085next", "\r", "a\rb", "\ufffd", "\U0010ffff\ue000",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "....................", "the" * 12, "xyz" * 9, "龍" * 20,
    "1234567890", "3.5 km/h", "don't “quote” — ‘it’…", "A-B_C", "http://a.b/c?d=e&f", "[user] and [user]s",
    "▁[user]", "x[user]y", "<sep>", "<sep><sep> the", "the<sep>dog",
]


def lines():
    for side in ("en", "de"):
        yield from (ROOT / f"data/quickstart/train.{side}").read_text(encoding="utf-8").splitlines()[:3000]


def train(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines(), model_writer=model, num_threads=1, minloglevel=2, **options
    )
    return model.getvalue()


CASES = {
    "unigram": dict(model_type="unigram", vocab_size=500, normalization_rule_name="identity",
                    user_defined_symbols=["[user]"], control_symbols=["<sep>"]),
    "unigram_nmt_nfkc": dict(model_type="unigram", vocab_size=400, eos_id=0, unk_id=1, bos_id=-1),
    "bpe_bytes": dict(model_type="bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False, user_defined_symbols=["[user]", "<sep>"]),
    "char": dict(model_type="char", vocab_size=60, normalization_rule_name="identity"),
}


def main():
    GOLDEN.mkdir(exist_ok=True)
    corpus = list(lines())
    texts = ODD + corpus[::1500]
    for name, options in CASES.items():
        model = train(**options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        rows = []
        for text in texts:
            pieces = processor.encode(text, out_type=str)
            rows.append([text, pieces, processor.decode(processor.encode(text))])
        (GOLDEN / f"{name}.model").write_bytes(model)
        body = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (GOLDEN / f"{name}.json").write_text(f"[\n{body}\n]\n", encoding="utf-8")
        print(name, len(model), len(rows))


main()
