"""Scores of given tags by `SegmentScores`: exact of tags that obey the scheme, and multilinear of relaxed ones."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_exact.segment_places import Kinds
from spen_exact.segment_scores import SegmentScores


def read_segments(kinds: Kinds, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The segments of discrete tags.

    Args:
        y: `(batch, sample, token, tag)`.
        mask: `(batch, token)`.

    Returns:
        True where a segment begins, and the kind of each word's tag, `(batch, sample, token)`; and true for tags that
        are discrete and obey the scheme, `(batch, sample)`.
    """
    inside = mask.unsqueeze(1).expand(y.shape[:3])
    highest, tags = y.max(-1)
    starts = kinds.begins.to(y.device)[tags] & inside
    kind = kinds.kind.to(y.device)[tags]
    written = kinds.write(starts, kind, inside)
    discrete = (highest == 1) & (y.sum(-1) == 1)
    first = starts[:, :, :1].all(-1) if y.shape[2] else inside.any(-1)
    return starts, kind, ((discrete & (written == tags)) | ~inside).all(-1) & (first | ~inside[..., :1].any(-1))


def score_segments(scores: SegmentScores, starts: Tensor, kind: Tensor) -> Tensor:
    """The scores of tags that obey the scheme, `(batch, sample)`, from what `read_segments` returns of them."""
    at, samples = scores.places, starts.shape[1]
    row, sample, start = starts.nonzero(as_tuple=True)
    kinds = kind[row, sample, start]
    number = row * samples + sample
    goes_on = number[1:] == number[:-1]
    end = scores.lengths[row]
    end[:-1] = torch.where(goes_on, start[1:], end[:-1])
    place, is_long = at.find(start, end), end - start > at.longest
    inner = torch.where(is_long, scores.long[kinds], scores.inner[row, place, kinds])
    each = scores.start[row, start, kinds] + inner + scores.end[row, end - 1, kinds]
    before = torch.where(goes_on, scores.links[kinds[:-1], kinds[1:]], scores.first[kinds[1:]])
    each = each + torch.cat([scores.first[kinds[:1]], before])
    after = torch.cat([torch.where(goes_on, 0.0, scores.last[kinds[:-1]]), scores.last[kinds[-1:]]])
    total = each.new_zeros(len(starts) * samples).index_add(0, number, each + after)
    return total.view(-1, samples)


def score_relaxed(kinds: Kinds, scores: SegmentScores, y: Tensor) -> Tensor:
    """The expected score of independent tags `(batch, sample, token, tag)`, `(batch, sample)`: linear in each token's.

    Of tags that break the scheme, words that continue no segment count in the links alone.
    """
    y = y.to(scores.start.dtype) * scores.mask[:, None, :, None]
    begin, inside, end, single = (kinds.take(y, name) for name in ("begin", "inside", "end", "single"))
    outside = F.pad(y[..., kinds.single[:1]], (0, kinds.count - 1))
    whole = F.one_hot(kinds.kind.to(y.device), kinds.count).to(y)
    share = y @ whole
    first = outside + begin + single if kinds.closes else outside + begin
    links = ((share[:, :, :-1] @ scores.links) * first[:, :, 1:]).flatten(2).sum(-1)
    here = scores.mask.to(y)
    last = here - F.pad(here[:, 1:], (0, 1))
    total = links + first[:, :, 0] @ scores.first + torch.einsum("bstk,bt->bsk", share, last) @ scores.last
    tokens = y.shape[2]
    following, starts = F.pad(inside, (0, 0, 0, 1)), torch.arange(tokens, device=y.device)
    open_so_far = begin  # words so far are a beginning
    for words in range(1, tokens + 1):
        left = tokens - words + 1
        grown = open_so_far[:, :, :left] * inside[:, :, words - 1 :] if words > 1 else begin
        if not kinds.closes:
            spans = grown * (1 - following[:, :, words:])
        elif words > 1:
            spans = open_so_far[:, :, :left] * end[:, :, words - 1 :]
        else:
            spans = single
        open_so_far = grown
        value = scores.start[:, :left] + scores.end[:, words - 1 :] + _inner(scores, starts[:left], words)
        total = total + ((spans + outside if words == 1 else spans) * value.unsqueeze(1)).flatten(2).sum(-1)
    return total


def _inner(scores: SegmentScores, starts: Tensor, words: int) -> Tensor:
    """The scores of segments of so many words, `(batch or none, token, kind)`."""
    if words > scores.places.longest:
        return scores.long
    return scores.inner[:, scores.places.find(starts, starts + words)]
