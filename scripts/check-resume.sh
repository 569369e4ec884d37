#!/usr/bin/env bash
# Trains the quickstart without interruption, then with one thread and with two threads. Each of the
# latter runs is killed with SIGKILL, resumed, stopped with SIGTERM and resumed. All final weights must
# have the same SHA-256.
#   scripts/check-resume.sh [STEPS]      default: 200 steps; `full` for the full training run
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${1:-200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

set=(--set train.save_every=50 --set train.log_every=10)
if [ "$steps" = full ]; then
  steps=$(sed -n 's/^steps = \([0-9_]*\).*/\1/p' configs/quickstart.toml | tr -d _)
else
  set+=(--set "train.steps=$steps")
fi
cargo build --release --quiet --bin train
train=target/release/train

hash() { cat "$1"/last/model.safetensors "$1"/last/optimizer.safetensors | sha256sum | cut -c 1-64; }
wait_for_step() { # run, step
  until grep -q "\"step\":$2," "$1/metrics.jsonl" 2>/dev/null; do sleep 0.05; done
}

$train run configs/quickstart.toml "${set[@]}" --set "out=$work/whole" >/dev/null 2>&1
want=$(hash "$work/whole")
echo "$want  uninterrupted"
for threads in 1 2; do
  run=$work/broken-$threads
  $train run configs/quickstart.toml "${set[@]}" --set "out=$run" --threads $threads >/dev/null 2>&1 &
  pid=$!
  wait_for_step "$run" $((steps / 30 * 10))
  kill -KILL $pid
  wait $pid && exit 1 || [ $? = 137 ]

  $train resume "$run" --threads $threads >/dev/null 2>&1 &
  pid=$!
  wait_for_step "$run" $((steps / 30 * 20))
  kill -TERM $pid
  wait $pid && exit 1 || [ $? = 143 ]

  $train resume "$run" --threads $threads >/dev/null 2>&1
  got=$(hash "$run")
  echo "$got  killed and stopped, $threads threads"
  [ "$got" = "$want" ]
done
echo "all runs ended with the same bits"
