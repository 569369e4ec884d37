"""Compares the decoding speed of Attend and CTranslate2, run alternately. Started by decode_vs_ctranslate2.sh.

Part 1, unless --skip-random: a base-size Transformer with random weights and a joint vocabulary of 8,000, about 20 source
tokens and exactly 20 output tokens per sentence, `</s>` excluded by both. Attend is `decode_speed`, an example
of attend-infer. CTranslate2 reads the same weights, exported by `infer export`, and gets the same batches in
the same order. Each run is a new process. Loading is not counted, and the best of --repeat passes counts.

Part 2, with --model and --input: a trained model on real text, to the natural end of each sentence. Attend is
`infer translate` with its own batches, timed from the start of the process to its end: loading, tokenizing,
translating, detokenizing. CTranslate2 is timed in Python from loading to the last translation, with
max_batch_size=64; it sorts the sentences by length itself. Not counted for CTranslate2: the start of
Python, its imports (printed), tokenizing and detokenizing. It runs with one worker of T threads and with T
workers of one thread, and the faster counts. Both do the same search: scores are log-probability / tokens, and
a beam of K ends when K translations have ended. Output tokens are counted by tokenizing each program's text,
`</s>` included. Attend also limits a translation by `decode.max_length_ratio`, which a trained model does not
reach.

Before anything is timed, the outputs of both are compared. In f32 they are equal but for near ties. In int8
they are not: the programs round differently. The share of the processor that other programs used meanwhile is
printed if it is above 5 %. CTranslate2 reads its own variables from the environment, such as CT2_USE_MKL=1.
"""

import argparse
import gzip
import json
import os
import platform
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = 8000
LENGTH = 20  # output tokens of a sentence in part 1
MAX_LENGTH = 256  # in part 2, </s> included
BATCH = 64
ROWS = [
    ("greedy, one at a time", 1, 1),
    ("beam 4, one at a time", 1, 4),
    (f"greedy, batches of {BATCH}", BATCH, 1),
    (f"beam 4, batches of {BATCH}", BATCH, 4),
]
TYPES = {"f32": ("none", "float32"), "int8": ("int8", "int8")}  # --quantize, compute_type
CONFIG = """out = "{folder}/run"
seed = 1
[data]
source = "en"
target = "de"
train = "{folder}/text"
batch_tokens = 500
[data.tokenizer]
kind = "bpe"
joint = true
vocab_size = {vocabulary}
[model.transformer]
encoder_layers = 6
decoder_layers = 6
d_model = 512
heads = 8
d_ff = 2048
activation = "relu"
norm = "post"
tie = "all"
[train]
steps = 1
validate_every = 0
translate_sentences = 0
save_every = 0
[train.schedule]
kind = "constant"
learning_rate = 1e-12
"""


# The side of CTranslate2: `worker` runs in a process of its own and prints one line of JSON, as decode_speed does.


def worker(request):
    import ctranslate2

    imported = time.monotonic()
    rows = json.loads(Path(request["rows"]).read_text())
    begin = time.perf_counter()
    translator = ctranslate2.Translator(
        request["model"],
        device="cpu",
        compute_type=request["compute_type"],
        inter_threads=request["inter_threads"],
        intra_threads=request["intra_threads"],
    )
    load = time.perf_counter() - begin
    options = dict(beam_size=request["beam"], length_penalty=1, max_input_length=0)
    if request["length"] == "natural":
        # Attend ends a translation at the limit with </s>, CTranslate2 without.
        options.update(min_decoding_length=0, max_decoding_length=MAX_LENGTH - 1)
        batches = [rows]
        options.update(max_batch_size=request["batch"], batch_type="examples")
    else:
        options.update(min_decoding_length=request["length"], max_decoding_length=request["length"])
        batches = [rows[i : i + request["batch"]] for i in range(0, len(rows), request["batch"])]
    seconds = []
    for _ in range(request["repeat"]):
        begin = time.perf_counter()
        results = [result for batch in batches for result in translator.translate_batch(batch, **options)]
        seconds.append(time.perf_counter() - begin)
    outputs = [result.hypotheses[0] for result in results]
    answer = {
        "tokens": sum(map(len, outputs)),
        "seconds": min(seconds),
        "all_seconds": seconds,
        "load": load,
        "python": imported - request["started"],
        "outputs": outputs,
    }
    print(json.dumps(answer))


