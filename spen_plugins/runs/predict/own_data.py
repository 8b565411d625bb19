"""The data on which a finished run was trained, for figures and reports."""

from __future__ import annotations

import json

from spen_plugins.config.experiment import check, make_task
from spen_plugins.errors import DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.task import Task
from spen_plugins.task_parts import fitted_facts


def load_task(run: RunFolder, registry: Registry) -> Task:
    """A run's task with its data.

    Raises:
        DataError: the data are missing, or differ from those of training.
    """
    experiment = check(run.config(), str(run.path / "config.json"), registry)
    task = make_task(experiment)
    task.load()
    now = task.checksums()
    for path, digest in run.environment().get("data_sha256", {}).items():
        if now.get(path) != digest:
            raise DataError(path, None, "other contents than the run was trained on", f"sha256 {digest}")
    facts, theirs = json.loads(json.dumps(task.facts())), run.facts()
    data = (facts.keys() & theirs.keys()) - fitted_facts(task) - {"split"}
    changed = [name for name in data if facts[name] != theirs[name]]
    if changed:
        raise DataError(run.path, None, f"other {', '.join(sorted(changed))} than its data give now", "the same")
    return task
