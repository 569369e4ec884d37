#!/usr/bin/env bash
# Compares the training speed of Attend and Marian on the same text. The two programs run alternately:
#   scripts/bench/train_vs_marian.sh [--quick] [--rounds 3] [--only base] [--corpus path/train]
# Installs Marian (the package pymarian, a 600 MB download, for Python 3.11 and 3.12) into a temporary
# environment. If VENV is set, that environment is used and kept.
# --corpus path/train reads path/train.en and path/train.de, or the same names with .gz.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/bench/venv.sh
# Marian itself is pymarian. The other packages count the corpus tokens and the parameters.
venv 'import pymarian, sentencepiece, tokenizers, numpy' pymarian==1.12.42 sentencepiece==0.2.2 \
  tokenizers==0.23.3 numpy==2.4.6
cargo build --release --quiet -p attend-train --bin train
"$VENV/bin/python" scripts/bench/train_vs_marian.py "$@"
