"""One phase's optimiser and what goes with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from spen_plugins.trainer import OptimizerConfig, Phase


def make_optimizer(config: OptimizerConfig, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser a config describes; the fused kernels where they exist (several times faster on a CPU)."""
    parameters = list(parameters)
    fused = all(parameter.is_floating_point() for parameter in parameters)
    if config.type == "sgd":
        return torch.optim.SGD(
            parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay, fused=fused
        )
    kind = torch.optim.AdamW if config.type == "adamw" else torch.optim.Adam
    return kind(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused)


class Player:
    """A phase at work: its parameters, optimiser and schedule.

    Args:
        phase: the recipe.
        owned: the parameters it trains, by name.
        touches: the model's children that hold any of them.
        accelerator: wraps the optimiser for mixed precision.
    """

    def __init__(
        self, phase: Phase, owned: dict[str, nn.Parameter], touches: frozenset[str], accelerator: Accelerator
    ) -> None:
        self.phase, self.touches = phase, touches
        self.parameters = list(owned.values())
        self.updates = 0
        self.optimizer = make_optimizer(phase.optimizer, self.parameters)
        # Only a gradient scaler (fp16) needs accelerate's wrapper, which looks for optional packages at every step.
        self._stepper = self.optimizer if accelerator.scaler is None else accelerator.prepare_optimizer(self.optimizer)
        plateau = phase.plateau
        self.plateau = plateau and torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, mode="max", factor=plateau.factor, patience=plateau.patience
        )

    @property
    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def gradient_norm(self, scaler: torch.amp.GradScaler | None = None) -> float:
        """Norm of the gradients as they stand, without what a scaler has multiplied them with."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).item()
        return norm if scaler is None else norm / scaler.get_scale()

    def step(self, accelerator: Accelerator) -> float | None:
        """Clip, move, forget the gradients; the gradient's norm before clipping, None where nothing is clipped. A norm
        that is not finite moves nothing (with a scaler, the scaler decides).

        With several processes their gradients are added up first: a wrapper around a module would miss gradients made
        by `autograd.grad`.
        """
        if accelerator.num_processes > 1:
            for parameter in self.parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad = accelerator.reduce(parameter.grad, "sum")
        if accelerator.scaler is not None:
            accelerator.unscale_gradients(self._stepper)
        norm, clip = None, self.phase.clip
        if clip is not None:
            # Not accelerate's own clipping, which looks for optional packages at every call.
            gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            total = torch.nn.utils.get_total_norm(gradients)
            norm = total.item()
            if norm > clip:
                torch.nn.utils.clip_grads_with_norm_(self.parameters, clip, total)
        if norm is None or accelerator.scaler is not None or math.isfinite(norm):
            self._stepper.step()
        self._stepper.zero_grad()
        self.updates += 1
        return norm

    def epoch_ends(self, score: float) -> None:
        """Tell the schedule the validation score."""
        if self.plateau is not None:
            self.plateau.step(score)

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "optimizer": self.optimizer.state_dict(),
            "plateau": self.plateau and self.plateau.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]
        self.optimizer.load_state_dict(state["optimizer"])
        if self.plateau is not None:
            self.plateau.load_state_dict(state["plateau"])
