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


def find_loose_spans(names, scheme):
    """The complete spans that no tag of theirs follows; other tags may break the scheme."""
    n = len(names)
    triples = []
    for kind in {name[2:] for name in names if name != "O"}:
        for start, end in combinations(range(n + 1), 2):
            inner = [f"I-{kind}"] * (end - start - 1)
            if scheme == "bio":
                tags = [f"B-{kind}", *inner]
                is_there = names[start:end] == tags and names[end : end + 1] != [f"I-{kind}"]
            else:
                tags = [f"S-{kind}"] if end - start == 1 else [f"B-{kind}", *inner[1:], f"E-{kind}"]
                is_there = names[start:end] == tags
            triples += [(kind, start, end)] if is_there else []
    return triples


def enumerate_posteriors(proposal, row, valid_only):
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
        for kind, start, end in find_loose_spans(names, space.scheme):
            span = (start, end, space.spans.types.index(kind))
            posteriors[span] = posteriors.get(span, 0.0) + p
    return {span: p / total for span, p in posteriors.items()} if valid_only else posteriors


def make_proposal(kind, scheme, seed=0, scale=2.0):
    torch.manual_seed(seed)
    tags = SCHEMES[scheme]
    space, k = TagSequence(tags, scheme), len(tags)
    logits = torch.randn(4, 1, 4, k, dtype=torch.double) * scale
    if kind == "independent":
        return space.independent(logits, MASK)
    chain = Chain(*(torch.randn(*shape, dtype=torch.double) for shape in [(k, k), (k,), (k,)]))
    return CrfProposal(space, logits, MASK, chain=chain, constrained=kind == "crf")


def tabulate(posteriors, row):
    row_posteriors = posteriors.pick(posteriors.row == row)
    return {(s, e, k): p for s, e, k, p in zip(*(values.tolist() for values in row_posteriors[1:]), strict=True)}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["independent", "crf", "free crf"])
