"""Writes tiny MarianMT and Pegasus folders and what transformers makes of them, for tests without Python.

    crates/infer/tests/golden/marian/<variant>/...   as transformers saves them
    crates/infer/tests/golden/marian/expected.json   sentences, source ids, tokens and scores

Run from the root of the repository with the packages in README.md; with those versions, repeated runs write
the same files, except legacy_bin/pytorch_model.bin, in which torch names storages by their address. Weights are stored as float32 in `relu` and `pegasus` and as float16 elsewhere. All results are
computed from the stored values in float64; float32 gives the same tokens. No decision of any search is closer
than 1e-4. `score` is log-probability / tokens, and `</s>` at the limit is forced, with log-probability 0.
"""

import contextlib
import json
from pathlib import Path

import torch
from models import Size, fresh, new_model, raise_eos, randomize, save, write_fast_tokenizer, write_tokenizer
from peers import BEAM, EARLY, GREEDY, ROOT, Transformers, quiet, read_lines
from judge import closest_decision

GOLDEN = ROOT / "crates/infer/tests/golden/marian"
CORPUS = ROOT / "data/quickstart/train"
SIZE = Size(24, 4, 40, 2, 120)
LIMIT = 14  # tokens, `</s>` included
MARGIN = 1e-4
SENTENCES = 12  # besides the odd ones
# Sentencepiece's own rules take 240 KB. These are a few of the same kind: from and to, as code points.
RULES = {"\u00a0": " ", "\u3000": " ", "\ufb01": "fi", "\uff21": "A", "e\u0301": "\u00e9", "\u2026": "..."}
ODD = [
    ">>de<< the dog sleeps.",
    "  two   spaces and a no\u00a0break space ",
    "the \ufb01ve \uff21pples, cafe\u0301 \u2026",
    "\u6771\u4eac \U0001f642 the dog",
    "1,000.50 - x_y % 'quoted'",
    ">>xx<< a cat",
]

# The search for varied outputs starts at these seeds, which have them.
VARIANTS = {
    "relu": dict(seed=7),
    "swish": dict(seed=2, activation="swish", dtype=torch.float16),
    "gelu_bias": dict(seed=2, activation="gelu", logits_bias=True, dtype=torch.float16),
    "separate": dict(seed=7, separate=True, dtype=torch.float16),
    "old_style": dict(seed=2, activation="swish", old=True, weights="zip", dtype=torch.float16),
    "legacy_bin": dict(seed=7, weights="legacy", dtype=torch.float16),
    "pegasus": dict(seed=1, norm="pre"),
}


def tokenizer(folder, english, german, separate=False, norm="post", **_):
    """The tokenizer's files; the sizes of the vocabularies. Sentencepiece stores the path of its rules, so that
    is relative."""
    if norm == "pre":
        return write_fast_tokenizer(folder, english + german, 2 * SIZE.pieces)
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    with contextlib.chdir(folder):
        rules = Path("rules.tsv")
        rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
        sizes = write_tokenizer(
            Path(), english, german, SIZE.pieces, separate, normalization_rule_tsv=str(rules)
        )
        rules.unlink()
    return sizes


def to_old_style(folder):
    """What older versions wrote: one file for the model and how to generate, and names since replaced."""
    config = json.loads((folder / "config.json").read_text())
    generation = json.loads((folder / "generation_config.json").read_text())
    for key in ("bad_words_ids", "max_length", "num_beams", "forced_eos_token_id"):
        config[key] = generation[key]
    for key in ("decoder_vocab_size", "share_encoder_decoder_embeddings", "tie_word_embeddings"):
        del config[key]  # younger than many models
    config |= {"torch_dtype": config.pop("dtype"), "normalize_before": False, "normalize_embedding": False}
    config |= {"add_final_layer_norm": False, "static_position_embeddings": True, "num_hidden_layers": 2}
    config["transformers_version"] = "4.10.0"
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "generation_config.json").unlink()


