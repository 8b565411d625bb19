"""Results of `SequenceTagger`: an array with a list for each sentence, and probabilities of the tags of y."""

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

    NumPy would convert that list to a table, and fail if its lengths differ.
    """

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[Any]]) -> Sentences:
        """Array of the given lists."""
        return object_array(map(list, lists)).view(cls)

    def __eq__(self, other: Any) -> Any:
        other = Sentences.from_lists(other) if isinstance(other, (list, tuple)) else other
        return np.asarray(self) == np.asarray(other)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]


def object_array(values: Iterable[Any]) -> np.ndarray:
    """Array `(value,)` of the values, of dtype object even if they have equal lengths."""
    return np.fromiter(values, dtype=object)


class WrittenTags:
    """Converts marginals of a net's tags to marginals of the tags of y, which may write spans in another scheme.

    A tag counts as the tag that y's scheme writes for it. That depends on the previous tag under IOB1, and on the next
    tag from BIO to BIOES. If y lacks the written tag, the closest tag of its type takes its place; O is left out.

    Args:
        tags: the net's tags, plain, or of spans in BIO or BIOES.
        scheme: the scheme of y, or "none".
        classes: the tags of y.
    """

    def __init__(self, tags: Sequence[str], scheme: str, classes: Sequence[str]) -> None:
        types = np.array([tag[2:] for tag in tags])
        is_bioes = any(tag.startswith("S-") for tag in tags)
        # True from previous to next tag: a span of the same type ends before this one, or the span goes on.
        self._uses_previous = scheme == "iob1"
        self._uses_next = scheme == "bioes" and not is_bioes
        self._is_joined = types[:, None] == types
        if self._uses_next:
            self._is_joined = self._is_joined & np.char.startswith(np.array(tags), "I-")
        self._alone_classes, self._neighbour_classes = (
            np.stack(
                [_encode_one_hot(_write_tag(tag, scheme, is_bioes, has_neighbour), scheme, classes) for tag in tags]
            )
            for has_neighbour in (False, True)
        )

    def __call__(self, proposal: Proposal, lengths: Sequence[int], temperature: float) -> list[np.ndarray]:
        """Each sentence's probabilities `(word, class)`; rows sum to 1.

        The temperature applies to each word's tags. The probability that a neighbour changes how a tag is written
        stays that of the net.

        Args:
            proposal: a batch's distribution of tags, `(sentence, 1, token, tag)`.
            lengths: the number of words of each sentence.
            temperature: the temperature of calibration.
        """
        p = _convert_to_numpy(proposal.mean[:, 0])
        joint = np.zeros_like(p)
        if self._uses_previous or self._uses_next:
            pairs = _convert_to_numpy(proposal.pairs) * self._is_joined
            if self._uses_previous:
                joint[:, 1:] = pairs.sum(2)
            else:
                joint[:, :-1] = pairs.sum(3)
        neighbour_share = np.divide(joint, p, out=np.zeros_like(p), where=p > 0).clip(0, 1)
        probabilities = []
        for row, length in enumerate(lengths):
            calibrated, alone_share = tempered(p[row, :length], temperature), 1 - neighbour_share[row, :length]
            marginals = (
                calibrated * alone_share @ self._alone_classes
                + calibrated * (1 - alone_share) @ self._neighbour_classes
            )
            probabilities.append(marginals / marginals.sum(1, keepdims=True))
        return probabilities


def _convert_to_numpy(values: Any) -> np.ndarray:
    return values.detach().double().cpu().numpy()


def _write_tag(tag: str, scheme: str, is_bioes: bool, has_neighbour: bool) -> str:
    """A net's tag as a scheme writes it.

    Args:
        tag: a plain tag, or one in BIO or BIOES.
        scheme: the scheme to write; "none": tags are plain.
        is_bioes: true if the net's tags are in BIOES.
        has_neighbour: true if a span of its type ends before this word (IOB1), or if its span goes on (BIO as BIOES).
    """
    if scheme == "none" or tag == "O":
        return tag
    begins = tag[0] in "BS"
    if scheme == "bio":
        letter = "B" if begins else "I"
    elif scheme == "iob1":
        letter = "B" if begins and has_neighbour else "I"
    elif is_bioes:
        letter = tag[0]
    else:
        letter = ("B" if has_neighbour else "S") if begins else ("I" if has_neighbour else "E")
    return letter + tag[1:]


def _encode_one_hot(tag: str, scheme: str, classes: Sequence[str]) -> np.ndarray:
    """1 at the class of a written tag, or at the closest class of its type; zeros for an O that is no class."""
    if scheme == "none" or tag in classes:
        return np.array([float(name == tag) for name in classes])
    letters = {TWINS.get(name[0], name[0]): name for name in classes if name != "O" and name[1:] == tag[1:]}
    closest = next((letters[letter] for letter in CLOSEST.get(tag[0], "") if letter in letters), None)
    return np.array([float(name == closest) for name in classes])
