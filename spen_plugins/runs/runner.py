"""One run from config to scores: build, train, evaluate once, write the folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from accelerate import Accelerator

from spen_plugins.config.experiment import Built, Experiment, build, check, make_task
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, DataError, Interrupted
from spen_plugins.features import FeatureNetwork
from spen_plugins.files.lock import locked
from spen_plugins.loop import Loop
from spen_plugins.loop.memory import memory_errors
from spen_plugins.loop.ownership import check_stages
from spen_plugins.loop.processes import ProcessLost, everyones, wait_for_all
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.random_state import seed_everything
from spen_plugins.loop.rehearsal import rehearse
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import is_main_process, make_accelerator
from spen_plugins.runs.environment import environment, packages, parameter_counts
from spen_plugins.runs.finishing import finish
from spen_plugins.runs.folder import RunFolder
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.runs.probe import probe
from spen_plugins.runs.signals import interrupts
from spen_plugins.runs.warm_start import warm_start
from spen_plugins.task import HELD_OUT, Task
from spen_plugins.task_parts import PartlyLabelled, TakesExamples
from spen_plugins.trainer import Stage

TOGETHER = "together.json"
"""File of a folder whose runs are trained together: their names."""


@dataclass(frozen=True)
class Given:
    """Examples given in Python; see `TakesExamples.take`."""

    parts: Mapping[str, Any]
    held_out: float = HELD_OUT


def run(
    config: Mapping[str, Any],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
    registry: Registry | None = None,
    test: bool = True,
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
    given: Given | None = None,
) -> Path:
    """Train, evaluate and write a run folder.

    Errors of config, data and plugins are raised before the folder is created.

    Args:
        config: the evaluated config.
        source: its file, for messages.
        out: the run folder, new or empty; by default a dated one below `runs/`.
        options: device, output and checkpoints.
        registry: source of the types.
        test: if true, the test part is scored; false for hyperparameter search.
        after_epoch: called with the history record of every epoch; a `RunError` it raises ends the run.
        given: the examples, if the config's task has them in memory; None: the task loads its files.

    Returns:
        The run folder's path.

    Raises:
        ConfigError, DataError, PluginError: before training starts.
        RunError: training failed.
    """
    registry = registry or Registry()
    experiment = check(dict(config), source, registry)
    accelerator = make_accelerator(experiment.precision, options.device)
    seed_everything(experiment.seed)
    task = make_task(experiment)
    if given is None:
        task.load()
    else:
        task.take(given.parts, given.held_out, experiment.seed)
    built = build(experiment, task)
    warm_start(experiment.init, built)
    stages = stages_of(built, accelerator)
    rehearse(built.model, task, built.trainer, experiment.seed, accelerator)
    folder = RunFolder(Path(everyones(str(out or default_folder(source)), accelerator)[0]))
    if accelerator.is_main_process:
        RunFolder.check_free(folder.path)
    with _held(folder, accelerator):
        if accelerator.is_main_process:
            RunFolder.create(folder.path, experiment.table())
            describe(folder, experiment, built, accelerator, registry, source)
        wait_for_all(accelerator)
        return _train(experiment, built, stages, folder, accelerator, options, False, test, after_epoch)


def resume(path: Path, options: RunOptions = DEFAULTS, registry: Registry | None = None) -> Path:
    """Resume a stopped run, with the same weights and history as without the stop.

    Raises:
        ConfigError: no run folder, another process is training it, or the data files have changed since.
    """
    folder = RunFolder.open(path)
    console = Console(quiet=options.quiet or not is_main_process(), stderr=True)
    if folder.metrics() is not None:
        console.print(f"{path} is already done; its scores are in metrics.json")
        return path
    if (path.parent / TOGETHER).exists():
        raise ConfigError(
            f"{path} is trained together with other parts; go on with: spen together {quote(str(path.parent))} --resume"
        )
    registry = registry or Registry()
    experiment = check(folder.config(), str(path / "config.json"), registry)
    accelerator = make_accelerator(experiment.precision, options.device or folder.environment().get("device"))
    with _held(folder, accelerator):
        built = built_again(experiment, folder, accelerator, registry, console)
        stages = stages_of(built, accelerator)
        return _train(experiment, built, stages, folder, accelerator, options, resume=True)


def _held(folder: RunFolder, accelerator: Accelerator) -> AbstractContextManager[None]:
    """Keep other runs out of a folder; the main process does, for all of this run."""
    return locked(folder.path) if accelerator.is_main_process else nullcontext()


def built_again(
    experiment: Experiment, folder: RunFolder, accelerator: Accelerator, registry: Registry, console: Console
) -> Built:
    """The parts of a run that is resumed, and notes on what differs since it began.

    Raises:
        ConfigError: the data files have changed since.
    """
    path, before = folder.path, folder.environment()
    seed_everything(experiment.seed)
    try:
        built = build(experiment)
        try:
            warm_start(experiment.init, built)  # a later stage may restart from these weights
        except ConfigError as error:
            if not folder.checkpoint.exists():
                raise
            console.print(f"note: {error}; a stage that begins anew begins from other weights")
    except (ConfigError, DataError) as error:
        began = before.get("working_folder", str(Path.cwd()))
        if began == str(Path.cwd()):
            raise
        raise ConfigError(
            f"{error}\nThe run began in {began}; paths of its config are relative to that folder"
        ) from error
    if not before and accelerator.is_main_process:  # killed before it was written
        describe(folder, experiment, built, accelerator, registry, str(path / "config.json"))
    now = built.task.checksums() | _other_checksums(built)
    then = before.get("data_sha256", {}) | before.get("files_sha256", {})
    changed = [name for name, digest in then.items() if now.get(name) != digest]
    if changed:
        raise ConfigError(f"{path} can't be resumed: files it reads changed since it began: {', '.join(changed)}")
    installed = packages()
    for name, version in before.get("packages", {}).items():
        if (current := installed.get(name)) != version:
            console.print(f"note: the run began with {name} {version}, this is {current}")
    return built


def describe(
    folder: RunFolder,
    experiment: Experiment,
    built: Built,
    accelerator: Accelerator,
    registry: Registry,
    source: str,
) -> None:
    """Write the environment and the task's facts before training."""
    folder.write("vocabulary.json", built.task.facts())
    for network in _feature_networks(built):
        network.save_assets(folder.assets)
    plugins = {plugin.name: plugin.version or "" for plugin in registry.plugins()}
    data, files = built.task.checksums(), _other_checksums(built)
    found = environment(experiment.seed, accelerator.device.type, plugins, data, files, source)
    sizes = {"parameters": parameter_counts(built.model), "training_examples": len(built.task.part("train"))}
    folder.write("environment.json", found | sizes)


