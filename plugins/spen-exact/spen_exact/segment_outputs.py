"""Scores of tags by `SegmentScores`: exact for tags that obey the scheme, multilinear for relaxed ones."""

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
    is_word = mask.unsqueeze(1).expand(y.shape[:3])
    highest, tags = y.max(-1)
    starts = kinds.begins.to(y.device)[tags] & is_word
    kind = kinds.kind.to(y.device)[tags]
    is_right = (highest == 1) & (y.sum(-1) == 1) & (kinds.write(starts, kind, is_word) == tags)
    is_right[:, :, :1] &= starts[:, :, :1]  # a sentence begins with a segment
    return starts, kind, (is_right | ~is_word).all(-1)


def score_segments(scores: SegmentScores, starts: Tensor, kind: Tensor) -> Tensor:
    """The scores of tags that obey the scheme, `(batch, sample)`, from the starts and kinds of `read_segments`."""
    places, samples = scores.places, starts.shape[1]
    row, sample, start = starts.nonzero(as_tuple=True)
    kinds = kind[row, sample, start]
    outputs = row * samples + sample
    has_next = outputs[1:] == outputs[:-1]
    end = scores.lengths[row]
    end[:-1] = torch.where(has_next, start[1:], end[:-1])
    place, is_long = places.find(start, end), end - start > places.longest
    inner = torch.where(is_long, scores.long[kinds], scores.inner[row, place, kinds])
    values = scores.start[row, start, kinds] + inner + scores.end[row, end - 1, kinds]
    links_before = torch.where(has_next, scores.links[kinds[:-1], kinds[1:]], scores.first[kinds[1:]])
    values = values + torch.cat([scores.first[kinds[:1]], links_before])
    last_scores = torch.cat([torch.where(has_next, 0.0, scores.last[kinds[:-1]]), scores.last[kinds[-1:]]])
    total = values.new_zeros(len(starts) * samples).index_add(0, outputs, values + last_scores)
    return total.view(-1, samples)


def score_relaxed(kinds: Kinds, scores: SegmentScores, y: Tensor) -> Tensor:
    """The expected score of independent tags, `(batch, sample, token, tag)` -> `(batch, sample)`; linear in each tag.

    In tags that break the scheme, words that continue no segment count only in the links.
    """
    y = y.to(scores.start.dtype) * scores.mask[:, None, :, None]
    begin, inside, end, single = (kinds.take(y, name) for name in ("begin", "inside", "end", "single"))
    outside = F.pad(y[..., kinds.single[:1]], (0, kinds.count - 1))
    tag_kinds = F.one_hot(kinds.kind.to(y.device), kinds.count).to(y)
    kind_shares = y @ tag_kinds
    first = outside + begin + single if kinds.closes else outside + begin
    links = ((kind_shares[:, :, :-1] @ scores.links) * first[:, :, 1:]).flatten(2).sum(-1)
    token_mask = scores.mask.to(y)
    is_last = token_mask - F.pad(token_mask[:, 1:], (0, 1))
    total = links + first[:, :, 0] @ scores.first + torch.einsum("bstk,bt->bsk", kind_shares, is_last) @ scores.last
    tokens = y.shape[2]
    next_inside, starts = F.pad(inside, (0, 0, 0, 1)), torch.arange(tokens, device=y.device)
    beginnings = begin  # the words so far begin a segment
    for words in range(1, tokens + 1):
        count = tokens - words + 1
        longer = beginnings[:, :, :count] * inside[:, :, words - 1 :] if words > 1 else begin
        if not kinds.closes:
            spans = longer * (1 - next_inside[:, :, words:])
        elif words > 1:
            spans = beginnings[:, :, :count] * end[:, :, words - 1 :]
        else:
            spans = single
        beginnings = longer
        value = scores.start[:, :count] + scores.end[:, words - 1 :] + _get_inner_scores(scores, starts[:count], words)
        total = total + ((spans + outside if words == 1 else spans) * value.unsqueeze(1)).flatten(2).sum(-1)
    return total


def _get_inner_scores(scores: SegmentScores, starts: Tensor, words: int) -> Tensor:
    """The scores of segments of `words` words, `(batch, token, kind)`, or `(kind,)` for long ones."""
    if words > scores.places.longest:
        return scores.long
    return scores.inner[:, scores.places.find(starts, starts + words)]
