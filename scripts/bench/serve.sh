#!/usr/bin/env bash
# Puts `infer serve` under load, compares its throughput with `infer translate`, and, beside it, that of CTranslate2
# behind a plain FastAPI server:
#   scripts/bench/serve.sh --model RUN --input FILE [--clients 64] [--seconds 60] [--rounds 1] [--beam 4]
# With --no-ctranslate2, it needs nothing but Python. Otherwise it installs CTranslate2 and FastAPI into a temporary
# environment. If VENV is set, that environment is used and kept. The machine must be idle.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --workspace --features attend-train/full --bin infer
python=python3
case " $* " in
*" --no-ctranslate2 "*) ;;
*)
  . scripts/bench/venv.sh
  venv 'import ctranslate2, tokenizers, fastapi, uvicorn' \
    ctranslate2==4.8.4 tokenizers==0.23.3 fastapi uvicorn
  python=$VENV/bin/python
  ;;
esac
"$python" scripts/bench/serve.py "$@"
