"""Hooks of mkdocs.yml: the reference of commands, configs and types, written from the program."""

from __future__ import annotations

import html
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from spen_plugins.cli import main, run
from spen_plugins.config import shipped
from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.config.experiment import keys, parse_experiment
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from spen_plugins.settings.fields import Field, fields


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Adds the pages below `reference/`."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> dict[str, str]:
    """Name -> markdown of each page: `commands`, `configs` and one for each kind of component."""
    registry = Registry()
    kind_pages = {kind: write_types(registry, kind) for kind in KINDS if KINDS[kind].base is not None}
    return {"commands": write_commands(), "configs": write_configs(registry), **kind_pages}


def write_commands() -> str:
    """Every command with its help, arguments and options."""
    intro = "# Commands\n\nThe help of every command, as `--help` prints it."
    programs = {"spen-run": run.app, "spen": main.app}
    parts = [part for name, app in programs.items() for part in _write_command(typer.main.get_command(app), name, None)]
    return "\n\n".join([intro, *parts]) + "\n"


def _write_command(command: Any, name: str, parent: Any) -> Iterator[str]:
    with command.make_context(name, [], parent, resilient_parsing=True) as context:
        command = context.command  # a plugin's command is imported here
        records = [p.get_help_record(context) for p in command.get_params(context) if p.name != "help"]
        rows = [(f"`{record[0].strip()}`", _format_cell(record[1])) for record in records if record is not None]
        text, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
        yield f"## `{context.command_path}`"
        yield _escape(text)
        yield f"```console\n$ {example}\n```" if example else ""
        yield _make_table(("argument or option", ""), rows) if rows else ""
        for sub in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from _write_command(command.get_command(context, sub), sub, context)


def write_configs(registry: Registry) -> str:
    """Every shipped config: its arguments, and the keys that result from their defaults."""
    intro = (
        "# Configs and keys\n\nEach shipped config has *arguments*, which choose data, method and encoder, and *keys*. "
        "The keys below are those of the default arguments; `spen-run --arguments roles method=nce` lists others."
    )
    parts = [intro]
    for name, summary in shipped.summaries().items():
        path = shipped.find(Path(name))
        arguments = [(f"`{p.name}`", _format_code(p.default), _format_cell(p.doc)) for p in parameters(path)]
        key_fields = keys(parse_experiment(evaluate(path), str(path), registry))
        parts += [f"## `{name}`", _escape(summary), _make_table(("argument", "default", ""), arguments)]
        parts += ["Keys by default:", _make_table(("key", "value", "type", ""), map(_make_row, key_fields))]
    return "\n\n".join(parts) + "\n"


def write_types(registry: Registry, kind: str) -> str:
    """Every type of a kind with its keys."""
    parts = [f"# Types of `{kind}`", f"Values of `{kind}.type` in a config, and their keys."]
    for name in registry.names(kind):
        cls, plugin = registry.resolve(kind, name), registry.plugin(name)
        rows = list(map(_make_row, fields(cls.Config, nested=True)))
        parts += [f"## `{name}`", _escape(inspect.cleandoc(cls.__doc__ or "")), f"From {plugin.distribution}."]
        parts += [_make_table(("key", "default", "type", ""), rows)] if rows else ["No keys."]
    return "\n\n".join(parts) + "\n"


def _make_row(field: Field) -> tuple[str, ...]:
    return f"`{field.name}`", _format_code(field.default), _format_cell(field.type), _format_cell(field.doc)


def _make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)])


def _format_code(default: str | None) -> str:
    return "required" if default is None else f"<code>{_escape(default)}</code>"


def _format_cell(text: str) -> str:
    return _escape(" ".join(text.split()))


def _escape(text: str) -> str:
    """Escapes text so that Markdown shows it unchanged."""
    return html.escape(text.strip(), quote=False).replace("|", "&#124;").replace("*", "&#42;").replace("_", "&#95;")
