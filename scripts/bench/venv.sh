# For the other scripts here: `. scripts/bench/venv.sh; venv 'import torch' torch==2.15.0` makes $VENV a
# Python environment in which the first argument runs, with the packages that follow. It is a temporary
# one, unless VENV is set: then it is that one, and is kept.
venv() {
  local works=$1
  shift
  if [ -z "${VENV:-}" ]; then
    VENV=$(mktemp -d)
    trap 'rm -rf "$VENV"' EXIT
  fi
  if [ ! -x "$VENV/bin/python" ]; then
    python3 -m venv "$VENV"
  fi
  if ! "$VENV/bin/python" -c "$works" 2>/dev/null; then
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "$@"
  fi
}
