#!/usr/bin/env bash
# Runs the first command of the README, but writes to a temporary folder. Checks that test BLEU is at
# least 95 and that a sentence that is not in the corpus is translated correctly, by `infer translate` and, if python3 is
# installed, by `infer serve` under load.
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

# The same model behind a server: whatever the load, its answers are what `infer translate` prints.
if command -v python3 >/dev/null; then
  python3 scripts/bench/serve.py --model "$out/quickstart" --input data/quickstart/test.en \
    --clients 16 --warm-up 1 --seconds 3 --no-ctranslate2
fi
