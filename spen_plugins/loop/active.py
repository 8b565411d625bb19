"""A phase during training: optimiser, learning rate and gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spen_plugins.errors import ConfigError
from spen_plugins.loop.processes import GradientSum
from spen_plugins.loop.recipe import find_touched
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.trainer import Phase, Stage


def make_optimizer(player: Player, parameters: Mapping[str, nn.Parameter]) -> torch.optim.Optimizer:
    """A player's optimiser; with fused kernels if they exist (several times faster on a CPU).

    A parameter group has, besides its rate `lr`, its rate before any schedule, `base_lr`, and its `multiplier`.
    """
    groups = [
        {"params": group, "lr": player.lr * multiplier, "base_lr": player.lr * multiplier, "multiplier": multiplier}
        for multiplier, group in player.parameter_groups(parameters).items()
    ]
    can_fuse = all(parameter.is_floating_point() for parameter in parameters.values())
    settings = {"lr": player.lr, "weight_decay": player.weight_decay, "fused": can_fuse}
    if player.type == "sgd":
        return torch.optim.SGD(groups, momentum=player.momentum, **settings)
    optimizer_class = torch.optim.AdamW if player.type == "adamw" else torch.optim.Adam
    return optimizer_class(groups, **settings)


def planned_updates(stage: Stage, phase: Phase, batches: int) -> int:
    """Number of updates of a phase in its stage without early stopping."""
    return stage.epochs * batches // find_every(phase) * stage.rounds * phase.player.steps


def find_every(phase: Phase) -> int:
    """Number of batches among which a phase has one turn."""
    return phase.every * phase.player.every


class ActivePhase:
    """A phase during training: its parameters, optimiser and learning rate.

    Args:
        phase: the recipe.
        owned: the parameters it trains, by name.
        touches: the model's children that hold any of these parameters.
        accelerator: wraps the optimiser for mixed precision.
        planned: planned updates of its stage, at the end of which a schedule ends.
    """

    def __init__(
        self,
        phase: Phase,
        owned: dict[str, nn.Parameter],
        touches: frozenset[str],
        accelerator: Accelerator,
        planned: int = 0,
    ) -> None:
        self.phase, self.player, self.touches, self.planned = phase, phase.player, touches, planned
        self.parameters = list(owned.values())
        self.gradient_sum = GradientSum(self.parameters)
        self.updates = 0
        self.means = [] if self.player.average is None else [p.detach().clone() for p in self.parameters]
        self.optimizer = make_optimizer(self.player, owned)
        # Only a gradient scaler (fp16) needs accelerate's wrapper, which looks for optional packages at every step.
        self._stepper = self.optimizer if accelerator.scaler is None else accelerator.prepare_optimizer(self.optimizer)
        # A gradient rule and a loss may be objects with a state of their own.
        self._stateful: dict[str, Any] = {
            name: part
            for name, part in (("gradient", phase.gradient), ("loss", phase.loss))
            if hasattr(part, "state_dict")
        }
        plateau = self.player.plateau
        self.plateau = plateau and torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, mode="max", factor=plateau.factor, patience=plateau.patience
        )

    @property
    def learning_rate(self) -> float:
        """The present rate, for parameters without a multiplier."""
        group = self.optimizer.param_groups[0]
        return float(group["lr"] / group["multiplier"])

    def gradient_norm(self, scaler: torch.amp.GradScaler | None = None) -> float:
        """Norm of the current gradients, without a scaler's factor."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).item()
        return norm if scaler is None else norm / scaler.get_scale()

    def step(self, accelerator: Accelerator) -> float | None:
        """Clip, update, and clear the gradients. Returns the gradient's norm before clipping, None without clipping.
        If the norm is not finite, nothing is updated (with a scaler, the scaler decides)."""
        if accelerator.scaler is not None:
            accelerator.unscale_gradients(self._stepper)
        norm, clip = None, self.player.clip
        if clip is not None:
            # accelerate's own clipping searches for optional packages at every call.
            gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            total = torch.nn.utils.get_total_norm(gradients)
            norm = total.item()
            if norm > clip:
                torch.nn.utils.clip_grads_with_norm_(self.parameters, clip, total)
        if self.player.schedule is not None:
            share = self.player.schedule.share(self.updates, self.planned)
            for group in self.optimizer.param_groups:
                group["lr"] = group["base_lr"] * share
        if norm is None or accelerator.scaler is not None or math.isfinite(norm):
            self._stepper.step()
        self._stepper.zero_grad()
        self.updates += 1
        if self.player.average is not None:  # the first weights, from which training starts, fade faster
            decay = min(self.player.average, self.updates / (self.updates + 9))
            torch._foreach_lerp_(self.means, [p.detach() for p in self.parameters], 1 - decay)
        return norm

    def epoch_ends(self, score: float) -> None:
        """Report the validation score to the plateau, which may lower the rates before any schedule."""
        if self.plateau is None:
            return
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"]
        self.plateau.step(score)
        for group in self.optimizer.param_groups:
            group["base_lr"] = group["lr"]

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "optimizer": self.optimizer.state_dict(),
            "plateau": self.plateau and self.plateau.state_dict(),
            **{name: part.state_dict() for name, part in self._stateful.items()},
            "means": [mean.clone() for mean in self.means],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]
        self.optimizer.load_state_dict(state["optimizer"])
        if self.plateau is not None:
            self.plateau.load_state_dict(state["plateau"])
        for name, part in self._stateful.items():
            part.load_state_dict(state[name])
        if self.means:
            for mean, saved_mean in zip(self.means, state["means"], strict=True):
                mean.copy_(saved_mean)


def make_phases(
    model: Model, stage: Stage, owned: Mapping[str, Sequence[str]], accelerator: Accelerator, batches: int
) -> list[ActivePhase]:
    """The stage's phases that have parameters; an energy without parameters is fixed, and its phase has no updates."""
    phases = []
    for phase in stage.phases:
        if parameters := {name: model.get_parameter(name) for name in owned[phase.name]}:
            touches, planned = find_touched(model, parameters.values()), planned_updates(stage, phase, batches)
            if stage.epochs and not planned and phase.player.every > 1:
                raise ConfigError(
                    f"phase {phase.name!r} updates only at every {find_every(phase)}th batch, but stage {stage.name!r} "
                    f"has {stage.epochs * batches} batches; expected a smaller `every` in its player"
                )
            phases.append(ActivePhase(phase, parameters, touches, accelerator, planned))
    return phases


@contextmanager
def use_means(phases: Sequence[ActivePhase]) -> Iterator[None]:
    """Inside, the running means are the weights of the phases that have them."""
    pairs = [pair for active in phases for pair in zip(active.parameters, active.means, strict=bool(active.means))]
    _swap(pairs)
    try:
        yield
    finally:
        _swap(pairs)


def _swap(pairs: Sequence[tuple[nn.Parameter, Tensor]]) -> None:
    for parameter, mean in pairs:
        parameter.data, mean.data = mean.data, parameter.data
