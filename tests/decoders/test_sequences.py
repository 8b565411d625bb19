"""Label sets as sequences, against enumeration of all sequences of few labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_decoders.search import find_sequences, log_prob
from spen_decoders.sequence import SequenceNet
from spen_decoders.sequences import FreeSequences, LabelSequences
from spen_plugins.testing import ToyLabels, ToyTags, check_inference_net
from tests.exact.toys import all_sets, check_draws
from tests.seal.toys import batch_of, make

KINDS = [{}, {"global_temperature": 0.5}, {"order": "none"}]


def proposed(labels: int = 3, **settings) -> tuple[LabelSequences, sp.Batch, SequenceNet]:
    """The proposal of a net whose weights are far from uniform."""
    task = ToyLabels(labels=labels)
    torch.manual_seed(labels)
    net, batch = make(SequenceNet, task, dim=5, embedding=4, **settings), batch_of(task)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += torch.randn_like(parameter)
    return net(batch.x), batch, net


def sequences_of(labels: int) -> Tensor:
    """All sequences without repetitions, followed and padded by the end label, `(sequence, step)`."""
    orders = [p for n in range(labels + 1) for p in itertools.permutations(range(labels), n)]
    return torch.tensor([[*order, *[labels] * (labels + 1 - len(order))] for order in orders])


def find_log_p(q: LabelSequences, sequences: Tensor) -> Tensor:
    return log_prob(q.writer, q.memory, sequences.expand(len(q.logits), -1, -1), q.temperature)


@pytest.mark.parametrize("settings", KINDS)
def test_the_probabilities_of_all_sequences_sum_to_one(settings: dict) -> None:
    for labels in (1, 3):
        q, _, _ = proposed(labels, **settings)
        log_p = find_log_p(q, sequences_of(labels))
        torch.testing.assert_close(log_p.exp().sum(1), torch.ones(4, dtype=torch.double), rtol=0, atol=1e-12)
        possible = int(log_p[0].isfinite().sum())
        assert possible == (sum(math.perm(labels, n) for n in range(labels + 1)) if "order" in settings else 2**labels)


@pytest.mark.parametrize("settings", KINDS[:2])
def test_a_set_has_the_probability_of_its_sequence(settings: dict) -> None:
    q, _, _ = proposed(4, **settings)
    y = all_sets(4).expand(4, -1, -1)
    log_p = q.log_prob(y).detach()
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(4, dtype=torch.double), rtol=0, atol=1e-12)
    for set_number in (0, 5, 11, 15):
        numbers = sorted(q.order.argsort()[y[0, set_number] > 0].tolist())
        sequence = torch.tensor([[*numbers, 4]])
        torch.testing.assert_close(find_log_p(q, sequence)[:, 0], log_p[:, set_number])
    check_draws(q, log_p.exp(), n=5000)
    best, order = log_p.sort(1, descending=True)
    wide = replace(q, beam=16, _kept={})
    sets, log_q = wide.k_best(18)
    torch.testing.assert_close(log_q[:, :16], best)
    torch.testing.assert_close(sets[:, :16], all_sets(4)[order])
    assert (log_q[:, 16:] == -torch.inf).all() and torch.equal(sets[:, 16:], sets[:, :1].expand(-1, 2, -1))
    torch.testing.assert_close(wide.mode, sets[:, :1])


def test_labels_in_any_order_have_a_bound() -> None:
    q, _, _ = proposed(3, order="none")
    assert isinstance(q, FreeSequences)
    sequences = sequences_of(3)
    log_p, numbers = find_log_p(q, sequences).detach(), q.order.argsort()
    exact = []
    for y in all_sets(3):
        expected = set(numbers[y > 0].tolist())
        has_labels = torch.tensor([{n for n in s if n < 3} == expected for s in sequences.tolist()])
        exact.append(log_p[:, has_labels].logsumexp(1))
    exact = torch.stack(exact, 1)
    bound = q.log_prob(all_sets(3).expand(4, -1, -1)).detach()
    is_small = all_sets(3).sum(1) < 2
    torch.testing.assert_close(bound[:, is_small], exact[:, is_small])
    assert (bound[:, ~is_small] < exact[:, ~is_small]).all()
    check_draws(q, exact.exp(), n=5000)
    wide = replace(q, beam=16, _kept={})
    sets, log_q = wide.k_best(8)
    torch.testing.assert_close(log_q, exact.sort(1, descending=True).values)
    torch.testing.assert_close(sets, all_sets(3)[exact.argsort(1, descending=True)])


@pytest.mark.parametrize("settings", KINDS)
def test_the_mean_is_near_the_marginals_and_has_their_gradient(settings: dict) -> None:
    q, _, net = proposed(3, samples=2000, **settings)
    sequences = sequences_of(3)
    sets = torch.nn.functional.one_hot(sequences, 4)[..., :-1].sum(1).double()[:, q.order.argsort()]
    exact = find_log_p(q, sequences).exp() @ sets
    torch.testing.assert_close(q.mean[:, 0], exact, rtol=0, atol=0.02)
    weights = torch.randn_like(exact)
    parameters = list(net.writer.parameters())
    gradients = torch.autograd.grad((q.mean[:, 0] * weights).sum(), parameters, retain_graph=True)
    expected = torch.autograd.grad((exact * weights).sum(), parameters)
    for a, b in zip(gradients, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0.05 * max(1.0, float(b.abs().max())))


def test_the_mean_of_the_first_step_is_exact_and_depends_on_no_other_draws() -> None:
    q, batch, net = proposed(3)
    mean = q.mean
    torch.rand(7)
    torch.testing.assert_close(net(batch.x).mean, mean, rtol=0, atol=0)
    torch.testing.assert_close(net(batch.x).map_rows(lambda values: values[2:]).mean, mean[2:])


def test_temperatures_divide_the_scores_of_each_step() -> None:
    q, _, _ = proposed(3)
    tempered = q.tempered(2.0).tempered(2.0)
    first = tempered.log_prob(torch.zeros(4, 1, 3, dtype=torch.double))[:, 0]
    scores = q.writer.begin(q.memory).scores[:, 0]
    torch.testing.assert_close(first, (scores / 4).log_softmax(1)[:, -1])
    log_p = tempered.log_prob(all_sets(3).expand(4, -1, -1)).detach()
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(4, dtype=torch.double))
    check_draws(tempered, log_p.exp(), n=5000)


def test_sequences_of_sets_are_in_order() -> None:
    y = torch.tensor([[[0, 0, 0], [1, 0, 1], [0, 1, 0]]]).bool()
    assert find_sequences(y).tolist() == [[[3, 3, 3], [0, 2, 3], [1, 3, 3]]]
    assert find_sequences(y[:, :1]).tolist() == [[[3]]]
    assert find_sequences(y | True).shape == (1, 3, 4)


def test_frequent_labels_are_written_first() -> None:
    task = ToyLabels(labels=3)
    gold = [[0, 1, 1], [0, 1, 0], [1, 1, 0], [1, 0, 1]]
    task.parts["train"] = [([0.0] * 5, [float(v) for v in row]) for row in gold]
    assert make(SequenceNet, task).order.tolist() == [1, 0, 2]
    task.parts["train"] = []
    assert make(SequenceNet, task).order.tolist() == [0, 1, 2]


def test_gradients_are_those_of_finite_differences() -> None:
    _, batch, net = proposed(3, global_temperature=0.7)
    assert torch.autograd.gradcheck(
        lambda *_: net(batch.x).log_prob(batch.gold), tuple(net.parameters()), fast_mode=True
    )


def test_dropout_is_drawn_once_for_a_proposal() -> None:
    """Samples and probabilities come from one distribution, also in training."""
    _, batch, net = proposed(3, dropout=0.5)
    q = net.train()(batch.x)
    log_p = q.log_prob(all_sets(3).expand(4, -1, -1)).detach()
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(4, dtype=torch.double))
    check_draws(q, log_p.exp(), n=5000)
    assert not torch.equal(net(batch.x).log_prob(batch.gold), q.log_prob(batch.gold))


def test_a_detached_proposal_has_no_gradient() -> None:
    q, batch, _ = proposed(3)
    assert q.log_prob(batch.gold).requires_grad and q.mean.requires_grad
    detached = q.detach()
    assert not detached.log_prob(batch.gold).requires_grad and not detached.mean.requires_grad


def test_the_set_of_beam_search_can_be_the_prediction() -> None:
    q, _, _ = proposed(3, predicts="mode")
    assert torch.equal(q.chosen, q.mode)
    _, log_q = replace(q, beam=1, _kept={}).k_best(1)
    assert (log_q[:, 0] <= q.log_prob(q.mode)[:, 0] + 1e-12).all()


def test_sets_without_an_order_are_no_noise_of_nce() -> None:
    from spen_seal.contrast import Nce
    from spen_seal.labels import Labels

    q, batch, _ = proposed(4, order="none")
    task = ToyLabels(labels=4)
    energy = make(Labels, task)
    with pytest.raises(sp.ConfigError, match=r"only a bound of ln q\(y\)"):
        make(Nce, task).terms(energy.at(batch.x), batch, q)
    mixture = sp.Mixture.of([q, q])
    assert not mixture.exact
    with pytest.raises(sp.ConfigError, match="only a bound"):
        mixture.density(batch.gold)


@pytest.mark.parametrize("settings", KINDS[:2])
def test_the_contract(settings: dict) -> None:
    for labels in (2, 4):
        task = ToyLabels(labels=labels)
        check_inference_net(
            make(SequenceNet, task, dim=5, embedding=4, **settings), task, approximate=("mode", "mean", "tempered")
        )
    with pytest.raises(sp.ConfigError, match="requires label sets as outputs"):
        make(SequenceNet, ToyTags())


def test_sequences_in_no_order_are_cut_after_the_largest_set() -> None:
    task = ToyLabels(labels=6)
    task.space = sp.LabelSet(task.space.labels, largest=1)
    batch, net = batch_of(task), make(SequenceNet, task, dim=5, embedding=4, order="none")
    with torch.no_grad():
        net.writer.output.bias[-1] = -30.0  # the end is never written
    q = net(batch.x)
    assert (q.sample(50).sum(2) == 3).all() and (q.mode.sum(2) == 3).all()
    torch.testing.assert_close(q.mean.sum(2), torch.full((4, 1), 3.0, dtype=torch.double))
