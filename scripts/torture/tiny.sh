# Sourced by the other scripts in this folder: `. scripts/torture/tiny.sh`. Builds the trainer ($train),
# creates a temporary folder with the first sentences of the quickstart corpus and a config that trains in
# a second or two, and changes to that folder.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --release --quiet --bin train
train=$PWD/target/release/train
for set in train:600 valid:20 test:20; do
  for side in en de; do
    head -n "${set#*:}" "data/quickstart/${set%:*}.$side" >"$work/${set%:*}.$side"
  done
done
every=10 # steps between checkpoints
cat >"$work/config.toml" <<TOML
out = "unbroken"
[data]
source = "en"
target = "de"
train = "train"
valid = "valid"
test = "test"
batch_tokens = 150
[data.tokenizer]
vocab_size = 300
[model.transformer]
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
heads = 2
[train]
steps = 400
accumulate = 2
clip_norm = 1.0
moving_average = 0.99
validate_every = 90
translate_sentences = 5
save_every = $every
log_every = 1
keep = 2
TOML
cd "$work"

hash() { cat "$1"/last/model.safetensors "$1"/last/optimizer.safetensors | sha256sum | cut -c 1-64; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
