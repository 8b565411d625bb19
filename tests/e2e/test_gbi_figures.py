"""Figures of gradient-based inference show the numbers that their labels name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from spen_e2e.gbi_figures import gbi_figure, read_trajectory, trajectory_figure
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.runs.many.groups import Group
from tests.figures.test_plots import curves, legend, panels, written
from tests.loaded import spen


def test_the_probes_of_a_run_and_energies_alone(tmp_path: Path) -> None:
    probes = [{"net": 0.2, "net_gbi": 0.3, "random_gbi": 0.1}, None, {"net": 0.5, "net_gbi": 0.6, "random_gbi": 0.4}]
    run = written(tmp_path / "mine", [0.2, 0.4, 0.5], probe=probes)
    updates = [{"inference_net": 5}, {"energy": 5}, {"energy": 10}]  # a first epoch trained the net it starts from
    energy_alone = Group("dvn", [written(tmp_path / str(s), [0.9, 0.1, 0.2 + s / 10], updates=updates) for s in (0, 1)])
    figure = gbi_figure(Group("mine", [run]), [energy_alone])
    [axis] = figure.axes
    assert curves(axis) == {
        "net": [[1, 3], [0.2, 0.5]],
        "net + GBI": [[1, 3], [0.3, 0.6]],
        "random + GBI": [[1, 3], [0.1, 0.4]],
        "dvn (energy alone) (2 seeds)": [[1, 2], [0.1, pytest.approx(0.25)]],
    }
    assert legend(figure) == list(curves(axis)) and axis.get_ylabel() == "validation f1"
    assert len({line.get_color() for line in axis.lines}) == 4
    with pytest.raises(ConfigError, match=r"trainer\.probe"):
        gbi_figure(energy_alone)
    result = spen("plot", "gbi", run.path, tmp_path / "0")
    assert result.stdout.split() == [str(run.path / "plots" / f"gbi.{kind}") for kind in ("png", "svg")], result.output
    assert "trainer.probe" in spen("plot", "gbi", tmp_path / "0", status=2).stderr


def write_steps(path: Path, values: list[tuple[float, float]]) -> Path:
    lines = [
        {"step": i, "energy": e, "score": f, "scores": {"accuracy": 1.0, "f1": f}} for i, (e, f) in enumerate(values)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_trajectory_is_energy_and_score_by_step(tmp_path: Path) -> None:
    one, two = (
        write_steps(tmp_path / "one.jsonl", [(-1.0, 0.5), (-2.0, 0.25)]),
        write_steps(tmp_path / "two.jsonl", [(-3.0, 0.75)]),
    )
    trajectories = {"one": read_trajectory(one), "b": read_trajectory(two)}
    axes = panels(trajectory_figure(trajectories))
    assert curves(axes["energy"]) == {"one": [[0, 1], [-1.0, -2.0]], "b": [[0], [-3.0]]}
    assert curves(axes["f1"]) == {"one": [[0, 1], [0.5, 0.25]], "b": [[0], [0.75]]}
    assert curves(panels(trajectory_figure(trajectories, "accuracy"))["accuracy"])["one"] == [[0, 1], [1.0, 1.0]]
    with pytest.raises(ConfigError, match=r"--score acuracy: unknown score\. Did you mean 'accuracy'"):
        trajectory_figure(trajectories, "acuracy")
    for text, message in (
        ("", "an empty file"),
        ('{"step": 0}', ":1: found"),
        ("words\n", ":1: found 'words'|'words'"),
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(DataError, match=message):
            read_trajectory(tmp_path / "bad")
    result = spen("plot", "trajectory", one, f"b={two}")
    assert result.stdout.split() == [str(tmp_path / f"one.{kind}") for kind in ("png", "svg")], result.output
    for words, message in (
        ([str(one), f"one={two}"], "two files have the same label"),
        (["x=nothing"], "no file nothing"),
    ):
        assert re.search(message, spen("plot", "trajectory", *words, status=2).stderr)
