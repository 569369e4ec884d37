#!/usr/bin/env bash
# Kills `train prepare` with SIGKILL at random times. After each kill, the cache may hold whole entries and what was
# being made, and nothing else; at the end, and after every tenth kill, preparing once more must give the same
# files, byte for byte, as without a kill.
#   scripts/torture/prepare.sh [KILLS] [SEED]      default: 10 kills; 100 kills take about two minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
kills=${1:-10}
RANDOM=${2:-1}

cargo build --release --quiet --workspace --bin train --example large
train=$PWD/target/release/train large=$PWD/target/release/examples/large
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*" >&2; exit 1; }

"$large" corpus 60000
"$large" valid 500
cat >config.toml <<'TOML'
out = "run"
[data]
source = "en"
target = "de"
train = "corpus"
valid = "valid"
tokenizer = { vocab_size = 4000 }
clean = { duplicates = true }
augment = { subword_dropout = 0.1 }
TOML

# The hash of every file of every entry. Their folders are named by what they were made from.
hashes() { (cd "$1" && find . -path ./files -prune -o -type f -print | sort | xargs sha256sum); }
prepare() { "$train" prepare config.toml --set "data.cache=$1" --threads "$2"; }

start=$(date +%s%N)
prepare unbroken 2 >/dev/null 2>&1
length=$((($(date +%s%N) - start) / 1000000))
want=$(hashes unbroken)
entries=$(ls unbroken | grep -cE '^[0-9a-f]{32}$')
echo "$entries entries, made in $length ms"

killed=0 finished=0
while [ "$killed" -lt "$kills" ]; do
  prepare broken $((1 + RANDOM % 2)) >/dev/null 2>talk &
  pid=$!
  wait=$((RANDOM % (length + 1)))
  sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
  kill -KILL $pid 2>/dev/null || true
  status=0
  wait $pid 2>/dev/null || status=$?
  case $status in
    0) finished=$((finished + 1)) ;;
    137) killed=$((killed + 1)) ;;
    *) fail "after $killed kills: $(cat talk)" ;;
  esac
  [ -d broken ] || continue
  # An entry that has its place is whole.
  for entry in $(ls broken | grep -E '^[0-9a-f]{32}$' || true); do
    got=$(cd broken && find "./$entry" -type f | sort | xargs sha256sum)
    [ "$got" = "$(grep -F "./$entry/" <<<"$want")" ] || fail "after $killed kills: $entry is not whole"
  done
  if [ "$status" = 0 ] || [ $((killed % 10)) = 0 ]; then
    prepare broken 2 >/dev/null 2>talk || fail "after $killed kills: $(cat talk)"
    [ "$(hashes broken)" = "$want" ] || fail "after $killed kills: other files"
    rm -rf broken
  fi
done
prepare broken 2 >/dev/null 2>talk || fail "$(cat talk)"
[ "$(hashes broken)" = "$want" ] || fail "other files"
echo "$killed kills: every entry was whole or absent, and the next start made the same files"
