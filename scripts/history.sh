#!/usr/bin/env bash
# Trains every system of configs/history on the quickstart corpus, a few minutes each on two cores, and writes
# what came of it into docs/history.md: a table, a plot of BLEU by length, and the alignments of a sentence.
#   scripts/history.sh            all of them; a finished run of the same config is not trained again
#   scripts/history.sh --quick    a few steps of each, in a temporary folder: shows that the script works
set -euo pipefail
cd "$(dirname "$0")/.."

sentence="the old farmer says that the clever girl has read the long book"
runs=runs/history
page=docs/history.md
pictures=docs/history
changes=()
corpora=(--corpus data/quickstart/test --corpus data/quickstart/long)
case "${1:-}" in
  "") ;;
  --quick)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    runs=$folder/runs
    page=$folder/history.md
    pictures=$folder/pictures
    cp docs/history.md "$page"
    changes=(--set train.steps=4 --set train.validate_every=4 --set train.save_every=4
      --set train.translate=4 --set train.samples=0 --set decode.beam=1 --set decode.max_length=8)
    corpora=(--corpus data/quickstart/valid)
    ;;
  *)
    echo "usage: scripts/history.sh [--quick]" >&2
    exit 2
    ;;
esac
mkdir -p "$runs" "$pictures"

cargo build --release --bin train --bin infer --example history
train=${CARGO_TARGET_DIR:-target}/release/train
infer=${CARGO_TARGET_DIR:-target}/release/infer
history=${CARGO_TARGET_DIR:-target}/release/examples/history

names=()
for config in configs/history/*.toml; do
  name=$(basename "$config" .toml)
  run=$runs/$name
  names+=("$run")
  all=(--set out="$run" "${changes[@]}")
  if [ -d "$run/last" ] && "$train" config "$config" "${all[@]}" | cmp -s - "$run/config.toml"; then
    "$train" resume "$run" # changes nothing if it is finished
  else
    "$train" run "$config" "${all[@]}" --overwrite
  fi
  if grep -q 'attention = "none"' "$config"; then
    continue # there is nothing to draw
  fi
  "$infer" attend "$run" --text "$sentence" --mean -o "$pictures/$name.svg"
done
"$history" "${names[@]}" "${corpora[@]}" --page "$page" --plot "$pictures/bleu-by-length.svg"
