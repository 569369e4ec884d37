"""Compares the weights in files, bit for bit.

    tensors.py others FILE NAME     prints all names but one, as a JSON array
    tensors.py changed FILE FILE    prints the names of the tensors that differ
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file


def weights_file(model):
    """model.safetensors of a run (of its best checkpoint), a checkpoint or a bundle."""
    best = Path(model) / "best/model.safetensors"
    return best if best.is_file() else Path(model) / "model.safetensors"


def bits(tensor):
    return tensor.dtype, tuple(tensor.shape), tensor.contiguous().view(torch.uint8).numpy().tobytes()


def changed(a, b):
    """The names, sorted, of tensors that one side lacks or that are not the same bits."""
    return sorted(
        name for name in a.keys() | b.keys() if name not in a or name not in b or bits(a[name]) != bits(b[name])
    )


DTYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def read_ctranslate2(path):
    """The variables and aliases of CTranslate2's model.bin."""
    data, at = Path(path).read_bytes(), 0

    def take(form):
        nonlocal at
        values = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(f"<{form}")
        return values[0]

    def string():
        return take(f"{take('H')}s").rstrip(b"\0").decode()

    assert take("I") == 6, "binary version"
    string(), take("I")  # the specification and its revision
    variables = {}
    for _ in range(take("I")):
        name, rank = string(), take("B")
        shape = [take("I") for _ in range(rank)]
        dtype, size = DTYPES[take("B")], take("I")
        variables[name] = torch.from_numpy(np.frombuffer(take(f"{size}s"), dtype).reshape(shape).copy())
    aliases = {string(): string() for _ in range(take("I"))}
    assert at == len(data), "bytes after the aliases"
    return variables | {alias: variables[target] for alias, target in aliases.items()}


def as_ctranslate2(weights):
    """Attend's weights under CTranslate2's names: q, k and v stacked, and no row for `<pad>`, the last."""
    names = {}

    def linear(theirs, *ours):
        for kind in ("weight", "bias"):
            names[f"{theirs}/{kind}"] = torch.cat([weights[f"{o}.{kind}"] for o in ours])

    def norm(theirs, ours):
        names[f"{theirs}/gamma"], names[f"{theirs}/beta"] = weights[f"{ours}.weight"], weights[f"{ours}.bias"]

    for side in ("encoder", "decoder"):
        prefix = f"model.{side}.layers"
        layers = 1 + max(int(n.split(".")[3]) for n in weights if n.startswith(prefix))
        for i in range(layers):
            ours, theirs = f"{prefix}.{i}", f"{side}/layer_{i}"
            linear(f"{theirs}/self_attention/linear_0", *(f"{ours}.self_attn.{part}_proj" for part in "qkv"))
            linear(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn.out_proj")
            norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
            if side == "decoder":
                linear(f"{theirs}/attention/linear_0", f"{ours}.encoder_attn.q_proj")
                linear(f"{theirs}/attention/linear_1", *(f"{ours}.encoder_attn.{part}_proj" for part in "kv"))
                linear(f"{theirs}/attention/linear_2", f"{ours}.encoder_attn.out_proj")
                norm(f"{theirs}/attention/layer_norm", f"{ours}.encoder_attn_layer_norm")
            linear(f"{theirs}/ffn/linear_0", f"{ours}.fc1")
            linear(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
            norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
        if f"model.{side}.layer_norm.weight" in weights:  # pre-norm
            norm(f"{side}/layer_norm", f"model.{side}.layer_norm")

    shared = weights.get("model.shared.weight")
    source = weights.get("model.encoder.embed_tokens.weight", shared)
    target = weights.get("model.decoder.embed_tokens.weight", shared)
    names["encoder/embeddings_0/weight"], names["decoder/embeddings/weight"] = source[:-1], target[:-1]
    names["decoder/projection/weight"] = weights.get("lm_head.weight", target)[:-1]
    if "final_logits_bias" in weights:
        names["decoder/projection/bias"] = weights["final_logits_bias"].flatten()[: len(target) - 1]
    return names


def main():
    command, *args = sys.argv[1:]
    if command == "others":
        names = sorted(load_file(weights_file(args[0])))
        assert args[1] in names, f"no {args[1]}"
        print(json.dumps([name for name in names if name != args[1]]))
    else:
        print("\n".join(changed(*(load_file(weights_file(model)) for model in args))))


if __name__ == "__main__":
    main()
