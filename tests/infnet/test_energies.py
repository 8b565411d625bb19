"""Tag language models, skip-chains and high orders against plain loops over their equations."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

import spen_plugins as sp
from spen_infnet.high_order import HighOrder, SkipChain
from spen_infnet.tag_lm import EPS, TagLm, WordTagLm
from spen_plugins.errors import ConfigError
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate

BOTH = ["forward", "backward"]
LMS = [(TagLm, {}), (TagLm, {"directions": BOTH}), (TagLm, {"directions": ["backward"]}), (WordTagLm, {})]
HIGH = [
    (SkipChain, {}),
    (SkipChain, {"order": 1}),
    (SkipChain, {"order": 9}),
    (HighOrder, {}),
    (HighOrder, {"order": 1}),
    (HighOrder, {"order": 4}),
]
ALL = LMS + HIGH


class Neighbours(ToyFeatures):
    """Sees the whole sentence."""

    contextual = True


def make(cls, task, **fields):
    """An energy in float64 with weights large enough to see, ready to evaluate."""
    if cls in (TagLm, WordTagLm):
        fields = {"hidden": 5, "tag_dim": 3, **fields}
    energy = cls(cls.Config(**fields), task, ToyFeatures(task) if cls.uses_features else None).double().eval()
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.normal_(std=0.7)
    return energy


def batch_of(lengths=(1, 2, 6, 4)):
    """A toy task and a batch with sentences of these lengths."""
    task = ToyTags(examples=200)
    words = ["dogs", "chase", "cats", "and", "quickly", "flee"]
    examples = [(words[:n], [0] * n, [i % 4 for i in range(n)]) for n in lengths]
    return task, collate(task, examples)


def make_soft_tags(task, batch, n=3):
    return task.space.relax(2 * torch.randn(len(batch), n, *batch.gold.shape[2:], dtype=torch.float64), batch.x.mask)


def make_hard_tags(task, batch, n=3):
    tags = torch.randint(0, 4, (len(batch), n, batch.gold.shape[2]))
    return task.space.one_hot(tags, batch.x.mask).double()


def sum_by_hand(reader, y, words, length):
    """−Σ log(y_tᵀ ȳ_t) of one output `(token, tag)` in reading order, with the LSTM cell written out."""
    w, u = reader.lstm.weight_ih_l0, reader.lstm.weight_hh_l0
    bias, size = reader.lstm.bias_ih_l0 + reader.lstm.bias_hh_l0, reader.hidden
    h, c, inputs, energy = y.new_zeros(size), y.new_zeros(size), reader.start, 0.0
    for t in range(length + 1):
        gates = w @ inputs + u @ h + bias
        i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        p = torch.softmax(reader.next.weight @ h + reader.next.bias, 0)
        p_tag = p[-1] if t == length else (y[t] * p[:-1]).sum()
        energy = energy - torch.log(p_tag + EPS)
        if t < length:
            inputs = sum(y[t, k] * reader.tags.weight[:, k] for k in range(y.shape[1]))
            inputs = inputs if words is None else torch.cat([inputs, words[t]])
    return energy


@pytest.mark.parametrize("kind", [make_soft_tags, make_hard_tags])
@pytest.mark.parametrize(("cls", "fields"), LMS)
def test_tag_lms_are_eq_8_and_9(cls, fields, kind):
    task, batch = batch_of()
    energy = make(cls, task, weight=1.7, **fields)
    y = kind(task, batch)
    energies = energy.at(batch.x)(y)
    vectors = energy.features(batch.x) if cls is WordTagLm else None
    for b, s in itertools.product(range(4), range(3)):
        n, expected = int(batch.x.mask[b].sum()), 0.0
        for direction in energy.config.directions:
            order = list(range(n)) if direction == "forward" else list(range(n - 1, -1, -1))
            words = None if vectors is None else vectors[b, order]
            expected = expected + sum_by_hand(energy.readers[f"{direction}_lm"], y[b, s, order], words, n)
        torch.testing.assert_close(energies[b, s], 1.7 * expected)


def test_one_hot_tags_of_all_lengths_share_one_unit_of_probability():
    """Shorter sequences end, so those of up to 3 tags and the beginnings of longer ones add up to 1."""
    task, batch = batch_of((1, 2, 3))
    energy = make(TagLm, task)
    total = 0.0
    for n in (1, 2, 3):
        rows = torch.cartesian_prod(*[torch.arange(4)] * n).view(-1, n)
        x = sp.X({}, torch.ones(1, n, dtype=torch.bool), 1)
        y = torch.nn.functional.one_hot(rows, 4).double().unsqueeze(0)
        terms = energy.terms(energy.encode(x), y)["forward"]
        total = total + terms.sum(-1).exp().sum()
        if n == 3:
            longer = terms[..., :-1].sum(-1).exp().sum() - terms.sum(-1).exp().sum()
    empty = energy.terms(energy.encode(sp.X({}, batch.x.mask[:1] & False, 1)), make_soft_tags(task, batch)[:1, :1])[
        "forward"
    ]
    torch.testing.assert_close(total + longer + empty.sum().exp(), torch.tensor(1.0).double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("cls", "fields"), LMS)
def test_later_tags_and_words_are_not_seen(cls, fields):
    """A term depends on the tags and words read before it and on its own tag, but not on its own word."""
    task, batch = batch_of((6, 6))
    energy, y = make(cls, task, **fields), make_soft_tags(*batch_of((6, 6)))
    reference = energy.terms(energy.encode(batch.x), y)
    for t in range(6):
        other = y.clone()
        other[:, :, t] = other[:, :, t].roll(1, -1)
        words = batch.x.inputs["words"].clone()
        words[:, t] = 1
        for changed, x, outputs in (
            ("tag", batch.x, other),
            ("word", replace(batch.x, inputs={**batch.x.inputs, "words": words}), y),
        ):
            terms = energy.terms(energy.encode(x), outputs)
            for direction in energy.config.directions:
                position = t if direction == "forward" else 5 - t
                first_changed = position if changed == "tag" else position + 1
                is_changed = (terms[direction] != reference[direction]).any(0).any(0)
                assert not is_changed[:first_changed].any()
                if changed == "tag" or cls is WordTagLm:
                    assert is_changed[first_changed:].all()
                else:
                    assert not is_changed.any()


def test_a_tag_the_model_excludes_has_a_bounded_energy_and_a_gradient():
    task, batch = batch_of((2,))
    energy = make(TagLm, task)
    with torch.no_grad():
        energy.readers["forward_lm"].next.bias.copy_(torch.tensor([0.0, 0.0, 0.0, -500.0, 0.0]))
    y = torch.zeros(1, 1, 2, 4, dtype=torch.float64)
    y[..., 3] = 1
    y.requires_grad_()
    terms = energy.terms(energy.encode(batch.x), y)["forward"]
    assert terms[0, 0, 0].item() == pytest.approx(torch.log(torch.tensor(EPS)).item())
    (gradient,) = torch.autograd.grad(terms.sum(), y)
    assert torch.isfinite(gradient).all() and gradient[0, 0, 0, :3].min() > 1e3


def test_dropout_is_the_same_for_all_outputs_of_a_bound_energy():
    task, batch = batch_of()
    energy = make(WordTagLm, task, dropout=0.5)
    y = make_soft_tags(task, batch, 1).expand(-1, 3, -1, -1)
    evaluated = energy.at(batch.x)(y)
    energy.train()
    bound = energy.at(batch.x)
    first = bound(y)
    assert torch.equal(first, bound(y)) and torch.equal(first[:, 0], first[:, 2])
    assert not torch.equal(first, energy.at(batch.x)(y))
    assert torch.equal(evaluated, energy.eval().at(batch.x)(y))


def sample_markov_chain(n, start, moves, end):
    """Sequences of a Markov chain that ends with a probability after each tag, and the chain's log p of each."""
    generator, sequences, log_p = torch.Generator().manual_seed(1), [], []
    for _ in range(n):
        tag, path = int(torch.multinomial(start, 1, generator=generator)), []
        p = start[tag].log()
        while True:
            path.append(tag)
            if torch.rand((), generator=generator) < end[tag]:
                break
            following = int(torch.multinomial(moves[tag], 1, generator=generator))
            p = p + (1 - end[tag]).log() + moves[tag, following].log()
            tag = following
        sequences.append(path)
        log_p.append(p + end[tag].log())
    return sequences, torch.stack(log_p)


