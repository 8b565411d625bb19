"""Samples weighted by the energy: exact sets of highest expected F1, and the distribution that they are of."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.nets.choosers import BLOCK, TEMPERATURES, WEIGHTS, Rerank, Reweight, _draw_by_token
from spen_plugins.builtin.nets.crf import Crf
from spen_plugins.loop.evaluation import evaluate as scored
from spen_plugins.report.compare import compare
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.scores.expected_f1 import best_sets, find_best_set
from spen_plugins.scores.label_scores import example_f1
from spen_plugins.testing import ToyFeatures, ToyImages, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import spen, trained


def every_set(labels: int) -> Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)), dtype=torch.double)


def expected(sets: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """The expected F1 of each set, where gold is drawn from `y` by its weights."""
    return torch.stack([example_f1((one > 0).expand(len(y), -1), y > 0) @ weights for one in sets])


@pytest.mark.parametrize("labels", [1, 3, 6])
def test_no_set_has_a_higher_expected_f1_under_the_samples(labels: int) -> None:
    rng = torch.Generator().manual_seed(labels)
    y = (torch.rand(5, 12, labels, generator=rng, dtype=torch.double) < 0.4).double()
    y[0] = 0  # nothing is ever on
    weights = torch.rand(5, 12, generator=rng, dtype=torch.double)
    weights /= weights.sum(1, keepdim=True)
    found = find_best_set(y, weights)
    for chosen, own, w in zip(found, y, weights, strict=True):
        values = expected(every_set(labels), own, w)
        assert float(expected(chosen.double().unsqueeze(0), own, w)) == pytest.approx(float(values.max()))
    assert not found[0].any()


def test_many_labels_are_tried_in_larger_and_larger_sets() -> None:
    y = torch.zeros(1, 2, 100, dtype=torch.double)
    y[0, 0], y[0, 1, :3] = 1.0, 1.0
    assert int(find_best_set(y, torch.tensor([[0.9, 0.1]], dtype=torch.double)).sum()) == 100
    assert int(find_best_set(y, torch.tensor([[0.001, 0.999]], dtype=torch.double)).sum()) == 3


def test_many_examples_are_decided_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    y = (torch.rand(7, 9, 50, generator=torch.Generator().manual_seed(0)) < 0.3).double()
    weights = torch.softmax(torch.randn(7, 9, dtype=torch.double, generator=torch.Generator().manual_seed(1)), 1)
    whole = find_best_set(y, weights)
    monkeypatch.setattr("spen_plugins.scores.expected_f1.SAMPLED", 2 * 50**2)
    assert torch.equal(find_best_set(y, weights), whole)


def test_all_sets_with_their_probabilities_give_the_exact_sets_of_independent_labels() -> None:
    p = torch.tensor([[0.9, 0.2, 0.55, 0.4], [0.05, 0.1, 0.3, 0.02]], dtype=torch.double)
    sets = every_set(4)
    weights = torch.where(sets > 0, p.unsqueeze(1), 1 - p.unsqueeze(1)).prod(2)
    assert torch.equal(find_best_set(sets.expand(2, -1, -1), weights), best_sets(p))


def made(toy: type = ToyLabels, **config: float) -> tuple[sp.Task, Reweight]:
    torch.manual_seed(0)
    task = toy()
    net = Independent(Independent.Config(), task, ToyFeatures(task)).double().eval()
    return task, Reweight(Reweight.Config(**({"weight": 1.0, "temperature": 1.0} | config)), task, net=net)


def energy_of(table: Tensor) -> sp.BoundEnergy:
    """Any energy over label sets, the same for every x."""
    return lambda y: table[(y @ (2.0 ** torch.arange(y.shape[-1], dtype=y.dtype))).long()]


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_weighted_samples_are_of_the_product_of_net_and_energy(monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
    task, net = made(samples=40_000, weight=weight)
    x = collate(task, task.part("train")[:3]).x
    labels = len(task.space.labels)
    table = torch.randn(2**labels, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    kept = {}

    def keep(y: Tensor, weights: Tensor) -> Tensor:
        kept["marginals"] = (weights.unsqueeze(2) * y).sum(1)
        return find_best_set(y, weights)

    monkeypatch.setattr("spen_plugins.builtin.nets.choosers.find_best_set", keep)
    chosen = net(x, energy_of(table)).chosen
    sets = every_set(labels)
    noise = net.net(x).log_prob(sets.unsqueeze(0).expand(3, -1, -1)).detach()
    exact = torch.softmax((1 - weight) * noise - weight * energy_of(table)(sets), 1)
    torch.testing.assert_close(kept["marginals"], exact @ sets, atol=0.03, rtol=0)
    for one, w in zip(chosen[:, 0], exact, strict=True):
        assert float(expected(one.unsqueeze(0), sets, w)) == pytest.approx(
            float(expected(sets, sets, w).max()), abs=0.02
        )


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_without_weight_the_set_is_the_nets_own(temperature: float) -> None:
    task, net = made(weight=0.0, temperature=temperature)
    x = collate(task, task.part("train")[:4]).x
    p = torch.sigmoid(net.net(x).logits[:, 0] / temperature)
    proposal = net(x, energy_of(torch.full((2 ** p.shape[1],), torch.nan)))
    assert torch.equal(proposal.chosen[:, 0] > 0, best_sets(p))
    assert torch.equal(task.decode(proposal, x), proposal.chosen)


def chain_for(task: sp.Task) -> LinearChain:
    energy = LinearChain(LinearChain.Config(), task, ToyFeatures(task)).double().eval()
    for parameter in energy.parameters():
        parameter.data.normal_(std=0.3)
    return energy


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_tags_are_decided_by_the_marginals_of_net_and_energy(monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
    task, net = made(ToyTags, samples=40_000, weight=weight)
    batch = collate(task, task.part("train")[:3])
    energy = chain_for(task).at(batch.x)
    kept = []
    independent = task.space.independent

    def keep(logits: Tensor, *more: Tensor, **named: Tensor) -> sp.Proposal:
        kept.append(logits)
        return independent(logits, *more, **named)

    monkeypatch.setattr(task.space, "independent", keep)
    net(batch.x, energy)
    found = kept[-1][:, 0].exp()
    proposal, tags = net.net(batch.x), len(task.space.tags)
    for row, length in enumerate(batch.x.mask.sum(1).tolist()):
        indices = torch.tensor(list(itertools.product(range(tags), repeat=length)))
        y = torch.zeros(3, len(indices), batch.x.mask.shape[1], tags, dtype=torch.double)
        y[row, :, :length] = torch.nn.functional.one_hot(indices, tags).double()
        w = torch.softmax(((1 - weight) * proposal.log_prob(y) - weight * energy(y))[row], 0).detach()
        exact = torch.einsum("s,stk->tk", w, y[row])[:length]
        torch.testing.assert_close(found[row, :length], exact, atol=0.02, rtol=0)


@pytest.mark.parametrize("change", [{"weight": 0.0}, {"samples": 3}])
def test_without_weight_or_difference_tags_are_the_nets_own(change: dict[str, float]) -> None:
    task, net = made(ToyTags, **change)
    x = collate(task, task.part("train")[:4]).x
    own = net.net(x)
    equal = "samples" in change  # E = −ln q: all weights are equal
    chosen = net(x, lambda y: -own.log_prob(y) if equal else torch.full(y.shape[:2], torch.nan)).chosen
    assert torch.equal(chosen, own.mode)


def test_samples_of_tags_are_judged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    task, net = made(ToyTags, samples=30)
    batch = collate(task, task.part("train")[:3])
    energy = chain_for(task).at(batch.x)
    whole = net(batch.x, energy).chosen
    monkeypatch.setattr("spen_plugins.builtin.nets.choosers.AT_ONCE", 4 * batch.gold.numel())
    assert torch.equal(net(batch.x, energy).chosen, whole)


@pytest.mark.parametrize("toy", [ToyLabels, ToyTags])
def test_an_output_depends_neither_on_its_batch_nor_on_chance(toy: type) -> None:
    task, net = made(toy, samples=150 if toy is ToyLabels else 20)
    examples = task.part("train")[:4]
    table = torch.randn(2 ** task.space.shape[-1], dtype=torch.double, generator=torch.Generator().manual_seed(2))
    chain = chain_for(task) if toy is ToyTags else None

    def choose(some: list) -> Tensor:
        x = collate(task, some).x
        return net(x, energy_of(table) if chain is None else chain.at(x)).chosen

    together = choose(examples)
    torch.manual_seed(5)
    for row, example in enumerate(examples):
        alone = choose([example])
        assert torch.equal(together[row : row + 1, :, : alone.shape[2]], alone)


def test_long_sentences_draw_in_blocks() -> None:
    assert torch.equal(_draw_by_token(5, 3 * BLOCK)[: BLOCK + 7], _draw_by_token(5, BLOCK + 7))
    assert len({round(float(number), 9) for number in _draw_by_token(5, 2 * BLOCK).flatten()}) == 10 * BLOCK


def test_other_outputs_and_nets_are_refused() -> None:
    task = ToyImages()
    with pytest.raises(sp.ConfigError, match="requires label sets or tag sequences"):
        Reweight(Reweight.Config(), task, net=Independent.__new__(Independent))
    with pytest.raises(sp.ConfigError, match=r"set inference_net\.net"):
        Reweight(Reweight.Config(), ToyLabels())
    tags = ToyTags()
    x = collate(tags, tags.part("train")[:2]).x
    crf = Crf(Crf.Config(), tags, ToyFeatures(tags)).double()
    with pytest.raises(sp.ConfigError, match="requires independent tags"):
        Reweight(Reweight.Config(), tags, net=crf)
    net = Reweight(Reweight.Config(), tags, net=Rerank(Rerank.Config(), tags, net=crf))
    with pytest.raises(sp.ConfigError, match="requires independent tags"):
        net(x, chain_for(tags).at(x))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = {"features.hidden": "[24]", "energy.hidden": "8", "energy_loss.samples": "4", "trainer.epochs": "2"}
    return trained("labels", tmp_path_factory.mktemp("reweight") / "run", **small)


def test_the_validation_part_chooses(run: Path, tmp_path: Path) -> None:
    refined = sp.load(run, refine="reweight").refined["refined"]
    assert refined["weight"] in WEIGHTS and refined["temperature"] in TEMPERATURES
    assert (refined["samples"], refined["chosen"]) == (150, "picked on validation")
    given = sp.load(run, refine={"type": "reweight", "weight": 0.5, "temperature": 2.0, "samples": 7})
    assert given.refined["refined"] == {"type": "reweight", "weight": 0.5, "temperature": 2.0, "samples": 7}
    assert (given.model.inference_net.weight, given.model.inference_net.temperature) == (0.5, 2.0)
    one = sp.load(run, refine={"type": "reweight", "weight": 0.25})
    assert one.refined["refined"]["weight"] == 0.25 and one.model.inference_net.weight == 0.25


def test_the_choice_is_the_best_on_validation(run: Path) -> None:
    predictor = sp.load(run, refine="reweight")
    net, chosen = predictor.model.inference_net, predictor.refined["refined"]
    examples = load_own_data(predictor.experiment, predictor.folder, "").part("validation")

    def score(choice: Mapping[str, float]) -> float:
        net.choose(choice)
        metric = scored(predictor.model, predictor.task, examples, predictor.batch_size, "cpu")
        return metric.compute()[predictor.task.selection]

    others = [score(choice) for choice in net.choices()[::4]]
    assert len(set(others)) > 1 and score(chosen) >= max(others)


SMALL = {"features.hidden": "8", "features.layers": "1", "trainer.epochs": "1"}
ROLES = SMALL | {
    "method": "static_crf",
    "energy.features.type": "bilstm",
    "energy.features.hidden": "8",
    "trainer.energy_epochs": "1",
}
SHARED = SMALL | {"method": "nce", "energy.features.type": "shared", "energy_loss.samples": "2"}


@pytest.mark.parametrize("given", [ROLES, SHARED], ids=["two encoders", "one encoder"])
def test_a_run_keeps_the_energys_decisions_in_a_folder_of_its_own(given: dict[str, str], tmp_path: Path) -> None:
    old, out = trained("srl_seal", tmp_path / "run", **given), tmp_path / "by energy"
    refine = '{"type": "reweight", "samples": 9, "temperature": 1}'
    spen("decode", old, out, "--refine", refine)
    refined = sp.load(old, refine=json.loads(refine))
    new = sp.load(out)
    assert new.folder.config()["inference_net"]["weight"] == refined.refined["refined"]["weight"] in WEIGHTS
    task = load_own_data(new.experiment, new.folder, "")
    scores = new.folder.metrics()
    for part in ("validation", "test"):
        found = scored(refined.model, refined.task, task.part(part), refined.batch_size, "cpu").compute()
        assert scores[part][task.selection] == pytest.approx(found[task.selection])
    examples = task.part("test")[:8]
    for ours, theirs in zip(
        new.predict_examples(examples, True), refined.predict_examples(examples, True), strict=True
    ):
        assert (ours["tags"], ours["energy"]) == (theirs["tags"], theirs["energy"])
    assert compare(read_groups([str(old), str(out)])).rows[1].seeds == 1


def test_a_run_without_energy_and_two_ways_at_once_are_refused(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"

    def refused(*words: object) -> str:
        said = spen("decode", *words, "--refine", "reweight", status=2).stderr
        assert not out.exists()
        return said

    assert "omit --by" in refused(run, out, "--by", "threshold")
    assert "not empty" in refused(run, run)
    config = {"method": "cross_entropy", "trainer.epochs": "1", "features.hidden": "[4]"}
    assert "without an energy" in refused(trained("labels", tmp_path / "ce", **config), out)
