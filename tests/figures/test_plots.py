"""Figures show the numbers of their runs and are written as valid files."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from spen_plugins.errors import ConfigError
from spen_plugins.figures.kit import save, styled, svg
from spen_plugins.figures.layout import decades, new_figure, shortened
from spen_plugins.report.plots import calibration_figure, training_figure, training_panels
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group, read_groups
from tests import loaded


def written(path: Path, scores: list[float], **extra: list[Any]) -> RunFolder:
    """A run folder with this history; `extra` are further tables of the records, one per record."""
    seed = int(path.name) if path.name.isdigit() else 0
    folder = RunFolder.create(path, {"seed": seed, "task": {"type": "multilabel"}})
    for epoch, score in enumerate(scores):
        tables = {name: values[epoch] for name, values in extra.items() if values[epoch] is not None}
        record = {
            "stage": "seal",
            "epoch": epoch,
            "updates": {"energy": 10 * epoch},
            "losses": {"net.ce": 2.0 - epoch},
            "gradient_norms": {"net.ce": 3.0} if epoch % 2 == 0 else {},
            "validation": {"hamming": 0.1, "f1": score},
            "score": score,
            "best": score == max(scores[: epoch + 1]),
        } | tables
        folder.append_history(record, 1.0)
    return folder


def panels(figure: Figure) -> dict[str, Any]:
    return {axis.get_title(): axis for axis in figure.axes}


def curves(axis: Any) -> dict[str, list[list[float]]]:
    """Drawn lines that have a label, as [x, y]."""
    lines = [line for line in axis.lines if not line.get_label().startswith("_")]
    return {line.get_label(): np.asarray(line.get_data()).tolist() for line in lines}


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for box in figure.legends for text in box.get_texts()]


# Training


def test_all_panels_show_all_epochs(tmp_path: Path) -> None:
    figure = training_figure([Group("mine", [written(tmp_path / "mine", [0.2, 0.5])])])  # one measured gradient
    assert len({axis.get_xlim() for axis in figure.axes}) == 1


def test_a_figure_shows_the_numbers_of_a_run(tmp_path: Path) -> None:
    run = written(tmp_path / "mine", [0.2, 0.5, 0.4])
    figure = training_figure([Group("mine", [run])])
    axes = panels(figure)
    assert list(axes) == ["validation f1", "loss net.ce", "gradient of net.ce"], "hamming chose nothing"
    assert curves(axes["validation f1"]) == {"mine": [[1, 2, 3], [0.2, 0.5, 0.4]]}
    assert curves(axes["loss net.ce"]) == {"mine": [[1, 2, 3], [2.0, 1.0, 0.0]]}
    assert curves(axes["gradient of net.ce"]) == {"mine": [[1, 3], [3.0, 3.0]]}, "where it was measured"
    dots = [line.get_data() for line in axes["validation f1"].lines if line.get_marker() == "o"]
    assert [(float(x[0]), float(y[0])) for x, y in dots] == [(2.0, 0.5)], "the epoch whose weights were kept"
    assert axes["validation f1"].get_xlabel() == "epoch" and axes["loss net.ce"].get_ylabel() == "mean per example"
    assert legend(figure) == ["mine"] and "mine" in figure.get_suptitle()


def test_seeds_are_a_mean_in_a_band_up_to_the_last_common_epoch(tmp_path: Path) -> None:
    runs = [written(tmp_path / "0", [0.2, 0.4, 0.9]), written(tmp_path / "1", [0.4, 0.8])]
    axis = panels(training_figure([Group("two", runs)]))["validation f1"]
    [(label, (x, y))] = curves(axis).items()
    assert label == "two (2 seeds)" and x == [1, 2] and y == pytest.approx([0.3, 0.6])
    corners = axis.collections[0].get_paths()[0].vertices
    assert {(float(a), round(float(b), 6)) for a, b in corners} == {(1, 0.2), (1, 0.4), (2, 0.4), (2, 0.8)}
    singles = [line for line in axis.lines if line.get_label().startswith("_")]
    assert sorted(len(line.get_xdata()) for line in singles) == [2, 3]


def test_groups_are_overlaid_and_stages_marked(tmp_path: Path) -> None:
    one = written(tmp_path / "one", [0.2, 0.3, 0.4], stage=["warm-up", "seal", "seal"])
    two = written(tmp_path / "two", [0.1, 0.2], losses=[{"net.energy": 1.0}] * 2)
    axes = panels(training_figure([Group("one", [one]), Group("two", [two])]))
    assert set(curves(axes["validation f1"])) == {"one", "two"}
    assert set(curves(axes["loss net.ce"])) == {"one"} and set(curves(axes["loss net.energy"])) == {"two"}
    colours = {line.get_label(): line.get_color() for line in axes["validation f1"].lines}
    assert colours["one"] != colours["two"]
    assert axes["loss net.energy"].lines[0].get_color() == colours["two"], "a group keeps its colour"
    vertical = [line.get_xdata()[0] for line in axes["validation f1"].lines if line.get_linestyle() == ":"]
    assert vertical == [1.5]


def test_a_fall_by_orders_of_magnitude_has_a_logarithmic_scale(tmp_path: Path) -> None:
    sizes = {"positive": [5000.0, 2.0, 1.5, 1.0], "signed": [5000.0, 2.0, -1.5, -3.0], "plain": [4.0, 3.0, 2.5, 2.0]}
    losses = [{name: values[i] for name, values in sizes.items()} for i in range(4)]
    axes = panels(training_figure([Group("a", [written(tmp_path / "a", [0.1] * 4, losses=losses)])]))
    scales = {name: axes[f"loss {name}"].get_yscale() for name in sizes}
    assert scales == {"positive": "log", "signed": "symlog", "plain": "linear"}


def test_scores_are_on_a_linear_scale_and_a_single_epoch_is_visible(tmp_path: Path) -> None:
    norms = [{"net.energy": 2.0}, {}, {}, {}]
    run = written(tmp_path / "a", [0.001, 0.002, 0.1, 0.6], gradient_norms=norms)
    axes = panels(training_figure([Group("a", [run])]))
    assert axes["validation f1"].get_yscale() == "linear"
    [line] = axes["gradient of net.energy"].lines
    assert len(line.get_xdata()) == 1 and line.get_marker() == "."


@pytest.mark.parametrize("terms", range(9))
def test_no_panel_is_empty_and_rows_are_full(tmp_path: Path, terms: int) -> None:
    """A term without a value has no panel; the last row's panels are as wide as the others together."""
    losses = [{f"net.{i}": 1.0 + i for i in range(terms)} | {"net.none": None, "net.nan": float("nan")}] * 2
    run = written(tmp_path / "a", [0.1, 0.2], losses=losses, gradient_norms=[{}, {}])
    figure = training_figure([Group("a", [run])])
    assert len(figure.axes) == 1 + terms and all(axis.lines for axis in figure.axes)
    cells = [axis.get_subplotspec() for axis in figure.axes]
    rows, columns = cells[0].get_gridspec().get_geometry()
    widths = [cell.colspan.stop - cell.colspan.start for cell in cells]
    for row in range(rows):
        row_widths = [width for cell, width in zip(cells, widths, strict=True) if cell.rowspan.start == row]
        assert sum(row_widths) == columns and len(set(row_widths)) == 1


