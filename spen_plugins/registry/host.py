"""Finding and importing plugins: entry-point metadata first, a plugin's module at first use.

Entry points are in the group `spen_plugins` and have their plugin's name. The core's components are registered through
the same hooks under the name `core`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import pluggy

from spen_plugins import __version__, builtin, hookspecs
from spen_plugins.errors import PluginError, did_you_mean, translate_plugin_errors
from spen_plugins.registry.kinds import KINDS, Kind

GROUP = "spen_plugins"
CORE = "core"

Table = dict[str, Any]
"""Name -> class, function, or its import path `"module:name"`."""
Tables = dict[str, Table]
"""Kind -> table."""


@dataclass(frozen=True)
class Plugin:
    """A plugin found in the environment.

    Attributes:
        name: its name in types.
        status: `found` (not imported yet), `loaded`, `broken` (its import, hooks or classes failed) or `refused`
            (its name is taken or invalid).
        distribution: the distribution that provides it; all of them if several claim the name.
        version: version of the distribution.
        error: reason why it, or one of its commands or figures, is broken or refused.
        entry: the entry point's value, `module` or `module:object`.
    """

    name: str
    status: str
    distribution: str
    version: str
    error: str | None = None
    entry: str = ""

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.distribution} {self.version})"


class _Manager(pluggy.PluginManager):
    """Takes the hooks that a plugin's module holds; names that it imports at first use are no hooks, and stay
    unimported."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        is_held = inspect.getattr_static(plugin, name, None) is not None
        return super().parse_hookimpl_opts(plugin, name) if is_held else None


