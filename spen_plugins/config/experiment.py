"""An experiment: a config checked as a whole, and its objects."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pydantic
from pydantic import BaseModel

from spen_plugins.config.node import Node, find_network, make, parse
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import Field, fields, validate

if TYPE_CHECKING:
    from spen_plugins.data.parts.rules import ReadRules, Rules
    from spen_plugins.model import Model
    from spen_plugins.task import Task
    from spen_plugins.trainer import Trainer


Precision = Literal["no", "bf16", "fp16"]
NETS = ("inference_net", "energy", "energy_loss")
NODES = ("task", "features", *NETS, "trainer")


class Init(Config):
    """Warm starts: run folders to take weights from."""

    energy: str | list[str] | None = None
    """Run folder with the initial weights of the energy. For energy `mean`, the runs that it averages: a run folder, a
    folder of runs, or a list of both."""
    inference_net: str | None = None
    """Run folder with the initial weights of the inference net."""

    def items(self) -> Iterator[tuple[str, str | list[str]]]:
        """Pairs of net and run folder, or run folders, for the nets that have a warm start."""
        return ((net, run) for net, run in self.model_dump().items() if run is not None)


class ExperimentConfig(Config):
    """The keys of an evaluated config."""

    seed: int = pydantic.Field(0, ge=0, lt=2**63)
    """Seed of initial weights, row order, dropout and sampling."""
    task: dict[str, Any]
    """The problem: reader, output space and score."""
    features: dict[str, Any] | None = None
    """The feature network; each net that needs one gets its own copy, unless it has its own table."""
    inference_net: dict[str, Any]
    """The inference net, which predicts."""
    energy: dict[str, Any] | None = None
    """The energy of outputs; low is good."""
    energy_loss: dict[str, Any] | None = None
    """The loss that trains the energy."""
    trainer: dict[str, Any]
    """The training procedure."""
    init: Init = Init()
    """Warm starts."""
    precision: Precision = "no"
    """Mixed precision."""


@dataclass(frozen=True)
class Experiment:
    """A checked config: the keys of `ExperimentConfig`, each table a node."""

    seed: int
    task: Node
    features: Node | None
    inference_net: Node
    energy: Node | None
    energy_loss: Node | None
    trainer: Node
    init: Init
    precision: Precision
    read_rules: ReadRules | None = dataclass_field(default=None, compare=False)
    """Reads the file of the task's rules."""

    def table(self) -> dict[str, Any]:
        """The config as JSON values, complete with all defaults, so that its meaning does not change with versions."""
        nodes = {name: getattr(self, name) for name in NODES}
        tables = {name: node.table() for name, node in nodes.items() if node is not None}
        init = self.init.model_dump(exclude_none=True)
        return {"seed": self.seed, **tables, "init": init, "precision": self.precision}


@dataclass(frozen=True)
class Built:
    """The objects of an experiment."""

    task: Task
    model: Model
    trainer: Trainer


def parse_experiment(config: Mapping[str, Any], source: object, registry: Registry) -> Experiment:
    """The experiment of a config, checked as far as possible without data."""
    settings = validate(ExperimentConfig, config, "", source)

    def parse_node(name: str, shared: Node | None = None) -> Node | None:
        spec = getattr(settings, name)
        return None if spec is None else parse(registry, name, spec, name, source, shared)

    nodes = {name: parse_node(name) for name in ("task", "trainer", "features")}
    nodes |= {name: parse_node(name, nodes["features"]) for name in NETS}
    settings_fields = {
        "init": settings.init,
        "precision": settings.precision,
        "read_rules": partial(_read_rules, registry),
    }
    experiment = Experiment(seed=settings.seed, **nodes, **settings_fields)
    _check_together(experiment, source)
    return experiment


def _read_rules(registry: Registry, path: Path) -> Rules:
    """The rules of a file, by the plugin that reads files with its suffix, which only training needs."""
    owners = registry.providers("rules").get(path.suffix[1:], [])
    if len(owners) != 1:
        problem = f"{' and '.join(owners)} all read" if owners else "no installed plugin reads"
        raise ConfigError(f"task.rules: {problem} rules from {path.name!r}; spen-rules reads Python files, '.py'")
    return registry.resolve("rules", f"{owners[0]}{path.suffix}")(path)


