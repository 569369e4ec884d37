"""Writes the golden files for the Transformer and for beam search, computed by PyTorch.

With fixed seeds, it writes:

    crates/model/tests/golden/{post_norm,pre_norm,swish_untied}.{safetensors,json}
    crates/infer/tests/golden/{beam,beam_early,beam_never}.json

README.md in this folder describes how to run it and the contents of the files.

Parameters are float32. Everything computed from them is computed in float64 and then rounded to float32,
so that tests measure the rounding errors of the tested code, not those of PyTorch. The same computation
is also done in float32, and its distance to the float64 result is printed.
"""

import copy
import itertools
import json
import math
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save
from torch import nn
from transformers import GenerationConfig, MarianConfig, MarianMTModel

ROOT = Path(__file__).resolve().parents[2]
MODEL_GOLDEN = ROOT / "crates/model/tests/golden"
INFER_GOLDEN = ROOT / "crates/infer/tests/golden"

EOS = 0  # the padding token is the last entry of its vocabulary
SOURCE_LENGTHS = [1, 7, 3, 12, 5]  # eos included
TARGET_LENGTHS = [4, 1, 9, 2, 6]


@dataclass
class Config:
    d_model: int
    heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    norm: str  # post, pre
    activation: str  # relu, gelu (with erf), swish
    tie: str  # all: one matrix; decoder: target embedding = output; none: three matrices
    source_vocab: int
    target_vocab: int
    smoothing: float = 0.1

    @property
    def source_pad(self):
        return self.source_vocab - 1

    @property
    def target_pad(self):
        return self.target_vocab - 1


# (config, seed). The heads are 6, 8 and 5 wide; not all are multiples of 8, on purpose. The seed of
# post_norm was searched for: most random models never produce eos, or produce the same output for every
# source. The outputs of this one in beam.json are varied.
CASES = {
    "post_norm": (Config(24, 4, 40, 2, 3, "post", "relu", "all", 37, 37), 10310),
    "pre_norm": (Config(16, 2, 48, 2, 2, "pre", "gelu", "decoder", 31, 29), 2),
    "swish_untied": (Config(20, 4, 28, 3, 1, "post", "swish", "none", 33, 27), 3),
}


# The two reference models. `peer(config)` creates one; both provide
#     model.teacher(source, source_mask, decoder_input, decoder_mask) -> memory, hidden, logits
#     model.named() -> [(Attend's name, parameter, rows of that parameter)]


class Marian(nn.Module):
    """Post-norm: Hugging Face's MarianMTModel."""

    def __init__(self, c):
        super().__init__()
        # Marian has a single pad id, which must exist in both vocabularies: the target's.
        self.marian = MarianMTModel(
            MarianConfig(
                vocab_size=c.source_vocab,
                decoder_vocab_size=c.target_vocab,
                d_model=c.d_model,
                encoder_layers=c.encoder_layers,
                decoder_layers=c.decoder_layers,
                encoder_attention_heads=c.heads,
                decoder_attention_heads=c.heads,
                encoder_ffn_dim=c.d_ff,
                decoder_ffn_dim=c.d_ff,
                max_position_embeddings=64,
                activation_function=c.activation,
                scale_embedding=True,
                dropout=0.0,
                attention_dropout=0.0,
                activation_dropout=0.0,
                pad_token_id=c.target_pad,
                decoder_start_token_id=c.target_pad,
                eos_token_id=EOS,
                share_encoder_decoder_embeddings=c.tie == "all",
                tie_word_embeddings=c.tie != "none",
                attn_implementation="eager",
            )
        )
        # If the vocabularies differ, the source has another pad row.
        self.marian.model.encoder.embed_tokens.padding_idx = c.source_pad
        assert not self.marian.final_logits_bias.any()

    def teacher(self, source, source_mask, decoder_input, decoder_mask):
        out = self.marian.model(
            input_ids=source,
            attention_mask=source_mask,
            decoder_input_ids=decoder_input,
            decoder_attention_mask=decoder_mask,
            use_cache=False,
        )
        hidden = out.last_hidden_state
        return out.encoder_last_hidden_state, hidden, self.marian.lm_head(hidden)

    def named(self):
        # Attend uses Marian's names. A tied matrix is listed once, under the first of its names. The only
        # parameter that is not trained is the table of positions.
        return [(n, p, slice(None)) for n, p in self.marian.named_parameters() if p.requires_grad]


