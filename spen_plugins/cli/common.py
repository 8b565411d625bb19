"""Shared parts of the commands: arguments, error messages with exit status, output lines, columns."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from spen_plugins.errors import ConfigError, SpenError, say, visible
from spen_plugins.files import is_stream, to_json, writing

F = TypeVar("F", bound=Callable[..., Any])

Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="LABEL",
        help="Baseline of paired differences (default: the first RUN); can be repeated.",
    ),
]


INTERRUPTED = 130


class _PlainFlags:
    """A command whose help shows no type next to a flag."""

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The parameters; flags have no metavariable."""
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_bool_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with subcommands."""


class Application(typer.Typer):
    """A typer application whose commands have the class `Command`."""

    def command(self, name: str | None = None, *, cls: Any = Command, **settings: Any) -> Any:
        """`typer.Typer.command` with the class `Command`."""
        return super().command(name, cls=cls, **settings)


def make_app(group: type[Group] = Group, completion: bool = False) -> Application:
    """A typer application; `completion` adds `--install-completion`. Unexpected errors show a plain traceback."""
    settings = {"help_option_names": ["-h", "--help"]}
    return Application(cls=group, pretty_exceptions_enable=False, add_completion=completion, context_settings=settings)


def run_program(application: typer.Typer) -> NoReturn:
    """Run an application and end the process; also report errors outside its commands.

    Output is UTF-8, like files; file names keep their bytes.
    """
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    warnings.formatwarning = lambda message, *_: f"warning: {visible(str(message))}\n"
    try:
        report_errors(_run_and_flush)(application)
    except typer.Exit as error:
        sys.exit(error.exit_code)
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # already reported; without this, Python reports it again when the process ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise AssertionError("an application ends its process")


def _run_and_flush(application: typer.Typer) -> None:
    try:
        application()
    except SystemExit as error:
        if not error.code:  # output that can't be written is an error
            sys.stdout.flush()
        raise


def report_errors(command: F) -> F:
    """The command, with user and system errors reported as one message and an exit status (1, 2 or 130)."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            status = _report_error(error)
            if status is None:
                raise
            raise typer.Exit(status) from None

    return run  # type: ignore[return-value]


def _report_error(error: BaseException) -> int | None:
    """Print an error's message and return the exit status; None for a bug, ours or a plugin's."""
    if isinstance(error, SpenError):
        _say_error(str(error))
        return error.exit_status
    if isinstance(error, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        return INTERRUPTED
    if any(mark in str(error) for mark in _MEMORY_MESSAGES) or isinstance(error, MemoryError):
        reason = (str(error).strip() or "no reason given").splitlines()[-1]
        _say_error(f"ran out of memory ({reason}); raise the limit (ulimit -v), or give the command less data at once")
    elif isinstance(error, OSError):
        if error.errno != errno.EPIPE:  # `| head -1`
            prefix = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
            _say_error(prefix + (error.strerror or str(error)))
    else:
        return None
    return SpenError.exit_status


_MEMORY_MESSAGES = ("allocate memory", "bad_alloc", "failed to map segment", "can't start new thread")
"""Parts of out-of-memory messages of the system and its libraries."""


def _say_error(text: str) -> None:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    say(text)


def say_all(notes: Iterable[str]) -> None:
    """Print each note to standard error."""
    for note in notes:
        say(note)


def spell_command(name: str) -> str:
    """The command-line spelling of a command's registered name: `cost-net`."""
    return name.replace("_", "-")


def show_version(wanted: bool) -> None:
    """Callback of `--version`."""
    if wanted:
        from spen_plugins import __version__

        typer.echo(f"spen-plugins {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")]


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
    """Callback of `--out FILE`, whose folders will be created. Before any work, it rejects files of a run and paths
    that can't be written."""
    if out is None or is_stream(out):
        return out
    if out.name in RUN_FILES and (out.parent / "config.json").is_file():
        raise typer.BadParameter(f"{out} is a file of the run in {out.parent}; expected another name")
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    if out.is_dir() or not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise typer.BadParameter(f"{out} can't be written; expected a file in a writable folder")
    return out


def check_kept(out: Path | None, *files: Path | None) -> None:
    """Raise a ConfigError if an output would overwrite an input file."""
    if out is None or is_stream(out):
        return
    from spen_plugins.data.catalogue import locate

    for file in files:
        if file is not None and out.resolve() == locate(str(file)).resolve():
            raise ConfigError(f"{out} is an input file, which the output would overwrite; expected another name")


ColumnWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        show_default=False,
        help="How to read the file, as for spen-run: text=, labels=, separator=, drop=, header=; for tagged words "
        "words=, tags=, columns.NAME=; encoding=.",
    ),
]


@contextmanager
def read_columns(words: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Values of `key=value` words for columns, by key, as `spen-run` parses them (also `task.words=1`). Inside the
    context, text files are read in the given `encoding=`."""
    from spen_plugins.config.evaluation import parse_arguments, parse_value
    from spen_plugins.data.text import read_in_encoding

    arguments = parse_arguments(word.removeprefix("task.") for word in words or [])
    keys = {key: parse_value(text) for key, text in arguments.items()}
    with read_in_encoding(keys.pop("encoding", None)):
        yield keys


Out = Annotated[Path | None, typer.Option(callback=writable_file, help="Output file (default: standard output).")]


def write_lines(values: Iterable[Any], out: Path | None, indent: int | None = None) -> None:
    """Write JSON values, one per line unless indented, to a file (atomically) or one by one to standard output."""
    lines = (to_json(value, indent) for value in values)
    if out is None:
        for line in lines:
            typer.echo(line)
        return
    with writing(out, parents=True) as temporary_path, temporary_path.open("a", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def columns(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Rows as aligned lines; the last column is not padded, and control characters are made visible."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
