#!/usr/bin/env bash
# Compares two ranks of one thread with one process of two threads, for Attend (over MPI) and for PyTorch
# (DistributedDataParallel over gloo). The four take turns:
#   scripts/bench/ranks.sh [--quick] [--rounds 7] [--only base]
# Needs MPI, and installs PyTorch into a temporary environment. If VENV is set, that environment is used and kept.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/bench/venv.sh
venv 'import torch, safetensors' torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
if mpirun --version 2>&1 | grep -q "Open MPI"; then
  export MPI_PKG_CONFIG=${MPI_PKG_CONFIG:-ompi}
fi
cargo build --release --quiet -p attend-train --features mpi --example step
cargo build --release --quiet -p attend-comm --features mpi --example ranks
"$VENV/bin/python" scripts/bench/ranks.py "$@"
