"""Decoding against enumeration of every tag sequence."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch

from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.spaces import TagSequence, allowed_transitions, viterbi
from spen_plugins.spaces.chain import Chain
from spen_plugins.spaces.k_best import span_k_best
from spen_plugins.spaces.paths import is_possible
from spen_plugins.spaces.schemes import span_links

TAGS = ["O", "B-A0", "I-A0", "I-A1", "B-A1"]
BIOES = ["I-Y", "O", "B-X", "S-X", "E-X", "E-Y", "B-Y"]
"""There is no I-X, so that spans of X are one or two words long."""
SCHEMES = {"bio": TAGS, "bioes": BIOES}


def is_valid(path: tuple[int, ...], scheme: str = "bio", tags: list[str] | None = None) -> bool:
    """Checks a path by the rules of the reader, which don't use tables of transitions."""
    try:
        spans([(tags or SCHEMES[scheme])[i] for i in path], scheme)
    except BrokenTags:
        return False
    return True


def find_best_path(scores, length, start, transitions, end, allowed=lambda path: True):
    paths = [path for path in product(range(scores.shape[-1]), repeat=length) if allowed(path)]

    def score(path):
        links = sum(transitions[a, b] for a, b in pairwise(path))
        return start[path[0]] + links + end[path[-1]] + sum(scores[t, tag] for t, tag in enumerate(path))

    return max(paths, key=score)


@pytest.fixture
def scores():
    torch.manual_seed(0)
    return torch.randn(8, 4, len(TAGS), dtype=torch.double) * 2


LENGTHS = [4, 4, 3, 1, 2, 4, 1, 3]
MASK = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


def test_viterbi_finds_the_best_path(scores):
    k = len(TAGS)
    start, transitions, end = (torch.randn(*shape, dtype=torch.double) for shape in [(k,), (k, k), (k,)])
    paths = viterbi(scores, MASK, transitions, start, end)
    for row, length, path in zip(scores, LENGTHS, paths.tolist(), strict=True):
        best = find_best_path(row, length, start, transitions, end)
        assert tuple(path[:length]) == best
        assert path[length:] == [0] * (4 - length)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_decoding_finds_the_best_valid_path(scheme):
    torch.manual_seed(3)
    tags = SCHEMES[scheme]
    scores = torch.randn(8, 4, len(tags), dtype=torch.double) * 2
    zero = torch.zeros(len(tags), len(tags), dtype=torch.double)
    paths = span_k_best(scores, MASK, span_links(tags, scheme), 1)[0][:, 0]
    for row, length, path in zip(scores, LENGTHS, paths.tolist(), strict=True):
        best = find_best_path(row, length, zero[0], zero, zero[0], lambda path: is_valid(path, scheme))
        assert tuple(path[:length]) == best
        assert path[length:] == [0] * (4 - length)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("omitted", [None, *BIOES, *TAGS])