class TorchTransformer(nn.Module):
    """Pre-norm: torch.nn.Transformer, with the target embedding as output matrix."""

    def __init__(self, c):
        super().__init__()
        assert (c.norm, c.tie) == ("pre", "decoder")
        self.scale = math.sqrt(c.d_model)
        self.source_embedding = nn.Embedding(c.source_vocab, c.d_model, padding_idx=c.source_pad)
        self.target_embedding = nn.Embedding(c.target_vocab, c.d_model, padding_idx=c.target_pad)
        self.register_buffer("positions", sinusoids(64, c.d_model))
        self.transformer = nn.Transformer(
            c.d_model,
            c.heads,
            c.encoder_layers,
            c.decoder_layers,
            c.d_ff,
            dropout=0.0,
            activation=c.activation,
            layer_norm_eps=1e-5,
            batch_first=True,
            norm_first=True,
        )

    def embed(self, embedding, tokens):
        return embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]

    def teacher(self, source, source_mask, decoder_input, decoder_mask):
        hide_source, hide_target = source_mask == 0, decoder_mask == 0
        length = decoder_input.shape[1]
        hide_future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
        memory = self.transformer.encoder(
            self.embed(self.source_embedding, source), src_key_padding_mask=hide_source
        )
        hidden = self.transformer.decoder(
            self.embed(self.target_embedding, decoder_input),
            memory,
            tgt_mask=hide_future,
            tgt_key_padding_mask=hide_target,
            memory_key_padding_mask=hide_source,
        )
        return memory, hidden, F.linear(hidden, self.target_embedding.weight)

    def named(self):
        embeddings = [
            ("model.encoder.embed_tokens.weight", self.source_embedding.weight, slice(None)),
            ("model.decoder.embed_tokens.weight", self.target_embedding.weight, slice(None)),
        ]
        return embeddings + [
            entry for name, p in self.transformer.named_parameters() for entry in self.rename(name, p)
        ]

    @staticmethod
    def rename(name, p):
        side, *rest = name.split(".")
        if rest[0] == "norm":  # encoder.norm.weight
            return [(f"model.{side}.layer_norm.{rest[1]}", p, slice(None))]
        _, layer, module, *leaf = rest  # encoder.layers.0.self_attn.in_proj_weight
        module = {
            "multihead_attn": "encoder_attn",
            "linear1": "fc1",
            "linear2": "fc2",
            "norm1": "self_attn_layer_norm",
            "norm2": "final_layer_norm" if side == "encoder" else "encoder_attn_layer_norm",
            "norm3": "final_layer_norm",
        }.get(module, module)
        prefix = f"model.{side}.layers.{layer}.{module}"
        if leaf[0].startswith("in_proj_"):  # query, key and value, stacked by rows
            kind, d = leaf[0].removeprefix("in_proj_"), p.shape[0] // 3
            return [
                (f"{prefix}.{part}_proj.{kind}", p, slice(i * d, (i + 1) * d))
                for i, part in enumerate("qkv")
            ]
        return [(".".join([prefix, *leaf]), p, slice(None))]


