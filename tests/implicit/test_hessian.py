"""Second derivatives of energies for pairs against finite differences and closed forms; counts by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from spen_implicit import hessian
from spen_implicit.hessian import (
    Pairs,
    bigram_ratios,
    compare_pairs,
    find_frequent,
    label_correlation,
    label_hessian,
    neighbour_hessian,
    order_clusters,
    rank_correlation,
)
from spen_infnet.high_order import SkipChain
from spen_infnet.tag_lm import TagLm
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.runs.predict.predictor import Predictor
from spen_plugins.samples import labels, tagged
from spen_plugins.task import ArcInputs
from spen_plugins.testing import ToyFeatures, ToyImages, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate, pick_by_length, relaxed
from spen_seal.labels import Labels
from tests.loaded import spen, trained


def bind_energy(cls: Any, task: Any, **fields: Any) -> tuple[BoundEnergy, Tensor]:
    """An energy with weights large enough to see, at a batch of three, and relaxed outputs; in float64."""
    energy = cls(cls.Config(**fields), task, ToyFeatures(task) if cls.uses_features else None).double().eval()
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.normal_(std=0.7)
    batch = collate(task, pick_by_length(task, 3))
    with torch.no_grad():
        return energy.at(batch.x), relaxed(task.space, batch, 1)


def estimate_derivative(energy: BoundEnergy, y: Tensor, i: int, j: int, step: float = 1e-3) -> Tensor:
    """∂²E/∂y_i∂y_j of each example by central differences, for numbers of variables in a flat y."""
    points = y.expand(-1, 4, *y.shape[2:]).flatten(2).clone()
    points[:, :, i] += step * torch.tensor([1.0, 1.0, -1.0, -1.0])
    points[:, :, j] += step * torch.tensor([1.0, -1.0, 1.0, -1.0])
    with torch.no_grad():
        values = energy(points.view(len(y), 4, *y.shape[2:]))
    return values @ values.new_tensor([1.0, -1.0, -1.0, 1.0]) / (4 * step**2)


@pytest.mark.parametrize("numbers", [1, 2**22], ids=["one row at a time", "all rows"])
def test_pairs_of_labels_are_finite_differences(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hessian, "NUMBERS", numbers)
    energy, y = bind_energy(Labels, ToyLabels(labels=6), hidden=5)
    chosen = torch.tensor([4, 0, 3])
    values, count = label_hessian(energy, y, chosen)
    assert count == 3 and values.shape == (3, 3)
    for a, i in enumerate(chosen.tolist()):
        for b, j in enumerate(chosen.tolist()):
            if i != j:
                expected = estimate_derivative(energy, y, i, j).sum()
                torch.testing.assert_close(values[a, b], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("numbers", [1, 2**22], ids=["one row at a time", "all rows"])
def test_pairs_of_tags_are_finite_differences(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both directions, with padding."""
    monkeypatch.setattr(hessian, "NUMBERS", numbers)
    energy, y = bind_energy(TagLm, ToyTags(), hidden=5, tag_dim=3, directions=["forward", "backward"])
    mask, (tokens, tags), chosen = energy.x.mask, y.shape[2:], torch.tensor([2, 0])
    assert not mask.all()
    values, count = neighbour_hessian(energy, y, chosen)
    assert count == int((mask.sum(1) - 1).sum())
    for a, i in enumerate(chosen.tolist()):
        for b, j in enumerate(chosen.tolist()):
            terms = [
                estimate_derivative(energy, y, t * tags + i, (t + 1) * tags + j) * mask[:, t + 1]
                for t in range(tokens - 1)
            ]
            torch.testing.assert_close(values[a, b], sum(terms).sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("cls", "matrix"), [(LinearChain, lambda e: e.pairs), (SkipChain, lambda e: e.pairs[0])], ids=["chain", "skip"]
)
def test_pairs_of_a_chain_are_its_matrix(cls: Any, matrix: Callable[[Any], Tensor]) -> None:
    energy, y = bind_energy(cls, ToyTags())
    values, count = neighbour_hessian(energy, y, torch.arange(4))
    torch.testing.assert_close(-values / count, matrix(energy.energy).detach())


