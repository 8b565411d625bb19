"""Settings of a pretrained encoder, the choice of its trained weights, and its attention in float32."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spen_plugins.builtin.features.reading import Pooling
from spen_plugins.errors import ConfigError, explain_missing
from spen_plugins.settings.config import Config


class Lora(Config):
    """Low-rank adapters (LoRA; Hu et al. 2022): W + (alpha / rank) B A in place of a linear layer's W, which stays."""

    rank: int = Field(8, ge=1)
    """Rank of B A."""
    alpha: float = Field(16, gt=0)
    """Scale of B A, divided by the rank."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of the input of A."""
    targets: list[str] | None = Field(None, min_length=1)
    """Name endings of the linear layers that get adapters; null: peft's default for the model's architecture, mostly
    the queries and values of attention."""


def find_layers(encoder: nn.Module) -> list[nn.Module]:
    """An encoder's layers, the lowest first; raises `ConfigError` if the encoder doesn't list them."""
    count = getattr(encoder.config, "num_hidden_layers", None)
    lists = [part for part in encoder.modules() if isinstance(part, nn.ModuleList) and len(part) == count]
    if not lists:
        raise ConfigError(
            f"features: {encoder.config.model_type!r} has no list of layers (some models share one layer); "
            "expected frozen=0, 'embeddings' or 'all'"
        )
    return list(lists[0])


def find_lowest(encoder: nn.Module, frozen: int | str) -> list[nn.Module]:
    """The modules of an encoder below those that are trained, for any value of `features.frozen`."""
    if frozen == 0:
        return []
    if frozen == "all":
        return [encoder]
    layers = [] if frozen == "embeddings" else find_layers(encoder)
    if layers and frozen > len(layers):
        raise ConfigError(f"features.frozen: found {frozen}; expected at most {len(layers)} (layers) or 'all'")
    return [*_find_embeddings(encoder), *(layers[:frozen] if layers else ())]


def freeze(modules: list[nn.Module]) -> None:
    """Excludes these modules' weights from training."""
    for module in modules:
        module.requires_grad_(False)


def check_adapters(encoder: nn.Module, lora: Lora, frozen: int | str) -> None:
    """Checks that there are layers to adapt, and that each target is among the trained ones."""
    if not _find_trained(encoder, frozen):
        raise ConfigError(
            f"features.lora: found frozen={frozen!r}, which leaves nothing to adapt; expected a lower number of layers"
        )
    for target in lora.targets or ():
        if not _list_trained(encoder, [target], frozen):
            raise ConfigError(
                f"features.lora.targets: found {lora.targets}, but no trained layer of {encoder.config.model_type!r} "
                f"has a name that ends in {target!r}; expected name endings of linear layers: {_list_linear(encoder)}"
            )


def add_adapters(encoder: nn.Module, lora: Lora, frozen: int | str) -> None:
    """Adds low-rank adapters to the layers of an encoder that are not frozen; only the adapters are trained.

    Raises:
        ConfigError: peft is missing, or the encoder has no such layers.
    """
    with explain_missing("features.lora requires the package peft: pip install 'spen-plugins[lora]'"):
        from peft import LoraConfig, inject_adapter_in_model
        from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as USUAL
    targets = lora.targets or USUAL.get(encoder.config.model_type)
    if isinstance(targets, list) and frozen not in (0, "embeddings"):
        # By full names: peft's own choice of layers finds none at an encoder's root.
        targets = _list_trained(encoder, targets, frozen)
    try:
        inject_adapter_in_model(
            LoraConfig(r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets),
            encoder,
        )
    except ValueError as error:
        raise ConfigError(
            f"features.lora.targets: found {lora.targets}, which {encoder.config.model_type!r} does not support "
            f"({str(error).splitlines()[0]:.200}); expected name endings of its linear layers: {_list_linear(encoder)}"
        ) from error


def _find_trained(encoder: nn.Module, frozen: int | str) -> list[nn.Module]:
    """The trained parts: the layers that are not frozen, or the encoder if no layer is frozen."""
    if frozen == "all":
        return []
    return find_layers(encoder)[frozen:] if isinstance(frozen, int) and frozen else [encoder]


def _list_trained(encoder: nn.Module, targets: list[str], frozen: int | str) -> list[str]:
    """Full names, each ending in one of `targets`, of modules that are trained."""
    frozen_ids = {id(part) for module in find_lowest(encoder, frozen) for part in module.modules()}
    trained_ids = {id(part) for module in _find_trained(encoder, frozen) for part in module.modules()} - frozen_ids
    endings = tuple(f".{target}" for target in targets)
    return [name for name, part in encoder.named_modules() if id(part) in trained_ids and f".{name}".endswith(endings)]


