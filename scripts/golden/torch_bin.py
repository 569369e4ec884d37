"""Writes golden files of `torch.save`, and hostile ones, for the reader of pytorch_model.bin.

    crates/infer/tests/golden/torch/*.{bin,safetensors}

README.md in this folder describes how to run it and the contents of the files.
"""

import io
import os
import pickle
import sys
import zipfile
from pathlib import Path
from unittest import mock

import torch
from safetensors.torch import save_file
from torch import nn

FOLDER = Path(__file__).parents[2] / "crates/infer/tests/golden/torch"
# What the hostile pickles would leave behind in the working directory.
MARKER = "a-pickle-was-run"


class Tiny(nn.Module):
    """Has tied weights, a buffer of integers, and versions of modules in `_metadata`."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(5, 4)
        self.norm = nn.LayerNorm(4)
        self.lm_head = nn.Linear(4, 5, bias=False)
        self.lm_head.weight = self.shared.weight
        self.register_buffer("position_ids", torch.arange(6).unsqueeze(0))


def state_dict():
    state = Tiny().state_dict()
    matrix = torch.randn(3, 4)
    state["matrix"] = matrix
    state["transposed"] = matrix.T  # these four share a storage
    state["columns"] = matrix[1:, 1::2]
    state["row"] = matrix[2]
    state["permuted"] = torch.randn(2, 3, 4).permute(2, 0, 1)
    state["edges"] = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), 1e-45, 3.4e38])
    state["f16"] = torch.tensor([1 / 3, 65504.0, 6e-8, -2.0]).half()
    state["bf16"] = torch.tensor([[1 / 3, 3e38], [1e-40, -2.0]]).bfloat16()
    state["f64"] = torch.tensor([1 / 3, 1e300, 1e-300, 16777217.0], dtype=torch.float64)
    state["scalar"] = torch.tensor(0.5)
    state["empty"] = torch.zeros(0, 4)
    state["mask"] = torch.tensor([True, False])
    state["steps"] = 7  # not tensors
    state["note"] = "a text"
    state["rate"] = 0.5
    state["nothing"] = None
    return state


def expected(state):
    """The tensors of floats, as the reader gives them."""
    tensors = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    floats = {name: value for name, value in tensors.items() if value.is_floating_point()}
    return {name: value.detach().float().clone().contiguous() for name, value in floats.items()}


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def write_zip(name, pickled, method=zipfile.ZIP_STORED, **entries):
    """A zip archive with this pickle, and other entries in its folder."""
    with zipfile.ZipFile(FOLDER / name, "w", method) as archive:
        for entry, data in {"data.pkl": pickled, "version": b"3\n", **entries}.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{entry}"), data, method)


def main():
    torch.manual_seed(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    state = state_dict()
    save_file(expected(state), FOLDER / "expected.safetensors")
    torch.save(state, FOLDER / "zip.bin")
    torch.save(state, FOLDER / "zip_protocol_5.bin", pickle_protocol=5)
    legacy = {"_use_new_zipfile_serialization": False}
    torch.save(state, FOLDER / "legacy.bin", **legacy)
    torch.save(state, FOLDER / "legacy_protocol_4.bin", pickle_protocol=4, **legacy)

    # Parameters in a dict, and a type that only `_rebuild_tensor_v3` can build.
    parameter = nn.Parameter(torch.randn(2, 3))
    other = {"parameter": parameter, "tied": parameter, "uint16": torch.ones(3, dtype=torch.uint16)}
    save_file(expected(other), FOLDER / "parameter.safetensors")
    torch.save(other, FOLDER / "parameter.bin")

    with mock.patch.object(sys, "byteorder", "big"):
        torch.save({"x": torch.ones(2)}, FOLDER / "big_endian.bin")
    run = Call(os.system, f"touch {MARKER}")
    torch.save({"x": torch.ones(2), "run": run}, FOLDER / "os_system.bin")
    evaluate = Call(eval, f"open('{MARKER}', 'w')")
    torch.save({"x": torch.ones(2), "run": evaluate}, FOLDER / "eval_legacy.bin", **legacy)
    # A pickle and a storage of 8 MB in a few kilobytes.
    write_zip("bomb.bin", pickle.dumps("x" * (1 << 23), 2), zipfile.ZIP_DEFLATED)
    saved = io.BytesIO()
    torch.save({"x": torch.zeros(1 << 21)}, saved)
    with zipfile.ZipFile(saved) as archive:
        entries = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    write_zip("storage_bomb.bin", entries.pop("data.pkl"), zipfile.ZIP_DEFLATED, **entries)

    assert not Path(MARKER).exists()
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.stat().st_size:6} {path.name}")


if __name__ == "__main__":
    main()
