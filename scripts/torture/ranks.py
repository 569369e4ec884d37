#!/usr/bin/env python3
"""Trains on several ranks, ends trainings by faults, and resumes each on another number of ranks.

    scripts/torture/ranks.py [--rounds N] [--seed N] [--programs FOLDER] [--mpirun PROGRAM]

Needs MPI, and in FOLDER (default: target/release) `train`, `infer` and `examples/panics`, built with the feature `mpi`.
First, 2 and 3 ranks train an epoch twice, through shared memory and through TCP: the checkpoints must have the same
bits. Then 2 and 3 ranks translate what one process translates: the output must be the same.

Every round trains one epoch. A random rank is killed, aborted or stopped, or panics, at a random step, up to three
times; the whole job must end within a minute, and the run is resumed on another number of ranks. In the end the log
must have every step of the epoch once, with as many pairs' tokens as in a run of one process that nothing happened to,
and the same losses except for rounding.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# More ranks than cores, and as root in a container.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "ATTEND_RANK_TIMEOUT": "5",
}
CHANGES = """
    train.epochs=1 train.steps=100000 train.log_every=1 train.save_every=7 train.validate_every=40
    train.translate_sentences=8 train.samples=0 train.keep=3 train.accumulate=2 train.moving_average=0.99
    data.batch_tokens=1500 decode.beam=1 decode.max_length=10
    model.transformer.encoder_layers=1 model.transformer.decoder_layers=1 model.transformer.d_model=64
    model.transformer.heads=2 model.transformer.d_ff=128
""".split()
# The second of two trainings that must have the same bits. MPICH ignores it.
TCP = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1"}
FAULTS = {"was killed": signal.SIGKILL, "was aborted": signal.SIGABRT, "was stopped": signal.SIGSTOP}
PANIC = "panicked"


class Programs:
    def __init__(self, folder, mpirun):
        self.mpirun = mpirun
        names = ("train", "infer", "examples/panics")
        self.train, self.infer, self.panics = (str(Path(folder, name)) for name in names)

    def command(self, ranks, *words):
        """A program on so many ranks of one thread."""
        launcher = [self.mpirun, "-n", str(ranks)] if ranks > 1 else []
        return [*launcher, *words, "--threads", "1"]


def start(command, output, environment=None):
    environment = os.environ | ENVIRONMENT | (environment or {})
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )


def begin(run):
    sets = [f"--set={change}" for change in [*CHANGES, f"out={run}"]]
    return ["run", "configs/quickstart.toml", *sets]


def finish(command, folder, name, environment=None):
    with open(folder / f"{name}.txt", "wb") as output:
        status = start(command, output, environment).wait(600)
    if status != 0:
        text = Path(output.name).read_text()[-3000:]
        sys.exit(f"{name}: status {status}: see {output.name}\n{text}")


def same_bits(programs, reference, folder):
    for ranks in 2, 3:
        hashes = []
        for turn, environment in enumerate([{}, TCP]):
            run = folder / f"{ranks}-ranks-{turn}"
            finish(programs.command(ranks, programs.train, *begin(run)), folder, run.name, environment)
            compare(run.name, steps(run), reference)
            files = [run / "last" / name for name in ("model.safetensors", "optimizer.safetensors")]
            hashes.append(hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest())
        if len(set(hashes)) != 1:
            sys.exit(f"{ranks} ranks end with other bits the second time: {hashes}")
        print(f"{hashes[0]}  {ranks} ranks, twice", flush=True)


def same_translations(programs, run):
    files = [str(ROOT / f"data/quickstart/{name}.en") for name in ("test", "long")]
    found = []
    for ranks in 1, 2, 3:
        # Few hypotheses of a few words: the model was hardly trained.
        options = ["--scores", "--beam", "2", "--max-length", "12"]
        command = programs.command(ranks, programs.infer, "translate", str(run), *files, *options)
        output = subprocess.run(command, env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True)
        if output.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {output.returncode}\n{output.stderr.decode()[-3000:]}")
        found.append(output.stdout)
    count = sum(Path(file).read_bytes().count(b"\n") for file in files)
    if len(set(found)) != 1 or found[0].count(b"\n") != count:
        sys.exit("ranks do not translate as one process does")
    print(f"{count} lines translated by 1, 2 and 3 ranks: the same output", flush=True)


def steps(run):
    """The events of the log that are steps. The last line may be unfinished."""
    events = []
    for line in (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["event"] == "step":
            events.append(event)
    return events


def ranks_of(pid):
    """The processes that have no children: MPICH's launcher starts another one, which starts the ranks."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    children = sorted(int(child) for child in listed.stdout.split())
    return [rank for child in children for rank in ranks_of(child)] or [pid]


