"""From an experiment to a run that is ready to train, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn

from spen_plugins.component import Component
from spen_plugins.config.experiment import Built, Experiment, Init, build, make_task
from spen_plugins.console import Console
from spen_plugins.data.parts.rules import TakesRules
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError, DataError, PluginError, RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.loop.mistakes import translate_mistakes
from spen_plugins.loop.recipe import Recipe
from spen_plugins.loop.torch_modes import seed_everything, translate_memory_errors
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.encoders import save_assets
from spen_plugins.runs.folder.environment import count_parameters, environment, packages
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.weights import copy_tensors, list_tensors, select_below
from spen_plugins.runs.train.teachers import describe_teachers
from spen_plugins.task import HELD_OUT
from spen_plugins.task_parts import fitted_facts
from spen_plugins.trainer import Stage


def warm_start(init: Init, components: Built) -> None:
    """Copy the initial weights of an experiment from other runs."""
    facts, excluded_names = components.task.facts(), fitted_facts(components.task) | {"split", "largest"}
    shared_facts = {name: facts[name] for name in facts.keys() - excluded_names}
    for net, runs in init.items():
        target = getattr(components.model, net)
        if target is None:
            raise ConfigError(f"init.{net}: this experiment has no {net}; omit it")
        if net == "energy" and target.takes_runs:
            _copy_nets(target, [runs] if isinstance(runs, str) else runs, shared_facts)
        else:
            _copy_net(target, net, Path(str(runs)), shared_facts, f"init.{net}")


def _copy_nets(energy: Energy, runs: Sequence[str], facts: Mapping[str, Any]) -> None:
    """Copy the nets of runs to the nets of an energy."""
    if len(runs) != len(energy.nets):
        raise ConfigError(
            f"init.energy: found {len(runs)} runs; expected one for each of {len(energy.nets)} nets in energy.nets"
        )
    for net, run in zip(energy.nets.values(), runs, strict=True):
        _copy_net(net, "inference_net", Path(run), facts, "init.energy")


def _copy_net(target: nn.Module, net: str, run: Path, facts: Mapping[str, Any], key: str) -> None:
    """Copy one net, `energy` or `inference_net`, from a run.

    Weights are valid only for the vocabulary and labels of their training, so `facts` must equal the run's. `key` names
    the setting in messages.
    """
    try:
        folder = RunFolder.open(run)
        run_facts = folder.facts()
        saved_tensors = select_below(net, folder.weights())
        if not saved_tensors:
            raise ConfigError(f"{key}: the run {run} has no {net}")
        for name in sorted(facts.keys() & run_facts.keys()):
            if facts[name] != run_facts[name]:
                problem = f"was trained with other {name} than those of the training data (see its vocabulary.json)"
                raise ConfigError(f"{key}: the run {run} {problem}")
        tensors = list_tensors(target)
        # The inner net of an optimiser over y may have been trained without it; learned step sizes start anew.
        inner_tensors = select_below("net", tensors)
        if inner_tensors and not any(name.startswith("net.") for name in saved_tensors):
            tensors = inner_tensors
        copy_tensors(saved_tensors, tensors, run)
    except RunError as error:
        raise ConfigError(f"{key}: {error}") from error


@dataclass(frozen=True)
class Given:
    """Examples given in Python; see `TakesExamples.take`."""

    parts: Mapping[str, Any]
    held_out: float = HELD_OUT


@dataclass(frozen=True)
class Ready:
    """A run that is ready to train."""

    experiment: Experiment
    components: Built
    recipe: Recipe
    accelerator: Accelerator


def build_first(experiment: Experiment, own_data: Given | None = None) -> Built:
    """The parts of a new run, with their data and initial weights."""
    seed_everything(experiment.seed)
    task = make_task(experiment, trains=True)
    if own_data is None:
        task.load()
    else:
        task.take(own_data.parts, own_data.held_out, experiment.seed)
    with translate_mistakes():
        components = build(experiment, task)
    warm_start(experiment.init, components)
    return components


def build_again(
    experiment: Experiment, folder: RunFolder, accelerator: Accelerator, registry: Registry, console: Console
) -> Built:
    """The parts of a resumed run; prints notes on differences since the run began."""
    path, record = folder.path, folder.environment()
    seed_everything(experiment.seed)
    try:
        components = build(experiment)
        try:
            warm_start(experiment.init, components)  # a later stage may restart from these weights
        except ConfigError as error:
            if not folder.checkpoint.exists():
                raise
            console.print(f"note: {error}; a stage that restarts will start from other weights")
    except (ConfigError, DataError) as error:
        original_folder = record.get("working_folder", str(Path.cwd()))
        if original_folder == str(Path.cwd()):
            raise
        raise ConfigError(
            f"{error}\nThe run began in {original_folder}; paths of its config are relative to that folder"
        ) from error
    if not record and accelerator.is_main_process:  # the run was killed before it wrote its environment
        describe(folder, experiment, components, accelerator, registry, str(path / "config.json"))
    checksums = components.task.checksums() | _collect_checksums(components)
    old_checksums = record.get("data_sha256", {}) | record.get("files_sha256", {})
    changed_names = [name for name, digest in old_checksums.items() if checksums.get(name) != digest]
    if changed_names:
        raise ConfigError(f"{path} can't be resumed: files it reads changed since it began: {', '.join(changed_names)}")
    installed_versions = packages()
    for name, version in record.get("packages", {}).items():
        if (current_version := installed_versions.get(name)) != version:
            console.print(f"note: the run began with {name} {version}; installed now: {current_version}")
    return components


def make_ready(experiment: Experiment, components: Built, accelerator: Accelerator) -> Ready:
    """A run of these parts that is ready to train; errors of stages are raised before the folder exists."""
    with translate_memory_errors("moving the nets to their device", "choose smaller ones"):
        components.model.to(accelerator.device)
    with translate_mistakes():
        stages = components.trainer.stages(components.model, components.task)
    if not (isinstance(stages, Sequence) and all(isinstance(stage, Stage) for stage in stages)):
        message = f"{type(components.trainer).__name__}.stages returned {stages!r:.80}"
        raise PluginError(f"{message}; expected a list of stages, spen_plugins.Stage")
    recipe = Recipe(components.model, components.task, stages, components.trainer.config, experiment.seed)
    return Ready(experiment, components, recipe, accelerator)


def describe(
    folder: RunFolder,
    experiment: Experiment,
    components: Built,
    accelerator: Accelerator,
    registry: Registry,
    source: str,
) -> None:
    """Write the environment and the task's facts before training."""
    folder.write("vocabulary.json", components.task.facts())
    save_assets(components.model, folder.path)
    plugins = {plugin.name: plugin.version or "" for plugin in registry.plugins()}
    data, files = components.task.checksums(), _collect_checksums(components)
    versions = environment(experiment.seed, accelerator.device.type, plugins, data, files, source)
    sizes = {"parameters": count_parameters(components.model), "training_examples": len(components.task.part("train"))}
    folder.write("environment.json", versions | sizes | describe_teachers(experiment))


def _collect_checksums(components: Built) -> dict[str, str]:
    """sha256 of the files that the trainer, the model's parts and the task's rules read, by path."""
    checksums = components.trainer.checksums()
    if isinstance(components.task, TakesRules):
        checksums = checksums | components.task.rule_checksums()
    for part in components.model.modules():
        if isinstance(part, FeatureNetwork | Component):
            checksums = checksums | part.checksums()
    return checksums
