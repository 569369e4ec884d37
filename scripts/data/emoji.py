#!/usr/bin/env python3
"""Composes pictures of two or three emoji, with their names in English and German as captions.

    scripts/data/emoji.py FOLDER [--concepts N] [--train N] [--valid N] [--test N] [--packages FOLDER]

Needs Python and npm. The drawings are Noto Emoji (@iconify-json/noto, Apache-2.0) and the names are those of
emojibase-data (MIT). Both are fetched into a temporary folder, or read from the .tgz files of `npm pack` in
--packages. Nothing of them is part of this repository. FOLDER gets the layout of data/scenes (see its README), so
the same configs train on it:

    train run configs/history/xu-2015-captions.toml --set out=runs/emoji \\
      --set data.train.path=FOLDER/train.tsv --set data.valid.path=FOLDER/valid.tsv --set data.test.path=FOLDER/test.tsv

The caption names the emoji from left to right: "cat face and red apple". One in four pairs of concepts is held out:
the two are never in one picture of the training set, and every two of a picture of `valid` and `test` are such a pair.
In the lines of objects, a box is the square of the emoji.
"""

import argparse
import functools
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

NOTO, NAMES = "@iconify-json/noto@1.2.9", "emojibase-data@17.0.0"
GROUPS = {3, 4, 5, 6, 7}  # animals and plants, food, travel, activities, objects
LONGEST = 10_000  # characters of a drawing, so that pictures are read fast
EXTENT = 128
SEED = 2015
NAME = re.compile(r"[^\W\d_]+([ -][^\W\d_]+)?")  # one word or two, without digits and punctuation


def packed(folder, package):
    """Fetches a package of npm; returns the path of its archive."""
    command = ["npm", "pack", "--silent", package]
    try:
        result = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("error: npm is not installed\n\nhint: install Node.js, or give --packages a folder with the .tgz files")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(command)} failed:\n{error.stderr}")
    return pathlib.Path(folder) / result.stdout.split()[-1]


def archive(folder, package):
    """The path of an archive that was fetched before."""
    name, version = package.rsplit("@", 1)
    path = pathlib.Path(folder) / f"{name.replace('@', '').replace('/', '-')}-{version}.tgz"
    if not path.exists():
        sys.exit(f"error: {path} does not exist\n\nhint: (cd {folder} && npm pack {package})")
    return path


def members(path, *names):
    """Reads JSON files of an archive."""
    with tarfile.open(path) as tar:
        return [json.load(tar.extractfile(f"package/{name}")) for name in names]


class Concept:
    """An emoji: its names, and the drawing."""

    def __init__(self, english, german, icon, extent):
        self.en, self.de = english, german
        self.body = icon["body"]
        self.extent = [icon.get(key, default) for key, default in extent.items()]  # left, top, width, height
        self.words = {("en", word) for word in english.split()} | {("de", word) for word in german.split()}


def concepts(noto, names, count):
    """So many concepts: of one code point, and with names that no other emoji has."""
    icons, characters = members(noto, "icons.json", "chars.json")
    english, german = members(names, "en/data.json", "de/data.json")
    german = {emoji["hexcode"]: emoji["label"] for emoji in german}
    extent = {"left": 0, "top": 0, "width": icons.get("width", 16), "height": icons.get("height", 16)}
    found = {}
    for emoji in english:
        point = emoji["hexcode"].lower().removesuffix("-fe0f")
        icon = icons["icons"].get(characters.get(point))
        label = german.get(emoji["hexcode"], "")
        if emoji.get("group") not in GROUPS or "skins" in emoji or "-" in point or icon is None:
            continue
        if len(icon["body"]) > LONGEST or not (NAME.fullmatch(emoji["label"]) and NAME.fullmatch(label)):
            continue
        found.setdefault(label, []).append(Concept(emoji["label"], label, icon, extent))
    unique = [same[0] for same in found.values() if len(same) == 1]
    if len(unique) < count:
        sys.exit(f"error: only {len(unique)} concepts fit, of {count}\n\nhint: --concepts {len(unique)}")
    # A hash instead of the first ones, which are all animals.
    return sorted(unique, key=lambda concept: digest(concept.en))[:count]


