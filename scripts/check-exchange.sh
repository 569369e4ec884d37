#!/usr/bin/env bash
# Runs the commands of README.md's section "From and to Hugging Face" as they are written there, with a hub on
# loopback in place of the real one. Trainings are shortened. Takes some seconds after the build.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# The same features as `cargo test --workspace`, so that nothing is built twice.
cargo build --release --quiet --workspace --bins --example serve --features attend-hub/testing

work=$(mktemp -d)
cleanup() {
  kill "$hub" 2>/dev/null || true
  rm -rf "$work"
}
hub=
trap cleanup EXIT
mkfifo "$work/hold"
target/release/examples/serve Helsinki-NLP/opus-mt-en-de=crates/infer/tests/golden/marian/relu \
  < "$work/hold" > "$work/endpoint" &
hub=$!
exec 9> "$work/hold" # the hub serves until this is closed
for _ in $(seq 100); do
  if [ -s "$work/endpoint" ]; then break; fi
  sleep 0.1
done

export HF_ENDPOINT HF_HOME=$work/home HF_TOKEN=hf_token PATH=$root/target/release:$PATH
HF_ENDPOINT=$(cat "$work/endpoint")
cd "$work"
ln -s "$root/configs" "$root/data" .
head -n 5 data/quickstart/test.en > news.en
commands=$(awk '/^## / { inside = ($0 == "## From and to Hugging Face") } inside' "$root/README.md" |
  awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' | sed 's/ *#.*//')
count=0
while IFS= read -r command; do
  if [ -z "$command" ]; then continue; fi
  case $command in
    "train run"*) command+=" --set train.steps=4 --set train.validate_every=0 --set train.save_every=0" ;;
    "infer push"*) command+=" --yes" ;;
  esac
  echo "+ $command"
  if ! bash -c "$command" < /dev/null > output 2>&1; then
    cat output >&2
    exit 1
  fi
  count=$((count + 1))
done <<< "$commands"
[ "$count" -ge 5 ] || { echo "README.md has only $count commands to check" >&2; exit 1; }
exec 9>&-
echo "all $count commands of the section work"
