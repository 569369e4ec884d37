"""Writes a small corpus in the formats of others' tools: pyarrow's Parquet, `datasets`' JSON lines, and what the
commands zstd, xz and gzip write. Needs these commands, and

    pip install pyarrow==26.0.1 datasets==5.2.0

Run from the root of the repository: python scripts/golden/formats.py
"""

import json
import subprocess
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path("crates/data/tests/golden/formats")

NOUNS = [("dog", "Hund"), ("house", "Haus"), ("tree", "Baum"), ("man", "Mann")]
VERBS = [("runs", "rennt"), ("sleeps", "schläft"), ("falls", "fällt"), ("sings", "singt"), ("waits", "wartet")]
ODD = [
    ('a "quoted" word', "ein „zitiertes“ Wort"),
    ("one\u2028line\u2029still\u0085one\x0bline\x0chere", "eine\u2028Zeile"),
    ("emoji 😀 and a zero\u200bwidth space", "日本語と\U0001f600"),
    ("back\\slash, comma, {brace}", "<b>fett</b> & mehr"),
    ("", "eine leere Seite"),
    ("two  spaces ", " am Rand "),
]


def corpus():
    pairs = [(f"the {n} {v}.", f"der {m} {w}.") for n, m in NOUNS for v, w in VERBS]
    return pairs + ODD


def run(command, data):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def parquet(pairs):
    flat = pa.table({"id": range(len(pairs)), "en": [s for s, _ in pairs], "de": [t for _, t in pairs]})
    hub = pa.table({"translation": pa.array([{"en": s, "de": t} for s, t in pairs])})
    for codec in ["none", "snappy", "zstd", "gzip"]:
        pq.write_table(flat, OUT / f"flat.{codec}.parquet", compression=codec, use_dictionary=False)
    pq.write_table(hub, OUT / "hub.parquet")  # a struct, dictionaries, snappy
    pq.write_table(hub, OUT / "groups.parquet", row_group_size=7)
    pq.write_table(flat, OUT / "v2.parquet", data_page_version="2.0", compression="zstd", data_page_size=64)
    pq.write_table(
        flat,
        OUT / "delta.parquet",
        use_dictionary=False,
        column_encoding={"en": "DELTA_BYTE_ARRAY", "de": "DELTA_LENGTH_BYTE_ARRAY", "id": "PLAIN"},
    )
    large = flat.cast(pa.schema([("id", pa.int64()), ("en", pa.large_string()), ("de", pa.large_string())]))
    pq.write_table(large, OUT / "large.parquet")
    # Records 2 (a side), 3 (the struct) and 5 (a side) are null.
    nulls = [{"en": "1", "de": "eins"}, {"en": None, "de": "zwei"}, None, {"en": "4", "de": "vier"}, {"en": "5", "de": None}]
    nulls = pa.array(nulls, pa.struct([("en", pa.string()), ("de", pa.string())]))
    pq.write_table(pa.table({"translation": nulls}), OUT / "nulls.parquet", row_group_size=2)


def jsonl(pairs):
    rows = [{"id": str(i), "translation": {"en": s, "de": t}} for i, (s, t) in enumerate(pairs)]
    data = datasets.Dataset.from_list(rows)
    data.to_json(OUT / "hub.jsonl", force_ascii=False)
    data.to_json(OUT / "ascii.jsonl", force_ascii=True)
    data.to_parquet(OUT / "datasets.parquet")
    return (OUT / "hub.jsonl").read_bytes()


def compressed(data):
    """The JSON lines, cut in the middle of a line."""
    first, second = data[:1500], data[1500:]
    zstd, xz, gzip = ["zstd", "-cq"], ["xz", "-c", "--threads=1"], ["gzip", "-cn"]
    skippable = b"\x5e\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"skip!"
    files = {
        "one.jsonl.zst": run(zstd, data),
        "frames.jsonl.zst": skippable + run(zstd, first) + skippable + run([*zstd, "-19", "--no-check"], second),
        "long.jsonl.zst": run([*zstd, "--long=27", "--ultra", "-22"], data),
        "one.jsonl.xz": run(xz, data),
        "streams.jsonl.xz": run([*xz, "-9e", "--check=sha256"], first) + bytes(8) + run([*xz, "-0", "--check=crc32"], second),
        "filters.jsonl.xz": run([*xz, "--x86", "--delta=dist=2", "--lzma2=preset=6"], data),
        "one.jsonl.gz": run(gzip, data),
        "members.jsonl.gz": run([*gzip, "-9"], first) + run([*gzip, "-1"], second),
    }
    for name, content in files.items():
        (OUT / name).write_bytes(content)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    pairs = corpus()
    (OUT / "pairs.json").write_text(json.dumps(pairs, ensure_ascii=False, indent=0) + "\n")
    parquet(pairs)
    compressed(jsonl(pairs))
    for path in sorted(OUT.iterdir()):
        assert path.stat().st_size < 20_000, path
        print(path.stat().st_size, path)


main()
