"""Writes the golden files for captioning models, computed by PyTorch.

With fixed seeds, it writes for each case below:

    crates/model/tests/golden/<case>.{safetensors,json}

README.md in this folder describes how to run it and the contents of the files. The sources are pictures,
`input.pictures` [count, height, width, channels].

Convolutions, normalisation and pooling are PyTorch's, and so is the decoder of `caption_transformer`. The
attention is that of recurrent.py. The gradients of autograd are compared with finite differences of the loss.

As in transformer.py, parameters are float32, and everything computed from them is computed in float64 and
then rounded to float32. The same computation is also done in float32, and its distance to the float64
result is printed.
"""

import copy
import json
import math
from dataclasses import dataclass

import numpy as np
import torch
from safetensors.numpy import save
from torch import nn
from torch.nn.functional import conv2d, linear, max_pool2d

from recurrent import Attention, AttentionConfig
from transformer import (
    MODEL_GOLDEN,
    TorchTransformer,
    check_gradients,
    distance,
    sentences,
    sinusoids,
    smoothed_loss,
)

TARGET_LENGTHS = [4, 6, 1]  # eos included


@dataclass
class Case:
    seed: int
    height: int
    width: int
    grey: bool
    blocks: list  # (width, convolutions, pool)
    d: int  # the decoder's width
    tie: str  # decoder: target embedding = output; none: two matrices
    d_embed: int | None = None  # of the recurrent decoder
    heads: int | None = None  # of the Transformer's
    d_ff: int | None = None
    decoder_layers: int = 1
    attention: AttentionConfig | None = None
    target_vocab: int = 19
    smoothing: float = 0.1

    @property
    def channels(self):
        return 1 if self.grey else 3

    def json(self):
        blocks = [dict(zip(("width", "convolutions", "pool"), block)) for block in self.blocks]
        picture = {"height": self.height, "width": self.width, "grey": self.grey}
        caption = {"picture": picture, "blocks": blocks, "positions": True}
        layers = {"encoder_layers": 0, "decoder_layers": self.decoder_layers, "tie": self.tie}
        if self.attention:
            attention = {k: v for k, v in vars(self.attention).items() if v is not None}
            shape = {"cell": "lstm", "d_embed": self.d_embed, "d_hidden": self.d, "dropout": 0.0}
            caption["recurrent"] = {**layers, **shape, "attention": attention}
        else:
            shape = {"d_model": self.d, "heads": self.heads, "d_ff": self.d_ff, "norm": "pre"}
            none = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
            caption["transformer"] = {**layers, **shape, "activation": "gelu", **none}
        case = {"model": {"caption": caption}}
        case |= {"target_vocab": self.target_vocab, "smoothing": self.smoothing}
        return json.dumps(case, indent=2) + "\n"


CASES = {
    "caption_soft": Case(
        1,
        9,
        7,
        False,
        [(6, 1, 2), (8, 2, 1)],
        d=12,
        d_embed=10,
        tie="none",
        attention=AttentionConfig("bahdanau", "additive", gate=True, doubly_stochastic=0.7),
    ),
    "caption_transformer": Case(
        2, 8, 11, True, [(7, 1, 1), (9, 1, 3)], d=16, heads=2, d_ff=24, decoder_layers=2, tie="decoder"
    ),
}


