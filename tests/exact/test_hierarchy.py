"""Label sets of a hierarchy, against enumeration; coherent under every decoder."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_exact.coherent import CoherentLabels
from spen_exact.hierarchy import Hierarchy, HierarchyEnergy
from spen_plugins.scores.label_decoding import LabelDecoder
from spen_plugins.testing import ToyLabels, ToyTags, check_energy, check_inference_net
from tests.exact.toys import POINTS, all_sets, check_against_enumeration, check_exact_energy, check_gradients, space_of
from tests.loaded import loaded
from tests.seal.toys import batch_of, make

PARENTS = {
    1: [None],
    2: [1, None],
    5: [None, 0, 0, 2, 2],
    7: [3, 0, None, None, 0, 2, 3],
    9: [None, 0, 1, 2, 3, None, 5, 5, None],
}


class Tree(ToyLabels):
    """Toy labels with a hierarchy, and gold that obeys it."""

    def set_up(self) -> None:
        super().set_up()
        self.space = space_of(self._labels, parents=PARENTS[self._labels])

    def _make_example(self, generator: torch.Generator):
        vector, labels = super()._make_example(generator)
        for level in self.space.forest.levels:
            for label, parent in zip(level.labels.tolist(), level.parents.tolist(), strict=True):
                labels[label] *= labels[parent]
        return vector, labels


def make_tree(labels: int, scale: float = 2.0, batch: int = 3) -> CoherentLabels:
    torch.manual_seed(labels)
    logits = scale * torch.randn(batch, 1, labels, dtype=torch.double)
    return CoherentLabels(space_of(labels, parents=PARENTS[labels]), logits.requires_grad_())


@pytest.mark.parametrize("labels", PARENTS)
def test_all_results_match_the_coherent_sets(labels: int) -> None:
    q, y = make_tree(labels), all_sets(labels)
    is_coherent = q.space.forest.is_coherent(y > 0)
    score = (q.logits[:, 0] @ y.t()).masked_fill(~is_coherent, -torch.inf)
    torch.testing.assert_close(q.log_z, torch.logsumexp(score, 1))
    check_against_enumeration(q, score)
    check_gradients(q.log_z, q.logits, q.mean)
    check_against_enumeration(q.tempered(0.5), 2 * score)


def test_without_edges_labels_are_independent() -> None:
    torch.manual_seed(0)
    space, y = space_of(6, parents=[None] * 6), all_sets(6).expand(3, -1, -1)
    logits = torch.randn(3, 1, 6, dtype=torch.double)
    q, p = CoherentLabels(space, logits), space.independent(logits)
    torch.testing.assert_close(q.log_prob(y), p.log_prob(y))
    torch.testing.assert_close(q.mean, p.mean)
    torch.testing.assert_close(q.label_powers(POINTS), p.label_powers(POINTS), rtol=0, atol=1e-12)
    torch.testing.assert_close(q.k_best(9)[1], p.k_best(9)[1])
    assert torch.equal(q.mode, p.mode)


def test_a_thousand_labels_in_single_precision() -> None:
    torch.manual_seed(0)
    parents = [None, *((torch.rand(999) * torch.arange(1, 1000)).long().tolist())]
    logits = 2 * torch.randn(2, 1, 1000, dtype=torch.double) - 2
    exact = CoherentLabels(space_of(1000, parents=parents), logits)
    single = CoherentLabels(exact.space, logits.float())
    torch.testing.assert_close(single.mean.double(), exact.mean, rtol=1e-3, atol=1e-6)
    gold = exact.sample(5)
    torch.testing.assert_close(single.log_prob(gold.float()).double(), exact.log_prob(gold), rtol=1e-4, atol=1e-3)
    powers = exact.label_powers(POINTS[-1:])  # at t = 1
    torch.testing.assert_close(powers[:, 0], exact.mean[:, 0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale", [0.0, 1e-4, 2.0, 60.0])
def test_sets_are_coherent_under_every_decoder(scale: float) -> None:
    """This includes labels that are as likely as their parents, up to rounding."""
    task = Tree(labels=9)
    forest = task.space.forest
    for seed, dtype in enumerate((torch.float32, torch.float64)):
        torch.manual_seed(seed)
        logits = scale * torch.randn(300, 1, 9, dtype=dtype)
        logits[::2, :, 1:5] += 40  # on with their parents
        q = CoherentLabels(task.space, logits)
        decoders = [LabelDecoder(t) for t in (0.05, 0.5, 0.95)]
        decoders += [LabelDecoder(temperature=t) for t in (0.5, 1.0, 4.0)]
        decoders += [LabelDecoder(0.95, nonempty=True), LabelDecoder(temperature=0.0, nonempty=True)]
        for decoder in decoders:
            assert forest.is_coherent(decoder([q])).all()
        for y in (q.mode, q.k_best(4)[0], q.sample(3), task.space.round(q.mean, None)):
            assert forest.is_coherent(y > 0).all()
        for y in (q.mean, q.rsample(3), q.perturb(3, 1.0)):
            assert (y[..., forest.children] <= y[..., forest.above]).all()


def test_decisions_by_samples_are_coherent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CoherentLabels, "label_powers", lambda *_: None)
    q = make_tree(9, batch=50)
    assert q.space.forest.is_coherent(LabelDecoder(temperature=1.0)([q])).all()


def test_the_energy_sums_over_coherent_sets() -> None:
    task = Tree(labels=7)
    energy, batch = make(HierarchyEnergy, task), batch_of(task)
    check_exact_energy(energy.at(batch.x), task.space.forest.is_coherent(all_sets(7) > 0))


def test_the_contract() -> None:
    task = Tree(labels=5)
    check_energy(make(HierarchyEnergy, task), task, sums=False)
    check_inference_net(make(Hierarchy, task), task)
    for other in (ToyLabels(), ToyTags()):
        with pytest.raises(sp.ConfigError, match=r"requires a label hierarchy|requires label sets"):
            make(Hierarchy, other)


def test_gold_that_breaks_the_hierarchy_is_rejected() -> None:
    task = ToyLabels(labels=5)
    task.space = space_of(5, parents=PARENTS[5])
    with pytest.raises(sp.ConfigError, match=r"\d+ training examples have a label without its parent, such as 'label"):
        make(Hierarchy, task)


def test_the_metric_counts_incoherent_sets() -> None:
    task = loaded("multilabel", corpus="sample")
    parents = [None, *range(len(task.space.labels) - 1)]
    task.space = sp.LabelSet(task.space.labels, parents)
    batch = task.collate(task.part("test"))
    torch.manual_seed(0)
    logits = torch.randn(batch.gold.shape)
    for proposal, share in ((CoherentLabels(task.space, logits), 0), (task.space.independent(logits), 1)):
        metric = task.metric()
        metric.update(proposal, batch)
        assert metric.compute()["incoherent"] == share
