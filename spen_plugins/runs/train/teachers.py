"""Finished runs as teachers: the runs in `init.energy` become the nets of the energy."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from torch import nn

from spen_plugins.config.experiment import Experiment, parse_experiment
from spen_plugins.config.node import parse
from spen_plugins.errors import ConfigError
from spen_plugins.inference_net import check_alone
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder, open_runs, read_methods


def add_teachers(experiment: Experiment, registry: Registry) -> Experiment:
    """The experiment with the inference nets of the runs in `init.energy` in its energy, if the energy takes runs.

    A folder of several methods stands for the run, or the mean of runs, that it predicts with; a folder of seeds stands
    for all of its runs. The returned experiment's `init.energy` names each of them.

    Raises:
        ConfigError: there is no run, or a run is not finished, has another task, or predicts by an energy.
    """
    energy, paths = experiment.energy, experiment.init.energy
    if energy is None or not energy.cls.takes_runs or paths is None or energy.parts:
        return experiment
    runs = list_teachers([paths] if isinstance(paths, str) else paths)
    nets = {}
    for name, run in zip(name_runs([run.path for run in runs]), runs, strict=True):
        source = str(run.path / "config.json")
        teacher = parse_experiment(run.config(), source, registry)
        node, task, expected = teacher.inference_net, teacher.task.type, experiment.task.type
        if task != expected:
            raise ConfigError(
                f"init.energy: {run.path} is a run of task {task!r}; expected runs of this task, {expected!r}"
            )
        check_alone(node.cls, f"init.energy: {run.path}")
        nets[name] = parse(registry, "inference_net", node.table(with_features=True), f"energy.nets.{name}", source)
    init = experiment.init.model_copy(update={"energy": [str(run.path) for run in runs]})
    return replace(experiment, energy=replace(energy, parts={"nets": nets}), init=init)


def list_teachers(paths: Sequence[str]) -> list[RunFolder]:
    """The finished runs in run folders and in folders of runs."""
    runs = []
    for path in map(Path, paths):
        folder_runs = [RunFolder.open(path, mean=True)] if read_methods(path) else open_runs(path)
        if not folder_runs:
            raise ConfigError(f"init.energy: {path} is neither a run folder nor a folder of runs")
        if unfinished := next((run for run in folder_runs if run.metrics() is None), None):
            raise ConfigError(
                f"init.energy: {unfinished.path} has no scores yet; resume with: spen-run --resume {quote(str(path))}"
            )
        runs += folder_runs
    return runs


def describe_teachers(experiment: Experiment) -> dict[str, Any]:
    """An entry for a run's environment: the training seconds of each run that teaches it; empty without teachers."""
    paths = experiment.init.energy
    if experiment.energy is None or not experiment.energy.cls.takes_runs or not isinstance(paths, list):
        return {}
    return {"teachers": {run: sum(record["seconds"] for record in RunFolder(Path(run)).times()) for run in paths}}


def name_runs(runs: Sequence[Path]) -> list[str]:
    """Names of runs for a config: their paths below their common folder."""
    paths = [run.resolve() for run in runs]
    parent = Path(os.path.commonpath([path.parent for path in paths]))
    names: list[str] = []
    for path in paths:
        name = re.sub(r"[^\w-]+", "-", "-".join(path.relative_to(parent).parts))
        if hasattr(nn.ModuleDict(), name):
            name = f"run-{name}"
        names.append(name if name not in names else f"{name}-{len(names)}")
    return names
