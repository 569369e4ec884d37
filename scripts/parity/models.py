"""Random MarianMT (and Pegasus) models that transformers makes, with tokenizers that sentencepiece trains."""

import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from peers import padded

EOS = 0
SPECIAL = ["</s>", "<unk>"]
TAG = ">>de<<"


@dataclass(frozen=True)
class Size:
    d_model: int
    heads: int
    d_ff: int
    layers: int
    pieces: int  # of each language


# Tokenizers


def train_spm(lines, pieces, path, **options):
    """A unigram model with sentencepiece's default ids, or fewer pieces if the text has no more."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="unigram",
        vocab_size=pieces,
        hard_vocab_limit=False,
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    path.write_bytes(model.getvalue())


def pieces_of(path):
    """The pieces of a model without the control symbols. One in a hundred is left out: in many opus-mt models,
    vocab.json lacks some pieces, which then are unknown."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    return [piece for i, piece in enumerate(pieces) if i % 100 != 99]


def write_tokenizer(folder, english, german, pieces, separate=False, **options):
    """The files of a MarianTokenizer. Returns the sizes of the two vocabularies, `<pad>` included.

    Vocabularies start with `</s>` and `<unk>` and end with `<pad>`; ids are not those of sentencepiece.
    """
    folder.mkdir(parents=True, exist_ok=True)
    train_spm(english, pieces, folder / "source.spm", **options)
    train_spm(german, pieces, folder / "target.spm", **options)
    source, target = pieces_of(folder / "source.spm"), pieces_of(folder / "target.spm")
    if separate:
        # The model has one pad id, the target's, which must exist in the source's vocabulary too.
        target = target[: len(source) - 5]
    else:
        source = target = list(dict.fromkeys([TAG, *source, *target]))
    for name, tokens in {"vocab.json": source, "target_vocab.json": target}.items():
        ids = {token: i for i, token in enumerate([*SPECIAL, *tokens, "<pad>"])}
        if separate or name == "vocab.json":
            (folder / name).write_text(json.dumps(ids, ensure_ascii=False, indent=0) + "\n")
    config = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": "en",
        "target_lang": "de",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": 512,
        "separate_vocabs": separate,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return len(source) + 3, len(target) + 3


def write_fast_tokenizer(folder, texts, pieces):
    """A plain tokenizer.json, as Attend exports it: BPE, with `</s>` after each sentence."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s{2,}|[^\S ]"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=pieces, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(["<pad>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", EOS)])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": 512,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return tokenizer.get_vocab_size(), tokenizer.get_vocab_size()


# Models


def new_model(size, vocabularies, activation="relu", separate=False, norm="post", positions=512):
    source, target = vocabularies
    pad = target - 1
    shape = dict(
        vocab_size=source,
        d_model=size.d_model,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.d_ff,
        decoder_ffn_dim=size.d_ff,
        max_position_embeddings=positions,
        activation_function=activation,
        scale_embedding=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
    )
    if norm == "pre":
        # CTranslate2's converter needs the two keys that transformers does not know.
        config = PegasusConfig(**shape, normalize_before=True, normalize_embedding=False)
        model = PegasusForConditionalGeneration(config)
    else:
        config = MarianConfig(
            **shape, decoder_vocab_size=target, share_encoder_decoder_embeddings=not separate
        )
        model = MarianMTModel(config)
    model.generation_config = GenerationConfig(
        bad_words_ids=[[pad]],
        decoder_start_token_id=pad,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        pad_token_id=pad,
        max_length=positions,
        num_beams=4,
        renormalize_logits=True,
    )
    return model.eval()


def last_norm(model):
    decoder = model.model.decoder
    return decoder.layer_norm if hasattr(decoder, "layer_norm") else decoder.layers[-1].final_layer_norm


def gain(name, pre_norm, sharp):
    """How large a matrix is, relative to one that keeps the variance of its input.

    Sharp attention tells sources apart. Sub-layers that add little leave the previous token visible after many
    layers: otherwise a random model repeats one token. With pre-norm, they add to larger activations.
    """
    if "q_proj" in name or "k_proj" in name:
        return sharp
    if "out_proj" in name or "fc2" in name:
        return (5.0 if pre_norm else 1.0) * (0.6 if "encoder_attn" in name else 0.3)
    return 1.0


def randomize(model, seed, sharpness=2.0, attention=2.5, logits_bias=False):
    """Weights with which outputs vary, depend on the source and on the order of tokens. Biases and norms are
    away from 0 and 1. `sharpness` is that of the distribution of the next
    token, and `attention` that of queries and keys: in a deep model it amplifies rounding errors."""
    rng = torch.Generator().manual_seed(seed)

    def normal(p, std):
        return torch.randn(p.shape, generator=rng) * std

    pre_norm = hasattr(model.model.decoder, "layer_norm")
    for name, p in sorted(model.named_parameters()):
        if "embed_positions" in name:
            continue
        if name.endswith("bias"):
            p.copy_(normal(p, 0.05))
        elif "norm" in name:
            p.copy_(1.0 + normal(p, 0.2))
        elif "embed" in name or "shared" in name:
            p.copy_(normal(p, 2.0 * p.shape[1] ** -0.5))
            p[-1] = 0.0  # pad
        else:
            p.copy_(normal(p, gain(name, pre_norm, attention) * p.shape[1] ** -0.5))
    # Random signs: otherwise the tied output matrix favours the token that was read last.
    norm = last_norm(model)
    norm.weight *= sharpness * (1 - 2 * torch.randint(2, norm.weight.shape, generator=rng))
    if logits_bias:
        model.final_logits_bias.copy_(normal(model.final_logits_bias, 1.0))
        model.final_logits_bias[0, -1] = 0.0


def raise_eos(model, sources, limit, rate=0.05):
    """Raises the score of `</s>` so that it wins at about this share of the steps of greedy search, which
    otherwise hardly ever ends."""
    tokens, mask = padded(sources, EOS)
    own, model.generation_config = model.generation_config, GenerationConfig()
    out = model.generate(
        input_ids=tokens,
        attention_mask=mask,
        generation_config=GenerationConfig(
            max_new_tokens=limit,
            do_sample=False,
            suppress_tokens=[EOS],
            output_logits=True,
            return_dict_in_generate=True,
            eos_token_id=EOS,
            pad_token_id=model.config.pad_token_id,
            decoder_start_token_id=model.config.decoder_start_token_id,
        ),
    )
    model.generation_config = own
    gaps = torch.cat([step[:, 1:].max(-1).values - step[:, EOS] for step in out.logits])
    row = model.get_output_embeddings().weight[EOS]
    last_norm(model).bias += gaps.quantile(rate).item() * row / row.square().sum()


def save(model, folder, weights="safetensors", dtype=None):
    """Saves as transformers does, or its state dict in one of torch's formats (`zip`, `legacy`)."""
    if dtype is not None:
        model = model.to(dtype)
    model.save_pretrained(folder)
    if weights != "safetensors":
        (folder / "model.safetensors").unlink()
        zipped = weights == "zip"
        # Like transformers, without positions. If they were there, rounded to 16 bits, it would use them.
        state = {name: value for name, value in model.state_dict().items() if "embed_positions" not in name}
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    return Path(folder)
