#!/usr/bin/env bash
# Trains every system in configs/history on the quickstart corpus, one per core at a time. Writes the
# results to docs/history.md (a table) and docs/history (a plot of BLEU by source length, and the attention
# weights of each system for one sentence).
#   scripts/history.sh            trains all systems; a finished run of the same config is not repeated
#   scripts/history.sh --quick    a few steps of each, in a temporary folder, to test this script
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
      --set train.translate_sentences=4 --set train.samples=0 --set decode.beam=1 --set decode.max_length=8)
    corpora=(--corpus data/quickstart/long)
    ;;
  *)
    echo "usage: scripts/history.sh [--quick]" >&2
    exit 2
    ;;
esac
mkdir -p "$runs" "$pictures"
# However the script ends, it stops the training processes that are still running; they save first.
finished() {
  local jobs
  jobs=$(jobs -p)
  # shellcheck disable=SC2086 # one argument per job
  [ -z "$jobs" ] || kill $jobs 2>/dev/null || true
  wait || true
  [ -z "$folder" ] || rm -rf "$folder"
}
trap finished EXIT

cargo build --release --bin train --bin infer --example history
train=${CARGO_TARGET_DIR:-target}/release/train
infer=${CARGO_TARGET_DIR:-target}/release/infer
history=${CARGO_TARGET_DIR:-target}/release/examples/history

# Two runs with one thread each are faster than one run with two threads, and give the same bits.
finish() {
  local name=$1
  local config=configs/history/$name.toml run=$runs/$name
  local all=(--set out="$run" "${changes[@]}")
  local command=(run "$config" "${all[@]}" --overwrite)
  if [ -d "$run/last" ] && "$train" config "$config" "${all[@]}" | cmp -s - "$run/config.toml"; then
    command=(resume "$run") # does nothing if the run is finished
  fi
  "$train" "${command[@]}" --threads 1 &
  trap 'kill $!; wait $!; exit 1' TERM
  wait $!
  trap - TERM
  if ! grep -q 'attention = "none"' "$config"; then # without attention there is nothing to draw
    local style=(--mean)
    if grep -q '^\[model.lstmn\]' "$config"; then # its encoder's attention to the words before is what is new
      style=(--part encoder --style words)
    fi
    "$infer" attend "$run" --text "$sentence" "${style[@]}" -o "$pictures/$name.svg" --threads 1
  fi
}

names=()
for config in configs/history/*.toml; do
  names+=("$(basename "$config" .toml)")
done
one_is_done() {
  wait -n || {
    tail -n 5 "$runs"/*.log >&2
    echo "training failed: see the logs above" >&2
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
