"""Trainers: recipes of stages of phases, which the core's loop runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import PluginError
from spen_plugins.inference.descent import ProbeConfig
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task

SMALLEST_BATCH = 8
"""Smallest batch to which `epoch_updates` reduces batches, in examples."""


class TrainerConfig(Config):
    """Settings of every trainer."""

    epochs: int = Field(60, ge=1)
    """Maximal number of epochs."""
    batch_size: int = Field(32, ge=1)
    """Examples in a batch."""
    epoch_updates: int = Field(1, ge=1)
    """Fewest batches in an epoch. If a pass over the training part has fewer, batches become smaller, down to 8
    examples; if that is not enough, an epoch has several passes, each in a new order. Epochs, patience and plateaus are
    counted in these epochs."""
    epoch_updates_at_most: int | None = Field(None, ge=1)
    """Most batches in an epoch. A pass that has more takes several epochs, so that a large training part is validated
    more often; null: no limit."""
    evaluation_batch_size: int | None = Field(None, ge=1)
    """Examples in a batch in evaluation and prediction, which need less memory per example; null: four times
    `batch_size`."""
    patience: int | None = Field(20, ge=1)
    """Epochs without a better validation score before early stopping; null: no early stopping."""
    accumulate: int = Field(1, ge=1)
    """Number of parts of a batch whose gradients are accumulated (less memory, the same update)."""
    gradient_norms_every: int = Field(100, ge=0)
    """Interval, in updates of a phase, for logging the gradient norm of each loss term; 0: never."""
    probe: ProbeConfig | None = None
    """Also logs scores of gradient-based inference while the energy trains."""

    def choose_batch_size(self, examples: int) -> int:
        """Examples in a batch, for a training part of this many examples."""
        if self.epoch_updates == 1:
            return self.batch_size
        return min(self.batch_size, max(SMALLEST_BATCH, examples // self.epoch_updates))

    @property
    def evaluated_at_once(self) -> int:
        """Examples in a batch of evaluation and prediction."""
        return self.evaluation_batch_size or 4 * self.batch_size

    @property
    def inferred_at_once(self) -> int:
        """Examples in a batch of validation by iterative inference, for a stage's own score and the probe."""
        return self.evaluation_batch_size or self.batch_size


class Context:
    """Inputs of a phase's loss: the batch, the bound energy, the proposal. Made by the loop.

    Values are cached, and dropped when an update makes them stale.
    """

    model: Model
    batch: Batch
    training: bool = True

    @property
    def energy(self) -> BoundEnergy:
        """The energy bound to the batch's x."""
        raise NotImplementedError

    @property
    def proposal(self) -> Proposal:
        """The inference net's proposal, with gradient to the net."""
        raise NotImplementedError


class OneBatch(Context):
    """A context outside the loop: bound energy and proposal of a batch, each computed at first use and kept."""

    def __init__(self, model: Model, batch: Batch) -> None:
        self.model, self.batch = model, batch

    @cached_property
    def energy(self) -> BoundEnergy:
        if self.model.energy is None:
            raise ValueError("this experiment has no energy")
        return self.model.energy.at(self.batch.x)

    @cached_property
    def proposal(self) -> Proposal:
        net = self.model.inference_net
        return net.training_proposal(self.batch.x, self.energy if net.uses_energy else None)


@dataclass
class Update:
    """One update, the argument of a gradient rule.

    Attributes:
        context: the batch and the nets.
        stage, phase: the current stage, which also gives a rule access to other phases, and the phase.
        loss: the phase's loss, a scalar.
        parameters: the phase's parameters; the rule adds to their `.grad`.
        owned: every phase's parameters by the phase's name, for rules that differentiate through another phase.
        examples: size of the whole batch, the divisor of a sum over examples.
        backward: the precision- and scaler-aware way to call `loss.backward`.
    """

    context: Context
    stage: Stage
    phase: Phase
    loss: Tensor
    parameters: Sequence[nn.Parameter]
    owned: Mapping[str, Sequence[nn.Parameter]]
    examples: int
    backward: Callable[..., None]


def backward(update: Update) -> None:
    """The ordinary gradient rule, for the phase's own parameters only."""
    if not update.loss.requires_grad:
        raise PluginError(
            f"the loss of phase {update.phase.name!r} has no gradient; expected terms that depend on what it trains, "
            "not detached"
        )
    update.backward(update.loss, inputs=list(update.parameters))


@dataclass(frozen=True)
class Phase:
    """Updates of one player on one loss.

    Args:
        name: shown in logs and errors; unique in a stage.
        trains: prefixes of parameter names, `("energy",)`.
        loss: context -> terms; the phase minimises the mean of their sum. A loss with `state_dict` and
            `load_state_dict` (tensors, numbers, lists and tables) is saved with the checkpoint.
        player: optimiser, learning rates, clipping, and the number of updates in a row.
        gradient: the rule that turns the loss into gradients; likewise saved if it has a state.
        second_derivatives: true if the rule differentiates gradients of the nets' weights again: attention then uses
            kernels that support it, throughout the stage.
        additive: true if the gradients of parts of a batch sum to the batch's; otherwise the loop rejects accumulation
            and several processes.
        frozen_dropout: if true, nets that this phase does not train use dropout (for sampling, as in SEAL's code).
        every: the phase has its turn at every n-th batch only; of these, its player moves at every `player.every`-th.
        measures: context -> values logged with the losses, as often as gradient norms, without effect on training.
    """

    name: str
    trains: tuple[str, ...]
    loss: Callable[[Context], Terms]
    player: Player
    gradient: Callable[[Update], None] = backward
    frozen_dropout: bool = False
    additive: bool = True
    every: int = 1
    measures: Callable[[Context], Terms] | None = None
    second_derivatives: bool = False


@dataclass(frozen=True)
class Stage:
    """A stretch of training with its own phases. Each batch: `rounds` x (phase 1's steps, phase 2's steps, …).

    Args:
        name: shown in logs, unique in a run.
        phases: the phases, in order.
        epochs: maximal number of epochs.
        rounds: number of times that the phases run on one batch.
        frozen: prefixes of the parameters that no phase trains; each parameter must be trained or frozen.
        start: called once when the stage starts (to copy or reset weights), not on resume.
        set: called when the stage starts and again on resume (unroll length, annealing).
        select: the stage's own validation score, higher is better; None for the task's.
        patience: epochs without a better score before the stage ends.
        examples: the training examples; None for the training part.
        gold: if true, its phases see the examples' gold.
        goes_on: if true, the previous stage's best score and weights stay the best until this stage has better ones.
    """

    name: str
    phases: tuple[Phase, ...]
    epochs: int
    rounds: int = 1
    frozen: tuple[str, ...] = ()
    start: Callable[[Model], None] | None = None
    set: Callable[[Model], None] | None = None
    select: Callable[[Model, Sequence[Batch]], float] | None = None
    patience: int | None = None
    examples: Sequence[Any] | None = None
    gold: bool = True
    goes_on: bool = False


class Trainer(ABC):
    """A recipe of stages. A subclass's `Config` extends `TrainerConfig`."""

    Config: ClassVar[type[TrainerConfig]] = TrainerConfig
    needs: ClassVar[tuple[str, ...]] = ()
    """Required keys of the config, of `energy` and `energy_loss`."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def stages(self, model: Model, task: Task) -> list[Stage]:
        """The stages, in order."""

    def protocol(self) -> dict[str, Any]:
        """Notes on training for readers of the scores, such as training on test inputs."""
        return {}

    def checksums(self) -> dict[str, str]:
        """sha256 of each file read besides the task's, by path."""
        return {}