class PluginHost:
    """The plugins of an environment, or of the folders `paths`, and the tables they register."""

    def __init__(self, paths: Sequence[str] | None = None) -> None:
        self._manager = _Manager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._entries: dict[str, metadata.EntryPoint] = {}
        self._tables: dict[str, Tables] = {}
        self._members: dict[tuple[str, str, str], Any] = {}
        self.plugins = {CORE: Plugin(CORE, "found", "spen-plugins", __version__, entry=builtin.__name__)}
        self._discover(paths)
        self._register(CORE, builtin)

    def _discover(self, paths: Sequence[str] | None) -> None:
        distributions = (
            metadata.distributions() if paths is None else metadata.distributions(path=list(map(str, paths)))
        )
        owners: dict[str, _Owner] = {}
        for owner in filter(None, map(_read_owner, distributions)):
            # An earlier folder of the path wins, as for imports.
            owners.setdefault(owner.name.lower().replace("_", "-"), owner)
        claims: dict[str, list[_Owner]] = {}
        for owner in owners.values():
            for entry in owner.entries:
                self._entries[entry.name] = entry
                claims.setdefault(entry.name, []).append(owner)
        for name, claimants in sorted(claims.items()):
            self._claim(name, claimants)

    def _claim(self, name: str, owners: list[_Owner]) -> None:
        plugin = Plugin(name, "found", owners[0].name, owners[0].version, entry=self._entries[name].value)
        names = " and ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))
        if name != CORE and name.isidentifier() and len(owners) == 1:
            self.plugins[name] = plugin
            return
        reason = f"the plugin name {name!r} is claimed by {names}; expected one distribution, and not the name 'core'"
        if not name.isidentifier():
            reason = f"found the plugin name {name!r} in {names}; expected letters, digits and '_', and no digit first"
        # A foreign plugin called core is listed next to the real one.
        name = f"{name} of {names}" if name == CORE else name
        self.plugins[name] = replace(plugin, name=name, status="refused", distribution=names, version="", error=reason)

    def load(self, name: str) -> Tables:
        """The tables that a plugin registers, by kind; imports it at the first call.

        Raises:
            PluginError: the plugin is broken or refused, now or at an earlier call.
        """
        plugin = self.plugins[name]
        if name in self._tables:
            return self._tables[name]
        if plugin.error is not None:
            raise PluginError(plugin.error)
        try:
            with translate_plugin_errors(f"{plugin} could not be imported from {plugin.entry!r}"):
                module = self._entries[name].load()
            return self._register(name, module)
        except PluginError as error:
            self.fail(name, str(error))
            raise

    def providers(self, kind: str) -> dict[str, list[str]]:
        """Name -> the plugins that register it, among those that can be imported; errors of the others are recorded."""
        providers: dict[str, list[str]] = {}
        for plugin in list(self.plugins):
            try:
                table = self.load(plugin).get(kind, {})
            except PluginError:
                continue
            for short_name in table:
                providers.setdefault(short_name, []).append(plugin)
        return providers

    def member(self, kind: str, plugin: str, short_name: str) -> Any:
        """The class or function that a plugin registers under a name; imported at the first call."""
        key = (kind, plugin, short_name)
        if key not in self._members:
            value = self.load(plugin)[kind][short_name]
            label = f"{self.plugins[plugin]}: {kind} {short_name!r}"
            with translate_plugin_errors(f"{label} could not be imported from {value!r}"):
                if isinstance(value, str):
                    module, _, attribute = value.partition(":")
                    value = getattr(importlib.import_module(module), attribute)
                KINDS[kind].check(value, label)
            self._members[key] = value
        return self._members[key]

    def fail(self, name: str, reason: str) -> None:
        """Record an error of a loaded plugin."""
        self.plugins[name] = replace(self.plugins[name], status="broken", error=reason)

    def _register(self, name: str, module: Any) -> Tables:
        plugin = self.plugins[name]
        try:
            with translate_plugin_errors(str(plugin)):
                self._check_marks(name, module)
                self._manager.register(module, name)
                tables = {kind: self._read_table(name, definition) for kind, definition in KINDS.items()}
        except PluginError:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        if not any(tables.values()):
            hooks = ", ".join(kind.hook for kind in KINDS.values())
            raise PluginError(
                f"{plugin}: {plugin.entry!r} registers nothing; expected hooks marked `@spen_plugins.hookimpl`: {hooks}"
            )
        error = None if name == CORE else self._drop_conflicts(plugin, tables)
        self._tables[name] = {kind: table for kind, table in tables.items() if table}
        self.plugins[name] = replace(plugin, status="loaded", error=error)
        return self._tables[name]

    def _check_marks(self, name: str, module: Any) -> None:
        """Raise for a hook without its marker, which pluggy would ignore, and for a marked function that is no hook."""
        hooks = [kind.hook for kind in KINDS.values()]
        for hook in hooks:
            function = inspect.getattr_static(module, hook, None)  # not by a __getattr__ of the module's
            if inspect.isfunction(function) and self._manager.parse_hookimpl_opts(module, hook) is None:
                raise PluginError(f"{self.plugins[name]}: {hook} lacks its marker `@spen_plugins.hookimpl`")
        for attribute in dir(module):
            marks = self._manager.parse_hookimpl_opts(module, attribute)
            if marks and not marks.get("optionalhook") and (marks.get("specname") or attribute) not in hooks:
                suggestion = did_you_mean(attribute, hooks)
                raise PluginError(
                    f"{self.plugins[name]}: unknown hook {attribute!r}.{suggestion} Hooks: {', '.join(hooks)}"
                )

    def _drop_conflicts(self, plugin: Plugin, tables: Tables) -> str | None:
        """Remove commands and figures named like the core's; returns a message about them, None without any."""
        conflicts = []
        for kind in ("command", "figure"):
            names = tables[kind].keys() & self._tables[CORE][kind].keys()
            tables[kind] = {name: value for name, value in tables[kind].items() if name not in names}
            conflicts += [f"{kind} {name!r}" for name in sorted(names)]
        return f"{plugin}: rejected {', '.join(conflicts)}, which spen already provides" if conflicts else None

    def _read_table(self, name: str, kind: Kind) -> Table:
        """The checked result of one hook of a plugin."""
        table: Table = {}
        for implementation in getattr(self._manager.hook, kind.hook).get_hookimpls():
            if implementation.plugin_name != name:
                continue
            entries = implementation.function()
            problem = repr(entries)
            if isinstance(entries, Mapping):
                problem = ", ".join(
                    f"{short_name!r}: {value!r}"
                    for short_name, value in entries.items()
                    if not (str(short_name).isidentifier() and (callable(value) or ":" in str(value)))
                )
            if problem:
                raise PluginError(
                    f"{self.plugins[name]}: {kind.hook} returned {problem}; expected a table of names (letters, digits "
                    f"and '_'), each with {kind.expected}"
                )
            table.update(entries)
        return table


@dataclass(frozen=True)
class _Owner:
    """A distribution with plugins."""

    name: str
    version: str
    entries: metadata.EntryPoints


def _read_owner(distribution: metadata.Distribution) -> _Owner | None:
    """A distribution that has entry points of plugins; None for others, and if its metadata can't be read."""
    with suppress(Exception):
        is_named = GROUP in (distribution.read_text("entry_points.txt") or "")  # before parsing, which takes longer
        if is_named and (entries := distribution.entry_points.select(group=GROUP)):
            head = distribution.metadata  # parsed at each access
            return _Owner(head["Name"], head["Version"], entries) if head["Name"] is not None else None
    return None