def _feature_networks(built: Built) -> Iterator[FeatureNetwork]:
    return (module for module in built.model.modules() if isinstance(module, FeatureNetwork))


def _other_checksums(built: Built) -> dict[str, str]:
    """sha256 of files that the trainer and feature networks read, by path."""
    found = built.trainer.checksums()
    for network in _feature_networks(built):
        found = found | network.checksums()
    return found


def default_folder(source: str) -> Path:
    """`runs/<config>-<date>-<time>`, numbered if that is taken."""
    stem = f"{Path(source).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = (Path("runs") / (stem + suffix) for suffix in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(path for path in candidates if not path.exists())


def stages_of(built: Built, accelerator: Accelerator) -> list[Stage]:
    """The trainer's stages for a model on its device; errors are raised before a folder is created."""
    built.model.to(accelerator.device)
    stages = built.trainer.stages(built.model, built.task)
    check_stages(built.model, stages)
    return stages


def _train(
    experiment: Experiment,
    built: Built,
    stages: list[Stage],
    folder: RunFolder,
    accelerator: Accelerator,
    options: RunOptions,
    resume: bool,
    test: bool = True,
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
) -> Path:
    model, task = built.model, built.task
    if accelerator.process_index:  # own dropout and samples, but the same weights in all processes
        seed_everything(experiment.seed + 1_000_003 * accelerator.process_index)
    console = Console(quiet=options.quiet)
    with (
        Reporter(console, task.selection, options.quiet or not accelerator.is_main_process) as reporter,
        interrupts() as stop,
    ):
        counts = {name: sum(p.numel() for p in net.parameters()) for name, net in model.named_children()}
        processes = f", {accelerator.num_processes} processes" if accelerator.num_processes > 1 else ""
        reporter.say(f"run folder {folder.path}; seed {experiment.seed}; {accelerator.device}{processes}")
        for note in (*task.notes(), *_passed_over(built)):
            reporter.say(note)
        reporter.say("parameters: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        loop = Loop(
            model,
            task,
            stages,
            built.trainer.config,
            folder,
            experiment.seed,
            accelerator,
            reporter,
            options.checkpoint_seconds,
            stop.is_set,
            after_epoch,
            probe(built, accelerator.device),
        )
        try:
            with memory_errors("training"):
                loop.run(resume)
        except (Interrupted, ProcessLost) as error:
            raise type(error)(f"{error}. {_afterwards(task, folder, accelerator)}") from error
    try:
        finish(built, folder, accelerator, console, test, loop.constant)
    except KeyboardInterrupt:
        said = "stopped in its last evaluation; training is done and saved"
        raise Interrupted(f"{said}. {_afterwards(task, folder, accelerator)}") from None
    return folder.path


def _passed_over(built: Built) -> list[str]:
    """A warning if the config gives training examples without gold to a trainer that learns nothing from them."""
    keys = built.task.keys_without_gold if isinstance(built.task, PartlyLabelled) else ()
    if not keys or "energy_loss" in built.trainer.needs:
        return []
    return [
        f"warning: this method learns from examples with gold alone; those without it, by {' and '.join(keys)}, "
        "change nothing. A method with an energy loss learns from them too"
    ]


def _afterwards(task: Task, folder: RunFolder, accelerator: Accelerator) -> str:
    """What to do about a run that was stopped."""
    if isinstance(task, TakesExamples) and task.in_memory:
        return "Its examples were given in Python and are not kept: train again"
    launcher = ", started as this run was" if accelerator.num_processes > 1 else ""
    return f"Go on with: spen-run --resume {quote(str(folder.path))}{launcher}"
