#!/usr/bin/env bash
# Checks that clients which others wrote can talk to `infer serve`: libretranslatepy, which sends forms, and
# libretranslate-ts, which sends JSON. They are installed in a temporary folder, so this needs a network, python3
# and npm.
# `scripts/check-serve.sh [RUN]`: RUN translates from English to German. Without it, a tiny model with random weights.
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-crates/infer/tests/golden/marian/relu}
infer=${INFER:-}
if [ -z "$infer" ]; then
  cargo build --release --quiet -p attend-infer --bin infer
  infer=${CARGO_TARGET_DIR:-target}/release/infer
fi
for program in python3 npm node; do
  command -v "$program" >/dev/null || { echo "$program is needed" >&2; exit 1; }
done

work=$(mktemp -d)
server=
cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
key=check-$$-key
echo "$key" > "$work/keys"
"$infer" serve "en-de=$run" --port 0 --api-key-file "$work/keys" 2> "$work/log" &
server=$!
for _ in $(seq 300); do
  url=$(sed -n 's/.*listening on //p' "$work/log")
  if [ -n "$url" ]; then break; fi
  kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done

text="Two dogs play in the snow."
expected=$(echo "$text" | "$infer" translate "$run" 2>/dev/null)

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check libretranslatepy==2.1.4
"$work/venv/bin/python" - "$url" "$key" "$text" "$expected" <<'PYTHON'
import sys
import urllib.error

from libretranslatepy import LibreTranslateAPI

url, key, text, expected = sys.argv[1:]
api = LibreTranslateAPI(url + "/", api_key=key)
assert api.translate(text, "en", "de") == expected, api.translate(text, "en", "de")
assert api.translate(text, "auto", "de") == expected
assert api.languages() == [{"code": "en", "name": "English", "targets": ["de"]}], api.languages()
assert api.detect("Der Hund sieht eine kleine Katze im Haus.")[0]["language"] == "de"
try:
    LibreTranslateAPI(url + "/", api_key="wrong").translate(text, "en", "de")
    sys.exit("a wrong key was accepted")
except urllib.error.HTTPError as error:
    assert error.code == 403, error
try:
    api.translate(text, "en", "xx")
    sys.exit("an unknown language was accepted")
except urllib.error.HTTPError as error:
    assert error.code == 400, error
print("libretranslatepy: ok")
PYTHON

cd "$work"
npm install --silent --no-fund --no-audit --prefix "$work" libretranslate-ts@0.5.12 >/dev/null
cat > check.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { createRequire } from "node:module";

const { libreTranslate: client } = createRequire(import.meta.url)("libretranslate-ts");
const [url, key, text, expected] = process.argv.slice(2);
client.setApiEndpoint(url);
client.setApiKey(key);
const translated = await client.translate(text, "en", "de", 2);
assert.equal(translated.translatedText, expected, JSON.stringify(translated));
assert.ok(Array.isArray(translated.alternatives), JSON.stringify(translated));
const languages = await client.listLanguages();
assert.equal(languages[0].code, "en", JSON.stringify(languages));
const detected = await client.detect("Der Hund sieht eine kleine Katze im Haus.");
assert.equal(detected.language, "de", JSON.stringify(detected));
client.setApiKey("wrong");
const refused = await client.translate(text, "en", "de");
assert.ok(refused.error, JSON.stringify(refused));
console.log("libretranslate-ts: ok");
JAVASCRIPT
node check.mjs "$url" "$key" "$text" "$expected"

kill "$server"
wait "$server" && server=
if grep -q -e "$key" -e "$text" "$work/log"; then
  echo "the log has what clients sent" >&2
  exit 1
fi
echo "clients of LibreTranslate work with $run"
