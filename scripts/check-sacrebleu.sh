#!/usr/bin/env bash
# Checks that `infer evaluate` and the sacrebleu command print the same scores for the same translations:
#   scripts/check-sacrebleu.sh RUN SOURCE REFERENCE
# Besides the given sentences, it scores empty lines, blank lines, unusual spacing and non-ASCII text.
set -euo pipefail
run=$1 source=$2 reference=$3
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check sacrebleu==2.6.0

read_text() { case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac; }
odd_sources() { printf '%s\n' '' '   ' $'a\tdog  runs ' 'the   old man' 'naïve café “quotes” …' '東京 мир 🙂' 'a b' '1,000.50-2 &quot;x&quot;'; }
odd_references() { printf '%s\n' 'ein Wort' '' $'ein\tHund  läuft ' '' 'naïve Café „Zitat“ …' '東京 мир 🙂' 'a b' '1,000.50-2 &quot;x&quot;'; }
{ read_text "$source"; odd_sources; } > "$work/source"
{ read_text "$reference"; odd_references; } > "$work/reference"

cargo build --release --quiet --manifest-path "$root/Cargo.toml" --bin infer
"$root/target/release/infer" evaluate "$run" --src "$work/source" --ref "$work/reference" \
  -o "$work/hypotheses" | tee "$work/ours"
"$work/venv/bin/sacrebleu" "$work/reference" -i "$work/hypotheses" -m bleu chrf -w 2 -f text > "$work/theirs"
cat "$work/theirs"

without_version() { sed -E 's/version:[^ ]*//; s/^ +//; s/ +/ /g' "$1"; }
if diff <(without_version "$work/ours") <(without_version "$work/theirs"); then
  echo "scores are equal on $(wc -l < "$work/hypotheses") lines"
else
  echo "scores differ" >&2
  exit 1
fi
