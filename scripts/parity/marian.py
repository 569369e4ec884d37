"""Random MarianMT models: transformers, CTranslate2 and Attend translate to the same tokens. See README.md."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import sentencepiece
from judge import Judge, Table
from models import Size, fresh, new_model, raise_eos, randomize, save, write_tokenizer
from peers import SEARCHES, Attend, CTranslate2, Transformers, convert, infer, quiet, read_lines

VARIANTS = {
    "relu": dict(),
    "swish": dict(activation="swish"),
    "bias": dict(logits_bias=True),
    "bin": dict(weights="zip"),
    "legacy bin": dict(weights="legacy"),
    "separate": dict(separate=True),
}
TRAINING_LINES = 30_000  # at most, for the tokenizers


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="data/quickstart/train", help="prefix of PREFIX.en and PREFIX.de")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--pieces", type=int, default=4500, help="of each language's tokenizer, at most")
    parser.add_argument("--max-length", type=int, default=24, help="of a translation, with </s>")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--d-model", type=int, default=512, help="width; 64 to a head, and 4 times as wide inside")
    parser.add_argument("--quick", action="store_true", help="2+2 layers of 64, 40 sentences")
    parser.add_argument("--peers-only", action="store_true", help="compare without Attend")
    parser.add_argument("--keep", type=Path, help="write the models to this folder and keep them")
    return parser.parse_args()


def make(folder, lines, args, seed, weights="safetensors", logits_bias=False, **kind):
    """Writes a random model and returns it as transformers loads it."""
    english, german = (read_lines(args.corpus, language, TRAINING_LINES) for language in ("en", "de"))
    d = args.d_model
    size = dict(d_model=d, heads=max(d // 64, 1), d_ff=4 * d, layers=6)
    if args.quick:
        size = dict(d_model=64, heads=4, d_ff=96, layers=2)
    size = Size(**size, pieces=args.pieces)
    vocabularies = write_tokenizer(folder, english, german, size.pieces, kind.get("separate", False))
    model = new_model(size, vocabularies, **kind)
    randomize(model, seed, sharpness=1.0, attention=1.5, logits_bias=logits_bias)
    save(model, folder)
    raise_eos(model, Transformers(folder).encode(lines[:16]), args.max_length, rate=0.07)
    save(model, folder, weights)
    return Transformers(folder), vocabularies


def check_sources(table, variant, folder, theirs, ours):
    """Source ids must be equal, or two segmentations with the same score."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    tokens = theirs.tokenizer.convert_ids_to_tokens

    def score(ids):
        return sum(model.get_score(model.piece_to_id(token)) for token in tokens(ids[:-1]))

    differ = [(a, b) for a, b in ours if a != b]
    ties = sum(abs(score(a) - score(b)) < 1e-4 for a, b in differ)
    print(f"{variant}: {len(ours)} source lines tokenized, {len(differ)} differ, {ties} of them with equal scores")
    table.require(ties == len(differ), f"{variant}: {len(differ) - ties} source lines have other tokens")


def compare(table, variant, work, lines, args, seed):
    started = time.monotonic()
    folder = fresh(work / variant.replace(" ", "_"))
    options = VARIANTS[variant]
    theirs, vocabularies = make(folder, lines, args, seed, **options)
    sources = theirs.encode(lines)
    judge = Judge(theirs, args.max_length)
    bundle, exported = folder / "attend", folder / "ctranslate2"
    attend = None
    if not args.peers_only:
        infer("import", folder, "-o", bundle)
        attend = Attend(bundle)
    if not options.get("separate"):
        ct2 = convert(folder, exported)
    elif attend:  # CTranslate2's converter knows only one vocabulary
        infer("export", bundle, "--to", "ctranslate2", "-o", exported)
        ct2 = CTranslate2(exported)
    else:
        ct2 = None

    for name in args.searches:
        search = SEARCHES[name]
        outputs = {theirs.name: theirs.translate(sources, search, args.max_length)}
        if attend:
            outputs[attend.name] = attend.translate(lines, search, args.max_length)
            if name == args.searches[0]:
                check_sources(table, variant, folder, theirs, list(zip(sources, attend.sources, strict=True)))
        if ct2 and name != "beam":  # its beam search is the one that stops early
            outputs[ct2.name] = ct2.translate(sources, search, args.max_length)
        names = list(outputs)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                # Lines that Attend read as other tokens (counted above) are left out.
                same = [not attend or a == b for a, b in zip(sources, attend.sources if attend else sources)]
                kept = [
                    [x for x, keep in zip(rows, same) if keep]
                    for rows in (sources, outputs[first], outputs[second])
                ]
                table.compare(variant, search, (first, kept[1]), (second, kept[2]), kept[0], judge)
        if name == args.searches[0]:
            found = outputs[theirs.name]
            distinct = len({tuple(output.tokens) for output in found})
            print(f"{variant}: {distinct} distinct outputs, {sum(output.cut for output in found)} cut", end=", ")
            print(f"vocabularies {vocabularies[0]} and {vocabularies[1]}", flush=True)
    print(f"{variant}: {time.monotonic() - started:.0f} s", flush=True)
    if not args.keep:
        shutil.rmtree(folder)


def main():
    args = arguments()
    if args.quick:
        args.sentences = min(args.sentences, 40)
    quiet()
    lines = read_lines(args.corpus, "en", args.sentences)
    if len(lines) < args.sentences:
        sys.exit(f"{args.corpus}.en has only {len(lines)} lines")
    table = Table()
    with tempfile.TemporaryDirectory() as temporary:
        for seed, variant in enumerate(args.variants, start=1):
            compare(table, variant, args.keep or Path(temporary), lines, args, seed)
    table.finish()


if __name__ == "__main__":
    main()
