"""A finished run as something that predicts: `sp.load(run).predict([...])`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.experiment import build, check
from spen_plugins.loop import evaluate
from spen_plugins.loop.evaluation import proposals
from spen_plugins.loop.state import check_device
from spen_plugins.registry import Registry
from spen_plugins.run_folder import RunFolder


class Predictor:
    """A run's model and task, ready for new inputs.

    Args:
        folder: the run folder; data files are not needed.
        device: where the model runs.
        registry: where types are looked up.
    """

    def __init__(self, folder: RunFolder, device: str = "cpu", registry: Registry | None = None) -> None:
        registry = registry or Registry()
        experiment = check(folder.config(), str(folder.path / "config.json"), registry)
        task_class, task_config = registry.parse("task", experiment.task, "task", str(folder.path / "config.json"))
        self.task = task_class(task_config)
        try:
            self.task.restore(folder.facts())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{folder.path / 'vocabulary.json'} is damaged: {type(error).__name__}: {error}") from error
        check_device(device)
        with torch.random.fork_rng(devices=[]):  # weights are drawn and overwritten; the caller's noise stays his
            self.model = build(experiment, registry, self.task, folder.assets).model
        folder.load_weights(self.model)
        self.model.to(device).eval()
        self.device = device
        self.batch_size = 4 * int(experiment.trainer.get("batch_size", 32))

    def predict(self, items: Sequence[Any]) -> list[Any]:
        """Predictions for inputs given as Python values; the task's `parse` says which.

        Raises:
            DataError: an item is not what the task wants.
        """
        return self.predict_examples([self.task.parse(item) for item in items])

    def predict_file(self, path: str | Path) -> Iterator[Any]:
        """Predictions for a file in the task's format, in its order."""
        yield from self.predict_examples(self.task.read(str(path)))

    def evaluate_file(self, path: str | Path) -> dict[str, Any]:
        """Scores against the gold in a file, with their protocol.

        Raises:
            DataError: the file has no gold.
        """
        examples = self.task.read(str(path))
        labelled = self._labelled(examples)
        if not labelled:
            raise DataError(path, None, "no gold outputs", "gold outputs to score against (spen predict needs none)")
        scores = evaluate(self.model, self.task, labelled, self.batch_size, self.device).compute()
        split = f"all {len(examples)} examples of {path}"
        if len(labelled) < len(examples):
            split = f"the {len(labelled)} of {len(examples)} examples of {path} that have gold outputs"
        return {"scores": scores, "protocol": {**self.task.protocol(), "split": split}}

    def score_file(self, path: str | Path) -> Iterator[dict[str, float]]:
        """The energies of the gold outputs in a file and of the net's own best ones; low is good.

        Raises:
            ConfigError: the run has no energy.
        """
        energy = self.model.energy
        if energy is None:
            raise ConfigError("this run was trained without an energy; there is nothing to score outputs with")
        examples = self.task.read(str(path))
        found: dict[int, dict[str, float]] = {}
        for proposal, batch, rows in proposals(self.model, self.task, examples, self.batch_size, self.device):
            with torch.no_grad():
                bound = energy.at(batch.x)
                predicted = bound(self.task.decide(proposal))[:, 0].tolist()
                gold = [None] * len(rows) if batch.gold is None else bound(batch.gold)[:, 0].tolist()
            labelled = batch.labelled.tolist()
            for row, ours, theirs, known in zip(rows, predicted, gold, labelled, strict=True):
                found[row] = {"energy": theirs, "predicted_energy": ours} if known else {"predicted_energy": ours}
        yield from (found[row] for row in range(len(examples)))

    def _labelled(self, examples: Sequence[Any]) -> list[Any]:
        """Those that have gold."""
        kept: list[Any] = []
        for start in range(0, len(examples), self.batch_size):
            some = examples[start : start + self.batch_size]
            batch = self.task.collate(some)
            if batch.gold is not None:
                kept += [example for example, known in zip(some, batch.labelled.tolist(), strict=True) if known]
        return kept

    def predict_examples(self, examples: Sequence[Any]) -> list[Any]:
        """Predictions for the task's own examples, in their order."""
        found: dict[int, Any] = {}
        for proposal, batch, rows in proposals(self.model, self.task, examples, self.batch_size, self.device):
            answers = self.task.predictions(proposal, batch, [examples[row] for row in rows])
            found.update(zip(rows, answers, strict=True))
        return [found[row] for row in range(len(examples))]


def load(run: str | Path, device: str = "cpu") -> Predictor:
    """A finished run, ready to predict.

        import spen_plugins as sp
        sp.load("runs/mine").predict([{"words": ["She", "gave", "him", "books"], "predicate": 1}])

    Raises:
        ConfigError: no run folder.
        RunError: its weights are missing or damaged.
        PluginError: a plugin it needs is not installed.
    """
    return Predictor(RunFolder.open(Path(run)), device)
