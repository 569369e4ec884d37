"""Writes crates/infer/tests/golden/metrics.json and metrics_paired.json: sacreBLEU's scores of many small corpora,
and its confidence intervals and p-values for systems that translate the same sentences.

    python3 -m venv /tmp/sacrebleu
    /tmp/sacrebleu/bin/pip install sacrebleu==2.6.0 'numpy>=2'
    /tmp/sacrebleu/bin/python scripts/golden/sacrebleu.py

All sentences are written here or generated with a fixed seed.
"""

import json
import os
import random
import statistics
import string
import subprocess
import sys
import tempfile
from pathlib import Path

# This file has the same name as the library, so its folder must not be on the path.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy  # noqa: E402
import sacrebleu  # noqa: E402
from sacrebleu.metrics import BLEU, CHRF, TER  # noqa: E402
from sacrebleu.significance import PairedTest  # noqa: E402
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh  # noqa: E402

VERSION = "2.6.0"
OUT = Path(__file__).parents[2] / "crates/infer/tests/golden"
TOKENIZERS = ["13a", "none", "char", "intl", "zh"]

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
    golden = {
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
        "chrf_words": CHRF(word_order=2).corpus_score(hypotheses, [references]).score,
    }
    if len(references[0]) < 2000:  # long lines take minutes
        golden["ter"] = TER().corpus_score(hypotheses, [references]).score
    return golden


def tokens(corpora):
    """Each distinct line below 200 characters, with the words of every tokenizer."""
    tokenizers = [BLEU(tokenize=name)._preprocess_segment for name in TOKENIZERS]
    lines = {line for _, *sides in corpora for side in sides for line in side if len(line) < 200}
    lines |= {"“Zitat” – 50 % (½), 3×4=12; Nr.5, a.b.c 1.5. 5.", "我5.5元，对吗？OK… ①→②", "a ", " .a. 1,5"}
    return [[line, [" ".join(tokenize(line).split()) for tokenize in tokenizers]] for line in sorted(lines)]


