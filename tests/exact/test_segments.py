"""The semi-Markov model against enumeration of every tag sequence, with a score of segments without recursion."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_exact.segment_places import Kinds
from spen_exact.segment_scores import SegmentScorer
from spen_exact.segment_sums import backward_sums, forward_sums, place_posteriors
from spen_exact.segments import Segments, SegmentsNet, SegmentsProposal
from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.errors import ConfigError
from spen_plugins.spaces.chain import Chain
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import loaded

SCHEMES = {
    "bio": ["O", "B-A", "I-A", "B-B"],  # spans of B are single words
    "bioes": ["I-Y", "O", "B-X", "S-X", "E-X", "E-Y", "B-Y"],  # those of X at most two, of Y at least two
}
WORDS, WIDTH = 4, 3
LENGTHS = [4, 2, 1, 3]
MASK = torch.arange(WORDS) < torch.tensor(LENGTHS).unsqueeze(1)
CASES = [(scheme, longest) for scheme in SCHEMES for longest in (2, 3, 9)]


def make(scheme, longest, unique=(), seed=0):
    """A scorer with weights large enough to see, random vectors, and its proposal for them."""
    torch.manual_seed(seed)
    space = sp.TagSequence(SCHEMES[scheme], scheme, unique)
    kinds = Kinds(space, "test")
    scorer = SegmentScorer(kinds, WIDTH, longest, 4).double()
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.normal_(std=0.8)
    vectors = torch.randn(4, WORDS, WIDTH, dtype=torch.double)
    return scorer, propose(space, kinds, scorer(vectors, MASK), MASK), vectors


def propose(space, kinds, scores, mask):
    logits = torch.zeros(*mask.shape, len(space.tags), dtype=scores.start.dtype, requires_grad=True).unsqueeze(1)
    return SegmentsProposal(space, logits, mask, segments=scores, kinds=kinds)


def list_segments(names, scheme):
    """Kind names and places of all segments, words outside included; None for tags that break the scheme."""
    try:
        labelled = [(span.type, span.start, span.end) for span in spans(names, scheme)]
    except BrokenTags:
        return None
    unlabelled = [(None, i, i + 1) for i, name in enumerate(names) if name == "O"]
    return sorted(labelled + unlabelled, key=lambda segment: segment[1])


def score(scorer, space, vectors, segments):
    """The score of one sentence's segments, part by part."""
    number = {None: 0, **{kind: i for i, kind in enumerate(space.spans.types, 1)}}
    first, last, inner = scorer.words(vectors).chunk(3, -1)
    first_part, last_part, mean = scorer.parts(vectors).chunk(3, -1)
    total = scorer.first[number[segments[0][0]]] + scorer.last[number[segments[-1][0]]]
    for kind, start, end in segments:
        k, size = number[kind], end - start
        total = total + first[start, k] + last[end - 1, k] + inner[start:end, k].sum()
        if size <= scorer.longest:
            hidden = first_part[start] + last_part[end - 1] + mean[start:end].mean(0) + scorer.numbers[size - 1]
            total = total + scorer.values.weight[k] @ F.relu(hidden) + scorer.bias[size - 1, k]
        else:
            total = total + scorer.bias[-1, k]
    return total + sum(scorer.links[number[a[0]], number[b[0]]] for a, b in pairwise(segments))


def enumerate_outputs(scorer, proposal, vectors, row):
    """Each tag sequence of a row, its segments (or None), and its log-probability; y `(1, sequence, token, tag)`."""
    space, length = proposal.space, LENGTHS[row]
    paths = torch.tensor(list(product(range(len(space.tags)), repeat=length)))
    all_segments = [list_segments([space.tags[i] for i in path], space.scheme) for path in paths.tolist()]
    valid = torch.tensor([segments is not None for segments in all_segments])
    scores = torch.stack(
        [score(scorer, space, vectors[row], segments) for segments in all_segments if segments is not None]
    )
    log_p = torch.full((len(paths),), -torch.inf, dtype=torch.double)
    log_p[valid] = scores.log_softmax(0)
    y = F.pad(F.one_hot(paths, len(space.tags)).double(), (0, 0, 0, WORDS - length)).unsqueeze(0)
    return y, all_segments, log_p, torch.logsumexp(scores, 0)


