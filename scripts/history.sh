#!/usr/bin/env bash
# Trains every system of configs/history on the quickstart corpus, a few minutes each on two cores, and writes
# what came of it into docs/history.md: a table, a plot of BLEU by length, and the alignments of a sentence.
#   scripts/history.sh            all of them; a run that is finished is not trained again
#   scripts/history.sh --quick    a few steps of each, in a temporary folder: shows that the script works
set -euo pipefail
cd "$(dirname "$0")/.."

sentence="the old farmer says that the clever girl has read the long book"
runs=runs/history
page=docs/history.md
pictures=docs/history
quick=()
if [ "${1:-}" = --quick ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  runs=$folder/runs
  page=$folder/history.md
  pictures=$folder/pictures
  cp docs/history.md "$page"
  quick=(--set train.steps=4 --set train.validate_every=4 --set train.save_every=4
    --set train.translate=4 --set train.samples=0 --set decode.beam=1 --set decode.max_length=8)
fi
mkdir -p "$runs" "$pictures"

cargo build --release --bin train --bin infer --example history
train=${CARGO_TARGET_DIR:-target}/release/train
infer=${CARGO_TARGET_DIR:-target}/release/infer
history=${CARGO_TARGET_DIR:-target}/release/examples/history

for config in configs/history/*.toml; do
  name=$(basename "$config" .toml)
  run=$runs/$name
  if [ -d "$run" ]; then
    "$train" resume "$run" # changes nothing if it is finished
  else
    "$train" run "$config" --set out="$run" "${quick[@]}"
  fi
  if grep -q 'attention = "none"' "$config"; then
    continue # there is nothing to draw
  fi
  "$infer" attend "$run" --text "$sentence" --mean -o "$pictures/$name.svg"
done

corpora=(--corpus data/quickstart/test --corpus data/quickstart/long)
if [ ${#quick[@]} -gt 0 ]; then
  corpora=(--corpus data/quickstart/valid)
fi
"$history" "$runs" "${corpora[@]}" --page "$page" --plot "$pictures/bleu-by-length.svg"
