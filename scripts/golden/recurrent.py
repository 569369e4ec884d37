"""Writes the golden files for the recurrent encoder-decoders, computed by PyTorch.

With fixed seeds, it writes for each case below:

    crates/model/tests/golden/<case>.{safetensors,json}

README.md in this folder describes how to run it and the contents of the files.

The cells are torch.nn.LSTM and torch.nn.GRU in the encoder, torch.nn.LSTMCell and torch.nn.GRUCell in
the decoder. Everything else is implemented here, one sentence at a time, so there is no padding. The
gradients of autograd are compared with finite differences of the loss, for a few entries of each
parameter.

As in transformer.py, parameters are float32, and everything computed from them is computed in float64 and
then rounded to float32. The same computation is also done in float32, and its distance to the float64
result is printed.
"""

import copy
import json
import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from safetensors.numpy import save
from torch import nn
from torch.nn.functional import linear, pad, softplus

from transformer import MODEL_GOLDEN, check_gradients, distance, sentences, smoothed_loss

# Eos included. Chosen so that local windows are cut off at either end of the source, so that some
# targets are longer than their source, and so that in lstm_local_m the last window of the second pair
# (7, 6) has a single key below `positions`, while no window is empty.
SOURCE_LENGTHS = [1, 7, 3, 12, 5]
TARGET_LENGTHS = [4, 6, 9, 5, 1]


# The configuration that is written to JSON. Fields that are None are omitted.


@dataclass
class AttentionConfig:
    order: str  # bahdanau: attends before the decoder step; luong: after it
    score: str  # additive, general, dot, scaled-dot, cosine, location
    input_feeding: bool | None = None  # luong only
    positions: int | None = None  # location only
    activation: str | None = None  # additive only: tanh, sigmoid, relu
    sharpness: str | None = None  # cosine only: learned, emitted
    align: str = "global"  # global, local-m, local-p
    window: int | None = None  # local-m and local-p only
    deviation: str | None = None  # local-p only: fixed, learned
    gate: bool | None = None
    doubly_stochastic: float | None = None


@dataclass
class RecurrentConfig:
    cell: str  # lstm, gru
    encoder_layers: int
    decoder_layers: int
    d_embed: int = 10
    d_hidden: int = 12
    bidirectional: bool = True
    reverse_source: bool = False
    dropout: float = 0.0
    tie: str = "none"  # all: one matrix; decoder: target embedding = output; none: three matrices
    attention: AttentionConfig | str = "none"
    context: str | None = None  # first, every; without attention only


@dataclass
class Case:
    seed: int
    model: RecurrentConfig
    source_vocab: int = 17
    target_vocab: int = 19
    smoothing: float = 0.1

    def json(self):
        case = asdict(self, dict_factory=lambda kv: {k: v for k, v in kv if v is not None})
        del case["seed"]
        return json.dumps({**case, "model": {"recurrent": case["model"]}}, indent=2) + "\n"


# Seeds were chosen from 1 to 8 such that float32 gradients are accurate and, in local-p, no key is near the
# edge of a window.
CASES = {
    "lstm_bahdanau": Case(
        8, RecurrentConfig("lstm", 2, 1, attention=AttentionConfig("bahdanau", "additive"))
    ),
    "gru_bahdanau": Case(
        5, RecurrentConfig("gru", 1, 1, attention=AttentionConfig("bahdanau", "additive"))
    ),
    "lstm_luong": Case(
        4,
        RecurrentConfig(
            "lstm",
            2,
            2,
            d_embed=12,
            bidirectional=False,
            tie="decoder",
            attention=AttentionConfig("luong", "general", input_feeding=True),
        ),
    ),
    "gru_luong": Case(
        3,
        RecurrentConfig(
            "gru",
            1,
            2,
            d_embed=12,
            tie="all",
            attention=AttentionConfig("luong", "dot", input_feeding=True),
        ),
        source_vocab=19,
    ),
    "lstm_fixed": Case(5, RecurrentConfig("lstm", 2, 2, bidirectional=False, reverse_source=True)),
    "lstm_local_p": Case(
        7,
        RecurrentConfig(
            "lstm",
            1,
            1,
            attention=AttentionConfig(
                "luong",
                "scaled-dot",
                input_feeding=False,
                align="local-p",
                window=2,
                deviation="learned",
                gate=True,
                doubly_stochastic=0.7,
            ),
        ),
    ),
    "gru_local_p_fixed": Case(
        4,
        RecurrentConfig(
            "gru",
            1,
            1,
            attention=AttentionConfig(
                "luong", "general", input_feeding=False, align="local-p", window=2, deviation="fixed"
            ),
        ),
    ),
    "gru_every_step": Case(5, RecurrentConfig("gru", 1, 1, bidirectional=False, context="every")),
    "lstm_every_step": Case(3, RecurrentConfig("lstm", 2, 2, context="every")),
    "gru_sigmoid": Case(
        5,
        RecurrentConfig(
            "gru", 1, 1, attention=AttentionConfig("bahdanau", "additive", activation="sigmoid")
        ),
    ),
    "gru_relu": Case(
        5,
        RecurrentConfig(
            "gru", 1, 1, attention=AttentionConfig("bahdanau", "additive", activation="relu")
        ),
    ),
    "lstm_emitted_sharpness": Case(
        6,
        RecurrentConfig(
            "lstm",
            1,
            1,
            attention=AttentionConfig("luong", "cosine", input_feeding=True, sharpness="emitted"),
        ),
    ),
    "gru_cosine": Case(
        6,
        RecurrentConfig("gru", 1, 1, attention=AttentionConfig("luong", "cosine", input_feeding=True)),
    ),
    "lstm_local_m": Case(
        8,
        RecurrentConfig(
            "lstm",
            1,
            1,
            attention=AttentionConfig(
                "bahdanau", "location", positions=5, align="local-m", window=1
            ),
        ),
    ),
}


