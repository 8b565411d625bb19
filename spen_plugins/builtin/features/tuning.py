"""Which weights of a pretrained encoder are trained."""

from __future__ import annotations

from typing import Any

from torch import nn

from spen_plugins.errors import ConfigError


def layers_of(encoder: nn.Module) -> list[nn.Module]:
    """An encoder's layers, the lowest first; a `ConfigError` if they can't be told apart."""
    wanted = getattr(encoder.config, "num_hidden_layers", None)
    found = [part for part in encoder.modules() if isinstance(part, nn.ModuleList) and len(part) == wanted]
    if not found:
        raise ConfigError(
            f"features: {encoder.config.model_type!r} has no list of its layers (some models share one layer); "
            "expected frozen 0, 'embeddings' or 'all'"
        )
    return list(found[0])


def lowest(encoder: nn.Module, frozen: int | str) -> list[nn.Module]:
    """The modules of an encoder below those that are trained, for any value of `features.frozen`."""
    if frozen == 0:
        return []
    if frozen == "all":
        return [encoder]
    layers = [] if frozen == "embeddings" else layers_of(encoder)
    if layers and frozen > len(layers):
        raise ConfigError(f"features.frozen: found {frozen}; expected at most {len(layers)}, the layers, or 'all'")
    return [_embeddings(encoder), *layers[:frozen]] if layers else [_embeddings(encoder)]


def freeze(modules: list[nn.Module]) -> None:
    """Leave these modules' weights out of training."""
    for module in modules:
        module.requires_grad_(False)


def _embeddings(encoder: Any) -> nn.Module:
    """The part of an encoder that holds its embeddings, with what is added to them and normalises them."""
    table = encoder.get_input_embeddings()
    holders = [part for part in encoder.children() if any(inner is table for inner in part.modules())]
    # Some models have the table, their layers and nothing in between in one part.
    return table if not holders or any(isinstance(p, nn.ModuleList) for p in holders[0].modules()) else holders[0]
