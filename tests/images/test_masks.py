"""`masks.jsonnet`: each method is an experiment, and a run trains, predicts, scores and is drawn."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import spen_plugins as sp
from spen_images import image_rows
from spen_images import segmentation_sample as sample
from spen_images.figures import images_figure
from spen_plugins.config.evaluation import evaluate
from spen_plugins.errors import ConfigError
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.testing import ToyLabels
from tests.loaded import ROOT, experiment, spen, trained

CONFIG = ROOT / "plugins/spen-images/spen_images/configs/masks.jsonnet"
IMPLICIT = ("implicit_cd", "implicit_ssvm", "implicit_dvn", "alternating_cd")
METHODS = ("cross_entropy", "dvn", "regression", "regression_s", "nce", "margin", *IMPLICIT, "cglow", "nce_cglow")
TYPES = {"dvn": "gbi", "cglow": "images.cglow", "nce_cglow": "images.beside_flow"}
"""Inference nets of methods, if not the fully convolutional net."""
TINY = {"trainer.epochs": "1", "trainer.batch_size": "4", "trainer.gradient_norms_every": "0"}
NETS = {"inference_net.filters": "4", "inference_net.levels": "2"}
ENERGY = {"energy.filters": "[4, 4]", "energy.hidden": "4", "energy.size": "3"}


def train(folder: Path, **arguments: str) -> Path:
    return trained(CONFIG, folder, **(TINY | arguments))


@pytest.fixture(autouse=True, scope="module")
def small_corpus():
    """An embedded corpus of a few examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "SIZES", {"train": 8, "validation": 4, "test": 4})
        yield


@pytest.fixture(scope="module")
def run(small_corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "seal", method="regression", **NETS, **ENERGY)


@pytest.fixture(scope="module")
def net(small_corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "ce", method="cross_entropy", **NETS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["sample", "horses", "./mine.npz"])
def test_every_data_set_with_every_method_is_an_experiment(data: str, method: str) -> None:
    config = experiment(CONFIG, data=data, method=method)
    assert config["inference_net"]["type"] == TYPES.get(method, "images.fcn")
    assert ("energy" in config) == (method not in ("cross_entropy", "cglow"))
    if method in ("nce", "nce_cglow"):
        assert config["energy_loss"]["samples"] <= 20


def test_user_files() -> None:
    assert experiment(CONFIG, data="a.npz")["task"]["file"] == "a.npz"
    task = experiment(CONFIG, data="a.npz", validation="b.npz", test="c.npz")["task"]
    assert (task["file"], task["train"], task["validation"], task["test"]) == (None, "a.npz", "b.npz", "c.npz")
    with pytest.raises(ConfigError, match=r"masks.jsonnet: validation= and test= require a training file"):
        evaluate(CONFIG, {"test": "c.npz"})


OTHERS = ("cross_entropy", "regression", "cglow", "nce_cglow")


@pytest.mark.parametrize("method", [method for method in METHODS if method not in OTHERS])
def test_every_method_trains(method: str, tmp_path: Path) -> None:
    fields = {"inference_net.steps": "2", "energy_loss.descent.steps": "2"} if method == "dvn" else NETS
    folder = train(tmp_path / "run", method=method, **fields, **ENERGY)
    scores = sp.RunFolder(folder).metrics()
    assert set(scores["test"]) == {"iou", "pixel_accuracy"} and scores["protocol"]["threshold"] == 0.5


def test_a_flow_is_trained_and_then_noise_for_an_energy(tmp_path: Path) -> None:
    small = {"levels": "1", "steps": "1", "width": "8"}
    flow = train(tmp_path / "flow", method="cglow", **{f"inference_net.{key}": value for key, value in small.items()})
    nets = {f"inference_net.net.{key}": value for key, value in small.items()}
    nets |= {key.replace(".", ".predictor.", 1): value for key, value in NETS.items()}
    folder = train(tmp_path / "run", method="nce_cglow", **nets, **ENERGY, **{"init.inference_net": str(flow)})
    weights, flow_weights = sp.RunFolder(folder).weights(), sp.RunFolder(flow).weights()
    for name, value in flow_weights.items():
        assert (weights[name.replace("inference_net.", "inference_net.net.", 1)] == value).all()
    assert set(sp.RunFolder(folder).metrics()["test"]) == {"iou", "pixel_accuracy"}


