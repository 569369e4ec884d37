#!/usr/bin/env python3
"""Trains the recipe of Multi30k with each regulariser alone and with all, for the same time, and prints their scores.

    scripts/quality.py --corpus path/to/multi30k [--minutes 20] [--seeds 1] [--runs FOLDER] [NAME...]
    scripts/quality.py --quick          a few seconds each with the quickstart corpus, to test this script

The folder of the corpus has train, val and test_2016_flickr with .en and .de, or the same with .gz. Every system is
measured for half a minute first, since the learning rate falls to zero at a step, not at a time: it gets as many
steps as it can do. Systems are trained one after the other, with all cores: nothing else should run. Afterwards the
average of its last checkpoints and the settings of search are chosen on the validation data. A system that is in
FOLDER already is not trained again.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPE = "configs/recipes/multi30k-tiny.toml"
# The same for all: settings that suit an hour on two cores.
COMMON = {
    "data.batch_tokens": 4096,
    "data.tokenizer.vocab_size": 4000,
    "train.schedule": '{ kind = "linear", learning_rate = 3e-3, warmup = 800 }',
    "train.validate_every": 500,
    "train.log_every": 10,
}
SIMCUT = {"train.consistency": '{ kind = "simcut", weight = 3 }'}
WORDS = {"train.word_dropout": 0.1}
LAYERS = {"model.transformer.layer_dropout": 0.1}
SUBWORDS = {"data.augment.subword_dropout": 0.1}
SYSTEMS = {
    "plain": {},
    "r-drop": {"train.consistency": '{ kind = "r-drop", weight = 5 }'},
    "simcut": SIMCUT,
    "simcut, dropout 0.2": SIMCUT | {"model.transformer.dropout": 0.2},
    "word dropout": WORDS,
    "layer dropout": LAYERS,
    "subword dropout": SUBWORDS,
    "all": SIMCUT | WORDS | LAYERS | SUBWORDS,
}


def cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


class Programs:
    def __init__(self):
        folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
        self.train, self.infer = (str(folder / name) for name in ("train", "infer"))

    @staticmethod
    def run(*command, log=None):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if log:
            Path(log).write_text(done.stderr)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout


def sets(changes):
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]


def events(run, kind):
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def train(programs, name, run, changes, minutes):
    """Trains for about so many minutes, unless that is done."""
    if (run / "averaged").exists():
        return
    probe = run.with_name(run.name + ".probe")
    trial = {"train.minutes": min(0.5, minutes), "train.log_every": 1, "train.validate_every": 0, "train.steps": 10**6}
    trial |= {"train.translate_sentences": 0, "train.metric": "loss", "out": probe}
    programs.run(programs.train, "run", RECIPE, "--overwrite", *sets(changes | trial))
    steps = events(probe, "step")
    # The first steps wait for memory and caches.
    first, last = steps[len(steps) // 3], steps[-1]
    rate = (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])
    shutil.rmtree(probe)
    count = max(10, int(rate * 60 * minutes))
    print(f"{name}: {count} steps, {rate:.2f} a second", file=sys.stderr, flush=True)
    save = max(1, count // 40)
    changes = changes | {"train.steps": count, "train.save_every": save, "out": run}
    programs.run(programs.train, "run", RECIPE, "--overwrite", *sets(changes), log=f"{run}.log")
    programs.run(programs.train, "average", str(run), "--last", "10", "--choose")


def score(programs, run, source, reference, *options):
    command = [programs.infer, "evaluate", str(run), "--src", source, "--ref", reference, "--json", *options]
    scores = json.loads(programs.run(*command))
    scores = scores if isinstance(scores, list) else [scores]  # one metric is not in a list
    return {entry["name"]: entry["score"] for entry in scores}


def measure(programs, run, corpus, tune):
    programs.run(programs.infer, "tune", str(run / "averaged"), "--lowercase", *tune, *corpus["valid"])
    test = corpus["test"]
    cased = score(programs, run / "averaged", *test)
    lower = score(programs, run / "averaged", *test, "--lowercase", "--metrics", "bleu")
    best = max(event["bleu"] for event in events(run, "validation"))
    last = events(run, "step")[-1]
    tokens = sum(event["tokens"] for event in events(run, "step"))
    return {
        "lower": lower["BLEU"],
        "cased": cased["BLEU"],
        "chrF2": cased["chrF2"],
        "valid": best,
        "minutes": last["seconds"] / 60,
        "tokens": tokens / 1e6,
        "steps": last["step"],
    }


def text(folder, name):
    """The files of both languages."""
    def file(language):
        plain = folder / f"{name}.{language}"
        return str(plain if plain.exists() else f"{plain}.gz")

    return file("en"), file("de")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SYSTEMS)}")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.names) - set(SYSTEMS):
        parser.error(f"no system {', '.join(sorted(unknown))}: they are {', '.join(SYSTEMS)}")
    if not args.quick and not args.corpus:
        parser.error("give --corpus, or --quick")
    programs = Programs()
    with tempfile.TemporaryDirectory() as temporary:
        runs = (args.runs or Path(temporary)).resolve()
        runs.mkdir(parents=True, exist_ok=True)
        folder, names, minutes, tune = (args.corpus or Path()), ["train", "val", "test_2016_flickr"], args.minutes, []
        common = dict(COMMON)
        if args.quick:
            folder, names, minutes, tune = ROOT / "data/quickstart", ["train", "valid", "test"], 0.02, ["--beams", "1,2"]
            common |= {"data.tokenizer.vocab_size": 400, "train.validate_every": 10, "data.max_length": 32}
            common |= {"train.translate_sentences": 8, "decode.beam": 1, "decode.max_length": 12}
        folder = folder.resolve()
        files = dict(zip(["train", "valid", "test"], (text(folder, name) for name in names)))
        for key, (source, target) in files.items():
            common[f"data.{key}"] = f'{{ source = "{source}", target = "{target}" }}'
        corpus = {"test": files["test"], "valid": ["--src", files["valid"][0], "--ref", files["valid"][1]]}
        print(f"{cpu()}, {os.cpu_count()} cores, {minutes:g} minutes each")
        print("| system | seed | BLEU, lower-cased | BLEU | chrF2 | best valid BLEU | steps | M target tokens | minutes |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        chosen = args.names or (["plain", "all"] if args.quick else list(SYSTEMS))
        for name in chosen:
            for seed in range(1, args.seeds + 1):
                run = runs / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
                train(programs, name, run, common | SYSTEMS[name] | {"seed": seed}, minutes)
                row = measure(programs, run, corpus, tune)
                print(
                    f"| {name} | {seed} | {row['lower']:.2f} | {row['cased']:.2f} | {row['chrF2']:.2f} | "
                    f"{row['valid']:.2f} | {row['steps']} | {row['tokens']:.1f} | {row['minutes']:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
