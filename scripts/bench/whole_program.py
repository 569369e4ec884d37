"""Measures what `train run` costs beyond the bare training step: reading, batching, logging, saving.

    cargo build --release -p attend-train --bin train --example step
    python3 scripts/bench/whole_program.py [--corpus data/quickstart/train] [--shape tiny] [--turns 6]

The two take turns: `train run` saves a checkpoint, runs a hundred steps and is paused with SIGSTOP; then
the bare step runs on the same batches. Prints the target tokens per second of both, and the ratio of the
total times.
"""

import argparse
import json
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

BIN = Path(__file__).resolve().parents[2] / "target/release"
SHAPES = {"base": (512, 6, 2048, 8), "small": (256, 3, 1024, 4), "tiny": (128, 4, 256, 4)}


def write_config(folder, options):
    d, layers, d_ff, heads = SHAPES[options.shape]
    config = folder / "config.toml"
    config.write_text(
        f"""out = "{folder}/run"
[data]
source = "{options.source}"
target = "{options.target}"
train = "{Path(options.corpus).resolve()}"
batch_tokens = 2000
[data.tokenizer]
kind = "bpe"
vocab_size = 8001
joint = true
[model.transformer]
encoder_layers = {layers}
decoder_layers = {layers}
d_model = {d}
d_ff = {d_ff}
heads = {heads}
[train]
steps = {options.turn * (options.turns + 1)}
clip_norm = 1.0
log_every = {options.turn}
save_every = {options.turn}
validate_every = 0
"""
    )
    return config


class Whole:
    """`train run`, one turn at a time."""

    def __init__(self, config, turn):
        command = [BIN / "train", "run", config, "--overwrite"]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        self.process.send_signal(signal.SIGSTOP)
        self.steps, self.done, self.log = turn, 0, []

    def turn(self):
        start = time.perf_counter()
        self.process.send_signal(signal.SIGCONT)
        self.done += self.steps
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith(f"step {self.done} · epoch"):
                break
        else:
            raise SystemExit("train run failed:\n" + "".join(self.log))
        self.process.send_signal(signal.SIGSTOP)
        return time.perf_counter() - start

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        _, rest = self.process.communicate()
        if self.process.returncode:
            raise SystemExit("train run failed:\n" + "".join(self.log) + rest)


class Bare:
    """The same steps with `examples/step`, which only computes them."""

    def __init__(self, batches, shape, turn):
        vocabulary = 1 + max(
            max(max(row) for side in json.loads(line).values() for row in side)
            for line in open(batches)
        )
        command = [BIN / "examples/step", "run", "--shape", shape, "--batches", batches]
        command += ["--vocabulary", vocabulary + 1]
        self.steps = turn
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process.stdout.readline()  # the number of parameters

    def turn(self):
        self.process.stdin.write(f"{self.steps}\n")
        self.process.stdin.flush()
        return sum(json.loads(self.process.stdout.readline())["milliseconds"]) / 1e3

    def end(self):
        self.process.communicate()
        if self.process.returncode:
            raise SystemExit("the bare step failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="data/quickstart/train")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--shape", default="tiny", choices=SHAPES)
    parser.add_argument("--turn", type=int, default=100, help="steps per turn, with one checkpoint each")
    parser.add_argument("--turns", type=int, default=6)
    options = parser.parse_args()
    if options.turn < 1 or options.turns < 1:
        parser.error("--turn and --turns must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        config, batches = write_config(folder, options), folder / "batches.jsonl"
        with batches.open("w") as out:
            command = [BIN / "examples/step", "batches", config, options.turn * (options.turns + 1)]
            subprocess.run(list(map(str, command)), stdout=out, check=True)
        lines = batches.read_text().splitlines()
        tokens = [sum(map(len, json.loads(line)["target"])) for line in lines]
        programs = {
            "whole": Whole(config, options.turn),
            "bare": Bare(batches, options.shape, options.turn),
        }
        seconds = {name: [] for name in programs}
        try:
            for _ in range(options.turns + 1):
                for name, program in programs.items():
                    seconds[name].append(program.turn())
            for program in programs.values():
                program.end()
        finally:
            for program in programs.values():
                program.process.kill()  # SIGKILL also ends a process that is stopped
        # The first turn includes start-up. A checkpoint is saved after its step is logged, so its time is
        # part of the next turn.
        seconds = {name: turns[1:] for name, turns in seconds.items()}
        for name, turns in seconds.items():
            rate = sum(tokens[options.turn :]) / sum(turns)
            print(f"{name:6} {rate:8.0f} tokens/s; seconds per turn", [round(t, 1) for t in turns])
        ratio = sum(seconds["bare"]) / sum(seconds["whole"])
        ratios = [bare / whole for whole, bare in zip(seconds["whole"], seconds["bare"])]
        middle = statistics.median(ratios)
        print(f"`train run` reaches {ratio:.1%} of the bare step's speed (median turn: {middle:.1%})")


if __name__ == "__main__":
    main()