def _check_together(experiment: Experiment, source: object) -> None:
    """Check that each component has the others that it needs."""
    trainer, net = experiment.trainer, experiment.inference_net
    for need in trainer.cls.needs:
        if getattr(experiment, need) is None:
            raise ConfigError(
                f"{source}: trainer {trainer.type!r} requires '{need}', which the config lacks. "
                f"`spen describe {need}` lists the installed types."
            )
    if experiment.energy_loss is not None and experiment.energy is None:
        raise ConfigError(f"{source}: found 'energy_loss' without 'energy'; give 'energy', or omit 'energy_loss'.")
    if experiment.energy is None:
        if net.cls.uses_energy:
            raise ConfigError(f"{source}: inference_net {net.type!r} requires an energy; give 'energy'.")
        if experiment.init.energy is not None:
            raise ConfigError(f"{source}: found init.energy without 'energy'; give 'energy', or omit init.energy.")
    elif isinstance(experiment.init.energy, list) and not experiment.energy.cls.takes_runs:
        raise ConfigError(
            f"{source}: init.energy: found a list, but energy {experiment.energy.type!r} starts from one run; expected "
            "one run, or energy.type=mean"
        )


def build(experiment: Experiment, task: Task | None = None, assets: Path | None = None) -> Built:
    """The objects of an experiment.

    Weights depend on the seed alone. The inference net is built first, so that for a given seed it starts from the same
    weights whatever the energy is. Without a restored task its data are loaded. `assets` is the folder in which a run's
    feature networks saved their files.
    """
    import torch

    from spen_plugins.loop.torch_modes import translate_memory_errors
    from spen_plugins.model import Model

    if task is None:
        task = make_task(experiment, trains=True)
        task.load()
    torch.manual_seed(experiment.seed)
    nodes = {name: getattr(experiment, name) for name in NETS}
    with translate_memory_errors("building the nets", "choose smaller ones"):
        net = make(nodes.pop("inference_net"), task, assets)
        network = find_network(net)
        components = {name: None if node is None else make(node, task, assets, network) for name, node in nodes.items()}
    return Built(task, Model(net, **components), experiment.trainer.cls(experiment.trainer.config))


def make_task(experiment: Experiment, trains: bool = False) -> Task:
    """The experiment's task, before `load` or `restore`; it reads the rules of its config only if it `trains`."""
    from spen_plugins.data.parts.rules import TakesRules

    task = experiment.task.cls(experiment.task.config)
    if trains and isinstance(task, TakesRules):
        task.read_rules = experiment.read_rules
    return task


def keys(experiment: Experiment) -> Iterator[Field]:
    """Every dotted key of a checked config, in the config's order; a field's `default` is the value there.

    A key with a table is replaced by the keys of that table; a key that is null is listed itself.
    """
    for field in fields(ExperimentConfig):
        value = getattr(experiment, field.name)
        if field.name not in NODES:
            yield from _expand_field(field, value)
        elif value is None:
            yield replace(field, type="table", default="null")
        else:
            yield from _list_node_fields(value)


def _list_node_fields(node: Node) -> Iterator[Field]:
    yield Field(f"{node.key_path}.type", f"{node.kind} type", json.dumps(node.type), _read_first_line(node.cls))
    yield from _list_model_fields(node.config, f"{node.key_path}.")
    if node.own_features is not None:
        yield from _list_node_fields(node.own_features)
    for part in node.parts.values():
        for inner in [part] if isinstance(part, Node) else part.values():
            yield from _list_node_fields(inner)


def _list_model_fields(model: BaseModel, prefix: str) -> Iterator[Field]:
    for field in fields(type(model), prefix):
        yield from _expand_field(field, getattr(model, field.name.removeprefix(prefix)))


def _expand_field(field: Field, value: Any) -> Iterator[Field]:
    if isinstance(value, BaseModel):
        yield from _list_model_fields(value, f"{field.name}.")
    else:
        yield replace(field, default=json.dumps(value, default=_convert_to_json, ensure_ascii=False))


def _convert_to_json(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def _read_first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
