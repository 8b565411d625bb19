"""Phases, stages and loss terms shared by several trainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.task import Task
from spen_plugins.task_parts import selection_score
from spen_plugins.trainer import Context, Phase, Stage


def frozen_except(model: Model, *trained: str) -> tuple[str, ...]:
    """`Stage.frozen` of a stage that trains the named nets: the model's other nets with parameters."""
    return tuple(sorted({name.split(".")[0] for name, _ in model.named_parameters()} - set(trained)))


def cross_entropy(context: Context, per_variable: bool = False) -> Tensor:
    """−ln q(gold | x), `(batch,)`: summed over variables, or their mean with `per_variable`; 0 in rows without gold.

    Classes and examples have the batch's weights. A mean over variables is their weighted sum over their number.
    """
    batch, proposal = context.batch, context.proposal
    if batch.gold is None:
        return 0 * proposal.logits.flatten(1).sum(1)  # with a graph: it may be the whole loss
    loss = -batch.gold_log_prob(proposal)
    if per_variable:
        loss = loss / proposal.space.size(batch.gold, batch.x.mask)[:, 0]
    return batch.weigh(loss * batch.labelled)


def net_terms(context: Context, weight: float = 1.0) -> Terms:
    """The energy loss's `net_terms`, times λ and the examples' weights; with weight 0 nothing is computed."""
    if weight == 0:
        return {}
    terms = _ask_loss(context, "net_terms")
    return {name: context.batch.weigh(weight * term) for name, term in terms.items()}


def energy_phase(player: Player, trains: tuple[str, ...] = ("energy",), **fields: Any) -> Phase:
    """The phase in which the energy learns from the experiment's energy loss; `fields` are the others of `Phase`."""
    return Phase("energy", trains, _compute_energy_terms, player, measures=_compute_energy_measures, **fields)


def loss_parts(model: Model, player: Literal["nets", "energy"]) -> tuple[str, ...]:
    """`("energy_loss",)` if the energy loss has parameters of its own that this player trains, else `()`."""
    loss = model.energy_loss
    learns = any(True for _ in loss.parameters()) and loss.moves_with == player
    return ("energy_loss",) if learns else ()


def cost_net_phase(model: Model, player: Player, weight: float = 1.0, **fields: Any) -> Phase:
    """The phase in which the energy loss's cost net moves by itself, on λ (`weight`) · the loss's `net_terms`.

    Raises:
        ConfigError: the energy loss has no cost net.
    """
    if not loss_parts(model, "nets"):
        raise ConfigError(
            f"trainer.cost_net: {type(model.energy_loss).__name__} has no cost-augmented net to train; use null, or an "
            "energy loss with a key `cost_net`"
        )
    return Phase("cost_net", ("energy_loss",), partial(net_terms, weight=weight), player, **fields)


def net_stage(
    model: Model, task: Task, epochs: int, player: Player, patience: int | None, *, per_variable: bool = False
) -> Stage:
    """The stage `net`, in which the inference net learns by cross entropy alone and everything else is frozen.

    It makes one update per batch, whatever the player's `steps`. Its validation score is that of the net itself, not of
    gradient-based inference on top of it.
    """

    def compute_loss(context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, per_variable)}

    phase = Phase("inference_net", ("inference_net",), compute_loss, player.model_copy(update={"steps": 1}))
    select = partial(_score_net, task) if model.inference_net.uses_energy else None
    frozen = frozen_except(model, "inference_net")
    return Stage("net", (phase,), epochs, frozen=frozen, select=select, patience=patience)


def energy_stage(
    model: Model,
    epochs: int,
    player: Player,
    patience: int | None,
    *,
    trainer: str,
    select: Callable[[Model, Sequence[Batch]], float] | None = None,
) -> Stage:
    """The stage `energy`, in which the energy learns from the energy loss alone and everything else is frozen.

    Args:
        trainer: the trainer's type, for messages.
        select: the stage's own validation score; None for the task's.

    Raises:
        ConfigError: the energy loss has its own net, which would stay untrained.
    """
    if loss_parts(model, "nets"):
        key = next(name for name, _ in model.energy_loss.named_parameters())
        raise ConfigError(
            f"trainer {trainer!r}: {type(model.energy_loss).__name__} has its own net ({key.split('.')[0]}), which is "
            "frozen here. Use an energy_loss without a net ('ssvm' for a margin), or a trainer that updates both on "
            "every batch"
        )
    trains = ("energy", *loss_parts(model, "energy"))
    phase = energy_phase(player, trains)
    return Stage("energy", (phase,), epochs, frozen=frozen_except(model, *trains), select=select, patience=patience)


def _compute_energy_terms(context: Context) -> Terms:
    return {name: context.batch.weigh(term) for name, term in _ask_loss(context, "terms").items()}


def _compute_energy_measures(context: Context) -> Terms:
    return _ask_loss(context, "measures")


def _ask_loss(context: Context, method: Literal["terms", "net_terms", "measures"]) -> Terms:
    """The result of a method of the energy loss."""
    loss = context.model.energy_loss
    terms = getattr(loss, method)(context.energy, context.batch, context.proposal)
    if not isinstance(terms, Mapping):
        problem = f"{type(loss).__name__}.{method} returned a {type(terms).__name__}"
        raise PluginError(f"{problem}; expected a dict of tensors of shape (batch,) by name")
    return terms


def _score_net(task: Task, model: Model, batches: Sequence[Batch]) -> float:
    net = model.inference_net
    return selection_score(task, ((net.training_proposal(b.x, model.energy.at(b.x)), b) for b in batches))
