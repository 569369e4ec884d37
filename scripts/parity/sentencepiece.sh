#!/usr/bin/env bash
# Compares the segmentation of SentencePiece models with that of the `sentencepiece` package:
#   scripts/parity/sentencepiece.sh [--corpus PREFIX] [--strings N]
#
# Trains a model of each kind on PREFIX.* (two text files, or two .gz files; data/quickstart/train unless told
# otherwise), and segments and decodes N strings (2,000), most of them odd, with both. Prints how many are equal,
# and exits with 1 if one differs, unless it is a unigram segmentation of the same score. Uses the Python
# environment $VENV if it is set.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/bench/venv.sh
venv 'import sentencepiece' sentencepiece==0.2.3
cargo build --quiet --release -p attend-data --example pieces
"$VENV/bin/python" -B scripts/parity/segmentation.py "$@"
