"""An experiment: a typed config of six tables, and the objects it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from spen_plugins.config.config import Config
from spen_plugins.config.fields import validate
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.registry.host import KINDS

if TYPE_CHECKING:
    from spen_plugins.component import Component
    from spen_plugins.features import FeatureNetwork
    from spen_plugins.model import Model
    from spen_plugins.task import Task
    from spen_plugins.trainer import Trainer

NETS = ("inference_net", "energy", "energy_loss")


class Init(Config):
    """Warm starts: run folders to take weights from."""

    energy: str | None = None
    """Run folder whose energy this one starts from."""
    inference_net: str | None = None
    """Run folder whose inference net this one starts from."""

    def items(self) -> Iterator[tuple[str, str]]:
        """Net -> run folder, of the nets that have one."""
        return ((net, run) for net, run in self.model_dump().items() if run is not None)


class Experiment(Config):
    """An evaluated config."""

    seed: int = Field(0, ge=0, lt=2**63)
    """Of initial weights, row order, dropout and sampling."""
    task: dict[str, Any]
    """The problem: reader, output space and score."""
    features: dict[str, Any] | None = None
    """The feature network; each net that wants one gets a copy of its own, unless it carries its own table."""
    inference_net: dict[str, Any]
    """What predicts."""
    energy: dict[str, Any] | None = None
    """What scores outputs; low is good."""
    energy_loss: dict[str, Any] | None = None
    """What teaches the energy."""
    trainer: dict[str, Any]
    """Who moves when."""
    init: Init = Init()
    """Warm starts."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    """Mixed precision."""


@dataclass(frozen=True)
class Built:
    """The objects of an experiment."""

    task: Task
    model: Model
    trainer: Trainer


def check(config: Mapping[str, Any], source: object, registry: Registry) -> Experiment:
    """Everything about a config that can be known without data.

    Args:
        config: the evaluated config.
        source: the file it comes from, for messages.
        registry: where types are looked up.

    Returns:
        The experiment, complete: every table holds the defaults too, so that it means the same in a later version.

    Raises:
        ConfigError, PluginError: naming the key, what was found and what is known.
    """
    experiment = validate(Experiment, config, "", source)
    tables: dict[str, Any] = {
        "task": _complete(registry, "task", experiment.task, "task", source),
        "trainer": _complete(registry, "trainer", experiment.trainer, "trainer", source),
    }
    if experiment.features is not None:
        tables["features"] = _complete(registry, "features", experiment.features, "features", source)
    for net in NETS:
        spec = getattr(experiment, net)
        if spec is not None:
            tables[net] = _complete(registry, net, spec, net, source)
            _check_features(registry, experiment, net, net, source, tables[net])
    _check_parts(registry, experiment, source)
    return experiment.model_copy(update=tables)


def build(experiment: Experiment, registry: Registry, task: Task | None = None, assets: Path | None = None) -> Built:
    """The objects of a checked experiment.

    Weights depend on the seed alone. The inference net is made first, so that with one seed it starts from the same
    weights whatever the energy is.

    Args:
        experiment: from `check`.
        registry: where types are looked up.
        task: a restored task; None to make one and load its data.
        assets: where a run's feature networks saved what they need to be made again.

    Raises:
        ConfigError, DataError: the data are not what the config says, or the nets don't fit them.
    """
    import torch

    from spen_plugins.model import Model

    if task is None:
        task = make_task(experiment, registry)
        task.load()
    torch.manual_seed(experiment.seed)
    nets = {
        net: None if spec is None else make_net(experiment, registry, net, spec, net, task, assets)
        for net, spec in ((net, getattr(experiment, net)) for net in NETS)
    }
    cls, config = registry.parse("trainer", experiment.trainer, "trainer", "config")
    return Built(task, Model(**nets), cls(config))


def make_task(experiment: Experiment, registry: Registry) -> Task:
    """The experiment's task, before `load` or `restore`."""
    cls, config = registry.parse("task", experiment.task, "task", "config")
    return cls(config)


def _complete(registry: Registry, kind: str, spec: Mapping[str, Any], where: str, source: object) -> dict[str, Any]:
    """A table with its defaults."""
    _, config = registry.parse(kind, spec, where, source)
    complete = {"type": spec["type"], **config.model_dump(mode="json")}
    if KINDS[kind].features and spec.get("features") is not None:
        complete["features"] = _complete(registry, "features", spec["features"], f"{where}.features", source)
    for part in _parts(registry, kind, spec, where):
        part.put(complete, _complete(registry, part.kind, part.spec, part.where, source))
    return complete


