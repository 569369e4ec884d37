"""Writes crates/infer/tests/golden/metrics.json: sacreBLEU's scores of many small corpora.

    python3 -m venv /tmp/sacrebleu
    /tmp/sacrebleu/bin/pip install sacrebleu==2.6.0
    /tmp/sacrebleu/bin/python scripts/golden/sacrebleu.py

All sentences are written here or generated with a fixed seed.
"""

import json
import random
import string
import subprocess
import sys
import tempfile
from pathlib import Path

# This file has the same name as the library, so its folder must not be on the path.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import sacrebleu  # noqa: E402
from sacrebleu.metrics import BLEU, CHRF  # noqa: E402

VERSION = "2.6.0"
OUT = Path(__file__).parents[2] / "crates/infer/tests/golden/metrics.json"

SPACES = "\t \r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
NOT_SPACES = "\x00\x08\u180e\u200b\u200c\u200d\u2060\ufeff"
PIECES = (
    list(".,-'0159aAb") * 3
    + list(string.punctuation)
    + list(SPACES + NOT_SPACES)
    + [" "] * 30
    + ["\n", "-\n", "..,", ",.", "1,000.5", "3-4", "<skipped>"]
    + ["&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "&amp;quot;", "&", ";"]
    + ["the", "cat", "sat", "on", "mat", "Das", "Haus"] * 3
    + ["é", "e\u0301", "ß", "漢", "字", "。", "，", "م", "٣", "５", "²", "😀", "👨\u200d👩", "\U0010ffff"]
)

# (name, hypotheses, references)
CORPORA = [
    ("ordinary",
     ["The cat sat on the mat.", "There is no spoon, said the boy."],
     ["The cat was sitting on the mat.", "There is no spoon, the boy said."]),
    ("ordinary with numbers", ["It cost 1,000.50 euros in 2016."], ["It cost 1,000.50 euros in 2017."]),
    ("German", ["Ein Mann fährt mit dem Rad über die Straße."], ["Ein Mann fährt auf einem Fahrrad über die Straße."]),
    ("identical", ["A dog runs through the snow ."] * 3, ["A dog runs through the snow ."] * 3),
    ("identical, short", ["yes"], ["yes"]),
    ("nothing in common", ["aaa bbb ccc ddd eee"], ["vvv www xxx yyy zzz"]),
    ("one character in common", ["aq"], ["bq"]),
    ("an empty hypothesis", ["", "a b c d e"], ["a b c", "a b c d e"]),
    ("an empty reference", ["a b c", "a b c d e"], ["", "a b c d e"]),
    ("only an empty hypothesis", [""], ["a b c d"]),
    ("only an empty reference", ["a b c d"], [""]),
    ("all empty", ["", ""], ["", ""]),
    ("only whitespace", [" \t\u00a0\x1c", "\u2028"], ["\r", "\x1f "]),
    ("whitespace against words", [" \t "], ["some words here now"]),
    ("single words", ["yes", "no", "maybe"], ["yes", "yes", "maybe"]),
    ("two words", ["a b"], ["a b"]),
    ("three words", ["a b c"], ["a b c"]),
    ("three words among longer", ["a b c", "a b c d e f"], ["a b c", "a b c d e g"]),
    ("no 4-gram matches", ["a b c x d e f y"], ["a b c z d e f w"]),
    ("only 1-grams match", ["a x b y c z d"], ["d c b a"]),
    ("only 2-grams match, so two orders are smoothed", ["a b x c d y e f"], ["a b c d e f"]),
    ("clipping", ["the the the the the the the"], ["the cat is on the mat"]),
    ("brevity", ["The cat sat on"], ["The cat sat on the mat in the house ."]),
    ("too long", ["The cat sat on the mat in the house ."], ["The cat sat on the mat"]),
    ("case is kept", ["THE CAT SAT ON THE MAT"], ["the cat sat on the mat"]),
    ("combining marks", ["cafe\u0301 au lait s'il vous plai\u0302t"], ["café au lait s'il vous plaît"]),
    ("Chinese", ["我喜欢吃苹果。", "今天 天气 很 好 ，对吗"], ["我喜欢吃香蕉。", "今天 天气 真 好 ，对吗"]),
    ("Japanese and Korean", ["猫がマットの上に座った", "고양이가 매트 위에 앉았다 ."], ["猫はマットの上に座った", "고양이는 매트 위에 앉았다 ."]),
    ("Arabic", ["جلس القط على السجادة، ثم نام.", "٣٫١٤ و ١٬٠٠٠"], ["جلست القطة على السجادة، ثم نامت.", "٣٫١٤ و ١٬٠٠١"]),
    ("digits of other scripts", ["٣.٤ ５,６ ²-³ १.२"], ["٣ .٤ ５ ,６ ² -³ १.२"]),
    ("emoji", ["I 😀 you 👨\u200d👩\u200d👧 !", "🇩🇪🇫🇷"], ["I 😀 you 👨\u200d👩\u200d👦 !", "🇫🇷🇩🇪"]),
    ("no-break spaces", ["10\u00a0000 euros\u202f! a b c"], ["10 000 euros ! a b c"]),
    ("line and paragraph separators", ["one\u2028two\u2029three four five"], ["one two three four five"]),
    ("next line", ["one\x85two three\x85 four five"], ["one two three four five"]),
    ("separators that only Python calls whitespace", ["one\x1ctwo\x1dthree\x1efour\x1ffive\x1f"], ["one two three four five"]),
    ("zero width", ["one\u200btwo three\ufeff four\u2060 five six"], ["onetwo three four five six"]),
    ("control characters", ["a\x00b c\x08 d \x7f e f"], ["ab c d e f"]),
    ("tabs and runs of spaces", ["\ta  b\t\tc   d  e "], ["a b c d e"]),
    ("carriage returns", ["a b c d e\r", "a\rb c d\r\r e"], ["a b c d e", "a b c d e"]),
    ("form feeds", ["a\x0bb\x0cc d e"], ["a b c d e"]),
    ("entities", ["&quot;A&quot; &amp; &lt;b&gt; c"], ["\"A\" & <b> c"]),
    ("entities within entities", ["&amp;lt; &amp;quot; &amp;amp; &lt;amp; &amp;amp;gt; x"], ["< &quot; &amp; <amp; &gt; x"]),
    ("unknown entities", ["&apos; &nbsp; &QUOT; &quot &#34; & a"], ["' &nbsp; \" &quot \" & a"]),
    ("skipped", ["a <skipped> b c d e<skipped>", "<<skipped>skipped> f g h"], ["a b c d e", "<skipped> f g h"]),
    ("numbers", ["1,000.50-2 3-4 a-3 -5 5- 1.2.3"], ["1,000.50 - 2 3 - 4 a-3 -5 5 - 1.2.3"]),
    ("points around numbers", [".5 5. ,5 5, 5.a a.5 5,5,5 5..5"], [". 5 5 . , 5 5 , 5 . a a . 5 5,5,5 5 . . 5"]),
    ("runs of points", ["..,", ".,.", "...", "a...b", "1...2", ".,.,.,1,.,"], [". . ,", ". , .", "..", "a ... b", "1 ... 2", ".,.,.,1,.,"]),
    ("hyphens", ["well-known 1-2-3 - -- 9--9 a–b 1—2"], ["well-known 1 -2 -3 - -- 9 - -9 a–b 1—2"]),
    ("apostrophes", ["don't 'quote' it's '90s rock'n'roll"], ["do n't ' quote ' it's '90s rock'n'roll"]),
    ("all punctuation", [string.punctuation, " ".join(string.punctuation)], [" ".join(string.punctuation), string.punctuation]),
    ("punctuation in words", [f"a{c}b 1{c}2 {c}3" for c in string.punctuation], [f"a {c} b 1{c} 2 {c} 3" for c in string.punctuation]),
    ("line feeds", ["a hyphen-\nated word-\n", "two\nlines of text"], ["a hyphenated word-", "two lines of text"]),
    ("tokenized already", ["The cat , the dog ."] * 100, ["The cat, the dog."] * 100),
    ("a very long line", [" ".join(f"w{i * i % 97}" for i in range(2000))], [" ".join(f"w{i * i % 89}" for i in range(1900))]),
    ("one word very often", ["a" * 3000], ["a" * 2000]),
]


def fuzz(seed, corpora):
    """Random corpora: references of random pieces, and hypotheses in which some pieces are changed."""
    rng = random.Random(seed)
    for i in range(corpora):
        change = rng.choice([0.0, 0.1, 0.3, 0.6, 1.0])
        longest = rng.choice([3, 12, 40])
        hypotheses, references = [], []
        for _ in range(rng.randint(1, 6)):
            reference = rng.choices(PIECES, k=rng.randint(0, longest))
            hypothesis = []
            for piece in reference:
                if rng.random() >= change:
                    hypothesis.append(piece)
                else:
                    hypothesis.extend(rng.choices(PIECES, k=rng.randint(0, 2)))
            references.append("".join(reference))
            hypotheses.append("".join(hypothesis))
        yield f"fuzz {i}", hypotheses, references


def score(name, hypotheses, references):
    bleu = BLEU(force=True).corpus_score(hypotheses, [references])
    chrf = CHRF().corpus_score(hypotheses, [references])
    return {
        "name": name,
        "hypotheses": hypotheses,
        "references": references,
        "bleu": bleu.score,
        "bleu_text": str(bleu),
        "precisions": bleu.precisions,
        "bp": bleu.bp,
        "sys_len": bleu.sys_len,
        "ref_len": bleu.ref_len,
        "chrf": chrf.score,
        "chrf_text": str(chrf),
    }


def tokens(corpora):
    """Each distinct line below 200 characters, with its 13a tokenization."""
    tokenize = BLEU()._preprocess_segment
    lines = {line for _, *sides in corpora for side in sides for line in side if len(line) < 200}
    return [[line, tokenize(line)] for line in sorted(lines)]


def cli():
    """The output of the sacrebleu command for BLEU, for chrF and for both."""
    _, hypotheses, references = CORPORA[0]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("references", "hypotheses")]
        for file, lines in zip(files, (references, hypotheses)):
            file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")

        def printed(form, metrics):
            command = [sys.executable, "-m", "sacrebleu", files[0], "-i", files[1]]
            command += ["--width", "2", "--format", form, "--metrics", *metrics]
            run = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", cwd=folder)
            return run.stdout.removesuffix("\n")

        out = {"hypotheses": hypotheses, "references": references}
        for form in ("text", "json"):
            out[form] = [printed(form, metrics) for metrics in (["bleu"], ["chrf"], ["bleu", "chrf"])]
        return out


def main():
    if sacrebleu.__version__ != VERSION:
        sys.exit(f"found sacreBLEU {sacrebleu.__version__}; install sacrebleu=={VERSION}")
    corpora = CORPORA + list(fuzz(seed=1, corpora=30))
    golden = {
        "sacrebleu": VERSION,
        "cli": cli(),
        "tokens": tokens(corpora),
        "corpora": [score(*corpus) for corpus in corpora],
    }
    # ASCII, so that invisible characters are visible; one corpus per line, so that diffs are readable.
    parts = []
    for key, value in golden.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="ascii")


if __name__ == "__main__":
    main()
