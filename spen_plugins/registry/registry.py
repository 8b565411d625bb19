"""The registry: classes by type, and typed configs from tables.

A type is `<plugin>.<name>`; `core.` may be omitted. There is no global registry: make a `Registry()`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from spen_plugins.errors import ConfigError, PluginError, did_you_mean
from spen_plugins.registry.host import CORE, Plugin, PluginHost
from spen_plugins.registry.kinds import KINDS, Kind
from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import Field, validate


class Registry:
    """All components of all plugins of an environment.

    Args:
        paths: folders in which to search for distributions; None for `sys.path`.
    """

    def __init__(self, paths: Sequence[str] | None = None) -> None:
        self._host = PluginHost(paths)

    def plugins(self) -> list[Plugin]:
        """Every plugin found, the core first; imports nothing."""
        return list(self._host.plugins.values())

    def check(self) -> list[Plugin]:
        """Import every plugin and everything it registers; returns `plugins()` with errors."""
        for name in list(self._host.plugins):
            try:
                tables = self._host.load(name)
            except PluginError:
                continue  # recorded by the host
            errors, failed_modules = [], set()
            for kind, short_name, value in [
                (kind, *entry) for kind, table in tables.items() for entry in table.items()
            ]:
                module = value.partition(":")[0] if isinstance(value, str) else None
                if module in failed_modules:
                    continue
                try:
                    self._host.member(kind, name, short_name)
                except PluginError as error:
                    errors.append(str(error))
                    # A module whose import fails does so for all its types.
                    failed_modules |= {module} - {None, *sys.modules}
            if errors:
                self._host.fail(name, "\n".join(errors))
        return self.plugins()

    def names(self, kind: str) -> list[str]:
        """Types of one kind, from every plugin that can be imported; the core's without `core.`."""
        providers = self.providers(kind)
        order = list(self._host.plugins)
        pairs = [(plugin, short_name) for short_name, plugins in providers.items() for plugin in plugins]
        return [
            short_name if plugin == CORE else f"{plugin}.{short_name}"
            for plugin, short_name in sorted(pairs, key=lambda pair: order.index(pair[0]))
        ]

    def providers(self, kind: str) -> dict[str, list[str]]:
        """Name -> the plugins that register it, among those that can be imported."""
        _find_kind(kind)
        return self._host.providers(kind)

    def resolve(self, kind: str, type_name: str) -> Any:
        """The class, or function, of a type.

        Raises:
            ConfigError: unknown type; the message lists the known ones.
            PluginError: its plugin is missing, broken or refused.
        """
        _find_kind(kind)
        plugin, short_name = _split_type(type_name)
        if plugin not in self._host.plugins:
            raise PluginError(self._describe_missing(kind, plugin, short_name))
        if short_name not in self._host.load(plugin).get(kind, ()):
            raise ConfigError(self._describe_unknown(kind, type_name))
        return self._host.member(kind, plugin, short_name)

    def parse(self, kind: str, spec: Any, where: str, source: object) -> tuple[type, Config]:
        """A table of a config -> its class and its typed config.

        Args:
            kind: a key of `KINDS`.
            spec: `{"type": ..., ...}`; a component's own `"features"` and other parts are parsed by the caller.
            where: the table's path, `energy`.
            source: the config's file, for messages.
        """
        if not isinstance(spec, Mapping):
            raise ConfigError(f"{source}: {where}: expected a table with a 'type', found {spec!r}.")
        values = dict(spec)
        type_name = values.pop("type", None)
        if not isinstance(type_name, str):
            text = "none" if type_name is None else repr(type_name)
            has_energy = where not in ("energy", "energy_loss")
            hint = "" if has_energy else " If the config's method has none, choose one that does, such as method=nce."
            raise ConfigError(
                f"{source}: {where}.type: expected the name of a type, found {text}. "
                f"`spen describe {kind}` lists the installed types.{hint}"
            )
        if _find_kind(kind).features:
            values.pop("features", None)
        try:
            cls = self.resolve(kind, type_name)
        except (ConfigError, PluginError) as error:
            raise type(error)(f"{source}: {where}.type: {error}") from error
        tables = component_tables(cls)
        for table in tables:
            values.pop(table.name, None)
        try:
            return cls, validate(cls.Config, values, where, source, tables)
        except ConfigError as error:
            raise ConfigError(f"{error}{self._suggest_types(kind, type_name, where, values)}") from None

    def plugin(self, type_name: str) -> Plugin:
        """The plugin that provides a type."""
        return self._host.plugins[_split_type(type_name)[0]]

    def _suggest_types(self, kind: str, type_name: str, key_path: str, values: Mapping[str, Any]) -> str:
        """Other types that have keys that a type lacks: another method of the config may be meant, or the config's
        own type has them."""
        owners: dict[str, list[str]] = {}
        unknown_keys = values.keys() - self.resolve(kind, type_name).Config.model_fields.keys()
        for name in self.names(kind) if unknown_keys else ():
            try:
                fields = self.resolve(kind, name).Config.model_fields
            except PluginError:
                continue
            for key in sorted(unknown_keys & fields.keys()):
                owners.setdefault(key, []).append(name)
        hints = "".join(
            f" {key!r} is a key of {', '.join(names)}, but {key_path}.type is {type_name!r}; an argument of the "
            "config, such as method, may choose another type."
            for key, names in owners.items()
        )
        replacement = f'\'{key_path}={{"type": "{type_name}"}}\''
        advice = f" If you set {key_path}.type, {replacement} replaces the whole table, without its other settings."
        return f"{hints}{advice}" if hints else ""

    def _describe_missing(self, kind: str, plugin: str, short_name: str) -> str:
        names = [p.name for p in self.plugins() if p.status != "refused"]
        suggestion = did_you_mean(plugin, names)
        return (
            f"{kind} '{plugin}.{short_name}' requires the plugin {plugin!r}, which is not installed.{suggestion} "
            f"Install the package that provides {plugin!r} (by convention `pip install spen-{plugin}`). "
            f"Installed: {', '.join(names)}."
        )

    def _describe_unknown(self, kind: str, type_name: str) -> str:
        plugin, short_name = _split_type(type_name)
        if owner := next((owner for owner, table in self._host.load(plugin).items() if short_name in table), None):
            return f"{type_name!r} is of kind {owner}, not {kind}; it belongs below the key '{owner}'."
        names = self.names(kind)
        # The user may have omitted the plugin's name: 'nce' for 'seal.nce'.
        matches = [name for name in names if name.partition(".")[2] == type_name]
        suggestion = f" Did you mean {matches[0]!r}?" if matches else did_you_mean(type_name, names)
        return f"unknown {kind} {type_name!r}.{suggestion} Installed: {', '.join(names) or 'none'}."


def component_tables(cls: type) -> list[Field]:
    """The keys of a component's table that hold tables of other components."""
    parts = {"features": "features"} if getattr(cls, "uses_features", False) else {}
    parts |= getattr(cls, "parts", {})
    return [
        Field(key, f"table of kind {kind}" if kind[-1] != "*" else f"tables of kind {kind[:-1]} by name", "null", "")
        for key, kind in parts.items()
    ]


def _find_kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise ConfigError(f"unknown kind {kind!r}.{did_you_mean(kind, KINDS)} Kinds: {', '.join(KINDS)}.")
    return KINDS[kind]


def _split_type(type_name: str) -> tuple[str, str]:
    plugin, dot, short_name = type_name.partition(".")
    return (plugin, short_name) if dot else (CORE, plugin)
