"""Expected F1 under dependent labels, against enumeration; forests."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from spen_plugins.errors import ConfigError
from spen_plugins.scores import label_decoding
from spen_plugins.scores.expected_f1 import SAMPLES, best_sets, find_best_sets
from spen_plugins.scores.label_decoding import Fit, LabelDecoder, describe_law
from spen_plugins.scores.label_scores import example_f1
from spen_plugins.spaces import LabelSet, Mixture, Proposal
from spen_plugins.spaces.forest import Forest


def list_sets(labels: int) -> Tensor:
    """`(set, label)` float64."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)), dtype=torch.double)


def make_mixture(labels: int, batch: int = 3, seed: int = 0, parts: int = 3) -> Mixture:
    rng = torch.Generator().manual_seed(seed)
    space = LabelSet([str(i) for i in range(labels)])
    logits = 2 * torch.randn(parts, batch, 1, labels, generator=rng, dtype=torch.double) - 0.5
    return Mixture.of([space.independent(part) for part in logits], torch.randn(batch, parts, generator=rng).double())


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("labels", [1, 2, 4, 7])
def test_no_label_set_has_a_higher_expected_f1_under_dependent_labels(labels: int, temperature: float) -> None:
    proposal, y = make_mixture(labels), list_sets(labels)
    p = proposal.tempered(temperature).log_prob(y.expand(3, -1, -1)).exp()
    torch.testing.assert_close(p.sum(1), torch.ones(3, dtype=torch.double))
    f1 = torch.stack([example_f1(labels_on.expand(len(y), -1) > 0, y > 0) for labels_on in y])
    expected = p @ f1.t()
    for row, chosen in enumerate(find_best_sets(proposal, temperature)):
        best = expected[row, (y == chosen).all(1)]
        assert best.item() == pytest.approx(expected[row].max().item(), abs=1e-9)


def test_independent_labels_have_the_same_sets_by_both_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = make_mixture(60, batch=9, parts=1)
    p = proposal.components[0].mean[:, 0]
    assert torch.equal(find_best_sets(proposal), best_sets(p))
    assert torch.equal(find_best_sets(proposal.components[0], 2.0), best_sets(p, 2.0))
    assert describe_law(proposal.components[0]) == "" and describe_law(proposal) == "the exact law of labels and sizes"
    monkeypatch.setattr(Mixture, "label_powers", lambda *_: None)
    state = torch.get_rng_state()
    sampled = find_best_sets(proposal)
    assert torch.equal(sampled, find_best_sets(proposal)) and torch.equal(state, torch.get_rng_state())
    assert example_f1(sampled, best_sets(p)).mean() > 0.9
    assert describe_law(proposal) == f"{SAMPLES} samples"


def test_decoders_of_dependent_labels_are_chosen_by_their_distributions() -> None:
    proposals = [make_mixture(7, batch=20, seed=seed) for seed in range(2)]
    torch.manual_seed(0)
    gold = torch.cat([proposal.sample(1)[:, 0] > 0 for proposal in proposals])
    fit = Fit("validation", "validation")
    decoder = fit(proposals, gold)
    scores = [example_f1(candidate(proposals), gold).mean().item() for candidate in fit.decoders()]
    assert example_f1(decoder(proposals), gold).mean().item() == pytest.approx(max(scores))
    half = torch.cat([proposal.mean[:, 0].float() > 0.5 for proposal in proposals])
    assert torch.equal(LabelDecoder()(proposals), half)


def test_temperatures_of_dependent_labels_are_tried_while_the_score_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, temperatures = torch.eye(4, dtype=torch.bool), []

    def find(_: Proposal, temperature: float) -> Tensor:
        temperatures.append(temperature)
        correct = {0.5: 3, 0.75: 1, 1.0: 2, 1.25: 3, 1.5: 4, 2.0: 3, 3.0: 4, 4.0: 4}[temperature]
        return gold & (torch.arange(4) < correct).unsqueeze(1)

    monkeypatch.setattr(label_decoding, "find_best_sets", find)
    assert Fit("expected_f1")([make_mixture(4)], gold).temperature == 1.5
    assert sorted(temperatures) == [1.0, 1.25, 1.5, 2.0]
    assert Fit("threshold", "validation")([make_mixture(4, batch=4)], gold).temperature is None


def test_forests() -> None:
    names = list("abcdef")
    forest = Forest(names, [1, None, 0, None, 1, 3])
    assert [(level.labels.tolist(), level.parents.tolist()) for level in forest.levels] == [
        ([0, 4, 5], [1, 1, 3]),
        ([2], [0]),
    ]
    order, ends = forest.preorder
    assert order == [1, 0, 2, 4, 3, 5] and ends == [4, 3, 3, 4, 6, 6]
    coherent = torch.tensor([[True, True, False, False, False, False], [True, False, False, True, False, False]])
    assert forest.is_coherent(coherent).tolist() == [True, False]
    values = torch.tensor([0.5, 0.4, 0.9, 0.1, 0.3, 0.2])
    torch.testing.assert_close(forest.limit(values), torch.tensor([0.4, 0.4, 0.4, 0.1, 0.3, 0.1]))
    with pytest.raises(ConfigError, match=r"found a -> b -> a; expected no label to be its own ancestor"):
        Forest(names, [1, 0, None, None, None, None])
    assert Forest(names, [None] * 6).is_coherent(torch.ones(2, 6, dtype=torch.bool)).all()
