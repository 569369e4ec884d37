"""The training step of `crates/train/examples/step.rs`, written in idiomatic PyTorch.

    pytorch_step.py SHAPE VOCABULARY BATCHES [WEIGHTS]

Reads the batches. Then, for each number N on standard input, runs N steps and prints the duration of
each. Batches are padded to their longest sentence. WEIGHTS is a safetensors file with Attend's parameter
names. If it is given, training starts from those weights, without dropout, with packed input to recurrent
encoders, and without the padding class in the output, so that losses can be compared with Attend's.

If RANKS is set to more than 1, so many processes of one thread each share every batch, with DistributedDataParallel
over gloo. The number of sentences must be a multiple of it, and all must have one length.
"""

import json
import math
import os
import resource
import socket
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import pytorch_caption
import pytorch_recurrent

warnings.filterwarnings("ignore")

SHAPES = {"base": (512, 6, 2048, 8), "small": (256, 3, 1024, 4), "tiny": (128, 4, 256, 4)}


class Model(nn.Module):
    """The Transformer from torch.nn's layers: post-norm, one matrix for all embeddings."""

    def __init__(self, d, layers, d_ff, heads, vocabulary, dropout):
        super().__init__()
        self.pad, self.scale = vocabulary - 1, math.sqrt(d)
        self.shared = nn.Embedding(vocabulary, d, padding_idx=self.pad)
        nn.init.normal_(self.shared.weight, std=d**-0.5)
        self.dropout = nn.Dropout(dropout)
        kind = dict(d_model=d, nhead=heads, dim_feedforward=d_ff, dropout=dropout, batch_first=True)
        encoder, decoder = nn.TransformerEncoderLayer(**kind), nn.TransformerDecoderLayer(**kind)
        self.encoder = nn.TransformerEncoder(encoder, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, layers)
        position = torch.arange(4096)[:, None]
        angle = position * 10000.0 ** (-2.0 * torch.arange(d // 2) / d)
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], dim=1))

    @property
    def output(self):
        return self.shared.weight

    def embed(self, tokens):
        return self.dropout(self.shared(tokens) * self.scale + self.positions[: tokens.shape[1]])

    def forward(self, source, inputs, ragged):
        hide_source = source == self.pad if ragged else None
        # Padding is at the end, so the causal mask already hides it from the real target tokens.
        causal = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1])
        memory = self.encoder(self.embed(source), src_key_padding_mask=hide_source)
        return self.decoder(
            self.embed(inputs),
            memory,
            tgt_mask=causal,
            tgt_is_causal=True,
            memory_key_padding_mask=hide_source,
        )


def padded(rows, pad):
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


def prepare(line, pad):
    pairs = json.loads(line)
    inputs = [[pad, *row[:-1]] for row in pairs["target"]]
    ragged = len({len(row) for side in pairs.values() for row in side}) > 1
    source, inputs, labels = (padded(x, pad) for x in (pairs["source"], inputs, pairs["target"]))
    return source, inputs, labels, ragged


def load(model, weights):
    """Loads tensors that are stored under Attend's parameter names."""
    modules = {
        "multihead_attn": "encoder_attn",
        "linear1": "fc1",
        "linear2": "fc2",
        "norm1": "self_attn_layer_norm",
        "norm3": "final_layer_norm",
    }
    state = model.state_dict()
    for name in state:
        side, *rest = name.split(".")
        if side in ("encoder", "decoder"):
            _, layer, module, *leaf = rest
            norm2 = "final_layer_norm" if side == "encoder" else "encoder_attn_layer_norm"
            module = norm2 if module == "norm2" else modules.get(module, module)
            prefix = f"model.{side}.layers.{layer}.{module}"
            kind = leaf[0].removeprefix("in_proj_")
            if kind != leaf[0]:
                parts = [weights[f"{prefix}.{part}_proj.{kind}"] for part in "qkv"]
                state[name] = torch.cat(parts)
            else:
                state[name] = weights[".".join([prefix, *leaf])]
        elif side == "shared":
            state[name] = weights["model.shared.weight"]
    model.load_state_dict(state)


