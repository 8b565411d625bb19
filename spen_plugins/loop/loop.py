"""The training loop: stages of phases, validation, checkpoints, exact resume."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate import Accelerator

from spen_plugins.batch import Batch
from spen_plugins.errors import ConfigError, Interrupted, NonFiniteLoss
from spen_plugins.loop import ledger
from spen_plugins.loop.active import ActivePhase, find_every, make_phases, use_means
from spen_plugins.loop.checkpoint import put_phases, translate_misfits
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.evaluation import Constant, collate_rows, probe, validate
from spen_plugins.loop.ledger import Position
from spen_plugins.loop.mistakes import explain_non_finite
from spen_plugins.loop.order import plan_epochs
from spen_plugins.loop.processes import Requests, broadcast_weights, gather, restore_own, split_rows, wait_for_all
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import NO_CALLBACKS, Callbacks, Recipe
from spen_plugins.loop.torch_modes import attention_kernels, flush_denormals, random_state
from spen_plugins.trainer import Stage, Update

if TYPE_CHECKING:
    from spen_plugins.runs.folder.folder import RunFolder


class Loop:
    """Runs a trainer's stages over a task."""

    def __init__(
        self,
        recipe: Recipe,
        folder: RunFolder,
        accelerator: Accelerator,
        reporter: Reporter,
        callbacks: Callbacks = NO_CALLBACKS,
    ) -> None:
        self.model, self.task, self.stages, self.config = recipe.model, recipe.task, recipe.stages, recipe.config
        self.seed, self.owned = recipe.seed, recipe.owned
        self.folder, self.accelerator, self.reporter, self.callbacks = folder, accelerator, reporter, callbacks
        self.position = Position()
        self.nets, self.constant = NetStates(self.model), Constant(self.task, self.config.evaluated_at_once)
        self.requests = Requests(callbacks, accelerator)
        has_sums = getattr(self.model.energy_loss, "running", None) is not None
        for stage in self.stages:
            names = [phase.name for phase in stage.phases if not phase.additive or has_sums]
            if names and (self.config.accumulate > 1 or accelerator.num_processes > 1):
                raise ConfigError(
                    f"stage {stage.name!r}: the gradient of phase {names[0]!r} can't be accumulated over "
                    "parts of a batch; use accumulate=1 and one process"
                )

    def run(self, resume: bool = False) -> None:
        """Train all stages; the model then has the last stage's best weights."""
        checkpoint = self.folder.checkpoint
        state = checkpoint.load(self.reporter.say) if resume and checkpoint.exists() else None
        if state is not None:
            self.load_state_dict(state)
            with translate_misfits(checkpoint.folder):
                restore_own(state, self.position, self.seed, self.accelerator, self.reporter.say)
        if self.accelerator.is_main_process:
            self.folder.truncate_history(self.position.history_lines)
        with flush_denormals():
            while self.position.stage < len(self.stages):
                with attention_kernels(stage := self.stages[self.position.stage]):
                    self._run_stage(stage, state)
                state = None

    def _run_stage(self, stage: Stage, state: dict[str, Any] | None) -> None:
        position = self.position
        self.begin(stage, state)
        self.reporter.stage(stage, position.epoch, self.epochs)
        while position.epoch < stage.epochs and not (
            position.is_patience_over(stage) and self.has_learned(stage, position.best)
        ):
            self.run_epoch(stage)
            position.next_epoch()
            if self.requests.agreed.checkpoint:
                self._save()
        wait_for_all(self.accelerator)
        if position.best > -math.inf:
            self.folder.load_weights(self.model)
        next_stages = self.stages[position.stage + 1 : position.stage + 2]
        self.position = position.next_stage(any(stage.goes_on for stage in next_stages))
        self.active = []
        # The next stage overwrites the weights; this stage's saved state would take those for its own best ones.
        self._save(removes_previous=True)

    def begin(self, stage: Stage, state: dict[str, Any] | None = None) -> None:
        """Create the stage's phases, and restore their state from a checkpoint."""
        self.train = self.task.part("train") if stage.examples is None else stage.examples
        self.epochs = plan_epochs(self.task, self.train, self.config, self.seed, self.position.stage)
        if not self.position.started and stage.start is not None:
            stage.start(self.model)
            broadcast_weights(self.model, self.accelerator)
        self.position.started = True
        if stage.set is not None:
            stage.set(self.model)
        self.active = make_phases(self.model, stage, self.owned[stage.name], self.accelerator, self.epochs.batches)
        if state is not None:
            put_phases(state, self.active, self.accelerator.scaler, self.folder.checkpoint.folder)

    def run_epoch(self, stage: Stage) -> None:
        """Train from the current batch to the epoch's end, validate, write the history."""
        position = self.position
        order = self.epochs.order(position.epoch)
        start = time.perf_counter() - position.seconds
        self.reporter.epoch(position.epoch, len(order), position.batch)
        for number in range(position.batch, len(order)):
            self.run_batch(stage, order[number])
            position.batch, position.seconds = number + 1, time.perf_counter() - start
            self.reporter.batch(position.batch, lambda: ledger.means(position.sums))
            stop, checkpoint = self.requests.read()
            if stop or (checkpoint and number + 1 < len(order)):
                self._save()
            if stop:
                raise Interrupted(f"stopped by the user; everything is saved in {self.folder.path}")
        with use_means(self.active):
            scores, score = self.validate(stage)
            results = gather((score, position.sums, self.requests.is_due()), self.accelerator)
            score, position.sums = results[0][0], ledger.merge_sums([sums for _, sums, _ in results])
            self.requests.agree(stop=False, checkpoint=any(is_due for *_, is_due in results))
            is_better = score > position.best
            self.check_weights()
            if is_better:
                position.best, position.best_epoch = score, position.epoch
                if self.accelerator.is_main_process:
                    self.folder.save_weights(self.model)
        if self.has_learned(stage, score):
            for active in self.active:
                active.epoch_ends(score)
        probe_scores = probe(self.model, self.task, self.config, self.accelerator.device, position.epoch, scores)
        entries = {"validation": scores, **probe_scores}
        record = {**ledger.epoch_record(stage, position, self.active, entries, score), "best": is_better}
        position.history_lines += 1
        if self.accelerator.is_main_process:
            self.folder.append_history(record, position.seconds)
        self.reporter.epoch_done(record, position.seconds, position.best)
        self.callbacks.after_epoch(record)

    def run_batch(self, stage: Stage, rows: np.ndarray) -> None:
        """Train on one batch: all phases, in all rounds."""
        contexts = [LiveContext(self.nets, batch) for batch in self._make_micro_batches(stage, rows)]
        turn = self.position.epoch * self.epochs.batches + self.position.batch + 1
        for _ in range(stage.rounds):
            for active in self.active:
                if turn % find_every(active.phase):
                    continue
                self.nets.phase_begins(active)
                for _ in range(active.player.steps):
                    self._update(stage, active, contexts, len(rows))

    def _make_micro_batches(self, stage: Stage, rows: np.ndarray) -> list[Batch]:
        """This process's share of the batch, in `accumulate` parts, on the device."""
        parts = split_rows(rows, self.accelerator, self.config.accumulate)
        position = self.position
        place = (self.seed, position.stage, self.epochs.find_pass(position.epoch, position.batch))
        batches = (collate_rows(self.task, stage, self.train, part, place) for part in parts)
        return [batch.to(self.accelerator.device) for batch in batches]

    def _update(self, stage: Stage, active: ActivePhase, contexts: Sequence[LiveContext], examples: int) -> None:
        period, sums = self.config.gradient_norms_every, self.position.sums
        is_measured = bool(period) and active.updates % period == 0
        owned = {other.phase.name: other.parameters for other in self.active}
        for context in contexts:
            with self.accelerator.autocast():
                terms = active.phase.loss(context)
                ledger.check_terms(terms, len(context.batch), active.phase.name)
                loss = sum(term.sum() for term in terms.values()) / examples
            losses = ledger.totals(terms)
            for name, value in losses.items():
                if not math.isfinite(value):
                    raise self._make_error(f"loss {name!r}", value, active, context.batch)
                ledger.add(sums, "loss", f"{active.phase.name}.{name}", value, len(context.batch))
            if is_measured and len(terms) > 1:
                ledger.add_norms(sums, active.phase.name, ledger.gradient_norms(terms, active.parameters, examples))
            if is_measured:
                ledger.add_measures(sums, active, context, self.accelerator)
            run_backward = self.accelerator.backward
            update = Update(context, stage, active.phase, loss, active.parameters, owned, examples, run_backward)
            active.phase.gradient(update)
        if self.accelerator.num_processes > 1:
            self.requests.agree(*active.gradient_sum.add_up(self.requests.poll()))
        # A scaler's first gradients are often infinite; it skips such updates.
        if is_measured and math.isfinite(gradient_norm := active.gradient_norm(self.accelerator.scaler)):
            ledger.add(sums, "gradient_norm", active.phase.name, gradient_norm, 1)
        norm = active.step(self.accelerator)
        if norm is not None and not math.isfinite(norm) and self.accelerator.scaler is None:
            raise self._make_error("gradient norm", norm, active)
        for name in active.touches:
            self.nets.moves[name] += 1

    def _make_error(self, name: str, value: float, active: ActivePhase, batch: Batch | None = None) -> NonFiniteLoss:
        """The error for a NaN or infinite value, in the loss of `batch` if given, with its place and remedies."""
        position, saved = self.position, self.folder.checkpoint
        note = f"The last good checkpoint is in {saved.folder}" if saved.exists() else "There is no checkpoint yet"
        return NonFiniteLoss(
            f"the {name} of phase {active.phase.name!r} is {value} at stage {self.stages[position.stage].name!r}, "
            f"epoch {position.epoch + 1}, batch {position.batch}, update {active.updates}. {note}; "
            f"{explain_non_finite(self.nets, active, batch, self.accelerator, self.config)}"
        )

    def validate(self, stage: Stage) -> tuple[dict[str, Any], float]:
        """The task's scores on the validation part, and the score that chooses the epoch."""
        self.nets.modes.clear()  # evaluation changes them
        return validate(self.model, self.task, self.config, stage, self.accelerator.device)

    def has_learned(self, stage: Stage, score: float) -> bool:
        """False if a constant predictor scores as well: neither patience nor a plateau counts from such a score."""
        return stage.select is not None or score > self.constant.validation

    def check_weights(self) -> None:
        """Raise `NonFiniteLoss` for a NaN or infinite weight, to which the gradient of a finite loss may lead."""
        for active in self.active:
            for parameter in active.parameters:
                if not torch.isfinite(parameter).all():
                    raise self._make_error("weights", math.nan, active)

    def state_dict(self) -> dict[str, Any]:
        """Position, weights and optimisers, for a checkpoint."""
        return {
            "position": dict(vars(self.position)),
            "model": dict(self.model.state_dict()),
            "phases": {active.phase.name: active.state_dict() for active in self.active},
            "running": getattr(self.model.energy_loss, "running", None),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore position and weights; `begin` restores the optimisers."""
        with translate_misfits(self.folder.checkpoint.folder):
            self.position = Position(**state["position"])
            self.model.load_state_dict(state["model"])
        if state.get("running") is not None:
            self.model.energy_loss.running = state["running"]

    def _save(self, removes_previous: bool = False) -> None:
        self.check_weights()
        main_state, *other_states = gather({"random": random_state(), "sums": self.position.sums}, self.accelerator)
        if self.accelerator.is_main_process:
            scaler = self.accelerator.scaler and self.accelerator.scaler.state_dict()
            state = {**self.state_dict(), "random": main_state["random"], "others": other_states, "scaler": scaler}
            self.folder.checkpoint.save(state, removes_previous)
        self.requests.clear()
