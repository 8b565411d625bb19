"""`spen plot game` shows the numbers that its labels name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from spen_infnet.game_plots import game_figure
from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group
from tests.figures.test_plots import curves, legend, written
from tests.loaded import spen


def make_run(
    path: Path, epochs: int, term: str = "test_time", others: tuple[str, ...] = ("cross_entropy",)
) -> RunFolder:
    """A run that trains the net alone for an epoch before the game and one after it."""
    names = [f"inference_net.{name}" for name in (term, *others)]
    net_only = {"updates": {"inference_net": 5}, "losses": {"inference_net.energy": 1.0}, "gradient_norms": {}}
    records = [{"stage": "pretrain", **net_only}]
    for epoch in range(epochs):
        norms = {name: 10.0 * i + epoch for i, name in enumerate(names, 1)} if len(names) > 1 else {}
        records.append(
            {
                "stage": "joint",
                "updates": {"inference_net": 5, "energy": 5},
                "losses": dict.fromkeys(names, 1.0) | {"energy.margin": 1.0},
                "gradient_norms": norms | {"inference_net": 40.0 + epoch, "energy": 20.0**epoch},
                "measures": {"energy.l1": 3.0 - epoch, "energy.l0": float(epoch)},
            }
        )
    records.append({"stage": "finetune", **net_only})
    return written(path, [0.1] * len(records), **{k: [r.get(k) for r in records] for k in (*records[1], "measures")})


def test_the_game_shows_measures_of_the_energys_training(tmp_path: Path) -> None:
    two = Group("k=1", [make_run(tmp_path / str(seed), epochs) for seed, epochs in ((0, 3), (1, 2))])
    one = Group("perceptron", [make_run(tmp_path / "one", 2, "energy")])
    one_term = Group("no cross entropy", [make_run(tmp_path / "alone", 2, "energy", ())])
    figure = game_figure([two, one, one_term])
    l1, l0, energy, net = figure.axes
    assert "l1" in l1.get_title() and "l0" in l0.get_title() and l1.get_xlabel() == "epoch of the game"
    assert curves(l1)["perceptron"] == [[1, 2], [3.0, 2.0]] and curves(l0)["perceptron"] == [[1, 2], [0.0, 1.0]]
    assert curves(l1)["k=1 (2 seeds)"] == [[1, 2], [3.0, 2.0]], "as far as both seeds went"
    thin = [line for line in l1.lines if line.get_label().startswith("_")]
    assert len(thin) == 2 and {line.get_color() for line in thin} == {l1.lines[2].get_color()}
    assert curves(energy)["perceptron"] == [[1, 2], [1.0, 20.0]] and energy.get_yscale() == "log"
    assert curves(net) == {
        "k=1 (2 seeds)": [[1, 2], [10.0, 11.0]],
        "perceptron": [[1, 2], [10.0, 11.0]],
        "no cross entropy": [[1, 2], [40.0, 41.0]],  # the whole gradient, since there is one term
    }
    assert legend(figure) == list(curves(net))


def test_unmeasured_values_have_no_panel(tmp_path: Path) -> None:
    figure = game_figure([Group("a", [make_run(tmp_path / "a", 2, "cross", ())])])
    assert [axis.get_title()[:3] for axis in figure.axes] == ["(a)", "(b)", "(c)"]


def test_the_error_for_a_run_without_measures_says_how_to_get_them(tmp_path: Path) -> None:
    groups = [Group("a", [make_run(tmp_path / "a", 2)]), Group("b", [written(tmp_path / "b", [0.1, 0.2])])]
    with pytest.raises(ConfigError, match=r"b has no l1.*infnet\.joint.*trainer\.gradient_norms_every above 0"):
        game_figure(groups)
    assert "trainer.gradient_norms_every" in spen("plot", "game", groups[1].runs[0].path, status=2).stderr
