#!/usr/bin/env python3
"""Checks that TensorBoard reads the numbers and sample translations of metrics.jsonl, after kills and resumptions.

    python3 -m venv venv
    venv/bin/pip install tensorboard
    venv/bin/python scripts/check-tensorboard.py [TRAIN]

TRAIN is the program, by default target/release/train. A small model is trained three times: without interruption, with
two kills, and with a signal. Each time, TensorBoard's own loader must find exactly what the log has: the same tags,
steps, times and values (as 32-bit numbers), each once, before and after the run is resumed.
"""

import json
import math
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tensorboard import version
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

CONFIG = """
out = "run"
[data]
source = "a"
target = "b"
train = "train"
valid = "valid"
test = "valid"
batch_tokens = 60
[data.tokenizer]
vocab_size = 60
[model.transformer]
encoder_layers = 1
decoder_layers = 1
d_model = 16
heads = 2
d_ff = 24
[train]
steps = 400
validate_every = 45
save_every = 37
log_every = 3
samples = 2
"""
TAGS = {
    "step": {name: f"train/{name}" for name in ["loss", "learning_rate", "gradient_norm", "tokens_per_second"]},
    "skipped": {"in_a_row": "train/skipped_in_a_row"},
    "spike": {"loss": "train/spike_loss"},
    "validation": {name: f"valid/{name}" for name in ["loss", "perplexity", "accuracy", "bleu", "chrf"]},
    "test": {"bleu": "test/bleu", "chrf": "test/chrf"},
}


def single(value):
    """A number as 32 bits; a number that is not finite has none of its own."""
    return "nan" if value is None or math.isnan(value) else struct.pack("<f", value)


def logged(run):
    """(tag, step, time, value) of every number, and (step, time, samples) of every validation with samples."""
    numbers, texts = [], []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        event = json.loads(line)
        for name, tag in TAGS[event["event"]].items():
            if name in event:
                numbers.append((tag, event["step"], event["time"], single(event[name])))
        if event.get("samples"):
            texts.append((event["step"], event["time"], event["samples"]))
    return sorted(numbers), texts


def loaded(run):
    """The same as TensorBoard has it."""
    accumulator = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    numbers = []
    for tag in accumulator.Tags()["scalars"]:
        numbers += [(tag, e.step, e.wall_time, single(e.value)) for e in accumulator.Scalars(tag)]
    texts = []
    for tag in accumulator.Tags()["tensors"]:
        assert tag == "valid/samples", tag
        assert accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "text"
        for event in accumulator.Tensors(tag):
            texts.append((event.step, event.wall_time, event.tensor_proto.string_val[0].decode()))
    return sorted(numbers), texts


def check(run, what):
    files = sorted(run.glob("events.out.tfevents.*"))
    assert len(files) == 1, files
    records = sum(1 for _ in EventFileLoader(str(files[0])).Load())  # checks every checksum
    (numbers, samples), (found, texts) = logged(run), loaded(run)
    assert numbers == found, f"{what}: {set(numbers) ^ set(found)}"
    assert len(samples) == len(texts), what
    for (step, at, expected), (text_step, text_at, text) in zip(samples, texts):
        assert (step, at) == (text_step, text_at), what
        rows = text.splitlines()[2:]
        assert rows == [f"| {s['source']} | {s['reference']} | {s['translation']} |" for s in expected], text
    print(f"{what}: {len(found)} numbers and {len(texts)} texts in {records} records are those of metrics.jsonl")


def wait_for(run, step, child):
    log = run / "metrics.jsonl"
    while not log.exists() or f'"step":{step},' not in log.read_text():
        assert child.poll() is None, "the training ended too early"
        time.sleep(0.002)


def main():
    program = Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/train").resolve()
    print(f"TensorBoard {version.VERSION}")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        words = [["one", "two", "three", "four"], ["eins", "zwei", "drei", "vier"]]
        for name, count in [("train", 120), ("valid", 10)]:
            for side, vocabulary in zip("ab", words):
                lines = [" ".join(vocabulary[(i * k + k * k) % 4] for k in range(1, 3 + i % 4)) for i in range(count)]
                (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n")
        (folder / "config.toml").write_text(CONFIG)

        def start(*arguments):
            return subprocess.Popen(
                [program, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

        def finish(*arguments):
            assert start(*arguments).wait() == 0, arguments

        finish("run", "config.toml", "--set", "out=whole")
        check(folder / "whole", "uninterrupted")

        killed = folder / "killed"
        child = start("run", "config.toml", "--set", "out=killed")
        for step in [69, 201]:
            wait_for(killed, step, child)
            child.kill()
            child.wait()
            child = start("resume", "killed")
        assert child.wait() == 0
        check(killed, "killed twice and resumed")

        stopped = folder / "stopped"
        child = start("run", "config.toml", "--set", "out=stopped")
        wait_for(stopped, 102, child)
        child.send_signal(signal.SIGTERM)
        assert child.wait() == 143
        check(stopped, "stopped by a signal")
        finish("resume", "stopped", "--set", "train.samples=1")
        check(stopped, "stopped and resumed")
        for event in stopped.glob("events.out.tfevents.*"):
            event.unlink()  # as in a run of an earlier version
        finish("resume", "stopped", "--set", "train.steps=450")
        check(stopped, "resumed without a file for TensorBoard")
        finish("resume", "stopped", "--set", "train.steps=460", "--set", "train.tensorboard=false")
        assert not list(stopped.glob("events.out.tfevents.*"))
        finish("resume", "stopped", "--set", "train.steps=470", "--set", "train.tensorboard=true")
        check(stopped, "turned off and on again")


if __name__ == "__main__":
    main()
