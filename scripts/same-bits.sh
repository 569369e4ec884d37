#!/usr/bin/env bash
# Checks that a refactoring changes no bit. Builds commit BASE and the checkout, trains both for 200 steps on
# four configs with 1 and 2 threads, translates 500 sentences with beam 4, and compares every tensor of the
# checkpoints (names, shapes, bits) and every line of the translations.
#   scripts/same-bits.sh BASE [--steps N]
# BASE's results are kept in target/same-bits, so that a second comparison with the same BASE is faster.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { echo "usage: scripts/same-bits.sh BASE [--steps N]" >&2; exit 2; }
base=$(git rev-parse --verify "$1^{commit}")
steps=200
[ "${2:-}" != --steps ] || steps=$3
configs=(quickstart history/bahdanau-2015 history/xu-2015-hard history/mishra-2017-snail)
root=$PWD
cache=$root/target/same-bits
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Trains and translates with the programs in $1, in the source tree $2, into folder $3.
results() {
  local programs=$1 tree=$2 out=$3 config name threads run
  cd "$tree"
  for config in "${configs[@]}"; do
    name=$(basename "$config")
    for threads in 1 2; do
      run=$out/$name-$threads
      "$programs/train" run "configs/$config.toml" --threads "$threads" --set "out=$run" \
        --set "train.steps=$steps" --set train.validate_every=0 --set train.save_every=0 \
        --set decode.beam=1 --set decode.max_length=20 >"$run.log" 2>&1 ||
        { tail -n 5 "$run.log" >&2; echo "$name failed in $tree" >&2; exit 1; }
      "$programs/infer" translate "$run/last" --beam 4 --scores --threads "$threads" \
        data/quickstart/test.en >"$run.txt"
    done
  done
  cd "$root"
}

old=$cache/$base-$steps
if [ ! -e "$old/done" ]; then
  rm -rf "$old"
  mkdir -p "$old"
  git clone --quiet --no-checkout . "$work/base"
  git -C "$work/base" checkout --quiet "$base"
  cargo build --release --quiet --manifest-path "$work/base/Cargo.toml" --target-dir "$cache/build" \
    -p attend-train -p attend-infer --bins
  results "$cache/build/release" "$work/base" "$old"
  touch "$old/done"
fi
cargo build --release --quiet -p attend-train -p attend-infer --bins --example same_tensors
results "${CARGO_TARGET_DIR:-$root/target}/release" "$root" "$work"

failed=0
for config in "${configs[@]}"; do
  name=$(basename "$config")
  for threads in 1 2; do
    run=$name-$threads
    for file in model optimizer; do
      "${CARGO_TARGET_DIR:-$root/target}/release/examples/same_tensors" \
        "$old/$run/last/$file.safetensors" "$work/$run/last/$file.safetensors" || failed=1
    done
    if cmp -s "$old/$run.txt" "$work/$run.txt"; then
      echo "$run: the same translations"
    else
      echo "$run: the translations differ:" >&2
      diff "$old/$run.txt" "$work/$run.txt" | head -n 6 >&2 || true
      failed=1
    fi
  done
done
[ $failed = 0 ] || { echo "NOT the same bits as $base" >&2; exit 1; }
echo "the same bits as $base"