@dataclass(frozen=True)
class _Part:
    """A component inside a component's table: under `key`, and there under `name` where several share the key."""

    key: str
    name: str | None
    kind: str
    spec: Any
    where: str

    def put(self, table: dict[str, Any], value: Any) -> None:
        """Store what was made of the part where the part stood."""
        if self.name is None:
            table[self.key] = value
        else:
            table.setdefault(self.key, {})[self.name] = value


def _parts(registry: Registry, kind: str, spec: Mapping[str, Any], where: str) -> list[_Part]:
    """The components a component's table holds."""
    found = []
    for key, of in getattr(registry.resolve(kind, spec["type"]), "parts", {}).items():
        table, place = spec.get(key), f"{where}.{key}"
        if table is None:
            continue
        if of[-1] != "*":
            found.append(_Part(key, None, of, table, place))
            continue
        if not isinstance(table, Mapping) or any("." in name for name in table):
            raise ConfigError(f"{place}: expected tables of kind {of[:-1]} by names without a dot, found {table!r}.")
        found += [_Part(key, name, of[:-1], inner, f"{place}.{name}") for name, inner in table.items()]
    return found


def _check_features(
    registry: Registry, experiment: Experiment, kind: str, where: str, source: object, spec: Mapping[str, Any]
) -> None:
    wants = registry.resolve(kind, spec["type"]).uses_features
    if wants and experiment.features is None and "features" not in spec:
        raise ConfigError(
            f"{source}: {where} {spec['type']!r} needs a feature network; give a table 'features' or "
            f"'{where}.features'. `spen describe features` lists what is installed."
        )
    if not wants and "features" in spec:
        raise ConfigError(
            f"{source}: {where}.features: {kind} {spec['type']!r} takes no feature network; leave it out."
        )
    for part in _parts(registry, kind, spec, where):
        _check_features(registry, experiment, part.kind, part.where, source, part.spec)


def _check_parts(registry: Registry, experiment: Experiment, source: object) -> None:
    trainer = registry.resolve("trainer", experiment.trainer["type"])
    for need in trainer.needs:
        if getattr(experiment, need) is None:
            raise ConfigError(
                f"{source}: trainer {experiment.trainer['type']!r} needs '{need}', which the config lacks. "
                f"`spen describe {need}` lists what is installed."
            )
    if experiment.energy_loss is not None and experiment.energy is None:
        raise ConfigError(f"{source}: there is an 'energy_loss' and no 'energy' for it to teach.")
    if experiment.energy is None:
        if registry.resolve("inference_net", experiment.inference_net["type"]).uses_energy:
            raise ConfigError(
                f"{source}: inference_net {experiment.inference_net['type']!r} predicts with an energy; give 'energy'."
            )
        if experiment.init.energy is not None:
            raise ConfigError(f"{source}: init.energy is given, but the config has no 'energy'.")


def make_net(
    experiment: Experiment,
    registry: Registry,
    kind: str,
    spec: Mapping[str, Any],
    where: str,
    task: Task,
    assets: Path | None = None,
    **parts: Component | dict[str, Component],
) -> Component:
    """One component of an experiment and what its table holds; `parts` are those that are there already."""
    cls, config = registry.parse(kind, spec, where, "config")
    features = None
    if cls.uses_features:
        own = spec.get("features")
        place = "features" if own is None else f"{where}.features"
        features = _features(registry, experiment.features if own is None else own, place, task, assets)
    for part in _parts(registry, kind, spec, where):
        part.put(parts, make_net(experiment, registry, part.kind, part.spec, part.where, task, assets))
    return cls(config, task, features, **parts)


def _features(registry: Registry, spec: Any, where: str, task: Task, assets: Path | None) -> FeatureNetwork:
    cls, config = registry.parse("features", spec, where, "config")
    network = cls(config if assets is None else cls.relocated(config, assets), task)
    network.config = config  # so that assets are saved again under the names that the config knows them by
    wanted = network.indexer()
    if wanted is not None:
        task.indexers.setdefault(*wanted)
    return network
