#!/usr/bin/env bash
# Trains every system in configs/history, one per core at a time: those that translate on the quickstart corpus,
# those that caption on data/scenes, in English and in German. Writes the results to docs/history.md (two tables)
# and docs/history (a plot of BLEU by source length, and the attention of each system for one sentence or picture).
#   scripts/history.sh              trains all systems; a finished run of the same config is not repeated
#   scripts/history.sh NAME...      trains only these, and replaces their rows of the tables; the plot stays
#   scripts/history.sh --quick      a few steps of each, in a temporary folder, to test this script
set -euo pipefail
cd "$(dirname "$0")/.."

sentence="the old farmer says that the clever girl has read the long book"
runs=runs/history
page=docs/history.md
pictures=docs/history
folder=
changes=()
corpora=(--corpus data/quickstart/test --corpus data/quickstart/long)
plot=(--plot "$pictures/bleu-by-length.svg")
captions=()
image=data/scenes/pictures/test/00001.svg
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
    plot=(--plot "$pictures/bleu-by-length.svg")
    captions=(--first 4)
    shift
    ;;
  -*)
    echo "usage: scripts/history.sh [--quick | NAME...]" >&2
    exit 2
    ;;
  *) plot=() ;;
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

cargo build --release --bin train --bin infer --example history --example captions
cargo run --release -p attend-data --example scenes
train=${CARGO_TARGET_DIR:-target}/release/train
infer=${CARGO_TARGET_DIR:-target}/release/infer
examples=${CARGO_TARGET_DIR:-target}/release/examples

reads_pictures() { grep -q '^source_kind = "pictures"' "$1"; }

# Two runs with one thread each are faster than one run with two threads, and give the same bits.
finish() {
  local name=$1 # of a config, or of one and the language of its captions: NAME-de
  local config=configs/history/${name%-de}.toml run=$runs/$name
  local all=(--set out="$run" "${changes[@]}")
  if [ "$name" != "${name%-de}" ]; then # German has half as many word forms again
    all=(--set data.target=de --set train.steps=4500 "${all[@]}")
  fi
  local command=(run "$config" "${all[@]}" --overwrite)
  if [ -d "$run/last" ] && "$train" config "$config" "${all[@]}" | cmp -s - "$run/config.toml"; then
    command=(resume "$run") # does nothing if the run is finished
  fi
  "$train" "${command[@]}" --threads 1 &
  trap 'kill $!; wait $!; exit 1' TERM
  wait $!
  trap - TERM
  if reads_pictures "$config"; then
    "$infer" attend "$run" --image "$image" -o "$pictures/$name.svg" --threads 1
  elif ! grep -q 'attention = "none"' "$config"; then # without attention there is nothing to draw
    local style=(--mean)
    if grep -q '^\[model.lstmn\]' "$config"; then # its encoder's attention to the words before is what is new
      style=(--part encoder --style words)
    fi
    "$infer" attend "$run" --text "$sentence" "${style[@]}" -o "$pictures/$name.svg" --threads 1
  fi
}

all=()
for config in configs/history/*.toml; do
  name=$(basename "$config" .toml)
  all+=("$name")
  if reads_pictures "$config"; then
    all+=("$name-de")
  fi
done
names=("$@")
if [ $# = 0 ]; then
  names=("${all[@]}")
fi
for name in "${names[@]}"; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "no system $name: they are ${all[*]}" >&2
    exit 2
  fi
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
translating=()
captioning=()
for name in "${names[@]}"; do
  if ! reads_pictures "configs/history/${name%-de}.toml"; then
    translating+=("$runs/$name")
  elif [ "$name" = "${name%-de}" ]; then
    captioning+=("$runs/$name")
  else
    captioning+=("$runs/$name:de")
  fi
done
if [ ${#translating[@]} -gt 0 ]; then
  "$examples/history" "${translating[@]}" --train data/quickstart/train --train data/quickstart/joined \
    "${corpora[@]}" --page "$page" "${plot[@]}"
fi
if [ ${#captioning[@]} -gt 0 ]; then
  "$examples/captions" "${captioning[@]}" "${captions[@]}" --page "$page"
fi
