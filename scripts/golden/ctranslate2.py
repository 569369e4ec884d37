"""Writes crates/infer/tests/golden/ctranslate2/, a tiny MarianMT model as CTranslate2's own converter writes it.

README.md in this folder describes how to run it.

    model.bin   the file of the converter, with random weights, biases, norms and logits bias
    sums.json   the sum of every weight by MarianMT's name, to tell a weight from another
"""

import json
import sys
import tempfile
from pathlib import Path

# Without the folder of this script, which has the name of the package.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from ctranslate2.converters.transformers import MarianMTLoader  # noqa: E402
from transformers import MarianConfig, MarianMTModel  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "crates/infer/tests/golden/ctranslate2"

WORDS = 13  # with pad, the last


def model():
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=WORDS,
            decoder_vocab_size=WORDS,
            d_model=8,
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=12,
            decoder_ffn_dim=12,
            max_position_embeddings=16,
            activation_function="swish",
            scale_embedding=True,
            pad_token_id=WORDS - 1,
            decoder_start_token_id=WORDS - 1,
            eos_token_id=0,
        )
    )
    rng = np.random.RandomState(1)
    weights = dict(marian.named_parameters()) | {"final_logits_bias": marian.final_logits_bias}
    weights = {name: x for name, x in sorted(weights.items()) if "embed_positions" not in name}
    with torch.no_grad():
        for name, x in weights.items():
            # The converter stores equal variables once: no two of these are equal.
            x.copy_(torch.from_numpy(rng.normal(size=x.shape).astype(np.float32)))
        marian.model.shared.weight[-1] = 0
        marian.final_logits_bias[:, -1] = 0
    return marian, weights


def main():
    marian, weights = model()
    spec = MarianMTLoader().get_model_spec(marian)
    tokens = ["</s>", "<unk>"] + [f"w{i}" for i in range(2, WORDS - 1)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize(quantization=None)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        stored = (Path(folder) / "model.bin").read_bytes()
    (GOLDEN / "model.bin").write_bytes(stored)
    sums = {name: x.detach().double().sum().item() for name, x in weights.items()}
    (GOLDEN / "sums.json").write_text(json.dumps(sums, indent=1) + "\n")
    print(f"{len(weights)} weights, {len(stored)} bytes")


if __name__ == "__main__":
    main()
