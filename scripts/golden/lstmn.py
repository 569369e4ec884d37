"""Writes the golden files for Long Short-Term Memory-Networks, computed by PyTorch.

With fixed seeds, it writes for each case below:

    crates/model/tests/golden/<case>.{safetensors,json}

README.md in this folder describes how to run it and the contents of the files.

The model is written here from the equations of Cheng, Dong and Lapata 2016, "Long Short-Term
Memory-Networks for Machine Reading" (sections 3.1 and 3.2), one sentence and one step at a time, with
lists as tapes. As in the paper, one matrix W multiplies [h~, x]; the golden files have it in two parts.
Everything else is that of recurrent.py: precision, comparison with finite differences, and what is
stored.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

import recurrent
from recurrent import Case
from transformer import MODEL_GOLDEN

WHOLE = np.s_[...]


@dataclass
class LstmnConfig:
    fusion: str  # shallow, deep
    encoder_layers: int
    decoder_layers: int
    d_embed: int = 10
    d_hidden: int = 12
    dropout: float = 0.0
    tie: str = "none"  # all: one matrix; decoder: target embedding = output; none: three matrices

    @property
    def attention(self):
        """What recurrent.py asks of a model with attention: there is no penalty, and no window."""
        return SimpleNamespace(doubly_stochastic=None, align="global")


class LstmnCase(Case):
    def json(self):
        return super().json().replace('"recurrent": {', '"lstmn": {')


CASES = {
    "lstmn_shallow": LstmnCase(7, LstmnConfig("shallow", 2, 2)),
    "lstmn_deep": LstmnCase(1, LstmnConfig("deep", 1, 1)),
    "lstmn_deep_tied": LstmnCase(
        3, LstmnConfig("deep", 2, 2, d_embed=12, tie="all"), source_vocab=19
    ),
}


class Reader(nn.Module):
    """v . tanh(W_tape tape_i + W_read read + W_x x), then softmax. Without an input it is Bahdanau's score, which has
    a bias."""

    def __init__(self, h, inputs):
        super().__init__()
        self.tape = nn.Linear(h, h, bias=not inputs)
        self.read = nn.Linear(h, h, bias=False)
        self.x = nn.Linear(inputs, h, bias=False) if inputs else None
        self.vector = nn.Parameter(torch.empty(h))

    def forward(self, keys, last, x):
        query = self.read(last)
        if self.x is not None:
            query = query + self.x(x)
        return (torch.tanh(self.tape(keys) + query) @ self.vector).softmax(-1)


class Layer(nn.Module):
    def __init__(self, inputs, h, fusion):
        super().__init__()
        self.h, self.inputs, self.fusion = h, inputs, fusion
        self.own = Reader(h, inputs)
        # Columns: h~, with shallow fusion the context, x.
        self.w = nn.Linear(h + (h if fusion == "shallow" else 0) + inputs, 4 * h)
        if fusion == "deep":
            self.source = Reader(h, inputs)
            self.w_r = nn.Linear(h + inputs, h)
        elif fusion == "shallow":
            self.source = Reader(h, 0)

    def forward(self, xs, gammas=None, alphas=None):
        """All steps. `gammas` and `alphas` are the hidden and the memory tape of the source."""
        zero = torch.zeros(self.h, dtype=xs.dtype)
        hidden, memory, contexts, attention = [], [], [], []
        h_read, before = zero, zero
        for x in xs:
            if hidden:
                s = self.own(torch.stack(hidden), h_read, x)
                h_read, c_read = s @ torch.stack(hidden), s @ torch.stack(memory)
            else:
                h_read, c_read = zero, zero
            inputs = [h_read]
            if self.fusion == "shallow":  # as in Bahdanau et al. 2015
                p = self.source(gammas, before, x)
                context = p @ gammas
                inputs.append(context)
            elif self.fusion == "deep":
                p = self.source(gammas, before, x)
                context, alpha = p @ gammas, p @ alphas
                r = torch.sigmoid(self.w_r(torch.cat([context, x])))
            i, f, g, o = self.w(torch.cat([*inputs, x])).chunk(4)
            c = torch.sigmoid(f) * c_read + torch.sigmoid(i) * torch.tanh(g)
            if self.fusion == "deep":
                c = r * alpha + c
            h = torch.sigmoid(o) * torch.tanh(c)
            hidden.append(h)
            memory.append(c)
            if self.fusion:
                before = context if self.fusion == "deep" else h
                contexts.append(context)
                attention.append(p)
        stacked = [torch.stack(part) if part else None for part in (contexts, attention)]
        return torch.stack(hidden), torch.stack(memory), *stacked

    def named(self, prefix):
        h, own = self.h, self.own
        first = 2 * h if self.fusion == "shallow" else h  # of the columns of x
        named = [
            ("input.weight", self.w.weight, np.s_[:, first:]),
            ("input.bias", self.w.bias, WHOLE),
            ("recurrent.weight", self.w.weight, np.s_[:, :h]),
            ("score.input.weight", own.x.weight, WHOLE),
            ("score.read.weight", own.read.weight, WHOLE),
            ("score.key.weight", own.tape.weight, WHOLE),
            ("score.vector", own.vector, WHOLE),
        ]
        if self.fusion:
            named += [
                ("source.score.read.weight", self.source.read.weight, WHOLE),
                ("source.score.vector", self.source.vector, WHOLE),
            ]
        if self.fusion == "shallow":
            named.append(("source.gate.weight", self.w.weight, np.s_[:, h : 2 * h]))
        elif self.fusion == "deep":
            named += [
                ("source.input.weight", self.w_r.weight, np.s_[:, h:]),
                ("source.input.bias", self.w_r.bias, WHOLE),
                ("source.gate.weight", self.w_r.weight, np.s_[:, :h]),
                ("source.score.input.weight", self.source.x.weight, WHOLE),
            ]
        return [(f"{prefix}.{name}", [(p, index)]) for name, p, index in named]


class Lstmn(nn.Module):
    scale = 1.4  # of the parameters: what is read from a tape is a mean, so states are small

    def __init__(self, case):
        super().__init__()
        self.c = c = case.model
        e, h = c.d_embed, c.d_hidden
        self.source_embedding = nn.Embedding(case.source_vocab, e, case.source_vocab - 1)
        self.target_embedding = self.source_embedding
        if c.tie != "all":
            self.target_embedding = nn.Embedding(case.target_vocab, e, case.target_vocab - 1)
        self.output = self.target_embedding
        if c.tie == "none":
            self.output = nn.Linear(h, case.target_vocab, bias=False)
        self.encoder = nn.ModuleList(
            Layer(h if n else e, h, None) for n in range(c.encoder_layers)
        )
        self.decoder = nn.ModuleList(
            Layer(h if n else e, h, None if n else c.fusion) for n in range(c.decoder_layers)
        )
        self.combine = nn.Linear(2 * h + e, h) if c.fusion == "shallow" else None

    def embed(self, embedding, tokens):
        return math.sqrt(self.c.d_embed) * embedding(torch.tensor(tokens))

    def encode(self, source):
        """The hidden and the memory tape of the highest layer."""
        hidden = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            hidden, memory, _, _ = layer(hidden)
        return hidden, memory

    def decode(self, gammas, alphas, decoder_input):
        """The hidden states and the attention weights over the source."""
        x = self.embed(self.target_embedding, decoder_input)
        hidden, _, contexts, weights = self.decoder[0](x, gammas, alphas)
        for layer in self.decoder[1:]:
            hidden, _, _, _ = layer(hidden)
        if self.combine:  # Bahdanau et al. 2015
            hidden = torch.tanh(self.combine(torch.cat([hidden, contexts, x], -1)))
        return hidden, weights

    def named(self):
        """As in recurrent.py."""
        embeddings = [
            ("model.encoder.embed_tokens.weight", self.source_embedding),
            ("model.decoder.embed_tokens.weight", self.target_embedding),
            ("lm_head.weight", self.output),
        ]
        if self.c.tie == "decoder":
            embeddings.pop()
        elif self.c.tie == "all":
            embeddings = [("model.shared.weight", self.source_embedding)]
        named = [(name, [(module.weight, WHOLE)]) for name, module in embeddings]
        for side, layers in [("encoder", self.encoder), ("decoder", self.decoder)]:
            for n, layer in enumerate(layers):
                named += layer.named(f"model.{side}.layers.{n}")
        reader = self.decoder[0]
        named.append(("model.decoder.source_key.weight", [(reader.source.tape.weight, WHOLE)]))
        if self.combine:
            named += [
                ("model.decoder.source_key.bias", [(reader.source.tape.bias, WHOLE)]),
                ("model.decoder.combine.weight", [(self.combine.weight, WHOLE)]),
                ("model.decoder.combine.bias", [(self.combine.bias, WHOLE)]),
            ]
        trained = sum(p.numel() for p in self.parameters())
        assert trained == sum(p[index].numel() for _, pieces in named for p, index in pieces)
        return sorted(named, key=lambda entry: entry[0])


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    MODEL_GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        recurrent.write_golden(name, case, Lstmn)


if __name__ == "__main__":
    main()
