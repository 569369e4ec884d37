#!/usr/bin/env bash
# Compares the training step of Attend and PyTorch. The two programs run alternately:
#   scripts/bench/train_vs_pytorch.sh [--quick] [--rounds 7] [--only CASE] [--corpus path/train]
# Cases: base, small, tiny, base-32k, luong, bahdanau, fixed, caption, ragged-base, …; or transformer, recurrent.
# Installs PyTorch into a temporary environment. If VENV is set, that environment is used and kept.
# --corpus adds cases with batches of real sentences: path/train.en and path/train.de, or with .gz.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/bench/venv.sh
venv 'import torch, safetensors' torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
cargo build --release --quiet -p attend-train --example step
"$VENV/bin/python" scripts/bench/train_vs_pytorch.py "$@"
