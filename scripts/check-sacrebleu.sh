#!/usr/bin/env bash
# Checks that `infer evaluate` and the sacrebleu command print the same scores for the same translations, and that
# `infer compare` has the intervals and p-values of sacreBLEU's paired tests:
#   scripts/check-sacrebleu.sh RUN SOURCE REFERENCE [OTHER_RUN]
# Besides the given sentences, it scores empty lines, blank lines, unusual spacing and non-ASCII text. Without
# OTHER_RUN, the second system is RUN with greedy search. SACREBLEU_PYTHON names a Python that has sacreBLEU already.
set -euo pipefail
run=$1 source=$2 reference=$3 other=${4-}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=${SACREBLEU_PYTHON-}
if [ -z "$python" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check sacrebleu==2.6.0
  python=$work/venv/bin/python
fi

read_text() { case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac; }
odd_sources() { printf '%s\n' '' '   ' $'a\tdog  runs ' 'the   old man' 'naïve café “quotes” …' '東京 мир 🙂' 'a b' '1,000.50-2 &quot;x&quot;'; }
odd_references() { printf '%s\n' 'ein Wort' '' $'ein\tHund  läuft ' '' 'naïve Café „Zitat“ …' '東京 мир 🙂' 'a b' '1,000.50-2 &quot;x&quot;'; }
{ read_text "$source"; odd_sources; } > "$work/source"
{ read_text "$reference"; odd_references; } > "$work/reference"

infer=${ATTEND_INFER-}
if [ -z "$infer" ]; then
  cargo build --release --quiet --manifest-path "$root/Cargo.toml" --bin infer
  infer=$root/target/release/infer
fi
options=(--metrics bleu,chrf,ter --confidence)
"$infer" evaluate "$run" --src "$work/source" --ref "$work/reference" -o "$work/hypotheses" "${options[@]}" \
  | tee "$work/ours"
NO_COLOR=1 "$python" -m sacrebleu "$work/reference" -i "$work/hypotheses" -m bleu chrf ter -w 2 -f text --confidence \
  > "$work/theirs"
cat "$work/theirs"

without_version() { sed -E 's/version:[^ ]*//; s/^ +//; s/ +/ /g' "$1"; }
if diff <(without_version "$work/ours") <(without_version "$work/theirs"); then
  echo "scores are equal on $(wc -l < "$work/hypotheses") lines"
else
  echo "scores differ" >&2
  exit 1
fi

if [ -n "$other" ]; then
  "$infer" translate "$other" "$work/source" -o "$work/other"
else
  "$infer" translate "$run" "$work/source" --greedy -o "$work/other"
fi
for tokenize in 13a intl; do
  "$infer" compare "$work/hypotheses" "$work/other" --ref "$work/reference" --tokenize $tokenize --test both --json \
    > "$work/compared.json"
  "$python" - "$work" $tokenize <<'PYTHON'
import json
import sys
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

folder, tokenize = sys.argv[1:]
lines = lambda name: [line.rstrip() for line in Path(folder, name).read_text(encoding="utf-8").split("\n")[:-1]]
ours = json.loads(Path(folder, "compared.json").read_text(encoding="utf-8"))
systems = [(name, lines(name)) for name in ("hypotheses", "other")]
worst = 0.0
for test, name in (("bs", "bootstrap"), ("ar", "randomization")):
    metrics = {"BLEU": BLEU(tokenize=tokenize), "CHRF": CHRF(), "CHRF++": CHRF(word_order=2), "TER": TER()}
    _, results = PairedTest(systems, metrics, [lines("reference")], test, 0)()
    for i, system in enumerate(ours["systems"]):
        for result in system["results"]:
            theirs = results[result["metric"]][i]
            pairs = [(result["score"], theirs.score)]
            if test == "bs":
                pairs += [(result["mean"], theirs.mean), (result["half_width"], theirs.ci)]
            worst = max([worst] + [abs(a - float(b)) for a, b in pairs])
            if i > 0 and result[name]["p"] != theirs.p_value:
                sys.exit(f"{result['metric']}, {name}: p = {result[name]['p']}, not {theirs.p_value}")
if worst > 1e-6:
    sys.exit(f"scores, means or intervals differ by {worst}")
print(f"{tokenize}: all p-values are equal, and scores, means and intervals to {worst:.1e}")
PYTHON
done
