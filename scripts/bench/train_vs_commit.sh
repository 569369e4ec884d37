#!/usr/bin/env bash
# Compares the training step of this checkout with that of commit BASE. The two programs run alternately:
#   scripts/bench/train_vs_commit.sh BASE [--quick] [--rounds 7] [--only CASE] [--corpus path/train]
# The options and cases are those of train_vs_pytorch.sh. A ratio above 1 means that the checkout is faster.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 1 ] || { echo "usage: scripts/bench/train_vs_commit.sh BASE [options]" >&2; exit 2; }
base=$(git rev-parse --verify "$1^{commit}")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-checkout . "$work/base"
git -C "$work/base" checkout --quiet "$base"
build=$PWD/target/same-bits/build # shared with scripts/same-bits.sh
cargo build --release --quiet --manifest-path "$work/base/Cargo.toml" --target-dir "$build" \
  -p attend-train --example step
cp "$build/release/examples/step" "$work/step"
cargo build --release --quiet -p attend-train --example step
grep -m 1 'model name' /proc/cpuinfo || true
python3 scripts/bench/train_vs_pytorch.py --base "$work/step" "$@"