def make(folder, seed, lines, vocabularies, old=False, weights="safetensors", dtype=None, logits_bias=False, **kind):
    """Writes a model; returns it as loaded in float64, and the ids of the sentences."""
    model = new_model(SIZE, vocabularies, positions=64, **kind)
    randomize(model, seed, logits_bias=logits_bias)
    save(model, folder)
    sources = Transformers(folder).encode(lines)
    raise_eos(model, sources[:16], LIMIT, rate=0.2)
    save(model, folder, weights, dtype)
    if old:
        to_old_style(folder)
    return Transformers(folder, torch.float64), sources


def expected(exact, lines, sources):
    """For each search the outputs, of those sentences that no rounding error can change; None if the model is
    not interesting enough."""
    clear = [
        i
        for i, source in enumerate(sources)
        if min(closest_decision(exact, source, search, LIMIT) for search in (GREEDY, BEAM, EARLY)) > MARGIN
    ]
    # As many sentences as are wanted, the odd ones first.
    clear = [i for i in clear if i < len(ODD)] + [i for i in clear if i >= len(ODD)][:SENTENCES]
    lines, sources = [lines[i] for i in clear], [sources[i] for i in clear]
    searches = {s: exact.translate(sources, s, LIMIT) for s in (GREEDY, BEAM, EARLY)}
    single = Transformers(exact.folder)
    for search, outputs in searches.items():
        for a, b in zip(outputs, single.translate(sources, search, LIMIT), strict=True):
            assert a.tokens == b.tokens and abs(a.score - b.score) < 1e-5, (search, a, b)
    greedy, beam, early = searches.values()
    distinct = len({tuple(output.tokens) for output in beam})
    cut = sum(output.cut for output in beam)
    changed = [sum(a.tokens != b.tokens for a, b in zip(beam, other)) for other in (greedy, early)]
    print(
        f"{len(lines)} sentences, {distinct} distinct, {cut} cut, {changed[0]} unlike greedy search, "
        f"{changed[1]} unlike early stopping",
        flush=True,
    )
    if len(lines) < SENTENCES or distinct < 0.8 * len(lines) or min(changed) < 2 or not 1 <= cut <= len(lines) / 2:
        return None
    texts = exact.tokenizer.batch_decode([output.tokens for output in beam], skip_special_tokens=True)
    return [
        {"text": line, "source": source, "translation": text}
        | {
            name: {"tokens": output.tokens, "score": round(output.score, 6)}
            for name, output in zip(("greedy", "beam", "early"), outputs)
        }
        for line, source, text, *outputs in zip(lines, sources, texts, greedy, beam, early)
    ]


def main():
    quiet()
    torch.set_num_threads(1)
    english, german = read_lines(CORPUS, "en"), read_lines(CORPUS, "de")
    lines = ODD + read_lines(ROOT / "data/quickstart/test", "en", 40)
    results = {}
    for variant, options in VARIANTS.items():
        folder = fresh(GOLDEN / variant)
        vocabularies = tokenizer(folder, english, german, **options)
        first = options.pop("seed")
        for seed in range(first, first + 50):
            exact, sources = make(folder, seed, lines, vocabularies, **options)
            print(f"{variant}: vocabularies {vocabularies}, seed {seed}", end=", ")
            if (found := expected(exact, lines, sources)) is not None:
                break
        else:
            raise SystemExit(f"{variant}: no seed gives varied outputs")
        results[variant] = found
    write(results)


def write(results):
    """One line per sentence, for a short file with readable diffs."""
    parts = []
    for variant, sentences in results.items():
        rows = ",\n".join(json.dumps(s, ensure_ascii=False, separators=(",", ":")) for s in sentences)
        parts.append(f'"{variant}": [\n{rows}\n]')
    head = f'"limit": {LIMIT},\n"beam": {BEAM.beam},\n"variants": {{\n'
    (GOLDEN / "expected.json").write_text("{\n" + head + ",\n".join(parts) + "\n}\n}\n")
    json.loads((GOLDEN / "expected.json").read_text())
    sizes = [path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()]
    print(f"{len(sizes)} files, {sum(sizes)} bytes")
    assert sum(sizes) < 1_000_000


if __name__ == "__main__":
    main()
