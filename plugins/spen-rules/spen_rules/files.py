"""Rules that a user writes in a Python file: functions, lists of phrases and patterns that vote on labels or tags."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import spen_plugins as sp
from spen_rules.finding import PatternFinder, PhraseFinder

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """A rule, which votes for the labels or types `names`, or against them, on what `find` returns.

    `find` takes a sentence's words and returns spans (start, end), or takes a text and returns a truth value.
    """

    title: str
    names: tuple[str, ...]
    is_against: bool
    weight: float
    find: Callable[[Any], Any]
    line: int


@dataclass
class RuleFile:
    """The rules of a file, in order.

    Attributes:
        path: the file.
        default_vote: name and weight of `otherwise`; None if the file doesn't call it.
        checksums: sha256 of the file, of the modules beside it that it imports, and of its lists of phrases.
    """

    path: Path
    rules: list[Rule] = field(default_factory=list)
    default_vote: tuple[str, float] | None = None
    checksums: dict[str, str] = field(default_factory=dict)


_current: RuleFile | None = None  # the rules of the file that is being read


def rule(*names: str, against: str | Sequence[str] = (), weight: float = 1.0) -> Callable[[F], F]:
    """Decorator of a function that votes for the labels or types `names`, or `against` others.

    Args:
        names: labels of texts, tags of words, or types of spans. A rule for several votes for each of them.
        against: labels, tags or types to vote against, in place of `names`.
        weight: of each vote, as log-odds: 0.5 is weak, 1 usual, 3 nearly certain.
    """
    opposed_names = (against,) if isinstance(against, str) else tuple(against)
    if bool(names) == bool(opposed_names) or not all(isinstance(name, str) for name in (*names, *opposed_names)):
        expected = 'expected labels or types, either to vote for, @rule("PER"), or against, @rule(against="PER")'
        raise sp.ConfigError(f"{_describe_place(_find_line())}: {expected}")

    def decorate(function: F) -> F:
        _add(function.__name__, names or opposed_names, bool(opposed_names), weight, function, _find_line())
        return function

    return decorate


def lexicon(name: str, phrases: str | Iterable[str], *, weight: float = 1.0, ignore_case: bool = False) -> None:
    """Adds a rule for `name` on each phrase of a list. Phrases are found from left to right, the longest at each place.

    Args:
        name: label, tag or type.
        phrases: the phrases, words separated by blanks; or the name of a file with one phrase per line, from the
            folder of the rules, or `data:…`.
        weight: as in `rule`.
        ignore_case: if true, upper and lower case are the same.

    Raises:
        DataError: the file can't be read, or has no phrase.
    """
    title = f"lexicon {Path(phrases).name if isinstance(phrases, str) else name}"
    phrase_list = _read_phrases(phrases) if isinstance(phrases, str) else [*phrases]
    if not phrase_list:
        raise sp.ConfigError(f"{_describe_place(_find_line())}: lexicon({name!r}) has no phrase; expected at least one")
    finder = PhraseFinder(phrase_list, ignore_case)
    _add(title, (name,), False, weight, finder, _find_line())


def pattern(name: str, regex: str, *, weight: float = 1.0, ignore_case: bool = False) -> None:
    r"""Adds a rule for `name` on each match of a regular expression.

    Args:
        name: label, tag or type.
        regex: searched in a text, or in a sentence's words joined by blanks, where a match that cuts a word is dropped.
        weight: as in `rule`.
        ignore_case: as in `lexicon`.

    Raises:
        ConfigError: the expression is wrong.
    """
    line = _find_line()
    try:
        finder = PatternFinder(re.compile(regex, re.IGNORECASE if ignore_case else 0))
    except re.error as error:
        raise sp.ConfigError(f"{_describe_place(line)}: pattern {regex!r}: {error}") from None
    _add(f"pattern {regex}", (name,), False, weight, finder, line)


def otherwise(name: str, *, weight: float) -> None:
    """Adds a vote for the label, tag or type `name` on texts, or at words, where no rule votes for anything. Words of
    sentences with spans have O there by default, with weight 0.1."""
    _check_weight(weight, _find_line(), allows_zero=True)
    if _current is not None:
        _current.default_vote = (name, weight)


def load_rules(path: Path) -> RuleFile:
    """Runs a Python file and collects its rules. Modules beside it can be imported.

    Raises:
        ConfigError: the file raises an error or has no rule.
    """
    rule_file = RuleFile(path)
    with _collect_rules(rule_file):
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "rules", "__file__": str(path)})
        except sp.SpenError:
            raise
        except (Exception, SystemExit) as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = lines[-1] if lines else getattr(error, "lineno", None) or 1  # a syntax error of the file itself
            raise sp.ConfigError(f"{path}, line {line}: {type(error).__name__}: {error}") from error
    if not rule_file.rules:
        raise sp.ConfigError(f"{path}: found no rule; expected functions with @rule(…), lexicon(…) or pattern(…)")
    return rule_file


@contextmanager
def _collect_rules(rule_file: RuleFile) -> Iterator[None]:
    """Adds rules to `rule_file` inside the block, where modules beside its file can be imported. They are unloaded
    afterwards, as other rules may import others of the same name."""
    global _current
    folder, loaded, previous = str(rule_file.path.parent.resolve()), {*sys.modules}, _current
    rule_file.checksums[str(rule_file.path)] = sp.sha256(rule_file.path)
    sys.path.insert(0, folder)
    _current = rule_file
    try:
        yield
    finally:
        _current = previous
        sys.path.remove(folder)
        for name in {*sys.modules} - loaded:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(folder) in Path(file).resolve().parents:
                rule_file.checksums[file] = sp.sha256(Path(file))
                del sys.modules[name]


def _add(
    title: str, names: Sequence[str], is_against: bool, weight: float, find: Callable[[Any], Any], line: int
) -> None:
    _check_weight(weight, line)
    if _current is not None:
        _current.rules.append(Rule(title, tuple(names), is_against, float(weight), find, line))


def _check_weight(weight: float, line: int, allows_zero: bool = False) -> None:
    is_number = isinstance(weight, int | float) and 0 <= weight < float("inf")
    if not is_number or (weight == 0 and not allows_zero):
        expected = "0 or a number above 0" if allows_zero else "a number above 0"
        raise sp.ConfigError(f"{_describe_place(line)}: found weight {weight!r}; expected {expected}")


def _find_line() -> int:
    """The line of the rule file that is being run."""
    frame, line = sys._getframe(1), 0
    while frame is not None:
        if _current is not None and frame.f_code.co_filename == str(_current.path):
            line = frame.f_lineno
        frame = frame.f_back
    return line


def _describe_place(line: int) -> str:
    return f"{'rules' if _current is None else _current.path}, line {line}"


def _read_phrases(name: str) -> list[str]:
    folder = Path() if _current is None else _current.path.parent
    path = sp.locate(name) if name.startswith("data:") else folder / name
    if not path.is_file():
        raise sp.ConfigError(
            f"{_describe_place(_find_line())}: found no file {name!r} in {folder}; expected a file of phrases, or a "
            f"list of phrases, [{name!r}]"
        )
    phrases = [line.strip() for line in sp.read_lines(path)]
    if not any(phrases):
        raise sp.DataError(path, None, "no phrase", "one phrase per line")
    if _current is not None:
        _current.checksums[str(path)] = sp.sha256(path)
    return phrases
