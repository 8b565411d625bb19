"""Several runs trained together over one pretrained encoder: `spen together`.

The folder has an ordinary run folder for each part; only the training state is shared by all parts:

together.json  names of the parts, in order, and their configs; written first, so that a killed training can resume
checkpoint/    the last training state
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Any

from accelerate import Accelerator

from spen_plugins.config.experiment import Built, Experiment, parse_experiment
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.files import read_json, remove_partial, save_json
from spen_plugins.files.lock import locked
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import Callbacks
from spen_plugins.loop.together import Together
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import count_processes, make_accelerator
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.runs.train.finishing import finish
from spen_plugins.runs.train.preparing import Ready, build_again, build_first, describe, make_ready
from spen_plugins.runs.train.runner import TOGETHER
from spen_plugins.runs.train.signals import last_evaluation, training

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
EQUAL = ("precision", "seed", "trainer.config.epochs", "trainer.config.patience")
"""Keys of the config that must be equal in all parts."""


def run(
    configs: Mapping[str, tuple[Mapping[str, Any], str]],
    out: Path,
    options: RunOptions = DEFAULTS,
) -> list[Path]:
    """Train nets of several tasks together, and write a run folder for each.

    Errors of configs, data and plugins are raised before a folder is created.
    """
    registry = Registry()
    _check_names(list(configs))
    experiments = {name: parse_experiment(dict(config), source, registry) for name, (config, source) in configs.items()}
    RunFolder.check_free(out, f"spen together {quote(str(out))} --resume" if (out / TOGETHER).exists() else None)
    accelerator = _make_accelerator(experiments, options.device)
    components = {name: build_first(experiment) for name, experiment in experiments.items()}
    parts = _make_ready(experiments, components, accelerator)
    folders = {name: RunFolder(out / name) for name in configs}
    with _hold(out, folders, {name: experiment.table() for name, experiment in experiments.items()}):
        for name, experiment in experiments.items():
            RunFolder.create(folders[name].path, experiment.table())
            describe(folders[name], experiment, components[name], accelerator, registry, configs[name][1])
        return _train(parts, folders, out, options, resume=False)


def resume(out: Path, options: RunOptions = DEFAULTS) -> list[Path]:
    """Resume from the last checkpoint, with the same weights and histories as without the stop."""
    tables = _read_parts(out)
    folders = {name: RunFolder(out / name) for name in tables}
    if all(folder.metrics() is not None for folder in folders.values()):
        Console(quiet=options.quiet, stderr=True).print(f"{out} is already done")
        return [folder.path for folder in folders.values()]
    registry = Registry()
    with _hold(out, folders):
        for name, folder in folders.items():
            if not (folder.path / "config.json").exists():  # the process was killed before it wrote the file
                RunFolder.create(folder.path, tables[name])
            RunFolder.open(folder.path)
        experiments = {
            name: parse_experiment(folder.config(), str(folder.path / "config.json"), registry)
            for name, folder in folders.items()
        }
        recorded_device = next(iter(folders.values())).environment().get("device")
        accelerator = _make_accelerator(experiments, options.device or recorded_device)
        console = Console(quiet=options.quiet, stderr=True)
        components = {
            name: build_again(experiment, folders[name], accelerator, registry, console)
            for name, experiment in experiments.items()
        }
        return _train(_make_ready(experiments, components, accelerator), folders, out, options, resume=True)


def share_encoder(components: Mapping[str, Built]) -> None:
    """Give all parts' nets the encoder of the first part."""
    encoders: dict[str, FeatureNetwork] = {}
    for name, part in components.items():
        networks = [network for network in part.model.modules() if isinstance(network, FeatureNetwork)]
        shareable = [network for network in networks if network.shared_part() is not None]
        if len(shareable) != 1:
            raise ConfigError(
                f"{name}: found {len(shareable) or 'no'} pretrained encoder{'s' * (len(shareable) != 1)} in its net, "
                "but the parts share one; expected features, or their reader, of type 'transformer'"
            )
        encoders[name] = shareable[0]
    first_name, encoder = next(iter(encoders.items()))
    for name, other in encoders.items():
        for key in encoder.shareable:
            value, other_value = getattr(encoder.config, key), getattr(other.config, key, None)
            if value != other_value:
                raise ConfigError(
                    f"{name}: its encoder's {key} is {other_value!r}, but that of {first_name} is {value!r}; the "
                    f"parts share one encoder, so give them the same {', '.join(encoder.shareable)}"
                )
        if other is not encoder:
            other.share(encoder)


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ConfigError(
            "found no parts; give some, as in: spen together runs/both pos=tags.jsonnet ner=names.jsonnet"
        )
    for name in names:
        if not NAME.fullmatch(name) or name in ("all", "checkpoint"):
            raise ConfigError(
                f"{name!r} is not a valid part name; expected letters, digits, - and _, but not 'all' or 'checkpoint'"
            )