class Convolution(nn.Module):
    """The weight is [outputs, line, column, inputs], as in Attend."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, 3, 3, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return conv2d(x, self.weight.permute(0, 3, 1, 2), self.bias, padding=1)


class Lstm(nn.Module):
    """The cell of the decoder, as in torch.nn.LSTMCell with the context as a second input."""

    def __init__(self, e, h):
        super().__init__()
        self.input = nn.Linear(e, 4 * h)
        self.recurrent = nn.Linear(2 * h, 4 * h, bias=False)

    def forward(self, y, context, state, cell):
        gates = self.input(y) + self.recurrent(torch.cat([context, state]))
        i, f, g, o = gates.chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class Caption(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.c = c = case
        self.convolutions, self.norms, self.places = nn.ModuleList(), nn.ModuleList(), []
        inputs, height, width = c.channels, c.height, c.width
        for number, (outputs, count, pool) in enumerate(c.blocks):
            for n in range(count):
                self.convolutions.append(Convolution(inputs, outputs))
                self.norms.append(nn.LayerNorm(outputs))
                self.places.append((number, n, pool if n + 1 == count else 1))
                inputs = outputs
            height, width = height // pool, width // pool
        self.projection, self.projection_norm = nn.Linear(inputs, c.d), nn.LayerNorm(c.d)
        half = c.d // 2
        lines = sinusoids(height, half)[:, None].expand(height, width, half)
        columns = sinusoids(width, half)[None].expand(height, width, half)
        self.register_buffer("positions", torch.cat([lines, columns], -1).reshape(-1, c.d))
        e = c.d_embed or c.d
        self.embedding = nn.Embedding(c.target_vocab, e, c.target_vocab - 1)
        self.output = self.embedding
        if c.tie == "none":
            self.output = nn.Linear(c.d, c.target_vocab, bias=False)
        if c.attention:
            self.start, self.cell = nn.Linear(c.d, 2 * c.d), Lstm(e, c.d)
            self.attention = Attention(c.attention, c.d)
            self.combine = nn.Linear(2 * c.d + e, c.d)
        else:
            kind = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            layer = nn.TransformerDecoderLayer(c.d, c.heads, c.d_ff, **kind)
            self.decoder = nn.TransformerDecoder(layer, c.decoder_layers, nn.LayerNorm(c.d))
            register = sinusoids(64, c.d)
            self.register_buffer("word_positions", register)

    def encode(self, picture):
        """The regions [L, d] of a picture [height, width, channels]."""
        x = picture.permute(2, 0, 1)[None]
        for convolution, norm, (_, _, pool) in zip(self.convolutions, self.norms, self.places):
            x = norm(convolution(x).permute(0, 2, 3, 1)).relu().permute(0, 3, 1, 2)
            if pool > 1:
                x = max_pool2d(x, pool)
        regions = x[0].permute(1, 2, 0).flatten(0, 1)
        return self.projection_norm(self.projection(regions)) + self.positions

    def decode(self, memory, inputs):
        """Returns the hidden states [target, d] and the attention weights [target, L]."""
        words = math.sqrt(self.embedding.embedding_dim) * self.embedding(torch.tensor(inputs))
        if not self.c.attention:
            x = words + self.word_positions[: len(inputs)]
            future = torch.ones(len(inputs), len(inputs), dtype=torch.bool).triu(diagonal=1)
            return self.decoder(x[None], memory[None], tgt_mask=future)[0], None
        state, cell = torch.tanh(self.start(memory.mean(0))).chunk(2)
        hidden, weights = [], []
        for t, y in enumerate(words):
            context, a = self.attention(state, memory, t)
            state, cell = self.cell(y, context, state, cell)
            hidden.append(torch.tanh(self.combine(torch.cat([state, context, y]))))
            weights.append(a)
        return torch.stack(hidden), torch.stack(weights)

    def named(self):
        """[(name in the file, parameter, rows of it)]."""
        whole, named = slice(None), [("model.decoder.embed_tokens.weight", self.embedding.weight, slice(None))]
        modules = {"model.encoder.projection": self.projection, "model.encoder.projection_norm": self.projection_norm}
        for convolution, norm, (block, n, _) in zip(self.convolutions, self.norms, self.places):
            modules[f"model.encoder.blocks.{block}.convolutions.{n}"] = convolution
            modules[f"model.encoder.blocks.{block}.norms.{n}"] = norm
        if self.c.tie == "none":
            modules["lm_head"] = self.output
        if self.c.attention:
            modules["model.decoder.start.0"] = self.start
            modules["model.decoder.layers.0"] = self.cell
            modules["model.decoder.attention"] = self.attention
            modules["model.decoder.combine"] = self.combine
        else:
            for name, p in self.decoder.named_parameters():
                named += TorchTransformer.rename(f"decoder.{name}", p)
        for prefix, module in modules.items():
            named += [(f"{prefix}.{leaf}", p, whole) for leaf, p in module.named_parameters()]
        assert sum(p.numel() for p in self.parameters()) == sum(p[rows].numel() for _, p, rows in named)
        return sorted(named, key=lambda entry: entry[0])


def has_pad(name):
    return "embed_tokens" in name or "lm_head" in name


def randomize(model, rng):
    """Draws weights large enough that every part matters, and biases and norms away from 0 and 1."""
    with torch.no_grad():
        for name, p, rows in model.named():
            value = torch.tensor(rng.uniform(-1.0, 1.0, size=p[rows].shape))
            if "norm" in name:
                value = 0.3 * value + (1.0 if name.endswith("weight") else 0.0)
            else:
                value *= 2.0 if "decoder.attention" in name else 0.5
            if has_pad(name):
                value[-1] = 0.0
            p[rows] = value


def forward(model, case, pictures, targets):
    memories, hiddens, attention, penalty = [], [], [], 0.0
    for picture, target in zip(pictures.to(model.positions.dtype), targets):
        memory = model.encode(picture)
        hidden, weights = model.decode(memory, [case.target_vocab - 1, *target[:-1]])
        memories.append(memory)
        hiddens.append(hidden)
        if weights is not None:
            attention.append(weights.flatten())
            penalty = penalty + case.attention.doubly_stochastic * ((1.0 - weights.sum(0)) ** 2).sum()
    hidden = torch.cat(hiddens)
    logits = linear(hidden, model.output.weight[:-1])  # without pad
    loss = smoothed_loss(logits, torch.tensor(sum(targets, [])), case.smoothing) + penalty
    out = {
        "output.memory": torch.cat(memories),
        "output.hidden": hidden,
        "output.logits": logits,
        "output.loss": loss.reshape(1),
    }
    if attention:
        out["output.attention"] = torch.cat(attention)
    return out


def forward_backward(model, case, *batch):
    model.zero_grad()
    out = forward(model, case, *batch)
    out["output.loss"].backward()
    for name, p, rows in model.named():
        out[f"param.{name}"], out[f"grad.{name}"] = p[rows], p.grad[rows]
    out = {name: x.detach().numpy() for name, x in out.items()}
    for name in out:
        if has_pad(name):
            assert not out[name][-1].any(), name
    return out


def check_differences(model, case, batch, rng):
    """Compares autograd with central differences, for a few entries of each parameter."""
    step, worst = 1e-6, 0.0

    def loss():
        with torch.no_grad():
            return forward(model, case, *batch)["output.loss"].item()

    for name, p, rows in model.named():
        value, gradient = p.data[rows], p.grad[rows]
        if name.endswith("k_proj.bias"):
            continue  # zero in theory
        if has_pad(name):
            value, gradient = value[:-1], gradient[:-1]
        largest = gradient.abs().max().item()
        for entry in [tuple(rng.randint(n) for n in gradient.shape) for _ in range(4)]:
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


def write_golden(name):
    case = CASES[name]
    rng = np.random.RandomState(case.seed)
    model = Caption(case)
    randomize(model, rng)
    shape = (len(TARGET_LENGTHS), case.height, case.width, case.channels)
    pictures = torch.tensor(rng.uniform(-1.0, 1.0, size=shape).astype(np.float32))
    batch = pictures, sentences(rng, TARGET_LENGTHS, case.target_vocab)
    exact_model = copy.deepcopy(model).double()
    exact = forward_backward(exact_model, case, *batch)
    check_gradients(exact)
    differences = check_differences(exact_model, case, batch, rng)
    worst, where = distance(exact, forward_backward(model, case, *batch))
    assert worst < 1e-5, (name, worst, where)
    tensors = {name: x.astype(np.float32) for name, x in exact.items()}
    tensors["input.pictures"] = pictures.numpy()
    tensors["input.target_ids"] = np.array(sum(batch[1], []), dtype=np.uint32)
    tensors["input.target_lengths"] = np.array(TARGET_LENGTHS, dtype=np.uint32)
    data = save({name: x.copy() for name, x in sorted(tensors.items())})
    (MODEL_GOLDEN / f"{name}.safetensors").write_bytes(data)
    (MODEL_GOLDEN / f"{name}.json").write_text(case.json())
    print(
        f"{name}: {len(data)} bytes, loss {exact['output.loss'][0]:.6f}, float32 differs by at most "
        f"{worst:.1e} ({where}), finite differences by {differences:.1e}"
    )


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in CASES:
        write_golden(name)


if __name__ == "__main__":
    main()
