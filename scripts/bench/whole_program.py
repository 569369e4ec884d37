"""What the whole program adds to the bare training step: reading, batching, logging, saving.

    cargo build --release -p attend-train --bin train --example step
    python3 scripts/bench/whole_program.py [--corpus data/quickstart/train] [--shape tiny] [--rounds 3]

`train run`, saving every 100 steps, is timed between two lines of its log; then the bare step does
the same batches. In turns; prints target tokens per second of both, and the ratio of medians.
"""

import argparse
import json
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
steps = {options.first + options.steps}
clip_norm = 1.0
log_every = {options.first}
save_every = 100
validate_every = 0
"""
    )
    return config


def whole(config, first, tokens):
    command = [BIN / "train", "run", config, "--overwrite"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    start = None
    for line in process.stderr:
        if line.startswith(f"step {first} ") and start is None:
            start = time.perf_counter()
        if line.startswith("step "):
            end = time.perf_counter()
    if process.wait() or start is None:
        raise SystemExit("train run failed")
    return tokens / (end - start)


def bare(config, batches, shape, first, steps, tokens):
    vocabulary = 1 + max(
        max(max(row) for side in json.loads(line).values() for row in side) for line in open(batches)
    )
    command = [BIN / "examples/step", "run", "--shape", shape, "--batches", batches]
    command += ["--vocabulary", vocabulary + 1]
    out = subprocess.run(
        list(map(str, command)),
        input=f"{first}\n{steps}\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report = json.loads(out.stdout.splitlines()[-1])
    return 1e3 * tokens / sum(report["milliseconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="data/quickstart/train")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--shape", default="tiny", choices=SHAPES)
    parser.add_argument("--first", type=int, default=20, help="steps that are not measured")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.steps % options.first:
        parser.error("--steps must be a multiple of --first: the log has a line for each")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        config, batches = write_config(folder, options), folder / "batches.jsonl"
        last = options.first + options.steps
        with batches.open("w") as out:
            command = [BIN / "examples/step", "batches", config, last]
            subprocess.run(list(map(str, command)), stdout=out, check=True)
        lines = batches.read_text().splitlines()[options.first : last]
        tokens = sum(len(row) for line in lines for row in json.loads(line)["target"])
        rates = {"whole": [], "bare": []}
        for _ in range(options.rounds):
            rates["whole"].append(whole(config, options.first, tokens))
            step = bare(config, batches, options.shape, options.first, options.steps, tokens)
            rates["bare"].append(step)
        for name, rate in rates.items():
            print(f"{name:6} {statistics.median(rate):8.0f} tokens/s", [round(r) for r in rate])
        ratio = statistics.median(rates["whole"]) / statistics.median(rates["bare"])
        print(f"the whole program keeps {ratio:.1%} of the bare step's speed")


if __name__ == "__main__":
    main()
