"""The data on which a finished run was trained."""

from __future__ import annotations

import json
from pathlib import Path

from spen_plugins.config.experiment import Experiment, make_task, parse_experiment
from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.task import Task
from spen_plugins.task_parts import fitted_facts


def load_task(run: RunFolder, registry: Registry) -> Task:
    """A run's task with its data, for figures and reports.

    Raises:
        ConfigError, DataError: the data are missing, or have changed since training.
    """
    experiment = parse_experiment(run.config(), str(run.path / "config.json"), registry)
    try:
        return load_own_data(experiment, run, "Train again")
    except RunError as error:
        raise ConfigError(str(error)) from error


def load_own_data(experiment: Experiment, run: RunFolder, remedy: str) -> Task:
    """A run's task with its data, from the files of its config.

    Args:
        experiment: the run's experiment.
        run: the run; its facts are those of training.
        remedy: remedy in the message if the files have changed.

    Raises:
        ConfigError, DataError: the data are missing.
        RunError: the data have changed since training.
    """
    task = make_task(experiment)
    try:
        task.load()
    except DataError as error:
        folder = run.environment().get("working_folder")
        if folder is None or Path(error.path).is_absolute() or not error.found.startswith("no such file"):
            raise
        expected = f"{error.expected}: {run.path} was trained on it, and its path is relative to {folder}"
        raise DataError(error.path, error.line, error.found, expected) from None
    checksums, recorded_checksums = task.checksums(), run.environment().get("data_sha256", {})
    recorded_facts, loaded_facts = run.facts(), json.loads(json.dumps(task.facts()))
    changed_files = [name for name, digest in recorded_checksums.items() if checksums.get(name) != digest]
    changed_facts = [
        name for name in recorded_facts.keys() - fitted_facts(task) if recorded_facts[name] != loaded_facts.get(name)
    ]
    if changed_names := changed_files or sorted(changed_facts):
        raise RunError(f"{', '.join(changed_names)} changed since {run.path} was trained. {remedy}")
    return task
