#!/usr/bin/env bash
# Compares the decoding speed of Attend and CTranslate2 on the same models. The programs run alternately:
#   scripts/bench/decode_vs_ctranslate2.sh [--full] [--rounds 3] [--folder FOLDER] [--model RUN --input FILE]
# Without --model: a base-size model with random weights, 20 tokens per sentence. --model RUN --input FILE
# adds a trained model on real text, with `infer translate` as a whole program.
# Installs CTranslate2 into a temporary environment. If VENV is set, that environment is used and kept.
# The machine must be idle: CTranslate2's threads wait for each other, so another program slows it down far
# more than its share of the processor.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/bench/venv.sh
# tokenizers reads the tokenizer of a run, for the tokens that CTranslate2 takes.
venv 'import ctranslate2, tokenizers, numpy' ctranslate2==4.8.4 tokenizers==0.23.3 numpy==2.4.6
cargo build --release --quiet -p attend-train --bin train
cargo build --release --quiet -p attend-infer --bin infer --example decode_speed
"$VENV/bin/python" scripts/bench/decode_vs_ctranslate2.py "$@"
