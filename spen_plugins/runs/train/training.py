"""Training from Python: `sp.train("labels", data="bibtex", method="nce")`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import restore_settings
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.predict.predictor import Predictor, load
from spen_plugins.runs.train import runner
from spen_plugins.runs.train.preparing import Given
from spen_plugins.task import HELD_OUT
from spen_plugins.task_parts import TakesExamples


def train(
    config: str | Path | Mapping[str, Any],
    *,
    data: Any = None,
    out: str | Path | None = None,
    device: str | None = None,
    quiet: bool = False,
    held_out: float = HELD_OUT,
    **arguments: Any,
) -> Predictor:
    """Train and evaluate a config, like `spen-run`, and load the finished run.

        sp.train("labels", data="bibtex", method="nce", **{"trainer.epochs": 3})
        sp.train("labels", data=(X, Y), out="runs/mine")

    The random states of Python, NumPy and torch, torch's deterministic mode and its current GPU are restored.

    Args:
        config: the name of a shipped config, a `.jsonnet`, `.json` or `.yaml` file, or an evaluated config.
        data: the config's argument of this name; or the examples themselves: a pair of inputs and outputs, or such a
            pair for each of "train", "validation" and "test". For label sets, inputs are vectors `(n, features)` (an
            array, a matrix of scipy.sparse or a DataFrame) or a list of strings; outputs are a matrix `(n, labels)` of
            0 and 1 or a list with each example's label names. For tags, inputs are a list of words per sentence, and
            outputs a list of tags per sentence. The training examples may have weights, (inputs, outputs, weights):
            numbers whose scale doesn't matter; 0 leaves an example out.
        out: the run folder, new or empty; by default a dated one below `runs/`.
        device: "cpu", "cuda", "cuda:1", "mps", for training and prediction; by default the best available for training,
            and the CPU for prediction.
        quiet: if true, nothing is printed.
        held_out: share of the training examples used for validation if `data` has examples but no part "validation";
            chosen by `seed` and stratified by label or tag.
        arguments: the config's other arguments, and dotted keys of the evaluated config.

    Returns:
        The run's predictor.

    Raises:
        ConfigError, DataError, PluginError: before training starts.
        RunError: training failed.
    """
    own_data = None
    if data is not None and not isinstance(data, (str, Path)):
        own_data = Given(data if isinstance(data, Mapping) else {"train": data}, held_out)
        data = "files"  # selects the settings for a user's own data
        if isinstance(config, Mapping) or "data" not in [parameter.name for parameter in parameters(config)]:
            data = None
    arguments = arguments if data is None else {"data": data, **arguments}
    evaluated = evaluate(config, {name: _write_argument(name, value) for name, value in arguments.items()})
    source = "config" if isinstance(config, Mapping) else str(config)
    if own_data is not None:
        evaluated = _mark_in_memory(evaluated, source)
    with restore_settings(device):
        folder = None if out is None else Path(out)
        path = runner.run(evaluated, source, folder, RunOptions(device, quiet), own_data=own_data)
    return load(path, device or "cpu")


def _write_argument(name: str, value: Any) -> str:
    """An argument's text on a command line."""
    if isinstance(value, Path):
        value = str(value)
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        value = value.tolist()
    try:
        return json.dumps(value)
    except TypeError:
        raise ConfigError(f"argument {name!r}: found a {type(value).__name__}; expected a JSON value") from None


def _mark_in_memory(config: dict[str, Any], source: str) -> dict[str, Any]:
    """The config, marked as one whose task gets its examples in Python."""
    task = parse_experiment(config, source, Registry()).task
    if not issubclass(task.cls, TakesExamples):
        raise ConfigError(
            f"task {task.type!r} reads only files; examples in Python require a task like multilabel, text or tagging"
        )
    return {**config, "task": {**config["task"], "in_memory": True}}
