#!/usr/bin/env bash
# Attend's training step against PyTorch's, in turns:
#   scripts/bench/train_vs_pytorch.sh [--quick] [--rounds 7] [--only base] [--corpus path/train]
# Installs PyTorch into a temporary environment; with VENV set, into that one, and keeps it.
# --corpus adds batches of real sentences: path/train.en and path/train.de, or with .gz.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${VENV:-}" ]; then
  VENV=$(mktemp -d)
  trap 'rm -rf "$VENV"' EXIT
fi
if [ ! -x "$VENV/bin/python" ]; then
  python3 -m venv "$VENV"
fi
if ! "$VENV/bin/python" -c 'import torch, safetensors' 2>/dev/null; then
  "$VENV/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
fi
cargo build --release --quiet -p attend-train --example step
"$VENV/bin/python" scripts/bench/train_vs_pytorch.py "$@"
