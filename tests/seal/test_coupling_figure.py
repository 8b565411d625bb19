"""The couplings of labels that `spen plot gradients` draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("matplotlib")

from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict.predictor import Predictor
from spen_seal.coupling_figure import (
    NAME,
    Coupling,
    Couplings,
    _name_pair,
    couplings,
    cross_entropy_gradient,
    gradient,
    gradients_figure,
    grid,
    parse_pair,
)
from spen_seal.labels import Labels
from tests import loaded


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arguments = {"features.hidden": "[8]", "energy.hidden": "4", "energy_loss.samples": "2", "trainer.epochs": "1"}
    return loaded.trained("labels", tmp_path_factory.mktemp("runs") / "labels", **arguments)


def test_the_gradient_of_a_quadratic_is_a_plane() -> None:
    """E(y) = a y_0 y_2 + b y_2² + c y_1 y_2: ∂E/∂y_2 = a y_0 + 2 b y_2 + c y_1."""
    a, b, c = 2.0, -0.5, 3.0

    def energy(y: torch.Tensor) -> torch.Tensor:
        return a * y[..., 0] * y[..., 2] + b * y[..., 2] ** 2 + c * y[..., 1] * y[..., 2]

    values = gradient(energy, torch.tensor([0.3, 0.7, 0.1], dtype=torch.float64), (0, 2))
    points = grid().double()
    torch.testing.assert_close(values, a * points[:, None] + 2 * b * points[None, :] + c * 0.7)


def test_the_gradient_of_cross_entropy_is_its_derivative() -> None:
    y = torch.rand(50, dtype=torch.float64) * 0.9 + 0.05
    for gold in (0.0, 1.0):
        leaf = y.clone().requires_grad_()
        torch.nn.functional.binary_cross_entropy(leaf, torch.full_like(leaf, gold), reduction="sum").backward()
        torch.testing.assert_close(cross_entropy_gradient(y, gold), leaf.grad)


def test_the_gradient_of_the_global_energy_is_the_papers(run_path: Path) -> None:
    """E_global = −vᵀ softplus(M y + c), so its gradient is −Mᵀ diag(σ(M y + c)) v (Eq. 13)."""
    run = RunFolder.open(run_path)
    [pair] = couplings(run, "x", ["1,3"], others="0.25").pairs
    energy = Predictor(run).model.energy
    weight, bias, v = energy.measure.weight.detach(), energy.measure.bias.detach(), energy.v.detach()
    for i, k in ((0, 0), (5, 40), (48, 11)):
        y = torch.full((weight.shape[1],), 0.25)
        y[1], y[3] = grid()[i], grid()[k]
        expected = -(weight.T @ (torch.sigmoid(weight @ y + bias) * v))[3]
        torch.testing.assert_close(pair.gradient[i, k], expected)


def test_an_energy_without_a_global_part_is_evaluated_at_an_example(run_path: Path, monkeypatch) -> None:
    run = RunFolder.open(run_path)
    [global_pair] = couplings(run, "x", ["1,3"]).pairs
    monkeypatch.delattr(Labels, "global_energy")
    result = couplings(run, "x", ["1,3"], example=2)
    assert result.energy == "E at validation example 2"
    # The local part is linear in y, so it moves the gradient by a constant: that of the label's own score.
    difference = result.pairs[0].gradient - global_pair.gradient
    assert difference.std() < 1e-4 and difference.abs().max() > 1e-4
    with pytest.raises(ConfigError, match="--example 9999: the validation part has"):
        couplings(run, "x", ["1,3"], example=9999)


def test_other_labels_may_be_gold(run_path: Path) -> None:
    run = RunFolder.open(run_path)
    gold, zero = couplings(run, "x", ["1,3"], others="gold"), couplings(run, "x", ["1,3"])
    assert gold.others == "gold of validation example 0" and gold.energy == "E_global"
    assert not torch.equal(gold.pairs[0].gradient, zero.pairs[0].gradient)
    for text in ("2", "x", "nan"):
        with pytest.raises(ConfigError, match=f"--others {text}: expected a number"):
            couplings(run, "x", ["1,3"], others=text)


@pytest.mark.parametrize(
    ("word", "pair"), [("a,b", (0, 1)), ("0,2", (0, 2)), ("b, c,d", (1, 2)), ("c,d,7", (2, 3)), ("3,a", (3, 0))]
)
def test_labels_by_name_and_number(word: str, pair: tuple[int, int]) -> None:
    assert parse_pair(word, ["a", "b", "c,d", "7"]) == pair


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a", "unknown label 'a'|Expected two"),
        ("horse,cats", r"unknown label 'cats'\. Did you mean 'cat'"),
        ("0,horse", "twice"),
    ],
)
def test_invalid_pairs_of_labels(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_pair(word, ["horse", "cat"])


def test_long_label_names_are_truncated() -> None:
    names = ["a label of a thesaurus, as long as a sentence", "b"]
    assert max(map(len, _name_pair((0, 1), names).split("\n"))) <= 4 + NAME


def test_the_figure_shows_all_pairs() -> None:
    points = grid()
    steep = Coupling("i = a\nk = b", 2 * points[:, None] + points[None, :])
    flat = Coupling("i = a\nk = c", (5 + 0 * points[:, None]) + points[None, :])
    figure = gradients_figure(Couplings("mine", "E_global", "0", [steep, flat]))
    axes = {axis.get_title(): axis for axis in figure.axes}
    assert {"cross entropy, true label k = 1", steep.name, flat.name, "what y_i changes, at y_k = 0.5"} <= set(axes)
    image = axes[steep.name].collections[0]
    assert np.allclose(np.asarray(image.get_array()).reshape(49, 49), steep.gradient.T), "y_k upwards, y_i to the right"
    spans = [np.ptp(axes[name].collections[0].get_clim()) for name in (steep.name, flat.name)]
    assert spans[0] == pytest.approx(spans[1]), "one width of colours"
    lines = axes["what y_i changes, at y_k = 0.5"].lines
    effects = {line.get_label(): np.asarray(line.get_data()).tolist() for line in lines}
    assert effects["i = a, k = b"][1][-1] == pytest.approx(2 * 0.96, abs=1e-5)
    assert np.allclose(effects["i = a, k = c"][1], 0) and effects["cross entropy"][1] == [0, 0]