def test_an_energy_of_single_variables_has_no_pairs() -> None:
    energy, y = bind_energy(Local, ToyTags())
    assert not neighbour_hessian(energy, y, torch.arange(4))[0].any()
    energy, y = bind_energy(Local, ToyLabels())
    assert not label_hessian(energy, y, torch.arange(4))[0].any()
    for parameter in energy.energy.parameters():
        parameter.requires_grad_(False)
    assert not label_hessian(energy, y, torch.arange(4))[0].any()


def test_sentences_of_one_word_have_no_neighbours() -> None:
    energy, y = bind_energy(LinearChain, ToyTags())
    x = replace(energy.x, mask=energy.x.mask[:, :1])
    features, energy = (energy.features[0][:, :1], x.mask), BoundEnergy(energy.energy, x)
    energy.features = features
    values, count = neighbour_hessian(energy, y[:, :, :1], torch.arange(4))
    assert count == 0 and not values.any()


# Counts


def make_labelled_task(*sets: list[int] | None) -> ToyLabels:
    task = ToyLabels(labels=4)
    task.parts["train"] = [([0.0] * 5, None if s is None else [float(i in s) for i in range(4)]) for s in sets]
    return task


def test_correlation_of_labels_by_hand() -> None:
    task = make_labelled_task([0, 1], [0, 1], [1, 2], None, [1])
    assert find_frequent(task, 3).tolist() == [1, 0, 2]
    correlation = label_correlation(task, torch.tensor([0, 1, 2]))
    assert correlation.isnan().tolist() == torch.eye(3, dtype=torch.bool).tolist()
    assert correlation[0, 1] == correlation[1, 2] == 0, "label 1 is always on"
    # cov(0, 2) = 0 − 1/2 · 1/4, and the deviations are 1/2 and √3 / 4.
    assert correlation[0, 2] == pytest.approx(-1 / math.sqrt(3)) and correlation[2, 0] == correlation[0, 2]


def test_bigram_ratios_by_hand() -> None:
    task = ToyTags()
    tags = [([0, 1, 2], 3), ([0, 1], 2), (None, 3), ([3], 1)]
    task.parts["train"] = [(["cats"] * size, [0] * size, gold) for gold, size in tags]
    log_ratios = bigram_ratios(task, torch.tensor([1, 0, 2]))
    # Bigrams: 0 1 twice, 1 2 once. First: 0 twice, 1 once; second: 1 twice, 2 once.
    ratio = {(0, 1): 2.5 / (4 / 3 + 0.5), (1, 2): 1.5 / (1 / 3 + 0.5), (1, 1): 0.5 / (2 / 3 + 0.5)}
    ratio |= {(0, 2): 0.5 / (2 / 3 + 0.5), (2, 0): 1.0, (0, 0): 1.0, (2, 2): 1.0, (1, 0): 1.0, (2, 1): 1.0}
    for (a, b), expected in ratio.items():
        assert log_ratios[[1, 0, 2].index(a), [1, 0, 2].index(b)] == pytest.approx(math.log(expected)), (a, b)
    assert find_frequent(task, 2).tolist() == [0, 1]


def test_data_without_gold_are_an_error() -> None:
    with pytest.raises(DataError, match="training part: found no gold"):
        find_frequent(make_labelled_task(None), 2)


def test_rank_correlation_by_hand() -> None:
    """1 − 6 Σ d² / (n (n² − 1)) without ties."""
    a = torch.tensor([1.0, 2.0, 3.0, 40.0])
    assert rank_correlation(a, torch.tensor([1.0, 30.0, 2.0, 70.0])) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert rank_correlation(a, -a) == pytest.approx(-1)
    assert rank_correlation(a, torch.ones(4)) is None and rank_correlation(a[:1], a[:1]) is None