# The model. A state is (h, c) or (h,). Sentences are [length, width], without a batch dimension.


class Attention(nn.Module):
    """Parameter names are those of the golden file, without the prefix `model.decoder.attention.`."""

    def __init__(self, c, h):
        super().__init__()
        self.c = c
        self.score, self.align = nn.Module(), nn.Module()
        if c.score == "general":
            self.score.key = nn.Linear(h, h, bias=False)
        elif c.score == "additive":
            self.score.query = nn.Linear(h, h, bias=False)
            self.score.key = nn.Linear(h, h)
            self.score.vector = nn.Parameter(torch.empty(h))
        elif c.score == "cosine":
            if c.sharpness == "emitted":
                self.score.sharpness = nn.Linear(h, 1)
            else:
                self.score.sharpness = nn.Parameter(torch.empty(1))
        elif c.score == "location":
            self.score.location = nn.Linear(h, c.positions, bias=False)
        if c.align == "local-p":
            self.align.inner = nn.Linear(h, h, bias=False)
            self.align.vector = nn.Parameter(torch.empty(h))
            if c.deviation == "learned":
                self.align.width = nn.Parameter(torch.empty(1))
        if c.gate:
            self.gate = nn.Linear(h, 1)
        self.edge = math.inf  # smallest distance of a key to the edge of a local-p window
        self.kink = math.inf  # smallest distance of an input of ReLU to zero

    def scores(self, q, memory):
        """The score of each key."""
        score = self.score
        if self.c.score == "dot":
            return memory @ q
        if self.c.score == "scaled-dot":
            return memory @ q / math.sqrt(len(q))
        if self.c.score == "general":
            return score.key(memory) @ q
        if self.c.score == "additive":
            inner = score.query(q) + score.key(memory)
            if self.c.activation == "relu":
                self.kink = min(self.kink, inner.abs().min().item())
            return getattr(torch, self.c.activation or "tanh")(inner) @ score.vector
        if self.c.score == "cosine":
            norms = (q @ q + 1e-6).sqrt() * ((memory * memory).sum(-1) + 1e-6).sqrt()
            if self.c.sharpness == "emitted":
                beta = softplus(score.sharpness(q))
            else:
                beta = score.sharpness.exp()
            return beta * (memory @ q) / norms
        by_position = score.location(q)[: len(memory)]
        return pad(by_position, (0, len(memory) - len(by_position)), value=-math.inf)

    def forward(self, q, memory, t):
        """Returns the context and the attention weights."""
        c, length = self.c, len(memory)
        j = torch.arange(length)
        scores, focus = self.scores(q, memory), 1.0
        if c.align == "local-m":
            scores = scores.masked_fill((j - min(t, length - 1)).abs() > c.window, -math.inf)
        elif c.align == "local-p":
            p = length * torch.sigmoid(torch.tanh(self.align.inner(q)) @ self.align.vector)
            far = (j - p).abs().detach()
            self.edge = min(self.edge, (far - c.window).abs().min().item())
            scores = scores.masked_fill(far > c.window, -math.inf)
            sigma = c.window / 2
            if c.deviation == "learned":
                sigma = sigma * self.align.width.exp()
            focus = torch.exp(-((j - p) ** 2) / (2 * sigma**2))
        # No window is empty in these cases. (In local-p with D >= 1 no window can be: p <= length, so one
        # of the keys is at a distance of at most 1.)
        assert scores.isfinite().any()
        weights = scores.softmax(-1) * focus
        context = weights @ memory
        if c.gate:
            context = context * torch.sigmoid(self.gate(q))
        return context, weights


