"""`spen decode`: a finished run's nets with another decoder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from torch import Tensor

from spen_plugins.config.experiment import Built, Experiment, build, parse_experiment
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError
from spen_plugins.files import writing_folder
from spen_plugins.loop.evaluation import Constant
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import make_accelerator
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.runs.folder.weights import copy_tensors, list_tensors
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.runs.predict.predictor import Predictor
from spen_plugins.runs.train.finishing import finish
from spen_plugins.settings.config import Config
from spen_plugins.task_parts import FitsDecoder

KEPT = ("environment.json", "history.jsonl", "times.jsonl")
"""Files of a run that are copied, besides its assets."""
NOTED = ("chosen", "threshold")
"""Keys of `Predictor.refined` that are not settings of the inference net."""
ON_CPU = RunOptions("cpu")
INSTEAD = "an empty or new OUT"


def decode(
    run: Path,
    out: Path,
    settings: Mapping[str, Any],
    options: RunOptions = ON_CPU,
) -> Path:
    """Write a run folder with a run's nets, another decoder, and its scores.

    The nets are those of the run's chosen epoch. The decoder is fitted to the run's validation part. `settings` replace
    the task's `decode`, `threshold` and, for label sets, `decode_temperature`, `selection` and `nonempty`; settings
    that the task lacks must be "validation".
    """
    source, registry = open_finished(run, mean=True), Registry()
    config = source.config()
    experiment = parse_experiment(config, str(run / "config.json"), registry)
    check_decodes(run, experiment)
    net = experiment.inference_net
    if net.cls.chooses:
        raise ConfigError(
            f"{run}: its inference net {net.type!r} chooses outputs by the energy and ignores task.decode; "
            "expected the run that it was decoded from"
        )
    config["task"] = {**config["task"], **pick_known(experiment.task.cls.Config, settings, str(run))}
    return _write_run(source, out, config, source.weights(), options)


def pick_known(config_class: type[Config], settings: Mapping[str, Any], run: str) -> dict[str, Any]:
    """The settings that the task's config has.

    Raises:
        ConfigError: the config lacks a setting that is not "validation", or the setting needs another `decode`.
    """
    decoder, has_label_sets = settings.get("decode"), "decode_temperature" in config_class.model_fields
    conflicts = {"threshold": "expected_f1" if has_label_sets else "viterbi", "decode_temperature": "threshold"}
    for name, value in settings.items():
        option = "--may-be-empty" if value is False else f"--{name.removeprefix('decode_')}"
        if value != "validation" and name not in config_class.model_fields:
            raise ConfigError(f"{run}: its task has no task.{name}; omit {option}")
        if value != "validation" and name in conflicts and conflicts[name] == decoder:
            raise ConfigError(
                f"--by {decoder} has no {name.removeprefix('decode_')}: omit {option}, or use another --by"
            )
    return {name: value for name, value in settings.items() if name in config_class.model_fields}


def decode_by_energy(
    run: Path,
    out: Path,
    refine: str | Mapping[str, Any],
    options: RunOptions = ON_CPU,
) -> Path:
    """Write a run folder with a run's nets, whose outputs the energy decides on as with `Predictor`'s `refine`, and its
    scores. Settings that the run's validation part chooses, such as the energy's weight, are chosen once.
    """
    source, registry = open_finished(run), Registry()
    RunFolder.check_free(out, INSTEAD)
    predictor = Predictor(source, options.device or "cpu", registry, refine)
    config = source.config()
    net_settings = {name: value for name, value in predictor.refined["refined"].items() if name not in NOTED}
    config["inference_net"] = {**net_settings, "net": config["inference_net"]}
    if isinstance(predictor.task, FitsDecoder):
        config["task"] |= predictor.task.decoder_settings()
    weights = {re.sub(r"^inference_net\.", "inference_net.net.", name): w for name, w in source.weights().items()}
    return _write_run(source, out, config, weights, options, {"refined": True})


def open_finished(run: Path, mean: bool = False) -> RunFolder:
    """The folder of a run with scores; raises a ConfigError if it has none. `mean` is that of `RunFolder.open`."""
    source = RunFolder.open(run, mean)
    if source.metrics() is None:
        raise ConfigError(f"{run} has no scores yet; resume with: spen-run --resume {quote(str(run))}")
    return source


def check_decodes(run: Path, experiment: Experiment) -> None:
    """Raise a ConfigError if a run's task has no choice of decoders."""
    if not issubclass(experiment.task.cls, FitsDecoder):
        raise ConfigError(
            f"{run}: found task {experiment.task.type!r}, whose decoder isn't fitted on validation; expected a task of "
            "label sets or spans (if the task has task.decode, train again with another value)"
        )


def _write_run(
    source: RunFolder,
    out: Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    options: RunOptions,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a run folder with another config, a run's weights by their names in that config, and its scores; `notes`
    are added to its environment."""
    run = source.path
    # Errors are in this config, not in the run's own.
    experiment = parse_experiment(config, f"spen decode {run}", Registry())
    RunFolder.check_free(out, INSTEAD)
    task = load_own_data(experiment, source, "Train again")
    components = build(experiment, task, source.assets)
    copy_tensors(weights, list_tensors(components.model), run)

    def fill(folder: RunFolder) -> None:
        for name in KEPT:
            if (run / name).exists():
                shutil.copyfile(run / name, folder.path / name)
        if notes:
            folder.write("environment.json", {**source.environment(), **notes})
        if source.assets.exists():
            shutil.copytree(source.assets, folder.assets)

    return save_scored(out, experiment, components, "test" in (source.metrics() or {}), fill, options)


def save_scored(
    out: Path,
    experiment: Experiment,
    components: Built,
    tested: bool,
    fill: Callable[[RunFolder], None],
    options: RunOptions,
) -> Path:
    """Write the run folder of nets that are not trained here, with their scores, and print the scores.

    The folder appears only when it is complete: without scores it would look like a run that can be resumed.

    Args:
        out: the folder, new or empty.
        experiment: the folder's config.
        components: the nets with their weights, and the task with its data.
        tested: if true, the test part is scored, too.
        fill: writes the folder's other files.
        options: device and output.
    """
    accelerator = make_accelerator("no", options.device)
    components.model.to(accelerator.device)
    with writing_folder(out) as temporary_path:
        folder = RunFolder.create(temporary_path, experiment.table())
        fill(folder)
        folder.save_weights(components.model)
        constant = Constant(components.task, components.trainer.config.evaluated_at_once)
        finish(components, folder, accelerator, Console(quiet=True), tested, constant, trained=False)
        RunFolder.check_free(out, INSTEAD)  # another process may have written there in the meantime
    print_scores(Console(quiet=options.quiet), RunFolder(out))
    return out
