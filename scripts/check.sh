#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, the quickstart.
# `scripts/check.sh --fast` leaves out the training of the quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets -- -D warnings
step cargo test --release --workspace
if [ "${1:-}" != --fast ]; then
  step scripts/quickstart.sh
fi
echo
echo "all checks passed"
