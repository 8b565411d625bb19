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
    """Probabilities of a word's place in a segment of each kind, `(batch, token, kind)` each.

    Attributes:
        starts, ends: the first, and the last word of a segment.
        single_words: the only word.
        within: any word.
    """

    starts: Tensor
    ends: Tensor
    single_words: Tensor
    within: Tensor

    @classmethod
    def from_sums(cls, scores: SegmentScores, forward: Forward, backward: Backward) -> WordMarginals:
        """The marginals of a model, differentiable."""
        log_z = forward.log_z[:, None, None]
        starts = torch.exp(forward.entry + backward.starts - log_z)
        ends = torch.exp(forward.ends + backward.exit - log_z)
        single_words = compute_size_marginals(scores, forward, backward, 1)
        return cls(starts, ends, single_words, (starts.cumsum(1) - ends.cumsum(1) + ends).clamp(min=0))


def compute_size_marginals(scores: SegmentScores, forward: Forward, backward: Backward, length: int) -> Tensor:
    """The probability of a segment of `length` words that begins at a token, `(batch, token - length + 1, kind)`."""
    tokens = scores.start.shape[1]
    start = torch.arange(tokens - length + 1, device=scores.start.device)
    inner = scores.inner[:, scores.places.find(start, start + length)]
    beginnings = (forward.entry + scores.start)[:, : tokens - length + 1]
    endings = (scores.end + backward.exit)[:, length - 1 :]
    return torch.exp(beginnings + inner + endings - forward.log_z[:, None, None])


def tag_marginals(kinds: Kinds, words: WordMarginals) -> Tensor:
    """The probability of each tag, `(batch, token, tag)`; on padding, their sum is 1 or 0."""
    if kinds.closes:
        parts = {
            "single": words.single_words,
            "begin": words.starts - words.single_words,
            "end": words.ends - words.single_words,
        }
        parts["inside"] = words.within - words.starts - words.ends + words.single_words
    else:
        parts = {"begin": words.starts, "inside": words.within - words.starts}
    p = words.starts.new_zeros(*words.starts.shape[:2], len(kinds.kind))
    p = p.index_add(-1, kinds.single[:1].to(p.device), words.starts[..., :1])
    for name, part in parts.items():
        tags, exists = getattr(kinds, name).clamp(min=0), kinds.exists[name]
        p = p.index_add(-1, tags.to(p.device), part.clamp(min=0) * exists.to(p.device))
    return p / p.sum(-1, keepdim=True).clamp(min=1e-30)


def pair_marginals(
    kinds: Kinds, scores: SegmentScores, forward: Forward, backward: Backward, words: WordMarginals
) -> Tensor:
    """The probability of each token's tag and the next one's, `(batch, token - 1, tag, tag)`."""
    log_z = forward.log_z[:, None, None, None]
    next_starts = backward.starts[:, 1:].unsqueeze(2)
    transitions = torch.exp(forward.ends[:, :-1].unsqueeze(3) + scores.links + next_starts - log_z)
    last = _condition_on_kind(kinds, words.single_words, words.ends, "end")[:, :-1]
    first = _condition_on_kind(kinds, words.single_words, words.starts, "begin")[:, 1:]
    kind = kinds.kind.to(next_starts.device)
    pairs = transitions[:, :, kind][:, :, :, kind] * last.unsqueeze(3) * first.unsqueeze(2)
    two_words = compute_size_marginals(scores, forward, backward, 2)
    begins = (words.starts - words.single_words)[:, :-1]
    ends = (words.ends - words.single_words)[:, 1:]
    inner = {
        ("begin", "end"): two_words,
        ("begin", "inside"): begins - two_words,
        ("inside", "end"): ends - two_words,
        ("inside", "inside"): (words.within - words.ends)[:, :-1] - begins - ends + two_words,
    }
    for (name, next_name), p in inner.items():
        with_tags = (kinds.exists[name] & kinds.exists[next_name]).nonzero()[:, 0]
        places = (getattr(kinds, name)[with_tags] * len(kind) + getattr(kinds, next_name)[with_tags]).to(p.device)
        flat = pairs.flatten(2).index_add(2, places, p[..., with_tags.to(p.device)].clamp(min=0))
        pairs = flat.view_as(pairs)
    return pairs


def _condition_on_kind(kinds: Kinds, single: Tensor, total: Tensor, name: str) -> Tensor:
    """The probability of a segment's last (or first) tag, given that one of its kind ends (or begins) with the word,
    `(batch, token, tag)`."""
    single_share = torch.where(total > 0, single / total.clamp(min=1e-30), 0.0).clamp(max=1)
    p = total.new_zeros(*total.shape[:2], len(kinds.kind))
    for tags, part in (("single", single_share), (name, 1 - single_share)):
        has_tag = kinds.exists[tags].clone()
        has_tag[0] = tags == "single"
        p = p.index_add(-1, getattr(kinds, tags)[has_tag].to(p.device), part[..., has_tag.to(p.device)])
    return p
