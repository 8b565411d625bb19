"""Trainer `bilevel`: the energy learns by the implicit gradient of a bilevel problem (Shankar & Piratla, Alg. 1)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import spen_plugins as sp
from spen_implicit.gradient import NET, ImplicitGradient


class Bilevel(sp.Trainer):
    """The net minimises L_Aux, cross entropy + λ · the energy loss's net terms (Eq. 6).

    The energy minimises L_Prim, the energy loss, at the net that its own parameters lead to (Eq. 2): its gradient has
    a second term, for what a change of the energy does to the trained net (Eq. 4). Each batch: `net.steps` updates of
    the net, `energy.steps` of the energy.

    The energy's phase runs in full precision whatever `precision` says; second derivatives need it.
    """

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        net_epochs: int = Field(0, ge=0)
        """Maximal number of epochs in which the net learns alone, by cross entropy, before the bilevel problem."""
        energy_weight: float = Field(1.0, gt=0)
        """λ, weight of the energy loss's net terms in L_Aux; its scale depends on the loss (E, or σ(−E))."""
        per_variable: bool = False
        """If true, cross entropy is the mean over an example's variables instead of their sum."""
        inverse: Literal["series", "cg", "identity", "none"] = "series"
        """(H + δI)⁻¹ ∂L_Prim/∂θ by: the von Neumann series; conjugate gradient; the identity in the place of the
        series' sum; or none, the control, in which training alternates without the implicit term."""
        terms: int = Field(3, ge=1, le=10_000)
        """K, terms of the series after its first, or iterations of conjugate gradient. Each costs a product with H."""
        damping: float = Field(0.1, ge=0)
        """δ / λmax. H is not positive definite in practice."""
        power_iterations: int = Field(2, ge=1, le=1000)
        """Power iterations for λmax, from the last vector."""
        power_every: int = Field(5, ge=1)
        """λmax is estimated at each such update of the energy, and used until the next."""
        products: Literal["auto", "exact", "finite_differences"] = "auto"
        """Products with second derivatives: by double backward (exact), or as differences of first derivatives, for
        nets that have no second ones, such as an LSTM on a GPU; auto is exact where it can be, and says so if not."""
        net: sp.Player = sp.Player()
        """The net's player; its `steps` are T_inner."""
        energy: sp.Player = sp.Player()
        """The energy's player."""

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config = self.config
        inner = sp.Phase(NET, (NET,), self._compute_auxiliary, config.net)
        outer = replace(sp.energy_phase(config.energy), frozen_dropout=True)
        stages = []
        if config.net_epochs:
            stages.append(
                sp.net_stage(
                    model, task, config.net_epochs, config.net, config.patience, per_variable=config.per_variable
                )
            )
        start = None
        if config.inverse != "none":
            rule = ImplicitGradient(
                config, _use_full_precision(self._compute_auxiliary), _use_full_precision(outer.loss)
            )
            outer = replace(
                outer,
                loss=rule.primary,
                gradient=rule,
                additive=False,
                second_derivatives=rule.products == "exact",
                measures=partial(_measure, rule, outer.measures),
            )
            start = partial(_try_gradient, rule, task)
        frozen = sp.frozen_except(model, "energy", "inference_net")
        if frozen:
            raise sp.ConfigError(
                f"trainer 'implicit.bilevel': {type(model.energy_loss).__name__} has its own net, which is not trained "
                "here. Use an energy_loss without a net (implicit.cd, seal.margin, seal.regression)"
            )
        stages.append(sp.Stage("bilevel", (inner, outer), config.epochs, patience=config.patience))
        # Also before the net learns alone, which may take hours; an interruption then loses the choice of products.
        return [replace(stage, start=start) for stage in stages]

    def _compute_auxiliary(self, context: sp.Context) -> sp.Terms:
        """L_Aux."""
        config = self.config
        return {
            "cross_entropy": sp.cross_entropy(context, config.per_variable),
            **sp.net_terms(context, config.energy_weight),
        }


def _use_full_precision(loss: Any) -> Any:
    """The loss in full precision: products of second derivatives in bfloat16 have other directions."""

    def full(context: sp.Context) -> sp.Terms:
        with torch.autocast(context.batch.rows.device.type, enabled=False):
            return loss(context)

    return full


def _list_parameters(model: sp.Model) -> tuple[Sequence[nn.Parameter], Sequence[nn.Parameter]]:
    """The trained parameters of θ and φ."""
    theta, phi = ([p for p in net.parameters() if p.requires_grad] for net in (model.inference_net, model.energy))
    return theta, phi


def _measure(rule: ImplicitGradient, measure_others: Any, context: sp.Context) -> sp.Terms:
    return {**measure_others(context), **rule.measures(context, *_list_parameters(context.model))}


def _try_gradient(rule: ImplicitGradient, task: sp.Task, model: sp.Model) -> None:
    """Tries the gradient on one example before training starts; `ConfigError` if the energy loss doesn't depend on the
    net, or there is no second derivative, and `products` is exact."""
    device = next(p.device for p in model.parameters())
    batch = _find_first_with_gold(task)
    if batch is None:
        return
    theta, _ = _list_parameters(model)
    with torch.random.fork_rng([device] if device.type == "cuda" else []), sdpa_kernel(SDPBackend.MATH):
        context = sp.OneBatch(model, batch.to(device))
        loss = sum(term.sum() for term in rule.primary(context).values())
        gradients = torch.autograd.grad(loss, theta, retain_graph=True, allow_unused=True)
        if all(gradient is None for gradient in gradients):
            raise sp.ConfigError(
                f"energy_loss {type(model.energy_loss).__name__} passes no gradient to the net, so the implicit term "
                "is zero and training alternates. Use one that does (implicit.cd with energy_loss.outputs=relaxed), or "
                "set trainer.inverse=none"
            )
        try:
            rule.try_products(context, theta)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            problem = f"the net or the energy has no second derivative here ({str(error).splitlines()[0]})"
            if rule.config.products == "exact":
                raise sp.ConfigError(f"{problem}; use trainer.products=finite_differences") from error
            rule.products = "finite_differences"
            warnings.warn(f"{problem}; using finite differences of first derivatives instead", stacklevel=2)


def _find_first_with_gold(task: sp.Task) -> sp.Batch | None:
    """A batch of the first training example with gold, augmented like those of training."""
    for example in task.part("train"):
        if isinstance(task, sp.Augments):
            example = task.augment(example, np.random.default_rng(0))
        batch = task.collate([example])
        if batch.gold is not None:
            return batch
    return None
