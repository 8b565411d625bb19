"""The net's phase of SEAL's trainers, in which the energy is part of the loss."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor

import spen_plugins as sp

DECAY = 0.98
"""Decay of the running means of norms, which cover about the last fifty updates."""
LARGEST = 1e6
"""The largest λ1, also used for an energy whose gradient vanishes."""


class SealConfig(sp.TrainerConfig):
    """Settings of both trainers."""

    energy_weight: float = Field(1.0, ge=0)
    """λ1, weight of the energy loss's net terms; its scale depends on the loss (E, or σ(−E)) and on the data. 0
    is the control without the energy, whatever `energy_share` is."""
    energy_share: float | None = Field(None, gt=0, lt=1)
    """In place of `energy_weight`: the share of the gradient at the net's output that the net terms have. λ1 follows
    the running ratio of both terms' gradient norms there; the history has it (`measures`). null: `energy_weight`."""
    cross_entropy_weight: float = Field(1.0, ge=0)
    """λ2, weight of the net's cross entropy."""
    per_variable: bool = False
    """If true, cross entropy is the mean over an example's variables instead of their sum."""
    energy: sp.Player = sp.Player()
    """The energy's player."""
    net: sp.Player = sp.Player()
    """The net's player; it also updates an energy loss's cost net that has no player of its own."""
    energy_dropout: bool = False
    """If true, the energy uses dropout while it teaches the net, as released; off by default so that net and loss
    see the same function of y."""

    @property
    def teaches(self) -> bool:
        """True if the net learns from the energy."""
        return self.energy_weight > 0

    @model_validator(mode="after")
    def _check_losses(self) -> SealConfig:
        if self.energy_share is not None and self.cross_entropy_weight == 0:
            raise ValueError(
                "energy_share requires a cross_entropy_weight above 0: it is a share relative to cross entropy"
            )
        if self.energy_share is not None and self.accumulate > 1:
            raise ValueError(
                "energy_share requires accumulate=1 and one process: it compares gradients of whole batches"
            )
        if not self.teaches and self.cross_entropy_weight == 0:
            raise ValueError(
                "energy_weight and cross_entropy_weight are both 0, so the net learns nothing; set one above 0"
            )
        return self


def net_phase(config: SealConfig, trains: tuple[str, ...], teaches: bool = True) -> sp.Phase:
    """The phase in which the net learns from λ1 · net terms + λ2 · cross entropy (Eq. 5); λ1 is 0 unless it teaches."""
    fields = {"trains": trains, "player": config.net, "frozen_dropout": config.energy_dropout}
    teaches = teaches and config.teaches
    if teaches and config.energy_share is not None:
        shared_loss = SharedLoss(config.energy_share, config.cross_entropy_weight, config.per_variable)
        return sp.Phase("inference_net", loss=shared_loss, measures=shared_loss.measures, additive=False, **fields)
    weight = config.energy_weight if teaches else 0.0
    return sp.Phase("inference_net", loss=partial(_compute_terms, config, weight), **fields)


def _compute_terms(config: Any, energy_weight: float, context: sp.Context) -> sp.Terms:
    """Terms of the net's loss; a term with weight 0 isn't computed."""
    terms = dict(sp.net_terms(context, energy_weight))
    if config.cross_entropy_weight > 0:
        terms["cross_entropy"] = config.cross_entropy_weight * sp.cross_entropy(context, config.per_variable)
    return terms


class SharedLoss:
    """λ1 · net terms + λ2 · cross entropy, with λ1 from running means of both gradients' norms at the net's logits.

    λ1 = s / (1 − s) · mean ‖∂ λ2 CE / ∂ logits‖ / mean ‖∂ net terms / ∂ logits‖, so that the net terms' gradient has
    the share s of the sum of both norms, whatever the scale of the energy. The exponential means have no bias: the
    first update has the ratio of its own batch. `weight` is λ2.
    """

    def __init__(self, share: float, weight: float, per_variable: bool) -> None:
        self.share, self.weight, self.per_variable = share, weight, per_variable
        self._means, self._updates = [0.0, 0.0], 0

    def __call__(self, context: sp.Context) -> sp.Terms:
        terms = dict(sp.net_terms(context))
        cross_entropy = self.weight * sp.cross_entropy(context, self.per_variable)
        if context.training:
            self._update_means(sum(terms.values()), cross_entropy, context.proposal.logits)
        weight = self.energy_weight
        return {name: weight * term for name, term in terms.items()} | {"cross_entropy": cross_entropy}

    @property
    def energy_weight(self) -> float:
        """λ1; 0 before the first update, and while cross entropy has no gradient."""
        gold_norm, energy_norm = self._means
        if not gold_norm:
            return 0.0
        return min(LARGEST, self.share / (1 - self.share) * gold_norm / energy_norm) if energy_norm else LARGEST

    def measures(self, context: sp.Context) -> sp.Terms:
        """λ1, for the history."""
        return {"energy_weight": torch.tensor([self.energy_weight])}

    def state_dict(self) -> dict[str, Any]:
        return {"means": list(self._means), "seen": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._means, self._updates = list(state["means"]), state["seen"]

    def _update_means(self, energy: Tensor, cross_entropy: Tensor, logits: Tensor) -> None:
        norms = [_measure_norm(term, logits) for term in (cross_entropy, energy)]
        if not all(map(math.isfinite, norms)):
            return  # the loop, or a scaler, handles such values
        self._updates += 1
        decay = (DECAY - DECAY**self._updates) / (1 - DECAY**self._updates)
        gold_mean, energy_mean = self._means
        if norms[1]:  # an energy without a gradient for a while, a hinge, keeps its scale
            energy_mean = decay * energy_mean + (1 - decay) * norms[1] if energy_mean else norms[1]
        self._means = [decay * gold_mean + (1 - decay) * norms[0], energy_mean]


def _measure_norm(term: Tensor, logits: Tensor) -> float:
    """Norm of the gradient of a term, `(batch,)`, at the logits; 0 if it doesn't depend on them."""
    if not term.requires_grad:
        return 0.0
    [gradient] = torch.autograd.grad(term.sum(), [logits], retain_graph=True, allow_unused=True)
    return 0.0 if gradient is None else float(gradient.norm())
