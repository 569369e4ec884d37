#!/usr/bin/env bash
# Compares transformers, CTranslate2 and Attend on random MarianMT models that transformers makes:
#   scripts/parity/marian.sh [--corpus PREFIX] [--sentences N] [--quick]
# README.md in this folder describes what is compared. --help lists all options.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/parity/setup.sh
exec_python scripts/parity/marian.py "$@"
