"""Marginals of tags, and of neighbouring tags, by the sums over all segmentations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spen_exact.segment_places import Kinds
from spen_exact.segment_scores import SegmentScores
from spen_exact.segment_sums import Backward, Forward


@dataclass(frozen=True)
class WordMarginals:
    """Probabilities of what a word is to a segment of each kind, `(batch, token, kind)` each.

    Attributes:
        begun, ended: its first, and its last word.
        alone: its only word.
        within: any word of it.
    """

    begun: Tensor
    ended: Tensor
    alone: Tensor
    within: Tensor

    @classmethod
    def of(cls, scores: SegmentScores, forward: Forward, backward: Backward) -> WordMarginals:
        """Those of a model, differentiable."""
        log_z = forward.log_z[:, None, None]
        begun = torch.exp(forward.entry + backward.begun - log_z)
        ended = torch.exp(forward.ended + backward.rest - log_z)
        alone = of_size(scores, forward, backward, 1)
        return cls(begun, ended, alone, (begun.cumsum(1) - ended.cumsum(1) + ended).clamp(min=0))


def of_size(scores: SegmentScores, forward: Forward, backward: Backward, words: int) -> Tensor:
    """The probability of a segment of one or two words that begins at a token, `(batch, token or fewer, kind)`."""
    tokens = scores.start.shape[1]
    start = torch.arange(tokens - words + 1, device=scores.start.device)
    inner = scores.inner[:, scores.places.find(start, start + words)]
    before = (forward.entry + scores.start)[:, : tokens - words + 1]
    after = (scores.end + backward.rest)[:, words - 1 :]
    return torch.exp(before + inner + after - forward.log_z[:, None, None])


def tag_marginals(kinds: Kinds, words: WordMarginals) -> Tensor:
    """The probability of each tag, `(batch, token, tag)`; of sum 1 on padding, too, or 0."""
    if kinds.closes:
        parts = {"single": words.alone, "begin": words.begun - words.alone, "end": words.ended - words.alone}
        parts["inside"] = words.within - words.begun - words.ended + words.alone
    else:
        parts = {"begin": words.begun, "inside": words.within - words.begun}
    p = words.begun.new_zeros(*words.begun.shape[:2], len(kinds.kind))
    p = p.index_add(-1, kinds.single[:1].to(p.device), words.begun[..., :1])
    for name, part in parts.items():
        tags, exists = getattr(kinds, name).clamp(min=0), kinds.exists[name]
        p = p.index_add(-1, tags.to(p.device), part.clamp(min=0) * exists.to(p.device))
    return p / p.sum(-1, keepdim=True).clamp(min=1e-30)


def pair_marginals(
    kinds: Kinds, scores: SegmentScores, forward: Forward, backward: Backward, words: WordMarginals
) -> Tensor:
    """The probability of each token's tag and the next one's, `(batch, token - 1, tag, tag)`."""
    log_z = forward.log_z[:, None, None, None]
    after = backward.begun[:, 1:].unsqueeze(2)
    between = torch.exp(forward.ended[:, :-1].unsqueeze(3) + scores.links + after - log_z)
    last = _given_kind(kinds, words.alone, words.ended, "end")[:, :-1]
    first = _given_kind(kinds, words.alone, words.begun, "begin")[:, 1:]
    kind = kinds.kind.to(after.device)
    pairs = between[:, :, kind][:, :, :, kind] * last.unsqueeze(3) * first.unsqueeze(2)
    two = of_size(scores, forward, backward, 2)
    opened = (words.begun - words.alone)[:, :-1]
    closed = (words.ended - words.alone)[:, 1:]
    inner = {
        ("begin", "end"): two,
        ("begin", "inside"): opened - two,
        ("inside", "end"): closed - two,
        ("inside", "inside"): (words.within - words.ended)[:, :-1] - opened - closed + two,
    }
    for (one, other), p in inner.items():
        there = (kinds.exists[one] & kinds.exists[other]).nonzero()[:, 0]
        places = (getattr(kinds, one)[there] * len(kind) + getattr(kinds, other)[there]).to(p.device)
        flat = pairs.flatten(2).index_add(2, places, p[..., there.to(p.device)].clamp(min=0))
        pairs = flat.view_as(pairs)
    return pairs


def _given_kind(kinds: Kinds, alone: Tensor, whole: Tensor, name: str) -> Tensor:
    """The probability of a segment's last (or first) tag, given that one of its kind ends (or begins) with the word,
    `(batch, token, tag)`."""
    share = torch.where(whole > 0, alone / whole.clamp(min=1e-30), 0.0).clamp(max=1)
    p = whole.new_zeros(*whole.shape[:2], len(kinds.kind))
    for tags, part in (("single", share), (name, 1 - share)):
        there = kinds.exists[tags].clone()
        there[0] = tags == "single"
        p = p.index_add(-1, getattr(kinds, tags)[there].to(p.device), part[..., there.to(p.device)])
    return p
