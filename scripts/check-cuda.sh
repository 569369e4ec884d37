#!/usr/bin/env bash
# Type-checks both binaries with the features `cuda` and `nccl`, and the communication with `nccl` and `mpi` too if there
# is MPI. Needs neither a GPU nor an installed CUDA toolkit:
# nvcc, which candle's kernels need, is installed from Python packages into a temporary environment.
# Takes about ten minutes. The pinned versions must match: nvcc rejects headers of another release.
# This checks that the CUDA build compiles, not that it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
  nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
  'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' 'nvidia-cuda-nvrtc==13.0.*' \
  nvidia-cublas nvidia-curand

cuda=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13)
export CUDA_HOME="$cuda" CUDA_PATH="$cuda" CUDA_ROOT="$cuda" CUDA_TOOLKIT_ROOT_DIR="$cuda"
export PATH="$cuda/bin:$PATH" CUDA_COMPUTE_CAP=80
nvcc --version | tail -n 2

export CARGO_TARGET_DIR=${CHECK_CUDA_TARGET:-$work/target}
cargo check --release --features cuda -p attend-train -p attend-infer --bins
cargo check --release --features nccl -p attend-train -p attend-infer --bins
if command -v mpicc >/dev/null; then
  cargo check --release --features nccl,mpi -p attend-comm
fi
echo "both binaries type-check with CUDA"
