#!/usr/bin/env bash
# All checks that must pass before a change is merged: format, lints, tests, trainings of several ranks if there is
# MPI, a training run and a preparation of data that are killed, short runs of the benchmarks and of
# scripts/history.sh, and the quickstart.
# `scripts/check.sh --fast` skips the quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
. scripts/mpi.sh
features=attend-train/full${has_mpi:+,attend-train/mpi}
step cargo clippy --release --workspace --all-targets --features "$features" -- -D warnings
step cargo test --release --workspace --features "$features"
step scripts/check-exchange.sh
step scripts/check-mpi.sh
step scripts/torture/kill.sh 8
step scripts/torture/prepare.sh 5
if command -v python3 >/dev/null; then # the benchmarks that need only Python
  step cargo build --release --bin train --bin infer --example step --example large --example throughput
  step python3 scripts/data/large.py --rounds 1
  step python3 scripts/bench/scaling.py --shape tiny --quick
  step python3 scripts/bench/whole_program.py --turn 5 --turns 2
  step python3 scripts/quality.py --quick
fi
step scripts/history.sh --quick
if [ "${1:-}" != --fast ]; then
  step scripts/quickstart.sh
fi
echo
echo "all checks passed"
