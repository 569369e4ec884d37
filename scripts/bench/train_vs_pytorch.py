"""Compares the training step of Attend with that of PyTorch, or of another build of Attend, run alternately.
Started by train_vs_pytorch.sh and train_vs_commit.sh.

Both processes stay alive; one waits while the other works. A round is a few steps of one program, then
of the other. The comparison uses the median over all steps. Before that, both run one step from the same
weights without dropout, to check that they compute the same loss and the same gradient norm.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHAPES = {"base": (512, 6, 2048), "small": (256, 3, 1024), "tiny": (128, 4, 256)}
RECURRENT = ("luong", "bahdanau", "fixed")
STEPS = {"base": 2, "small": 6, "tiny": 12, "luong": 6, "bahdanau": 6, "fixed": 6, "caption": 4}  # per round


class Worker:
    def __init__(self, name, command):
        self.name, self.milliseconds, self.peak = name, [], 0
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.parameters = self.answer()["parameters"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} exited with status {self.process.wait()}")
        return json.loads(line)

    def steps(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self.answer()

    def measure(self, count):
        report = self.steps(count)
        self.milliseconds += report["milliseconds"]
        self.peak = report["peak"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def equal_batches(path, vocabulary, sentences=80, length=25):
    """Random tokens; all sentences have the same length, </s> included."""
    rng = random.Random(1)
    words = lambda: [rng.randrange(1, vocabulary - 1) for _ in range(length - 1)] + [0]
    side = lambda: [words() for _ in range(sentences)]
    path.write_text(json.dumps({"source": side(), "target": side()}) + "\n")


def caption_batches(path, vocabulary, pictures=64, length=14):
    """Random captions of one length, </s> included. The token of a source says what its picture is made of."""
    rng = random.Random(1)
    words = lambda: [rng.randrange(1, vocabulary - 1) for _ in range(length - 1)] + [0]
    batch = {"source": [[n + 1] for n in range(pictures)], "target": [words() for _ in range(pictures)]}
    path.write_text(json.dumps(batch) + "\n")


def corpus_batches(path, options, step):
    config = path.with_suffix(".toml")
    config.write_text(
        f"""out = "{path.parent}/none"
