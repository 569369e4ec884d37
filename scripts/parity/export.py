"""Exports a run and compares it with what transformers and CTranslate2 make of the exports. See README.md."""

import argparse
import json
import tempfile
from pathlib import Path

from judge import Judge, Table
from peers import SEARCHES, Attend, CTranslate2, Transformers, convert, infer, quiet, read_lines
from safetensors.torch import load_file
from tensors import as_ctranslate2, changed, read_ctranslate2, weights_file


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run, a checkpoint or a bundle")
    parser.add_argument("--corpus", default="data/quickstart/test", help="prefix of PREFIX.en")
    parser.add_argument("--language", default="en", help="of the source")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--max-length", type=int, default=100, help="of a translation, with </s>")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    return parser.parse_args()


def check_bits(table, run, hf, bundle, exported):
    """Export and import give the same bits of every tensor; CTranslate2's file holds the same weights."""
    ours = load_file(weights_file(run))
    infer("import", hf, "-o", bundle)
    differ = changed(ours, load_file(weights_file(bundle)))
    print(f"{len(ours)} tensors exported to hf and imported: {len(differ)} differ")
    table.require(not differ, f"import of the export: {differ}")

    theirs, expected = read_ctranslate2(exported / "model.bin"), as_ctranslate2(ours)
    differ = changed({name: theirs[name] for name in expected if name in theirs}, expected)
    # Besides these: settings of a single number, and positions, which Attend computes.
    left = [n for n, t in theirs.items() if n not in expected and t.ndim and "position" not in n]
    print(f"{len(expected)} tensors of ctranslate2: {len(differ)} differ, {len(left)} more")
    table.require(not differ and not left, f"tensors of ctranslate2: {differ}, {left}")


def main():
    args = arguments()
    quiet()
    lines = read_lines(args.corpus, args.language, args.sentences)
    table = Table()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        hf, exported = work / "hf", work / "ctranslate2"
        infer("export", args.run, "--to", "hf", "-o", hf)
        infer("export", args.run, "--to", "ctranslate2", "-o", exported)
        kind = json.loads((hf / "config.json").read_text())
        kind = kind["architectures"][0]
        attend, theirs = Attend(args.run), Transformers(hf)
        programs = {"ctranslate2": CTranslate2(exported), "ctranslate2 (converted)": convert(hf, work / "converted")}
        judge = Judge(theirs, args.max_length)
        sources = theirs.encode(lines)

        for name in args.searches:
            search = SEARCHES[name]
            ours = attend.translate(lines, search, args.max_length)
            table.require(attend.sources == sources, "AutoTokenizer reads other tokens")
            outputs = {theirs.name: theirs.translate(sources, search, args.max_length)}
            if name != "beam":  # CTranslate2's beam search is the one that stops early
                for program, model in programs.items():
                    outputs[program] = model.translate(sources, search, args.max_length)
            for program, found in outputs.items():
                table.compare(kind, search, (attend.name, ours), (program, found), sources, judge)
            cut, length = sum(o.cut for o in ours), sum(len(o.tokens) for o in ours) / len(ours)
            print(f"{kind}: {cut} cut, {length:.1f} tokens on average", flush=True)
        check_bits(table, args.run, hf, work / "bundle", exported)
    table.finish()


if __name__ == "__main__":
    main()
