"""`spen decode`: a finished run's nets with another way from probabilities to label sets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from spen_plugins.config.experiment import build, check
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.loop.constant import Constant
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import make_accelerator
from spen_plugins.runs.evaluating import task_again
from spen_plugins.runs.finishing import finish
from spen_plugins.runs.folder import RunFolder

KEPT = ("environment.json", "history.jsonl", "times.jsonl", "weights.safetensors")
"""Files of a run that are copied, with its assets."""


def decode(
    run: Path,
    out: Path,
    settings: Mapping[str, Any],
    device: str = "cpu",
    quiet: bool = False,
    registry: Registry | None = None,
) -> Path:
    """Write a run folder with a run's nets and another decoder, which is fitted to the run's validation part, and with
    the scores that it has; the nets are those of the epoch that the run chose.

    Args:
        run: a finished run, of a task of label sets.
        out: the new folder.
        settings: settings of the task in place of the run's: `decode`, `threshold`, `decode_temperature`.
        device: device of the nets.
        quiet: if true, no table is printed.
        registry: source of the types.

    Returns:
        The new folder's path.

    Raises:
        ConfigError: no finished run, another kind of task, an unknown value, or the new folder is not free.
        DataError: the run's data are not there.
        RunError: they have changed since training.
    """
    source, registry = RunFolder.open(run), registry or Registry()
    scores, config = source.metrics(), source.config()
    if scores is None:
        raise ConfigError(f"{run} has no scores yet; go on with: spen-run --resume {quote(str(run))}")
    experiment = check(config, str(run / "config.json"), registry)
    if "decode" not in experiment.task.cls.Config.model_fields:
        raise ConfigError(f"{run}: task {experiment.task.type!r} has no task.decode; expected one of label sets")
    config["task"] = {**config["task"], **settings}
    experiment = check(config, str(run / "config.json"), registry)
    task = task_again(experiment, source, "Train again")
    built = build(experiment, task, source.assets)
    source.load_weights(built.model)
    accelerator = make_accelerator("no", device)
    built.model.to(accelerator.device)
    folder = RunFolder.create(out, experiment.table(), "an empty OUT, or a name that is free")
    try:
        for name in KEPT:
            if (run / name).exists():
                shutil.copyfile(run / name, out / name)
        if source.assets.exists():
            shutil.copytree(source.assets, folder.assets)
    except OSError as error:
        raise RunError(f"{out} can't be written: {error.strerror or error}") from error
    constant = Constant(task, built.trainer.config.evaluated_at_once)
    finish(built, folder, accelerator, Console(quiet=quiet), "test" in scores, constant)
    return out