@pytest.mark.parametrize(("scheme", "longest"), CASES)
def test_probabilities_and_marginals(scheme, longest):
    scorer, proposal, vectors = make(scheme, longest)
    span_posteriors = proposal.span_posteriors(0.0)
    for row in range(4):
        y, all_segments, log_p, log_z = enumerate_outputs(scorer, proposal, vectors, row)
        p, valid = log_p.exp(), log_p > -torch.inf
        torch.testing.assert_close(proposal.log_z[row], log_z, atol=1e-10, rtol=0)
        row_log_p = proposal.log_prob(y.expand(4, -1, -1, -1))[row]
        torch.testing.assert_close(row_log_p, log_p, atol=1e-10, rtol=0)
        valid_log_p = proposal.log_prob(y[:, valid].expand(4, -1, -1, -1))[row]  # without others: by their segments
        torch.testing.assert_close(valid_log_p, log_p[valid], atol=1e-10, rtol=0)
        torch.testing.assert_close(proposal.mean[row, 0], (p[:, None, None] * y[0]).sum(0), atol=1e-10, rtol=0)
        pairs = torch.einsum("n,nta,ntb->tab", p, y[0, :, :-1], y[0, :, 1:])
        torch.testing.assert_close(proposal.pairs[row], pairs, atol=1e-10, rtol=0)
        posteriors = {}
        for segments, probability in zip(all_segments, p.tolist(), strict=True):
            for kind, start, end in segments or ():
                if kind is not None:
                    key = (start, end, proposal.space.spans.types.index(kind))
                    posteriors[key] = posteriors.get(key, 0.0) + probability
        row_spans = span_posteriors.pick(span_posteriors.row == row)
        table = {(s, e, k): p for s, e, k, p in zip(*(v.tolist() for v in row_spans[1:]), strict=True)}
        assert table == pytest.approx(posteriors, abs=1e-10)


@pytest.mark.parametrize(("scheme", "longest"), CASES)
def test_the_best_sequences(scheme, longest):
    scorer, proposal, vectors = make(scheme, longest)
    best, log_q = proposal.k_best(12)
    for row in range(4):
        y, _, log_p, _ = enumerate_outputs(scorer, proposal, vectors, row)
        order = log_p.argsort(descending=True)[: int((log_p > -torch.inf).sum())][:12]
        n = len(order)
        assert torch.equal(proposal.mode[row, 0], y[0, order[0]])
        assert torch.equal(best[row, :n], y[0, order]) and torch.equal(
            best[row, n:], best[row, :1].expand(12 - n, -1, -1)
        )
        torch.testing.assert_close(log_q[row, :n], log_p[order], atol=1e-10, rtol=0)
        assert (log_q[row, n:] == -torch.inf).all()


@pytest.mark.parametrize("unique", [["A"], ["A", "B"]], ids=str)
@pytest.mark.parametrize("longest", [2, 9])
def test_unique_types_occur_once(longest, unique):
    repeats = 0
    for seed in range(6):
        scorer, proposal, vectors = make("bio", longest, unique, seed)
        for row in range(4):
            y, all_segments, log_p, _ = enumerate_outputs(scorer, proposal, vectors, row)
            is_unique = torch.tensor(
                [
                    segments is not None and all([k for k, *_ in segments].count(u) <= 1 for u in unique)
                    for segments in all_segments
                ]
            )
            repeats += int(not is_unique[log_p.argmax()])
            best = log_p.masked_fill(~is_unique, -torch.inf).argmax()
            assert torch.equal(proposal.mode[row, 0], y[0, best])
    assert repeats