def test_two_ways_of_decoding_agree_for_any_tags(scheme, omitted):
    torch.manual_seed(1)
    tags = [tag for tag in SCHEMES[scheme] if tag != omitted]
    scores = torch.randn(50, 12, len(tags))
    mask = torch.arange(12) < torch.randint(1, 13, (50, 1))
    parts = (torch.where(a, 0.0, float("-inf")) for a in allowed_transitions(tags, scheme))
    paths = span_k_best(scores, mask, span_links(tags, scheme), 1)[0][:, 0]
    assert torch.equal(paths, viterbi(scores, mask, *parts))
    for path, length in zip(paths.tolist(), mask.sum(1).tolist(), strict=True):
        assert is_valid(tuple(path[:length]), scheme, tags) or omitted == "O"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_transitions_equal_those_of_valid_sequences(scheme):
    tags = SCHEMES[scheme]
    following, start, end = allowed_transitions(tags, scheme)
    for path in product(range(len(tags)), repeat=3):
        links = all(following[a, b] for a, b in pairwise(path))
        assert (links and bool(start[path[0]]) and bool(end[path[-1]])) == is_valid(path, scheme)
    assert all(part.all() for part in allowed_transitions(tags, "none"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_padding_does_not_matter(scheme):
    tags = SCHEMES[scheme]
    scores = torch.randn(8, 4, len(tags), dtype=torch.double) * 2
    longer = torch.cat([scores, torch.full((8, 3, len(tags)), 50.0, dtype=torch.double)], 1)
    mask = torch.cat([MASK, torch.zeros(8, 3, dtype=torch.bool)], 1)
    links = span_links(tags, scheme)
    assert torch.equal(span_k_best(longer, mask, links, 1)[0][..., :4], span_k_best(scores, MASK, links, 1)[0])


def test_the_space_decodes_several_samples_under_bio():
    torch.manual_seed(2)
    logits = torch.randn(3, 5, 4, len(TAGS))
    space = TagSequence(TAGS, scheme="bio")
    decoded = space.independent(logits, MASK[:3]).mode.argmax(-1)
    assert decoded.shape == (3, 5, 4)
    for row, length in zip(decoded, LENGTHS, strict=False):
        assert all(is_valid(tuple(path[:length])) for path in row.tolist())
    assert torch.equal(space.independent(logits, MASK[:3]).mode.sum(-1), MASK[:3].unsqueeze(1).expand(3, 5, 4).float())


@pytest.mark.parametrize(
    ("previous", "tag", "allowed"),
    [
        ("O", "I-A0", False),
        ("B-A0", "I-A0", True),
        ("I-A0", "I-A0", True),
        ("I-A0", "I-A1", False),
        ("I-A0", "B-A0", True),
    ],
)
def test_transitions(previous, tag, allowed):
    inside, start, _ = allowed_transitions(TAGS, "bio")
    assert bool(inside[TAGS.index(previous), TAGS.index(tag)]) is allowed
    assert start.tolist() == [True, True, False, False, True]


def test_an_inside_tag_without_a_beginning_is_never_decoded():
    scores = torch.zeros(1, 3, 2)
    scores[..., 1] = 9.0
    assert span_k_best(scores, None, span_links(["O", "I-X"], "bio"), 1)[0].tolist() == [[[0, 0, 0]]]


def test_a_span_that_cannot_end_is_never_decoded():
    scores = torch.zeros(1, 3, 3)
    scores[..., 1:] = 9.0
    assert span_k_best(scores, None, span_links(["O", "B-X", "I-X"], "bioes"), 1)[0].tolist() == [[[0, 0, 0]]]


UNIQUE = ["O", "B-A0", "I-A0", "B-A1", "B-A2"]


def is_unique(path: tuple[int, ...]) -> bool:
    """Valid, with at most one span of A0 and one of A1."""
    return is_valid(path, tags=UNIQUE) and all(path.count(UNIQUE.index(f"B-{role}")) <= 1 for role in ("A0", "A1"))


@pytest.mark.parametrize("chain", [False, True], ids=["independent", "crf"])
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "padded"])
def test_each_unique_type_occurs_at_most_once_in_the_best_path(chain: bool, masked: bool) -> None:
    torch.manual_seed(5)
    k, length = len(UNIQUE), 4
    scores = torch.randn(30, 1, length, k, dtype=torch.double) * 2
    scores[..., [1, 3]] += 2  # many paths would repeat one of the types, or both
    lengths = [4, 4, 4, 1, 2, 3] * 5 if masked else [length] * 30
    mask = torch.arange(length) < torch.tensor(lengths).unsqueeze(1) if masked else None
    space = TagSequence(UNIQUE, "bio", ["A0", "A1"])
    start, transitions, end = (torch.randn(*shape, dtype=torch.double) for shape in [(k,), (k, k), (k,)])
    if not chain:
        start, transitions, end = 0 * start, 0 * transitions, 0 * end
        proposal = space.independent(scores, mask)
    else:
        proposal = CrfProposal(space, scores, mask, chain=Chain(transitions, start, end))
    paths = proposal.mode[:, 0].argmax(-1).tolist()
    repeats = 0
    for row, n, path in zip(scores[:, 0], lengths, paths, strict=True):
        assert tuple(path[:n]) == find_best_path(row, n, start, transitions, end, is_unique)
        repeats += not is_unique(
            find_best_path(row, n, start, transitions, end, lambda path: is_valid(path, tags=UNIQUE))
        )
    assert repeats >= 6, "the best path without the limit often breaks it"
    assert (proposal.mode.sum((2, 3))[:, 0] == torch.tensor(lengths)).all(), "padding has no tag"


def test_unique_types_need_a_scheme() -> None:
    with pytest.raises(ValueError, match="scheme"):
        TagSequence(UNIQUE, "none", ["A0"])


@pytest.mark.parametrize("spread", [0.3, 3.0, 20.0])
@pytest.mark.parametrize("scheme", ["none", *SCHEMES])
def test_modes_found_without_viterbi_equal_those_of_viterbi(scheme: str, spread: float) -> None:
    """Modes of rows from mostly uncertain to mostly certain."""
    rng = torch.Generator().manual_seed(int(spread))
    tags = SCHEMES.get(scheme, TAGS)
    k = len(tags)
    scores = torch.randn(200, 4, k, dtype=torch.double, generator=rng) * spread
    mask = torch.arange(4) < torch.randint(1, 5, (200, 1), generator=rng)
    parts = [torch.randn(*shape, dtype=torch.double, generator=rng) for shape in [(k, k), (k,), (k,)]]
    space = TagSequence(tags, scheme)
    crf = CrfProposal(space, scores.unsqueeze(1), mask, chain=Chain(*parts))
    limits = [torch.zeros_like(part) for part in parts]
    if scheme != "none":
        allowed = allowed_transitions(tags, scheme)
        limits = [part.masked_fill(~links, float("-inf")) for part, links in zip(limits, allowed, strict=True)]
    for proposal, chain_scores in ((crf, parts), (space.independent(scores.unsqueeze(1), mask), limits)):
        expected = viterbi(scores, mask, *(a + b for a, b in zip(chain_scores, limits, strict=True)))
        assert torch.equal(proposal.mode[:, 0].argmax(-1) * mask, expected)
    is_sure = crf.log_prob(crf.mode)[:, 0] > math.log(0.55)
    assert is_sure.any() if spread == 20 else not is_sure.all()


def test_a_path_is_possible_if_every_step_is() -> None:
    allowed = allowed_transitions(TAGS, "bio")
    links = [torch.where(is_allowed, 0.0, float("-inf")) for is_allowed in allowed]
    paths = torch.tensor(list(product(range(len(TAGS)), repeat=3)))
    for length in (1, 2, 3):
        mask = (torch.arange(3) < length).expand(len(paths), 3)
        are_possible = is_possible(paths, mask, *links)
        assert are_possible.tolist() == [is_valid(tuple(path[:length])) for path in paths.tolist()]
