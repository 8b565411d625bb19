"""Errors for users, with the exit status of the command line.

Exit status: 1 the run failed, 2 the config, the data or a plugin is wrong (reported before training starts), 130
interrupted.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LONGEST = 500
"""Most characters of a file's content that a message shows."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and line breaks


class SpenError(Exception):
    """Base of errors that are shown to users as a message, without a traceback."""

    exit_status = 1


class RunError(SpenError):
    """A run failed after its start, a file of a run is missing or damaged, a disk is full, or a download failed."""


class NonFiniteLoss(RunError):
    """A loss, a gradient norm or a weight was NaN or infinite; the message says in which phase, epoch and batch."""


class Interrupted(RunError):
    """The user stopped the run; everything is saved and the message says how to resume."""

    exit_status = 130


class ConfigError(SpenError):
    """An invalid config, argument or option; the message says what was found and what was expected."""

    exit_status = 2


class PluginError(SpenError):
    """A plugin is missing, broken, or claims a name that is taken."""

    exit_status = 2


class DataError(SpenError):
    """A data file is not what its reader expects.

    Args:
        path: the file.
        line: the line, counted from 1, or None without a specific line.
        found: the content found.
        expected: the content expected.
    """

    exit_status = 2

    def __init__(self, path: object, line: int | None, found: str, expected: str) -> None:
        self.path, self.line, self.found, self.expected = str(path), line, found, expected
        place = f"{path}:{line}" if line is not None else str(path)
        excerpt = found if len(found) <= LONGEST else f"{found[:LONGEST]}…"
        super().__init__(f"{place}: found {excerpt}; expected {expected}")


@contextmanager
def explain_missing(message: str) -> Iterator[None]:
    """Raises a ConfigError with this message, which says what to install, if an import inside fails."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(message) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' Did you mean 'x'?' if one of `known` is similar, or equal but for upper case, else ''."""
    names = list(known)
    same = [known_name for known_name in names if known_name.lower() == name.lower()]
    matches = same or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def visible(text: str) -> str:
    r"""The text with control characters as Python writes them: a terminal would obey them (`\x1b[2J` clears it)."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def say(text: str) -> None:
    """Print a message to standard error."""
    import click

    click.echo(visible(text), err=True)


@contextmanager
def translate_plugin_errors(prefix: str) -> Iterator[None]:
    """Raises a PluginError that names the line, in place of any error of a plugin's code inside, so that no other
    plugin is disturbed."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{prefix}{_find_line(error)}: {type(error).__name__}: {error}") from error


def _find_line(error: BaseException) -> str:
    """The plugin's innermost line in an error's traceback, ' (file, line 3)'; '' if there is none."""
    packages = {"importlib", "pluggy", "pydantic", "spen_plugins", "torch"}
    lines = [
        f" ({frame.f_code.co_filename}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in packages
    ]
    return lines[-1] if lines else ""
