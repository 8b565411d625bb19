"""Finding and importing plugins: entry-point metadata first, a plugin's module at first use.

Entry points are in the group `spen_plugins` and have their plugin's name. The core's components are registered through
the same hooks under the name `core`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import pluggy

from spen_plugins import __version__, builtin, hookspecs
from spen_plugins.errors import PluginError, did_you_mean
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
        return f"plugin {self.name!r} ({self.distribution} {self.version})".replace(" )", ")")


class _Manager(pluggy.PluginManager):
    """Takes the hooks that a plugin holds: names that its module imports at first use are none, and stay unimported."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        held = inspect.getattr_static(plugin, name, None) is not None
        return super().parse_hookimpl_opts(plugin, name) if held else None


class PluginHost:
    """The plugins of an environment and the tables they register.

    Args:
        paths: folders in which to search for distributions; None for `sys.path`.
    """

    def __init__(self, paths: Sequence[str] | None = None) -> None:
        self._manager = _Manager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._entries: dict[str, metadata.EntryPoint] = {}
        self._tables: dict[str, Tables] = {}
        self._members: dict[tuple[str, str, str], Any] = {}
        self.known = {CORE: Plugin(CORE, "found", "spen-plugins", __version__, entry=builtin.__name__)}
        self._discover(None if paths is None else [str(path) for path in paths])
        self._register(CORE, builtin)

    def _discover(self, paths: list[str] | None) -> None:
        claims: dict[str, dict[tuple[str, str], metadata.EntryPoint]] = {}
        seen: set[str] = set()
        for distribution in metadata.distributions() if paths is None else metadata.distributions(path=paths):
            entries = _entries(distribution)
            if not entries:
                continue
            owner = (distribution.metadata["Name"] or "a distribution without a name", distribution.version or "")
            canonical = owner[0].lower().replace("_", "-")
            if canonical in seen:  # an earlier folder of the path wins, as for imports
                continue
            seen.add(canonical)
            for entry in entries:
                claims.setdefault(entry.name, {})[owner] = entry
        for name, owners in sorted(claims.items()):
            self._claim(name, owners)

    def _claim(self, name: str, owners: dict[tuple[str, str], metadata.EntryPoint]) -> None:
        who = " and ".join(f"{distribution} {version}".strip() for distribution, version in sorted(owners))
        [(distribution, version), *others] = owners
        reason = None
        if name == CORE:
            reason = (
                f"{who} claims the plugin name 'core', which is spen-plugins' own; uninstall it or rename its plugin"
            )
            name = f"{CORE} of {who}"  # listed next to the real one
        elif others:
            reason = f"two distributions provide the plugin {name!r}: {who}; uninstall all but one"
            distribution, version = who, ""
        elif not name.isidentifier():
            reason = f"{who} names its plugin {name!r}; a plugin's name has letters, digits and '_' only"
        entry = next(iter(owners.values()))
        self.known[name] = Plugin(name, "refused" if reason else "found", distribution, version, reason, entry.value)
        self._entries[name] = entry

    def load(self, name: str) -> Tables:
        """The tables that a plugin registers, by kind; imports it at the first call.

        Raises:
            PluginError: it is broken or refused, now or at an earlier call.
        """
        plugin = self.known[name]
        if name in self._tables:
            return self._tables[name]
        if plugin.error is not None:
            raise PluginError(plugin.error)
        try:
            with _told(f"{plugin} could not be imported from {plugin.entry!r}"):
                module = self._entries[name].load()
            return self._register(name, module)
        except PluginError as error:
            self.fail(name, str(error))
            raise

    def providers(self, kind: str) -> dict[str, list[str]]:
        """Name -> the plugins that register it, among those that can be imported; errors of the others are recorded."""
        found: dict[str, list[str]] = {}
        for plugin in list(self.known):
            try:
                table = self.load(plugin).get(kind, {})
            except PluginError:
                continue
            for short in table:
                found.setdefault(short, []).append(plugin)
        return found

    def member(self, kind: str, plugin: str, short: str) -> Any:
        """The class or function that a plugin registers under a name; imported at the first call.

        Raises:
            PluginError: it can't be imported, or is of another kind.
        """
        key = (kind, plugin, short)
        if key not in self._members:
            value = named = self.load(plugin)[kind][short]
            what = f"{self.known[plugin]}: {kind} {short!r}"
            if isinstance(named, str):
                module, _, attribute = named.partition(":")
                with _told(f"{what} could not be imported from {named!r}"):
                    value = getattr(importlib.import_module(module), attribute)
            with _told(what):
                KINDS[kind].check(value, what)
            self._members[key] = value
        return self._members[key]

    def fail(self, name: str, reason: str) -> None:
        """Record an error of a loaded plugin."""
        self.known[name] = replace(self.known[name], status="broken", error=reason)

    def _register(self, name: str, module: Any) -> Tables:
        plugin = self.known[name]
        try:
            with _told(str(plugin)):
                self._refuse_bare_hooks(name, module)
                self._manager.register(module, name)
                self._refuse_misspelt(name, module)
                tables = {kind: self._table(name, known) for kind, known in KINDS.items()}
        except PluginError:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        if not any(tables.values()):
            raise PluginError(f"{plugin}: {plugin.entry!r} registers nothing; its hooks may be {_hooks()}")
        error = None if name == CORE else self._refuse_taken(plugin, tables)
        self._tables[name] = {kind: table for kind, table in tables.items() if table}
        self.known[name] = replace(plugin, status="loaded", error=error)
        return self._tables[name]

    def _refuse_taken(self, plugin: Plugin, tables: Tables) -> str | None:
        """Remove commands and figures with a name of the core's; returns a message about them, None without any."""
        errors = []
        for kind in ("command", "figure"):
            taken = [name for name in tables[kind] if name in self._tables[CORE][kind]]
            for name in taken:
                del tables[kind][name]
            if taken:
                names = ", ".join(map(repr, taken))
                errors.append(f"{plugin}: spen has {kind}s of these names itself, so they are refused: {names}")
        return "; ".join(errors) or None

    def _refuse_bare_hooks(self, name: str, module: Any) -> None:
        """Raise for a hook without its marker, which would be ignored silently."""
        for hook in (kind.hook for kind in KINDS.values()):
            function = inspect.getattr_static(module, hook, None)  # not by a __getattr__ of the module's
            if inspect.isfunction(function) and self._manager.parse_hookimpl_opts(module, hook) is None:
                raise PluginError(f"{self.known[name]}: {hook} lacks its marker `@spen_plugins.hookimpl`")

    def _refuse_misspelt(self, name: str, module: Any) -> None:
        """Raise for a marked function that is called as no hook."""
        known = [kind.hook for kind in KINDS.values()]
        for attribute in dir(module):
            options = self._manager.parse_hookimpl_opts(module, attribute)
            hook = attribute if options is None else options.get("specname") or attribute
            if options is not None and hook not in known and not options.get("optionalhook"):
                near = did_you_mean(hook, known)
                raise PluginError(f"{self.known[name]}: there is no hook {hook!r}.{near} Hooks: {_hooks()}")

    def _table(self, name: str, kind: Kind) -> Table:
        """The checked result of one hook of a plugin."""
        table: Table = {}
        for implementation in getattr(self._manager.hook, kind.hook).get_hookimpls():
            if implementation.plugin_name != name:
                continue
            entries = implementation.function()
            where = f"{self.known[name]}: {kind.hook}"
            if not isinstance(entries, Mapping):
                raise PluginError(f"{where} returned {entries!r}; expected a table of names and {kind.plural}")
            for short, value in entries.items():
                if not (isinstance(short, str) and short.isidentifier()):
                    raise PluginError(f"{where}: {short!r} is not a name (letters, digits and '_')")
                if not (kind.holds(value) or (isinstance(value, str) and value.count(":") == 1)):
                    raise PluginError(f"{where}: {short!r} is {value!r}; expected {kind.expected}")
            table.update(entries)
        return table


def _entries(distribution: metadata.Distribution) -> list[metadata.EntryPoint]:
    """Our entry points of a distribution; none if its metadata can't be read (no plugin can be imported then)."""
    try:
        return list(distribution.entry_points.select(group=GROUP))
    except Exception:
        return []


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Inside, whatever a plugin's code raises is a PluginError: it disturbs no other. Ctrl-C still interrupts."""
    try:
        yield
    except (PluginError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a SystemExit too: it must not end the program
        raise PluginError(f"{what}: {said(error)}") from error


def said(error: BaseException) -> str:
    """An exception in one line, with its type."""
    return f"{type(error).__name__}: {error}"


def _hooks() -> str:
    return ", ".join(kind.hook for kind in KINDS.values())
