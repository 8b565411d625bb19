"""Mixtures of independent labels, against enumeration."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_exact.mixture import LabelMixture, LabelMixtureNet
from spen_plugins.testing import ToyLabels, ToyTags, check_inference_net
from tests.exact.toys import POINTS, all_sets, check_against_enumeration, check_draws, check_powers, space_of
from tests.seal.toys import batch_of, make


def make_mixture(labels: int, components: int, batch: int = 3) -> LabelMixture:
    torch.manual_seed(labels)
    logits = 2 * torch.randn(components, batch, 1, labels, dtype=torch.double)
    weights = torch.randn(batch, components, dtype=torch.double)
    return LabelMixture.of([space_of(labels).independent(component) for component in logits], weights)


@pytest.mark.parametrize(("labels", "components"), [(1, 1), (2, 3), (4, 4)])
def test_all_results_match_enumeration(labels: int, components: int) -> None:
    """With few labels, all sets are among the components' best."""
    q, y = make_mixture(labels, components), all_sets(labels)
    p = sum(
        q.log_weights[:, k, None].exp() * component.log_prob(y.expand(3, -1, -1)).exp()
        for k, component in enumerate(q.components)
    )
    check_against_enumeration(q, p.log())
    assert isinstance(q.tempered(2.0), LabelMixture)


@pytest.mark.parametrize("labels", [7, 9])
def test_sums_of_more_labels_are_exact_too_and_the_mode_is_nearly_the_best(labels: int) -> None:
    q, y = make_mixture(labels, 4), all_sets(labels)
    log_p = q.log_prob(y.expand(3, -1, -1))
    torch.testing.assert_close(log_p.exp() @ y, q.mean[:, 0])
    check_powers(q, log_p.exp())
    check_draws(q, log_p.exp())
    sets, log_q = q.k_best(20)
    torch.testing.assert_close(log_q, q.log_prob(sets))
    assert (log_q[:, 1:] <= log_q[:, :-1]).all()
    assert all(len(row.unique(dim=0)) == 20 for row in sets)
    best = torch.stack([component.mode[:, 0] for component in q.components], 1)
    assert (q.log_prob(q.mode) >= q.log_prob(best)).all()


def test_one_component_is_a_net_of_independent_labels() -> None:
    q, y = make_mixture(6, 1), all_sets(6).expand(3, -1, -1)
    p = q.components[0]
    torch.testing.assert_close(q.log_prob(y), p.log_prob(y))
    torch.testing.assert_close(q.mean, p.mean)
    torch.testing.assert_close(q.label_powers(POINTS), p.label_powers(POINTS))
    torch.testing.assert_close(q.k_best(9)[1], p.k_best(9)[1])


def test_the_gradient_is_that_of_the_sum() -> None:
    task = ToyLabels(labels=5)
    net, batch = make(LabelMixtureNet, task, components=3), batch_of(task)
    assert torch.autograd.gradcheck(
        lambda *_: net(batch.x).log_prob(batch.gold), tuple(net.parameters()), fast_mode=True
    )


def test_the_contract() -> None:
    for components in (1, 3):
        check_inference_net(make(LabelMixtureNet, ToyLabels(), components=components), ToyLabels())
    with pytest.raises(sp.ConfigError, match="LabelMixtureNet requires label sets"):
        make(LabelMixtureNet, ToyTags())
