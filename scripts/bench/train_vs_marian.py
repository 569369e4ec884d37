"""Compares the training speed of Attend and Marian, run alternately. Started by train_vs_marian.sh.

Each program reads the text, builds a vocabulary and trains, as its users would run it. The comparison
uses the target tokens per second in each program's own log. The first few updates are not counted,
because memory and caches are cold. The two are made comparable as follows:

- Model: the same number of parameters (checked), and dropout in the same places. Marian's output bias
  is disabled, because Attend has none. Marian's dropout of whole words is off.
- Tokens: both learn a joint BPE of the same size. By default, SentencePiece inside Marian splits words
  at punctuation and digits, which gives 4 % more tokens on Multi30k. With that disabled, the number of
  tokens is equal within 0.1 %. Target words per second are printed as well: tokens per second times
  words per token, </s> included, over the whole corpus as tokenized by that vocabulary.
- Batches: Attend's have at most 2000 source tokens and at most 2000 target tokens. Marian's
  --mini-batch-words counts source tokens only, with </s> and without padding: the sentence that exceeds
  the number closes the batch. The number is chosen so that the mean number of target tokens per batch
  equals Attend's. Marian sorts by length and pads the sentences of a batch to one length; padding is
  not counted for either program.
- Threads: each of Marian's workers computes a share of the batch. --sync-sgd sums their gradients
  before each update, so that one update uses one batch, as in Attend. Without it, each worker would
  update the shared parameters on its own.

Neither program validates, and saving is not counted. Attend tokenizes the whole text before its first
update; Marian reads ahead in the background, mostly during the updates that are not counted.
"""

import argparse
import gzip
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy
import sentencepiece
import tokenizers

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ROOT / "target/release/train"
SHAPES = {"small": (256, 3, 1024, 4), "base": (512, 6, 2048, 8)}
UPDATES = {"small": (60, 10), "base": (12, 3)}  # (updates per run, of which not counted)
VOCABULARY = 8000
BATCH_TOKENS = 2000
MAX_LENGTH = 256  # </s> included, for both programs
WARMUP = 4000  # steps of learning rate warm-up


@dataclass
class Run:
    """The counted updates of one run."""

    tokens: int  # target tokens
    seconds: float
    updates: int
    losses: tuple  # of the first and the last update

    @property
    def speed(self):
        return self.tokens / self.seconds


@dataclass
class Text:
    """Size of the training corpus, as tokenized by one of the vocabularies."""

    pairs: int
    source: int  # tokens
    target: int
    words: int  # target words


def execute(name, command):
    """Runs a program and returns its output."""
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        last = "\n".join(said.splitlines()[-20:])
        raise SystemExit(f"{last}\n{name} exited with status {done.returncode}")
    return said


def number(pattern, said):
    return int(re.search(pattern, said)[1].replace(",", ""))


def attend(folder, options, shape, updates, seed, tokenizer=None):
    width, layers, inner, heads = SHAPES[shape]
    config, out = folder / "attend.toml", folder / "attend"
    trained = f'kind = "bpe"\njoint = true\nvocab_size = {VOCABULARY}'
    given = f'file = "{tokenizer}"' if tokenizer else trained
    config.write_text(
        f"""out = "{out}"
seed = {seed}
[data]
source = "{options.source}"
target = "{options.target}"
train = "{options.corpus}"
batch_tokens = {BATCH_TOKENS}
max_length = {MAX_LENGTH}
[data.tokenizer]
{given}
[model.transformer]
encoder_layers = {layers}
decoder_layers = {layers}
d_model = {width}
heads = {heads}
d_ff = {inner}
dropout = 0.1
attention_dropout = 0.1
activation_dropout = 0.1
activation = "relu"
norm = "post"
tie = "all"
[train]
steps = {updates}
label_smoothing = 0.1
clip_norm = 1.0
validate_every = 0
translate_sentences = 0
save_every = 0
log_every = 1
[train.schedule]
kind = "noam"
warmup = {WARMUP}
[train.adam]
beta1 = 0.9
beta2 = 0.98
epsilon = 1e-9
"""
    )
    threads = ["--threads", options.threads, "--device", "cpu"]
    said = execute("attend", [TRAIN, "run", config, "--overwrite", *threads])
    return out, said