def read_ticks(axis: Any) -> list[str]:
    """The numbers written at the y-axis, within its limits."""
    axis.figure.draw_without_rendering()
    low, high = axis.get_ylim()
    marks = [*axis.yaxis.get_major_ticks(), *axis.yaxis.get_minor_ticks()]
    return [tick.label1.get_text() for tick in marks if low <= tick.get_loc() <= high and tick.label1.get_text()]


@pytest.mark.parametrize("largest", [2.0, 20.0, 300.0, 1e5])
def test_axes_are_not_crowded(tmp_path: Path, largest: float) -> None:
    norms = [{"net.ce": largest}, {"net.ce": 1.0}]
    axes = panels(training_figure([Group("a", [written(tmp_path / "a", [0.1, 0.2], gradient_norms=norms)])]))
    axis = axes["gradient of net.ce"]
    assert axis.get_yscale() == ("log" if largest > 10 else "linear")
    assert 2 <= len(read_ticks(axis)) <= 9
    assert all(x == int(x) for x in axes["validation f1"].get_xticks())


def test_one_epoch_has_one_tick(tmp_path: Path) -> None:
    figure = training_figure([Group("a", [written(tmp_path / "a", [0.1])])])
    for axis in figure.axes:
        low, high = axis.get_xlim()
        assert [x for x in axis.get_xticks() if low <= x <= high] == [1]