def sinusoids(length, d):
    """Marian's positional encodings: all sines, then all cosines; float32 as in Marian."""
    position = np.arange(length)[:, None]
    frequency = 10000.0 ** (-2.0 * np.arange(d // 2) / d)
    table = np.concatenate([np.sin(position * frequency), np.cos(position * frequency)], axis=1)
    return torch.tensor(table.astype(np.float32))


def peer(config):
    return Marian(config) if config.norm == "post" else TorchTransformer(config)


def randomize(model, config, rng):
    """Draws weights large enough that every part matters, and biases and norms away from 0 and 1.

    The biases are smaller, because otherwise the decoder's output hardly depends on the source.
    """
    with torch.no_grad():
        for name, p, rows in sorted(model.named(), key=lambda entry: entry[0]):
            std = 0.1 if name.endswith("bias") else 0.3
            value = torch.tensor(rng.standard_normal(p[rows].shape) * std)
            if "layer_norm.weight" in name:
                value += 1.0
            p[rows] = value
            if "embed_tokens" in name or name in ("model.shared.weight", "lm_head.weight"):
                p[-1] = 0.0  # pad
        if config.tie == "all":  # raise the score of eos, so that some sentences in beam.json end early
            marian = model.marian.model
            marian.decoder.layers[-1].final_layer_norm.bias += 0.7 * marian.shared.weight[EOS]


# Ragged sentences


def sentences(rng, lengths, vocab):
    """Random tokens between eos and pad (both excluded), then eos."""
    return [[*rng.randint(EOS + 1, vocab - 1, size=n - 1).tolist(), EOS] for n in lengths]


def padded(rows, pad):
    """Pads a list of rows to tokens [b, longest]; also returns a mask that is 1 for tokens."""
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return tokens, mask


def packed(x, mask):
    """[b, longest, d] to [n, d]: the positions that are not padding, concatenated."""
    return x[mask.bool()]


# Model goldens


def smoothed_loss(logits, labels, eps):
    """Label-smoothed cross-entropy, summed over tokens. `logits` [n, V - 1] exclude pad, the last class."""
    loss = F.cross_entropy(logits, labels, label_smoothing=eps, reduction="sum")
    log_p = logits.log_softmax(-1)
    of_label = log_p.gather(-1, labels[:, None])[:, 0]
    by_formula = (-(1 - eps) * of_label - eps / logits.shape[-1] * log_p.sum(-1)).sum()
    torch.testing.assert_close(loss, by_formula)
    return loss


def forward_backward(model, config, source_rows, target_rows):
    """Everything that is stored except the inputs, in the precision of `model`."""
    model.train()  # dropout is 0; in eval mode torch.nn.Transformer would use its fast path
    model.zero_grad()
    source, source_mask = padded(source_rows, config.source_pad)
    decoder_rows = [[config.target_pad, *row[:-1]] for row in target_rows]
    decoder_input, decoder_mask = padded(decoder_rows, config.target_pad)
    memory, hidden, logits = model.teacher(source, source_mask, decoder_input, decoder_mask)

    logits = packed(logits, decoder_mask)[:, : config.target_pad]
    labels = torch.tensor(sum(target_rows, []))
    loss = smoothed_loss(logits, labels, config.smoothing)
    loss.backward()

    out = {
        "output.memory": packed(memory, source_mask),
        "output.hidden": packed(hidden, decoder_mask),
        "output.logits": logits,
        "output.loss": loss.reshape(1),
    }
    for name, p, rows in model.named():
        out[f"param.{name}"], out[f"grad.{name}"] = p[rows], p.grad[rows]
    out = {name: x.detach().numpy() for name, x in out.items()}

    # Pad rows are zero and get no gradient: `padding_idx` excludes them in the lookup, and the slice of the
    # logits above excludes them in the output matrix.
    for name in out:
        if "embed_tokens" in name or "shared" in name or "lm_head" in name:
            assert not out[name][-1].any(), name
    return out


def check_gradients(out):
    """No gradient is zero, except that of key biases, which shift all scores of a query equally."""
    for name, x in out.items():
        if not name.startswith("grad."):
            continue
        if name.endswith("k_proj.bias"):
            assert np.abs(x).max() < 1e-10, name
        else:
            assert np.sqrt((x**2).mean()) > 1e-3, name


def distance(exact, other):
    """The largest difference in outputs and gradients, relative to each tensor's largest entry."""
    return max(
        (float(np.abs(x - other[name]).max() / np.abs(x).max()), name)
        for name, x in exact.items()
        if not name.startswith("param.") and not name.endswith("k_proj.bias")
    )


def case(config):
    """The configuration with Attend's keys."""
    fields = asdict(config)
    outer = {name: fields.pop(name) for name in ("source_vocab", "target_vocab", "smoothing")}
    order = ("encoder_layers", "decoder_layers", "d_model", "heads", "d_ff", "norm", "activation", "tie")
    model = {name: fields[name] for name in order}
    none = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    return {"model": {"transformer": model | none}, **outer}


def write_model_golden(name):
    config, seed = CASES[name]
    rng = np.random.RandomState(seed)
    model = peer(config)
    randomize(model, config, rng)
    source_rows = sentences(rng, SOURCE_LENGTHS, config.source_vocab)
    target_rows = sentences(rng, TARGET_LENGTHS, config.target_vocab)

    single = forward_backward(model, config, source_rows, target_rows)
    exact_model = copy.deepcopy(model).double()
    exact = forward_backward(exact_model, config, source_rows, target_rows)
    check_gradients(exact)

    tensors = {name: x.astype(np.float32) for name, x in exact.items()}
    for side, rows in [("source", source_rows), ("target", target_rows)]:
        tensors[f"input.{side}_ids"] = np.array(sum(rows, []), dtype=np.uint32)
        tensors[f"input.{side}_lengths"] = np.array([len(row) for row in rows], dtype=np.uint32)
    MODEL_GOLDEN.mkdir(parents=True, exist_ok=True)
    # Copies, because safetensors stores the underlying buffer, and slices of rows are views.
    stored = save({name: x.copy() for name, x in sorted(tensors.items())})
    (MODEL_GOLDEN / f"{name}.safetensors").write_bytes(stored)
    (MODEL_GOLDEN / f"{name}.json").write_text(json.dumps(case(config), indent=2) + "\n")

    worst, where = distance(exact, single)
    print(
        f"{name}: {len(tensors)} tensors, {len(stored)} bytes, loss {exact['output.loss'][0]:.6f}, "
        f"float32 differs by at most {worst:.1e} ({where})"
    )
    return exact_model, source_rows


# Beam search golden

MAX_NEW_TOKENS = 12  # with eos, without the decoder's start token
BEAMS = [1, 2, 4, 5]
LENGTH_PENALTIES = [0.0, 0.6, 1.0, 2.0]
# The last two: whether eos is forced at the end, and early stopping.
SEARCHES = list(itertools.product(BEAMS, LENGTH_PENALTIES, [False, True], [False]))
EARLY_SEARCHES = list(itertools.product(BEAMS[1:], [0.6, 2.0], [False, True], [True]))
NEVER_SEARCHES = list(itertools.product(BEAMS[1:], [-0.5, 0.6, 2.0], [False, True], ["never"]))
EXTRA_LENGTHS = [2, 4, 6, 8, 10, 3, 5, 9, 7, 11]


def generate(model, pad, sources, beams, penalty, forced_eos, early):
    """Hugging Face's n-best list: for each source a list of (tokens, score)."""
    tokens, mask = padded(sources, pad)
    # The model's own generation config must not replace values that are None here.
    model.generation_config = GenerationConfig()
    out = model.generate(
        input_ids=tokens,
        attention_mask=mask,
        generation_config=GenerationConfig(
            num_beams=beams,
            num_return_sequences=beams,
            length_penalty=penalty if beams > 1 else 1.0,  # greedy search has no length penalty
            early_stopping=early,
            max_new_tokens=MAX_NEW_TOKENS,
            do_sample=False,
            renormalize_logits=True,
            bad_words_ids=[[pad]],
            forced_eos_token_id=EOS if forced_eos else None,
            eos_token_id=EOS,
            pad_token_id=pad,
            decoder_start_token_id=pad,
            return_dict_in_generate=True,
            output_scores=True,
        ),
    )
    rows = [[t for t in row[1:] if t != pad] for row in out.sequences.tolist()]
    if beams == 1:  # greedy search returns no score: compute it by the same formula
        steps = model.compute_transition_scores(out.sequences, out.scores)
        sums = [step[: len(row)].sum().item() for step, row in zip(steps, rows)]
        scores = [total / len(row) ** penalty for total, row in zip(sums, rows)]
    else:
        scores = out.sequences_scores.tolist()
    pairs = list(zip(rows, scores))
    return [pairs[i : i + beams] for i in range(0, len(pairs), beams)]


class NextToken:
    """log p(next | source, prefix) without pad, in float64, without a key-value cache."""

    def __init__(self, model, pad, source):
        self.model, self.pad, self.source, self.known = model, pad, source, {}

    def __call__(self, prefix):
        if prefix not in self.known:
            with torch.no_grad():
                decoder_input = torch.tensor([[self.pad, *prefix]])
                source = torch.tensor([self.source])
                logits = self.model(input_ids=source, decoder_input_ids=decoder_input).logits
            self.known[prefix] = logits[0, -1, : self.pad].log_softmax(-1).tolist()
        return self.known[prefix]


def beam_search(next_token, beams, penalty, forced_eos, early):
    """Hugging Face's beam search, written in its simplest form for one sentence.

    The two are asserted to agree. Also returns the margin, which is the score difference of the closest
    decision: rounding errors smaller than that cannot change the result.
    """
    running, finished, margin = [((), 0.0)], [], math.inf
    for length in range(1, MAX_NEW_TOKENS + 1):
        last = length == MAX_NEW_TOKENS
        candidates = []
        for prefix, total in running:
            if last and forced_eos:
                candidates.append(((*prefix, EOS), total))  # eos is forced: log-probability 0
            else:
                candidates += [((*prefix, t), total + lp) for t, lp in enumerate(next_token(prefix))]
        candidates.sort(key=lambda c: -c[1])

        # Only candidates among the best k can finish. One that ends but ranks lower is dropped.
        ends = [last or tokens[-1] == EOS for tokens, _ in candidates]
        arrivals = [(t, s / length**penalty) for (t, s), end in zip(candidates[:beams], ends) if end]
        if len(candidates) > beams and (ends[beams - 1] or ends[beams]):
            margin = min(margin, candidates[beams - 1][1] - candidates[beams][1])
        # The best k finished hypotheses are kept.
        finished = sorted(finished + arrivals, key=lambda c: -c[1])
        ranks = [score for _, score in finished[: beams + 1]]
        margin = min([margin, *(a - b for a, b in zip(ranks, ranks[1:]))])
        finished = finished[:beams]
        if last:
            break

        # The best k candidates that do not end are continued. (Hugging Face takes them from the best 2k
        # candidates. At most k candidates end, so the 2k always contain them.)
        open_ = [c for c, end in zip(candidates, ends) if not end]
        running = open_[:beams]
        margin = min(margin, open_[beams - 1][1] - open_[beams][1])
        # Stop when there are k finished hypotheses and, unless stopping early, the best running one, if it
        # ended now, would not score higher than the worst of them. "never" lets it end at the best length.
        if len(finished) == beams:
            if early is True:
                break
            end = MAX_NEW_TOKENS if early == "never" and penalty > 0.0 else length
            slack = running[0][1] / end**penalty - finished[-1][1]
            margin = min(margin, abs(slack))
            if slack <= 0.0:
                break
    return finished, margin


def closest_decision(next_token, searches=SEARCHES):
    # A search that stops early makes the first decisions of the one that does not.
    return min(beam_search(next_token, *search)[1] for search in searches)


def write_beam_golden(model, source_rows):
    config, seed = CASES["post_norm"]
    rng = np.random.RandomState(seed + 1)
    pad = config.target_pad
    model = model.marian.eval()

    # Add sources whose searches have no near-ties to those of the model golden file.
    oracles = [NextToken(model, pad, source) for source in source_rows]
    for length in EXTRA_LENGTHS:
        while True:
            oracle = NextToken(model, pad, *sentences(rng, [length], config.source_vocab))
            if closest_decision(oracle) > 5e-5:
                break
        oracles.append(oracle)
    margin = min(map(closest_decision, oracles))

    write_searches("beam", SEARCHES, model, oracles, margin)
    write_searches("beam_early", EARLY_SEARCHES, model, oracles, margin)
    # A search that never stops early makes decisions that the others do not come to.
    oracles = [oracle for oracle in oracles if closest_decision(oracle, NEVER_SEARCHES) > 5e-5]
    margin = min(closest_decision(oracle, NEVER_SEARCHES) for oracle in oracles)
    write_searches("beam_never", NEVER_SEARCHES, model, oracles, margin)


def write_searches(name, searches, model, oracles, margin):
    pad, sources = oracles[0].pad, [oracle.source for oracle in oracles]
    single = copy.deepcopy(model).float()
    cases, error, unfinished, stopped = [], 0.0, 0, 0
    for search in searches:
        beams, penalty, forced_eos, early = search
        results = generate(model, pad, sources, *search)
        rounded_results = generate(single, pad, sources, *search)
        for oracle, result, rounded in zip(oracles, results, rounded_results):
            plain, _ = beam_search(oracle, *search)
            for other in [plain, rounded]:
                assert [list(t) for t, _ in other] == [t for t, _ in result], (other, result)
                error = max([error, *(abs(a - b) for (_, a), (_, b) in zip(other, result))])
            unfinished += sum(t[-1] != EOS for t, _ in result)
            patient, _ = beam_search(oracle, beams, penalty, forced_eos, early=False)
            stopped += plain[0][0] != patient[0][0]
        case = {"num_beams": beams, "length_penalty": penalty, "forced_eos": forced_eos}
        hypotheses = [[{"tokens": t, "score": round(s, 6)} for t, s in result] for result in results]
        cases.append((case, hypotheses))
    early = searches[0][-1]
    others = early is not False
    assert error < 2e-5 < margin and unfinished > 0 and (stopped > 0) == others, (error, margin, unfinished, stopped)

    head = {"model": "post_norm", "eos": EOS, "pad": pad, "max_new_tokens": MAX_NEW_TOKENS}
    # One line per source and per list of hypotheses, for a short file with readable diffs.
    lines = [f'"{key}": {json.dumps(value)},' for key, value in head.items()]
    lines += ['"sources": [', ",\n".join(map(json.dumps, sources)), "],", '"cases": [']
    texts = []
    for case, hypotheses in cases:
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in hypotheses)
        texts.append(f'{json.dumps(case)[:-1]}, "results": [\n{rows}\n]}}')
    lines += [",\n".join(texts), "]"]
    INFER_GOLDEN.mkdir(parents=True, exist_ok=True)
    path = INFER_GOLDEN / f"{name}.json"
    path.write_text("{\n" + "\n".join(lines) + "\n}\n")
    assert len(json.loads(path.read_text())["cases"]) == len(cases)
    print(
        f"{name}: {len(cases)} cases of {len(sources)} sentences, {path.stat().st_size} bytes, "
        f"closest decision {margin:.1e}, score error {error:.1e}, {unfinished} without eos, "
        f"{stopped} with another best hypothesis than without early stopping"
    )


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    models = {name: write_model_golden(name) for name in CASES}
    write_beam_golden(*models["post_norm"])


if __name__ == "__main__":
    main()
