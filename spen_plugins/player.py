"""Players: optimiser settings of a part of the model, in every trainer under `net`, `energy` and `cost_net`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from spen_plugins.settings.config import Config

_LAYER = re.compile(r"(?P<encoder>.*?\.encoder)\.(?:\w+\.)*?(?:layers?|blocks?|h)\.(?P<layer>\d+)\.")
"""A parameter of a layer of a feature network's `encoder`, by the names that Hugging Face's models have."""
ALL = "*"
"""Stands for all parameters, in place of a prefix."""
_EMBEDDINGS = re.compile(r"(?P<encoder>.*?\.encoder)\.(?:.*\.)?\w*(?:embed|wte|wpe)\w*\.")


class PlateauConfig(Config):
    """Lower the learning rate when the validation score stops improving."""

    factor: float = Field(0.5, gt=0, lt=1)
    """Factor of each reduction."""
    patience: int = Field(5, ge=0)
    """Epochs without a better score before a reduction."""


class Schedule(Config):
    """The learning rate by update: a warm-up, then a constant rate or a decay to the stage's last planned update.

    A stage plans `epochs` epochs; with early stopping the last rate is higher. Every stage restarts the schedule.
    """

    type: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the rate after the warm-up."""
    warmup: float = Field(0, ge=0)
    """Updates of a linear warm-up to the full rate; below 1, a share of the planned updates."""
    final: float = Field(0, ge=0, lt=1)
    """Final rate of a decay, as a share of the full rate."""

    @model_validator(mode="after")
    def _check_type(self) -> Schedule:
        if self.warmup >= 1 and self.warmup != int(self.warmup):
            raise ValueError(
                f"found warmup={self.warmup:g}; expected a whole number of updates, or a share of them below 1"
            )
        if self.final and self.type == "constant":
            raise ValueError("final is where a decay ends; use type 'linear' or 'cosine'")
        return self

    def share(self, update: int, planned: int) -> float:
        """The rate of an update, as a share of the full rate.

        With w updates of warm-up, update u < w has (u + 1) / w. Then a decay goes from 1 to `final` with the progress
        p = (u − w) / (planned − w): linear in p, or along (1 + cos πp) / 2.

        Args:
            update: number of the update in the stage, from 0.
            planned: planned updates of the stage; later ones keep `final`.
        """
        warmup = round(self.warmup * planned) if self.warmup < 1 else int(self.warmup)
        if update < warmup:
            return (update + 1) / warmup
        if self.type == "constant":
            return 1.0
        progress = min(1.0, (update - warmup) / max(1, planned - warmup))
        remainder = 1 - progress if self.type == "linear" else (1 + math.cos(math.pi * progress)) / 2
        return self.final + (1 - self.final) * remainder


class Player(Config):
    """The settings of a player: optimiser, learning rates, clipping, and updates in a row."""

    type: Literal["adamw", "adam", "sgd"] = "adamw"
    """The optimiser; adamw has decoupled weight decay, adam and sgd the L2 kind."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate."""
    weight_decay: float = Field(1e-5, ge=0)
    """Weight decay."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Momentum; sgd only."""
    clip: float | None = Field(10.0, gt=0)
    """Largest gradient norm; null for no clipping."""
    steps: int = Field(1, ge=1, le=1000)
    """Updates in a row on one batch."""
    every: int = Field(1, ge=1, le=1000)
    """Updates at every n-th batch only; 2 halves the cost of the energy's updates, if it needs fewer of them than the
    net."""
    plateau: PlateauConfig | None = None
    """Lowers the rate when the validation score stops improving; null: never."""
    schedule: Schedule | None = None
    """Learning rate by update; null: constant."""
    groups: dict[str, Annotated[float, Field(gt=0)]] = Field(default={})
    """Multipliers of the rate, by prefix of a parameter's name below its net: {"features": 0.1} for the encoder
    against the head, or one entry per layer. The longest prefix wins, "*" is all parameters, and others have multiplier
    1."""

    layer_decay: float = Field(1.0, gt=0, le=1)
    """Factor of the rate for each layer of a pretrained encoder below its top one, embeddings being the lowest;
    multiplied with those of `groups`. 1: no difference."""
    average: float | None = Field(None, gt=0, lt=1)
    """Decay of an exponential moving average of the weights (0.99: over about the last 100 updates). The average is
    validated and saved; training goes on with the weights themselves. null: none."""

    @model_validator(mode="after")
    def _check_decay(self) -> Player:
        if self.momentum and self.type != "sgd":
            raise ValueError("momentum requires type 'sgd'")
        if self.plateau is not None and self.schedule is not None and self.schedule.type != "constant":
            raise ValueError(
                f"plateau and a {self.schedule.type} schedule both lower the rate; use one of them (plateau: null, or "
                "schedule.type: 'constant' for the warm-up alone)"
            )
        return self

    def multiplier(self, name: str) -> float:
        """Multiplier of a parameter's rate, by its name in the model."""
        prefix = max((p for p in self.groups if is_in_group(name, p)), key=lambda p: len(p) * (p != ALL), default=None)
        return 1.0 if prefix is None else self.groups[prefix]

    def parameter_groups(self, parameters: Mapping[str, nn.Parameter]) -> dict[float, list[nn.Parameter]]:
        """Multiplier -> its parameters, in order; those with multiplier 1 come first.

        Args:
            parameters: parameters by their names in the model.
        """
        groups: dict[float, list[nn.Parameter]] = {1.0: []}
        depths = layers_below_top(parameters)
        for name, parameter in parameters.items():
            rate = self.multiplier(name) * self.layer_decay ** depths.get(name, 0)
            groups.setdefault(rate, []).append(parameter)
        return {multiplier: group for multiplier, group in groups.items() if group}


def layers_below_top(names: Iterable[str]) -> dict[str, int]:
    """Number of layers of its encoder above each parameter that is in a layer or in the embeddings.

    Args:
        names: names of parameters, `inference_net.features.encoder.encoder.layer.3.output.dense.weight`.
    """
    names = list(names)
    layers = {name: (match["encoder"], int(match["layer"])) for name in names if (match := _LAYER.match(name))}
    top_layers: dict[str, int] = {}
    for encoder, layer in layers.values():
        top_layers[encoder] = max(top_layers.get(encoder, 0), layer)
    depths = {name: top_layers[encoder] - layer for name, (encoder, layer) in layers.items()}
    for name in names:
        match = _EMBEDDINGS.match(name)
        if match and match["encoder"] in top_layers and name not in depths:
            depths[name] = top_layers[match["encoder"]] + 1
    return depths


def is_in_group(name: str, prefix: str) -> bool:
    """True if a parameter of the model (`inference_net.features.layer.weight`) has a prefix below its net
    (`features`); all are below `*`."""
    return prefix == ALL or (name.partition(".")[2] + ".").startswith(prefix + ".")
