"""Places of segments in a sentence, and their tags: tables shared by the scores, sums and paths of segments."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

import spen_plugins as sp


class Places(NamedTuple):
    """All places of at most `longest` words in sentences of some length, by end, then by start.

    `start` and `end`, exclusive, are `(place,)`. Places `first[e]` to `first[e + 1]` (exclusive) end at e. `by_start`
    `(place,)` sorts the places by start, then end; in this order, places `first_by_start[s]` to
    `first_by_start[s + 1]` begin at s.
    """

    longest: int
    start: Tensor
    end: Tensor
    first: tuple[int, ...]
    by_start: Tensor
    first_by_start: tuple[int, ...]

    @property
    def size(self) -> Tensor:
        """Words of each place, `(place,)`."""
        return self.end - self.start

    def to(self, device: torch.device) -> Places:
        """The same places on a device."""
        return Places(*(value.to(device) if isinstance(value, Tensor) else value for value in self))

    def find(self, start: Tensor, end: Tensor) -> Tensor:
        """The number of each place; places of more than `longest` words get the number of another place."""
        first = torch.tensor(self.first, device=start.device)
        return first[end] + (start - (end - self.longest).clamp(min=0)).clamp(min=0)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def list_places(tokens: int, longest: int, device: torch.device) -> Places:
    """The places in sentences of `tokens` words; cached for the next batch."""
    longest = min(longest, tokens)
    pairs = [(s, e) for e in range(1, tokens + 1) for s in range(max(0, e - longest), e)]
    start, end = torch.tensor(pairs, device=device).unbind(1)
    first = torch.bincount(end, minlength=tokens + 2).cumsum(0)
    first_by_start = torch.bincount(start, minlength=tokens + 1).cumsum(0)
    by_start = (start * (tokens + 1) + end).argsort()
    return Places(longest, start, end, (0, *first.tolist()), by_start, (0, *first_by_start.tolist()))


class Kinds:
    """The kinds of segments of a space, and their tags: kind 0 is a word outside, the others the types of spans.

    Attributes:
        count: number of kinds.
        kind, begins: `(tag,)` the kind of a tag, and true for the tags that begin a segment.
        begin, inside, end, single: `(kind,)` the tags of a segment's first, inner, last and only word, -1 if there is
            none.
        exists: `(kind,)` by these names, true for kinds with such a tag, except kind 0.
        closes: true under BIOES, where last words and only words have tags of their own.
        unique: `(kind,)` boolean, true for types that a mode has at most once; None: none.

    Raises:
        ConfigError: the space's outputs are not spans in tags.
    """

    def __init__(self, space: sp.OutputSpace, component: str) -> None:
        tags = space.spans if isinstance(space, sp.TagSequence) else None
        if tags is None or tags.outside < 0:
            raise sp.ConfigError(
                f"{component} scores labelled spans, but this task's outputs have none; expected roles, or tags with a "
                "task.scheme of spans and task.constrained=true"
            )
        outside = torch.tensor([tags.outside])
        tag_numbers = [torch.cat([outside, numbers]) for numbers in (tags.begin, tags.inside, tags.end, tags.single)]
        kind = torch.full((len(space.tags),), -1)
        for numbers in tag_numbers:
            is_tag = numbers >= 0
            kind[numbers[is_tag]] = is_tag.nonzero()[:, 0]
        if (kind < 0).any():
            tag = space.tags[int((kind < 0).nonzero()[0])]
            raise sp.ConfigError(
                f"{component} scores labelled spans, but {tag!r} is not a tag of one; expected O and spans"
            )
        begin, _, end, single = tag_numbers
        self.count, self.kind = len(begin), kind
        self.begins = torch.zeros(len(kind), dtype=torch.bool)
        first_tags = torch.cat([begin, single])
        self.begins[first_tags[first_tags >= 0]] = True
        self._sizes = torch.stack([single >= 0, (begin >= 0) & (end >= 0), torch.stack(tag_numbers[:3]).amin(0) >= 0])
        self.begin, self.inside, self.end, self.single = tag_numbers
        is_type = torch.arange(self.count) > 0
        names = ("begin", "inside", "end", "single")
        self.exists = {name: (numbers >= 0) & is_type for name, numbers in zip(names, tag_numbers, strict=True)}
        self.closes = tags.closes
        self.unique = None if space.unique_types is None else torch.cat([torch.tensor([False]), space.unique_types])

    def allowed(self, longest: int) -> Tensor:
        """True where a kind has segments of 1, …, `longest` words, and more, `(longest + 1, kind)`."""
        rows = self._sizes[torch.arange(longest + 1).clamp(max=2)].clone()
        rows[1:, 0] = False
        return rows

    def take(self, values: Tensor, name: str) -> Tensor:
        """Selects the values of each type's tag `begin`, `inside`, `end` or `single`, `(…, tag)` -> `(…, kind)`; 0 for
        types without such a tag, and for the kind outside."""
        return values[..., getattr(self, name).clamp(min=0).to(values.device)] * self.exists[name].to(values)

    def write(self, starts: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """The tags of sentences, `(…, token)`; on padding, the tags of the last segment go on.

        Args:
            starts: true where a segment begins, as the first word does, `(…, token)`.
            kinds: kind of the segment that begins there, `(…, token)`; any other number elsewhere.
            mask: `(…, token)`, true for the words of each sentence.
        """
        device = starts.device
        positions = torch.arange(starts.shape[-1], device=device)
        kind = kinds.gather(-1, torch.where(starts, positions, 0).cummax(-1).values)
        is_last = torch.ones_like(starts)
        is_last[..., :-1] = starts[..., 1:] | ~mask[..., 1:]
        begin, inside, end, single = (n.to(device)[kind] for n in (self.begin, self.inside, self.end, self.single))
        return torch.where(starts, torch.where(is_last, single, begin), torch.where(is_last, end, inside))