def make_batch(task, sequences):
    return task.collate([(["dogs"] * len(path), [0] * len(path), path) for path in sequences])


def learn(energy, batch, steps, rate=0.03):
    optimizer = torch.optim.Adam(energy.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        energy.at(batch.x)(batch.gold).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("direction", BOTH)
def test_minimising_the_energy_of_gold_learns_the_language(direction):
    """Both directions model the same p(y), so both approach the chain's own perplexity on unseen sequences."""
    start, end = torch.tensor([0.8, 0.1, 0.05, 0.05]), torch.tensor([0.05, 0.1, 0.4, 0.3])
    moves = torch.tensor([[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.8, 0.1], [0.9, 0.0, 0.1, 0.0], [0.3, 0.3, 0.2, 0.2]])
    task = ToyTags()
    sequences, log_p = sample_markov_chain(900, start, moves, end)
    unseen = make_batch(task, sequences[600:])
    energy = TagLm(TagLm.Config(hidden=12, tag_dim=4, dropout=0.0, directions=[direction]), task)
    symbols = unseen.x.mask.sum() + len(unseen)
    expected = (-log_p[600:].sum() / symbols).exp().item()

    def perplexity():
        with torch.no_grad():
            return (energy.at(unseen.x)(unseen.gold).sum() / symbols).exp().item()

    initial = perplexity()
    learn(energy, make_batch(task, sequences[:600]), 60)
    assert initial > 4.5 and expected < 2.6
    assert perplexity() == pytest.approx(expected, rel=0.05)


def test_a_word_model_learns_tags_that_words_announce():
    """Every tag repeats the previous word (backwards: the next word), so tags alone are random."""
    task = ToyTags()
    words = torch.randint(0, 4, (300, 6), generator=torch.Generator().manual_seed(2))
    for direction, shift in (("forward", 1), ("backward", -1)):
        tags = words.roll(shift, 1)
        batch = task.collate(
            [
                ([ToyTags.WORDS[2 + w] for w in row], [0] * 6, gold)
                for row, gold in zip(words.tolist(), tags.tolist(), strict=True)
            ]
        )
        energy = WordTagLm(WordTagLm.Config(hidden=12, dropout=0.0, directions=[direction]), task, ToyFeatures(task))
        learn(energy, batch, 120)
        terms = energy.terms(energy.encode(batch.x), batch.gold)[direction][:, 0].mean(0)
        assert terms[0] < -1.2 and terms[1:].min() > -0.1


@pytest.mark.parametrize(("cls", "fields"), ALL)
def test_float32_can_be_differentiated_twice_in_evaluation_mode(cls, fields):
    """float32 uses other kernels than float64; a net learns through a frozen energy."""
    task, batch = batch_of()
    energy = make(cls, task, **fields)
    start, results = make_soft_tags(task, batch), []
    for dtype in (torch.float64, torch.float32):
        y = start.to(dtype).requires_grad_()
        frozen = energy.to(dtype).requires_grad_(False)
        (gradient,) = torch.autograd.grad(frozen.at(batch.x)(y).sum(), y, create_graph=True)
        results.append(torch.autograd.grad(gradient.square().sum(), y, materialize_grads=True)[0].double())
    torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_high_orders_of_all_sequences_are_sums_over_windows(order):
    task, _ = batch_of()
    energy = make(HighOrder, task, order=order)
    for n in range(1, 5):
        rows = torch.cartesian_prod(*[torch.arange(4)] * n).view(-1, n)
        y = torch.nn.functional.one_hot(rows, 4).double().unsqueeze(0)
        energies = energy.at(sp.X({}, torch.ones(1, n, dtype=torch.bool), 1))(y)[0]
        ends = range(order, n)
        expected = [-sum(energy.table[tuple(row[t - order : t + 1])].item() for t in ends) for row in rows.tolist()]
        torch.testing.assert_close(energies, torch.tensor(expected, dtype=torch.float64))
        assert (n > order) == bool(energies.any())


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_skip_chains_of_all_sequences_are_sums_over_pairs(order):
    task, _ = batch_of()
    energy = make(SkipChain, task, order=order)
    for n in range(1, 6):
        rows = torch.cartesian_prod(*[torch.arange(4)] * n).view(-1, n)
        y = torch.nn.functional.one_hot(rows, 4).double().unsqueeze(0)
        energies = energy.at(sp.X({}, torch.ones(1, n, dtype=torch.bool), 1))(y)[0]
        expected = torch.zeros(len(rows), dtype=torch.float64)
        for i in range(1, order + 1):
            for t in range(i, n):
                expected -= energy.pairs[i - 1][rows[:, t - i], rows[:, t]]
        torch.testing.assert_close(energies, expected)


@pytest.mark.parametrize(("cls", "fields"), HIGH)
def test_soft_tags_get_the_expected_energy(cls, fields):
    """Multilinear: the energy of soft tags is the mean over sequences drawn from them, tag by tag."""
    task, batch = batch_of((5,))
    energy, y = make(cls, task, **fields), make_soft_tags(task, batch, 1)
    rows = torch.cartesian_prod(*[torch.arange(4)] * 5)
    probability = y[0, 0].gather(1, rows.t()).prod(0)
    energies = energy.at(batch.x)(torch.nn.functional.one_hot(rows, 4).double().unsqueeze(0))[0]
    torch.testing.assert_close(energy.at(batch.x)(y)[0, 0], (probability * energies).sum())


def test_every_distance_and_place_has_its_own_parameters():
    task = ToyTags()
    assert SkipChain(SkipChain.Config(order=3), task).pairs.shape == (3, 4, 4)
    assert HighOrder(HighOrder.Config(order=3), task).table.shape == (4, 4, 4, 4)
    for energy in (SkipChain(SkipChain.Config(), task), HighOrder(HighOrder.Config(), task)):
        weights = next(energy.parameters())
        assert weights.abs().max() <= 0.02 and weights.std() > 0.008
        assert not torch.equal(weights[0], weights[1])


def test_a_table_too_large_is_rejected():
    with pytest.raises(ConfigError, match=r"order 11 with 4 tags requires a table of 16,777,216 entries"):
        HighOrder(HighOrder.Config(order=11), ToyTags())


def test_words_in_context_are_rejected():
    task = ToyTags()
    with pytest.raises(ConfigError, match=r"Neighbours reads the words after it.*pass_through"):
        WordTagLm(WordTagLm.Config(), task, Neighbours(task))


@pytest.mark.parametrize("cls", [TagLm, SkipChain, HighOrder])
def test_labels_are_rejected(cls):
    with pytest.raises(ConfigError, match="scores tag sequences"):
        cls(cls.Config(), ToyLabels())


def test_a_direction_counts_once():
    with pytest.raises(ConfigError, match="each direction at most once"):
        TagLm(TagLm.Config(directions=["forward", "forward"]), ToyTags())
    with pytest.raises(ValueError, match="directions"):
        TagLm.Config(directions=[])