def marian(folder, options, shape, updates, seed, spm, vocabulary, words):
    width, layers, inner, heads = SHAPES[shape]
    out = folder / "marian"
    shutil.rmtree(out, ignore_errors=True)  # otherwise Marian would resume from it
    out.mkdir()
    # The peak learning rate of Attend's Noam schedule.
    rate = width**-0.5 * WARMUP**-0.5
    command = f"""
        --model {out}/model.npz --overwrite --tempdir {folder} --seed {seed}
        --type transformer --dim-emb {width} --enc-depth {layers} --dec-depth {layers}
        --transformer-dim-ffn {inner} --transformer-heads {heads} --transformer-ffn-activation relu
        --transformer-postprocess dan --transformer-postprocess-emb d
        --tied-embeddings-all --output-omit-bias
        --transformer-dropout 0.1 --transformer-dropout-attention 0.1 --transformer-dropout-ffn 0.1
        --label-smoothing 0.1 --optimizer adam --optimizer-params 0.9 0.98 1e-9 --clip-norm 1
        --learn-rate {rate} --lr-warmup {WARMUP} --lr-decay-inv-sqrt {WARMUP}
        --cpu-threads {options.threads} --sync-sgd
        --mini-batch-words {words} --maxi-batch 1000 --maxi-batch-sort trg --max-length {MAX_LENGTH}
        --dim-vocabs {vocabulary} {vocabulary} --vocabs {spm} {spm}
        --after-batches {updates} --disp-freq 1u --save-freq 1000000u
    """.split()
    # Allow the same pieces as Attend's BPE.
    pieces = """--model_type=bpe --character_coverage=1 --normalization_rule_name=identity
        --split_by_unicode_script=false --split_by_number=false"""
    command += ["--sentencepiece-options", " ".join(pieces.split())]
    command += ["--train-sets", *files(options)]
    said = execute("marian", [sys.executable, "-m", "pymarian", "train", *command])
    return out, said


def files(options):
    """The files of the corpus, found the way Attend does."""
    found = []
    for language in (options.source, options.target):
        plain = Path(f"{options.corpus}.{language}")
        found.append(plain if plain.exists() else Path(f"{plain}.gz"))
    return found


def read(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


def text(sides, lengths):
    pairs = zip(*(lengths(side) for side in sides), (len(line.split()) for line in sides[1]))
    kept = [pair for pair in pairs if min(pair) > 0 and max(pair[:2]) <= MAX_LENGTH]
    return Text(len(kept), *(sum(numbers) for numbers in zip(*kept)))


def attend_run(out, cold):
    steps = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    steps = [step for step in steps if step["event"] == "step"]
    counted = steps[cold:]
    seconds = counted[-1]["seconds"] - steps[cold - 1]["seconds"]
    losses = (steps[0]["loss"], steps[-1]["loss"])
    return Run(sum(step["tokens"] for step in counted), seconds, len(counted), losses)


def marian_run(said, cold):
    # Marian's "words" are target tokens, with </s>. The time is computed from words/s, because the logged
    # time is rounded to 0.01 s.
    line = r"Up\. \d+ : .* : Cost ([\d.]+) \* .* @ ([\d,]+) after .* : ([\d.]+) words/s"
    steps = [
        (float(loss), int(tokens.replace(",", "")), float(speed))
        for loss, tokens, speed in re.findall(line, said)
    ]
    counted = steps[cold:]
    seconds = sum(tokens / speed for _, tokens, speed in counted)
    losses = (steps[0][0], steps[-1][0])
    return Run(sum(tokens for _, tokens, _ in counted), seconds, len(counted), losses)


def parameters(out):
    with numpy.load(out / "model.npz") as arrays:
        return sum(arrays[name].size for name in arrays.files if "special:" not in name)


class Prepared:
    """Both vocabularies, and the batch size for Marian."""

    def __init__(self, folder, options):
        out, said = attend(folder, options, "small", 1, 1)
        self.tokenizer = folder / "tokenizer.json"
        shutil.copy(out / "last/tokenizer.json", self.tokenizer)
        # A small corpus may give fewer entries than requested.
        self.vocabulary = number(r"(\d+) tokens of vocabulary", said)
        self.spm = folder / "joint.spm"
        marian(folder, options, "small", 1, 1, self.spm, self.vocabulary, BATCH_TOKENS)

        sides = [read(path) for path in files(options)]
        ours = tokenizers.Tokenizer.from_file(str(self.tokenizer))
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(self.spm))
        self.texts = {
            "attend": text(sides, lambda side: [len(line.ids) for line in ours.encode_batch(side)]),
            "marian": text(sides, lambda side: [len(line) + 1 for line in theirs.encode(side)]),
        }
        a, m = self.texts["attend"], self.texts["marian"]
        batch = a.target / number(r"(\d+) batches an epoch", said)
        # The sentence that closes a batch exceeds the limit by half a sentence on average.
        self.words = round(batch * m.source / m.target - m.source / m.pairs / 2)

    def show(self):
        print(f"joint vocabulary of {self.vocabulary}, --mini-batch-words {self.words}")
        for name, seen in self.texts.items():
            print(
                f"  {name:8} {seen.pairs} pairs, {seen.source} source and {seen.target} target"
                f" tokens, {seen.target / seen.words:.4f} for each of {seen.words} target words",
                flush=True,
            )


