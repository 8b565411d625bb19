"""Shared parts of the commands: arguments, error messages with exit status, output lines, columns."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from spen_plugins.errors import ConfigError, SpenError, say, visible
from spen_plugins.files import is_stream, to_json, writing

F = TypeVar("F", bound=Callable[..., Any])

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


OUTPUT = "standard output"


class _Output(io.TextIOWrapper):
    """Standard output whose errors name it."""

    replaced: io.TextIOWrapper

    def write(self, text: str) -> int:
        with _named():
            return super().write(text)

    def flush(self) -> None:
        with _named():
            super().flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def run_program(application: typer.Typer) -> NoReturn:
    """Run an application and end the process; also reports errors outside its commands, and of standard output."""
    _prepare_streams()
    try:
        try:
            application()
        finally:
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        status = _report(error)
        if status is None:
            raise
        sys.exit(status)
    raise AssertionError("an application ends its process")


def _prepare_streams() -> None:
    """Write UTF-8, as in files, and the bytes of file names as they are; let a closed stream fail when it is used."""
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:  # its number would go to the next file that is opened
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), "r" if name == "stdin" else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    output = sys.stdout
    if not isinstance(output, io.TextIOWrapper):  # a caller in Python collects it
        return
    output.flush()
    lines, through = output.line_buffering, output.write_through
    sys.stdout = _Output(output.buffer, "utf-8", "surrogateescape", line_buffering=lines, write_through=through)
    sys.stdout.replaced = output  # without a reference, it would close the buffer


def guarded(command: F) -> F:
    """The command with errors of users and of the system reported as one message and an exit status (1, 2 or 130)."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            status = _report(error)
            if status is None:
                raise
            raise typer.Exit(status) from None

    return run  # type: ignore[return-value]


def _report(error: BaseException) -> int | None:
    """Print the message of an error and return the exit status; None for a mistake of ours or a plugin's."""
    if isinstance(error, SpenError):
        _say_error(str(error))
        return error.exit_status
    if isinstance(error, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        return INTERRUPTED
    if any(mark in str(error) for mark in _NO_MEMORY) or isinstance(error, MemoryError):
        reason = (str(error).strip() or "no reason given").splitlines()[-1]
        _say_error(f"memory ran out ({reason}); raise its limit (ulimit -v), or give the command less at once")
    elif isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename == OUTPUT:  # what is left of it is of no use at the process's end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        if error.filename != OUTPUT or error.errno != errno.EPIPE:  # `| head -1`
            _say_error(where + reason)
    else:
        return None
    return SpenError.exit_status


_NO_MEMORY = ("allocate memory", "bad_alloc", "failed to map segment", "can't start new thread")
"""Parts of messages of the system and its libraries."""


def _say_error(text: str) -> None:
    """Print an error; of one that quotes what is very long, the beginning and the end."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    say(text)


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
    from spen_plugins.data.catalogue import locate

    for file in files:
        if file is not None and out.resolve() == locate(str(file)).resolve():
            raise ConfigError(f"{out} is the file that is read, which the output would replace; expected another name")


ColumnWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        show_default=False,
        help="The file's columns and encoding, as spen-run's arguments name them: text=, labels=, separator=, drop=, "
        "encoding=.",
    ),
]


@contextmanager
def columns_given(words: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Values of `key=value` words for columns, by key, as `spen-run` parses them; inside, files of text are in the
    `encoding=` that they name."""
    from spen_plugins.config.evaluation import parse_arguments, parse_value
    from spen_plugins.data.encodings import files_encoded

    keys = {key: parse_value(text) for key, text in parse_arguments(words or []).items()}
    with files_encoded(keys.pop("encoding", None)):
        yield keys


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
    """Rows as aligned lines; the last column is not padded, and control characters are visible."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