class Recurrent(nn.Module):
    scale = 0.7  # of the parameters

    def __init__(self, case):
        super().__init__()
        self.c = c = case.model
        e, h, lstm = c.d_embed, c.d_hidden, c.cell == "lstm"
        self.source_embedding = nn.Embedding(case.source_vocab, e, case.source_vocab - 1)
        self.target_embedding = self.source_embedding
        if c.tie != "all":
            self.target_embedding = nn.Embedding(case.target_vocab, e, case.target_vocab - 1)
        self.output = self.target_embedding
        if c.tie == "none":
            self.output = nn.Linear(h, case.target_vocab, bias=False)

        if c.bidirectional:
            directions = ["forward", "backward"]
        else:
            directions = ["backward" if c.reverse_source else "forward"]
        rnn, cell = (nn.LSTM, nn.LSTMCell) if lstm else (nn.GRU, nn.GRUCell)
        self.encoder = nn.ModuleList()
        for n in range(c.encoder_layers):
            layer = [rnn(h if n else e, h // len(directions)) for _ in directions]
            self.encoder.append(nn.ModuleList(layer))
        self.directions = directions

        attention = c.attention if c.attention != "none" else None
        self.bahdanau = attention is not None and attention.order == "bahdanau"
        self.feeding = attention is not None and bool(attention.input_feeding)
        self.every = c.context == "every"
        self.feed = h if self.bahdanau or self.feeding or self.every else 0
        inputs = [e + self.feed] + [h] * (c.decoder_layers - 1)
        self.decoder = nn.ModuleList(cell(width, h) for width in inputs)
        if attention:
            self.attention = Attention(attention, h)
            self.combine = nn.Linear(2 * h + e if self.bahdanau else 2 * h, h, bias=self.bahdanau)
        elif self.every:
            self.combine = nn.Linear(2 * h + e, h)

        if lstm:  # Attend's LSTM has a single bias
            for name, p in self.named_parameters():
                if "bias_hh" in name:
                    nn.init.zeros_(p).requires_grad_(False)

    def embed(self, embedding, tokens):
        return math.sqrt(self.c.d_embed) * embedding(torch.tensor(tokens))

    def encode(self, source):
        """Returns the memory [source, h] and the final state of each layer."""
        x, finals = self.embed(self.source_embedding, source), []
        for layer in self.encoder:
            outputs, states = [], []
            for direction, rnn in zip(self.directions, layer):
                if direction == "backward":
                    output, state = rnn(x.flip(0))
                    output = output.flip(0)
                else:
                    output, state = rnn(x)
                outputs.append(output)
                states.append(state if self.c.cell == "lstm" else (state,))
            x = torch.cat(outputs, -1)
            finals.append([torch.cat(parts, -1)[0] for parts in zip(*states)])
        return x, finals

    def decode(self, memory, finals, decoder_input):
        """Returns the hidden states [target, h] and the attention weights [target, source]."""
        # Initial states come from the top encoder layers. If there are fewer, the last one is repeated.
        first = max(len(finals) - len(self.decoder), 0)
        states = [finals[min(first + n, len(finals) - 1)] for n in range(len(self.decoder))]
        summary = finals[-1][0]
        hidden, weights = [], []
        h_tilde = torch.zeros_like(memory[0])
        for t, y in enumerate(self.embed(self.target_embedding, decoder_input)):
            if self.bahdanau:
                context, a = self.attention(states[-1][0], memory, t)
                s = self.step(states, torch.cat([y, context]))
                hidden.append(torch.tanh(self.combine(torch.cat([s, context, y]))))
                weights.append(a)
            elif self.c.attention != "none":
                s = self.step(states, torch.cat([y, h_tilde]) if self.feeding else y)
                context, a = self.attention(s, memory, t)
                h_tilde = torch.tanh(self.combine(torch.cat([context, s])))
                hidden.append(h_tilde)
                weights.append(a)
            elif self.every:
                s = self.step(states, torch.cat([y, summary]))
                hidden.append(torch.tanh(self.combine(torch.cat([s, summary, y]))))
            else:
                hidden.append(self.step(states, y))
        return torch.stack(hidden), torch.stack(weights) if weights else None

    def step(self, states, x):
        """Advances all cells by one step, in place in `states`. Returns the new h of the top layer."""
        for n, cell in enumerate(self.decoder):
            states[n] = cell(x, states[n]) if self.c.cell == "lstm" else [cell(x, *states[n])]
            x = states[n][0]
        return x

    def named(self):
        """[(name in the file, pieces)]. A piece is (parameter, index); pieces are concatenated by columns."""
        c, whole = self.c, np.s_[...]
        embeddings = [
            ("model.encoder.embed_tokens.weight", self.source_embedding),
            ("model.decoder.embed_tokens.weight", self.target_embedding),
            ("lm_head.weight", self.output),
        ]
        if c.tie == "decoder":
            embeddings.pop()
        elif c.tie == "all":
            embeddings = [("model.shared.weight", self.source_embedding)]
        named = [(name, [(module.weight, whole)]) for name, module in embeddings]

        for n, layer in enumerate(self.encoder):
            for direction, rnn in zip(self.directions, layer):
                prefix = f"model.encoder.layers.{n}.{direction}"
                named += [
                    (f"{prefix}.input.weight", [(rnn.weight_ih_l0, whole)]),
                    (f"{prefix}.input.bias", [(rnn.bias_ih_l0, whole)]),
                    (f"{prefix}.recurrent.weight", [(rnn.weight_hh_l0, whole)]),
                ]
                if c.cell == "gru":
                    named.append((f"{prefix}.recurrent.bias", [(rnn.bias_hh_l0, whole)]))
        for n, cell in enumerate(self.decoder):
            prefix = f"model.decoder.layers.{n}"
            width = c.d_hidden if n else c.d_embed
            recurrent = [(cell.weight_hh, whole)]
            if n == 0 and self.feed:
                feed = (cell.weight_ih, np.s_[:, width:])
                if self.every:
                    named.append((f"{prefix}.context.weight", [feed]))
                elif c.cell == "lstm":
                    recurrent.insert(0, feed)
                else:
                    named.append((f"{prefix}.feed.weight", [feed]))
            named += [
                (f"{prefix}.input.weight", [(cell.weight_ih, np.s_[:, :width])]),
                (f"{prefix}.input.bias", [(cell.bias_ih, whole)]),
                (f"{prefix}.recurrent.weight", recurrent),
            ]
            if c.cell == "gru":
                named.append((f"{prefix}.recurrent.bias", [(cell.bias_hh, whole)]))
        for name in ["attention", "combine"]:
            if hasattr(self, name):
                for leaf, p in getattr(self, name).named_parameters():
                    named.append((f"model.decoder.{name}.{leaf}", [(p, whole)]))

        trained = sum(p.numel() for p in self.parameters() if p.requires_grad)
        assert trained == sum(p[index].numel() for _, pieces in named for p, index in pieces)
        return sorted(named, key=lambda entry: entry[0])


def has_pad(name):
    return "embed_tokens" in name or "shared" in name or "lm_head" in name


def randomize(model, rng):
    """Draws parameters large enough for the cells to be non-linear, with biases as large as weights.

    Parameters of attention are larger, because otherwise all keys get about the same weight.
    """
    with torch.no_grad():
        for name, pieces in model.named():
            shape = list(pieces[0][0][pieces[0][1]].shape)
            shape[-1] = sum(p[index].shape[-1] for p, index in pieces)
            value = torch.tensor(rng.uniform(-1.0, 1.0, size=shape))
            if name.endswith(("score.sharpness", "score.sharpness.bias")):
                value = 1.0 + 0.1 * value
            elif name.endswith("align.width"):
                value = 0.3 + 0.1 * value
            else:
                value *= 2.0 if "attention" in name or "score" in name else model.scale
            if has_pad(name):
                value[-1] = 0.0
            for p, index in pieces:
                p[index] = value[..., : p[index].shape[-1]]
                value = value[..., p[index].shape[-1] :]


def forward(model, case, source_rows, target_rows):
    """The outputs: memory, hidden, logits, loss and, with attention, the attention weights."""
    memories, hiddens, attention, penalty = [], [], [], 0.0
    for source, target in zip(source_rows, target_rows):
        memory, finals = model.encode(source)
        hidden, weights = model.decode(memory, finals, [case.target_vocab - 1, *target[:-1]])
        memories.append(memory)
        hiddens.append(hidden)
        if weights is not None:
            attention.append(weights.flatten())
            if case.model.attention.doubly_stochastic:
                misses = ((1.0 - weights.sum(0)) ** 2).sum()
                penalty = penalty + case.model.attention.doubly_stochastic * misses
    hidden = torch.cat(hiddens)
    logits = linear(hidden, model.output.weight[:-1])  # without pad
    labels = torch.tensor(sum(target_rows, []))
    loss = smoothed_loss(logits, labels, case.smoothing) + penalty
    out = {
        "output.memory": torch.cat(memories),
        "output.hidden": hidden,
        "output.logits": logits,
        "output.loss": loss.reshape(1),
    }
    if attention:
        out["output.attention"] = torch.cat(attention)
    return out


def forward_backward(model, case, rows):
    """Everything that is stored except the inputs, in the precision of `model`."""
    model.zero_grad()
    out = forward(model, case, *rows)
    out["output.loss"].backward()
    for name, pieces in model.named():
        out[f"param.{name}"] = torch.cat([p[index] for p, index in pieces], -1)
        out[f"grad.{name}"] = torch.cat([p.grad[index] for p, index in pieces], -1)
    out = {name: x.detach().numpy() for name, x in out.items()}

    # Pad rows are zero and get no gradient, due to `padding_idx` and the slice of the output matrix.
    for name in out:
        if has_pad(name):
            assert not out[name][-1].any(), name
    return out


def check_differences(model, case, rows, rng):
    """Compares autograd with central differences, for a few entries of each parameter.

    Returns the largest error relative to the largest entry of the gradient.
    """
    step, worst = 1e-5, 0.0

    def loss():
        with torch.no_grad():
            return forward(model, case, *rows)["output.loss"].item()

    for name, pieces in model.named():
        for p, index in pieces:
            # Views of the parameter and its gradient, without the pad row.
            value, gradient = p.data[index], p.grad[index]
            if has_pad(name):
                value, gradient = value[:-1], gradient[:-1]
            largest = gradient.abs().max().item()
            entries = [np.unravel_index(gradient.abs().argmax().item(), gradient.shape)]
            entries += [tuple(rng.randint(n) for n in gradient.shape) for _ in range(3)]
            for entry in entries:
                before = value[entry].item()
                value[entry] = before + step
                above = loss()
                value[entry] = before - step
                below = loss()
                value[entry] = before
                error = abs((above - below) / (2 * step) - gradient[entry].item()) / largest
                assert error < 1e-6, (name, entry, error)
                worst = max(worst, error)
    return worst


def stored(exact, rows):
    """The bytes of the .safetensors file."""
    tensors = {name: x.astype(np.float32) for name, x in exact.items()}
    for side, side_rows in zip(["source", "target"], rows):
        tensors[f"input.{side}_ids"] = np.array(sum(side_rows, []), dtype=np.uint32)
        tensors[f"input.{side}_lengths"] = np.array([len(row) for row in side_rows], dtype=np.uint32)
    # Copies, because safetensors stores the underlying buffer.
    return save({name: x.copy() for name, x in sorted(tensors.items())})


def write_golden(name, case, family):
    def make():
        rng = np.random.RandomState(case.seed)
        model = family(case)
        randomize(model, rng)
        source_rows = sentences(rng, SOURCE_LENGTHS, case.source_vocab)
        target_rows = sentences(rng, TARGET_LENGTHS, case.target_vocab)
        rows = source_rows, target_rows
        exact_model = copy.deepcopy(model).double()
        return model, exact_model, rows, rng, forward_backward(exact_model, case, rows)

    model, exact_model, rows, rng, exact = make()
    check_gradients(exact)
    differences = check_differences(exact_model, case, rows, rng)
    worst, where = distance(exact, forward_backward(model, case, rows))
    assert worst < 1e-5, (name, worst, where)
    note = ""
    if case.model.attention != "none" and case.model.attention.align != "global":
        a = exact["output.attention"]
        note = f", {np.mean(a == 0.0):.0%} of keys outside the window"
        if case.model.attention.align == "local-p":
            edge = exact_model.attention.edge  # including the evaluations in check_differences
            assert edge > 1e-2, edge
            note += f", closest key to a window edge {edge:.1e}"

    if case.model.attention != "none" and case.model.attention.activation == "relu":
        kink = exact_model.attention.kink  # including the evaluations in check_differences
        assert kink > 1e-5, kink
        note = f", closest input of ReLU to zero {kink:.1e}"

    data = stored(exact, rows)
    _, _, rows, _, again = make()
    assert data == stored(again, rows)
    (MODEL_GOLDEN / f"{name}.safetensors").write_bytes(data)
    (MODEL_GOLDEN / f"{name}.json").write_text(case.json())
    print(
        f"{name}: {len(data)} bytes, loss {exact['output.loss'][0]:.6f}, float32 differs by at most "
        f"{worst:.1e} ({where}), finite differences by {differences:.1e}{note}"
    )


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    MODEL_GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        write_golden(name, case, Recurrent)


if __name__ == "__main__":
    main()
