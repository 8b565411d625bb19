"""Encoders and tokenisers of Hugging Face, loaded from a folder or the hub, neither of which is trusted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from spen_plugins.builtin.features.packaged import PACKAGES, find
from spen_plugins.errors import ConfigError, RunError, did_you_mean
from spen_plugins.files import check_finite

WEIGHTLESS = "WEIGHTS.txt"
"""Marks a run folder's assets, where missing weights are intended and not an incomplete download."""

_BYTE_LEVEL = ("roberta", "xlm-roberta-xl", "bart", "gpt2", "longformer", "led", "deberta")
"""Model types whose tokenisers need the option that every word follows a space."""
UNKNOWN = ["\N{CUNEIFORM SIGN A}"]
"""A sentence of a character that vocabularies lack."""
_NO_ADAPTERS = "no-adapters"
"""Folder without adapters that transformers searches once peft is installed: their config may name another model."""
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")
"""Names of the dropout of attention's weights in models' configs."""


def load(model: str, attention: str = "eager", attention_dropout: float | None = None) -> tuple[nn.Module, Any]:
    """An encoder in float32, and its fast tokeniser.

    Code that comes with a model is never run, pickled weights are never read, and nothing is fetched for a folder.

    Args:
        model: a folder, the name of a model on the hub, or a short name, `minilm` or `mpnet`.
        attention: `eager`, or `sdpa`, torch's own, for the models that have it; others stay eager.
        attention_dropout: dropout of attention's weights; None: the model's own.

    Raises:
        ConfigError: the model can't be loaded, lacks weights, has no such dropout, or doesn't encode a sentence; the
            message gives the reason.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = str(find(model)) if model in PACKAGES else model
    if model.startswith((".", "/", "~")) and not Path(model).exists():  # no name on the hub begins so
        raise ConfigError(
            f"features.model: found {model!r}, which does not exist; expected a folder made by save_pretrained"
        )
    try:
        encoder, tokenizer = _read(model, attention_dropout)
        if attention == "sdpa" and getattr(encoder, "_supports_sdpa", False):
            encoder.set_attn_implementation("sdpa")
        _check_sentence(encoder, tokenizer)
    except ConfigError:
        raise
    except Exception as error:  # from transformers, its tokenisers, safetensors or torch, depending on the files
        raise ConfigError(
            f"features.model: found {model!r}, which could not be loaded ({_explain(error)}); expected a folder with "
            "config.json, model.safetensors and the tokeniser (as save_pretrained writes them), or the name of a model "
            "on the Hugging Face hub. Without network access, download it on another machine (huggingface-cli download "
            f"{model}) and copy the folder here; HF_HUB_OFFLINE also disables network access."
            f"{did_you_mean(model, list(PACKAGES))}"
        ) from error
    if not tokenizer.is_fast:
        raise ConfigError(
            f"features.model: {model!r} has no fast tokeniser to align pieces with words; choose another model"
        )
    return encoder, tokenizer


def find_longest(encoder: nn.Module, tokenizer: Any) -> int:
    """Maximal number of pieces in a sentence, special ones included."""
    positions = getattr(encoder.config, "max_position_embeddings", None) or 512
    tables = (part for name, part in encoder.named_modules() if name.endswith("position_embeddings"))
    padding_indices = (getattr(table, "padding_idx", None) for table in tables)
    # Models whose padding has a position, as RoBERTa's, count the others from after it.
    positions -= max((index + 1 for index in padding_indices if index is not None), default=0)
    return min(positions, tokenizer.model_max_length)


def _read(model: str, attention_dropout: float | None) -> tuple[nn.Module, Any]:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    source_options = {"trust_remote_code": False, "local_files_only": Path(model).is_dir()}
    settings = AutoConfig.from_pretrained(model, **source_options)
    if getattr(settings, "quantization_config", None) is not None:
        raise ValueError("found quantised weights (quantization_config); expected floats")
    settings._attn_implementation = "eager"  # config.json may name another, even a kernel to fetch from the hub
    settings.output_attentions = False  # fused kernels have none, and nobody here asks for them
    if attention_dropout is not None:
        setattr(settings, _find_attention_dropout(model, settings), attention_dropout)
    space_option = {"add_prefix_space": True} if settings.model_type in _BYTE_LEVEL else {}
    tokenizer = AutoTokenizer.from_pretrained(model, use_fast=True, **source_options, **space_option)
    _separate_words(tokenizer)
    model_options = {"dtype": torch.float32, "attn_implementation": "eager"}
    is_weightless = (Path(model) / WEIGHTLESS).exists()
    if is_weightless:
        with _skip_drawing():  # the run's own weights follow
            encoder, missing = AutoModel.from_config(settings, trust_remote_code=False, **model_options), []
        encoder.tie_weights()
        for weight in encoder.parameters():
            weight.data.zero_()  # memory that nobody wrote may hold NaN
    else:
        encoder, report = AutoModel.from_pretrained(
            model,
            config=settings,
            use_safetensors=True,
            output_loading_info=True,
            adapter_kwargs={"subfolder": _NO_ADAPTERS},
            **source_options,
            **model_options,
        )
        missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:  # transformers would draw them
        raise ValueError(f"found no weights for {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}")
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None  # not trained here
    if not is_weightless:
        for name, tensor in encoder.state_dict().items():
            check_finite(name, tensor)
    return encoder, tokenizer


def _skip_drawing() -> AbstractContextManager[None]:
    """Context in which encoders draw no initial weights, which takes longer than reading the saved ones."""
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # before transformers 5
        from transformers.modeling_utils import no_init_weights
    return no_init_weights()


def _separate_words(tokenizer: Any) -> None:
    """Makes a tokeniser that marks spaces read each word of a sentence as if after a space, as in a text.

    The options of ByteLevel and Metaspace don't serve: after a pre-tokeniser that splits words, they mark each part.
    """
    from tokenizers.normalizers import Prepend, Sequence

    if not tokenizer.is_fast or not _glues_words(tokenizer.backend_tokenizer):
        return
    backend = tokenizer.backend_tokenizer
    space = Prepend(" ")
    backend.normalizer = space if backend.normalizer is None else Sequence([backend.normalizer, space])
    if _glues_words(backend):
        raise ValueError("its tokeniser ignores the spaces between the words of a sentence")


def _glues_words(backend: Any) -> bool:
    """True if a tokeniser marks the spaces between words in a text, but not before words that it gets one by one."""

    def read(text: str) -> str:
        text = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
        return "".join(piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(text))

    return backend.pre_tokenizer is not None and read("a a") in ("aĠa", "a▁a")


def _find_attention_dropout(model: str, settings: Any) -> str:
    """The name of the dropout of attention's weights in a model's config."""
    for name in _ATTENTION_DROPOUT:
        if hasattr(settings, name):
            return name
    raise ConfigError(
        f"features.attention_dropout: {model!r}, of type {settings.model_type}, has no separate dropout for "
        f"attention weights (none of {', '.join(_ATTENTION_DROPOUT)} in its config); leave the key out"
    )


def _check_sentence(encoder: nn.Module, tokenizer: Any) -> None:
    """Encodes a sentence, so that an encoder and a tokeniser that don't fit fail here, not in training."""
    rows = encoder.get_input_embeddings().num_embeddings
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise ValueError(f"found {largest + 1} pieces in the tokeniser and {rows} in the encoder; expected the same")
    # Some tokenisers fail at the first character that they don't know.
    tokenizer([UNKNOWN], is_split_into_words=True)
    pieces = tokenizer([["a", "sentence"]], is_split_into_words=True, return_tensors="pt")
    ids, training = pieces["input_ids"], encoder.training
    with torch.no_grad():
        states = encoder.eval()(input_ids=ids, attention_mask=pieces["attention_mask"]).last_hidden_state
    encoder.train(training)
    if states.shape != (*ids.shape, encoder.config.hidden_size) or not ids.numel():
        raise ValueError(f"found states of shape {tuple(states.shape)} for {ids.shape[1]} pieces")
    check_finite("its states of a sentence", states)


def _explain(error: Exception) -> str:
    """The first line of an error, cut to a sentence's size."""
    text = str(error).strip().partition("\n")[0]
    if "custom code" in text or "trust_remote_code" in text:
        return "it needs custom code, which is never run"
    if isinstance(error, (OSError, ValueError, RunError)) and text:
        return f"{text:.300}"
    return f"{type(error).__name__}: {text:.300}" if text else type(error).__name__
