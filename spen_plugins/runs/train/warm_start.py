"""Warm starts: weights of a net taken from another run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spen_plugins.config.experiment import Built, Init
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.model import Model
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.weights import copy_tensors, list_tensors, select_below
from spen_plugins.task_parts import fitted_facts


def warm_start(init: Init, built: Built) -> None:
    """Copy the initial weights of an experiment from other runs."""
    facts, unlike = built.task.facts(), fitted_facts(built.task) | {"split"}
    for net, run in init.items():
        _start(built.model, net, Path(run), {name: facts[name] for name in facts.keys() - unlike})


def _start(model: Model, net: str, run: Path, facts: Mapping[str, Any]) -> None:
    """Copy one net, `energy` or `inference_net`, from a run.

    Weights are valid only for the vocabulary and labels of their training: `facts` must equal the run's.
    """
    target = getattr(model, net)
    if target is None:
        raise ConfigError(f"init.{net}: this experiment has no {net}")
    try:
        other = RunFolder.open(run)
        theirs = other.facts()
        saved = select_below(net, other.weights())
        if not saved:
            raise ConfigError(f"init.{net}: the run {run} has no {net}")
        wanted = select_below(net, list_tensors(model))
        # The inner net of an optimiser over y may have been trained without it; learned step sizes start anew.
        inner = select_below("net", wanted)
        if inner and not any(name.startswith("net.") for name in saved):
            wanted = inner
        copy_tensors(saved, wanted, run)
    except RunError as error:
        raise ConfigError(f"init.{net}: {error}") from error
    for name in sorted(facts.keys() & theirs.keys()):
        if facts[name] != theirs[name]:
            raise ConfigError(f"init.{net}: the run {run} was trained with other {name} (see its vocabulary.json)")
