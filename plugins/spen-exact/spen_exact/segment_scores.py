"""Scores of segmentations: their additive parts, and the layers that compute them from the words' vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_exact.segment_places import Kinds, Places, list_places
from spen_plugins.nn import at_least_float32

NEVER = -1e9
"""Score of an impossible part. Finite, so that sums over impossible parts alone have gradients."""


@dataclass(frozen=True)
class SegmentScores:
    """The score of a segmentation: Σ over its segments of start[s, k] + inner[s, e, k] + end[e, k], and of transitions.

    Segments of more words than the longest place have long[k] in place of inner[s, e, k], so that sums over them need
    no table.

    Attributes:
        start, end: scores of a kind's first and last word, `(batch, token, kind)`; `end` is at word e − 1 if e is
            exclusive.
        inner: scores of each place, `(batch, place, kind)`.
        long: scores of longer segments, `(kind,)`.
        links: scores of a segment's kind and the next one's, `(kind, kind)`.
        first, last: scores of the first and the last segment's kind, `(kind,)`.
        mask: `(batch, token)`.
    """

    places: Places
    start: Tensor
    end: Tensor
    inner: Tensor
    long: Tensor
    links: Tensor
    first: Tensor
    last: Tensor
    mask: Tensor

    @property
    def lengths(self) -> Tensor:
        """Number of words, `(batch,)`."""
        return self.mask.sum(1)

    def detach(self) -> SegmentScores:
        """The same scores without gradient."""
        return self.map(Tensor.detach)

    def shifted(self, kinds: Kinds, shift: Tensor) -> SegmentScores:
        """The scores of segmentations plus those of their tags, one row per sample.

        Args:
            shift: scores of single tags, `(batch, sample, token, tag)`.
        """
        samples = shift.shape[1]
        rows = self.rows(torch.arange(len(shift), device=shift.device).repeat_interleave(samples))
        shift = shift.flatten(0, 1) * rows.mask.unsqueeze(-1)
        single, begin, inside, end = (kinds.take(shift, name) for name in ("single", "begin", "inside", "end"))
        single[..., 0] = shift[..., kinds.single[0]]
        total = inside.cumsum(1)
        # `start` and `end` give a segment of one word begin + end − inside, but its tag is `single`.
        corrections = (rows.places.size == 1).unsqueeze(-1) * (single - begin - end + inside)[:, rows.places.start]
        changes = {"start": rows.start + begin - total, "end": rows.end + end + total - inside}
        return replace(rows, inner=rows.inner + corrections, **changes)

    def rows(self, chosen: Tensor) -> SegmentScores:
        """The scores of some sentences."""
        return self.map_rows(lambda values: values[chosen])

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> SegmentScores:
        """The scores with `change` applied to each tensor with a row per sentence; the others move to its device."""
        rows = {name: change(getattr(self, name)) for name in ("start", "end", "inner", "mask")}
        device = rows["start"].device
        shared = {name: getattr(self, name).to(device) for name in ("places", "long", "links", "first", "last")}
        return replace(self, **rows, **shared)

    def map(self, change: Callable[[Tensor], Tensor]) -> SegmentScores:
        """The scores with `change` applied to each tensor of scores."""
        names = ("start", "end", "inner", "long", "links", "first", "last")
        return replace(self, **{name: change(getattr(self, name)) for name in names})


class SegmentScorer(nn.Module):
    """Vectors of words -> `SegmentScores` (Sarawagi & Cohen 2004).

    A segment's score is the sum of the scores of its first word, its last word and all its words, and a bias for their
    number. Segments of at most `longest` words add vᵀ relu(a + b + c + d): a and b are projections of the first and
    last word, c of the mean of all, d of their number. Only this part needs a vector, of `size` numbers, per place.

    Args:
        kinds: the kinds of the output space.
        width: size of a word's vector.
        longest: maximal number of words of a segment that has its own score, at least 2.
        size: size of a place's vector.
    """

    def __init__(self, kinds: Kinds, width: int, longest: int, size: int) -> None:
        super().__init__()
        self.longest, self.size, count = longest, size, kinds.count
        self.words = nn.Linear(width, 3 * count)
        self.parts = nn.Linear(width, 3 * size)
        self.numbers = nn.Parameter(torch.empty(longest, size).uniform_(-0.1, 0.1))
        self.values = nn.Linear(size, count, bias=False)
        self.bias = nn.Parameter(torch.zeros(longest + 1, count))
        """One row per number of words; the last row is for longer segments."""
        self.links = nn.Parameter(torch.empty(count, count).uniform_(-0.1, 0.1))
        self.first = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        self.last = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        never = torch.where(kinds.allowed(longest), 0.0, NEVER)
        self.register_buffer("never", never, persistent=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> SegmentScores:
        """Scores of sentences, `(batch, token, width)` and `(batch, token)`, in full precision."""
        sentence_places = list_places(vectors.shape[1], self.longest, vectors.device)
        first, last, word_scores = (at_least_float32(values) for values in self.words(vectors).chunk(3, -1))
        parts = at_least_float32(self.parts(vectors))
        with torch.autocast(vectors.device.type, enabled=False):
            total = F.pad(word_scores.cumsum(1), (0, 0, 1, 0))
            bias = self.bias + self.never
            return SegmentScores(
                sentence_places,
                first - total[:, :-1],
                last + total[:, 1:],
                self._score_places(sentence_places, parts) + bias.index_select(0, sentence_places.size - 1),
                bias[-1],
                self.links,
                self.first,
                self.last,
                mask,
            )

    def _score_places(self, places: Places, parts: Tensor) -> Tensor:
        """vᵀ relu(a + b + c + d), `(batch, place, kind)`."""
        first, last, words = parts.chunk(3, -1)
        total = words.cumsum(1)
        before = torch.cat([first, F.pad(total[:, :-1], (0, 0, 1, 0))], -1).index_select(1, places.start)
        after = torch.cat([last, total], -1).index_select(1, places.end - 1)
        a, before = before.chunk(2, -1)
        b, after = after.chunk(2, -1)
        c = (after - before) / places.size[:, None]
        return self.values(torch.relu(a + b + c + self.numbers.index_select(0, places.size - 1)))
