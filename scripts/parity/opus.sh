#!/usr/bin/env bash
# Imports ten public opus-mt models, and compares their translations of 20 sentences with transformers':
#   scripts/parity/opus.sh [--models OWNER/NAME ...]
# The only script here that uses the network: models are fetched into the cache of Hugging Face (HF_HOME). It
# says which could not be fetched, and ends with "not run: no network" and success if none could.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/parity/setup.sh
HF_HUB_OFFLINE=${HF_HUB_OFFLINE:-0} "$VENV/bin/python" -B scripts/parity/opus.py "$@"
