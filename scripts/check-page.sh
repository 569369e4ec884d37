#!/usr/bin/env bash
# Checks the page of `infer serve` with axe-core, in light and dark and at the width of a phone, in every state that
# it has, and takes the screenshots in docs/page:
#   scripts/check-page.sh RUN…         two runs from English to German show all of it; a RUN may be written en-de=RUN
# Needs Node.js, Chromium and a network: npm packages are installed into a temporary folder.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: scripts/check-page.sh RUN…" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
export CHROMIUM
cargo build --release --quiet --manifest-path "$root/Cargo.toml" --bin infer

work=$(mktemp -d)
server=
cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
npm install --silent --no-audit --no-fund --prefix "$work" playwright-core@1.65 axe-core@4.14 >/dev/null

"${CARGO_TARGET_DIR:-$root/target}/release/infer" serve --port 0 "$@" 2> "$work/log" &
server=$!
address=
for _ in $(seq 300); do
  address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$work/log" | head -n 1 || true)
  if [ -n "$address" ]; then break; fi
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$work/log" >&2
    exit 1
  fi
  sleep 0.1
done

mkdir -p "$root/docs/page"
cp "$root/scripts/check-page.mjs" "$work" # where it finds the packages
node "$work/check-page.mjs" "$address" "$root/docs/page"
ls -l "$root/docs/page"
