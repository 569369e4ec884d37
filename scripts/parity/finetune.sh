#!/usr/bin/env bash
# Fine-tunes a model that has been through transformers, and measures what it gains:
#   scripts/parity/finetune.sh [--base RUN] [--train PREFIX] [--valid PREFIX] [--test PREFIX] [--old-test PREFIX]
#                              [--steps N] [--sentences N] [--out DIR] [-- --set KEY=VALUE ...]
#
# RUN, trained on some corpus A, is exported, loaded and saved again by transformers, and fine-tuned on the first
# N pairs (5,000) of --train, corpus B. A model of the same size is trained from scratch on the same pairs, with the
# same config and number of steps. All three translate B's test set and A's (--old-test). Fine-tuning must raise
# BLEU on B's test set with p < 0.05 by sacreBLEU's paired bootstrap, above the model trained from scratch. Then
# everything is frozen but one matrix: only that one may change, bit for bit.
#
# Languages are en and de. Without --valid, the last 200 of the N pairs are held out for it. Without --base, a small
# model is trained on data/quickstart. What follows -- is passed to both trainings.
set -euo pipefail
cd "$(dirname "$0")/../.."
base='' train=data/quickstart/joined valid='' test=data/quickstart/long old_test=data/quickstart/test
steps=300 sentences=5000 out=''
while [ $# -gt 0 ]; do
  case $1 in
    --base) base=$2 ;;
    --train) train=$2 ;;
    --valid) valid=$2 ;;
    --test) test=$2 ;;
    --old-test) old_test=$2 ;;
    --steps) steps=$2 ;;
    --sentences) sentences=$2 ;;
    --out) out=$2 ;;
    --) shift; break ;;
    *) echo "unknown option $1; the options are at the top of $0" >&2; exit 2 ;;
  esac
  shift 2
done
temporary_venv=${VENV:+no}
. scripts/parity/setup.sh

work=${out:-$(mktemp -d)}
mkdir -p "$work"
cleanup() {
  if [ -z "$out" ]; then rm -rf "$work"; fi
  if [ -z "$temporary_venv" ]; then rm -rf "$VENV"; fi
}
trap cleanup EXIT
bin=target/release
matrix=model.encoder.layers.0.fc1.weight

file_of() { if [ -f "$1.$2" ]; then echo "$1.$2"; else echo "$1.$2.gz"; fi; }
text_of() { gzip -dcf "$(file_of "$1" "$2")"; }

# The pairs of corpus B.
for language in en de; do
  text_of "$train" $language | sed -n "1,${sentences}p" > "$work/all.$language"
  if [ -n "$valid" ]; then
    cp "$work/all.$language" "$work/train.$language"
    text_of "$valid" $language > "$work/valid.$language"
  else
    head -n -200 "$work/all.$language" > "$work/train.$language"
    tail -n 200 "$work/all.$language" > "$work/valid.$language"
  fi
done
echo "fine-tuning on $(wc -l < "$work/train.en") pairs of $train"

if [ -z "$base" ]; then
  base=$work/base
  $bin/train run configs/quickstart.toml --overwrite --set out="$base" --set train.steps=600 \
    --set train.validate_every=300 --set train.save_every=300
fi

# Out of Attend, through transformers, and back.
$bin/infer export "$base" --to hf -o "$work/hf"
exec_python - "$work/hf" "$work/again" <<'PYTHON'
import sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
source, target = sys.argv[1:]
AutoModelForSeq2SeqLM.from_pretrained(source).save_pretrained(target)
AutoTokenizer.from_pretrained(source).save_pretrained(target)
PYTHON

# Trains with the base model's config: adapt NAME STEPS [OPTION ...].
adapt() {
  local name=$1 count=$2
  shift 2
  $bin/train run "$base/config.toml" --overwrite --set out="$work/$name" \
    --set data.train="$work/train" --set data.valid="$work/valid" --set data.test="$work/valid" \
    --set train.steps="$count" --set train.validate_every="$count" --set train.save_every="$count" "$@"
}
# The tokenizer is that of the model.
from_base=(--set train.init="$work/again" --set "data.tokenizer={}")
adapt tuned "$steps" "${from_base[@]}" "$@"
adapt scratch "$steps" "$@"

score() {
  local prefix=$1 name=$2 run
  text_of "$prefix" de > "$work/$name.ref"
  for run in base tuned scratch; do
    local folder=$work/$run
    if [ $run = base ]; then folder=$base; fi
    $bin/infer evaluate "$folder" --src "$(file_of "$prefix" en)" --ref "$work/$name.ref" \
      -o "$work/$name.$run" > "$work/$name.$run.score"
  done
  local systems=("$work/$name.base" "$work/$name.tuned" "$work/$name.scratch")
  "$VENV/bin/sacrebleu" "$work/$name.ref" -m bleu chrf --paired-bs -f text -i "${systems[@]}"
  # The command writes no JSON of this test with NumPy 2.
  exec_python - "$work/$name.ref" "${systems[@]}" > "$work/$name.json" <<'PYTHON'
import json, sys
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
reference, *systems = sys.argv[1:]
def lines(path):
    return open(path, encoding="utf-8").read().split("\n")[:-1]
named = [(name, lines(name)) for name in systems]
_, scores = PairedTest(named, {"BLEU": BLEU()}, references=[lines(reference)], test_type="bs")()
results = [{"score": float(result.score), "p_value": float(result.p_value or 0)} for result in scores["BLEU"]]
print(json.dumps([{"BLEU": result} for result in results]))
PYTHON
}
echo "== $test, the new domain"
score "$test" new
echo "== $old_test, the old domain"
score "$old_test" old

# Everything frozen but one matrix.
frozen=$(exec_python scripts/parity/tensors.py others "$base" $matrix)
adapt frozen 10 "${from_base[@]}" --set train.freeze="$frozen"
changed=$(exec_python scripts/parity/tensors.py changed "$base" "$work/frozen/last")
echo "frozen but $matrix, changed: ${changed:-nothing}"

exec_python - "$work/new.json" "$changed" "$matrix" <<'PYTHON'
import json, sys
systems, changed, matrix = json.load(open(sys.argv[1])), *sys.argv[2:]
base, tuned, scratch = (system["BLEU"] for system in systems)
failed = []
if not (tuned["score"] > base["score"] and tuned["p_value"] < 0.05):
    failed.append(f"BLEU {base['score']:.2f} before and {tuned['score']:.2f} after, p = {tuned['p_value']:.3f}")
if not tuned["score"] > scratch["score"]:
    failed.append(f"BLEU {tuned['score']:.2f} fine-tuned and {scratch['score']:.2f} from scratch")
if changed != matrix:
    failed.append("other tensors than the matrix changed, or it did not")
for failure in failed:
    print(f"FAILED: {failure}", file=sys.stderr)
print(f"p = {tuned['p_value']:.4f}")
sys.exit(bool(failed))
PYTHON
echo "all criteria met"
