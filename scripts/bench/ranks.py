"""Compares two ranks with one process of as many threads. Started by ranks.sh.

All processes stay alive, and one program works at a time: a round is a few steps of each. Two ranks share every batch
of one process, so that a step is the same work. Times are medians over all steps. Before that, a line for each size
predicts the step of two ranks from that of one rank alone, which has half a batch and one thread while another one
computes beside it, and from the times of sending alone.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from train_vs_pytorch import HERE, ROOT, STEPS, Worker, equal_batches

RANKS = 2
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
MPIRUN = ["mpirun", "-n", str(RANKS), "--bind-to", "none"]


class Ranks(Worker):
    """Ranks that wait for a message keep their cores busy: they are stopped while other programs work."""

    def signal(self, signal):
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True)
        for child in listed.stdout.split():
            os.kill(int(child), signal)

    def stop(self):
        self.signal(signal.SIGSTOP)

    def steps(self, count):
        self.signal(signal.SIGCONT)
        report = super().steps(count)
        self.stop()
        return report

    def end(self):
        self.signal(signal.SIGCONT)
        super().end()


def median(worker, steps):
    """Of some steps, after one that is not measured."""
    worker.steps(1)
    worker.measure(steps)
    return statistics.median(worker.milliseconds)


def predict(shape, vocabulary, half, step, examples, steps):
    """The step of two ranks: what one computes, and the sending. Written down before two ranks are measured."""
    command = [step, "run", "--shape", shape, "--vocabulary", vocabulary, "--batches", half, "--threads", 1]
    beside = Worker("beside", command)
    one = Worker("one", command)
    # Both compute at once, without a word between them.
    beside.process.stdin.write(f"{4 * steps + 8}\n")
    beside.process.stdin.flush()
    alone = median(one, steps)
    beside.process.kill()
    beside.process.wait()
    parameters = one.parameters
    one.end()
    out = subprocess.run([*MPIRUN, examples / "ranks", "time", str(parameters)], stdout=subprocess.PIPE, check=True)
    text = out.stdout.decode().strip()
    sending = [float(ms) for ms in re.findall(r"([\d.]+) ms", text)]
    print(f"\n{shape}: one rank computes its half for {alone:.1f} ms; {text}")
    print(f"  predicted for {RANKS} ranks: {alone + sum(sending):.1f} ms", flush=True)


def compare(shape, options, folder, step, examples):
    vocabulary, whole, half = 8001, folder / "whole.jsonl", folder / "half.jsonl"
    equal_batches(whole, vocabulary)
    equal_batches(half, vocabulary, sentences=80 // RANKS)
    steps = 1 if options.quick else STEPS[shape]
    predict(shape, vocabulary, half, step, examples, steps)

    ours = [step, "run", "--shape", shape, "--vocabulary", vocabulary, "--batches", whole]
    theirs = [sys.executable, HERE / "pytorch_step.py", shape, vocabulary, whole]
    workers = {
        "attend, 1 process": Worker("attend", [*ours, "--threads", RANKS]),
        "attend, 2 ranks": Ranks("attend", [*MPIRUN, *ours, "--threads", 1]),
        "pytorch, 1 process": Worker("pytorch", ["env", f"OMP_NUM_THREADS={RANKS}", *theirs]),
        "pytorch, 2 ranks": Worker("pytorch", ["env", f"RANKS={RANKS}", "OMP_NUM_THREADS=1", *theirs]),
    }
    workers["attend, 2 ranks"].stop()
    losses = {name: worker.steps(1 if options.quick else 3)["loss"][0] for name, worker in workers.items()}
    first, *_, = losses.values()
    if abs(losses["attend, 2 ranks"] - first) > 1e-5 * first:
        raise SystemExit(f"two ranks compute another loss: {losses}")
    for _ in range(1 if options.quick else options.rounds):
        for worker in workers.values():
            worker.measure(steps)
    tokens = sum(len(row) for row in json.loads(whole.read_text())["target"])
    medians = {}
    for name, worker in workers.items():
        worker.end()
        medians[name] = statistics.median(worker.milliseconds)
        rate, peak = 1e3 * tokens / medians[name], worker.peak / 2**20
        print(f"  {name:19} {medians[name]:8.1f} ms/step {rate:8.0f} tokens/s {peak:6.0f} MiB")
    one, two, other, others = medians.values()
    print(f"  2 ranks for 1 process: attend {one / two:.2f}, pytorch {other / others:.2f}")
    print(f"  attend for pytorch: 1 process {other / one:.2f}, 2 ranks {others / two:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one step of each only, to test this script")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["base", "small", "tiny"], help="default: small and base")
    options = parser.parse_args()
    examples = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/examples"
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        for shape in [options.only] if options.only else ["small", "base"]:
            compare(shape, options, Path(folder), examples / "step", examples)


if __name__ == "__main__":
    main()
