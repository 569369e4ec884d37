"""Measures how the cost of a training step scales with the batch size and with the sentence length.

    cargo build --release -p attend-train --example step
    python3 scripts/bench/scaling.py [--shape small] [--rounds 5] [--quick]

Prints microseconds per target token, the same relative to the first size, and peak memory. Each size
runs in its own process; each round runs every size once.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

STEP = Path(__file__).resolve().parents[2] / "target/release/examples/step"
VOCABULARY = 8001


class Size:
    def __init__(self, folder, shape, sentences, length):
        self.tokens, self.length, self.milliseconds = sentences * length, length, []
        rng = random.Random(1)
        words = lambda: [rng.randrange(1, VOCABULARY - 1) for _ in range(length - 1)] + [0]
        batch = folder / f"{sentences}x{length}.jsonl"
        pairs = {side: [words() for _ in range(sentences)] for side in ("source", "target")}
        batch.write_text(json.dumps(pairs) + "\n")
        command = [STEP, "run", "--shape", shape, "--vocabulary", VOCABULARY, "--batches", batch]
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process.stdout.readline()

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        report = json.loads(self.process.stdout.readline())
        self.peak = report["peak"]
        return report["milliseconds"]

    def per_token(self):
        return 1e3 * statistics.median(self.milliseconds) / self.tokens


def table(title, sizes, rounds, first=True):
    for size in sizes:
        size.run(2)  # warm-up, not measured
    for _ in range(rounds):
        for size in sizes:
            size.milliseconds += size.run(max(1, 4000 // size.tokens))
    print(f"\n{title}\n  tokens  length  µs/token  relative  peak MiB")
    for size in sizes:
        relative = size.per_token() / sizes[0].per_token()
        print(
            f"  {size.tokens:6}  {size.length:6}  {size.per_token():8.1f}  {relative:8.2f}"
            f"  {size.peak / 2**20:8.0f}"
        )
        size.process.stdin.close()
        size.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two small sizes only, to test this script")
    options = parser.parse_args()
    batches = [20, 40] if options.quick else [20, 40, 80, 160, 320]
    lengths = [25, 64] if options.quick else [25, 128, 512, 2048]
    tokens = 1000 if options.quick else 4096
    rounds = 1 if options.quick else options.rounds
    with tempfile.TemporaryDirectory() as folder:
        make = lambda *size: Size(Path(folder), options.shape, *size)
        table(f"{options.shape}, by batch size", [make(n, 25) for n in batches], rounds)
        by_length = [make(max(1, tokens // length), length) for length in lengths]
        table(f"{options.shape}, by sentence length", by_length, rounds)


if __name__ == "__main__":
    main()
