"""The training loop: stages of phases, validation, checkpoints, exact resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import ConfigError, Interrupted, NonFiniteLoss
from spen_plugins.loop import ledger
from spen_plugins.loop.active import ActivePhase, planned_updates
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.evaluation import batches, evaluate, probe_scores
from spen_plugins.loop.order import epoch_batches
from spen_plugins.loop.ownership import assign, check_stages, touched
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.random_state import random_state, set_random_state
from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.trainer import Stage, TrainerConfig, Update, backward


class Store(Protocol):
    """What the loop wants of a run folder."""

    path: Path
    checkpoint: Checkpoint

    def save_weights(self, model: Model) -> None: ...

    def load_weights(self, model: Model) -> None: ...

    def append_history(self, record: dict[str, Any], seconds: float) -> None: ...

    def truncate_history(self, lines: int) -> None: ...


@dataclass
class Position:
    """Where training stands; all of it goes into the checkpoint."""

    stage: int = 0
    started: bool = False
    """Whether the stage's `start` has been called."""
    epoch: int = 0
    batch: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    history_lines: int = 0
    sums: ledger.Sums = field(default_factory=dict)


class Loop:
    """Runs a trainer's stages over a task.

    Args:
        model, task: what is trained on what.
        stages: the recipe.
        config: batch size and what else every trainer takes.
        folder: where weights, history and checkpoints go.
        seed: the row order's.
        accelerator: device, precision and processes.
        reporter: progress.
        checkpoint_seconds: at least so much training time between two checkpoints (one ends every stage).
        stop: polled after every batch; true saves and raises `Interrupted`.
        after_epoch: called with the history record of every epoch; a `RunError` it raises ends the run.
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        stages: Sequence[Stage],
        config: TrainerConfig,
        folder: Store,
        seed: int,
        accelerator: Accelerator,
        reporter: Reporter,
        checkpoint_seconds: float = 60.0,
        stop: Callable[[], bool] = lambda: False,
        after_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
    ) -> None:
        self.model, self.task, self.stages, self.config = model, task, stages, config
        self.folder, self.seed, self.accelerator, self.reporter = folder, seed, accelerator, reporter
        self.checkpoint_seconds, self.stop, self.after_epoch = checkpoint_seconds, stop, after_epoch
        self.train, self.validation = task.part("train"), task.part("validation")
        self.position = Position()
        self.nets = NetStates(model)
        self._saved_at = time.monotonic()
        check_stages(model, stages)
        for stage in stages:
            alone = [phase.name for phase in stage.phases if not phase.additive]
            if alone and (config.accumulate > 1 or accelerator.num_processes > 1):
                raise ConfigError(
                    f"stage {stage.name!r}: the gradient of phase {alone[0]!r} can't be added up over "
                    "parts of a batch; use accumulate=1 and one process"
                )
        if not len(self.train):
            raise ConfigError("the task has no training examples")
        empty = [stage.name for stage in stages if stage.examples is not None and not len(stage.examples)]
        if empty:
            raise ConfigError(f"stage {empty[0]!r} has no examples to train on")
        if not len(self.validation):
            raise ConfigError("the task has no validation examples; they choose the best epoch (give a split)")

    def run(self, resume: bool = False) -> None:
        """Train all stages; afterwards the model holds the last stage's best weights.

        Raises:
            NonFiniteLoss: a loss was NaN or infinite.
            Interrupted: `stop` said so; a checkpoint has been saved.
        """
        state = self.folder.checkpoint.load() if resume and self.folder.checkpoint.exists() else None
        if state is not None:
            self.position = Position(**state["position"])
            self.model.load_state_dict(state["model"])
            self._set_random_state(state)
        if self.accelerator.is_main_process:
            self.folder.truncate_history(self.position.history_lines)
        while self.position.stage < len(self.stages):
            self._run_stage(self.stages[self.position.stage], state)
            state = None

    def _run_stage(self, stage: Stage, state: dict[str, Any] | None) -> None:
        at = self.position
        self.begin(stage, state)
        self.reporter.stage(stage, at.epoch)
        while at.epoch < stage.epochs and not self._patience_is_over(stage):
            self.run_epoch(stage)
            at.epoch, at.batch, at.sums = at.epoch + 1, 0, {}
            self._checkpoint_if_due()
        self.accelerator.wait_for_everyone()
        if at.best_epoch >= 0:
            self.folder.load_weights(self.model)
        self.position = Position(stage=at.stage + 1, history_lines=at.history_lines)
        self.active = []
        self._save()

    def begin(self, stage: Stage, state: dict[str, Any] | None = None) -> None:
        """Make the stage's players; with a checkpoint's state, put them where they stood."""
        self.train = self.task.part("train") if stage.examples is None else stage.examples
        self.lengths = np.array([self.task.length(example) for example in self.train])
        if not self.position.started and stage.start is not None:
            stage.start(self.model)
            self._same_weights_everywhere()
        self.position.started = True
        if stage.set is not None:
            stage.set(self.model)
        owned = assign(self.model, stage)
        batches = -(-len(self.train) // self.config.batch_size)
        self.active = [
            ActivePhase(phase, owned[phase.name], touched(self.model, owned[phase.name].values()), self.accelerator, n)
            for phase, n in ((phase, planned_updates(stage, phase, batches)) for phase in stage.phases)
            if owned[phase.name]  # an energy without parameters is fixed: nobody moves in its phase
        ]
        if state is not None and state["scaler"] and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        for player in self.active:
            if state is not None and player.phase.name in state["players"]:
                player.load_state_dict(state["players"][player.phase.name])

    def run_epoch(self, stage: Stage) -> None:
        """Train from the current batch to the epoch's end, validate, write the history."""
        at = self.position
        order = epoch_batches(self.lengths, self.config.batch_size, self.seed, at.stage, at.epoch)
        started = time.perf_counter()
        self.reporter.epoch(at.epoch, len(order), at.batch)
        for number in range(at.batch, len(order)):
            self._run_batch(stage, order[number])
            at.batch = number + 1
            self.reporter.batch(at.batch, lambda: ledger.means(at.sums))
            if self._asked_to_stop():
                self._check_weights(stage)
                self._save()
                raise Interrupted(f"stopped by the user; everything is saved in {self.folder.path}")
            if number + 1 < len(order):
                self._checkpoint_if_due()
        seconds = time.perf_counter() - started
        scores, score = self._validate(stage)
        better = score > at.best
        self._check_weights(stage)
        if better:
            at.best, at.best_epoch = score, at.epoch
            if self.accelerator.is_main_process:
                self.folder.save_weights(self.model)
        for player in self.active:
            player.epoch_ends(score)
        record = {
            "stage": stage.name,
            "epoch": at.epoch,
            "updates": {player.phase.name: player.updates for player in self.active},
            "learning_rate": {player.phase.name: player.learning_rate for player in self.active},
            "losses": ledger.means(at.sums),
            "gradient_norms": ledger.means(at.sums, "gradient_norm"),
            "gradient_share": ledger.means(at.sums, "gradient_share"),
            **({"measures": measures} if (measures := ledger.means(at.sums, "measure")) else {}),
            "validation": scores,
            **self._probe(scores),
            "score": score,
            "best": better,
        }
        at.history_lines += 1
        if self.accelerator.is_main_process:
            self.folder.append_history(record, seconds)
        self.reporter.epoch_done(record, seconds, at.best)
        self.after_epoch(record)

    def _run_batch(self, stage: Stage, rows: np.ndarray) -> None:
        contexts = [LiveContext(self.nets, batch) for batch in self._micro_batches(stage, rows)]
        turn = self.position.epoch * -(-len(self.train) // self.config.batch_size) + self.position.batch + 1
        for _ in range(stage.rounds):
            for player in self.active:
                if turn % player.phase.every:
                    continue
                self.nets.enter(self._training(player), self._constant(player))
                for _ in range(player.player.steps):
                    self._update(stage, player, contexts, len(rows))

    def _training(self, player: ActivePhase) -> frozenset[str]:
        """The nets that run in training mode in a player's phase."""
        if player.phase.frozen_dropout:
            return frozenset(name for name, _ in self.model.named_children())
        net = self.model.inference_net
        # An unrolled net has no weights but the energy's and trains as it does; what stands on a fixed net doesn't.
        if net.uses_energy and "energy" in player.touches and next(net.parameters(), None) is None:
            return player.touches | {"inference_net"}
        return player.touches

    def _constant(self, player: ActivePhase) -> frozenset[str]:
        """Whether the energy's own parameters get no gradient in a player's phase: the ordinary rule reaches those that
        move, and a net that is an optimiser differentiates the energy by itself."""
        net = self.model.inference_net
        moves = "energy" in player.touches or net.uses_energy or player.phase.gradient is not backward
        return frozenset() if moves else frozenset({"energy"})

    def _asked_to_stop(self) -> bool:
        """Whether `stop` says so in any process, so that all stop after the same batch."""
        if self.accelerator.num_processes == 1:
            return self.stop()
        asked = torch.tensor(float(self.stop()), device=self.accelerator.device)
        return bool(self.accelerator.reduce(asked, "sum") > 0)

    def _same_weights_everywhere(self) -> None:
        if self.accelerator.num_processes > 1:
            for parameter in self.model.parameters():
                broadcast(parameter.data)

    def _set_random_state(self, state: dict[str, Any]) -> None:
        """The saved random state, the main process's; the others go on with noise of their own."""
        set_random_state(state["random"])
        if self.accelerator.process_index:
            at = self.position
            torch.manual_seed(hash((self.seed, self.accelerator.process_index, at.stage, at.epoch, at.batch)) % 2**63)

    def _micro_batches(self, stage: Stage, rows: np.ndarray) -> list[Batch]:
        """This process's share of the batch, in `accumulate` parts, on the device."""
        mine = rows[self.accelerator.process_index :: self.accelerator.num_processes]
        parts = np.array_split(mine, min(self.config.accumulate, max(len(mine), 1)))
        found = [
            self.task.collate([self.train[i] for i in part], part) for part in map(np.ndarray.tolist, parts) if part
        ]
        if not stage.gold:
            found = [replace(batch, gold=None, labelled=torch.zeros_like(batch.labelled)) for batch in found]
        return [batch.to(self.accelerator.device) for batch in found]

    def _update(self, stage: Stage, player: ActivePhase, contexts: Sequence[LiveContext], examples: int) -> None:
        every, sums = self.config.gradient_norms_every, self.position.sums
        measure = bool(every) and player.updates % every == 0
        owned = {other.phase.name: other.parameters for other in self.active}
        go_back = self.accelerator.backward
        for context in contexts:
            with self.accelerator.autocast():
                terms = dict(player.phase.loss(context))
                loss = sum(term.sum() for term in terms.values()) / examples
            self._note_losses(stage, player, terms, len(context.batch))
            if measure and len(terms) > 1:
                ledger.add_norms(sums, player.phase.name, ledger.gradient_norms(terms, player.parameters, examples))
            if measure and player.phase.measures is not None:
                self._note_measures(player, context)
            player.phase.gradient(
                Update(context, stage, player.phase, loss, player.parameters, owned, examples, go_back)
            )
        # A scaler's first gradients are often infinite; it skips them.
        if measure and math.isfinite(found := player.gradient_norm(self.accelerator.scaler)):
            ledger.add(sums, "gradient_norm", player.phase.name, found, 1)
        norm = player.step(self.accelerator)
        if norm is not None and not math.isfinite(norm) and self.accelerator.scaler is None:  # a scaler skips that step
            raise self._not_finite(stage, player, "gradient norm", norm)
        for name in player.touches:
            self.nets.moves[name] += 1

    def _note_losses(self, stage: Stage, player: ActivePhase, terms: dict[str, Tensor], examples: int) -> None:
        values = torch.stack([term.detach().sum() for term in terms.values()]).tolist()
        for name, value in zip(terms, values, strict=True):
            if not math.isfinite(value):
                raise self._not_finite(stage, player, f"loss {name!r}", value)
            ledger.add(self.position.sums, "loss", f"{player.phase.name}.{name}", value, examples)

    def _note_measures(self, player: ActivePhase, context: LiveContext) -> None:
        # What is logged draws its random numbers apart: training is the same without it.
        devices = [self.accelerator.device] if self.accelerator.device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.no_grad(), self.accelerator.autocast():
            for name, values in player.phase.measures(context).items():
                ledger.add(
                    self.position.sums, "measure", f"{player.phase.name}.{name}", values.sum().item(), len(values)
                )

    def _not_finite(self, stage: Stage, player: ActivePhase, what: str, value: float) -> NonFiniteLoss:
        at, checkpoint = self.position, self.folder.checkpoint
        kept = (
            f"The last good checkpoint is in {checkpoint.folder}"
            if checkpoint.exists()
            else "There is no checkpoint yet"
        )
        return NonFiniteLoss(
            f"the {what} of phase {player.phase.name!r} is {value} at stage {stage.name!r}, epoch {at.epoch}, "
            f"batch {at.batch}, update {player.updates}. {kept}; "
            f"a lower learning rate (now {player.learning_rate:g}), clipping or a smaller weight may help."
        )

    def _validate(self, stage: Stage) -> tuple[dict[str, Any], float]:
        metric = evaluate(self.model, self.task, self.validation, 4 * self.config.batch_size, self.accelerator.device)
        self.task.fit_threshold(metric)
        scores = metric.compute()
        score = float(scores[self.task.selection])
        if stage.select is not None:
            with torch.no_grad():
                score = float(stage.select(self.model, self._validation_batches()))
        self.nets.modes.clear()
        return scores, score

    def _probe(self, scores: dict[str, Any]) -> dict[str, Any]:
        """What gradient-based inference on the validation part makes of the energy as it is, where it is asked for."""
        probe = self.config.probe
        if probe is None or self.model.energy is None or self.position.epoch % probe.every:
            return {}
        found = probe_scores(self.model, self.task, self._validation_batches(), probe)
        return {"probe": {"net": float(scores[self.task.selection]), **found}}

    def _validation_batches(self) -> list[Batch]:
        return batches(self.task, self.validation, self.config.batch_size, self.accelerator.device)

    def _patience_is_over(self, stage: Stage) -> bool:
        return stage.patience is not None and self.position.epoch - self.position.best_epoch > stage.patience

    def _checkpoint_if_due(self) -> None:
        if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
            self._check_weights(self.stages[self.position.stage])
            self._save()

    def _check_weights(self, stage: Stage) -> None:
        """No weight that is NaN or infinite is ever saved: a finite loss may have such a gradient, and a player whose
        gradients are not clipped looks at no norm."""
        for player in self.active:
            for parameter in player.parameters:
                if not torch.isfinite(parameter).all():
                    raise self._not_finite(stage, player, "weights", math.nan)

    def _save(self) -> None:
        if self.accelerator.is_main_process:
            self.folder.checkpoint.save(
                {
                    "position": dict(vars(self.position)),
                    "model": dict(self.model.state_dict()),
                    "players": {player.phase.name: player.state_dict() for player in self.active},
                    "random": random_state(),
                    "scaler": self.accelerator.scaler and self.accelerator.scaler.state_dict(),
                }
            )
        self._saved_at = time.monotonic()
