"""A finished run as something that predicts: `sp.load(run).predict([...])`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from spen_plugins.builtin.nets.gbi import Gbi
from spen_plugins.config.experiment import Experiment, build, check, make_net, make_task
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.loop import evaluate
from spen_plugins.loop.evaluation import proposals
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import check_device
from spen_plugins.runs.folder import RunFolder
from spen_plugins.scores.calibration import Decisions, calibrate


class Predictor:
    """A run's model and task, ready for new inputs.

    Args:
        folder: the run folder; data files are not needed.
        device: where the model runs.
        registry: where types are looked up.
        refine: an inference net that stands on the run's own and looks for outputs of lower energy: "rerank", "gbi", or
            a table such as `{"type": "rerank", "k": 8}`.
    """

    def __init__(
        self,
        folder: RunFolder,
        device: str = "cpu",
        registry: Registry | None = None,
        refine: str | Mapping[str, Any] | None = None,
    ) -> None:
        registry = registry or Registry()
        self.folder = folder
        self._config, self._records = folder.config(), folder.records()
        experiment = check(folder.config(), str(folder.path / "config.json"), registry)
        self._make_task = partial(make_task, experiment, registry)
        self.task = self._make_task()
        try:
            self.task.restore(folder.facts())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{folder.path / 'vocabulary.json'} is damaged: {type(error).__name__}: {error}") from error
        self.task.temperature = (folder.calibration() or {}).get("temperature", 1.0)
        check_device(device)
        with torch.random.fork_rng(devices=[]):  # weights are drawn and overwritten; the caller's noise stays his
            self.model = build(experiment, registry, self.task, folder.assets).model
        folder.load_weights(self.model)
        self.refined: dict[str, Any] = {}
        self._own_net = self.model.inference_net
        if refine is not None:
            self.model.inference_net = self._refined(experiment, registry, refine, folder.path)
        self.model.to(device).eval()
        self.device = device
        self.batch_size = 4 * int(experiment.trainer.get("batch_size", 32))

    def _refined(
        self, experiment: Experiment, registry: Registry, refine: str | Mapping[str, Any], run: Path
    ) -> InferenceNet:
        """The inference net that `refine` names, standing on the run's."""
        spec = {"type": refine} if isinstance(refine, str) else refine
        cls, config = registry.parse("inference_net", spec, "refine", "--refine")
        if "net" not in cls.parts or not cls.uses_energy:
            raise ConfigError(f"--refine: {spec['type']!r} starts from no other inference net; 'rerank' and 'gbi' do")
        if "net" in spec:
            raise ConfigError("--refine: leave 'net' out; it is the run's own inference net")
        if self.model.energy is None:
            raise ConfigError(f"--refine: {run} was trained without an energy; there is nothing to minimise")
        self.refined = {"refined": {"type": spec["type"], **config.model_dump(mode="json", exclude_none=True)}}
        own = self.model.inference_net
        return make_net(experiment, registry, "inference_net", spec, "refine", self.task, net=own)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The run's config, evaluated and complete."""
        return self._config

    def save(self, path: str | Path, *, energy: bool = True, half: bool = False) -> None:
        """A small folder that `load` takes: config, facts, scores and weights, without history and training state.

        Args:
            path: an empty folder, or one to be made.
            energy: whether the energy is kept, or only what predicts.
            half: whether weights are written as 16-bit floats, which halves the folder and rounds the weights; a tensor
                with a number beyond 65504 stays as it is.

        Raises:
            ConfigError: there is something in the folder, it can't be made, or the run predicts with its energy and was
                to lose it.
            RunError: the disk says no.
        """
        config, nets = self._config, {"inference_net": self._own_net}
        if energy:
            kept = {"energy": self.model.energy, "energy_loss": self.model.energy_loss}
            nets |= {name: net for name, net in kept.items() if net is not None}
        elif self._own_net.uses_energy:
            raise ConfigError("energy=False: this run predicts with its energy; keep it")
        else:
            config = {key: config[key] for key in ("seed", "task", "features", "inference_net") if key in config}
            size = self._config["trainer"].get("batch_size", 32)
            config["trainer"] = {"type": "cross_entropy", "batch_size": size}
        folder = RunFolder.create(Path(path), config, "an empty folder, or a name that is free")
        for name, value in {**self._records, "vocabulary.json": self.task.facts()}.items():
            folder.write(name, value)
        together = torch.nn.ModuleDict(nets)
        try:
            for part in together.modules():
                if isinstance(part, FeatureNetwork):
                    part.save_assets(folder.assets)
        except OSError as error:
            raise RunError(f"{folder.assets} can't be written: {error.strerror or error}") from error
        folder.save_weights(together, torch.float16 if half else None)

    def trajectory_file(self, path: str | Path) -> Iterator[dict[str, Any]]:
        """After each step of the run's gradient-based inference, the start first: the mean energy, the scores, and of
        them the selection score.

        Raises:
            ConfigError: the run predicts without gradient-based inference (or has no energy at all), and no `refine`
                was asked for.
            DataError: the file has no gold.
        """
        if self.model.energy is None:
            raise ConfigError("there is no trajectory: this run was trained without an energy")
        if not isinstance(self.model.inference_net, Gbi):
            raise ConfigError("there is no trajectory: the run predicts in one pass; ask for --refine gbi")
        labelled = self._labelled(self.task.read(str(path)))
        if not labelled:
            raise DataError(path, None, "no gold outputs", "gold outputs to score against")
        self.model.inference_net.keep_path = True
        metrics, energies = [], []
        for proposal, batch, _ in proposals(self.model, self.task, labelled, self.batch_size, self.device):
            with torch.no_grad():
                bound = self.model.energy.at(batch.x)
                for step, y in enumerate(proposal.iterates):
                    if step == len(metrics):
                        metrics.append(self.task.metric())
                        energies.append(0.0)
                    at = self.task.space.independent(self.task.space.logits(y, batch.x.mask), batch.x.mask)
                    metrics[step].update(at, batch)
                    energies[step] += float(bound(y).sum())
        self.model.inference_net.keep_path = False
        for step, (metric, energy) in enumerate(zip(metrics, energies, strict=True)):
            scores = metric.compute()
            chosen = float(scores[self.task.selection])
            yield {"step": step, "energy": energy / len(labelled), "score": chosen, "scores": scores}

    def predict(self, items: Sequence[Any], energy: bool = False) -> list[Any]:
        """Predictions for inputs given as Python values; the task's `parse` says which.

        Args:
            items: the inputs.
            energy: whether each prediction has its `"energy"` too, as in `predict_examples`.

        Raises:
            DataError: an item is not what the task wants; with its number, from 0.
            ConfigError: energies are asked for and the run has none.
        """
        return self.predict_examples([self._parsed(number, item) for number, item in enumerate(items)], energy)

    def _parsed(self, number: int, item: Any) -> Any:
        try:
            return self.task.parse(item)
        except DataError as error:
            raise DataError(f"{error.path} {number}", error.line, error.found, error.expected) from None

    def predict_file(self, path: str | Path, energy: bool = False) -> Iterator[Any]:
        """Predictions for a file in the task's format, in its order; `energy` as in `predict_examples`."""
        yield from self.predict_examples(self.task.read(str(path)), energy)

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
        return {"scores": scores, "protocol": {**self.task.protocol(), "split": split, **self.refined}}

    def calibrate(self, path: str | Path | None = None) -> dict[str, Any]:
        """Fit the temperature of the probabilities reported, and write `calibration.json` into the run's folder.

        Args:
            path: a file with gold, of the domain that predictions are for; None: the run's own validation data, found
                where its config says.

        Returns:
            `temperature`, `decisions` (what was counted), the `file`, if one was given, and in `validation`, whatever
            the data are, the expected calibration error with the temperature (`ece`) and without (`ece_uncalibrated`)
            and how many `decisions` it is over.

        Raises:
            ConfigError: the run's task has no decisions to calibrate, or the predictor is one with `refine`.
            DataError: the file has no gold.
            RunError: the run's data are not what it was trained on.
        """
        if self.refined:
            raise ConfigError("a run is calibrated without refine; load it anew")
        examples = self._validation() if path is None else self.task.read(str(path))
        labelled = self._labelled(examples)
        if not labelled:
            raise DataError(path, None, "no gold outputs", "gold outputs to calibrate probabilities against")
        decisions: list[Decisions] = []
        evaluate(self.model, self.task, labelled, self.batch_size, self.device, decisions)
        found = calibrate({"validation": decisions})
        if found is None:
            kind = self._config["task"]["type"]
            raise ConfigError(f"task {kind!r} reports no probabilities; there is nothing to calibrate")
        found = found if path is None else {"file": str(path), **found}
        self.folder.write("calibration.json", found)
        self._records["calibration.json"] = found
        self.task.temperature = found["temperature"]
        return found

    def _validation(self) -> Sequence[Any]:
        """The run's validation part, read again."""
        task = self._make_task()
        task.load()
        ours, theirs = (json.loads(json.dumps(facts)) for facts in (self.task.facts(), task.facts()))
        changed = [name for name in ours if name != "threshold" and ours[name] != theirs.get(name)]
        if changed:
            raise RunError(
                f"the data files of {self.folder.path} changed since it was trained: they have other "
                f"{', '.join(changed)}. Give a file with gold in their place"
            )
        return task.part("validation")

    def score_file(self, path: str | Path) -> Iterator[dict[str, float]]:
        """The energies of the gold outputs in a file and of the net's own best ones; low is good.

        Raises:
            ConfigError: the run has no energy.
        """
        energy = self._energy()
        examples = self.task.read(str(path))
        found: dict[int, dict[str, float]] = {}
        for proposal, batch, rows in proposals(self.model, self.task, examples, self.batch_size, self.device):
            with torch.no_grad():
                bound = energy.at(batch.x)
                predicted = bound(self.task.decode(proposal))[:, 0].tolist()
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

    def predict_examples(self, examples: Sequence[Any], energy: bool = False) -> list[Any]:
        """Predictions for the task's own examples, in their order.

        Args:
            examples: from the task's `read`, `parse` or `part`.
            energy: whether each prediction, which must be a table, has besides `"energy"`: E(x, y) of the output it
                reports; low is good.

        Raises:
            ConfigError: energies are asked for, and the run has none or the task's predictions are no tables.
        """
        judge = self._energy() if energy else None
        found: dict[int, Any] = {}
        for proposal, batch, rows in proposals(self.model, self.task, examples, self.batch_size, self.device):
            answers = self.task.predictions(proposal, batch, [examples[row] for row in rows])
            if judge is not None:
                with torch.no_grad():
                    energies = judge.at(batch.x)(self.task.decode(proposal))[:, 0].tolist()
                answers = [_with_energy(answer, e) for answer, e in zip(answers, energies, strict=True)]
            found.update(zip(rows, answers, strict=True))
        return [found[row] for row in range(len(examples))]

    def _energy(self) -> Energy:
        if self.model.energy is None:
            raise ConfigError("this run has no energy to score outputs with: it was trained, or saved, without one")
        return self.model.energy


def _with_energy(answer: Any, energy: float) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        raise ConfigError(
            f"this run's task predicts a {type(answer).__name__}, and only a table has room for its energy"
        )
    return {**answer, "energy": round(energy, 6)}


def load(run: str | Path, device: str = "cpu", refine: str | Mapping[str, Any] | None = None) -> Predictor:
    """A finished run, ready to predict.

        import spen_plugins as sp
        sp.load("runs/mine").predict([{"words": ["She", "gave", "him", "books"], "predicate": 1}])

    Raises:
        ConfigError: no run folder.
        RunError: its weights are missing or damaged.
        PluginError: a plugin it needs is not installed.
    """
    return Predictor(RunFolder.open(Path(run)), device, refine=refine)