def test_the_correlation_is_over_each_pair_once() -> None:
    learned = torch.tensor([[torch.nan, 1.0, 2.0], [9.0, torch.nan, 3.0], [9.0, 9.0, torch.nan]])
    counted = torch.tensor([[torch.nan, 1.0, 3.0], [0.0, torch.nan, 2.0], [0.0, 5.0, torch.nan]])
    pairs = Pairs("x", ["a", "b", "c"], learned, counted, False, "at gold")
    assert pairs.correlation == pytest.approx(0.5)
    assert pairs.summarise() == "rank correlation over 3 pairs of 3 labels: 0.500 (at gold)"
    all_pairs = Pairs(
        "x", ["a", "b"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2], [4, 3]]), True, ""
    )
    assert all_pairs.correlation == pytest.approx(0.8) and "4 pairs of 2 tags: 0.800" in all_pairs.summarise()
    constant = Pairs("x", ["a", "b"], torch.zeros(2, 2), torch.rand(2, 2), True, "")
    assert "undefined, all values are equal" in constant.summarise()


def test_labels_that_occur_together_are_neighbours() -> None:
    correlation = torch.tensor(
        [[1.0, -0.5, 0.9, -0.4], [-0.5, 1, -0.3, 0.8], [0.9, -0.3, 1, -0.2], [-0.4, 0.8, -0.2, 1]]
    )
    order = order_clusters(correlation.double()).tolist()
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    assert order_clusters(correlation[:2, :2].double()).tolist() == [0, 1]


# Runs


@pytest.fixture(scope="module", autouse=True)
def _small_samples() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for corpus in (labels, tagged):
            patch.setattr(corpus, "SIZES", {"train": 40, "validation": 12, "test": 12})
        yield


def train(folder: Path, config: str, **arguments: str) -> RunFolder:
    return RunFolder.open(trained(config, folder, **{"trainer.epochs": "1"}, **arguments))


@pytest.fixture(scope="module")
def label_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    small = {"features.hidden": "[8]", "energy.hidden": "4", "energy_loss.samples": "2"}
    return train(tmp_path_factory.mktemp("runs") / "labels", "labels", **small)


@pytest.fixture(scope="module")
def tag_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    arguments = {"method": "contrastive", "trainer.pretrain_epochs": "0", "features": "words"}
    return train(tmp_path_factory.mktemp("runs") / "tags", "tags", **arguments)


@pytest.mark.parametrize("point", ["output", "gold"])
def test_pairs_of_the_seal_energy_have_a_closed_form(label_run: RunFolder, point: Any) -> None:
    """∂²E/∂y∂y = −Mᵀ diag(v σ′(M y + c)) M, for the most frequent labels, in the order of the names."""
    pairs = compare_pairs(label_run, "mine", 7, point, 5)
    predictor = Predictor(label_run)
    task = load_task(label_run, Registry())
    examples = task.part("validation")[:5]
    [(proposal, batch, _)] = predictor.proposals(examples)
    y = (batch.gold if point == "gold" else proposal.mean)[:, 0]
    energy = predictor.energy
    gate = torch.sigmoid(energy.measure(y))
    slope = (gate * (1 - gate)).mean(0) * energy.v
    numbers = [predictor.task.space.labels.index(name) for name in pairs.names]
    expected = (energy.measure.weight.T @ (slope.unsqueeze(1) * energy.measure.weight))[numbers][:, numbers].detach()
    off_diagonal = ~torch.eye(7, dtype=torch.bool)
    torch.testing.assert_close(pairs.learned[off_diagonal], expected[off_diagonal].double(), rtol=1e-4, atol=1e-7)
    assert pairs.learned.diagonal().isnan().all() and pairs.counted.diagonal().isnan().all()
    assert set(numbers) == set(find_frequent(task, 7).tolist()) and not pairs.ordered and pairs.run == "mine"
    torch.testing.assert_close(pairs.counted, label_correlation(task, torch.tensor(numbers)), equal_nan=True)
    assert (
        pairs.description.startswith("at gold" if point == "gold" else "at the net")
        and "5 validation" in pairs.description
    )


