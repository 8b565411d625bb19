"""Nodes: the parsed tables of a config, and their components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS

if TYPE_CHECKING:
    from spen_plugins.component import Component
    from spen_plugins.features import FeatureNetwork
    from spen_plugins.inference_net import InferenceNet
    from spen_plugins.task import Task


@dataclass(frozen=True)
class Node:
    """A component's table, parsed.

    Attributes:
        kind: a key of `KINDS`.
        type: the type's name in the config.
        cls: the class of that type.
        config: an instance of the class's `Config`.
        key_path: the table's path in the config, `energy.terms.words`.
        features: the node of its feature network: its own, or the experiment's, of which each component gets a copy;
            None if the class takes none.
        parts: the nodes of its inner components, by the keys of `Component.parts`, and below a starred key by name.
    """

    kind: str
    type: str
    cls: Any
    config: Any
    key_path: str
    features: Node | None = None
    parts: Mapping[str, Node | Mapping[str, Node]] = field(default_factory=dict)

    @property
    def own_features(self) -> Node | None:
        """The node of its own feature network; None if it uses the experiment's."""
        if self.features is None or self.features.key_path != f"{self.key_path}.features":
            return None
        return self.features

    def table(self, with_features: bool = False) -> dict[str, Any]:
        """The table as JSON values, with its defaults; parsing it again gives an equal node.

        With `with_features` each component has its feature network, so that the table means the same in any experiment.
        """
        table = {"type": self.type, **self.config.model_dump(mode="json")}
        features = self.features if with_features else self.own_features
        if features is not None:
            table["features"] = features.table()
        for key, part in self.parts.items():
            is_single = isinstance(part, Node)
            table[key] = (
                part.table(with_features)
                if is_single
                else {name: inner.table(with_features) for name, inner in part.items()}
            )
        return table


def parse(registry: Registry, kind: str, spec: Any, key_path: str, source: object, shared: Node | None = None) -> Node:
    """A table of a config, with the tables in it.

    `shared` is the experiment's feature network, for components that need one but have none of their own.
    """
    cls, config = registry.parse(kind, spec, key_path, source)
    if not KINDS[kind].features:  # a task, a feature network or a trainer, without its own feature network
        parts = _parse_parts(registry, cls, spec, key_path, source, None) if kind == "features" else {}
        return Node(kind, spec["type"], cls, config, key_path, None, parts)
    features = _parse_features(registry, kind, cls, spec, key_path, source, shared)
    return Node(
        kind, spec["type"], cls, config, key_path, features, _parse_parts(registry, cls, spec, key_path, source, shared)
    )


def _parse_features(
    registry: Registry, kind: str, cls: type[Component], spec: Any, key_path: str, source: object, shared: Node | None
) -> Node | None:
    """The node of a component's feature network."""
    if not cls.uses_features:
        if "features" in spec:
            raise ConfigError(
                f"{source}: {key_path}.features: {kind} {spec['type']!r} uses no feature network; omit it."
            )
        return None
    if spec.get("features") is not None:
        return parse(registry, "features", spec["features"], f"{key_path}.features", source)
    if shared is None:
        raise ConfigError(
            f"{source}: {key_path} {spec['type']!r} requires a feature network; give a table 'features' or "
            f"'{key_path}.features'. `spen describe features` lists the installed types."
        )
    return shared


def _parse_parts(
    registry: Registry, cls: type[Component], spec: Any, key_path: str, source: object, shared: Node | None
) -> dict[str, Node | Mapping[str, Node]]:
    """The nodes of a component's inner components."""
    nodes: dict[str, Node | Mapping[str, Node]] = {}
    for key, kind in cls.parts.items():
        table, place = spec.get(key), f"{key_path}.{key}"
        if table is None:
            continue
        if not kind.endswith("*"):
            nodes[key] = parse(registry, kind, table, place, source, shared)
            continue
        kind = kind.removesuffix("*")
        if not isinstance(table, Mapping) or any("." in name for name in table):
            raise ConfigError(f"{place}: found {table!r}; expected tables of kind {kind}, under names without a dot.")
        if table:
            nodes[key] = {
                name: parse(registry, kind, inner, f"{place}.{name}", source, shared) for name, inner in table.items()
            }
    return nodes


def make(
    node: Node,
    task: Task,
    assets: Path | None = None,
    of_net: FeatureNetwork | None = None,
    **parts: Component | dict[str, Component],
) -> Component:
    """Build the component of a node, after its inner components.

    Args:
        node: node of a component.
        task: after `load` or `restore`.
        assets: folder in which a run's feature networks saved their files.
        of_net: the inference net's feature network, for the components that share it.
        parts: inner components that exist already, by key.
    """
    features = None if node.features is None else _make_features(node.features, task, assets, of_net)
    for key, part in node.parts.items():
        if isinstance(part, Node):
            parts[key] = make(part, task, assets, of_net)
        else:
            parts[key] = {name: make(inner, task, assets, of_net) for name, inner in part.items()}
    return _construct(node.cls, node.config, task, features, **parts)


def _construct(cls: type[Component], *arguments: Any, **parts: Any) -> Component:
    """The component; a PluginError if its `__init__` does not call, or not first, that of its base class."""
    try:
        component = cls(*arguments, **parts)
    except AttributeError as error:
        if "Module.__init__" not in str(error):
            raise
        component = None
    if not hasattr(component, "_modules"):
        raise PluginError(f"{cls.__name__}.__init__ does not begin with super().__init__(…)")
    return component


def find_network(net: InferenceNet) -> FeatureNetwork | None:
    """The feature network of an inference net, or of the net that an optimiser over y starts from."""
    inner: Any = net
    while inner is not None and inner.features is None:
        inner = getattr(inner, "net", None)
    return None if inner is None else inner.features


def _make_features(node: Node, task: Task, assets: Path | None, of_net: FeatureNetwork | None = None) -> FeatureNetwork:
    config = node.config if assets is None else node.cls.relocated(node.config, assets)
    inner = node.cls.make_inner_task(task) if node.parts else task
    parts = {key: _make_features(part, inner, assets) for key, part in node.parts.items() if isinstance(part, Node)}
    if node.cls.of_net and of_net is not None:
        parts["network"] = of_net
    network = _construct(node.cls, config, task, **parts)
    if not hasattr(network, "output_dim"):
        raise PluginError(f"{node.cls.__name__}.__init__ sets no output_dim; expected the size of its vectors")
    network.config = node.config  # so that assets are saved again under the names in the config
    indexer = network.indexer()
    if indexer is not None:
        task.indexers.setdefault(*indexer)
    return network
