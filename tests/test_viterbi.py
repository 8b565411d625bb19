"""Decoding against enumeration of every tag sequence."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch

from spen_plugins.spaces import TagSequence, bio_transitions, viterbi
from spen_plugins.spaces.tags import bio_inner, bio_viterbi

TAGS = ["O", "B-A0", "I-A0", "I-A1", "B-A1"]


def valid(path: tuple[int, ...]) -> bool:
    before = "O"
    for i in path:
        tag = TAGS[i]
        if tag.startswith("I-") and before[2:] != tag[2:]:
            return False
        before = tag
    return True


def best_by_enumeration(scores, length, start, transitions, end, allowed=lambda path: True):
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
    found = viterbi(scores, MASK, transitions, start, end)
    for row, length, path in zip(scores, LENGTHS, found.tolist(), strict=True):
        best = best_by_enumeration(row, length, start, transitions, end)
        assert tuple(path[:length]) == best
        assert path[length:] == [0] * (4 - length)


def test_bio_decoding_finds_the_best_valid_path(scores):
    zero = torch.zeros(len(TAGS), len(TAGS), dtype=torch.double)
    found = bio_viterbi(scores, MASK, *bio_inner(TAGS))
    for row, length, path in zip(scores, LENGTHS, found.tolist(), strict=True):
        assert tuple(path[:length]) == best_by_enumeration(row, length, zero[0], zero, zero[0], valid)
        assert path[length:] == [0] * (4 - length)


def test_two_ways_of_bio_decoding_agree():
    torch.manual_seed(1)
    scores = torch.randn(50, 12, len(TAGS))
    mask = torch.arange(12) < torch.randint(1, 13, (50, 1))
    inside, start = (torch.where(a, 0.0, float("-inf")) for a in bio_transitions(TAGS))
    assert torch.equal(bio_viterbi(scores, mask, *bio_inner(TAGS)), viterbi(scores, mask, inside, start))


def test_padding_does_not_matter(scores):
    longer = torch.cat([scores, torch.full((8, 3, len(TAGS)), 50.0, dtype=torch.double)], 1)
    mask = torch.cat([MASK, torch.zeros(8, 3, dtype=torch.bool)], 1)
    inner = bio_inner(TAGS)
    assert torch.equal(bio_viterbi(longer, mask, *inner)[:, :4], bio_viterbi(scores, MASK, *inner))


def test_the_space_decodes_several_samples_under_bio():
    torch.manual_seed(2)
    logits = torch.randn(3, 5, 4, len(TAGS))
    space = TagSequence(TAGS, scheme="bio")
    decoded = space.decode(logits, MASK[:3])
    assert decoded.shape == (3, 5, 4)
    for row, length in zip(decoded, LENGTHS, strict=False):
        assert all(valid(tuple(path[:length])) for path in row.tolist())
    assert torch.equal(space.best(logits, MASK[:3]).sum(-1), MASK[:3].unsqueeze(1).expand(3, 5, 4).float())


@pytest.mark.parametrize(
    ("after", "tag", "allowed"),
    [
        ("O", "I-A0", False),
        ("B-A0", "I-A0", True),
        ("I-A0", "I-A0", True),
        ("I-A0", "I-A1", False),
        ("I-A0", "B-A0", True),
    ],
)
def test_transitions(after, tag, allowed):
    inside, start = bio_transitions(TAGS)
    assert bool(inside[TAGS.index(after), TAGS.index(tag)]) is allowed
    assert start.tolist() == [True, True, False, False, True]


def test_an_inside_tag_without_a_beginning_is_never_decoded():
    scores = torch.zeros(1, 3, 2)
    scores[..., 1] = 9.0
    assert bio_viterbi(scores, None, *bio_inner(["O", "I-X"])).tolist() == [[0, 0, 0]]