def test_pairs_of_a_run_with_a_chain_are_its_matrix(tag_run: RunFolder) -> None:
    pairs = compare_pairs(tag_run, "mine", 9)
    predictor = Predictor(tag_run)
    numbers = [predictor.task.space.tags.index(name) for name in pairs.names]
    expected = predictor.energy.pairs.detach()[numbers][:, numbers]
    torch.testing.assert_close(pairs.learned, expected.double(), rtol=1e-4, atol=1e-6)
    task = load_task(tag_run, Registry())
    assert pairs.ordered and numbers == find_frequent(task, 9).tolist()
    torch.testing.assert_close(pairs.counted, bigram_ratios(task, torch.tensor(numbers)))


def test_the_figure_has_both_matrices(tag_run: RunFolder) -> None:
    pytest.importorskip("matplotlib")
    from spen_implicit.hessian_plots import hessian_figure

    pairs = compare_pairs(tag_run, "mine", 5, examples=2)
    figure = hessian_figure(pairs)
    left, right = [axis for axis in figure.axes if axis.images]
    assert torch.equal(torch.from_numpy(left.images[0].get_array().data), pairs.learned)
    assert torch.equal(torch.from_numpy(right.images[0].get_array().data), pairs.counted)
    low, high = left.images[0].get_clim()
    assert low == -high and (left.get_ylabel(), left.get_xlabel()) == ("tag t", "tag t + 1")
    assert [tick.get_text() for tick in left.get_yticklabels()] == pairs.names
    assert pairs.summarise() in figure.get_suptitle()
    empty = Pairs("x", ["a"], torch.full((1, 1), torch.nan), torch.full((1, 1), torch.nan), False, "at gold")
    assert hessian_figure(empty).axes[0].images[0].get_clim() == (-1, 1)


def test_the_command_prints_the_correlation_and_writes_the_figure(label_run: RunFolder) -> None:
    pytest.importorskip("matplotlib")
    result = spen("plot", "hessian", f"mine={label_run.path}", "--labels", 6, "--examples", 3, "--at", "gold")
    summary, *paths = result.stdout.splitlines()
    pattern = r"rank correlation over 15 pairs of 6 labels: -?\d\.\d{3} \(at gold, 3 validation examples\)"
    assert re.fullmatch(pattern, summary)
    assert paths == [str(label_run.path / "plots" / f"hessian.{kind}") for kind in ("png", "svg")]
    assert all(0 < Path(path).stat().st_size < 2**20 for path in paths)


def test_a_run_without_an_energy_is_an_error(tmp_path: Path) -> None:
    run = train(tmp_path / "plain", "labels", method="cross_entropy", **{"features.hidden": "[8]"})
    message = spen("plot", "hessian", run.path, status=2).stderr
    assert "plain was trained or saved without an energy" in message


def test_other_outputs_are_an_error(tag_run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    arcs = ToyTags()
    arcs.inputs = ArcInputs(ToyTags.WORDS, {})
    for task, message in ((ToyImages(), "found RealGrid as outputs"), (arcs, "found arcs as outputs")):
        stand_in = SimpleNamespace(task=task, model=SimpleNamespace(energy=object()))
        monkeypatch.setattr(hessian.sp, "Predictor", lambda *_, predictor=stand_in, **__: predictor)
        with pytest.raises(ConfigError, match=rf"{message}; expected label sets or tag"):
            compare_pairs(tag_run, "mine")


def test_missing_outputs_and_gold_are_errors() -> None:
    examples = ToyLabels().part("validation")
    task = ToyLabels()
    energy = bind_energy(Labels, task)[0].energy.float()

    def proposals(selected: Any) -> Any:
        if selected:
            yield SimpleNamespace(mean=None), task.collate(selected), list(range(len(selected)))

    predictor = SimpleNamespace(proposals=proposals, energy=energy)
    with pytest.raises(DataError, match="found no pairs"):
        hessian.mean_hessian(predictor, [], torch.arange(4), "gold")
    with pytest.raises(DataError, match="found examples without gold"):
        hessian.mean_hessian(predictor, [*examples[:2], (examples[2][0], None)], torch.arange(4), "gold")
