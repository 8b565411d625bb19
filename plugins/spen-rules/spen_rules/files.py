"""Rules that a user writes in a Python file: functions, lists of phrases and patterns that vote on labels or tags."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import spen_plugins as sp
from spen_rules.finding import PatternFinder, PhraseFinder

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """A rule: it votes for the labels or types `names`, or against them, on what `find` returns.

    `find` takes a sentence's words, and returns spans (start, end), or a text, and returns a truth value.
    """

    title: str
    names: tuple[str, ...]
    against: bool
    weight: float
    find: Callable[[Any], Any]
    line: int


@dataclass
class RuleFile:
    """The rules of a file, in its order.

    Attributes:
        path: the file.
        rest: name and weight of `otherwise`; None if the file doesn't call it.
        checksums: sha256 of the file, of the modules beside it that it imports, and of its lists of phrases.
    """

    path: Path
    rules: list[Rule] = field(default_factory=list)
    rest: tuple[str, float] | None = None
    checksums: dict[str, str] = field(default_factory=dict)


_current: RuleFile | None = None  # while a file is read


def rule(*names: str, against: str | Sequence[str] = (), weight: float = 1.0) -> Callable[[F], F]:
    """Decorator: a function that votes for the labels or types `names`, or `against` others.

    Args:
        names: labels of texts, tags of words, or types of spans. A rule for several votes for each of them.
        against: in place of `names`.
        weight: of each vote, as log-odds: 0.5 is weak, 1 usual, 3 nearly certain.
    """
    opposed = (against,) if isinstance(against, str) else tuple(against)
    if bool(names) == bool(opposed) or not all(isinstance(name, str) for name in names):
        wanted = 'expected labels or types, either to vote for, @rule("PER"), or against, @rule(against="PER")'
        raise sp.ConfigError(f"{_place(_find_line())}: {wanted}")

    def decorate(function: F) -> F:
        _add(function.__name__, names or opposed, bool(opposed), weight, function, _find_line())
        return function

    return decorate


def lexicon(name: str, phrases: str | Iterable[str], *, weight: float = 1.0, ignore_case: bool = False) -> None:
    """A rule for `name` on each phrase of a list, found from left to right, the longest one at each place.

    Args:
        name: label, tag or type.
        phrases: the phrases, words separated by blanks; or the name of a file with one phrase per line, from the
            folder of the rules, or `data:…`.
        weight: as of `rule`.
        ignore_case: if true, upper and lower case are the same.

    Raises:
        DataError: the file can't be read, or has no phrase.
    """
    title = f"lexicon {Path(phrases).name if isinstance(phrases, str) else name}"
    listed = _read_phrases(phrases) if isinstance(phrases, str) else [*phrases]
    if not listed:
        raise sp.ConfigError(f"{_place(_find_line())}: lexicon({name!r}) has no phrase; expected at least one")
    finder = PhraseFinder(listed, ignore_case)
    _add(title, (name,), False, weight, finder, _find_line())


def pattern(name: str, regex: str, *, weight: float = 1.0, ignore_case: bool = False) -> None:
    r"""A rule for `name` on each match of a regular expression.

    Args:
        name: label, tag or type.
        regex: searched in a text, or in a sentence's words joined by blanks, where a match that cuts a word is dropped.
        weight: as of `rule`.
        ignore_case: as of `lexicon`.

    Raises:
        ConfigError: the expression is wrong.
    """
    line = _find_line()
    try:
        finder = PatternFinder(re.compile(regex, re.IGNORECASE if ignore_case else 0))
    except re.error as error:
        raise sp.ConfigError(f"{_place(line)}: pattern {regex!r}: {error}") from None
    _add(f"pattern {regex}", (name,), False, weight, finder, line)


def otherwise(name: str, *, weight: float) -> None:
    """A vote for the label, tag or type `name` on texts, or at words, that no rule votes for anything on. By default
    words of sentences with spans then have O, with weight 0.1."""
    if _current is not None:
        _current.rest = (name, weight)


def load_rules(path: Path) -> RuleFile:
    """Run a Python file and collect its rules. Modules beside it can be imported.

    Raises:
        ConfigError: the file raises an error or has no rule.
    """
    collected = RuleFile(path)
    with _collecting(collected):
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "rules", "__file__": str(path)})
        except sp.SpenError:
            raise
        except (Exception, SystemExit) as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = lines[-1] if lines else getattr(error, "lineno", None) or 1  # a syntax error of the file itself
            raise sp.ConfigError(f"{path}, line {line}: {type(error).__name__}: {error}") from error
    if not collected.rules:
        raise sp.ConfigError(f"{path}: found no rule; expected functions with @rule(…), lexicon(…) or pattern(…)")
    return collected


@contextmanager
def _collecting(collected: RuleFile) -> Any:
    """Inside, rules go to `collected`, and modules beside its file can be imported; they are forgotten afterwards, as
    other rules may have others of the same name."""
    global _current
    folder, before, outer = str(collected.path.parent.resolve()), {*sys.modules}, _current
    collected.checksums[str(collected.path)] = sp.sha256(collected.path)
    sys.path.insert(0, folder)
    _current = collected
    try:
        yield
    finally:
        _current = outer
        sys.path.remove(folder)
        for name in {*sys.modules} - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(folder) in Path(file).resolve().parents:
                collected.checksums[file] = sp.sha256(Path(file))
                del sys.modules[name]


def _add(title: str, names: Sequence[str], against: bool, weight: float, find: Callable[[Any], Any], line: int) -> None:
    if not isinstance(weight, int | float) or not 0 < weight < float("inf"):
        raise sp.ConfigError(f"{_place(line)}: found weight {weight!r}; expected a number above 0")
    if _current is not None:
        _current.rules.append(Rule(title, tuple(names), against, float(weight), find, line))


def _find_line() -> int:
    """The line of the rule file that is being run."""
    frame, line = sys._getframe(1), 0
    while frame is not None:
        if _current is not None and frame.f_code.co_filename == str(_current.path):
            line = frame.f_lineno
        frame = frame.f_back
    return line


def _place(line: int) -> str:
    return f"{'rules' if _current is None else _current.path}, line {line}"


def _read_phrases(name: str) -> list[str]:
    folder = Path() if _current is None else _current.path.parent
    place = sp.locate(name) if name.startswith("data:") else folder / name
    if not place.is_file():
        raise sp.ConfigError(
            f"{_place(_find_line())}: found no file {name!r} in {folder}; expected a file of phrases, or a list of "
            f"phrases, [{name!r}]"
        )
    phrases = [line.strip() for line in sp.read_lines(place)]
    if not any(phrases):
        raise sp.DataError(place, None, "no phrase", "one phrase per line")
    if _current is not None:
        _current.checksums[str(place)] = sp.sha256(place)
    return phrases