def chinese():
    """First and last character of the ranges that the tokenizer zh takes for Chinese."""
    ranges = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or not TokenizerZh._is_chinese_char(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def draws():
    """What the paired tests draw from NumPy."""
    seeds = [12345, 0, 1, 7, 2**32 - 1, 2**32, 2**64 - 1]
    bounds = [1, 2, 3, 10, 1000, 2**31 + 1, 2**32 - 1]
    return [
        {
            "seed": seed,
            "n": n,
            "choice": numpy.random.default_rng(seed).choice(n, size=(3, 7)).flatten().tolist(),
            "bits": "".join(str(int(b)) for b in numpy.random.default_rng(seed).integers(2, size=(2, 40), dtype=bool).flatten()),
        }
        for seed in seeds
        for n in bounds
    ]


def means():
    """Means of values that are exact in 32 bits, by NumPy in 32 and 64 bits and with one rounding."""
    out = []
    for count in [1, 5, 8, 13, 100, 128, 129, 200, 1000, 1001, 3333]:
        i = numpy.arange(count)
        values = ((i * 7919) % 10007).astype("float32") / numpy.float32(64) + i.astype("float32") / numpy.float32(1024)
        out.append({
            "values": count,
            "single": float(values.mean()),
            "double": float(values.astype("float64").mean()),
            "exact": statistics.mean(values.tolist()),
        })
    return out


def metric(options):
    """A metric, from its name and its options."""
    make = {"bleu": BLEU, "chrf": CHRF, "chrf++": CHRF, "ter": TER}[options["metric"]]
    settings = {}
    if options["metric"] == "chrf++":
        settings["word_order"] = 2
    if options["metric"] == "bleu":
        settings |= {"tokenize": options["tokenize"], "force": True}
    if options["metric"] != "ter":
        settings["lowercase"] = options["lowercase"]
    return make(**settings)


def variants(hypotheses, references):
    """Scores of a corpus under all options, with confidence intervals for some of them."""
    out = []
    for lowercase in (False, True):
        names = [("bleu", tokenize) for tokenize in TOKENIZERS] + [("chrf", "13a"), ("chrf++", "13a"), ("ter", "13a")]
        for name, tokenize in names:
            options = {"metric": name, "tokenize": tokenize, "lowercase": lowercase}
            bootstrap = 0 if tokenize == "char" else 200
            computed = metric(options)
            result = computed.corpus_score(hypotheses, references, n_bootstrap=max(bootstrap, 1))
            signature = str(computed.get_signature())
            out.append(options | {
                "samples": bootstrap,
                "score": float(result.score),
                "mean": float(result._mean),
                "half_width": float(result._ci),
                "text": result.format(2, False, signature),
                "json": result.format(2, False, signature, True),
            })
    return out


WORDS = {
    "en": [
        "The A My Your Every Some".split(),
        "old small Red quiet BUSY young clever tall".split(),
        "dog teacher River house engineer cat ship garden train".split(),
        "sees follows likes paints crosses remembers finds".split(),
        "the a her our this".split(),
        "green long bright second broken".split(),
        "bridge letter (map) market, window door! picture".split(),
        "today. again. at 10.30. by the sea. , he said. in 2016! near St. John's.".split(". "),
    ],
    "de": [
        "Der Die Ein Jede Manche".split(),
        "alte kleine rote Stille junge große".split(),
        "Hund Lehrerin Fluss Häuser Ingenieur Straße Zug".split(),
        "sieht verfolgt mag malt überquert findet".split(),
        "den die eine unsere".split(),
        "grüne lange helle zweite kaputte".split(),
        "Brücke „Karte“ Markt, Fenster Tür! Bild-Rahmen".split(),
        ["heute.", "noch einmal.", "um 10,30 Uhr.", "am Meer ...", "– sagt er."],
    ],
    "zh": [
        ["我", "你", "他们", "老师", "那只狗", "Anna "],
        ["昨天", "经常", "今天", "不", "已经"],
        ["看见", "喜欢", "画了", "找到", "忘记"],
        ["一座", "那个", "3个", "新的", "很长的"],
        ["桥", "信", "市场", "窗户", "2024年的地图"],
        ["。", "！", "，对吗？", "……", "."],
    ],
    "ru": [
        "Старый Маленький Каждый Тихий".split(),
        "учитель пёс инженер кот поезд".split(),
        "видит любит рисует находит".split(),
        "новый длинный зелёный второй".split(),
        "мост, город «рынок» дом".split(),
        ["сегодня.", "опять!", "у моря…", "в 10:30."],
    ],
}


def sentence(rng, language):
    words = [rng.choice(choices) for choices in WORDS[language] if rng.random() < 0.95]
    if rng.random() < 0.3:  # two clauses
        words += [rng.choice(choices) for choices in WORDS[language][1:]]
    return words


def perturbed(rng, language, words, rate):
    """Words of another translation: some are replaced, dropped, repeated, moved or written in capitals."""
    out = []
    for word in words:
        draw = rng.random() / max(rate, 1e-9)
        if draw < 0.4:
            out.append(rng.choice(rng.choice(WORDS[language])))
        elif draw < 0.6:
            continue
        elif draw < 0.7:
            out += [word, word]
        elif draw < 0.85:
            out.append(word.swapcase())
        else:
            out.append(word)
    if len(out) > 4 and rng.random() < 2 * rate:  # move a part
        start = rng.randrange(len(out) - 2)
        part = [out.pop(start) for _ in range(2)]
        at = rng.randrange(len(out) + 1)
        out[at:at] = part
    return out


def test_set(seed, language, lines, references, rates):
    """References and systems. A rate is how much a system differs from the first reference."""
    rng = random.Random(seed)
    join = ("" if language == "zh" else " ").join
    truth = [sentence(rng, language) for _ in range(lines)]
    others = [[perturbed(rng, language, words, 0.3) for words in truth] for _ in range(references - 1)]
    systems = [[join(perturbed(rng, language, words, rate)) for words in truth] for rate in rates]
    return [[join(words) for words in side] for side in [truth, *others]], systems


def exact_ter_p(references, baseline, system, trials, seed):
    """The p-value of approximate randomization for TER without rounding. The mean length of three references is not
    exact in binary, and the order in which NumPy's BLAS adds such lengths decides which of equal differences count."""
    edits = [[int(row[0]) for row in TER()._extract_corpus_statistics(s, references)] for s in (baseline, system)]
    differences = numpy.array(edits[0]) - numpy.array(edits[1])
    first = numpy.random.default_rng(seed).integers(2, size=(trials, len(system)), dtype=bool)
    mixed = first @ differences - ~first @ differences  # the length is the same for all
    return (int((abs(mixed) > abs(differences.sum())).sum()) + 1) / (trials + 1)


def paired(name, references, systems, tokenize="13a", lowercase=False, seed=12345, samples=(1000, 10000)):
    """The results of both tests: the first system is the baseline."""
    out = {"name": name, "references": references, "systems": systems, "tokenize": tokenize, "lowercase": lowercase}
    out |= {"seed": seed, "samples": samples}
    os.environ["SACREBLEU_SEED"] = str(seed)
    for test, count in zip(("bs", "ar"), samples):
        options = {"tokenize": tokenize, "lowercase": lowercase}
        metrics = {name: metric(options | {"metric": name}) for name in ("bleu", "chrf", "chrf++", "ter")}
        named = [(str(i), system) for i, system in enumerate(systems)]
        signatures, results = PairedTest(named, metrics, references, test, count)()
        number = lambda value: None if value is None else float(value)  # noqa: E731
        out[test] = {
            name: {
                "signature": str(signatures[name]),
                "score": [number(r.score) for r in results[name]],
                "mean": [number(r.mean) for r in results[name]],
                "half_width": [number(r.ci) for r in results[name]],
                "p": [number(r.p_value) for r in results[name]],
            }
            for name in ("BLEU", "chrF2", "chrF2++", "TER")
        }
    if len(references) == 3:
        rest = [exact_ter_p(references, systems[0], system, samples[1], seed) for system in systems[1:]]
        out["ar"]["TER"]["p"] = [None, *rest]
    del os.environ["SACREBLEU_SEED"]
    return out


def paired_sets():
    references, systems = test_set(1, "en", 60, 1, [0.2, 0.2, 0.22, 0.3, 0.05])
    yield paired("English", references, [*systems, systems[0]])
    references, systems = test_set(2, "de", 40, 2, [0.3, 0.28, 0.5])
    yield paired("German with two references", references, systems)
    yield paired("in lower case", references, systems, tokenize="intl", lowercase=True)
    references, systems = test_set(3, "zh", 50, 1, [0.2, 0.25, 0.3])
    yield paired("Chinese", references, systems, tokenize="zh")
    references, systems = test_set(4, "ru", 30, 3, [0.4, 0.35])
    yield paired("Russian with three references", references, systems, tokenize="char")
    references, systems = test_set(5, "en", 25, 1, [0.3, 0.3, 0.9])
    systems[1][3] = systems[2][4] = references[0][5] = systems[0][6] = references[0][6] = ""
    yield paired("empty lines, another seed, few samples", references, systems, seed=7, samples=(130, 77))
    yield paired("one sentence", [["the cat sat on the mat"]], [["a cat sat on the mat"], ["the cat sat there"]])
    yield paired("nothing in common", [["a b c d e", "f g h i"]], [["u v w", "x"], ["a b", "y z"], ["u v w", "x y"]])
    # 300 sentences with few words, so that differences are often equal.
    rng = random.Random(6)
    lines = lambda: ["".join(rng.choices("ab", k=1)) for _ in range(300)]  # noqa: E731
    yield paired("single letters", [lines()], [lines(), lines(), lines()])


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


def write(name, golden, ascii):
    """One corpus per line, so that diffs are readable."""
    parts = []
    for key, value in golden.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, ensure_ascii=ascii) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=ascii)}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def main():
    if sacrebleu.__version__ != VERSION:
        sys.exit(f"found sacreBLEU {sacrebleu.__version__}; install sacrebleu=={VERSION}")
    corpora = CORPORA + list(fuzz(seed=1, corpora=30))
    golden = {
        "sacrebleu": VERSION,
        "cli": cli(),
        "tokens": tokens(corpora),
        "chinese": chinese(),
        "draws": draws(),
        "means": means(),
        "corpora": [score(*corpus) for corpus in corpora],
    }
    write("metrics.json", golden, True)  # ASCII, so that invisible characters are visible

    optional = []
    for name, seed, language, references in (("two", 11, "de", 2), ("three", 12, "en", 3), ("one", 13, "zh", 1)):
        references, [hypotheses] = test_set(seed, language, 20, references, [0.3])
        scores = variants(hypotheses, references)
        optional.append({"name": name, "hypotheses": hypotheses, "references": references, "scores": scores})
    write("metrics_paired.json", {"options": optional, "paired": list(paired_sets())}, False)


if __name__ == "__main__":
    main()
