"""`spen plugins`, `spen describe`, `spen configs`: plugins, the settings of their components, and shipped configs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spen_plugins.cli.common import columns, make_app, say, spell_command
from spen_plugins.config import shipped
from spen_plugins.errors import visible

if TYPE_CHECKING:
    from spen_plugins.registry import Registry
    from spen_plugins.settings.fields import Field

Check = Annotated[bool, typer.Option("--check", help="Import every plugin and every class it registers.")]
Kind = Annotated[
    str, typer.Argument(show_default=False, help="A kind: a config key (energy, trainer, …), command or model.")
]
Type = Annotated[str | None, typer.Argument(show_default=False, help="A type of that kind (default: list all).")]
app = make_app()

Name = Annotated[str, typer.Argument(show_default=False, help="Name of a shipped config, as listed by `spen configs`.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="Target folder; created if missing.")]


def list_plugins(check: Check = False) -> None:
    """List the installed plugins; with --check, import them all and report errors (exit status 2).

    Example: spen plugins --check
    """
    from spen_plugins.registry import Registry

    registry = Registry()
    plugins = registry.check() if check else registry.plugins()
    rows = [[p.name, p.status, f"{p.distribution} {p.version}", p.entry] for p in plugins]
    for plugin, line in zip(plugins, columns(rows), strict=True):
        typer.echo(line)
        for error in (plugin.error or "").splitlines():
            typer.echo(f"    {visible(error)}")
    if any(plugin.error is not None for plugin in plugins):
        raise typer.Exit(2)


def describe(kind: Kind, type_name: Type = None) -> None:
    """Describe a type and its keys; for a command or a model, its function.

    Example: spen describe energy seal.labels
    """
    from spen_plugins.registry import Registry

    registry = Registry()
    if type_name is None:
        typer.echo("\n".join(_list_components(registry, kind)))
        for plugin in registry.plugins():
            if plugin.error is not None:
                say(f"note: {plugin.error}")
    else:
        typer.echo(visible("\n".join(_describe_type(registry, kind, type_name))))


def _list_components(registry: Registry, kind: str) -> list[str]:
    """One line per type: its name and the first line of its docstring."""
    from spen_plugins.errors import PluginError

    rows = []
    for name in registry.names(kind):
        try:
            text = _read_docstring(registry.resolve(kind, name)).partition("\n")[0]
        except PluginError as error:
            text = f"broken: {error}"
        rows.append([name, text])
    return columns(rows) or [f"no {kind} is installed"]


def _describe_type(registry: Registry, kind: str, type_name: str) -> list[str]:
    from spen_plugins.settings.fields import fields

    cls = registry.resolve(kind, type_name)
    plugin = registry.plugin(type_name)
    lines = [f"{kind} {type_name}", ""]
    if text := _read_docstring(cls):
        lines += [*text.splitlines(), ""]
    if not isinstance(cls, type):  # a function
        if kind == "command":
            lines.append(f"its options: spen {spell_command(type_name.rpartition('.')[2])} --help")
        return [*lines, f"from {plugin.distribution} {plugin.version}"]
    lines.append(f"class: {cls.__module__}:{cls.__qualname__}, from {plugin.distribution} {plugin.version}")
    lines += _list_facts(kind, cls)
    rows = [
        (f, [f.name, f.type, "required" if f.default is None else f"= {f.default}"])
        for f in _list_leaves(fields(cls.Config, nested=True))
    ]
    lines += ["", "fields:" if rows else "fields: none"]
    for (field, _), line in zip(rows, columns([row for _, row in rows], "  "), strict=True):
        lines += [line, *(f"      {text}" for text in field.doc.splitlines())]
    return lines


def _read_docstring(value: Any) -> str:
    """The docstring of a class or function, or the help of an application."""
    return inspect.cleandoc((value.info.help if isinstance(value, typer.Typer) else value.__doc__) or "")


def _list_leaves(fields: Iterable[Field]) -> list[Field]:
    """The fields; a table whose fields are listed, too, is shown without its JSON default."""
    fields = list(fields)
    parents = {f.name.rpartition(".")[0] for f in fields}
    return [replace(f, default="{…}") if f.name in parents and f.default not in (None, "null") else f for f in fields]


def _list_facts(kind: str, cls: type) -> list[str]:
    """Requirements of a type besides its own keys."""
    lines = []
    if getattr(cls, "uses_features", False):
        lines.append("features: requires a feature network, the config's 'features' or its own")
    if getattr(cls, "uses_energy", False):
        lines.append("energy: predicts with the energy")
    for part, part_kind in getattr(cls, "parts", {}).items():
        description = f"tables of other components by name, of kind {part_kind[:-1]}" if part_kind[-1] == "*" else None
        lines.append(f"{part}: may hold {description or f'the table of another component, of kind {part_kind}'}")
    if getattr(cls, "needs", ()):
        lines.append(f"needs: {', '.join(cls.needs)}")
    if kind == "task" and hasattr(cls, "selection"):
        lines.append(f"selection score: {cls.selection}")
    return lines


@app.callback(invoke_without_command=True)
def configs(context: typer.Context) -> None:
    """List the configs that ship with the package, or copy one to change it.

    `spen-run NAME` trains a config; `spen-run --arguments NAME` lists what can be set.

    Example: spen configs copy roles mine
    """
    if context.invoked_subcommand is None:
        typer.echo("\n".join(columns([[name, text] for name, text in shipped.summaries().items()])))


@app.command()
def copy(name: Name, folder: Folder) -> None:
    """Copy a shipped config and the libraries it imports to a folder, to change it there."""
    for path in shipped.copy(name, folder):
        typer.echo(str(path))
