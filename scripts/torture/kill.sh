#!/usr/bin/env bash
# Kills a small training with SIGKILL at random moments, resumes it each time, and compares where it ends
# with an unbroken run: the same SHA-256 of all tensors, and never more than one save interval of work
# done twice.
#   scripts/torture/kill.sh [KILLS] [SEED]      default: 8 kills; 200 take some ten minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
kills=${1:-8}
RANDOM=${2:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --release --quiet -p attend-train --bin train
train=$PWD/target/release/train

# The first sentences of the quickstart's corpus, and a model that trains in seconds.
for set in train:600 valid:20 test:20; do
  for side in en de; do
    head -n "${set#*:}" "data/quickstart/${set%:*}.$side" >"$work/${set%:*}.$side"
  done
done
cat >"$work/config.toml" <<'TOML'
out = "unbroken"
[data]
source = "en"
target = "de"
train = "train"
valid = "valid"
test = "test"
batch_tokens = 150
[data.tokenizer]
vocab_size = 300
[model.transformer]
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
heads = 2
[train]
steps = 400
accumulate = 2
clip_norm = 1.0
moving_average = 0.99
validate_every = 90
translate = 5
save_every = 10
log_every = 1
keep = 2
TOML
every=10
cd "$work"

hash() { cat "$1"/last/model.safetensors "$1"/last/optimizer.safetensors | sha256sum | cut -c 1-64; }
fail() { echo "FAILED: $*" >&2; exit 1; }
last_logged() { grep -o '"event":"step","step":[0-9]*' "$1/metrics.jsonl" | tail -n 1 | grep -o '[0-9]*$' || echo 0; }

start=$(date +%s%N)
"$train" run config.toml >/dev/null 2>&1
length=$((($(date +%s%N) - start) / 1000000))
want=$(hash unbroken)
echo "$want  unbroken, $length ms"

killed=0 runs=0 most=0
while [ "$killed" -lt "$kills" ]; do
  runs=$((runs + 1))
  run=run$runs
  command=(run config.toml --set "out=$run")
  until [ -e "$run/done" ]; do
    "$train" "${command[@]}" --threads $((1 + RANDOM % 2)) >/dev/null 2>"talk" &
    pid=$!
    if [ "$killed" -lt "$kills" ]; then
      # Anywhere from the program's start to a third of the unbroken run's time.
      sleep "$(printf '0.%03d' $((RANDOM % 1000 * (length > 3000 ? 3000 : length) / 3000)))"
      if kill -KILL $pid 2>/dev/null; then
        wait $pid 2>/dev/null && touch "$run/done" || killed=$((killed + 1))
      fi
    fi
    if ! wait $pid 2>/dev/null; then
      # Killed. What was done, and from where does it go on?
      if [ -e "$run/checkpoint-0/manifest.json" ] || ls -d "$run"/checkpoint-* >/dev/null 2>&1; then
        reached=$(last_logged "$run")
        "$train" doctor "$run" >doctor || fail "kill $killed: $(cat doctor)"
        from=$(grep -o 'from step [0-9]*' doctor | grep -o '[0-9]*')
        again=$((reached - from))
        [ "$again" -gt "$most" ] && most=$again
        [ "$again" -le "$every" ] || fail "kill $killed: at step $reached, resumes from $from"
        command=(resume "$run")
      else # before the first checkpoint: there is nothing to resume
        rm -rf "$run"
      fi
    else
      touch "$run/done"
    fi
  done
  got=$(hash "$run")
  [ "$got" = "$want" ] || fail "$run ended with $got"
  "$train" diff unbroken "$run" >difference || [ "$(grep -vc '^out:' difference)" = 0 ] || fail "$(cat difference)"
  echo "$got  $run, after $killed kills in all"
done
echo "$killed kills, all resumed; the same bits $runs times; at most $most steps done twice (saved every $every)"