def distributed(rank, ranks, port, work):
    """Runs work(rank, ranks) as one of several processes."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    try:
        work(rank, ranks)
    finally:
        torch.distributed.destroy_process_group()


def counts(rank, ranks):
    """The numbers that the first rank reads, on all ranks."""
    while True:
        line = (sys.stdin.readline() or "0") if rank == 0 else "0"
        count = torch.tensor([int(line)])
        if ranks > 1:
            torch.distributed.broadcast(count, 0)
        if count.item() == 0:
            return
        yield count.item()


def main():
    ranks = int(os.environ.get("RANKS", 1))
    if ranks == 1:
        return work(0, 1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    others = [context.Process(target=distributed, args=(rank, ranks, port, work)) for rank in range(1, ranks)]
    for other in others:
        other.start()
    distributed(0, ranks, port, work)
    for other in others:
        other.join()


def work(rank, ranks):
    shape, vocabulary, batches, *weights = sys.argv[1:]
    vocabulary = int(vocabulary)
    torch.manual_seed(1)
    dropout, recurrent = 0.0 if weights else 0.1, shape in pytorch_recurrent.SHAPES
    caption = shape == "caption"
    if caption:
        model = pytorch_caption.Caption(vocabulary, dropout).train()
    elif recurrent:
        model = pytorch_recurrent.Recurrent(shape, vocabulary, dropout, exact=bool(weights)).train()
    else:
        model = Model(*SHAPES[shape], vocabulary, dropout).train()
    if weights:
        from safetensors.torch import load_file

        loader = pytorch_caption.load if caption else pytorch_recurrent.load if recurrent else load
        loader(model, load_file(weights[0]))
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    words = vocabulary - 1 if weights else vocabulary
    batches = [prepare(line, vocabulary - 1) for line in open(batches)]
    if caption:
        batches = [(pytorch_caption.pictures(source), *rest) for source, *rest in batches]
    output = model
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
        batches = [(*(part.chunk(ranks)[rank] for part in batch), ragged) for *batch, ragged in batches]
    if rank == 0:
        print(json.dumps({"parameters": sum(p.numel() for p in parameters)}), flush=True)
    done = 0
    for count in counts(rank, ranks):
        report = {"milliseconds": [], "loss": [], "norm": []}
        for _ in range(count):
            source, inputs, labels, ragged = batches[done % len(batches)]
            if ranks > 1:
                torch.distributed.barrier()
            start = time.perf_counter()
            penalty = 0.0
            if caption:
                hidden, attention = model(source, inputs)
                # Attend's loss is a sum over all words, and so is its penalty; both are then divided by the words.
                penalty = output.penalty(attention) / labels.numel()
            else:
                hidden = model(source, inputs, ragged)
            if recurrent and ragged:
                real = labels != vocabulary - 1
                hidden, labels = hidden[real], labels[real]
            else:
                hidden, labels = hidden.flatten(0, 1), labels.flatten()
            logits = F.linear(hidden, output.output[:words] if weights else output.output)
            loss = F.cross_entropy(
                logits, labels, ignore_index=vocabulary - 1, label_smoothing=0.1
            )
            optimizer.zero_grad(set_to_none=True)
            (loss + penalty).backward()
            if weights:  # clip_grad_norm_ sums in float32, accurate to only three digits
                squares = sum(p.grad.double().square().sum() for p in parameters)
            norm = nn.utils.clip_grad_norm_(parameters, 1.0)
            if weights:
                norm = squares.sqrt()
            optimizer.step()
            report["loss"].append(loss.item())
            report["norm"].append(norm.item())
            report["milliseconds"].append(1e3 * (time.perf_counter() - start))
            done += 1
        peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024])
        if ranks > 1:
            torch.distributed.all_reduce(peak)
        report["peak"] = peak.item()
        if rank == 0:
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