@functools.cache
def digest(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def held_out(one, other):
    return digest("\t".join(sorted([one.en, other.en]))) % 4 == 0


class Dice:
    """Numbers that are the same with every version of Python."""

    def __init__(self):
        self.random = random.Random(SEED).random

    def below(self, count):
        return int(self.random() * count)

    def between(self, low, high):
        return round(low + self.random() * (high - low), 2)


def choose(everything, wanted, dice):
    """Two or three concepts that share no word, every two of which are held out or not, as wanted."""
    chosen = []
    for _ in range(2 + dice.below(2)):
        fitting = [
            concept
            for concept in everything
            if all(not concept.words & it.words and held_out(concept, it) == wanted for it in chosen)
        ]
        if not fitting:
            return None
        chosen.append(fitting[dice.below(len(fitting))])
    return chosen


def squares(count, dice):
    """Left, top and side of each emoji, from left to right, none over another."""
    if count == 2:
        found = []
        for left, right in ((2, 63), (65, 126)):
            side = dice.between(48, right - left)
            found.append((dice.between(left, right - side), dice.between(2, EXTENT - 2 - side), side))
        return found
    up = dice.below(2)  # the one in the middle stands above or below the others
    found = []
    for index, centre in enumerate((30, 64, 98)):
        side = dice.between(48, 56)
        top = 2 if (index == 1) == bool(up) else 65
        found.append((round(centre - side / 2 + dice.between(-2, 2), 2), dice.between(top, top + 61 - side), side))
    return found


def drawn(concept, number, square):
    """A drawing in its square, with ids that no other drawing of the picture has."""
    body = concept.body
    for index, name in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', body))):
        own = f"e{number}-{index}"
        body = body.replace(f'id="{name}"', f'id="{own}"').replace(f"url(#{name})", f"url(#{own})")
        body = body.replace(f'href="#{name}"', f'href="#{own}"')
    strange = [link for link in re.findall(r'href="([^"]*)"', body) if not link.startswith("#")]
    if strange:
        sys.exit(f"error: the drawing of {concept.en!r} refers to {strange[0]}")
    x, y, side = square
    left, top, width, height = concept.extent
    scale = side / max(width, height)
    return f'<g transform="translate({x} {y}) scale({scale:.4f}) translate({-left} {-top})">{body}</g>\n'


def picture(chosen, places, dice):
    tint = "".join(f"{232 + dice.below(24):02x}" for _ in range(3))
    bodies = "".join(drawn(concept, number, square) for number, (concept, square) in enumerate(zip(chosen, places)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{EXTENT}" '
        f'height="{EXTENT}" viewBox="0 0 {EXTENT} {EXTENT}">\n'
        f'<rect width="{EXTENT}" height="{EXTENT}" fill="#{tint}"/>\n{bodies}</svg>\n'
    )


def objects(chosen, places):
    for concept, (x, y, side) in zip(chosen, places):
        box = [round(value / EXTENT, 4) for value in (x, y, x + side, y + side)]
        yield {"en": concept.en, "de": concept.de, "boxes": [box]}


def write_split(folder, name, count, everything, seen, dice):
    (folder / "pictures" / name).mkdir(parents=True)
    captions, lines, failures = ["picture\ten\tde"], [], 0
    while len(lines) < count:
        chosen = choose(everything, name != "train", dice)
        content = chosen and frozenset(concept.en for concept in chosen)
        if not chosen or content in seen:
            failures += 1
            if failures > 100 * count + 1000:
                sys.exit(f"error: {len(everything)} concepts are too few for {count} pictures in {name}")
            continue
        seen.add(content)
        places = squares(len(chosen), dice)
        path = f"pictures/{name}/{len(lines) + 1:05d}.svg"
        (folder / path).write_text(picture(chosen, places, dice), encoding="utf-8")
        english = " and ".join(concept.en for concept in chosen)
        german = " und ".join(concept.de for concept in chosen)
        captions.append(f"{path}\t{english}\t{german}")
        lines.append(json.dumps({"picture": path, "objects": list(objects(chosen, places))}, ensure_ascii=False))
    (folder / f"{name}.objects.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / f"{name}.tsv").write_text("\n".join(captions) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--concepts", type=int, default=300)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--valid", type=int, default=300)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--packages", type=pathlib.Path, help="folder with the .tgz files of npm pack")
    args = parser.parse_args()
    if args.folder.exists():
        sys.exit(f"error: {args.folder} exists\n\nhint: remove it, or name another folder")
    args.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as fetched:
        find, place = (archive, args.packages) if args.packages else (packed, fetched)
        everything = concepts(find(place, NOTO), find(place, NAMES), args.concepts)
    dice, seen = Dice(), set()
    # Beside its place until it is complete.
    with tempfile.TemporaryDirectory(dir=args.folder.parent, prefix=".emoji-") as unfinished:
        made = pathlib.Path(unfinished) / "made"
        for name, count in (("train", args.train), ("valid", args.valid), ("test", args.test)):
            write_split(made, name, count, everything, seen, dice)
        shutil.move(made, args.folder)
    print(f"{args.folder}: {args.train}, {args.valid} and {args.test} pictures of {len(everything)} concepts")


if __name__ == "__main__":
    main()
