"""Posteriors of spans, and sets of them without overlap, against enumeration of all tag sequences and of all sets."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.errors import ConfigError
from spen_plugins.spaces import Mixture, Spans, TagSequence
from spen_plugins.spaces.chain import Chain
from spen_plugins.spaces.spans import best_spans

SCHEMES = {
    "bio": ["O", "B-A0", "I-A0", "I-A1", "B-A1"],
    "bioes": ["I-Y", "O", "B-X", "S-X", "E-X", "E-Y", "B-Y"],
}
LENGTHS = [4, 2, 1, 3]
MASK = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


def read_loosely(names, scheme):
    """The spans that are whole, with no tag of theirs after them; the rest of the tags may break the scheme."""
    n = len(names)
    found = []
    for kind in {name[2:] for name in names if name != "O"}:
        for start, end in combinations(range(n + 1), 2):
            inner = [f"I-{kind}"] * (end - start - 1)
            if scheme == "bio":
                whole = [f"B-{kind}", *inner]
                is_there = names[start:end] == whole and names[end : end + 1] != [f"I-{kind}"]
            else:
                whole = [f"S-{kind}"] if end - start == 1 else [f"B-{kind}", *inner[1:], f"E-{kind}"]
                is_there = names[start:end] == whole
            found += [(kind, start, end)] if is_there else []
    return found


def enumerated(proposal, row, valid_only):
    """The posterior of each span of a row."""
    space, length = proposal.space, LENGTHS[row]
    total, posteriors = 0.0, {}
    for path in product(range(len(space.tags)), repeat=length):
        names = [space.tags[i] for i in path]
        if valid_only:
            try:
                spans(names, space.scheme)
            except BrokenTags:
                continue
        y = torch.zeros(4, 1, 4, len(space.tags), dtype=torch.double)
        y[row, 0, range(length), path] = 1
        p = proposal.log_prob(y)[row, 0].exp().item()
        total += p
        for kind, start, end in read_loosely(names, space.scheme):
            place = (start, end, space.spans.types.index(kind))
            posteriors[place] = posteriors.get(place, 0.0) + p
    return {place: p / total for place, p in posteriors.items()} if valid_only else posteriors


def make(kind, scheme, seed=0, scale=2.0):
    torch.manual_seed(seed)
    tags = SCHEMES[scheme]
    space, k = TagSequence(tags, scheme), len(tags)
    logits = torch.randn(4, 1, 4, k, dtype=torch.double) * scale
    if kind == "independent":
        return space.independent(logits, MASK)
    chain = Chain(*(torch.randn(*shape, dtype=torch.double) for shape in [(k, k), (k,), (k,)]))
    return CrfProposal(space, logits, MASK, chain=chain, constrained=kind == "crf")


def table(found, row):
    here = found.pick(found.row == row)
    return {(s, e, k): p for s, e, k, p in zip(*(values.tolist() for values in here[1:]), strict=True)}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["independent", "crf", "free crf"])
def test_posteriors_are_those_of_all_tag_sequences(kind, scheme):
    proposal = make(kind, scheme)
    found, few = proposal.span_posteriors(0.0), proposal.span_posteriors(0.1)
    for row in range(4):
        wanted, ours = enumerated(proposal, row, kind == "crf"), table(found, row)
        assert all(ours.get(place, 0.0) == pytest.approx(p, abs=1e-10) for place, p in wanted.items())
        assert ours.keys() <= wanted.keys()
        assert table(few, row) == {place: p for place, p in ours.items() if p > 0.1}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posteriors_of_a_mixture_are_means(scheme):
    parts = [make("crf", scheme, seed) for seed in (1, 2)]
    weights = torch.tensor([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
    found, each = Mixture.of(parts, weights.log()).span_posteriors(0.0), [part.span_posteriors(0.0) for part in parts]
    for row in range(4):
        ours, (one, two) = table(found, row), (table(some, row) for some in each)
        assert ours.keys() == one.keys() | two.keys()
        for place, p in ours.items():
            mean = weights[row, 0] * one.get(place, 0.0) + weights[row, 1] * two.get(place, 0.0)
            assert p == pytest.approx(mean.item(), abs=1e-12)


def test_what_a_scheme_forbids_has_no_share_however_likely():
    """Scores in which every allowed sequence is hundreds of nats below the best one."""
    space = TagSequence(SCHEMES["bioes"], "bioes")
    logits = torch.zeros(1, 1, 3, 7, dtype=torch.double)
    logits[0, 0, :, space.tags.index("B-X")] = 150.0
    chain = Chain(torch.zeros(7, 7).double(), torch.zeros(7).double(), torch.zeros(7).double())
    found = table(CrfProposal(space, logits, None, chain=chain).span_posteriors(0.01), 0)
    # One B-X with its E-X; the third word is O or S-X.
    two = {place: p for place, p in found.items() if place[1] - place[0] == 2}
    assert two == pytest.approx({(0, 2, 0): 0.5, (1, 3, 0): 0.5}) and len(found) == 4


def test_spans_of_any_length_are_found():
    space = TagSequence(["O", "B-X", "I-X"], "bio")
    logits = torch.full((1, 1, 60, 3), -4.0)
    logits[..., 2], logits[0, 0, 0] = 4.0, torch.tensor([-4.0, 4.0, -4.0])
    assert table(space.independent(logits).span_posteriors(0.5), 0).keys() == {(0, 60, 0)}


def test_a_space_without_spans_has_none():
    space = TagSequence(["x", "y"])
    with pytest.raises(ConfigError, match="no posteriors of spans"):
        space.independent(torch.zeros(1, 1, 2, 2)).span_posteriors(0.1)


def random_spans(seed, rows=5, tokens=6, kinds=3):
    generator = torch.Generator().manual_seed(seed)
    every = [(r, s, e, k) for r in range(rows) for s, e in combinations(range(tokens + 1), 2) for k in range(kinds)]
    chosen = torch.rand(len(every), generator=generator) < 0.2
    places = torch.tensor(every)[chosen].T
    return Spans(*places, torch.rand(places.shape[1], generator=generator, dtype=torch.double))


def value_of(some, threshold):
    return sum(p - threshold for *_, p in some)


@pytest.mark.parametrize("unique", [None, [True, False, True], [True, True, True]], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_no_set_without_overlap_is_worth_more(seed, unique):
    spans, limits = random_spans(seed), None if unique is None else torch.tensor(unique)
    for threshold in (0.0, 0.3, 0.5):
        best = best_spans(spans, threshold, limits)
        for row in range(5):
            some = list(zip(*(v.tolist() for v in spans.pick(spans.row == row)), strict=True))
            worth = [span for span in some if span[4] > threshold]
            highest = 0.0
            for size in range(1, 7):
                for group in combinations(worth, size):
                    kinds = [k for _, _, _, k, _ in group]
                    apart = all(a[2] <= b[1] or b[2] <= a[1] for a, b in combinations(group, 2))
                    once = unique is None or all(kinds.count(k) <= 1 for k in range(3) if unique[k])
                    if apart and once:
                        highest = max(highest, value_of(group, threshold))
            mine = list(zip(*(v.tolist() for v in best.pick(best.row == row)), strict=True))
            assert value_of(mine, threshold) == pytest.approx(highest, abs=1e-12)
            assert all(a[2] <= b[1] for a, b in pairwise(mine))
            kinds = [k for _, _, _, k, _ in mine]
            assert unique is None or all(kinds.count(k) <= 1 for k in range(3) if unique[k])


def test_none_of_no_spans():
    empty = random_spans(0).pick(torch.zeros(len(random_spans(0).row), dtype=torch.bool))
    assert not len(best_spans(empty, 0.1).row) and not len(best_spans(random_spans(0), 1.0).row)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_are_written_as_they_are_read(scheme):
    """Each valid sequence is that of its spans."""
    space = TagSequence(SCHEMES[scheme], scheme)
    for path in product(range(len(space.tags)), repeat=3):
        try:
            read = spans([space.tags[i] for i in path], scheme)
        except BrokenTags:
            continue
        rows = [(0, span.start, span.end, space.spans.types.index(span.type)) for span in read]
        places = torch.tensor(rows, dtype=torch.long).reshape(-1, 4).T
        mask = torch.tensor([[True, True, True, False]])
        written = space.spans.write(Spans(*places, torch.ones(len(rows))), mask)
        assert written.tolist() == [[*path, 0]]


def test_padding_and_neighbours_do_not_matter():
    proposal = make("crf", "bio")
    alone = CrfProposal(proposal.space, proposal.logits[3:, :, :3], None, chain=proposal.chain)
    assert table(alone.span_posteriors(0.05), 0) == pytest.approx(table(proposal.span_posteriors(0.05), 3), abs=1e-12)


def test_without_a_mask_all_words_count():
    proposal = sp.TagSequence(["O", "B-X", "I-X"], "bio").independent(torch.randn(2, 1, 5, 3))
    masked = proposal.space.independent(proposal.logits, torch.ones(2, 5, dtype=torch.bool))
    for ours, theirs in zip(proposal.span_posteriors(0.1), masked.span_posteriors(0.1), strict=True):
        torch.testing.assert_close(ours, theirs)
