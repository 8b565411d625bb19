"""Trees as one tag per word (Gómez-Rodríguez & Vilares 2018): the search for a tree's tags, and the repair of others.

Constituents of several words have a depth, and words i and i + 1 share n(i) of them. The tag of word i has the change
n(i) − n(i − 1), the label of the lowest constituent that the two words share, and the unary chain above word i alone.
The last word has a chain only. Unary chains are one label, and the root is not counted: words that share only the root
have depth 0 and no label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from spen_infnet.parsing.trees import MARK, Span

Opened = tuple[str, ...]
"""Labels of the constituents of several words that are open, from the top; a label is empty until a tag names it."""
Beam = dict[Opened, tuple[float, tuple[int, ...]]]
"""The best beginning of a sentence for each set of open constituents: its score, and the numbers of its tags."""


class Tag(NamedTuple):
    """A word's part of a tree.

    Attributes:
        change: number of constituents that the word shares with the next one, minus that of the word before; None at
            the last word.
        label: the lowest of these constituents; empty if there is none.
        unary: the chain above the word alone; empty if there is none.
    """

    change: int | None
    label: str
    unary: str

    @classmethod
    def parse(cls, text: str) -> Tag:
        """The tag that `str` wrote."""
        change, label, unary = text.split(MARK)
        return cls(int(change) if change else None, label, unary)

    def __str__(self) -> str:
        change = "" if self.change is None else f"{self.change:+d}"
        return MARK.join((change, self.label, self.unary))


def encode(spans: Iterable[Span], length: int) -> list[Tag]:
    """The tags of a tree over `length` words; `spans` are those of `trees.spans`, in preorder."""
    depths, labels, unary = [0] * length, [""] * length, [""] * length
    for start, end, label in spans:
        if end - start == 1:
            unary[start] = label
        for i in range(start, end - 1):
            depths[i] += 1
            labels[i] = label
    previous_depths = [0, *depths]
    return [Tag(depths[i] - previous_depths[i] if i < length - 1 else None, labels[i], unary[i]) for i in range(length)]


def decode(tags: Sequence[Tag]) -> list[Span]:
    """The spans of a tree with these tags, in preorder; any tags give a tree.

    The constituent at depth k covers each longest run of gaps between words whose depth is at least k, and has the
    label of the first such gap of depth k with a label. Tags without a tree are repaired: depths are at least 0, a tag
    without change keeps the depth, and a constituent without label is left out. Tags are those of a tree if and only if
    `encode` returns them.
    """
    depths: list[int] = []
    for tag in tags[:-1]:
        depths.append(max(0, (depths[-1] if depths else 0) + (tag.change or 0)))
    spans = [(i, i + 1, tag.unary) for i, tag in enumerate(tags) if tag.unary]
    for depth in set(depths) - {0}:
        for is_inside, run in groupby(range(len(depths)), key=lambda i: depths[i] >= depth):
            gaps = list(run)
            label = next((tags[i].label for i in gaps if depths[i] == depth and tags[i].label), "")
            if is_inside and label:
                spans.append((gaps[0], gaps[-1] + 2, label))
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def is_tree(tags: Sequence[Tag]) -> bool:
    """True if the tags are those of a tree."""
    return encode(decode(tags), len(tags)) == list(tags)


def _follow(opened: Opened, tag: Tag, is_last: bool) -> Opened | None:
    """The open constituents after a word with this tag, from those before it; None if the tag is impossible there."""
    if is_last or tag.change is None:
        return () if is_last and tag[:2] == (None, "") and "" not in opened else None
    depth = len(opened) + tag.change
    if depth < 0 or "" in opened[depth:] or (depth > 0) != bool(tag.label):
        return None
    if tag.change > 0:
        return (*opened, *[""] * (tag.change - 1), tag.label)
    if depth and opened[depth - 1] not in ("", tag.label):
        return None
    return (*opened[: depth - 1], tag.label) if depth else ()


class TagSet:
    """The learned tags, and their replacements for other tags.

    Args:
        tags: the tags, most frequent first; at least one.
    """

    def __init__(self, tags: Sequence[Tag]) -> None:
        self.tags = list(tags)
        self._known = frozenset(tags)
        self._by_change: dict[int | None, Tag] = {}
        for tag in tags:
            self._by_change.setdefault(tag.change, tag)

    @classmethod
    def from_counts(cls, counts: Counter[Tag], min_count: int) -> TagSet:
        """The tags seen at least `min_count` times; the most frequent one, if there is none."""
        ranked = sorted(counts, key=lambda tag: (-counts[tag], str(tag)))
        return cls([tag for tag in ranked if counts[tag] >= min_count] or ranked[:1])

    def search(self, scores: Tensor, choices: int = 8, width: int = 16) -> list[int] | None:
        """The tags, by number, of the tree with the highest score that a beam search finds; None if it finds no tree.

        Args:
            scores: of each word's tags, `(word, tag)`; a tree's score is the sum of its tags'.
            choices: tags tried per word.
            width: beginnings of the sentence kept.
        """
        is_last = torch.arange(1, len(scores) + 1).unsqueeze(1) == len(scores)
        is_allowed = is_last == torch.tensor([tag.change is None for tag in self.tags])
        best_scores, candidates = scores.masked_fill(~is_allowed, -torch.inf).topk(min(choices, len(self.tags)), -1)
        beam: Beam = {(): (0.0, ())}
        for i, alternatives in enumerate(zip(best_scores.tolist(), candidates.tolist(), strict=True)):
            next_beam: Beam = {}
            for opened, (total, numbers) in beam.items():
                for score, number in zip(*alternatives, strict=True):
                    next_opened = _follow(opened, self.tags[number], i == len(scores) - 1)
                    if next_opened is not None and (
                        next_opened not in next_beam or next_beam[next_opened][0] < total + score
                    ):
                        next_beam[next_opened] = total + score, (*numbers, number)
            beam = dict(nlargest(width, next_beam.items(), key=lambda item: item[1][0]))
        return next((list(numbers) for _, numbers in beam.values()), None)

    def replace(self, tag: Tag) -> Tag:
        """The tag if it is known; otherwise the same without unary chain, or the most frequent one with its change, or
        with the nearest change."""
        if tag in self._known:
            return tag
        if (without_unary := tag._replace(unary="")) in self._known:
            return without_unary
        if tag.change in self._by_change:
            return self._by_change[tag.change]
        changes = [change for change in self._by_change if change is not None]
        if tag.change is None or not changes:
            return self.tags[0]
        return self._by_change[min(changes, key=lambda change: (abs(change - tag.change), change))]
