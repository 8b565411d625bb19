"""Results of `SequenceTagger`: an array with a list for each sentence, and probabilities of tags as y writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spen_plugins.scores.calibration import tempered
from spen_plugins.spaces import Proposal

CLOSEST = {"B": "BSIE", "S": "SBIE", "I": "IEBS", "E": "EIBS"}
"""Letter of a tag -> the letters of its type's tags that may stand in for it, best first."""
TWINS = {"L": "E", "U": "S"}


class Sentences(np.ndarray):
    """One-dimensional array of lists; `==` compares sentence by sentence, also with a list of lists.

    NumPy would make a table of that list, and fail if its lengths differ.
    """

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[Any]]) -> Sentences:
        """The array of these lists."""
        return object_array(map(list, lists)).view(cls)

    def __eq__(self, other: Any) -> Any:
        other = Sentences.from_lists(other) if isinstance(other, (list, tuple)) else other
        return np.asarray(self) == np.asarray(other)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]


def object_array(values: Iterable[Any]) -> np.ndarray:
    """The values in an array `(value,)` of dtype object, even where they are of equal lengths."""
    return np.fromiter(values, dtype=object)


class WrittenTags:
    """From marginals of a net's tags to those of the tags of y, which may write spans in another scheme.

    A tag counts as the one that is written for it. Under IOB1 that depends on the previous tag, from BIO to BIOES on
    the next one. If y lacks the written tag, the closest of its type takes its place; an O is then left out.

    Args:
        tags: the net's, plain, or of spans in BIO or BIOES.
        scheme: that of y, or "none".
        classes: the tags of y.
    """

    def __init__(self, tags: Sequence[str], scheme: str, classes: Sequence[str]) -> None:
        kinds = np.array([tag[2:] for tag in tags])
        closes = any(tag.startswith("S-") for tag in tags)
        # By `joined` from previous to next: the same type before a span, or more of the span after a word.
        self._looks_back = scheme == "iob1"
        self._looks_on = scheme == "bioes" and not closes
        self._joined = kinds[:, None] == kinds
        if self._looks_on:
            self._joined = self._joined & np.char.startswith(np.array(tags), "I-")
        self._alone, self._beside = (
            np.stack([_one_hot(_write_tag(tag, scheme, closes, beside), scheme, classes) for tag in tags])
            for beside in (False, True)
        )

    def __call__(self, proposal: Proposal, lengths: Sequence[int], temperature: float) -> list[np.ndarray]:
        """Each sentence's probabilities `(word, class)`, rows of sum 1.

        The temperature is that of each word's tags; with which probability a tag has a neighbour that changes how it is
        written is left as the net has it.

        Args:
            proposal: a batch's distribution of tags, `(sentence, 1, token, tag)`.
            lengths: the number of words of each sentence.
            temperature: the one of calibration.
        """
        p = _numbers(proposal.mean[:, 0])
        beside = np.zeros_like(p)
        if self._looks_back or self._looks_on:
            pairs = _numbers(proposal.pairs) * self._joined
            if self._looks_back:
                beside[:, 1:] = pairs.sum(2)
            else:
                beside[:, :-1] = pairs.sum(3)
        share = np.divide(beside, p, out=np.zeros_like(p), where=p > 0).clip(0, 1)
        probabilities = []
        for row, length in enumerate(lengths):
            calibrated, apart = tempered(p[row, :length], temperature), 1 - share[row, :length]
            written = calibrated * apart @ self._alone + calibrated * (1 - apart) @ self._beside
            probabilities.append(written / written.sum(1, keepdims=True))
        return probabilities


def _numbers(values: Any) -> np.ndarray:
    return values.detach().double().cpu().numpy()


def _write_tag(tag: str, scheme: str, closes: bool, beside: bool) -> str:
    """A net's tag as a scheme writes it.

    Args:
        tag: in BIO or BIOES, or a plain one.
        scheme: of what is written; "none": tags are plain.
        closes: true if the net's tags are in BIOES.
        beside: true if a span of its type ends before this word (IOB1), or if its span goes on after it (BIO as BIOES).
    """
    if scheme == "none" or tag == "O":
        return tag
    begins = tag[0] in "BS"
    if scheme == "bio":
        letter = "B" if begins else "I"
    elif scheme == "iob1":
        letter = "B" if begins and beside else "I"
    elif closes:
        letter = tag[0]
    else:
        letter = ("B" if beside else "S") if begins else ("I" if beside else "E")
    return letter + tag[1:]


def _one_hot(tag: str, scheme: str, classes: Sequence[str]) -> np.ndarray:
    """1 at the class of a written tag, or at the closest of its type; zeros for an O that is no class."""
    if scheme == "none" or tag in classes:
        return np.array([float(name == tag) for name in classes])
    letters = {TWINS.get(name[0], name[0]): name for name in classes if name != "O" and name[1:] == tag[1:]}
    closest = next((letters[letter] for letter in CLOSEST.get(tag[0], "") if letter in letters), None)
    return np.array([float(name == closest) for name in classes])
