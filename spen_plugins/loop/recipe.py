"""Arguments of the loop: the recipe of a training, in which each parameter has one owner, and the caller's part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from torch import nn

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.model import Model
from spen_plugins.player import is_in_group, layers_below_top
from spen_plugins.task import Task
from spen_plugins.trainer import Phase, Stage, TrainerConfig

Owned: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Stage -> phase -> names of the parameters that it trains."""


def assign(model: Model, stage: Stage) -> dict[str, dict[str, nn.Parameter]]:
    """Phase name -> its trained parameters, by name.

    A parameter shared by two modules counts once and may be claimed under any of its names.
    """
    claims = {phase.name: phase.trains for phase in stage.phases} | {"frozen": stage.frozen}
    if len(claims) != len(stage.phases) + 1:
        raise ConfigError(f"stage {stage.name!r}: phases must have different names, and none may be 'frozen'")
    owned: dict[str, dict[str, nn.Parameter]] = {phase.name: {} for phase in stage.phases}
    for name, aliases in _find_aliases(model).items():
        if not (parameter := model.get_parameter(name)).requires_grad:
            continue
        owners = [
            owner
            for owner, prefixes in claims.items()
            if any(f"{alias}.".startswith(f"{prefix}.") for alias in aliases for prefix in prefixes)
        ]
        if len(owners) != 1:
            _check_prefixes(model, stage, claims)
            claim = f"it is claimed by {' and '.join(owners)}" if owners else "no phase trains it and it is not frozen"
            raise ConfigError(f"stage {stage.name!r}: parameter {name!r} needs exactly one owner, but {claim}")
        if owners[0] != "frozen":
            owned[owners[0]][name] = parameter
    return owned


def _check_prefixes(model: Model, stage: Stage, claims: Mapping[str, Sequence[str]]) -> None:
    """Raise a ConfigError for a prefix that names no part of the model; a part may lack parameters, or be absent."""
    component_names = {"energy", "energy_loss", *(name for names in _find_aliases(model).values() for name in names)}
    component_names |= {name for name, _ in model.named_modules(remove_duplicate=False) if name}
    for owner, prefixes in claims.items():
        for prefix in prefixes:
            if prefix not in component_names:
                suggestion = did_you_mean(prefix, component_names)
                problem = f"{owner} names {prefix!r}, but no parameter begins with it."
                raise ConfigError(
                    f"stage {stage.name!r}: {problem}{suggestion} Parts: {', '.join(dict(model.named_children()))}"
                )


def assign_stages(model: Model, stages: Sequence[Stage]) -> Owned:
    """The parameters that each phase of each stage trains, once names, epochs and rates are checked."""
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        raise ConfigError(f"found the stages {', '.join(names)}; expected different names")
    if not any(stage.epochs > 0 for stage in stages):
        raise ConfigError(f"found no epochs in any stage ({', '.join(names) or 'none'}); expected at least one")
    owners = {stage.name: {phase: list(owned) for phase, owned in assign(model, stage).items()} for stage in stages}
    _check_rates(model, [(phase, owners[stage.name][phase.name]) for stage in stages for phase in stage.phases])
    return owners


def _check_rates(model: Model, owned: Sequence[tuple[Phase, Sequence[str]]]) -> None:
    """Check the settings of players for parts of a model."""
    aliases = _find_aliases(model)
    for phase, parameter_names in owned:
        player = phase.player
        for name in parameter_names:
            rates = {alias: player.multiplier(alias) for alias in aliases[name]}
            if len(set(rates.values())) > 1:
                listing = ", ".join(f"{alias} x{rate:g}" for alias, rate in rates.items())
                raise ConfigError(
                    f"phase {phase.name!r}: its player's groups set two rates for a shared parameter: {listing}"
                )
        layer_names = [names for other, names in owned if other.player == player]
        if player.layer_decay < 1 and not any(map(layers_below_top, layer_names)):
            raise ConfigError(
                f"phase {phase.name!r}: its player has layer_decay={player.layer_decay:g} but trains no encoder "
                "layers; expected a pretrained encoder that isn't frozen, or 1"
            )
        trained_names = [name for other, names in owned if other.player.groups == player.groups for name in names]
        _check_groups(model, phase, [alias for name in trained_names for alias in aliases[name]])


def _check_groups(model: Model, phase: Phase, trained_names: Sequence[str]) -> None:
    nets = {name.partition(".")[0] for name in trained_names}
    frozen_names = [n for n, p in model.named_parameters() if not p.requires_grad and n.partition(".")[0] in nets]
    # A part may have no parameters of its own, for example features that are the net's.
    empty_parts = [
        f"{name.partition('.')[2]}."
        for name, module in model.named_modules()
        if name.partition(".")[0] in nets and "." in name and next(module.parameters(), None) is None
    ]
    for prefix in phase.player.groups:
        if any(f"{prefix}.".startswith(part) for part in empty_parts):
            continue
        if not any(is_in_group(name, prefix) for name in [*trained_names, *frozen_names]):
            parts = [name.split(".")[1:] for name in trained_names]
            prefixes = {".".join(part[: i + 1]) for part in parts for i in range(len(part))}
            raise ConfigError(
                f"phase {phase.name!r}: its player's groups name {prefix!r}, but none of its parameters begins with "
                f"it.{did_you_mean(prefix, prefixes)} They begin with: {', '.join(sorted({p[0] for p in parts}))}"
            )


def _find_aliases(model: Model) -> dict[str, list[str]]:
    """First name of each parameter -> all its names, several if modules share it."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return {aliases[0]: aliases for aliases in names.values()}


def find_touched(model: Model, parameters: Iterable[nn.Parameter]) -> frozenset[str]:
    """Names of the model's children that hold any of these parameters."""
    ids = {id(parameter) for parameter in parameters}
    return frozenset(
        name for name, child in model.named_children() if any(id(parameter) in ids for parameter in child.parameters())
    )


@dataclass
class Recipe:
    """A model, its task, and the training's stages and settings."""

    model: Model
    task: Task
    stages: Sequence[Stage]
    config: TrainerConfig
    seed: int
    owned: Owned = field(init=False)

    def __post_init__(self) -> None:
        self.owned = assign_stages(self.model, self.stages)
        if not len(self.task.part("train")):
            raise ConfigError("the task has no training examples")
        if not len(self.task.part("validation")):
            raise ConfigError("the task has no validation examples, which choose the best epoch; give a split")
        empty_stages = [stage.name for stage in self.stages if stage.examples is not None and not len(stage.examples)]
        if empty_stages:
            raise ConfigError(f"stage {empty_stages[0]!r} has no examples to train on")


@dataclass(frozen=True)
class Callbacks:
    """The caller's part in a training.

    Args:
        checkpoint_seconds: minimal training time between two checkpoints (every stage ends with one).
        stop: polled after every batch; true saves and raises `Interrupted`.
        after_epoch: called with the history record of every epoch; a `RunError` it raises ends the run.
    """

    checkpoint_seconds: float = 60.0
    stop: Callable[[], bool] = lambda: False
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None


NO_CALLBACKS = Callbacks()