def test_tempered_segments_have_the_same_best_sequences():
    proposal = make("bio", 2)[1]
    best, log_q = proposal.k_best(300)
    for temperature in (2.0, 4.0):
        tempered_best, tempered_log_q = proposal.tempered(temperature).k_best(300)
        assert torch.equal(tempered_best, best) and torch.equal(tempered_log_q == -torch.inf, log_q == -torch.inf)


def test_all_tables_move_to_the_device_of_the_rows():
    moved = make("bio", 2)[1].map_rows(lambda values: values.to("meta")).segments
    tensors = [*vars(moved).values(), *moved.places]
    assert {values.device.type for values in tensors if isinstance(values, torch.Tensor)} == {"meta"}


@pytest.mark.parametrize(("scheme", "longest"), [("bio", 2), ("bioes", 9)])
def test_samples(scheme, longest):
    scorer, proposal, vectors = make(scheme, longest)
    torch.manual_seed(1)
    n = 20000
    samples = proposal.sample(n)
    assert samples.shape == (4, n, WORDS, len(proposal.space.tags)) and not samples.requires_grad
    assert not samples.movedim(1, 2)[~MASK].any()
    for row, length in enumerate(LENGTHS):
        base = len(proposal.space.tags)
        code = (samples[row, :, :length].argmax(-1) * base ** torch.arange(length - 1, -1, -1)).sum(-1)
        counts = torch.bincount(code, minlength=base**length)
        expected = enumerate_outputs(scorer, proposal, vectors, row)[2].exp() * n
        assert not counts[expected == 0].any()
        common = expected > 5
        rest = expected[~common].sum(), counts[~common].sum()
        chi_square = ((counts - expected) ** 2 / expected)[common].sum() + (rest[1] - rest[0]) ** 2 / max(1.0, rest[0])
        degrees = int(common.sum())
        assert chi_square < degrees + 5 * (2 * degrees) ** 0.5


@pytest.mark.parametrize(("scheme", "longest"), CASES)
def test_gradients_of_ln_z_are_marginals(scheme, longest):
    _, proposal, _ = make(scheme, longest)
    names = ("start", "end", "inner", "long", "links", "first", "last")
    leaves = {name: getattr(proposal.segments, name).detach().requires_grad_() for name in names}
    scores = replace(proposal.segments, **leaves)
    forward, backward = forward_sums(scores), backward_sums(scores)
    gradients = torch.autograd.grad(forward.log_z.sum(), list(leaves.values()), retain_graph=True, allow_unused=True)
    gradient_of = dict(zip(names, gradients, strict=True))
    log_z = forward.log_z[:, None, None]
    expected = {
        "start": torch.exp(forward.entry + backward.starts - log_z),
        "end": torch.exp(forward.ends + backward.exit - log_z),
        "inner": place_posteriors(scores, forward, backward),
    }
    for name, value in expected.items():
        torch.testing.assert_close(gradient_of[name], value, atol=1e-10, rtol=0)
    [gradient] = torch.autograd.grad(proposal.mean.square().sum(), proposal.segments.start)
    assert gradient.any()


def test_marginals_have_correct_gradients():
    scorer, proposal, vectors = make("bioes", 2)
    kinds, space = proposal.kinds, proposal.space

    def compute(vectors):
        return propose(space, kinds, scorer(vectors, MASK), MASK).mean

    assert torch.autograd.gradcheck(compute, (vectors.requires_grad_(),))


