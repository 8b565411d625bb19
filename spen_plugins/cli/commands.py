"""The commands of `spen` and the figures of `spen plot`: the core's and those of plugins, registered by hooks."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from spen_plugins import builtin
from spen_plugins.cli.common import Command, Group, make_app, report_errors, say, spell_command
from spen_plugins.errors import PluginError, did_you_mean, visible
from spen_plugins.registry.kinds import KINDS

if TYPE_CHECKING:
    from spen_plugins.registry.host import PluginHost

ELSEWHERE = {"annotate": "spen-spacy", "cost-net": "spen-infnet", "package": "spen-spacy"}
"""Commands in the docs -> the distribution that provides them."""
FIGURES = {
    "denoise": "spen-images",
    "game": "spen-infnet",
    "gbi": "spen-e2e",
    "gradients": "spen-seal",
    "hessian": "spen-implicit",
    "masks": "spen-images",
    "trajectory": "spen-e2e",
}
"""Figures in the docs -> the distribution that provides them."""


PANELS = {
    "Use a run": ("predict", "evaluate", "score", "calibrate", "decode"),
    "Compare and search": ("compare", "report", "plot", "sweep"),
    "Train": ("together",),
    "Data, configs and plugins": ("data", "configs", "plugins", "describe"),
}
"""Groups of the core's commands in the help, in this order."""


class Commands(Group):
    """The core's commands, imported when used, and those of plugins, searched for if a name is not the core's."""

    kind, program = "command", "spen"
    elsewhere: Mapping[str, str] = ELSEWHERE
    panels: Mapping[str, Sequence[str]] = PANELS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        table = getattr(builtin, KINDS[self.kind].hook)()
        self._core = {spell_command(name): target for name, target in table.items()}

    @cached_property
    def host(self) -> PluginHost:
        """The plugin host; plugins are searched once."""
        from spen_plugins.registry.host import PluginHost

        return PluginHost()

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The core's commands in order, then those of importable plugins."""
        return [*self._core, *sorted(set(map(spell_command, self.host.providers(self.kind))) - self._core.keys())]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        """A command by its typed name; an unknown name ends the program with an error."""
        if cmd_name in self._core:
            module, _, attribute = self._core[cmd_name].partition(":")
            command = _make_command(cmd_name, getattr(importlib.import_module(module), attribute))
            command.rich_help_panel = next((panel for panel, names in self.panels.items() if cmd_name in names), None)
            return command
        plugins = self.host.providers(self.kind).get(cmd_name.replace("-", "_"), [])
        if plugins:
            return PluginCommand(self.host, self.kind, plugins, cmd_name)
        return _fail(
            self._describe_missing(cmd_name) if cmd_name in self.elsewhere else self._describe_unknown(ctx, cmd_name)
        )

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:
        """Write the help, and errors of plugins to stderr."""
        super().format_help(ctx, formatter)
        for note in self._list_notes():
            say(note)

    def _describe_missing(self, name: str) -> str:
        """The error for a command whose plugin is broken or not installed."""
        distribution = self.elsewhere[name]
        plugin = self.host.plugins.get(distribution.removeprefix("spen-"))
        if plugin is not None and plugin.error is not None:
            return plugin.error
        command = f"`{self.program} {name}`"
        return f"{command} comes with the plugin {distribution}, which is not installed: pip install {distribution}"

    def _describe_unknown(self, ctx: typer.Context, name: str) -> str:
        suggestion = did_you_mean(name, [*self.list_commands(ctx), *self.elsewhere])
        return "\n".join(
            [
                f"unknown {self.kind} {name!r}.{suggestion} `{self.program} --help` lists all {self.kind}s",
                *self._list_notes(),
            ]
        )

    def _list_notes(self) -> list[str]:
        return [f"note: {plugin.error}" for plugin in self.host.plugins.values() if plugin.error is not None]


class Figures(Commands):
    """The figures of `spen plot`."""

    kind, program = "figure", "spen plot"
    elsewhere = FIGURES
    panels: Mapping[str, Sequence[str]] = {}


class PluginCommand(Command):
    """A command of a plugin, imported when the command or its help runs."""

    def __init__(self, host: PluginHost, kind: str, plugins: Sequence[str], name: str) -> None:
        self._host, self._kind, self._plugins, self._registered_name = host, kind, plugins, name.replace("-", "_")
        super().__init__(name, help=" ".join(map(self._summarise, plugins)), rich_help_panel="From plugins")

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the imported command."""
        return report_errors(self._import_command)().make_context(info_name, args, parent, **extra)

    def _import_command(self) -> Any:
        if len(self._plugins) > 1:
            providers = " and ".join(str(self._host.plugins[plugin]) for plugin in self._plugins)
            raise PluginError(f"{self._kind} {self.name!r} is provided by {providers}; uninstall all but one")
        return _make_command(str(self.name), self._host.member(self._kind, self._plugins[0], self._registered_name))

    def _summarise(self, plugin: str) -> str:
        target = self._host.load(plugin)[self._kind][self._registered_name]
        return visible(f"{read_docstring(target)} ({self._host.plugins[plugin].distribution})".strip())


def read_docstring(target: Callable[..., Any] | str) -> str:
    """The first line of a function's docstring; "" without a docstring or source.

    For `"module:function"`, it is read from the source without importing it.
    """
    if not isinstance(target, str):
        return (target.__doc__ or "").strip().partition("\n")[0]
    module, _, function = target.partition(":")
    try:
        spec = importlib.util.find_spec(module)
        tree = ast.parse(spec.loader.get_source(module))  # type: ignore[union-attr]
    except Exception:  # running the command reports the error
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def _make_command(name: str, value: Any) -> Any:
    """The click command of a function or of an application with subcommands; it reports errors."""
    if not isinstance(value, typer.Typer):
        function, value = value, make_app()
        value.command(name)(function)
    command = typer.main.get_command(value)
    command.name, command.help = name, visible(command.help or "")
    command.invoke = report_errors(command.invoke)  # so that an application's subcommands report errors, too
    return command


@report_errors
def _fail(reason: str) -> NoReturn:
    raise PluginError(reason)
