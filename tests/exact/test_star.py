"""Label sets with pairs of hubs, against enumeration; the choice of hubs."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_exact.star import StarEnergy, StarNet
from spen_plugins.nn import StarLabels, find_hubs, mutual_information
from spen_plugins.testing import ToyLabels, ToyTags, check_energy, check_inference_net
from tests.exact.toys import POINTS, all_sets, check_against_enumeration, check_exact_energy, check_gradients, space_of
from tests.seal.toys import batch_of, make


def make_star(labels: int, hubs: list[int], batch: int = 3, scale: float = 1.5) -> StarLabels:
    torch.manual_seed(labels)
    logits = scale * torch.randn(batch, 1, labels, dtype=torch.double)
    pairs = scale * torch.randn(batch, len(hubs), labels, dtype=torch.double)
    fields = {"pairs": pairs.requires_grad_(), "hubs": torch.tensor(hubs)}
    return StarLabels(space_of(labels), logits.requires_grad_(), **fields)


@pytest.mark.parametrize(("labels", "hubs"), [(1, [0]), (2, [1]), (4, [2, 0]), (4, [3, 1, 0, 2]), (9, [4, 8, 0])])
def test_all_results_match_enumeration(labels: int, hubs: list[int]) -> None:
    q, y = make_star(labels, hubs), all_sets(labels)
    score = q.logits[:, 0] @ y.t()
    pairs = torch.zeros(3, len(hubs), len(y), dtype=torch.double)  # Σ y_h y_i over the counted pairs
    for h, hub in enumerate(hubs):
        others = [i for i in range(labels) if i not in hubs[: h + 1]]
        score = score + (q.pairs[:, h, others] @ y[:, others].t()) * y[:, hub]
        pairs[:, h] = y[:, others].sum(1) * y[:, hub]
    torch.testing.assert_close(q.log_z, torch.logsumexp(score, 1))
    check_against_enumeration(q, score)
    check_gradients(q.log_z, q.logits, q.mean)
    [gradient] = torch.autograd.grad(q.star.log_z().sum(), q.pairs)
    torch.testing.assert_close(gradient.sum(2), torch.einsum("bs,bhs->bh", score.softmax(1), pairs), rtol=0, atol=1e-10)
    check_against_enumeration(q.tempered(2.0), score / 2)
    torch.testing.assert_close(q.map_rows(lambda values: values[1:]).mean, q.mean[1:])


def test_without_pairs_labels_are_independent() -> None:
    q = make_star(7, [0, 3])
    q = StarLabels(q.space, q.logits, pairs=torch.zeros_like(q.pairs), hubs=q.hubs)
    p, y = q.space.independent(q.logits), all_sets(7).expand(3, -1, -1)
    torch.testing.assert_close(q.log_prob(y), p.log_prob(y))
    torch.testing.assert_close(q.mean, p.mean)
    torch.testing.assert_close(q.label_powers(POINTS), p.label_powers(POINTS))
    torch.testing.assert_close(q.k_best(9)[1], p.k_best(9)[1])


def test_a_thousand_labels_in_single_precision() -> None:
    exact = make_star(1000, [5, 7, 900, 3], batch=2)
    single = StarLabels(exact.space, exact.logits.float(), pairs=exact.pairs.float(), hubs=exact.hubs)
    torch.testing.assert_close(single.mean.double(), exact.mean, rtol=1e-3, atol=1e-5)
    gold = exact.sample(5)
    torch.testing.assert_close(single.log_prob(gold.float()).double(), exact.log_prob(gold), rtol=1e-4, atol=1e-2)


def test_autocast_does_not_change_the_probabilities() -> None:
    q = make_star(60, [4, 8, 0], scale=1.0)
    fields = {"pairs": q.pairs.detach().float(), "hubs": q.hubs}
    q, y = StarLabels(q.space, q.logits.detach().float(), **fields), q.sample(3).float()
    mean, log_q = q.mean, q.log_prob(y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = StarLabels(q.space, q.logits, **fields)
        torch.testing.assert_close(q.mean, mean)
        torch.testing.assert_close(q.log_prob(y), log_q)


def test_the_energy_is_linear_in_each_label() -> None:
    task = ToyLabels(labels=6)
    energy, batch = make(StarEnergy, task, hubs=3), batch_of(task)
    with torch.no_grad():
        energy.pairs.weight.normal_()
    y, sets = torch.rand(4, 3, 6, dtype=torch.double), all_sets(6)
    values = energy.at(batch.x)(sets.expand(4, -1, -1))
    weights = torch.where(sets > 0, y.unsqueeze(2), 1 - y.unsqueeze(2)).prod(3)
    torch.testing.assert_close(energy.at(batch.x)(y), (weights * values.unsqueeze(1)).sum(2))
    check_exact_energy(energy.at(batch.x))


def test_hubs_are_the_labels_that_tell_most_about_the_others() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    torch.manual_seed(0)
    hub = (torch.rand(300) < 0.4).float()
    y = (torch.rand(300, 6) < 0.3).float()
    y[:, 2], y[:, 4] = hub, torch.where(torch.rand(300) < 0.9, hub, 1 - hub)
    y[:, 0] = torch.where(torch.rand(300) < 0.9, hub, y[:, 0])
    information = mutual_information(y.double().t() @ y.double(), y.double().sum(0), len(y))
    expected = [[sklearn.mutual_info_score(y[:, i], y[:, j]) * (i != j) for j in range(6)] for i in range(6)]
    torch.testing.assert_close(information, torch.tensor(expected, dtype=torch.double))
    task = ToyLabels(labels=6)
    examples = [([0.0] * 5, row.tolist()) for row in y]
    task.part = lambda name: examples if name == "train" else []
    assert find_hubs(task, 6, 2)[0] == 2 and len(find_hubs(task, 6, 9)) == 6
    task.part = lambda name: []
    assert find_hubs(task, 6, 2).tolist() == [0, 1]


def test_the_contract() -> None:
    for labels in (2, 6):
        task = ToyLabels(labels=labels)
        check_energy(make(StarEnergy, task), task)
        check_inference_net(make(StarNet, task), task)
    with pytest.raises(sp.ConfigError, match="StarNet requires label sets"):
        make(StarNet, ToyTags())
