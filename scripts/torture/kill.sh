#!/usr/bin/env bash
# Kills a small training run with SIGKILL at random times, resumes it after each kill, and compares the
# result with an uninterrupted run. The SHA-256 of all tensors and the log must be the same, and no kill may
# cause more than one save interval of steps to be repeated.
#   scripts/torture/kill.sh [KILLS] [SEED]      default: 8 kills; 200 kills take a few minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
kills=${1:-8}
RANDOM=${2:-1}
. scripts/torture/tiny.sh

last_logged() {
  grep -o '"event":"step","step":[0-9]*' "$1/metrics.jsonl" | tail -n 1 | grep -o '[0-9]*$' || echo 0
}

start=$(date +%s%N)
"$train" run config.toml >/dev/null 2>&1
length=$((($(date +%s%N) - start) / 1000000))
want=$(hash unbroken)
echo "$want  uninterrupted, $length ms"

killed=0 runs=0 most=0
while [ "$killed" -lt "$kills" ]; do
  runs=$((runs + 1))
  run=run$runs
  command=(run config.toml --set "out=$run")
  while true; do
    "$train" "${command[@]}" --threads $((1 + RANDOM % 2)) >/dev/null 2>talk &
    pid=$!
    if [ "$killed" -lt "$kills" ]; then
      # At a random time within the first third of the uninterrupted run's duration.
      sleep "$(printf '0.%03d' $((RANDOM % 1000 * (length > 2900 ? 2900 : length) / 3000)))"
      kill -KILL $pid 2>/dev/null || true
    fi
    status=0
    wait $pid 2>/dev/null || status=$?
    case $status in
      0) break ;;
      137) killed=$((killed + 1)) ;;
      *) fail "$run, after $killed kills: $(cat talk)" ;;
    esac
    if [ ! -e "$run/checkpoint-0" ] && ! compgen -G "$run/checkpoint-*" >/dev/null; then
      rm -rf "$run" # killed before its first checkpoint: nothing to resume
      continue
    fi
    command=(resume "$run")
    "$train" doctor "$run" >doctor || fail "kill $killed: $(cat doctor)"
    again=$(($(last_logged "$run") - $(grep -o 'from step [0-9]*' doctor | grep -o '[0-9]*')))
    most=$((again > most ? again : most))
    [ "$again" -le "$every" ] || fail "kill $killed: $again steps would be repeated"
  done
  got=$(hash "$run")
  [ "$got" = "$want" ] || fail "$run ended with $got"
  # The two runs may differ only in the name of their folder.
  "$train" diff unbroken "$run" >difference || true
  grep -qx 'no difference' difference || fail "$(cat difference)"
  echo "$got  $run, after $killed kills in total"
done
echo "$killed kills, all resumed; $runs runs with the same bits; at most $most steps repeated (checkpoint every $every)"