def test_posteriors_equal_those_over_all_tag_sequences(kind, scheme):
    proposal = make_proposal(kind, scheme)
    posteriors, likely = proposal.span_posteriors(0.0), proposal.span_posteriors(0.1)
    for row in range(4):
        expected, table = enumerate_posteriors(proposal, row, kind == "crf"), tabulate(posteriors, row)
        assert all(table.get(span, 0.0) == pytest.approx(p, abs=1e-10) for span, p in expected.items())
        assert table.keys() <= expected.keys()
        assert tabulate(likely, row) == {span: p for span, p in table.items() if p > 0.1}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posteriors_of_a_mixture_are_weighted_means(scheme):
    parts = [make_proposal("crf", scheme, seed) for seed in (1, 2)]
    weights = torch.tensor([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
    posteriors, part_posteriors = (
        Mixture.of(parts, weights.log()).span_posteriors(0.0),
        [part.span_posteriors(0.0) for part in parts],
    )
    for row in range(4):
        table, (first, second) = tabulate(posteriors, row), (tabulate(part, row) for part in part_posteriors)
        assert table.keys() == first.keys() | second.keys()
        for span, p in table.items():
            mean = weights[row, 0] * first.get(span, 0.0) + weights[row, 1] * second.get(span, 0.0)
            assert p == pytest.approx(mean.item(), abs=1e-12)


def test_forbidden_sequences_have_no_probability_however_high_their_scores():
    """Scores in which every allowed sequence is hundreds of nats below the best one."""
    space = TagSequence(SCHEMES["bioes"], "bioes")
    logits = torch.zeros(1, 1, 3, 7, dtype=torch.double)
    logits[0, 0, :, space.tags.index("B-X")] = 150.0
    chain = Chain(torch.zeros(7, 7).double(), torch.zeros(7).double(), torch.zeros(7).double())
    posteriors = tabulate(CrfProposal(space, logits, None, chain=chain).span_posteriors(0.01), 0)
    # One B-X with its E-X; the third word is O or S-X.
    long_spans = {span: p for span, p in posteriors.items() if span[1] - span[0] == 2}
    assert long_spans == pytest.approx({(0, 2, 0): 0.5, (1, 3, 0): 0.5}) and len(posteriors) == 4


def test_spans_of_any_length_are_found():
    space = TagSequence(["O", "B-X", "I-X"], "bio")
    logits = torch.full((1, 1, 60, 3), -4.0)
    logits[..., 2], logits[0, 0, 0] = 4.0, torch.tensor([-4.0, 4.0, -4.0])
    assert tabulate(space.independent(logits).span_posteriors(0.5), 0).keys() == {(0, 60, 0)}


def test_a_space_without_spans_has_none():
    space = TagSequence(["x", "y"])
    with pytest.raises(ConfigError, match="no posteriors of spans"):
        space.independent(torch.zeros(1, 1, 2, 2)).span_posteriors(0.1)


def draw_spans(seed, rows=5, tokens=6, kinds=3):
    generator = torch.Generator().manual_seed(seed)
    all_spans = [(r, s, e, k) for r in range(rows) for s, e in combinations(range(tokens + 1), 2) for k in range(kinds)]
    chosen = torch.rand(len(all_spans), generator=generator) < 0.2
    columns = torch.tensor(all_spans)[chosen].T
    return Spans(*columns, torch.rand(columns.shape[1], generator=generator, dtype=torch.double))


def sum_values(group, threshold):
    return sum(p - threshold for *_, p in group)


@pytest.mark.parametrize("unique", [None, [True, False, True], [True, True, True]], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_no_set_without_overlap_has_a_higher_value(seed, unique):
    spans, limits = draw_spans(seed), None if unique is None else torch.tensor(unique)
    for threshold in (0.0, 0.3, 0.5):
        best = best_spans(spans, threshold, limits)
        for row in range(5):
            row_spans = list(zip(*(v.tolist() for v in spans.pick(spans.row == row)), strict=True))
            candidates = [span for span in row_spans if span[4] > threshold]
            highest = 0.0
            for size in range(1, 7):
                for group in combinations(candidates, size):
                    kinds = [k for _, _, _, k, _ in group]
                    is_disjoint = all(a[2] <= b[1] or b[2] <= a[1] for a, b in combinations(group, 2))
                    is_unique = unique is None or all(kinds.count(k) <= 1 for k in range(3) if unique[k])
                    if is_disjoint and is_unique:
                        highest = max(highest, sum_values(group, threshold))
            chosen = list(zip(*(v.tolist() for v in best.pick(best.row == row)), strict=True))
            assert sum_values(chosen, threshold) == pytest.approx(highest, abs=1e-12)
            assert all(a[2] <= b[1] for a, b in pairwise(chosen))
            kinds = [k for _, _, _, k, _ in chosen]
            assert unique is None or all(kinds.count(k) <= 1 for k in range(3) if unique[k])


def test_no_spans_are_chosen_from_none():
    empty = draw_spans(0).pick(torch.zeros(len(draw_spans(0).row), dtype=torch.bool))
    assert not len(best_spans(empty, 0.1).row) and not len(best_spans(draw_spans(0), 1.0).row)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_are_written_as_they_are_read(scheme):
    """Writing the spans of a valid sequence yields that sequence."""
    space = TagSequence(SCHEMES[scheme], scheme)
    for path in product(range(len(space.tags)), repeat=3):
        try:
            valid_spans = spans([space.tags[i] for i in path], scheme)
        except BrokenTags:
            continue
        rows = [(0, span.start, span.end, space.spans.types.index(span.type)) for span in valid_spans]
        columns = torch.tensor(rows, dtype=torch.long).reshape(-1, 4).T
        mask = torch.tensor([[True, True, True, False]])
        tags = space.spans.write(Spans(*columns, torch.ones(len(rows))), mask)
        assert tags.tolist() == [[*path, 0]]


def test_padding_and_neighbours_do_not_matter():
    proposal = make_proposal("crf", "bio")
    single = CrfProposal(proposal.space, proposal.logits[3:, :, :3], None, chain=proposal.chain)
    assert tabulate(single.span_posteriors(0.05), 0) == pytest.approx(
        tabulate(proposal.span_posteriors(0.05), 3), abs=1e-12
    )


def test_without_a_mask_all_words_count():
    proposal = sp.TagSequence(["O", "B-X", "I-X"], "bio").independent(torch.randn(2, 1, 5, 3))
    masked = proposal.space.independent(proposal.logits, torch.ones(2, 5, dtype=torch.bool))
    for unmasked_values, masked_values in zip(proposal.span_posteriors(0.1), masked.span_posteriors(0.1), strict=True):
        torch.testing.assert_close(unmasked_values, masked_values)
