"""Several tasks' nets trained together, on turns of their batches."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np
from accelerate import Accelerator

from spen_plugins.errors import Interrupted
from spen_plugins.loop import ledger
from spen_plugins.loop.checkpoint import Checkpoint, translate_misfits
from spen_plugins.loop.ledger import Position
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.processes import Requests
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import Callbacks
from spen_plugins.loop.torch_modes import flush_denormals, random_state, set_random_state


class Together:
    """Runs the loops of several tasks together: each batch belongs to one task, and each task updates its own net.

    An epoch is one epoch of each task, with the turns of their batches mixed, so that a task has turns in proportion to
    its batches. Weights that nets share are updated by all tasks, each with its own optimiser. The best epoch has the
    highest mean of the tasks' validation scores. Each loop has one stage with one phase. Only the callbacks
    `checkpoint_seconds` and `stop` are used.
    """

    def __init__(
        self,
        loops: Mapping[str, Loop],
        seed: int,
        checkpoint: Checkpoint,
        accelerator: Accelerator,
        reporter: Reporter,
        callbacks: Callbacks,
    ) -> None:
        self.loops, self.seed, self.checkpoint = dict(loops), seed, checkpoint
        self.accelerator, self.reporter = accelerator, reporter
        self.position = Position()
        self.requests = Requests(callbacks, accelerator)

    def run(self, resume: bool = False) -> None:
        """Train; the models then have the weights of the best epoch."""
        state = self.checkpoint.load(self.reporter.say) if resume and self.checkpoint.exists() else None
        for name, loop in self.loops.items():
            part = None if state is None else state["parts"][name]
            if part is not None:
                loop.load_state_dict(part)
            loop.folder.truncate_history(loop.position.history_lines)
            loop.begin(loop.stages[0], part and {**part, "scaler": state["scaler"]})
        if state is not None:
            with translate_misfits(self.checkpoint.folder):
                self.position = Position(**state["position"])
                set_random_state(state["random"])
        position, stage = self.position, next(iter(self.loops.values())).stages[0]
        batches = {name: loop.epochs.batches for name, loop in self.loops.items()}
        listing = " + ".join(f"{count} ({name})" for name, count in batches.items())
        self.reporter.stage(stage, position.epoch, f"{sum(batches.values())} batches: {listing}")
        with flush_denormals():
            while position.epoch < stage.epochs and not (position.is_patience_over(stage) and self._has_learned()):
                self.run_epoch()
                position.next_epoch()
                for loop in self.loops.values():
                    loop.position.next_epoch()
                self._save()
        if position.best > -math.inf:
            for loop in self.loops.values():
                loop.folder.load_weights(loop.model)

    def turns(self, epoch: int) -> list[str]:
        """The part that each batch of an epoch belongs to: a pure function of seed and epoch."""
        names = list(self.loops)
        counts = [self.loops[name].epochs.batches for name in names]
        order = np.random.default_rng([self.seed, epoch]).permutation(np.repeat(np.arange(len(names)), counts))
        return [names[number] for number in order]

    def run_epoch(self) -> None:
        """Train from the current batch to the epoch's end, validate all parts, write their histories."""
        position, turns = self.position, self.turns(self.position.epoch)
        orders = {name: loop.epochs.order(position.epoch) for name, loop in self.loops.items()}
        start = time.perf_counter() - position.seconds
        self.reporter.epoch(position.epoch, len(turns), position.batch)
        for number in range(position.batch, len(turns)):
            loop = self.loops[turns[number]]
            loop.run_batch(loop.stages[0], orders[turns[number]][loop.position.batch])
            loop.position.batch += 1
            position.batch, position.seconds = number + 1, time.perf_counter() - start
            self.reporter.batch(position.batch, self._average_losses)
            stop, is_due = self.requests.read()
            if stop or (is_due and number + 1 < len(turns)):
                self._save()
            if stop:
                raise Interrupted(f"stopped by the user; everything is saved in {self.checkpoint.folder.parent}")
        self._validate()

    def _validate(self) -> None:
        """Score all parts; keep their weights if the mean is the best so far."""
        position = self.position
        results = {name: loop.validate(loop.stages[0]) for name, loop in self.loops.items()}
        self._check_weights()
        mean = sum(score for _, score in results.values()) / len(results)
        is_better = mean > position.best
        if is_better:
            position.best, position.best_epoch = mean, position.epoch
        for name, loop in self.loops.items():
            scores, score = results[name]
            stage, part_position = loop.stages[0], loop.position
            if is_better:
                part_position.best, part_position.best_epoch = score, part_position.epoch
                loop.folder.save_weights(loop.model)
            if loop.has_learned(stage, score):
                for active in loop.active:
                    active.epoch_ends(score)
            record = ledger.epoch_record(stage, part_position, loop.active, {"validation": scores}, score)
            part_position.history_lines += 1
            loop.folder.append_history({**record, "best": is_better}, position.seconds)
        listing = ", ".join(f"{name} {score:.4f}" for name, (_, score) in results.items())
        record = {
            "epoch": position.epoch,
            "losses": self._average_losses(),
            "validation": {},
            "score": mean,
            "best": is_better,
        }
        self.reporter.epoch_done(record, position.seconds, position.best)
        self.reporter.say(f"           {listing}")

    def _has_learned(self) -> bool:
        """False while a part's constant predictor is as good as its best epoch: patience doesn't count then."""
        return all(loop.has_learned(loop.stages[0], loop.position.best) for loop in self.loops.values())

    def _average_losses(self) -> dict[str, float]:
        """The mean loss of each part in this epoch."""
        means = {name: ledger.means(loop.position.sums) for name, loop in self.loops.items()}
        return {name: sum(losses.values()) for name, losses in means.items() if losses}

    def _check_weights(self) -> None:
        """Raise `NonFiniteLoss`, before any part is saved, if a part has weights that are not finite."""
        for loop in self.loops.values():
            loop.check_weights()

    def _save(self) -> None:
        """Save the state of all parts; tensors that they share are stored once."""
        self._check_weights()
        scaler = self.accelerator.scaler
        parts = {name: loop.state_dict() for name, loop in self.loops.items()}
        self.checkpoint.save(
            {
                "position": dict(vars(self.position)),
                "parts": parts,
                "random": random_state(),
                "scaler": scaler and scaler.state_dict(),
            }
        )
        self.requests.clear()
