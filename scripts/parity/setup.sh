# Sourced by the other scripts in this folder, from the root of the repository: builds Attend's programs and
# installs what it is compared with. VENV is honoured; NO_BUILD=1 skips the build.
PEERS="torch==2.15.0 transformers==5.22.2 safetensors==0.8.0 numpy==2.4.6 ctranslate2==4.8.4
  sentencepiece==0.2.3 sacremoses==0.2.0 sacrebleu==2.6.0"

. scripts/bench/venv.sh
# shellcheck disable=SC2086
venv 'import torch, transformers, safetensors, ctranslate2, sentencepiece, sacremoses, sacrebleu' $PEERS
if [ -z "${NO_BUILD:-}" ]; then
  cargo build --release --quiet --bin infer --bin train
  cargo build --release --quiet -p attend-infer --example tokens
fi

# Nothing is fetched, and no file is left beside the scripts.
exec_python() { HF_HUB_OFFLINE=1 "$VENV/bin/python" -B "$@"; }
