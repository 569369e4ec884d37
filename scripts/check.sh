#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, a training that is killed, that
# the benchmarks run, the quickstart.
# `scripts/check.sh --fast` leaves out the training of the quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets -- -D warnings
step cargo test --release --workspace
step scripts/torture/kill.sh 8
if command -v python3 >/dev/null; then # the benchmarks that need nothing else still run
  step cargo build --release -p attend-train --bin train --example step
  step python3 scripts/bench/scaling.py --shape tiny --quick
  step python3 scripts/bench/whole_program.py --turn 5 --turns 2
fi
step scripts/history.sh --quick
if [ "${1:-}" != --fast ]; then
  step scripts/quickstart.sh
fi
echo
echo "all checks passed"
