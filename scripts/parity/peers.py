"""Corpora, and translations as token ids by transformers, CTranslate2 and Attend.

Every engine is called with a list of sentences (token ids, or text for Attend), a `Search` and the longest
output, and returns one `Output` per sentence. Tokens exclude the start token and padding and include `</s>`;
the score is log-probability / tokens.
"""

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import torch
import transformers
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "target/release"
BATCH = 32  # sentences in a batch of transformers and CTranslate2


@dataclass(frozen=True)
class Search:
    name: str
    beam: int
    early_stopping: bool = False


GREEDY = Search("greedy", 1)
BEAM = Search("beam 4", 4)
EARLY = Search("beam 4, early stopping", 4, True)
SEARCHES = {"greedy": GREEDY, "beam": BEAM, "early": EARLY}


@dataclass
class Output:
    tokens: list
    score: float
    cut: bool = False  # ended by the limit, not by itself


def quiet():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(2)
    torch.set_grad_enabled(False)


def corpus_file(prefix, language):
    for path in (Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")):
        if path.is_file():
            return path
    sys.exit(f"{prefix}.{language}[.gz]: no such file (--corpus PREFIX names two files)")


def read_lines(prefix, language, count=None):
    """The lines of a corpus that are not blank; the first `count` of them."""
    path = corpus_file(prefix, language)
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [line.rstrip("\r") for line in data.decode().split("\n")]
    return [line for line in lines if line.strip()][:count]


def in_batches(sources, translate):
    """Calls `translate(batch)` with batches of similar lengths; returns its results in the given order."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    results = [None] * len(sources)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        for i, result in zip(batch, translate([sources[i] for i in batch]), strict=True):
            results[i] = result
    return results


def padded(rows, pad):
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return tokens, mask


class Transformers:
    """A folder as transformers loads it, in float32 (or float64)."""

    name = "transformers"

    def __init__(self, folder, dtype=torch.float32):
        self.folder, self.dtype = folder, dtype
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype).eval()
        config = self.model.config
        self.eos, self.pad = config.eos_token_id, config.pad_token_id
        self.start = config.decoder_start_token_id
        # The settings are those of each call; None must not be replaced by the model's own.
        self.settings, self.model.generation_config = self.model.generation_config, GenerationConfig()

    def exact(self):
        """The same model in float64."""
        return Transformers(self.folder, torch.float64)

    def encode(self, lines):
        return self.tokenizer(lines)["input_ids"]

    def translate(self, sources, search, limit, forced_eos=True):
        return in_batches(sources, lambda rows: self.generate(rows, search, limit, forced_eos))

    def generate(self, rows, search, limit, forced_eos=True):
        # Padding is hidden by the mask, so any id of the source's vocabulary does.
        tokens, mask = padded(rows, self.eos)
        out = self.model.generate(
            input_ids=tokens,
            attention_mask=mask,
            generation_config=GenerationConfig(
                num_beams=search.beam,
                early_stopping=search.early_stopping,
                length_penalty=1.0,
                max_new_tokens=limit,
                do_sample=False,
                renormalize_logits=True,
                bad_words_ids=[[self.pad]],
                forced_eos_token_id=self.eos if forced_eos else None,
                eos_token_id=self.eos,
                pad_token_id=self.pad,
                decoder_start_token_id=self.start,
                return_dict_in_generate=True,
                output_scores=True,
            ),
        )
        found = [[t for t in row[1:] if t != self.pad] for row in out.sequences.tolist()]
        if search.beam == 1:  # greedy search returns no score
            scores = [
                sum(step[i, token].item() for step, token in zip(out.scores, row)) / len(row)
                for i, row in enumerate(found)
            ]
        else:
            scores = out.sequences_scores.tolist()
        return [Output(row, score, len(row) == limit) for row, score in zip(found, scores)]


class CTranslate2:
    """A folder of CTranslate2, with its vocabularies' indices as token ids.

    CTranslate2 does not force `</s>` at the limit. It is given one token less, and `</s>` is appended to what
    is cut, with log-probability 0, as the others do.
    """

    name = "ctranslate2"

    def __init__(self, folder):
        self.translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=2)
        vocabularies = [
            folder / name
            for name in ("shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json")
        ]
        shared, source, target = (json.loads(f.read_text()) if f.is_file() else None for f in vocabularies)
        self.source, self.target = source or shared, target or shared
        self.ids = {token: i for i, token in enumerate(self.target)}
        config = json.loads((folder / "config.json").read_text())
        self.eos, self.adds_eos = self.ids[config["eos_token"]], config["add_source_eos"]

    def translate(self, sources, search, limit):
        return in_batches(sources, lambda rows: self.generate(rows, search, limit))

    def generate(self, rows, search, limit):
        texts = [[self.source[t] for t in (row[:-1] if self.adds_eos else row)] for row in rows]
        results = self.translator.translate_batch(
            texts,
            beam_size=search.beam,
            patience=1,
            length_penalty=1,
            max_decoding_length=limit - 1,
            min_decoding_length=0,
            max_input_length=0,
            # A model that CTranslate2 converted from Pegasus still has the token.
            suppress_sequences=[["<pad>"]] if "<pad>" in self.ids else None,
            return_scores=True,
            return_end_token=True,
        )
        outputs = []
        for result in results:
            tokens, score = [self.ids[t] for t in result.hypotheses[0]], result.scores[0]
            cut = tokens[-1:] != [self.eos]
            if cut:
                score *= len(tokens) / (len(tokens) + 1)
                tokens.append(self.eos)
            outputs.append(Output(tokens, score, cut))
        return outputs


def convert(folder, out):
    """Converts a folder with CTranslate2's own converter."""
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(out), force=True)
    return CTranslate2(out)


def infer(*args):
    """Runs `infer`. If it fails, so does the script."""
    run([RELEASE / "infer", *args])


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        words = " ".join(str(part) for part in command)
        sys.exit(f"failed ({done.returncode}): {words}\n{done.stderr.strip()}")
    return done.stdout


class Attend:
    """A run, a checkpoint or a bundle. Sentences are lines of text; `sources` are the ids that it read."""

    name = "attend"

    def __init__(self, model):
        self.model, self.sources = model, None

    def translate(self, lines, search, limit):
        stdout = run(
            [
                RELEASE / "examples/tokens",
                self.model,
                *("--beam", search.beam),
                *("--early-stopping", str(search.early_stopping).lower()),
                *("--max-length", limit),
                *("--length-penalty", 1, "--length-measure", "tokens"),
            ],
            input="".join(f"{line}\n" for line in lines),
        )
        found = [json.loads(line) for line in stdout.splitlines()]
        assert len(found) == len(lines), f"{len(found)} lines for {len(lines)}"
        self.sources = [entry["source"] for entry in found]
        return [Output(e["tokens"], e["score"], len(e["tokens"]) == limit) for e in found]
