#!/usr/bin/env python3
"""Checks that translations do not depend on batches, order or threads, and that search and scores agree.

    scripts/check-decoding.py RUN FILE [--lines 1000]

RUN is a trained model, and FILE has one source sentence per line, plain or in gzip. Tokens and the bits of scores are
compared: one sentence at a time, in batches of any size, in reverse order, on one and two threads, with greedy and
beam search, in 32 and in 8 bits. Beam 1 must equal greedy search, and an ensemble of a model with itself the model.
Needs target/release/infer and target/release/examples/decode_speed.
"""

import argparse
import gzip
import json
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent.parent / "target/release"


def decode(run, lines, batch, beam, quantize, threads):
    """Tokens and bits of the score of each line."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        command = [PROGRAMS / "examples/decode_speed", run, "--input", file.name, "--outputs"]
        command += ["--batch", batch, "--beam", beam, "--quantize", quantize, "--threads", threads]
        done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    return list(zip(map(tuple, report["outputs"]), report["score_bits"]))


def translate(run, lines, *options):
    command = [str(PROGRAMS / "infer"), "translate", str(run), "--scores", *options]
    text = "".join(line + "\n" for line in lines)
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    opened = gzip.open if options.file.suffix == ".gz" else open
    with opened(options.file, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][: options.lines]
    failed = False

    def check(name, same):
        nonlocal failed
        failed |= not same
        print(f"{'same' if same else 'DIFFERENT'}: {name}", flush=True)

    for quantize in ["none", "int8"]:
        for beam in [1, 4]:
            expected = decode(options.run, lines, 1, beam, quantize, 1)
            for batch, threads in [(1, 2), (7, 2), (64, 1), (64, 2), (len(lines), 2)]:
                found = decode(options.run, lines, batch, beam, quantize, threads)
                name = f"{quantize}, beam {beam}: batches of {batch} on {threads} threads"
                check(name, found == expected)
            found = decode(options.run, lines[::-1], 50, beam, quantize, 2)[::-1]
            check(f"{quantize}, beam {beam}: in reverse order", found == expected)
    for quantize in [[], ["--quantize", "int8"]]:
        name = "int8" if quantize else "none"
        greedy = translate(options.run, lines, "--greedy", *quantize)
        check(f"{name}: beam 1 and greedy", translate(options.run, lines, "--beam", "1", *quantize) == greedy)
        twice = translate(options.run, lines, "--greedy", "--ensemble", str(options.run), *quantize)
        check(f"{name}: an ensemble with itself", twice == greedy)
    raise SystemExit(failed)


main()
