"""Recurrent models for pytorch_step.py, written for speed in idiomatic PyTorch.

The encoders, and the decoder without attention, are modules of torch.nn. The decoders with attention
loop over the target positions. Everything that does not depend on the previous step is computed for all
positions at once. For the rest, the fastest of several variants was chosen: scores and contexts as
matrix products, as sums of products, or by scaled_dot_product_attention; cells written by hand or from
torch.nn.
"""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WIDTH = 256
SHAPES = {"luong": (nn.LSTM, 1), "bahdanau": (nn.GRU, 1), "fixed": (nn.LSTM, 2)}  # (cell, layers per side)


class Recurrent(nn.Module):
    """The target embedding is also the output matrix. Tensors are [position, sentence, …]."""

    def __init__(self, shape, vocabulary, dropout, exact):
        super().__init__()
        kind, layers = SHAPES[shape]
        self.pad, self.scale, self.exact = vocabulary - 1, math.sqrt(WIDTH), exact
        self.source = nn.Embedding(vocabulary, WIDTH, padding_idx=self.pad)
        self.target = nn.Embedding(vocabulary, WIDTH, padding_idx=self.pad)
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=WIDTH**-0.5)
        self.dropout = nn.Dropout(dropout)
        both = shape != "fixed"
        between = dropout if layers > 1 else 0.0
        width = WIDTH // 2 if both else WIDTH
        self.encoder = kind(WIDTH, width, layers, dropout=between, bidirectional=both)
        if both:
            self.decoder = {"luong": Luong, "bahdanau": Bahdanau}[shape]()
        else:
            self.decoder = kind(WIDTH, WIDTH, layers, dropout=between)
        for name, parameter in self.named_parameters():
            if kind is nn.LSTM and ".bias_hh_" in name:  # Attend's LSTM has a single bias
                nn.init.zeros_(parameter).requires_grad_(False)

    @property
    def output(self):
        return self.target.weight

    def embed(self, embedding, tokens):
        return self.dropout(embedding(tokens) * self.scale)

    def encode(self, source, ragged):
        """Unless exact, the encoder also reads the padding: packing would cost more time than it saves."""
        x = self.embed(self.source, source)
        if not (ragged and self.exact):
            return self.encoder(x)
        lengths = (source != self.pad).sum(0)
        memory, last = self.encoder(pack_padded_sequence(x, lengths, enforce_sorted=False))
        return pad_packed_sequence(memory)[0], last

    def forward(self, source, inputs, ragged):
        source, inputs = source.t(), inputs.t()
        memory, last = self.encode(source, ragged)
        y = self.embed(self.target, inputs)
        if isinstance(self.decoder, nn.LSTM):
            hidden, _ = self.decoder(y, last)
        else:
            hide = None
            if ragged:
                hide = torch.zeros(source.shape).masked_fill_(source == self.pad, -math.inf)
                hide = hide.t().contiguous()
            # [directions, sentences, width / 2] to [sentences, width]
            join = lambda state: state.transpose(0, 1).flatten(1)
            start = tuple(map(join, last)) if isinstance(last, tuple) else join(last)
            hidden = self.decoder(y, start, memory.transpose(0, 1).contiguous(), hide)
        return self.dropout(hidden).transpose(0, 1)


def context(scores, memory, hide):
    weights = (scores if hide is None else scores + hide).softmax(1)
    return torch.bmm(weights[:, None], memory).squeeze(1)


class Luong(nn.Module):
    """An LSTM that attends after each step; the attentional state is fed into the next step."""

    def __init__(self):
        super().__init__()
        self.input = nn.Linear(WIDTH, 4 * WIDTH)
        self.recurrent = nn.Linear(2 * WIDTH, 4 * WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.combine = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, y, start, memory, hide):
        state, cell = start
        keys, recurrent = self.key(memory), self.recurrent.weight.t()
        feed, hidden = torch.zeros_like(state), []
        for input in self.input(y).unbind():
            gates = torch.addmm(input, torch.cat([feed, state], 1), recurrent)
            i, f, g, o = gates.chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            attended = context((keys * state[:, None]).sum(2), memory, hide)
            feed = self.combine(torch.cat([attended, state], 1)).tanh()
            hidden.append(feed)
        return torch.stack(hidden)


class Bahdanau(nn.Module):
    """A GRU that attends before each step; the context is an input of the step."""

    def __init__(self):
        super().__init__()
        self.input = nn.Linear(WIDTH, 3 * WIDTH)
        self.feed = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.recurrent = nn.Linear(WIDTH, 3 * WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.vector = nn.Parameter(torch.empty(WIDTH).uniform_(-(WIDTH**-0.5), WIDTH**-0.5))
        self.combine = nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, y, state, memory, hide):
        keys, feed = self.key(memory), self.feed.weight.t()
        states, contexts = [], []
        for input in self.input(y).unbind():
            scores = (self.query(state)[:, None] + keys).tanh() @ self.vector
            contexts.append(context(scores, memory, hide))
            input, recurrent = torch.addmm(input, contexts[-1], feed), self.recurrent(state)
            r, z = (input + recurrent)[:, : 2 * WIDTH].sigmoid().chunk(2, 1)
            new = torch.addcmul(input[:, 2 * WIDTH :], r, recurrent[:, 2 * WIDTH :]).tanh()
            state = torch.lerp(new, state, z)
            states.append(state)
        together = torch.cat([torch.stack(states), torch.stack(contexts), y], 2)
        return self.combine(together).tanh()


def load(model, weights):
    """Loads tensors that are stored under Attend's parameter names."""
    places = {
        "key": "attention.score.key",
        "query": "attention.score.query",
        "vector": "attention.score.vector",
        "combine": "combine",
    }
    tables = {"source": "encoder", "target": "decoder"}
    state = model.state_dict()
    for name in state:
        side, module, *leaf = name.split(".")
        if side in tables:
            ours = f"model.{tables[side]}.embed_tokens.weight"
        elif "_l" in module:  # torch.nn's naming: weight_ih_l0_reverse
            kind, gate, layer, *backward = module.split("_")
            ours = f"model.{side}.layers.{layer.removeprefix('l')}"
            if side == "encoder":
                ours += ".backward" if backward else ".forward"
            ours += f".{'input' if gate == 'ih' else 'recurrent'}.{kind}"
        else:
            place = places.get(module, f"layers.0.{module}")
            ours = ".".join([f"model.{side}", place, *leaf])
        if ours in weights or not name.split(".")[-1].startswith("bias_hh"):  # Attend's LSTM has a single bias
            state[name] = weights.pop(ours)
    model.load_state_dict(state)
    assert not weights, f"unused weights: {', '.join(weights)}"
