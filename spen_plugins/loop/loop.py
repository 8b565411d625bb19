"""The training loop: stages of phases, validation, checkpoints, exact resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from spen_plugins.batch import Batch
from spen_plugins.errors import ConfigError, Interrupted, NonFiniteLoss
from spen_plugins.loop import ledger
from spen_plugins.loop.active import ActivePhase, averaged, planned_updates
from spen_plugins.loop.attention import attention_of
from spen_plugins.loop.augmentation import batch_of
from spen_plugins.loop.checkpoint import Store, fitting, put_phases, put_weights
from spen_plugins.loop.constant import Constant
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.denormals import without_denormals
from spen_plugins.loop.evaluation import batches, evaluate
from spen_plugins.loop.order import epochs_of
from spen_plugins.loop.ownership import Owned, check_stages, parameters_of, touched
from spen_plugins.loop.position import Position
from spen_plugins.loop.processes import everyones, restore_own, same_weights, shares, wait_for_all
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.random_state import random_state
from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder
from spen_plugins.trainer import Stage, TrainerConfig, Update


class Loop:
    """Runs a trainer's stages over a task.

    Args:
        model, task: the model to train, and its task.
        stages: the recipe.
        config: batch size and the other settings of every trainer.
        folder: store of weights, history and checkpoints.
        seed: seed of the row order.
        accelerator: device, precision and processes.
        reporter: progress.
        checkpoint_seconds: minimal training time between two checkpoints (every stage ends with one).
        stop: polled after every batch; true saves and raises `Interrupted`.
        after_epoch: called with the history record of every epoch; a `RunError` it raises ends the run.
        after_validation: called with the epoch and its validation scores; its result is added to the record.
        owned: the owners of all parameters, from `check_stages`; None to check the stages here.
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
        after_validation: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda epoch, scores: {},
        owned: Owned | None = None,
    ) -> None:
        self.model, self.task, self.stages, self.config = model, task, stages, config
        self.folder, self.seed, self.accelerator, self.reporter = folder, seed, accelerator, reporter
        self.checkpoint_seconds, self.stop = checkpoint_seconds, stop
        self.after_epoch, self.after_validation = after_epoch, after_validation
        self.train, self.validation = task.part("train"), task.part("validation")
        self.position = Position()
        self.nets, self.constant = NetStates(model), Constant(task, config.evaluated_at_once)
        self._saved_at, self._asked = time.monotonic(), [0.0, 0.0]
        self.owned = check_stages(model, stages) if owned is None else owned
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
        """Train all stages; the model then has the last stage's best weights.

        Raises:
            NonFiniteLoss: a loss was NaN or infinite.
            Interrupted: `stop` returned true; a checkpoint is saved.
        """
        saved = self.folder.checkpoint
        state = saved.load(self.reporter.say) if resume and saved.exists() else None
        if state is not None:
            with fitting(self.folder.checkpoint.folder):
                self.position = at = Position(**state["position"])
                put_weights(self.model, state["model"])
                restore_own(state, at, self.seed, self.accelerator, self.reporter.say)
        if self.accelerator.is_main_process:
            self.folder.truncate_history(self.position.history_lines)
        with without_denormals():
            while self.position.stage < len(self.stages):
                with attention_of(stage := self.stages[self.position.stage]):
                    self._run_stage(stage, state)
                state = None

    def _run_stage(self, stage: Stage, state: dict[str, Any] | None) -> None:
        at = self.position
        self.begin(stage, state)
        self.reporter.stage(stage, at.epoch, self.epochs)
        while at.epoch < stage.epochs and not (at.patience_is_over(stage) and self.learned(stage, at.best)):
            self.run_epoch(stage)
            at.next_epoch()
            if self._asked[1]:
                self._checkpoint()
        wait_for_all(self.accelerator)
        if at.best > -math.inf:
            self.folder.load_weights(self.model)
        following = self.stages[at.stage + 1 : at.stage + 2]
        self.position = at.next_stage(any(stage.goes_on for stage in following))
        self.active = []
        # Alone: the next stage writes other weights, which a state of this one would take for its best.
        self._save(alone=True)

    def begin(self, stage: Stage, state: dict[str, Any] | None = None) -> None:
        """Create the stage's phases, and restore their state from a checkpoint."""
        self.train = self.task.part("train") if stage.examples is None else stage.examples
        self.epochs = epochs_of(self.task, self.train, self.config, self.seed, self.position.stage)
        if not self.position.started and stage.start is not None:
            stage.start(self.model)
            same_weights(self.model, self.accelerator)
        self.position.started = True
        if stage.set is not None:
            stage.set(self.model)
        owned = {name: parameters_of(self.model, names) for name, names in self.owned[stage.name].items()}
        self.active = [
            ActivePhase(phase, owned[phase.name], touched(self.model, owned[phase.name].values()), self.accelerator, n)
            for phase, n in ((phase, planned_updates(stage, phase, self.epochs.batches)) for phase in stage.phases)
            if owned[phase.name]  # an energy without parameters is fixed: its phase has no updates
        ]
        if state is not None:
            put_phases(state, self.active, self.accelerator.scaler, self.folder.checkpoint.folder)

    def run_epoch(self, stage: Stage) -> None:
        """Train from the current batch to the epoch's end, validate, write the history."""
        at = self.position
        order = self.epochs.order(at.epoch)
        started = time.perf_counter()
        self.reporter.epoch(at.epoch, len(order), at.batch)
        for number in range(at.batch, len(order)):
            self.run_batch(stage, order[number])
            at.batch = number + 1
            self.reporter.batch(at.batch, lambda: ledger.means(at.sums))
            stop, due = self._asks()
            if stop or (due and number + 1 < len(order)):
                self._checkpoint()
            if stop:
                raise Interrupted(f"stopped by the user; everything is saved in {self.folder.path}")
        seconds = time.perf_counter() - started
        with averaged(self.active):
            scores, score = self.validate(stage)
            everyone = everyones((score, at.sums, self._is_due()), self.accelerator)
            (score, *_), at.sums = everyone[0], ledger.merged([sums for _, sums, _ in everyone])
            self._asked = [0.0, any(due for *_, due in everyone)]
            better = score > at.best
            self.check_weights(stage)
            if better:
                at.best, at.best_epoch = score, at.epoch
                if self.accelerator.is_main_process:
                    self.folder.save_weights(self.model)
        if self.learned(stage, score):
            for active in self.active:
                active.epoch_ends(score)
        found = {"validation": scores, **self.after_validation(at.epoch, scores)}
        record = {**ledger.epoch_record(stage, at, self.active, found, score), "best": better}
        at.history_lines += 1
        if self.accelerator.is_main_process:
            self.folder.append_history(record, seconds)
        self.reporter.epoch_done(record, seconds, at.best)
        self.after_epoch(record)

    def run_batch(self, stage: Stage, rows: np.ndarray) -> None:
        """Train on one batch: all phases, in all rounds."""
        contexts = [LiveContext(self.nets, batch) for batch in self._micro_batches(stage, rows)]
        turn = self.position.epoch * self.epochs.batches + self.position.batch + 1
        for _ in range(stage.rounds):
            for active in self.active:
                if turn % active.phase.every:
                    continue
                self.nets.phase_begins(active)
                for _ in range(active.player.steps):
                    self._update(stage, active, contexts, len(rows))

    def _micro_batches(self, stage: Stage, rows: np.ndarray) -> list[Batch]:
        """This process's share of the batch, in `accumulate` parts, on the device."""
        parts = shares(rows, self.accelerator, self.config.accumulate)
        at = self.position
        place = (self.seed, at.stage, self.epochs.number_of_pass(at.epoch, at.batch))
        found = [batch_of(self.task, stage, self.train, part, place) for part in parts]
        return [batch.to(self.accelerator.device) for batch in found]

    def _update(self, stage: Stage, active: ActivePhase, contexts: Sequence[LiveContext], examples: int) -> None:
        every, sums = self.config.gradient_norms_every, self.position.sums
        measure = bool(every) and active.updates % every == 0
        owned = {other.phase.name: other.parameters for other in self.active}
        go_back = self.accelerator.backward
        for context in contexts:
            with self.accelerator.autocast():
                terms = active.phase.loss(context)
                ledger.check_terms(terms, len(context.batch), active.phase.name)
                loss = sum(term.sum() for term in terms.values()) / examples
            losses = ledger.totals(terms)
            for name, value in losses.items():
                if not math.isfinite(value):
                    raise self._not_finite(f"loss {name!r}", value, stage, active)
            ledger.add_losses(sums, active.phase.name, losses, len(context.batch))
            if measure and len(terms) > 1:
                ledger.add_norms(sums, active.phase.name, ledger.gradient_norms(terms, active.parameters, examples))
            if measure:
                ledger.add_measures(sums, active, context, self.accelerator)
            active.phase.gradient(
                Update(context, stage, active.phase, loss, active.parameters, owned, examples, go_back)
            )
        if self.accelerator.num_processes > 1:
            self._asked = active.gradient_sum.add_up([self.stop(), self._is_due()])
        # A scaler's first gradients are often infinite; it skips such updates.
        if measure and math.isfinite(found := active.gradient_norm(self.accelerator.scaler)):
            ledger.add(sums, "gradient_norm", active.phase.name, found, 1)
        norm = active.step(self.accelerator)
        if norm is not None and not math.isfinite(norm) and self.accelerator.scaler is None:  # a scaler skips that step
            raise self._not_finite("gradient norm", norm, stage, active)
        for name in active.touches:
            self.nets.moves[name] += 1

    def _not_finite(self, what: str, value: float, stage: Stage, active: ActivePhase) -> NonFiniteLoss:
        return ledger.not_finite(what, value, stage, active, self.position, self.folder.checkpoint)

    def validate(self, stage: Stage) -> tuple[dict[str, Any], float]:
        """The task's scores on the validation part, and the one that chooses the epoch."""
        device = self.accelerator.device
        metric = evaluate(self.model, self.task, self.validation, self.config.evaluated_at_once, device)
        if isinstance(self.task, FitsDecoder):
            self.task.fit_threshold(metric)
        scores = metric.compute()
        score = float(scores[self.task.selection])
        if stage.select is not None:
            found = batches(self.task, self.validation, self.config.inferred_at_once, device)
            with torch.no_grad():
                score = float(stage.select(self.model, found))
        self.nets.modes.clear()
        return scores, score

    def learned(self, stage: Stage, score: float) -> bool:
        """False for a score that a constant predictor has too, from which neither patience nor a plateau counts."""
        return stage.select is not None or self.constant.beaten_by(score)

    def _is_due(self) -> bool:
        """True if it is time for a checkpoint."""
        return time.monotonic() - self._saved_at >= self.checkpoint_seconds

    def _asks(self) -> Sequence[float]:
        """Whether any process is to stop, and whether a checkpoint is due, as of several the last update told."""
        return self._asked if self.accelerator.num_processes > 1 else [self.stop(), self._is_due()]

    def _checkpoint(self) -> None:
        self.check_weights(self.stages[self.position.stage])
        self._save()

    def check_weights(self, stage: Stage) -> None:
        """Raise `NonFiniteLoss` for a weight that is NaN or infinite, which a finite loss's gradient may have made."""
        for active in self.active:
            for parameter in active.parameters:
                if not torch.isfinite(parameter).all():
                    raise self._not_finite("weights", math.nan, stage, active)

    def _save(self, alone: bool = False) -> None:
        own, *others = everyones({"random": random_state(), "sums": self.position.sums}, self.accelerator)
        if self.accelerator.is_main_process:
            self.folder.checkpoint.save(
                {
                    "position": dict(vars(self.position)),
                    "model": dict(self.model.state_dict()),
                    "phases": {active.phase.name: active.state_dict() for active in self.active},
                    "random": own["random"],
                    "others": others,
                    "scaler": self.accelerator.scaler and self.accelerator.scaler.state_dict(),
                },
                alone,
            )
        self._saved_at, self._asked = time.monotonic(), [0.0, 0.0]