def _read_parts(out: Path) -> dict[str, dict[str, Any]]:
    """The configs of a folder's parts, by name."""
    try:
        table = read_json(out / TOGETHER)
    except FileNotFoundError:
        raise ConfigError(f"{out} has no runs of spen together: there is no {TOGETHER} in it") from None
    _check_names(table["parts"])
    return {name: table["configs"][name] for name in table["parts"]}


def _make_accelerator(experiments: Mapping[str, Experiment], device: str | None) -> Accelerator:
    """The accelerator of all parts, after a check that they can be trained together."""
    first_name, first_experiment = next(iter(experiments.items()))
    for name, other in experiments.items():
        if other.energy is not None:
            raise ConfigError(f"{name}: spen together does not support energies; use method=cross_entropy")
        if any(True for _ in other.init.items()):
            raise ConfigError(f"{name}: spen together does not support init; remove it")
        for key in EQUAL:
            value, other_value = (attrgetter(key)(experiment) for experiment in (first_experiment, other))
            if value != other_value:
                key = key.replace(".config", "")
                raise ConfigError(
                    f"{name}: {key} is {other_value}, but that of {first_name} is {value}; expected the same for all "
                    f"parts: all.{key}={value}"
                )
    if count_processes() > 1:
        raise ConfigError("spen together trains in one process; start it without torchrun")
    return make_accelerator(first_experiment.precision, device)


def _make_ready(
    experiments: Mapping[str, Experiment], components: Mapping[str, Built], accelerator: Accelerator
) -> dict[str, Ready]:
    """The parts, ready to train over the shared encoder; each has one stage."""
    share_encoder(components)
    parts = {name: make_ready(experiments[name], part, accelerator) for name, part in components.items()}
    for name, part in parts.items():
        stages = part.recipe.stages
        if len(stages) != 1 or len(stages[0].phases) != 1 or stages[0].select is not None:
            raise ConfigError(
                f"{name}: found trainer {experiments[name].trainer.type!r}, whose training has several stages or "
                "phases; expected 'cross_entropy'"
            )
        if stages[0].phases[0].player.average is not None:  # each part would have another mean of the encoder
            raise ConfigError(f"{name}: spen together does not support trainer.net.average; set it to null")
    return parts


@contextmanager
def _hold(
    out: Path, folders: Mapping[str, RunFolder], tables: Mapping[str, dict[str, Any]] | None = None
) -> Iterator[None]:
    """Locks the folder and its parts against other runs; `tables` are the parts' configs if training begins."""
    with ExitStack() as stack:
        stack.enter_context(locked(out))
        remove_partial(out)
        if tables is not None:  # written before anything else, so that a killed training can always resume
            save_json({"parts": list(tables), "configs": tables}, out / TOGETHER)
        for folder in folders.values():
            stack.enter_context(locked(folder.path))
        yield


def _train(
    parts: Mapping[str, Ready], folders: Mapping[str, RunFolder], out: Path, options: RunOptions, resume: bool
) -> list[Path]:
    console, checkpoint = Console(quiet=options.quiet), Checkpoint(out / "checkpoint")
    first = next(iter(parts.values()))
    seed, accelerator = first.experiment.seed, first.accelerator
    afterwards = f"Resume with: spen together {quote(str(out))} --resume"
    with Reporter(console, "mean") as reporter, training(afterwards) as stop:
        reporter.say(f"folder {out}; seed {seed}; {accelerator.device}")
        loops = {}
        for name, part in parts.items():
            model, task = part.components.model, part.components.task
            for note in task.notes():
                reporter.say(f"{name}: {note}")
            count = sum(parameter.numel() for parameter in model.parameters())
            reporter.say(f"{name}: {len(task.part('train')):,} examples, {count:,} parameters, encoder included")
            folders[name].checkpoint = checkpoint
            loops[name] = Loop(part.recipe, folders[name], accelerator, reporter)
        callbacks = Callbacks(options.checkpoint_seconds, stop.is_set)
        Together(loops, seed, checkpoint, accelerator, reporter, callbacks).run(resume)
    with last_evaluation(afterwards):
        for name, part in parts.items():
            console.print(f"\n{name}")
            finish(part.components, folders[name], accelerator, console, True, loops[name].constant)
    return [folder.path for folder in folders.values()]
