"""Frames as values, as in `doc._.srl`: predicates with their arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from spacy.tokens import Span, Token

from spen_plugins import PluginError, Registry

if TYPE_CHECKING:
    from spen_plugins.sentences import SenseTask

TASK = "propbank.senses"
"""The task that predicts the senses of frames."""
DIGITS = 6
"""Digits after the point of reported probabilities and energies, as `spen predict` writes them."""


def rounded(score: float) -> float:
    """A probability or energy as it is reported. Stored values may be float32, whose 0.9973 is 0.9972999691963196."""
    return round(float(score), DIGITS)


@cache
def find_lexicon() -> type[SenseTask] | None:
    """The task with the meanings of senses and their roles; None if it is not installed."""
    try:
        return Registry().resolve("task", TASK)
    except PluginError:
        return None


class _Argument(NamedTuple):
    role: str
    span: Span
    score: float


class Argument(_Argument):
    """An argument of a predicate: a tuple of `role`, `span` and `score`, its probability.

    Args:
        sense: the sense of its predicate, if known.
    """

    _sense: str | None = None

    def __new__(cls, role: str, span: Span, score: float, sense: str | None = None) -> Self:
        argument = super().__new__(cls, role, span, score)
        argument._sense = sense
        return argument

    def _replace(self, **changes: Any) -> Self:
        argument = super()._replace(**changes)
        argument._sense = self._sense
        return argument

    @property
    def description(self) -> str | None:
        """PropBank's words for the role in the predicate's sense: "thing given"; None without a sense, and for roles
        that mean the same everywhere, such as ARGM-TMP."""
        lexicon = None if self._sense is None else find_lexicon()
        return None if lexicon is None else lexicon.describe(self._sense, self.role)

    def to_dict(self) -> dict[str, Any]:
        """`role`, `description`, the place as in `Frame.to_dict`, and `score`."""
        return {
            "role": self.role,
            "description": self.description,
            **place(self.span),
            "score": rounded(self.score),
        }


@dataclass(frozen=True)
class Frame:
    """A predicate and its arguments, from left to right."""

    predicate: Token
    arguments: list[Argument] = field(hash=False)
    score: float
    """Probability that this is a predicate; 1 for predicates of rules or of the user."""
    energy: float | None
    """E(x, y) of the predicate's analysis, low is good; None without the setting `energy`."""
    sense: str | None = None
    """Its roleset in PropBank: "give.01"; None without the setting `senses_model`, and for a word that is not known."""
    sense_score: float | None = None
    """Probability of the sense, if this is a predicate."""

    @property
    def gloss(self) -> str | None:
        """The meaning of the sense in a few words: "transfer"; None without a sense, or of one that PropBank lacks."""
        lexicon = None if self.sense is None else find_lexicon()
        return None if lexicon is None else lexicon.gloss(self.sense) or None

    def to_dict(self) -> dict[str, Any]:
        """The frame in plain types, for `json.dumps`.

        `predicate` and each of `arguments` have a place: `text`, `start` and `end` in tokens, `start_char` and
        `end_char` in characters, ends exclusive, as in a `Span`. The other keys are named like the attributes.
        """
        i = self.predicate.i
        return {
            "predicate": place(self.predicate.doc[i : i + 1]),
            "score": rounded(self.score),
            "energy": None if self.energy is None else rounded(self.energy),
            "sense": self.sense,
            "sense_score": None if self.sense_score is None else rounded(self.sense_score),
            "gloss": self.gloss,
            "arguments": [argument.to_dict() for argument in self.arguments],
        }


def place(span: Span) -> dict[str, Any]:
    """A span's text, and its first and last (exclusive) token and character."""
    return {
        "text": span.text,
        "start": span.start,
        "end": span.end,
        "start_char": span.start_char,
        "end_char": span.end_char,
    }