def compare(shape, options, folder, prepared):
    updates, cold = (6, 2) if options.quick else UPDATES[shape]
    runs = {"attend": [], "marian": []}
    sizes = {}
    for turn in range(1 if options.quick else options.rounds):
        seed = turn + 1  # different batches in each round
        # Alternate which program runs first.
        for name in sorted(runs, reverse=turn % 2 == 1):
            if name == "attend":
                out, said = attend(folder, options, shape, updates, seed, prepared.tokenizer)
                sizes[name] = number(r"(\d+) parameters", said)
                runs[name].append(attend_run(out, cold))
            else:
                vocabulary = (prepared.spm, prepared.vocabulary, prepared.words)
                out, said = marian(folder, options, shape, updates, seed, *vocabulary)
                sizes[name] = parameters(out)
                runs[name].append(marian_run(said, cold))
            shutil.rmtree(out)
            run = runs[name][-1]
            if run.updates != updates - cold:
                raise SystemExit(f"{name} logged {run.updates + cold} updates, not {updates}")
            first, last = run.losses
            print(
                f"  {shape} {seed} {name:8} {run.speed:7.0f} tokens/s,"
                f" {run.tokens / run.updates:6.0f} tokens/batch, loss {first:.2f} to {last:.2f}",
                flush=True,
            )
    if sizes["attend"] != sizes["marian"]:
        raise SystemExit(f"the models differ in size: {sizes} parameters")

    print(
        f"{shape}: {sizes['attend']:,} parameters, {updates - cold} of {updates} updates counted,"
        f" rounds: {len(runs['attend'])}, threads: {options.threads}"
    )
    medians, words = {}, {}
    for name, done in runs.items():
        speeds = [run.speed for run in done]
        seen = prepared.texts[name]
        medians[name] = statistics.median(speeds)
        words[name] = medians[name] * seen.words / seen.target
        mean = sum(run.tokens for run in done) / sum(run.updates for run in done)
        print(
            f"  {name:8} {medians[name]:7.0f} target tokens/s"
            f" ({min(speeds):.0f} to {max(speeds):.0f}), {words[name]:7.0f} target words/s,"
            f" {mean:6.0f} target tokens/batch"
        )
    by_words = words["attend"] / words["marian"]
    ratio = medians["attend"] / medians["marian"]
    print(f"  ratio of medians {ratio:.2f} (by words {by_words:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few updates only, to test this script")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(SHAPES))
    parser.add_argument("--corpus", default="data/quickstart/train", help="without .en and .de")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        prepared = Prepared(folder, options)
        prepared.show()
        for shape in SHAPES:
            if shape == (options.only or ("small" if options.quick else shape)):
                compare(shape, options, folder, prepared)


if __name__ == "__main__":
    main()
