#!/usr/bin/env bash
# Attend's training against Marian's, in turns, both from the same text:
#   scripts/bench/train_vs_marian.sh [--quick] [--rounds 3] [--only base] [--corpus path/train]
# Installs Marian (the package pymarian, a 600 MB download, for Python 3.11 and 3.12) into a
# temporary environment; with VENV set, into that one, and keeps it.
# --corpus is path/train.en and path/train.de, or with .gz.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/bench/venv.sh
# All but the first only count: the tokens of the corpus, and the parameters.
venv 'import pymarian, sentencepiece, tokenizers, numpy' pymarian==1.12.42 sentencepiece==0.2.2 \
  tokenizers==0.23.3 numpy==2.4.6
cargo build --release --quiet -p attend-train --bin train
"$VENV/bin/python" scripts/bench/train_vs_marian.py "$@"