def test_predict_evaluate_and_score(run: Path, tmp_path: Path) -> None:
    image, mask = sample.make(seed=1)["test"]
    np.savez(tmp_path / "new.npz", images=image, masks=mask)
    lines = [json.loads(line) for line in spen("predict", run, tmp_path / "new.npz", "--energy").stdout.splitlines()]
    scores = json.loads(spen("evaluate", run, tmp_path / "new.npz").stdout)["scores"]
    assert scores["iou"] == pytest.approx(np.mean([line["iou"] for line in lines]), abs=1e-5)
    energies = [json.loads(line) for line in spen("score", run, tmp_path / "new.npz").stdout.splitlines()]
    for line, energy, pixels, gold in zip(lines, energies, image, mask, strict=True):
        with Image.open(io.BytesIO(base64.b64decode(line["mask"]))) as png:
            output = np.array(png) > 0
        union = (output | (gold > 0)).sum()
        assert line["iou"] == pytest.approx((output & (gold > 0)).sum() / union if union else 1.0, abs=1e-5)
        assert line["energy"] == pytest.approx(energy["predicted_energy"], abs=1e-4)
        [prediction] = sp.load(run).predict([{"image": pixels}])
        assert prediction["mask"] == line["mask"]


def test_a_report_needs_no_constant_predictor(run: Path, tmp_path: Path) -> None:
    assert "constant_predictor" not in sp.RunFolder(run).metrics()["protocol"]
    spen("report", run, "--out", tmp_path / "page.html")
    assert "pixel_accuracy" in (tmp_path / "page.html").read_text()


def test_photographs_of_other_sizes_are_predicted_together(run: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, size in (("a", (9, 20)), ("b", (31, 14))):
        Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    batched = [json.loads(line) for line in spen("predict", run, tmp_path).stdout.splitlines()]
    single = [json.loads(spen("predict", run, tmp_path / f"{name}.png").stdout) for name in "ab"]
    assert batched == single


def test_the_figure_has_a_row_for_each_image_and_a_column_for_each_run(run: Path, net: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = image_rows.masked_rows(read_groups([f"ours={run}", f"net={net}"]), 2)
    image, mask = sample.make()["test"]
    drawn_image, gold, _, net_mask = rows[1]
    assert np.array_equal(drawn_image[1], image[1] / 255) and np.array_equal(gold[1], mask[1])
    intersection, union = np.minimum(net_mask[1], mask[1]), np.maximum(net_mask[1], mask[1])
    assert net_mask[2] == f"IoU {intersection.sum() / union.sum():.3f}"
    titles = [axis.get_title() for axis in images_figure(rows, 1.6).axes]
    assert len(titles) == 8 and titles[:2] == ["image", "gold"] and titles[4:6] == ["", ""]
    assert titles[2] == f"ours\n{rows[0][2][2]}" and titles[7] == net_mask[2]
    paths = spen("plot", "masks", run, "--images", "1", "--out", tmp_path / "figure").stdout.split()
    assert [Path(path).name for path in paths] == ["figure.png", "figure.svg"]


def test_runs_that_cannot_be_drawn_together(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    images = sample.make(seed=2)
    arrays = {
        f"{part}_{kind}": values
        for part, pair in images.items()
        for kind, values in zip(("images", "masks"), pair, strict=True)
    }
    np.savez(tmp_path / "other.npz", **arrays)
    other = train(tmp_path / "other", method="cross_entropy", data=str(tmp_path / "other.npz"), **NETS)
    with pytest.raises(ConfigError, match="other has other images than"):
        image_rows.masked_rows(read_groups([str(run), str(other)]), 1)
    monkeypatch.setattr(image_rows, "load_task", lambda folder, registry: ToyLabels())
    with pytest.raises(ConfigError, match=r"no masks to show: its task is ToyLabels; expected 'images\.segmentation'"):
        image_rows.masked_rows(read_groups([str(run)]), 1)
