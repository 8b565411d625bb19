"""Tag-sequence outputs: one simplex per token, with or without the constraints of BIO or BIOES on the discrete ones."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.base import OutputSpace, full, inner
from spen_plugins.spaces.k_best import span_k_best


class TagSequence(OutputSpace):
    """One of L tags at each token; `y` is `(batch, sample, token, tag)`, each token on the simplex.

    Masks are `(batch, token)`.

    Args:
        tags: the tags' names, in the order of the last axis.
        scheme: "none", or what discrete outputs decoded by `decode` obey: "bio" (an I-x follows B-x or I-x) or "bioes"
            (besides, a B-x or I-x is followed by I-x or E-x, and E-x follows B-x or I-x).
    """

    simplex = True
    variables = 2

    def __init__(self, tags: list[str], scheme: str = "none") -> None:
        self.tags = list(tags)
        self.scheme = scheme
        self._links = None if scheme == "none" else span_links(self.tags, scheme)

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (None, len(self.tags))

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return _masked(torch.softmax(logits, -1), mask)

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return _masked(torch.log(y.clamp(min=1e-4)), mask)

    def sample(self, logits: Tensor, n: int, mask: Tensor | None) -> Tensor:
        b, _, t, k = logits.shape
        p = torch.softmax(logits.detach(), -1).reshape(b * t, k)
        drawn = torch.multinomial(p, n, replacement=True).reshape(b, t, n).transpose(1, 2)
        return _masked(F.one_hot(drawn, k).to(logits.dtype), mask)

    def rsample(self, logits: Tensor, n: int, mask: Tensor | None, temperature: float = 1.0) -> Tensor:
        b, _, t, k = logits.shape
        u = torch.rand(b, n, t, k, device=logits.device, dtype=logits.dtype).clamp(1e-7, 1 - 1e-7)
        return _masked(torch.softmax((logits - torch.log(-torch.log(u))) / temperature, -1), mask)

    def perturb(self, logits: Tensor, n: int, std: float, mask: Tensor | None) -> Tensor:
        b, _, t, k = logits.shape
        noise = torch.randn(b, n, t, k, device=logits.device, dtype=logits.dtype)
        return _masked(torch.softmax(logits + std * noise, -1), mask)

    def log_prob(self, logits: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        log_p = _masked(torch.log_softmax(full(logits), -1), mask)
        if logits.shape[1] == 1:
            return inner(log_p[:, 0], y)
        return (y * log_p).flatten(2).sum(-1)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return _masked(F.one_hot(y.argmax(-1), y.shape[-1]).to(y.dtype), mask)

    def decode(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """The most probable tag sequence the scheme allows, as tag numbers `(batch, sample, token)`; 0 on padding."""
        log_p = torch.log_softmax(logits, -1)
        if self._links is None:
            best = log_p.argmax(-1)
            return best if mask is None else best * mask.unsqueeze(1)
        b, s, t, _ = logits.shape
        flat = None if mask is None else mask.unsqueeze(1).expand(b, s, t).reshape(b * s, t)
        return span_viterbi(log_p.flatten(0, 1), flat, self._links).reshape(b, s, t)

    def one_hot(self, tags: Tensor, mask: Tensor | None) -> Tensor:
        """Tag numbers `(batch, sample, token)` -> `(batch, sample, token, tag)`, zero on padding."""
        return _masked(F.one_hot(tags, len(self.tags)), mask)

    def best(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return self.one_hot(self.decode(logits, mask), mask).to(logits.dtype)

    def k_best(self, logits: Tensor, mask: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(full(logits.detach()), -1)
        links = span_links(self.tags, "none") if self._links is None else self._links
        tags, log_q = span_k_best(log_p[:, 0], mask, links, k)
        return self.one_hot(tags, mask).to(logits.dtype), log_q

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        return _masked((y - gold).abs(), mask).flatten(2).sum(-1)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft accuracy: the mean over tokens of Σ min(y, gold)."""
        right = _masked(torch.minimum(y, gold), mask).flatten(2).sum(-1)
        return right / self.size(y, mask)

    def size(self, y: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return y.new_full((y.shape[0], 1), float(y.shape[2]))
        return mask.sum(-1, keepdim=True).clamp(min=1).to(y.dtype)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Euclidean projection of each token onto the simplex (Duchi et al. 2008)."""
        ordered = y.sort(-1, descending=True).values
        rank = torch.arange(1, y.shape[-1] + 1, device=y.device, dtype=y.dtype)
        excess = (ordered.cumsum(-1) - 1) / rank
        support = (ordered > excess).sum(-1, keepdim=True).clamp(min=1)
        return _masked((y - excess.gather(-1, support - 1)).clamp(min=0), mask)


def _masked(y: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the rows of padding: y `(batch, sample, token, tag)`, mask `(batch, token)`."""
    return y if mask is None else y * mask[:, None, :, None]


class Transitions(NamedTuple):
    """What a scheme allows, all boolean: `following` `(tag, tag)` from row to column, `start` and `end` `(tag,)`."""

    following: Tensor
    start: Tensor
    end: Tensor


def allowed_transitions(tags: list[str], scheme: str) -> Transitions:
    """Which tag may follow which under "none", "bio" or "bioes", which may be the first, and which the last."""
    parts = [_parts(tag, scheme) for tag in tags]
    goes_on = torch.tensor([prefix in ("I", "E") for prefix, _ in parts])
    is_open = torch.tensor([prefix in ("B", "I") for prefix, _ in parts])
    same = torch.tensor([[bool(x) and x == y for _, y in parts] for _, x in parts])
    linked = same & is_open.unsqueeze(1) & goes_on.unsqueeze(0)
    if scheme == "bioes":
        return Transitions(linked | ~(is_open.unsqueeze(1) | goes_on.unsqueeze(0)), ~goes_on, ~is_open)
    return Transitions(linked | ~goes_on.unsqueeze(0), ~goes_on, torch.ones_like(goes_on))


def bio_transitions(tags: list[str]) -> tuple[Tensor, Tensor]:
    """Which tag may follow which under BIO `(tag, tag)`, from row to column, and which may start `(tag,)`."""
    following, start, _ = allowed_transitions(tags, "bio")
    return following, start


def _parts(tag: str, scheme: str) -> tuple[str, str]:
    """Prefix and type of a span's tag; nothing for O, and for all tags where there is no scheme."""
    prefix, dash, kind = tag.partition("-")
    letters = {"none": (), "bio": ("B", "I"), "bioes": ("B", "I", "E", "S")}[scheme]
    return (prefix, kind) if dash and prefix in letters else ("", "")


class SpanLinks(NamedTuple):
    """A scheme's transitions in short: a tag that goes on with a span has two predecessors, the others share theirs.

    `inner` are the numbers of the tags that go on (I-x, E-x); `opening` the B-x and `within` the I-x before each, the
    same where there is but one of them, its own number where there is none; all `(inner,)`. `unfinished` `(open,)` are
    the tags that only an inner one may follow, and none may end with: B-x and I-x under BIOES, none under BIO.
    """

    inner: Tensor
    opening: Tensor
    within: Tensor
    unfinished: Tensor


def span_links(tags: list[str], scheme: str) -> SpanLinks:
    """The links of "bio" or "bioes"; none under "none"."""
    number = {tag: i for i, tag in enumerate(tags)}
    parts = [_parts(tag, scheme) for tag in tags]
    inner = [i for i, (prefix, _) in enumerate(parts) if prefix in ("I", "E")]
    within = [number.get(f"I-{parts[i][1]}", number.get(f"B-{parts[i][1]}", i)) for i in inner]
    opening = [number.get(f"B-{parts[i][1]}", other) for i, other in zip(inner, within, strict=True)]
    unfinished = [i for i, (prefix, _) in enumerate(parts) if prefix in ("B", "I") and scheme == "bioes"]
    return SpanLinks(*(torch.tensor(numbers, dtype=torch.long) for numbers in (inner, opening, within, unfinished)))


def span_viterbi(scores: Tensor, mask: Tensor | None, links: SpanLinks) -> Tensor:
    """`viterbi` under a scheme alone, in time linear in the tags.

    Shapes: scores `(batch, token, tag)`. Returns `(batch, token)`, 0 on padding.
    """
    b, length, k = scores.shape
    if length == 0:
        return scores.new_zeros((b, 0), dtype=torch.long)
    inner, opening, within, unfinished = (numbers.to(scores.device) for numbers in links)
    best = scores[:, 0].index_fill(1, inner, float("-inf"))
    identity = torch.arange(k, device=scores.device).expand(b, k)
    pointers = []
    for t in range(1, length):
        top, first = _closed(best, unfinished).max(1, keepdim=True)
        stay, opened = best[:, within], best[:, opening]
        value = top.expand(b, k).index_copy(1, inner, torch.maximum(stay, opened)) + scores[:, t]
        previous = first.expand(b, k).index_copy(1, inner, torch.where(opened > stay, opening, within))
        if mask is not None:  # past the end a path stands still
            here = mask[:, t].unsqueeze(1)
            value, previous = torch.where(here, value, best), torch.where(here, previous, identity)
        best = value
        pointers.append(previous)
    tag = _closed(best, unfinished).argmax(1)
    path = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    tags = torch.stack(path[::-1], 1)
    return tags if mask is None else tags * mask


def _closed(best: Tensor, unfinished: Tensor) -> Tensor:
    """Scores of paths that may end, or go on with any tag but an inner one."""
    return best.index_fill(1, unfinished, float("-inf")) if len(unfinished) else best


def viterbi(
    scores: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor, end: Tensor | None = None
) -> Tensor:
    """The best path through additive scores, vectorised over the batch.

    Shapes: scores `(batch, token, tag)`; mask `(batch, token)`, true for the first tokens of each row; transitions
    `(tag, tag)` from row to column; start, end `(tag,)`. Returns tag numbers `(batch, token)`, 0 on padding.
    """
    length = scores.shape[1]
    if length == 0:
        return scores.new_zeros(scores.shape[:2], dtype=torch.long)
    backwards = transitions.t().contiguous()  # reducing over the last axis is several times as fast
    best = start + scores[:, 0]
    rows = [best]
    for t in range(1, length):
        value = (best.unsqueeze(1) + backwards).amax(2) + scores[:, t]
        best = value if mask is None else torch.where(mask[:, t, None], value, best)  # past the end a path stands still
        rows.append(best)
    tag = (best if end is None else best + end).argmax(-1)
    path = [tag]
    for t in range(length - 1, 0, -1):
        # The predecessor is looked up for the one tag on the path, so no table of pointers is kept.
        previous = (rows[t - 1] + backwards[tag]).argmax(-1)
        tag = previous if mask is None else torch.where(mask[:, t], previous, tag)
        path.append(tag)
    tags = torch.stack(path[::-1], 1)
    return tags if mask is None else tags * mask
