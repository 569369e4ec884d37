"""The captioning model of `caption` in crates/train/examples/step.rs, written for speed in idiomatic PyTorch.

The encoder is modules of torch.nn in the memory format channels_last, in which its layer normalisation needs no
copies. The decoder loops over the target positions; everything that does not depend on the previous step is computed
for all positions at once.
"""

import math

import torch
from torch import nn
from torch.nn.functional import max_pool2d

from pytorch_recurrent import context

WIDTH, SIZE = 256, 64
BLOCKS = [(32, 1), (64, 1), (128, 2)]  # (channels, convolutions); each pools by 2


def pictures(source):
    """Value i of the picture of token t is sin(0.37 t + 0.11 i), as in step.rs."""
    i = torch.arange(SIZE * SIZE * 3, dtype=torch.float64)
    values = torch.sin(0.37 * source[:, :1].double() + 0.11 * i).float()
    return values.view(-1, SIZE, SIZE, 3).permute(0, 3, 1, 2)  # channels_last


def sinusoids(length, d):
    angle = torch.arange(length)[:, None] * 10000.0 ** (-2.0 * torch.arange(d // 2) / d)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class Caption(nn.Module):
    def __init__(self, vocabulary, dropout, channels_last=True):
        super().__init__()
        self.pad, self.scale = vocabulary - 1, math.sqrt(WIDTH)
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.convolutions, self.norms, self.pools = nn.ModuleList(), nn.ModuleList(), []
        inputs, side = 3, SIZE
        for outputs, count in BLOCKS:
            for n in range(count):
                self.convolutions.append(nn.Conv2d(inputs, outputs, 3, padding=1))
                self.norms.append(nn.LayerNorm(outputs))
                self.pools.append(n + 1 == count)
                inputs = outputs
            side //= 2
        self.convolutions.to(memory_format=self.format)
        self.projection, self.projection_norm = nn.Linear(inputs, WIDTH), nn.LayerNorm(WIDTH)
        half = sinusoids(side, WIDTH // 2)
        places = [half[:, None].expand(side, side, -1), half[None].expand(side, side, -1)]
        self.register_buffer("places", torch.cat(places, 2).flatten(0, 1))
        self.target = nn.Embedding(vocabulary, WIDTH, padding_idx=self.pad)
        nn.init.normal_(self.target.weight, std=WIDTH**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.start = nn.Linear(WIDTH, 2 * WIDTH)
        self.input = nn.Linear(WIDTH, 4 * WIDTH)
        self.recurrent = nn.Linear(2 * WIDTH, 4 * WIDTH, bias=False)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.vector = nn.Parameter(torch.empty(WIDTH).uniform_(-(WIDTH**-0.5), WIDTH**-0.5))
        self.gate = nn.Linear(WIDTH, 1)
        self.combine = nn.Linear(3 * WIDTH, WIDTH)

    @property
    def output(self):
        return self.target.weight

    def encode(self, x):
        x = x.contiguous(memory_format=self.format)
        for convolution, norm, pool in zip(self.convolutions, self.norms, self.pools):
            x = norm(convolution(x).permute(0, 2, 3, 1)).relu().permute(0, 3, 1, 2)
            if pool:
                x = max_pool2d(x, 2)
        regions = x.permute(0, 2, 3, 1).flatten(1, 2)
        return self.dropout(self.projection_norm(self.projection(regions)) + self.places)

    def forward(self, source, inputs):
        """The hidden states, and the weights of every step `[position, picture, region]`."""
        memory = self.encode(source)
        y = self.dropout(self.target(inputs.t()) * self.scale)
        state, cell = self.start(memory.mean(1)).tanh().chunk(2, 1)
        keys, recurrent = self.key(memory), self.recurrent.weight.t()
        states, contexts, weights = [], [], []
        for input in self.input(y).unbind():
            scores = (self.query(state)[:, None] + keys).tanh() @ self.vector
            taken = scores.softmax(1)
            attended = torch.bmm(taken[:, None], memory).squeeze(1) * self.gate(state).sigmoid()
            gates = torch.addmm(input, torch.cat([attended, state], 1), recurrent)
            i, f, g, o = gates.chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
            contexts.append(attended)
            weights.append(taken)
        together = torch.cat([torch.stack(states), torch.stack(contexts), y], 2)
        hidden = self.dropout(self.combine(together).tanh())
        return hidden.transpose(0, 1), torch.stack(weights)

    def penalty(self, weights):
        """λ = 1: the regions' weights over all words should sum to 1."""
        return (1.0 - weights.sum(0)).square().sum()


def load(model, weights):
    """Loads tensors that are stored under Attend's parameter names."""
    numbers = [(block, n) for block, (_, count) in enumerate(BLOCKS) for n in range(count)]
    places = {
        "projection": "encoder.projection",
        "projection_norm": "encoder.projection_norm",
        "target": "decoder.embed_tokens",
        "start": "decoder.start.0",
        "input": "decoder.layers.0.input",
        "recurrent": "decoder.layers.0.recurrent",
        "query": "decoder.attention.score.query",
        "key": "decoder.attention.score.key",
        "vector": "decoder.attention.score.vector",
        "gate": "decoder.attention.gate",
        "combine": "decoder.combine",
    }
    state = model.state_dict()
    for name in state:
        module, *leaf = name.split(".")
        if module == "places":
            continue
        if module in ("convolutions", "norms"):
            block, n = numbers[int(leaf.pop(0))]
            place = f"encoder.blocks.{block}.{module}.{n}"
        else:
            place = places[module]
        value = weights.pop(".".join(["model", place, *leaf]))
        state[name] = value.permute(0, 3, 1, 2) if value.dim() == 4 else value
    model.load_state_dict(state)
    assert not weights, f"unused weights: {', '.join(weights)}"
