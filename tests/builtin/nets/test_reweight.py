"""Samples weighted by the energy: exact sets of highest expected F1, and the distribution of the samples."""

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
from spen_plugins.loop.evaluation import evaluate
from spen_plugins.report.compare import compare
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.scores.expected_f1 import best_sets, find_best_set
from spen_plugins.scores.label_scores import example_f1
from spen_plugins.testing import ToyFeatures, ToyImages, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import spen, trained


def list_sets(labels: int) -> Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)), dtype=torch.double)


def compute_expected_f1(sets: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """The expected F1 of each set if gold is drawn from `y` by its weights."""
    return torch.stack([example_f1((labels > 0).expand(len(y), -1), y > 0) @ weights for labels in sets])


@pytest.mark.parametrize("labels", [1, 3, 6])
def test_no_set_has_a_higher_expected_f1_under_the_samples(labels: int) -> None:
    rng = torch.Generator().manual_seed(labels)
    y = (torch.rand(5, 12, labels, generator=rng, dtype=torch.double) < 0.4).double()
    y[0] = 0  # no label is on
    weights = torch.rand(5, 12, generator=rng, dtype=torch.double)
    weights /= weights.sum(1, keepdim=True)
    best = find_best_set(y, weights)
    for chosen, samples, w in zip(best, y, weights, strict=True):
        values = compute_expected_f1(list_sets(labels), samples, w)
        assert float(compute_expected_f1(chosen.double().unsqueeze(0), samples, w)) == pytest.approx(
            float(values.max())
        )
    assert not best[0].any()


def test_sets_of_many_labels_are_tried_by_growing_size() -> None:
    y = torch.zeros(1, 2, 100, dtype=torch.double)
    y[0, 0], y[0, 1, :3] = 1.0, 1.0
    assert int(find_best_set(y, torch.tensor([[0.9, 0.1]], dtype=torch.double)).sum()) == 100
    assert int(find_best_set(y, torch.tensor([[0.001, 0.999]], dtype=torch.double)).sum()) == 3


def test_many_examples_are_decoded_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    y = (torch.rand(7, 9, 50, generator=torch.Generator().manual_seed(0)) < 0.3).double()
    weights = torch.softmax(torch.randn(7, 9, dtype=torch.double, generator=torch.Generator().manual_seed(1)), 1)
    expected_sets = find_best_set(y, weights)
    monkeypatch.setattr("spen_plugins.scores.expected_f1.SAMPLED", 2 * 50**2)
    assert torch.equal(find_best_set(y, weights), expected_sets)


def test_all_sets_with_their_probabilities_give_the_exact_sets_of_independent_labels() -> None:
    p = torch.tensor([[0.9, 0.2, 0.55, 0.4], [0.05, 0.1, 0.3, 0.02]], dtype=torch.double)
    sets = list_sets(4)
    weights = torch.where(sets > 0, p.unsqueeze(1), 1 - p.unsqueeze(1)).prod(2)
    assert torch.equal(find_best_set(sets.expand(2, -1, -1), weights), best_sets(p))


def make_reweight(toy: type = ToyLabels, **config: float) -> tuple[sp.Task, Reweight]:
    torch.manual_seed(0)
    task = toy()
    net = Independent(Independent.Config(), task, ToyFeatures(task)).double().eval()
    return task, Reweight(Reweight.Config(**({"weight": 1.0, "temperature": 1.0} | config)), task, net=net)


def make_energy(table: Tensor) -> sp.BoundEnergy:
    """Any energy over label sets, the same for every x."""
    return lambda y: table[(y @ (2.0 ** torch.arange(y.shape[-1], dtype=y.dtype))).long()]


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_weighted_samples_follow_the_product_of_net_and_energy(monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
    task, net = make_reweight(samples=40_000, weight=weight)
    x = collate(task, task.part("train")[:3]).x
    labels = len(task.space.labels)
    table = torch.randn(2**labels, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    recorded = {}

    def record(y: Tensor, weights: Tensor) -> Tensor:
        recorded["marginals"] = (weights.unsqueeze(2) * y).sum(1)
        return find_best_set(y, weights)

    monkeypatch.setattr("spen_plugins.builtin.nets.choosers.find_best_set", record)
    chosen = net(x, make_energy(table)).chosen
    sets = list_sets(labels)
    noise = net.net(x).log_prob(sets.unsqueeze(0).expand(3, -1, -1)).detach()
    exact = torch.softmax((1 - weight) * noise - weight * make_energy(table)(sets), 1)
    torch.testing.assert_close(recorded["marginals"], exact @ sets, atol=0.03, rtol=0)
    for y, w in zip(chosen[:, 0], exact, strict=True):
        assert float(compute_expected_f1(y.unsqueeze(0), sets, w)) == pytest.approx(
            float(compute_expected_f1(sets, sets, w).max()), abs=0.02
        )


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_without_weight_the_net_alone_decides(temperature: float) -> None:
    task, net = make_reweight(weight=0.0, temperature=temperature)
    x = collate(task, task.part("train")[:4]).x
    p = torch.sigmoid(net.net(x).logits[:, 0] / temperature)
    proposal = net(x, make_energy(torch.full((2 ** p.shape[1],), torch.nan)))
    assert torch.equal(proposal.chosen[:, 0] > 0, best_sets(p))
    assert torch.equal(task.decode(proposal, x), proposal.chosen)


def make_chain(task: sp.Task) -> LinearChain:
    energy = LinearChain(LinearChain.Config(), task, ToyFeatures(task)).double().eval()
    for parameter in energy.parameters():
        parameter.data.normal_(std=0.3)
    return energy


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_tags_are_decoded_from_the_marginals_of_net_and_energy(monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
    task, net = make_reweight(ToyTags, samples=40_000, weight=weight)
    batch = collate(task, task.part("train")[:3])
    energy = make_chain(task).at(batch.x)
    recorded = []
    independent = task.space.independent

    def record(logits: Tensor, *args: Tensor, **kwargs: Tensor) -> sp.Proposal:
        recorded.append(logits)
        return independent(logits, *args, **kwargs)

    monkeypatch.setattr(task.space, "independent", record)
    net(batch.x, energy)
    marginals = recorded[-1][:, 0].exp()
    proposal, tags = net.net(batch.x), len(task.space.tags)
    for row, length in enumerate(batch.x.mask.sum(1).tolist()):
        indices = torch.tensor(list(itertools.product(range(tags), repeat=length)))
        y = torch.zeros(3, len(indices), batch.x.mask.shape[1], tags, dtype=torch.double)
        y[row, :, :length] = torch.nn.functional.one_hot(indices, tags).double()
        w = torch.softmax(((1 - weight) * proposal.log_prob(y) - weight * energy(y))[row], 0).detach()
        exact = torch.einsum("s,stk->tk", w, y[row])[:length]
        torch.testing.assert_close(marginals[row, :length], exact, atol=0.02, rtol=0)


@pytest.mark.parametrize("change", [{"weight": 0.0}, {"samples": 3}])
def test_without_weight_or_difference_the_net_alone_decides_tags(change: dict[str, float]) -> None:
    task, net = make_reweight(ToyTags, **change)
    x = collate(task, task.part("train")[:4]).x
    proposal = net.net(x)
    is_equal = "samples" in change  # E = −ln q: all weights are equal
    chosen = net(x, lambda y: -proposal.log_prob(y) if is_equal else torch.full(y.shape[:2], torch.nan)).chosen
    assert torch.equal(chosen, proposal.mode)


def test_samples_of_tags_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    task, net = make_reweight(ToyTags, samples=30)
    batch = collate(task, task.part("train")[:3])
    energy = make_chain(task).at(batch.x)
    expected_tags = net(batch.x, energy).chosen
    monkeypatch.setattr("spen_plugins.builtin.nets.choosers.AT_ONCE", 4 * batch.gold.numel())
    assert torch.equal(net(batch.x, energy).chosen, expected_tags)


@pytest.mark.parametrize("toy", [ToyLabels, ToyTags])
def test_an_output_depends_neither_on_its_batch_nor_on_chance(toy: type) -> None:
    task, net = make_reweight(toy, samples=150 if toy is ToyLabels else 20)
    examples = task.part("train")[:4]
    table = torch.randn(2 ** task.space.shape[-1], dtype=torch.double, generator=torch.Generator().manual_seed(2))
    chain = make_chain(task) if toy is ToyTags else None

    def choose(batch: list) -> Tensor:
        x = collate(task, batch).x
        return net(x, make_energy(table) if chain is None else chain.at(x)).chosen

    batched = choose(examples)
    torch.manual_seed(5)
    for row, example in enumerate(examples):
        single = choose([example])
        assert torch.equal(batched[row : row + 1, :, : single.shape[2]], single)


def test_long_sentences_draw_in_blocks() -> None:
    assert torch.equal(_draw_by_token(5, 3 * BLOCK)[: BLOCK + 7], _draw_by_token(5, BLOCK + 7))
    assert len({round(float(number), 9) for number in _draw_by_token(5, 2 * BLOCK).flatten()}) == 10 * BLOCK


def test_other_outputs_and_nets_are_rejected() -> None:
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
        net(x, make_chain(tags).at(x))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"features.hidden": "[24]", "energy.hidden": "8", "energy_loss.samples": "4", "trainer.epochs": "2"}
    return trained("labels", tmp_path_factory.mktemp("reweight") / "run", **settings)


def test_weight_and_temperature_are_chosen_on_validation(run: Path, tmp_path: Path) -> None:
    refined = sp.load(run, refine="reweight").refined["refined"]
    assert refined["weight"] in WEIGHTS and refined["temperature"] in TEMPERATURES
    assert (refined["samples"], refined["chosen"]) == (150, "picked on validation")
    predictor = sp.load(run, refine={"type": "reweight", "weight": 0.5, "temperature": 2.0, "samples": 7})
    assert predictor.refined["refined"] == {"type": "reweight", "weight": 0.5, "temperature": 2.0, "samples": 7}
    assert (predictor.model.inference_net.weight, predictor.model.inference_net.temperature) == (0.5, 2.0)
    partial = sp.load(run, refine={"type": "reweight", "weight": 0.25})
    assert partial.refined["refined"]["weight"] == 0.25 and partial.model.inference_net.weight == 0.25


def test_the_choice_is_the_best_on_validation(run: Path) -> None:
    predictor = sp.load(run, refine="reweight")
    net, chosen = predictor.model.inference_net, predictor.refined["refined"]
    examples = load_own_data(predictor.experiment, predictor.folder, "").part("validation")

    def score(choice: Mapping[str, float]) -> float:
        net.choose(choice)
        metric = evaluate(predictor.model, predictor.task, examples, predictor.batch_size, "cpu")
        return metric.compute()[predictor.task.selection]

    other_scores = [score(choice) for choice in net.choices()[::4]]
    assert len(set(other_scores)) > 1 and score(chosen) >= max(other_scores)


SMALL = {"features.hidden": "8", "features.layers": "1", "trainer.epochs": "1"}
ROLES = SMALL | {
    "method": "static_crf",
    "energy.features.type": "bilstm",
    "energy.features.hidden": "8",
    "trainer.energy_epochs": "1",
}
SHARED = SMALL | {"method": "nce", "energy.features.type": "shared", "energy_loss.samples": "2"}


@pytest.mark.parametrize("settings", [ROLES, SHARED], ids=["two encoders", "one encoder"])
def test_decode_writes_the_decisions_of_the_energy_to_a_new_folder(settings: dict[str, str], tmp_path: Path) -> None:
    run, out = trained("srl_seal", tmp_path / "run", **settings), tmp_path / "by energy"
    refine = '{"type": "reweight", "samples": 9, "temperature": 1}'
    spen("decode", run, out, "--refine", refine)
    refined = sp.load(run, refine=json.loads(refine))
    saved = sp.load(out)
    assert saved.folder.config()["inference_net"]["weight"] == refined.refined["refined"]["weight"] in WEIGHTS
    task = load_own_data(saved.experiment, saved.folder, "")
    scores = saved.folder.metrics()
    for part in ("validation", "test"):
        part_scores = evaluate(refined.model, refined.task, task.part(part), refined.batch_size, "cpu").compute()
        assert scores[part][task.selection] == pytest.approx(part_scores[task.selection])
    examples = task.part("test")[:8]
    for answer, expected_answer in zip(
        saved.predict_examples(examples, True), refined.predict_examples(examples, True), strict=True
    ):
        assert (answer["tags"], answer["energy"]) == (expected_answer["tags"], expected_answer["energy"])
    assert compare(read_groups([str(run), str(out)])).rows[1].seeds == 1


def test_a_run_without_energy_and_conflicting_options_are_rejected(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"

    def reject(*arguments: object) -> str:
        message = spen("decode", *arguments, "--refine", "reweight", status=2).stderr
        assert not out.exists()
        return message

    assert "omit --by" in reject(run, out, "--by", "threshold")
    assert "not empty" in reject(run, run)
    config = {"method": "cross_entropy", "trainer.epochs": "1", "features.hidden": "[4]"}
    assert "without an energy" in reject(trained("labels", tmp_path / "ce", **config), out)
