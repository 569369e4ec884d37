#!/usr/bin/env bash
# Type-checks both binaries with CUDA on a machine that need not have a GPU, nor CUDA: the compiler
# for candle's kernels comes from Python packages, into a temporary environment. About ten minutes.
# The versions go together: headers of another release than the compiler's are refused.
# It shows that the CUDA build compiles, not that it runs.
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

cargo check --release --features cuda -p attend-train -p attend-infer --bins \
  --target-dir "${CHECK_CUDA_TARGET:-$work/target}"
echo "both binaries type-check with CUDA"
