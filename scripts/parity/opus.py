"""Imports public opus-mt models and compares 20 sentences of each with transformers. See opus.sh."""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

from huggingface_hub import snapshot_download
from judge import Judge, Table
from peers import BEAM, GREEDY, Attend, Transformers, infer, quiet

# Repository: language of the source, and the tag before each sentence.
MODELS = {
    "Helsinki-NLP/opus-mt-en-de": ("en", ""),
    "Helsinki-NLP/opus-mt-de-en": ("de", ""),
    "Helsinki-NLP/opus-mt-en-fr": ("en", ""),
    "Helsinki-NLP/opus-mt-fr-en": ("fr", ""),
    "Helsinki-NLP/opus-mt-en-es": ("en", ""),
    "Helsinki-NLP/opus-mt-en-ROMANCE": ("en", ">>pt<< "),
    "Helsinki-NLP/opus-mt-zh-en": ("zh", ""),
    "Helsinki-NLP/opus-mt-ja-en": ("ja", ""),
    "Helsinki-NLP/opus-mt-tc-big-en-pt": ("en", ">>por<< "),
    "hf-internal-testing/test-opus-tatoeba-fi-en-v2": ("fi", ""),  # separate vocabularies
}
FILES = ["*.json", "*.spm", "model.safetensors", "pytorch_model.bin"]
# Four beginnings and five ends make twenty sentences.
SENTENCES = {
    "en": (
        ["My sister", "The old teacher", "Nobody", "A small dog"],
        ["is waiting at the station.", "has read 3 books this week!", "bought it for $1,250.50.", "loves café crème…", "said: “Wait here.”"],
    ),
    "de": (
        ["Meine Schwester", "Der alte Lehrer", "Niemand", "Ein kleiner Hund"],
        ["wartet am Bahnhof.", "hat diese Woche 3 Bücher gelesen!", "zahlte dafür 1.250,50 €.", "läuft über die Straße …", "sagte: „Bleib hier.“"],
    ),
    "fr": (
        ["Ma sœur", "Le vieux professeur", "Personne", "Un petit chien"],
        ["attend à la gare.", "a lu 3 livres cette semaine !", "l'a acheté pour 1 250,50 €.", "traverse la rue…", "a dit : « Reste ici. »"],
    ),
    "zh": (
        ["我的妹妹", "那位老教师", "没有人", "一只小狗"],
        ["在车站等着。", "这周读了3本书!", "花了1,250.50元买的。", "跑过了街道……", "说:“在这里等。”"],
    ),
    "ja": (
        ["私の妹は", "年老いた先生は", "誰かが", "小さな犬は"],
        ["駅で待っています。", "今週本を3冊読みました!", "1,250円で買いました。", "道を渡った…", "「ここで待って」と言った。"],
    ),
    "fi": (
        ["Siskoni", "Vanha opettaja", "Kukaan ei", "Pieni koira"],
        ["odottaa asemalla.", "luki 3 kirjaa tällä viikolla!", "maksoi siitä 1 250,50 €.", "juoksi kadun yli…", "sanoi: ”Odota tässä.”"],
    ),
}
LIMIT = 100


def fetch(repository):
    """The folder, or None and the reason."""
    try:
        return Path(snapshot_download(repository, allow_patterns=FILES)), None
    except Exception as error:  # whatever the network does
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:100]


def compare(table, repository, folder, work):
    language, tag = MODELS[repository]
    lines = [tag + " ".join(pair) for pair in itertools.product(*SENTENCES[language])]
    name = repository.split("/")[1]
    bundle = work / name
    infer("import", folder, "-o", bundle)
    theirs, attend = Transformers(folder), Attend(bundle)
    sources, judge = theirs.encode(lines), Judge(theirs, LIMIT)
    for search in (GREEDY, BEAM):
        ours = attend.translate(lines, search, LIMIT)
        table.require(attend.sources == sources, f"{name}: other source tokens")
        found = theirs.translate(sources, search, LIMIT)
        table.compare(name, search, (attend.name, ours), (theirs.name, found), sources, judge)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    args = parser.parse_args()
    quiet()
    folders = {}
    for repository in args.models:
        folder, reason = fetch(repository)
        if folder:
            folders[repository] = folder
        else:
            print(f"{repository} could not be fetched: {reason}", flush=True)
    if not folders:
        print("not run: no network")
        sys.exit(0)
    print(f"{len(folders)} of {len(args.models)} models fetched")
    table = Table()
    with tempfile.TemporaryDirectory() as work:
        for repository, folder in folders.items():
            compare(table, repository, folder, Path(work))
    table.finish()


if __name__ == "__main__":
    main()
