"""Shared parts of the commands: arguments, error messages with exit status, output lines, columns."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from spen_plugins.errors import ConfigError, SpenError
from spen_plugins.files import is_stream, to_json, writing

F = TypeVar("F", bound=Callable[..., Any])

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="Run folders, or folders of one run a seed, or of several methods; label=folder names one.",
    ),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        "--baseline",
        metavar="LABEL",
        help="The baseline of paired differences, the first RUN by default; may be given more than once.",
    ),
]


class Part(StrEnum):
    """A part of the data on which runs were scored."""

    test = "test"
    validation = "validation"


INTERRUPTED = 130

LONGEST = 8000
"""Characters of an error message."""


def app(help_text: str, group: type[TyperGroup] = TyperGroup, completion: bool = False) -> typer.Typer:
    """A typer application, perhaps with `--install-completion`; unexpected errors show Python's plain traceback."""
    settings = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(
        cls=group, help=help_text, pretty_exceptions_enable=False, add_completion=completion, context_settings=settings
    )


def guarded(command: F) -> F:
    """The command with user errors reported as one message on stderr and an exit status (1, 2 or 130).

    An `OSError` with the name of a file (one that may not be read, a loop of links, a name too long) is one, too.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SpenError as error:
            _say_error(str(error))
            raise typer.Exit(error.exit_status) from None
        except OSError as error:
            if error.filename is None:
                raise
            _say_error(f"{error.filename}: {error.strerror}")
            raise typer.Exit(SpenError.exit_status) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run  # type: ignore[return-value]


def _say_error(text: str) -> None:
    """Print an error; of one that quotes what is very long, the beginning and the end."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(text, err=True)


def typed(name: str) -> str:
    """The command-line spelling of a command's registered name: `cost-net`."""
    return name.replace("_", "-")


def show_version(wanted: bool) -> None:
    """Callback of `--version`."""
    if wanted:
        from spen_plugins import __version__

        typer.echo(f"spen-plugins {__version__}")
        raise typer.Exit


RUN_FILES = (
    "config.json",
    "environment.json",
    "vocabulary.json",
    "weights.safetensors",
    "examples.safetensors",
    "metrics.json",
    "calibration.json",
    "history.jsonl",
    "times.jsonl",
)
"""Files of a run folder (`runs.folder`)."""


def writable_file(out: Path | None) -> Path | None:
    """Callback of `--out FILE`, whose folders will be created: refuses, before any work, what can't be written, and the
    files of a run."""
    if out is None or is_stream(out):
        return out
    try:
        if out.is_dir():
            raise typer.BadParameter(f"{out} is a folder; expected a file")
        if out.name in RUN_FILES and (out.parent / "config.json").is_file():
            raise typer.BadParameter(f"{out} is a file of the run in {out.parent}; expected another name")
        above = next(folder for folder in out.absolute().parents if folder.exists())
        if not above.is_dir():
            raise typer.BadParameter(f"{out} can't be written: {above} is no folder")
        if not os.access(above, os.W_OK | os.X_OK):
            raise typer.BadParameter(f"{out} can't be written: the folder {above} is read-only")
    except OSError as error:  # a folder that may not be looked into
        raise typer.BadParameter(f"{out} can't be written: {error.strerror}") from error
    return out


def check_kept(out: Path | None, *files: Path | None) -> None:
    """Raise a ConfigError if an output would take the place of a file that is read."""
    if out is None or is_stream(out):
        return
    from spen_plugins.datasets import locate

    for file in files:
        if file is not None and out.resolve() == locate(str(file)).resolve():
            raise ConfigError(f"{out} is the file that is read, which the output would replace; expected another name")


Out = Annotated[Path | None, typer.Option(callback=writable_file, help="Output file (default: standard output).")]


def write_lines(values: Iterable[Any], out: Path | None, indent: int | None = None) -> None:
    """Write JSON values, one per line (unless indented), to a file, atomically, or to stdout as they come."""
    lines = (to_json(value, indent) for value in values)
    if out is None:
        for line in lines:
            typer.echo(line)
        return
    with writing(out, parents=True) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def columns(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Rows as aligned lines; the last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