def execute(command, **options):
    """Runs a program and returns its output."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise SystemExit(f"{last}\nexited with status {done.returncode}: {' '.join(command)}")
    return done


def ctranslate2(**request):
    request["started"] = time.monotonic()
    return json.loads(execute([sys.executable, __file__, "--worker", json.dumps(request)]).stdout)


# Part 1: random weights.


@dataclass
class Model:
    run: Path
    exports: dict  # by type: the folder for CTranslate2


def export(options, run, folder):
    """Exports a run in both types."""
    infer = options.programs / "infer"
    exports = {}
    for kind in options.types:
        out = folder / f"ctranslate2-{kind}"
        quantize = ["--quantize", "int8"] if kind == "int8" else []
        if not out.exists():
            execute([infer, "export", run, "--to", "ctranslate2", "-o", out, "--device", "cpu", *quantize])
        exports[kind] = out
    return Model(run, exports)


class Words:
    """Text of random words, more than fit in the vocabulary, so that some are split into pieces."""

    def __init__(self):
        self.random = random.Random(1)
        syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
        drawn = ("".join(self.random.choices(syllables, k=self.random.choice((2, 3)))) for _ in range(15000))
        self.words = list(dict.fromkeys(drawn))

    def line(self, shortest=10, longest=20):
        return " ".join(self.random.choices(self.words, k=self.random.randint(shortest, longest)))


def random_model(options, folder):
    """Trains one step at a learning rate of almost 0. This leaves the weights as they were drawn."""
    words, run = Words(), folder / "run"
    for side in ("en", "de"):
        (folder / f"text.{side}").write_text("".join(words.line() + "\n" for _ in range(6000)))
    config = folder / "config.toml"
    config.write_text(CONFIG.format(folder=folder, vocabulary=VOCABULARY))
    if not run.exists():
        execute([options.programs / "train", "run", config, "--device", "cpu"])
    model = export(options, run, folder)
    return model, words


def tokenizer(folder, side):
    """The tokenizer that `infer export` puts beside the weights."""
    import tokenizers

    joint, one = folder / "tokenizer.json", folder / f"tokenizer.{side}.json"
    return tokenizers.Tokenizer.from_file(str(joint if joint.exists() else one))


def sentences(words, pieces, count):
    """Sentences of 18 to 22 tokens with </s>, and their tokens without."""
    lines, rows = [], []
    while len(lines) < count:
        line = words.line(8, 18)
        tokens = pieces.encode(line, add_special_tokens=False).tokens
        if 17 <= len(tokens) <= 21:
            lines.append(line)
            rows.append(tokens)
    return lines, rows


class Fixed:
    """One row of part 1: a batch size and a beam."""

    def __init__(self, options, folder, model, pieces, text, name, batch, beam):
        self.options, self.model, self.pieces = options, model, pieces
        self.name, self.batch, self.beam = name, batch, beam
        lines, rows = text
        self.count = options.single if batch == 1 else options.batched
        self.lines, self.rows = folder / f"lines-{self.count}", folder / f"rows-{self.count}.json"
        self.lines.write_text("".join(line + "\n" for line in lines[: self.count]))
        self.rows.write_text(json.dumps(rows[: self.count]))

    def attend(self, kind, repeat, outputs=False):
        command = [self.options.programs / "examples/decode_speed", self.model.run, "--input", self.lines]
        command += ["--batch", self.batch, "--beam", self.beam, "--length", LENGTH]
        command += ["--threads", self.options.threads, "--quantize", TYPES[kind][0], "--repeat", repeat]
        return json.loads(execute(command + ["--outputs"] * outputs).stdout)

    def ctranslate2(self, kind, repeat):
        return ctranslate2(
            model=str(self.model.exports[kind]),
            compute_type=TYPES[kind][1],
            rows=str(self.rows),
            inter_threads=1,
            intra_threads=self.options.threads,
            batch=self.batch,
            beam=self.beam,
            length=LENGTH,
            repeat=repeat,
        )

    def check(self, kind):
        """The number of equal outputs, and of all."""
        ours, theirs = self.attend(kind, 1, outputs=True), self.ctranslate2(kind, 1)
        end = self.pieces.token_to_id("</s>")
        left = [[token for token in row if token != end] for row in ours["outputs"]]
        right = [[self.pieces.token_to_id(token) for token in row] for row in theirs["outputs"]]
        for name, found in (("attend", left), ("ctranslate2", right)):
            lengths = sorted({len(row) for row in found})
            if len(found) != self.count or lengths != [LENGTH]:
                raise SystemExit(f"{name}: {len(found)} outputs of {lengths} tokens, not {self.count} of {LENGTH}")
        return sum(map(list.__eq__, left, right)), self.count

    def speeds(self, program, kind):
        done = getattr(self, program)(kind, self.options.repeat)
        return {program: self.count * LENGTH / done["seconds"]}


# Part 2: a trained model.


class Natural:
    """One row of part 2: a beam."""

    def __init__(self, options, folder, model, lines, beam):
        self.options, self.model, self.beam = options, model, beam
        self.name = f"beam {beam}, whole program" if beam > 1 else "greedy, whole program"
        self.count = len(lines)
        any_export = next(iter(model.exports.values()))
        source, self.pieces = (tokenizer(any_export, side) for side in ("source", "target"))
        self.lines, self.rows = folder / "lines", folder / "rows.json"
        self.output = folder / "output"
        self.lines.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        rows = [encoded.tokens for encoded in source.encode_batch(lines, add_special_tokens=False)]
        self.rows.write_text(json.dumps(rows))
        self.int8 = folder / "attend-int8"
        if not self.int8.exists():
            execute([options.programs / "infer", "quantize", model.run, "-o", self.int8])
        self.parts = {}  # of CTranslate2's time, by name and type: Python, loading, translating

    def tokens(self, texts):
        return sum(len(encoded.ids) for encoded in self.pieces.encode_batch(texts))

    def attend(self, kind):
        run = self.int8 if kind == "int8" else self.model.run
        command = [self.options.programs / "infer", "translate", run, self.lines, "-o", self.output]
        command += ["--beam", self.beam, "--max-length", MAX_LENGTH, "--max-length-ratio", 1000]
        command += ["--length-measure", "tokens", "--length-penalty", 1, "--early-stopping", "true"]
        command += ["--device", "cpu", "--threads", self.options.threads]
        begin = time.perf_counter()
        execute(command)
        seconds = time.perf_counter() - begin
        return self.output.read_text(encoding="utf-8").removesuffix("\n").split("\n"), seconds

    def ctranslate2(self, kind, workers, threads):
        done = ctranslate2(
            model=str(self.model.exports[kind]),
            compute_type=TYPES[kind][1],
            rows=str(self.rows),
            inter_threads=workers,
            intra_threads=threads,
            batch=BATCH,
            beam=self.beam,
            length="natural",
            repeat=1,
        )
        ids = [[self.pieces.token_to_id(token) for token in row] for row in done["outputs"]]
        return self.pieces.decode_batch(ids), (done["python"], done["load"], done["seconds"])

    def check(self, kind):
        ours, theirs = self.attend(kind)[0], self.ctranslate2(kind, 1, self.options.threads)[0]
        if len(ours) != len(theirs):
            raise SystemExit(f"{len(ours)} and {len(theirs)} translations of {self.count} lines")
        return sum(map(str.__eq__, ours, theirs)), self.count

    def speeds(self, program, kind):
        if program == "attend":
            texts, seconds = self.attend(kind)
            return {"attend": self.tokens(texts) / seconds}
        found = {}
        for workers, threads in dict.fromkeys([(1, self.options.threads), (self.options.threads, 1)]):
            name = f"ctranslate2 {workers}x{threads}"
            texts, parts = self.ctranslate2(kind, workers, threads)
            self.parts.setdefault((name, kind), []).append(parts)
            found[name] = self.tokens(texts) / sum(parts[1:])
        return found


# Both parts.


def compare(options, row):
    """Runs the programs in turns. Returns the speeds of each column: (program, type) to tokens per second."""
    for kind in options.types:
        equal = row.check(kind)
        share = equal[0] / equal[1]
        print(f"  {row.name}, {kind}: {equal[0]} of {equal[1]} outputs are equal ({share:.1%})", flush=True)
        if kind == "f32" and share < 0.99:
            print("  WARNING: in f32, at least 99 % should be equal", flush=True)

    speeds = {}
    columns = [(program, kind) for program in ("attend", "ctranslate2") for kind in options.types]
    # attend f32, ctranslate2 f32, attend int8, …; the next round in reverse
    columns.sort(key=lambda column: options.types.index(column[1]))
    for turn in range(options.rounds):
        for program, kind in columns if turn % 2 == 0 else reversed(columns):
            for name, speed in row.speeds(program, kind).items():
                speeds.setdefault((name, kind), []).append(speed)
                print(f"  {row.name} {turn + 1} {name:15} {kind:5} {speed:7.0f} tokens/s", flush=True)

    best = {}
    for (name, kind), found in speeds.items():
        column = (name.split()[0], kind)
        if column not in best or statistics.median(found) > statistics.median(best[column]):
            best[column] = found
    for (name, kind), parts in getattr(row, "parts", {}).items():
        python, load, seconds = map(statistics.median, zip(*parts))
        print(
            f"  {row.name}, {name} {kind}: loads in {load:.2f} s and translates in {seconds:.2f} s;"
            f" starting Python and importing takes {python:.2f} s, not counted"
        )
    return best


def table(options, title, results):
    """Prints medians with (lowest–highest), and ratios of medians, as a Markdown table."""
    columns = [(program, kind) for program in ("attend", "ctranslate2") for kind in options.types]
    names = {"attend": "Attend", "ctranslate2": "CTranslate2"}
    ratios = {"f32": "f32 ÷ CTranslate2 f32", "int8": "int8 ÷ best CTranslate2"}
    heads = [f"{names[program]} {kind}" for program, kind in columns] + [ratios[kind] for kind in options.types]
    print(f"\n{title}\n\n| output tokens/s | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}")
    for name, best in results:
        medians = {column: statistics.median(found) for column, found in best.items()}
        cells = [
            f"{medians[column]:.0f} ({min(best[column]):.0f}–{max(best[column]):.0f})" if column in best else "–"
            for column in columns
        ]
        for kind in options.types:
            rivals = ["f32"] if kind == "f32" else options.types
            rival = max(medians[("ctranslate2", other)] for other in rivals)
            cells.append(f"{medians[('attend', kind)] / rival:.2f}" if ("attend", kind) in best else "–")
        print(f"| {name} | {' | '.join(cells)} |")
    print(flush=True)


def machine(options, model):
    """Prints the processor, the versions, and which kernels CTranslate2 chose."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    fields = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    flags = fields.get("flags", "").split()
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
    sets = ", ".join(f"{name} {'yes' if name in flags else 'no'}" for name in wanted)
    print(f"{fields.get('model name', platform.machine())}, {os.cpu_count()} cores; {sets}")

    version = execute([options.programs / "infer", "--version"]).stdout.strip()
    probe = "import ctranslate2, sys; print(ctranslate2.__version__); ctranslate2.Translator(sys.argv[1])"
    environment = dict(os.environ, CT2_VERBOSE="1")
    said = execute([sys.executable, "-c", probe, next(iter(model.exports.values()))], env=environment)
    chosen = re.findall(r"(Selected ISA|SGEMM backend|GEMM_S8 backend): (\w+)", said.stderr)
    chosen = ", ".join(f"{name} {value}" for name, value in chosen)
    print(f"Attend: {version}; CTranslate2 {said.stdout.strip()}: {chosen}; Python {platform.python_version()}")
    print(f"threads: {options.threads}, rounds: {options.rounds}, best of {options.repeat} passes per run")