[data]
source = "{options.source}"
target = "{options.target}"
train = "{options.corpus}"
batch_tokens = 2000
[data.tokenizer]
kind = "bpe"
vocab_size = 8001
joint = true
"""
    )
    with path.open("w") as out:
        subprocess.run([step, "batches", config, "24"], stdout=out, check=True)


def weights_met(shape):
    """Matrix weights applied to each source token and to each target token, without the output matrix."""
    if shape in SHAPES:
        d, layers, d_ff = SHAPES[shape]
        # The keys and values of cross-attention are computed from the source.
        source = layers * (4 * d * d + 2 * d * d_ff) + layers * 2 * d * d
        return d, source, layers * (6 * d * d + 2 * d * d_ff)
    square = 256 * 256
    if shape == "caption":
        # Cells times weights of every convolution, and the projection and the keys of 64 regions. The first
        # convolution has no gradient of its input.
        blocks = 64**2 * 27 * 32 * 2 / 3 + 32**2 * 288 * 64 + 16**2 * (576 + 1152) * 128
        return 256, blocks + 64 * (square / 2 + square), 4 * 3 * square + square + 3 * square
    # Gates and keys of the source; gates with the fed input, queries and the combination of state and context.
    return 256, *{
        "luong": (4 * 1.5 * square + square, 4 * 3 * square + 2 * square),
        "bahdanau": (3 * 1.5 * square + square, 3 * 3 * square + square + 3 * square),
        "fixed": (2 * 4 * 2 * square, 2 * 4 * 2 * square),
    }[shape]


def flops(shape, vocabulary, batches):
    """FLOPs of the matrix products with weights: six per weight and token."""
    d, of_source, of_target = weights_met(shape)
    pairs = [json.loads(line) for line in batches.open()]
    source = sum(len(row) for pair in pairs for row in pair["source"]) / len(pairs)
    target = sum(len(row) for pair in pairs for row in pair["target"]) / len(pairs)
    return 6 * (source * of_source + target * (of_target + vocabulary * d)), target


def padding(batches):
    """Ratio of padded to real target tokens."""
    pairs = [json.loads(line)["target"] for line in batches.open()]
    padded = sum(len(rows) * max(map(len, rows)) for rows in pairs)
    return padded / sum(len(row) for rows in pairs for row in rows)


def check_same(commands, weights):
    ours, theirs = (Worker(name, command) for name, command in commands)
    a, b = ours.steps(1), theirs.steps(1)
    for worker in (ours, theirs):
        worker.end()
    weights.unlink()
    for what in ("loss", "norm"):
        x, y = a[what][0], b[what][0]
        if abs(x - y) > 1e-4 * abs(y):
            raise SystemExit(f"the {what} differs: {x} and {y}")
    return a["loss"][0], b["loss"][0], ours.parameters


def ceiling(step):
    out = subprocess.run([step, "ceiling"], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(out.stdout)["gflops"]


def compare(name, shape, vocabulary, batches, options, folder, step):
    ours = [step, "run", "--shape", shape, "--vocabulary", vocabulary, "--batches", batches]
    weights = folder / "weights.safetensors"
    no_dropout = ["--dropout", 0, "--weights", weights]
    if options.base:
        other, theirs = "base", [options.base, *ours[1:]]
        their_same = [*theirs, *no_dropout]
    else:
        other, theirs = "pytorch", [sys.executable, HERE / "pytorch_step.py", shape, vocabulary, batches]
        their_same = [*theirs, weights]
    same = [("attend", [*ours, *no_dropout]), (other, their_same)]
    loss, their_loss, parameters = check_same(same, weights)

    workers = [Worker("attend", ours), Worker(other, theirs)]
    steps = 1 if options.quick else STEPS[shape]
    for worker in workers:
        worker.steps(1 if options.quick else 3)  # warm-up, not measured
    ceilings = []
    for _ in range(1 if options.quick else options.rounds):
        ceilings.append(ceiling(step))
        for worker in workers:
            worker.measure(steps)
    for worker in workers:
        worker.end()
    best = max(ceilings)
    work, tokens = flops(shape, vocabulary, batches)
    medians = [statistics.median(worker.milliseconds) for worker in workers]
    print(f"\n{name}: {parameters:,} parameters, loss {loss:.5f} and {their_loss:.5f}")
    for worker, median in zip(workers, medians):
        rate = work / median / 1e6
        print(
            f"  {worker.name:8} {median:8.1f} ms/step (best {min(worker.milliseconds):8.1f})"
            f"  {1e3 * tokens / median:8.0f} tokens/s  {rate:5.0f} GFLOPS ({rate / best:4.0%})"
            f"  {worker.peak / 2**20:6.0f} MiB"
        )
    print(
        f"  ratio of medians {medians[1] / medians[0]:.2f}; ceiling {best:.0f} GFLOPS"
        f" (median {statistics.median(ceilings):.0f})",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one step of each only, to test this script")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--only", help="one case: base, luong, base-32k, ragged-base, …; or all transformer or recurrent cases"
    )
    parser.add_argument("--corpus", help="corpus for the ragged batches, without .en and .de")
    parser.add_argument("--base", help="the step program of another build, to compare with instead of PyTorch")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    options = parser.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    step = ROOT / target / "release/examples/step"
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        names = ("equal", "large", "captions", "ragged")
        equal, large, captions, ragged = (folder / f"{name}.jsonl" for name in names)
        equal_batches(equal, 8001)
        equal_batches(large, 32001)
        caption_batches(captions, 201)
        cases = [(shape, shape, 8001, equal) for shape in ("tiny", "small", "base")]
        cases.append(("base-32k", "base", 32001, large))
        cases += [(shape, shape, 8001, equal) for shape in RECURRENT]
        cases.append(("caption", "caption", 201, captions))
        if options.corpus:
            corpus_batches(ragged, options, step)
            shapes = ("tiny", "small", "base", "luong", "bahdanau")
            cases += [(f"ragged-{shape}", shape, 8001, ragged) for shape in shapes]
            print(f"ragged: {padding(ragged):.3f} padded target tokens per real one")
        for case in cases:
            kind = "recurrent" if case[1] in RECURRENT else "caption" if case[1] == "caption" else "transformer"
            if options.only in (None, case[0], kind):
                compare(*case, options, folder, step)


if __name__ == "__main__":
    main()