def end_by_fault(job, run, fault, at):
    """Sends the fault to a random rank once the run is at this step. Returns the seconds until the job ended."""
    reached = at - 1 if fault == PANIC else at
    while job.poll() is None:
        logged = steps(run)
        if logged and logged[-1]["step"] >= reached:
            break
        time.sleep(0.02)
    begun = time.monotonic()
    if fault != PANIC:
        if job.poll() is not None:
            return None
        victims = ranks_of(job.pid)
        os.kill(random.choice(victims), FAULTS[fault])
        if victims == [job.pid] and fault == "was stopped":
            job.kill()  # nobody else can notice
    try:
        status = job.wait(60)
    except subprocess.TimeoutExpired:
        sys.exit(f"a job of which a rank {fault} has not ended within a minute")
    if status == 0:
        return None
    return time.monotonic() - begun


def one_round(programs, number, reference, folder):
    run = folder / f"round-{number}"
    ranks = random.choice([2, 3, 4])
    verb, *source = begin(run)
    story = []
    output = open(folder / f"faults-{number}.txt", "wb")
    last = reference[-1]["step"]
    for at in sorted(random.sample(range(2, last - 2), random.choice([1, 2, 3]))):
        fault = random.choice([*FAULTS, PANIC])
        words = [programs.train, verb, *source]
        if fault == PANIC:
            words = [programs.panics, str(random.randrange(ranks)), str(at), source[0]]
            words += [change.removeprefix("--set=") for change in source[1:]]
        job = start(programs.command(ranks, *words), output)
        seconds = end_by_fault(job, run, fault, at)
        if seconds is None:
            text = Path(output.name).read_text()[-3000:]
            sys.exit(f"round {number}: the job ended before step {at}: see {output.name}\n{text}")
        story.append(f"{ranks} ranks, one {fault} at step {at}, ended after {seconds:.1f} s")
        ranks = random.choice([other for other in (1, 2, 3, 4) if other != ranks])
        verb, source = "resume", [str(run)]
    story.append(f"{ranks} to the end")
    output.close()
    finish(programs.command(ranks, programs.train, verb, *source), folder, run.name)
    compare(run.name, steps(run), reference)
    print(f"round {number}: " + "; ".join(story), flush=True)


def compare(run, found, reference):
    """Every step once, with the tokens of that step's batches."""
    for name in ("step", "epoch", "tokens"):
        if [event[name] for event in found] != [event[name] for event in reference]:
            sys.exit(f"{run}: the steps do not have the {name} of the run without faults")
    worst = max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(found, reference))
    if worst > 1e-3:
        sys.exit(f"{run}: a loss differs by {worst:.1e} from that of the run without faults")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--programs", default=str(ROOT / "target/release"))
    parser.add_argument("--mpirun", default="mpirun")
    args = parser.parse_args()
    programs = Programs(args.programs, args.mpirun)
    random.seed(args.seed)
    print(f"seed {args.seed}", flush=True)
    folder = Path(tempfile.mkdtemp())
    finish(programs.command(1, programs.train, *begin(folder / "reference")), folder, "reference")
    reference = steps(folder / "reference")
    print(f"an epoch has {len(reference)} steps and {sum(step['tokens'] for step in reference)} target tokens")
    same_bits(programs, reference, folder)
    same_translations(programs, folder / "reference")
    for number in range(1, args.rounds + 1):
        one_round(programs, number, reference, folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
