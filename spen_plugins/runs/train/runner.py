"""One run from config to scores: it builds, trains, evaluates once, and writes the folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import quote
from typing import Any

from accelerate import Accelerator

from spen_plugins.config.experiment import Built, parse_experiment
from spen_plugins.console import Console
from spen_plugins.data.parts.rules import TakesRules
from spen_plugins.errors import ConfigError
from spen_plugins.files.lock import locked
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.mistakes import rehearse
from spen_plugins.loop.processes import gather, wait_for_all
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import Callbacks
from spen_plugins.loop.torch_modes import seed_everything
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import is_main_process, make_accelerator
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.runs.train.finishing import finish
from spen_plugins.runs.train.preparing import Given, Ready, build_again, build_first, describe, make_ready
from spen_plugins.runs.train.signals import last_evaluation, training
from spen_plugins.runs.train.teachers import add_teachers
from spen_plugins.task import Task
from spen_plugins.task_parts import PartlyLabelled, TakesExamples

TOGETHER = "together.json"
"""File of a folder whose runs are trained together; it holds their names."""


def run(
    config: Mapping[str, Any],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
    test: bool = True,
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
    own_data: Given | None = None,
) -> Path:
    """Train, evaluate and write a run folder.

    Errors of config, data and plugins are raised before the folder is created.

    Args:
        config: the evaluated config.
        source: the config's file, for messages.
        out: the run folder, new or empty; by default a dated one below `runs/`.
        options: device, output and checkpoints.
        test: if true, the test part is scored; false for hyperparameter search.
        after_epoch: called with the history record of every epoch; it may raise a `RunError` to end the run.
        own_data: the examples, if the config's task has them in memory; None: the task loads its files.
    """
    registry = Registry()
    experiment = add_teachers(parse_experiment(dict(config), source, registry), registry)
    accelerator = make_accelerator(experiment.precision, options.device)
    components = build_first(experiment, own_data)
    ready = make_ready(experiment, components, accelerator)
    notes = rehearse(components.trainer, ready.recipe, accelerator)
    folder = RunFolder(Path(gather(str(out or choose_folder(source)), accelerator)[0]))
    if accelerator.is_main_process:
        RunFolder.check_free(folder.path)
    with _hold(folder, accelerator):
        if accelerator.is_main_process:
            RunFolder.create(folder.path, experiment.table())
            describe(folder, experiment, components, accelerator, registry, source)
        wait_for_all(accelerator)
        return _train(ready, folder, options, resume=False, test=test, after_epoch=after_epoch, notes=notes)


def resume(path: Path, options: RunOptions = DEFAULTS) -> Path:
    """Resume a stopped run, with the same weights and history as without the stop."""
    folder = RunFolder.open(path)
    console = Console(quiet=options.quiet or not is_main_process(), stderr=True)
    if folder.metrics() is not None:
        console.print(f"{path} is already done; its scores are in metrics.json")
        return path
    if (path.parent / TOGETHER).exists():
        raise ConfigError(
            f"{path} is a part of spen together; resume with: spen together {quote(str(path.parent))} --resume"
        )
    registry = Registry()
    experiment = parse_experiment(folder.config(), str(path / "config.json"), registry)
    accelerator = make_accelerator(experiment.precision, options.device or folder.environment().get("device"))
    with _hold(folder, accelerator):
        components = build_again(experiment, folder, accelerator, registry, console)
        return _train(make_ready(experiment, components, accelerator), folder, options, resume=True)


def _hold(folder: RunFolder, accelerator: Accelerator) -> AbstractContextManager[None]:
    """Lock a folder against other runs; the main process does it for all processes of this run."""
    return locked(folder.path) if accelerator.is_main_process else nullcontext()


def choose_folder(source: str) -> Path:
    """`runs/<config>-<date>-<time>`, numbered if that path exists."""
    stem = f"{Path(source).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = (Path("runs") / (stem + suffix) for suffix in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(path for path in candidates if not path.exists())


def _train(
    ready: Ready,
    folder: RunFolder,
    options: RunOptions,
    resume: bool,
    test: bool = True,
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None,
    notes: Sequence[str] = (),
) -> Path:
    components, accelerator, seed = ready.components, ready.accelerator, ready.experiment.seed
    model, task = components.model, components.task
    if accelerator.process_index:  # each process has its own dropout and samples, but all have the same weights
        seed_everything(seed + 1_000_003 * accelerator.process_index)
    console = Console(options.printed_texts, quiet=options.quiet or not accelerator.is_main_process)
    afterwards = _write_advice(task, folder, accelerator)
    with Reporter(console, task.selection) as reporter, training(afterwards) as stop:
        counts = {name: sum(p.numel() for p in net.parameters()) for name, net in model.named_children()}
        processes = f", {accelerator.num_processes} processes" if accelerator.num_processes > 1 else ""
        reporter.say(f"run folder {folder.path}; seed {seed}; {accelerator.device}{processes}")
        for note in (*task.notes(), *_note_unused_examples(ready.components), *_note_untrained_energy(ready), *notes):
            console.print_once(note)
        reporter.say("parameters: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        callbacks = Callbacks(options.checkpoint_seconds, stop.is_set, after_epoch)
        loop = Loop(ready.recipe, folder, accelerator, reporter, callbacks)
        loop.run(resume)
    with last_evaluation(afterwards):
        finish(ready.components, folder, accelerator, console, test, loop.constant)
    return folder.path


def _note_unused_examples(components: Built) -> list[str]:
    """A warning if the config has training examples without gold, and its trainer learns nothing from them."""
    keys = components.task.keys_without_gold if isinstance(components.task, PartlyLabelled) else ()
    if not keys or "energy_loss" in components.trainer.needs or not any(True for _ in components.model.parameters()):
        return []
    if isinstance(components.task, TakesRules) and components.task.rules is not None:
        return ["warning: this method ignores task.rules; method=votes and method=rules_energy use them"]
    return [
        f"warning: this method learns only from examples with gold and ignores those without it, from "
        f"{' and '.join(keys)}. Methods with an energy loss learn from both"
    ]


def _note_untrained_energy(ready: Ready) -> list[str]:
    """A warning if the energy keeps its initial random weights."""
    model, owned_names = ready.components.model, ready.recipe.owned.values()
    trained_ids = {id(model.get_parameter(name)) for stage in owned_names for names in stage.values() for name in names}
    parameters = [] if model.energy is None else [p for p in model.energy.parameters() if p.requires_grad]
    if not parameters or ready.experiment.init.energy is not None or any(id(p) in trained_ids for p in parameters):
        return []
    return ["warning: this training does not train the energy; omit it, or choose a method or trainer that trains it"]


def _write_advice(task: Task, folder: RunFolder, accelerator: Accelerator) -> str:
    """Advice on how to continue a stopped run."""
    if isinstance(task, TakesExamples) and task.in_memory:
        return "Its examples were given in Python and are not stored: train again"
    launcher = ", started as this run was" if accelerator.num_processes > 1 else ""
    return f"Resume with: spen-run --resume {quote(str(folder.path))}{launcher}"
