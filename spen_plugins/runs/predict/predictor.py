"""Prediction with a finished run: `sp.load(run).predict([...])`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from spen_plugins.batch import Batch
from spen_plugins.config.experiment import build, make_task, parse_experiment
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.loop.checkpoint import translate_damage
from spen_plugins.loop.evaluation import proposals
from spen_plugins.loop.torch_modes import use_float32
from spen_plugins.nn import Lstm
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import check_device
from spen_plugins.runs.folder import exporting
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict import evaluating, refining
from spen_plugins.runs.predict.precision import Precision, set_precision
from spen_plugins.settings.fields import validate
from spen_plugins.spaces import Proposal
from spen_plugins.task_parts import Calibrated, NamesColumns, parse_all, read_inputs


class Predictor:
    """A run's model and task, ready for new inputs.

    Args:
        folder: the run folder; data files are not needed.
        device: device of the model.
        registry: registry of the types.
        refine: an inference net on top of the run's own that decides by the energy: "rerank", "reweight", "gbi",
            or a table such as `{"type": "rerank", "k": 8}`.
        precision: "no": float32; "int8": the net's pretrained encoders multiply in int8, and LSTMs in bfloat16 if the
            processor supports it, faster on processors with AVX512-VNNI; "bf16": nets multiply in bfloat16, faster on
            hardware that supports it (AMX, AVX512-BF16, GPUs) and slower elsewhere. Decoding stays in float32, as do
            the energies of `predict(energy=True)` unless they share the encoder.
    """

    def __init__(
        self,
        folder: RunFolder,
        device: str = "cpu",
        registry: Registry | None = None,
        refine: str | Mapping[str, Any] | None = None,
        precision: Precision = "no",
    ) -> None:
        registry = registry or Registry()
        self.folder, self.records = folder, folder.records()
        self.experiment = parse_experiment(folder.config(), str(folder.path / "config.json"), registry)
        self.task = make_task(self.experiment)
        with translate_damage(f"{folder.path / 'vocabulary.json'} is damaged"):
            self.task.restore(folder.facts())
        if isinstance(self.task, Calibrated):
            self.task.temperature = (folder.calibration() or {}).get("temperature", 1.0)
        check_device(device)
        # Keep the caller's random state; the random weights are overwritten below.
        message = f"the nets of {folder.path} can't be built from its config.json and vocabulary.json"
        with torch.random.fork_rng(devices=[]), use_float32(), translate_damage(message):
            self.model = build(self.experiment, self.task, folder.assets).model
        folder.load_weights(self.model)
        self.refined: dict[str, Any] = {}
        self.own_net = self.model.inference_net
        if refine is not None:
            refining.put_on_top(self, registry, {"type": refine} if isinstance(refine, str) else refine)
        self.model.to(device).eval()
        self.precision = precision
        self._load_arguments = (folder.path.absolute(), device, refine, precision)
        set_precision(self.model, precision, folder.path)
        self.device = device
        self.batch_size = self.experiment.trainer.config.evaluated_at_once
        if self.refined and self.model.inference_net.choices():
            self.refined["refined"] |= refining.choose_on_validation(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes a pickle or a copy load the run's folder again."""
        return load, self._load_arguments

    @property
    def energy(self) -> Energy:
        """The run's energy.

        Raises:
            ConfigError: the run has none.
        """
        if self.model.energy is None:
            is_mean = "mean" in self.folder.environment()
            reason = "name one of its runs" if is_mean else "it was trained, or saved, without one"
            raise ConfigError(f"{self.folder.path} has no energy to score outputs with: {reason}")
        return self.model.energy

    @cached_property
    def _switched_modules(self) -> list[nn.Module]:
        """Modules that `eval` switches; an `Lstm` stays in training mode and is not among them."""
        return [module for module in self.model.modules() if not isinstance(module, Lstm)]

    def name_columns(self, keys: Mapping[str, Any]) -> None:
        """Read files by other columns than the run's own, `{"text": "body"}`; the run's folder is not changed.

        Raises:
            ConfigError: the run's task has no such setting, or the value is invalid.
        """
        config, kind = self.task.config, self.experiment.task.type
        known_keys = self.task.column_keys if isinstance(self.task, NamesColumns) else ()
        table = config.model_dump()
        for key, value in keys.items():
            if key not in known_keys:
                description = (
                    f"take {', '.join(f'{name}=' for name in known_keys)}" if known_keys else "have no keys for columns"
                )
                raise ConfigError(f"{key}=: {self.folder.path} is a run of task {kind!r}, whose files {description}")
            name, _, entry = key.partition(".")
            table[name] = {**table[name], entry: value} if entry else value
        self.task.config = type(self.task)(validate(type(config), table, "task", "the command line")).config  # checked

    def proposals(self, examples: Sequence[Any]) -> Iterator[tuple[Proposal, Batch, list[int]]]:
        """The model's proposals with their batches and the examples' rows, longest examples first.

        Raises:
            RunError: a score of an output is NaN, because weights or inputs are too large.
        """
        evaluates = not any(module.training for module in self._switched_modules)
        batches = proposals(self.model, self.task, examples, self.batch_size, self.device, evaluates)
        for proposal, batch, rows in batches:
            if proposal.logits.isnan().any():
                raise RunError(
                    f"found NaN among the scores of the net of {self.folder.path}: weights or inputs are too large"
                )
            yield proposal, batch, rows

    @contextmanager
    def keep_casts(self) -> Iterator[None]:
        """Inside the context, weights that multiply in bfloat16 are cast once, not once per batch."""
        torch.autocast_increment_nesting()
        try:
            yield
        finally:
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()

    def energies(self, proposal: Proposal, batch: Batch) -> list[float]:
        """E(x, y) of each example's decoded output; low is good.

        Raises:
            ConfigError: the run has no energy.
        """
        with torch.no_grad():
            return self.energy.at(batch.x)(self.task.decode(proposal, batch.x))[:, 0].tolist()

    def predict(self, items: Any, energy: bool = False) -> list[Any]:
        """Predictions for inputs given as Python values; see the task's `parse` for their form.

        Args:
            items: the inputs. A task of vectors also accepts a matrix with one row per input: a NumPy array or a matrix
                of scipy.sparse, `(n, features)`, or a DataFrame with the features' names. A task of texts also accepts
                strings, and the name of its own text column in place of "text"; a task of tags also lists of words, and
                strings, which are split only at spaces.
            energy: if true, each prediction has its `"energy"`, as in `predict_examples`.

        Raises:
            DataError: an item has the wrong form; the message has its index, from 0.
            ConfigError: `energy` is true and the run has none.
        """
        return self.predict_examples(parse_all(self.task, items), energy)

    def predict_file(self, path: str | Path, energy: bool = False) -> Iterator[Any]:
        """Predictions for a file in the task's format, in its order; `energy` as in `predict_examples`."""
        yield from self.predict_examples(read_inputs(self.task, str(path)), energy)

    def predict_examples(self, examples: Sequence[Any], energy: bool = False) -> list[Any]:
        """Predictions for the task's own examples, in their order.

        Args:
            examples: from the task's `read`, `parse` or `part`.
            energy: if true, each prediction, which must be a table, also has `"energy"`: E(x, y) of its reported
                output; low is good.

        Raises:
            ConfigError: `energy` is true, and the run has no energy or the task's predictions are not tables.
        """
        if energy:
            _ = self.energy  # raises an error before anything is predicted
        predictions: dict[int, Any] = {}
        with self.keep_casts():
            for proposal, batch, rows in self.proposals(examples):
                batch_predictions = self.task.predictions(proposal, batch, [examples[row] for row in rows])
                if energy:
                    energies = self.energies(proposal, batch)
                    batch_predictions = [
                        _add_energy(prediction, e) for prediction, e in zip(batch_predictions, energies, strict=True)
                    ]
                predictions.update(zip(rows, batch_predictions, strict=True))
        return [predictions[row] for row in range(len(examples))]

    def evaluate_file(self, path: str | Path | None = None, part: str | None = None) -> dict[str, Any]:
        """Scores against the gold in a file, or in a part of the run's data; see `evaluating.evaluate_file`."""
        return evaluating.evaluate_file(self, path, part)

    def trajectory_file(self, path: str | Path | None = None, part: str | None = None) -> Iterator[dict[str, Any]]:
        """Energy and scores after each step of inference; see `evaluating.trajectory_file`."""
        return evaluating.trajectory_file(self, path, part)

    def score_file(self, path: str | Path) -> Iterator[dict[str, float]]:
        """Energies of the gold outputs in a file and of the predicted ones; see `evaluating.score_file`."""
        return evaluating.score_file(self, path)

    def calibrate(self, path: str | Path | None = None) -> dict[str, Any]:
        """Fit the temperature of the reported probabilities; see `evaluating.calibrate`."""
        return evaluating.calibrate(self, path)

    def save(self, path: str | Path, *, energy: bool = True, half: bool = False, apart: bool = False) -> None:
        """Write a small folder for `load`; see `exporting.save`."""
        exporting.save(self, path, energy, half, apart)


def _add_energy(prediction: Any, energy: float) -> dict[str, Any]:
    if not isinstance(prediction, Mapping):
        raise ConfigError(f"this run predicts a {type(prediction).__name__}, but only a table can hold its energy")
    return {**prediction, "energy": round(energy, 6)}


def load(
    run: str | Path, device: str = "cpu", refine: str | Mapping[str, Any] | None = None, precision: Precision = "no"
) -> Predictor:
    """Loads a run for prediction, with a warning if it isn't trained to the end; arguments as for `Predictor`. For a
    folder of several methods and seeds, loads the mean of the runs that validation chose; with `refine` the best run,
    because a mean has no energy.

        import spen_plugins as sp
        sp.load("runs/mine").predict([{"words": ["She", "gave", "him", "books"], "predicate": 1}])

    Raises:
        ConfigError: the folder is not a run folder, or an argument is invalid.
        RunError: the run's weights are missing or damaged.
        PluginError: a plugin of the run is not installed.
    """
    folder = RunFolder.open(Path(run), mean=refine is None)
    predictor = Predictor(folder, device, refine=refine, precision=precision)
    folder.warn_if_unfinished()
    return predictor
