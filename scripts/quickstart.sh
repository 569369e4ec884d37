#!/usr/bin/env bash
# Runs the first command of the README, but writes to a temporary folder. Checks that test BLEU is at
# least 95 and that a sentence that is not in the corpus is translated correctly.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --release --quiet
start=$SECONDS
cargo run --release --bin train -- run configs/quickstart.toml --set "out=$out/quickstart" | tee "$out/result"
echo "trained and tested in $((SECONDS - start)) s"

bleu=$(sed -n 's/^ *BLEU[^=]*= \([0-9.]*\) .*/\1/p' "$out/result" | head -n 1)
if ! awk -v bleu="$bleu" 'BEGIN { exit !(bleu >= 95) }'; then
  echo "test BLEU is ${bleu:-missing}; expected at least 95" >&2
  exit 1
fi

german=$(echo "the old man sees the small dog" | cargo run --release --bin infer -- translate "$out/quickstart")
echo "the old man sees the small dog: $german"
if [ "$german" != "der alte Mann sieht den kleinen Hund" ]; then
  echo "wrong translation; expected: der alte Mann sieht den kleinen Hund" >&2
  exit 1
fi