def test_links_of_any_size_are_summed_exactly():
    scorer, _, vectors = make("bio", 2)
    space = sp.TagSequence(SCHEMES["bio"], "bio")
    kinds = Kinds(space, "test")
    with torch.no_grad():
        scorer.links.mul_(300)
    double = propose(space, kinds, scorer(vectors, MASK), MASK)
    for row in range(4):
        torch.testing.assert_close(double.log_z[row], enumerate_outputs(scorer, double, vectors, row)[3])
    single = propose(space, kinds, deepcopy(scorer).float()(vectors.float(), MASK), MASK)
    torch.testing.assert_close(single.log_z, double.log_z.float(), rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(single.mean, double.mean.float(), rtol=0, atol=1e-3)
    assert torch.autograd.grad(single.log_z.sum(), single.segments.inner)[0].isfinite().all()


def test_spans_of_one_word_are_a_crf_over_types():
    torch.manual_seed(0)
    space = sp.TagSequence(["B-A", "O", "B-B"], "bio")
    kinds = Kinds(space, "test")
    scorer = SegmentScorer(kinds, WIDTH, 4, 5).double()
    scores = scorer(torch.randn(4, WORDS, WIDTH, dtype=torch.double), MASK)
    proposal = propose(space, kinds, scores, MASK)
    start = torch.arange(WORDS)
    emissions = scores.start + scores.end + scores.inner[:, scores.places.find(start, start + 1)]
    tag = kinds.kind  # of each tag its kind, so that scores are by tag
    chain = Chain(scores.links[tag][:, tag], scores.first[tag], scores.last[tag])
    crf = CrfProposal(space, emissions[..., tag].unsqueeze(1), MASK, chain=chain)
    y = crf.sample(20)
    torch.testing.assert_close(proposal.log_z, crf.log_z)
    torch.testing.assert_close(proposal.log_prob(y), crf.log_prob(y))
    torch.testing.assert_close(proposal.mean, crf.mean)
    torch.testing.assert_close(proposal.pairs, crf.pairs)
    assert torch.equal(proposal.mode, crf.mode)
    for values, expected in zip(proposal.span_posteriors(0.05), crf.span_posteriors(0.05), strict=True):
        torch.testing.assert_close(values, expected)


@pytest.mark.parametrize(("scheme", "longest"), CASES)
def test_neither_padding_nor_neighbours_matter(scheme, longest):
    scorer, proposal, vectors = make(scheme, longest)
    padded = F.pad(vectors, (0, 0, 0, 3), value=7.0).flip(0)
    mask = F.pad(MASK, (0, 3)).flip(0)
    other = propose(proposal.space, proposal.kinds, scorer(padded, mask), mask)
    torch.testing.assert_close(other.log_z.flip(0), proposal.log_z)
    torch.testing.assert_close(other.mean.flip(0)[:, :, :WORDS], proposal.mean)
    assert not other.mean[..., WORDS:, :].any()
    assert torch.equal(other.mode.flip(0)[:, :, :WORDS], proposal.mode)
    y = proposal.sample(4)
    dirty = F.pad(y, (0, 0, 0, 3), value=1.0).flip(0)
    torch.testing.assert_close(other.log_prob(dirty).flip(0), proposal.log_prob(y))
    relaxed = proposal.rsample(3)
    dirty = F.pad(relaxed, (0, 0, 0, 3), value=0.3).flip(0)
    torch.testing.assert_close(other.log_prob(dirty).flip(0), proposal.log_prob(relaxed))


def test_single_precision_is_enough_for_200_words():
    torch.manual_seed(0)
    tags = ["O", *[f"{prefix}-{kind}" for kind in range(12) for prefix in "BI"]]
    space = sp.TagSequence(tags, "bio")
    kinds = Kinds(space, "test")
    scorer = SegmentScorer(kinds, 16, 30, 16)
    vectors, mask = 2 * torch.randn(2, 200, 16), torch.arange(200) < torch.tensor([[200], [143]])
    single = propose(space, kinds, scorer(vectors, mask), mask)
    double = propose(space, kinds, deepcopy(scorer).double()(vectors.double(), mask), mask)
    torch.testing.assert_close(single.log_z, double.log_z.float(), rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(single.mean, double.mean.float(), rtol=0, atol=1e-3)
    y = double.sample(5)
    torch.testing.assert_close(single.log_prob(y), double.log_prob(y).float(), rtol=1e-4, atol=0.02)


def test_autocast_does_not_change_the_sums():
    torch.manual_seed(0)
    space = sp.TagSequence(SCHEMES["bio"], "bio")
    kinds = Kinds(space, "test")
    scores = SegmentScorer(kinds, 8, 3, 4)(torch.randn(2, 60, 8), mask := torch.ones(2, 60, dtype=torch.bool)).detach()
    proposal = propose(space, kinds, scores, mask)
    y, mean = proposal.sample(3), proposal.mean
    log_q = proposal.log_prob(y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        proposal = propose(space, kinds, scores, mask)
        torch.testing.assert_close(proposal.mean, mean)
        torch.testing.assert_close(proposal.log_prob(y), log_q)


def make_parts(longest=2, seed=0):
    """An energy on the toy's sentences, and a batch."""
    torch.manual_seed(seed)
    task = ToyTags()
    energy = Segments(Segments.Config(longest=longest, size=4), task, ToyFeatures(task)).double().eval()
    for parameter in energy.parameters():
        parameter.data.normal_()
    sentences = [(ToyTags.WORDS[2 : 2 + n], [0] * n, [0, 1, 2, 3][:n]) for n in (1, 3, 4)]
    return task, energy, collate(task, sentences)


@pytest.mark.parametrize("longest", [2, 5])
def test_the_energy_of_a_relaxed_output_is_expected(longest):
    """The expectation is under independent tags, including sequences that break the scheme."""
    task, energy, batch = make_parts(longest)
    bound = energy.at(batch.x)
    y = task.space.relax(torch.randn(3, 2, 4, 4, dtype=torch.double), batch.x.mask)
    for row, length in enumerate((1, 3, 4)):
        paths = torch.tensor(list(product(range(4), repeat=length)))
        discrete = F.pad(F.one_hot(paths, 4).double(), (0, 0, 0, 4 - length))
        energies = torch.stack([bound(output.expand(3, 1, -1, -1))[row, 0] for output in discrete])
        p = torch.stack([y[row, :, t, paths[:, t]] for t in range(length)]).prod(0)
        torch.testing.assert_close(bound(y)[row], p @ energies)


def test_the_energy_is_the_net_with_its_weights():
    task, energy, batch = make_parts()
    net = SegmentsNet(energy.config, task, energy.features).double().eval()
    net.scores = energy.scores
    proposal = net(batch.x)
    y = proposal.sample(6)
    bound = energy.at(batch.x)
    torch.testing.assert_close(-bound(y) - bound.log_z().unsqueeze(1), proposal.log_prob(y))


@pytest.mark.parametrize(("scheme", "longest"), CASES)
def test_the_energy_has_marginals_and_modes(scheme, longest):
    """Modes of shifted energies, for two shifts, by all tags that obey the scheme."""
    scorer, proposal, vectors = make(scheme, longest)
    task = ToyTags()
    task.space = proposal.space
    energy = Segments(Segments.Config(longest=longest, size=4), task, ToyFeatures(task)).double()
    features = scorer(vectors, MASK)
    torch.testing.assert_close(energy.marginals(features), proposal.mean)
    shift = 2 * torch.randn(4, 2, WORDS, len(task.space.tags), dtype=torch.double)
    modes = energy.modes(features, shift)
    for row in range(4):
        y, _, log_p, _ = enumerate_outputs(scorer, proposal, vectors, row)
        for sample in range(2):
            total = log_p + (y[0] * shift[row, sample]).sum((1, 2))
            assert torch.equal(modes[row, sample], y[0, total.argmax()])


def test_outputs_without_spans_are_errors():
    for task, message in (
        (ToyLabels(), "labelled spans"),
        (loaded("tagging", corpus="pos"), "labelled spans"),
    ):
        for cls in (Segments, SegmentsNet):
            with pytest.raises(ConfigError, match=message):
                cls(cls.Config(), task, ToyFeatures(task))
    plain = ToyTags()
    plain.space = sp.TagSequence(["O", "B-A", "x"], "bio")
    with pytest.raises(ConfigError, match="'x' is not a tag of one"):
        SegmentsNet(SegmentsNet.Config(), plain, ToyFeatures(plain))
