#!/usr/bin/env bash
# Exports a trained model to Hugging Face and CTranslate2, and compares the translations of all three:
#   scripts/parity/export.sh RUN [--corpus PREFIX] [--sentences N]
# README.md in this folder describes what is compared. --help lists all options.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/parity/setup.sh
exec_python scripts/parity/export.py "$@"