def test_many_runs_can_be_distinguished_and_leave_room_for_the_panels(tmp_path: Path) -> None:
    names = [f"runs/a-method-with-a-long-name-{i}" for i in range(20)]
    figure = training_figure([Group(name, [written(tmp_path / str(i), [0.1, 0.2])]) for i, name in enumerate(names)])
    first = figure.axes[0]
    lines = [line for line in first.lines if not line.get_label().startswith("_")]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(names)
    figure.draw_without_rendering()
    few = training_figure([Group("a", [RunFolder.open(tmp_path / "0")])])
    few.draw_without_rendering()
    heights = [f.axes[0].get_position().height * f.get_figheight() for f in (few, figure)]
    assert heights[1] > 0.9 * heights[0], "inches"
    assert figure.legends[0].get_window_extent().x1 <= figure.bbox.x1


def test_long_names_are_cut_in_their_middle() -> None:
    assert shortened("a-very-long-name", 10) == "a-very…ame" and shortened("short", 5) == "short"


def test_nothing_to_plot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found no finished epoch in mine"):
        training_figure([Group("mine", [written(tmp_path / "mine", [])])])


def test_files_are_valid_and_reproducible(tmp_path: Path) -> None:
    run = written(tmp_path / "mine", [0.2, 0.5])
    png, svg = save(training_figure([Group("mine", [run])]), tmp_path / "new" / "plot.v1")
    assert [png.name, svg.name] == ["plot.v1.png", "plot.v1.svg"]
    data = png.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and width > 1000 and height > 400
    assert ET.parse(svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    first = svg.read_bytes()
    for name in ("plot.v1", "plot.v1.png", "plot.v1.svg"):
        assert save(training_figure([Group("mine", [run])]), tmp_path / "new" / name) == [png, svg]
    assert svg.read_bytes() == first and png.read_bytes() == data
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["plot.v1.png", "plot.v1.svg"]
    (pdf,) = save(training_figure([Group("mine", [run])]), tmp_path / "new" / "plot.pdf")
    first = pdf.read_bytes()
    assert pdf.name == "plot.pdf" and first.startswith(b"%PDF") and len(list(pdf.parent.iterdir())) == 3
    assert save(training_figure([Group("mine", [run])]), pdf) == [pdf] and pdf.read_bytes() == first
    with pytest.raises(ConfigError, match=r"found suffix \.jpg; expected \.png, \.svg, \.pdf"):
        save(training_figure([Group("mine", [run])]), tmp_path / "plot.jpg")


def test_panels_match_the_figure(tmp_path: Path) -> None:
    groups = [Group(name, [written(tmp_path / name, [0.2, 0.4])]) for name in ("a", "b")]
    figure, single = training_figure(groups), training_panels(groups)
    assert [axis.get_title() for axis in figure.axes] == [panel.axes[0].get_title() for panel in single]
    assert [curves(axis) for axis in figure.axes] == [curves(panel.axes[0]) for panel in single]
    assert all(legend(panel) == ["a", "b"] for panel in single)


def write_calibrated_run(folder: Path, bins: list[list[float]]) -> RunFolder:
    run = written(folder, [0.2])
    error = sum(n * abs(p - share) for n, p, share in bins) / sum(n for n, *_ in bins)
    run.write("calibration.json", {"temperature": 1.5, "test": {"ece": error, "bins": bins}})
    return run


def test_bins_of_seeds_are_joined(tmp_path: Path) -> None:
    runs = [
        write_calibrated_run(tmp_path / "0", [[30, 0.2, 0.1], [10, 0.95, 1.0]]),
        write_calibrated_run(tmp_path / "1", [[10, 0.16, 0.5], [10, 0.5, 0.5]]),
    ]
    axis = calibration_figure([Group("two", runs)]).axes[0]
    [(label, (x, y))] = curves(axis).items()
    assert x == pytest.approx([0.19, 0.5, 0.95]) and y == pytest.approx([0.2, 0.5, 1.0])
    assert label == "two (error 12.9 %)", "mean of (30 · 0.1 + 10 · 0.05) / 40 and 10 · 0.34 / 20"
    areas = axis.collections[0].get_sizes()
    assert areas.argmax() == 0 and areas[1] == areas[2], "40, 10 and 10 decisions"


def test_without_bins_there_is_no_diagram(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run has calibration bins of part validation"):
        calibration_figure([Group("mine", [write_calibrated_run(tmp_path / "mine", [[1, 0.2, 1.0]])])], "validation")


def test_the_score_alone(tmp_path: Path) -> None:
    runs = [Group(name, [written(tmp_path / name, [0.2, 0.4])]) for name in ("a", "b")]
    axes = panels(training_figure(runs, score_only=True))
    assert list(axes) == ["validation f1"] and set(curves(axes["validation f1"])) == {"a", "b"}


# The commands


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "labels"
    arguments = {"features.hidden": "[8]", "energy.hidden": "4", "energy_loss.samples": "2"}
    arguments |= {"trainer.epochs": "1", "trainer.probe.steps": "2"}
    return loaded.trained("labels", folder, **arguments)


def test_the_commands_write_next_to_the_run(trained: Path, tmp_path: Path) -> None:
    for words in (("training", trained), ("gradients", trained, "--labels", "0,1")):
        result = loaded.spen("plot", *words)
        expected = [trained / "plots" / f"{words[0]}.{kind}" for kind in ("png", "svg")]
        assert result.stdout.split() == [str(path) for path in expected] and all(
            0 < path.stat().st_size < 2**20 for path in expected
        )
    result = loaded.spen("plot", "training", f"a={trained}", "--out", tmp_path / "there" / "x")
    assert result.stdout.split() == [str(tmp_path / "there" / f"x.{kind}") for kind in ("png", "svg")]
    assert read_groups([f"a={trained}"])[0].runs[0].history()[0]["probe"].keys() == {"net", "net_gbi", "random_gbi"}


def test_the_commands_report_mistakes(trained: Path, tmp_path: Path) -> None:
    for words, message in (
        (("training", tmp_path / "nothing"), "found no run"),
        (("gradients", trained, "--labels", "0,x"), "unknown label 'x'"),
    ):
        assert message in loaded.spen("plot", *words, status=2).stderr


@pytest.mark.filterwarnings("error")
def test_any_label_is_drawn(tmp_path: Path) -> None:
    """Dollar signs are not read as formulas, and control characters do not break the XML."""

    @styled
    def make_figure() -> Figure:
        drawing = new_figure(4, 3)
        axis = drawing.add_subplot()
        axis.plot([1, 2], [1, 1e6], label="a$\\bad$ <b>&--> \x07\x00 -- $x$")
        axis.set_xticks([1, 2], labels=["$\\frac$", "<x>\x02"])
        axis.set_title("\x1b ]]> $")
        decades(axis)
        drawing.legend()
        return drawing

    ET.fromstring(svg(make_figure(), ()))
    png, vector = save(make_figure(), tmp_path / "odd")
    assert png.stat().st_size > 1000
    ET.fromstring(vector.read_text(encoding="utf-8"))