def learn_types(encoder: nn.Module) -> None:
    """Trains an encoder's token types, which mark the predicate, in addition to adapters."""
    for name, parameter in encoder.named_parameters():
        if "token_type_embeddings." in name:
            parameter.requires_grad_(True)


def _list_linear(encoder: nn.Module) -> str:
    """The ends of the names of an encoder's linear layers, for messages."""
    from transformers.pytorch_utils import Conv1D

    names = (name.split(".") for name, part in encoder.named_modules() if isinstance(part, (nn.Linear, Conv1D)))
    return ", ".join(dict.fromkeys(".".join(parts[-2:] if parts[-1] == "dense" else parts[-1:]) for parts in names))


def checkpoint_gradients(encoder: Any) -> None:
    """Makes an encoder's layers recompute their states for the gradient instead of storing them."""
    if not getattr(encoder, "supports_gradient_checkpointing", False):
        raise ConfigError(f"features.gradient_checkpointing: {encoder.config.model_type!r} doesn't support it")
    if getattr(encoder.config, "use_cache", False):  # in decoders; transformers warns of it
        encoder.config.use_cache = False
    options = {"use_reentrant": False, "context_fn": lambda: (nullcontext(), Float32Attention())}
    # Later versions of transformers have renamed it.
    name = "activation" if hasattr(encoder, "activation_checkpointing_enable") else "gradient"
    getattr(encoder, f"{name}_checkpointing_enable")(options)
    if hasattr(encoder, "_require_grads_hook"):  # it would take the gradient through frozen layers
        encoder.disable_input_require_grads()


def _find_embeddings(encoder: Any) -> list[nn.Module]:
    """The parts of an encoder that embed pieces, and those that add to, normalise and project the embeddings."""
    embeddings = (part for name, part in encoder.named_modules() if "embed" in name.rpartition(".")[2])
    return [encoder.get_input_embeddings(), *embeddings]


class TransformerConfig(Config):
    """Settings of a pretrained encoder."""

    model: str
    """Name of a model on the hub; a folder made by `save_pretrained` (encoder and tokeniser); or `minilm`
    (6 layers, 384 wide) or `mpnet` (12 layers, 768 wide), which come as packages and need no network access."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the vectors."""
    pooling: Pooling = "first"
    """A word's vector: that of its first piece, or the mean of its pieces. A text's: that of the special piece it
    begins with, or the mean of all its pieces."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """`sdpa` is torch's scaled_dot_product_attention, with fused kernels unless second derivatives are needed;
    `eager` is the plain formula. Scores are equal up to rounding; models without `sdpa` are eager."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of the attention weights in training; null: the model's own, usually 0.1. Fused kernels on a CPU do not
    support it, so 0 trains on long texts in a fraction of the time and memory."""
    frozen: Annotated[int, Field(ge=0)] | Literal["embeddings", "all"] = 0
    """Parts of the encoder that aren't trained: its embeddings and this number of its lowest layers; 0: none. They need
    no gradients and no optimiser state, have no dropout, and are saved with the run."""
    lora: Lora | None = None
    """Trains low-rank adapters in place of the encoder's weights (LoRA); null: none."""
    gradient_checkpointing: bool = False
    """If true, the encoder's layers recompute their states for the gradient: training uses less memory and more
    time."""

    store_gib: float = Field(0.0, ge=0)
    """Main memory for the frozen layers' states of each sentence or text, in GiB, for each network and process: they
    are computed once, not in every epoch. States that do not fit are recomputed one by one each time; 0: nothing is
    stored."""


MOST = 10_000
"""Pieces times a head's numbers up to which float32 is faster: measured with 12 heads of 32 and of 64 numbers."""


class Float32Attention(TorchFunctionMode):
    """Computes `scaled_dot_product_attention` of short inputs in float32 in training under a CPU's autocast.

    In bfloat16 torch's fused kernel for CPUs takes up to four times as long for the gradient. Attention without a
    gradient is unchanged. So are attention with dropout, which that kernel lacks, and attention in float64.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention and _is_slow(*args, **kwargs):
            return _attend_in_float32(*args, **kwargs)
        return func(*args, **kwargs)


def is_casting() -> bool:
    """True if a CPU's autocast is on and gradients are recorded."""
    return torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")


def _is_slow(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **_: Any
) -> bool:
    is_short = key.shape[-2] * key.shape[-1] <= MOST
    is_learned = any(part.requires_grad for part in (query, key, value))
    is_cast = query.device.type == "cpu" and query.dtype != torch.float64 and is_casting()
    return is_cast and is_short and is_learned and not dropout_p


def _attend_in_float32(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *args: Any, **kwargs: Any
) -> Tensor:
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask.float()
    with torch.autocast("cpu", enabled=False):
        output = F.scaled_dot_product_attention(query.float(), key.float(), value.float(), attn_mask, *args, **kwargs)
    return output.to(query.dtype)
