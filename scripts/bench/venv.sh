# Sourced by the other scripts in this folder: `. scripts/bench/venv.sh; venv 'import torch' torch==2.15.0`
# sets $VENV to a Python environment. If the first argument fails to run in it, the packages that follow
# are installed. The environment is temporary, unless VENV was already set; then that one is used and kept.
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