class Others:
    """How much of the processor other programs use: what all use, less this script and what it started."""

    def __init__(self):
        self.before = self.spent()

    def spent(self):
        """Seconds of the processor so far: of all programs, of ours; and the time."""
        ours = sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )
        if not Path("/proc/stat").exists():
            return ours, ours, time.monotonic()
        # user, nice, system, idle, waiting for the disk, interrupts (2), stolen by other machines
        fields = [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]
        busy = sum(fields) - fields[3] - fields[4]
        return busy / os.sysconf("SC_CLK_TCK"), ours, time.monotonic()

    def warn(self):
        every, ours, seconds = (now - before for now, before in zip(self.spent(), self.before))
        share = (every - ours) / (seconds * os.cpu_count())
        if share > 0.05:
            print(f"WARNING: other programs used {share:.0%} of the processor, so these figures cannot be trusted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more sentences in part 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=2, help="passes of each run in part 1; the best counts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--model", type=Path, help="trained run for part 2")
    parser.add_argument("--input", type=Path, help="text for part 2: its first 1,000 lines; UTF-8, or gzip")
    parser.add_argument("--sentences", type=int, default=1000, help="how many lines of --input")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4], help="of part 2")
    parser.add_argument("--skip-random", action="store_true", help="part 2 only")
    parser.add_argument("--folder", type=Path, help="keep the models here; those found here are used again")
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", help="folder of train and infer")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(json.loads(options.worker))
    if (options.model is None) != (options.input is None):
        parser.error("--model and --input belong together")
    if options.skip_random and options.model is None:
        parser.error("--skip-random leaves nothing to do without --model")
    options.programs = options.programs.resolve()
    options.single, options.batched = (64, 512) if options.full else (8, 128)

    if options.threads > os.cpu_count():
        parser.error(f"{options.threads} threads on {os.cpu_count()} cores")
    others = Others()
    time.sleep(2)
    others.warn()
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        shown = False
        if not options.skip_random:
            model, words = random_model(options, folder)
            pieces = tokenizer(next(iter(model.exports.values())), "source")
            if pieces.get_vocab_size() != VOCABULARY:
                raise SystemExit(f"a vocabulary of {pieces.get_vocab_size()}, not {VOCABULARY}")
            machine(options, model)
            text = sentences(words, pieces, max(options.single, options.batched))
            mean = sum(map(len, text[1])) / len(text[1]) + 1
            print(f"part 1: base-size random weights, vocabulary {VOCABULARY}, mean source {mean:.1f} tokens")
            results, others = [], Others()
            for row in (Fixed(options, folder, model, pieces, text, *row) for row in ROWS):
                results.append((row.name, compare(options, row)))
            table(options, f"Random weights, {LENGTH} tokens per sentence:", results)
            others.warn()
            shown = True
        if options.model:
            part = folder / "trained"
            part.mkdir(exist_ok=True)
            trained = export(options, options.model.resolve(), part)
            if not shown:
                machine(options, trained)
            opened = gzip.open if options.input.suffix == ".gz" else open
            with opened(options.input, "rt", encoding="utf-8", newline="\n") as lines:
                lines = [line.rstrip("\r\n") for line, _ in zip(lines, range(options.sentences))]
            lines = [line for line in lines if line.strip()]  # Attend does not translate empty lines
            print(f"part 2: {options.model.name}, {len(lines)} sentences of {options.input.name}")
            others = Others()
            rows = [Natural(options, part, trained, lines, beam) for beam in options.beam]
            results = [(row.name, compare(options, row)) for row in rows]
            table(options, "Trained model, whole program:", results)
            others.warn()


if __name__ == "__main__":
    main()
