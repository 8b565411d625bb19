"""Trainers: who moves when. A trainer is a recipe of stages of phases; the loop that runs them is the core's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import Batch
from spen_plugins.config.config import Config
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import Terms
from spen_plugins.inference.probe import ProbeConfig
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task


class TrainerConfig(Config):
    """What every trainer takes."""

    epochs: int = Field(60, ge=1)
    """Epochs at most."""
    batch_size: int = Field(32, ge=1)
    """Examples in a batch."""
    patience: int | None = Field(20, ge=1)
    """Stop after so many epochs without a better validation score; null never stops early."""
    accumulate: int = Field(1, ge=1)
    """Split each batch into so many parts and add up their gradients (less memory, the same update)."""
    gradient_norms_every: int = Field(100, ge=0)
    """Log the gradient norm of each term of a loss at every n-th update of its phase; 0 never."""
    probe: ProbeConfig | None = None
    """Also log what gradient-based inference makes of the energy while it trains; `spen plot gbi` draws it."""


class Context:
    """What a phase's loss may use: the batch, the bound energy, the proposal. Made by the loop.

    The loop drops what an update has made stale, so reading a property twice costs nothing and never lies.
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


@dataclass
class Update:
    """One update, as a gradient rule sees it.

    Attributes:
        context: the batch and the nets.
        stage, phase: where the loop stands; a rule that differentiates through another phase finds it here.
        loss: the phase's loss, a scalar.
        parameters: those the phase trains; the rule adds to their `.grad`.
        owned: every phase's parameters by the phase's name, for rules that differentiate through another phase.
        examples: size of the whole batch, which a sum over examples is divided by.
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
    """The ordinary gradient, of the phase's own parameters only."""
    update.backward(update.loss, inputs=list(update.parameters))


@dataclass(frozen=True)
class Phase:
    """Who moves, and on which loss.

    Args:
        name: shown in logs and errors; unique in a stage.
        trains: prefixes of parameter names, `("energy",)`.
        loss: context -> terms; the phase minimises the mean of their sum.
        player: optimiser, learning rates, clipping, and how many updates in a row.
        gradient: the rule that turns the loss into gradients.
        additive: whether the rule's gradients of parts of a batch add up to the batch's; where not, the loop refuses
            accumulation and several processes.
        frozen_dropout: nets this phase does not train run with dropout, as in training (sampling as SEAL released it).
        every: takes its turn at every n-th batch only.
        measures: context -> values logged beside the losses, as often as gradient norms; nobody learns from them.
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


@dataclass(frozen=True)
class Stage:
    """A stretch of training with its own phases. Each batch: `rounds` x (phase 1's steps, phase 2's steps, …).

    Args:
        name: shown in logs, unique in a run.
        phases: in their order.
        epochs: at most.
        rounds: how often the phases take turns on one batch.
        frozen: prefixes of the parameters no phase trains; everything must be trained or named here.
        start: called once when the stage begins (copy or reset weights); not on resume.
        set: called when the stage begins and again on resume (unroll length, annealing).
        select: the stage's own validation score, higher is better; None for the task's.
        patience: epochs without a better score before the stage ends.
        examples: what it trains on; None for the training part.
        gold: whether its phases see the examples' gold outputs.
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


class Trainer(ABC):
    """A recipe: which stages. A subclass's `Config` extends `TrainerConfig`."""

    Config: ClassVar[type[TrainerConfig]] = TrainerConfig
    needs: ClassVar[tuple[str, ...]] = ()
    """Which of `energy` and `energy_loss` the config must have."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def stages(self, model: Model, task: Task) -> list[Stage]:
        """The stages, in order."""

    def protocol(self) -> dict[str, Any]:
        """What a reader of the scores must know of the training: whether it saw the inputs it is scored on."""
        return {}

    def checksums(self) -> dict[str, str]:
        """sha256 of each file read beside the task's, by path."""
        return {}
