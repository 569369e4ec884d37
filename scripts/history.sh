#!/usr/bin/env bash
# Trains every system of configs/history on the quickstart corpus, as many at a time as there are cores, and
# writes what came of it into docs/history.md: a table, a plot of BLEU by length, and the alignments of a
# sentence.
#   scripts/history.sh            all of them; a finished run of the same config is not trained again
#   scripts/history.sh --quick    a few steps of each, in a temporary folder: shows that the script works
set -euo pipefail
cd "$(dirname "$0")/.."

sentence="the old farmer says that the clever girl has read the long book"
runs=runs/history
page=docs/history.md
pictures=docs/history
folder=
changes=()
corpora=(--corpus data/quickstart/test --corpus data/quickstart/long)
case "${1:-}" in
  "") ;;
  --quick)
    folder=$(mktemp -d)
    runs=$folder/runs
    page=$folder/history.md
    pictures=$folder/pictures
    cp docs/history.md "$page"
    changes=(--set train.steps=4 --set train.validate_every=4 --set train.save_every=4
      --set train.translate=4 --set train.samples=0 --set decode.beam=1 --set decode.max_length=8)
    corpora=(--corpus data/quickstart/long)
    ;;
  *)
    echo "usage: scripts/history.sh [--quick]" >&2
    exit 2
    ;;
esac
mkdir -p "$runs" "$pictures"
# Whatever ends the script, no training goes on without it: they save and stop.
finished() {
  local jobs
  jobs=$(jobs -p)
  # shellcheck disable=SC2086 # one word for each
  [ -z "$jobs" ] || kill $jobs 2>/dev/null || true
  wait || true
  [ -z "$folder" ] || rm -rf "$folder"
}
trap finished EXIT

cargo build --release --bin train --bin infer --example history
train=${CARGO_TARGET_DIR:-target}/release/train
infer=${CARGO_TARGET_DIR:-target}/release/infer
history=${CARGO_TARGET_DIR:-target}/release/examples/history

# Two runs of one thread get more done than one run of two, and the results are the same to the bit.
finish() {
  local name=$1
  local config=configs/history/$name.toml run=$runs/$name
  local all=(--set out="$run" "${changes[@]}")
  local command=(run "$config" "${all[@]}" --overwrite)
  if [ -d "$run/last" ] && "$train" config "$config" "${all[@]}" | cmp -s - "$run/config.toml"; then
    command=(resume "$run") # changes nothing if it is finished
  fi
  "$train" "${command[@]}" --threads 1 &
  trap 'kill $!; wait $!; exit 1' TERM
  wait $!
  trap - TERM
  if ! grep -q 'attention = "none"' "$config"; then # else there is nothing to draw
    "$infer" attend "$run" --text "$sentence" --mean -o "$pictures/$name.svg" --threads 1
  fi
}

names=()
for config in configs/history/*.toml; do
  names+=("$(basename "$config" .toml)")
done
one_is_done() {
  wait -n || {
    tail -n 5 "$runs"/*.log >&2
    echo "a system failed: see the logs above" >&2
    exit 1
  }
}
for name in "${names[@]}"; do
  while [ "$(jobs -pr | wc -l)" -ge "$(getconf _NPROCESSORS_ONLN)" ]; do
    one_is_done
  done
  echo "$name: $runs/$name.log"
  finish "$name" >>"$runs/$name.log" 2>&1 &
done
while [ -n "$(jobs -p)" ]; do
  one_is_done
done
"$history" "${names[@]/#/$runs/}" --train data/quickstart/train --train data/quickstart/joined \
  "${corpora[@]}" --page "$page" --plot "$pictures/bleu-by-length.svg"
