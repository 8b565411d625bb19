"""`denoise.jsonnet`: each method is an experiment, and a run trains, predicts, scores and is drawn."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spen_plugins as sp
from spen_e2e.images import DeepPrior, Input
from spen_e2e.unroll import Unroll
from spen_e2e.unrolled import Unrolled
from spen_images import image_rows
from spen_images.figures import images_figure
from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.testing import ToyLabels
from tests.e2e.toys import make, resumes_exactly
from tests.infnet.toys import loop_for
from tests.loaded import experiment, loaded, spen, trained

CONFIG = Path(__file__).resolve().parents[2] / "plugins/spen-images/spen_images/configs/denoise.jsonnet"
METHODS = ("dp3", "dp20", "rp3", "foe3", "foe20_plus", "foe20", "foe_ssvm", "dp_ssvm", "icnn", "convnet")
TINY = {
    "task.crop": "9",
    "task.repeat": "1",
    "trainer.epochs": "2",
    "trainer.batch_size": "12",
    "trainer.gradient_norms_every": "0",
}
FILTERS = {"energy.filters": "2", "energy.size": "3"}


def train(folder: Path, **arguments: str) -> Path:
    return trained(CONFIG, folder, **(TINY | arguments))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["sample", "bsd", "./photos"])
def test_every_data_set_with_every_method_is_an_experiment(data: str, method: str) -> None:
    config = experiment(CONFIG, data=data, method=method, sigma="15")
    energy = {"f": "e2e.foe", "d": "e2e.deep_prior", "i": "e2e.deep_prior", "r": "e2e.residual_prior"}.get(method[0])
    assert config.get("energy", {}).get("type") == energy
    if energy:
        assert config["energy"]["weight"] == pytest.approx((15 / 255) ** 2)
    assert config["task"]["sigma"] == 15


def test_the_recipes_are_those_of_the_paper() -> None:
    keys = ("steps", "momentum", "rates")
    configs = {method: experiment(CONFIG, method=method) for method in METHODS}
    nets = {method: tuple(configs[method]["inference_net"].get(key) for key in keys) for method in METHODS}
    assert nets["foe20"] == (20, 0.75, "fixed") and configs["foe20"]["trainer"]["iterates"] == "last"
    for method, steps in (("foe20_plus", 20), ("foe3", 3), ("dp20", 20), ("dp3", 3), ("rp3", 3)):
        assert nets[method] == (steps, 0.25, "learned") and configs[method]["trainer"]["iterates"] == "all"
    for method in ("foe_ssvm", "dp_ssvm"):
        net, loss = configs[method]["inference_net"], configs[method]["energy_loss"]
        assert (net["type"], net["net"]["type"], loss["type"], loss["cost"]) == ("gbi", "e2e.input", "ssvm", "l1")
        assert all(net[key] == value for key, value in loss["descent"].items())
        assert configs[method]["task"]["cost_weight"] < 1
    assert experiment(CONFIG)["inference_net"] == configs["dp3"]["inference_net"] == configs["icnn"]["inference_net"]
    assert [configs[method]["energy"]["icnn"] for method in ("dp3", "icnn")] == [False, True]


def test_berkeley_and_user_images() -> None:
    task = experiment(CONFIG, data="bsd")["task"]
    assert (task["train"], task["validation"]) == ("data:images/bsd/Train400", None)
    assert (task["test"], task["held_out"], task["sigma"]) == ("data:images/bsd/BSD68", 20, 25)
    config = experiment(CONFIG, data="./photos", test="./others")
    assert (config["task"]["train"], config["task"]["test"], config["task"]["corpus"]) == ("./photos", "./others", None)
    assert experiment(CONFIG, **{"task.train": "photos"})["task"]["corpus"] is None
    with pytest.raises(ConfigError, match="require a folder of training images"):
        evaluate(CONFIG, {"test": "./others"})
    for more in ({}, {"test": "./others"}):
        with pytest.raises(ConfigError, match=r'unknown data "photos"; known: .*; or a folder: \./photos'):
            evaluate(CONFIG, {"data": "photos", **more})
    with pytest.raises(ConfigError, match=r'unknown method "dp4"; known: .*dp3'):
        evaluate(CONFIG, {"method": "dp4"})
    with pytest.raises(ConfigError, match=r"'task.sigma': found \"loud\"; expected float"):
        experiment(CONFIG, sigma="loud")
    assert len(parameters(CONFIG)) <= 15


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "dp3", **FILTERS)


@pytest.fixture(scope="module")
def convnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    filters = {"inference_net.filters": "2", "inference_net.size": "3"}
    return train(tmp_path_factory.mktemp("runs") / "convnet", method="convnet", **filters)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, size in (("a.png", (20, 14)), ("b.png", (14, 20)), ("c.jpg", (15, 15))):
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(folder / name)
    return folder


def test_a_run_stores_scores_in_db(run: Path) -> None:
    metrics = sp.RunFolder(run).metrics()
    assert metrics["protocol"]["unit"] == "dB" and "PSNR" in metrics["protocol"]["metric"]
    for part in ("validation", "test"):
        assert 15 < metrics[part]["psnr"] < 60 and metrics[part]["psnr_noisy"] == pytest.approx(20.17, abs=0.3)
    # Even an identity net scores above psnr_noisy, since outputs are clipped.
    history = sp.RunFolder(run).history()
    assert [record["stage"] for record in history] == ["all", "all"]
    assert history[0]["losses"]["energy.iterates"] > 0
    assert history[0]["score"] == pytest.approx(history[0]["validation"]["psnr"])


def test_predict_denoises_its_inputs(run: Path, photos: Path) -> None:
    lines = [json.loads(line) for line in spen("predict", run, photos, "--energy").stdout.splitlines()]
    assert [line["name"] for line in lines] == ["a.png", "b.png", "c.jpg"]
    predictor = sp.load(run)
    for line, file in zip(lines, sorted(photos.iterdir()), strict=True):
        assert "psnr" not in line and isinstance(line["energy"], float)
        with Image.open(file) as original, Image.open(io.BytesIO(base64.b64decode(line["image"]))) as image:
            assert image.size == original.size
            output, pixels = np.array(image), np.array(original)
        [prediction] = predictor.predict([{"image": pixels, "name": file.name}])
        assert prediction == {key: line[key] for key in ("name", "image")}, "the same alone as beside others"
        batch = predictor.task.collate([predictor.task.parse(file)])
        with torch.no_grad():
            y = predictor.model.propose(batch.x).mode[0, 0].clamp(0, 1).numpy() * 255
        assert np.abs(output - y).max() <= 0.5 + 1e-3


def test_evaluate_adds_the_test_parts_noise(run: Path, photos: Path) -> None:
    result = json.loads(spen("evaluate", run, photos).stdout)
    assert result["protocol"]["split"] == f"all 3 examples of {photos}" and result["protocol"]["unit"] == "dB"
    assert result["scores"]["psnr_noisy"] == pytest.approx(20.17, abs=0.7)
    predictor = sp.load(run)
    examples = predictor.task.read(str(photos))
    values = [answer["psnr"] for answer in predictor.predict_examples(examples)]
    assert result["scores"]["psnr"] == pytest.approx(np.mean(values), abs=1e-3)
    steps = [json.loads(line) for line in spen("evaluate", run, photos, "--trajectory").stdout.splitlines()]
    assert [step["step"] for step in steps] == [0, 1, 2, 3]
    assert steps[-1]["score"] == pytest.approx(result["scores"]["psnr"], abs=1e-3)
    scores = [json.loads(line) for line in spen("score", run, photos).stdout.splitlines()]
    assert all(set(score) == {"energy", "predicted_energy"} for score in scores) and len(scores) == 3


def test_predict_rejects_colours(run: Path, photos: Path) -> None:
    Image.new("RGB", (9, 9)).save(photos / "b.png")
    result = spen("predict", run, photos, status=2)
    assert "b.png: found an image with Pillow's mode RGB; expected an 8-bit grayscale image" in result.output


def test_crops_change_each_epoch_and_a_run_is_reproducible(run: Path, tmp_path: Path) -> None:
    second = train(tmp_path / "again", **FILTERS)
    assert (second / "history.jsonl").read_text() == (run / "history.jsonl").read_text()


def test_an_interrupted_run_resumes_with_the_same_crops_and_noise(tmp_path: Path) -> None:
    task = loaded("images.denoising", corpus="sample", crop=8)
    assert isinstance(task, sp.Augments)

    def loop_in(folder: Path, **fields: object):
        torch.manual_seed(0)
        energy = make(DeepPrior, task, filters=2, size=3, weight=0.3)
        net = Unrolled(Unrolled.Config(steps=2, rates="learned"), task, net=make(Input, task))
        trainer = Unroll(Unroll.Config(epochs=2, clamped_epochs=1, clamp=["energy.log_weight"], batch_size=8))
        return loop_for(sp.Model(net, energy, None), task, trainer, folder, **fields)

    resumes_exactly(loop_in, tmp_path, ["clamped", "all", "all"], (2, 5, 8))


def test_user_images_train_and_test(photos: Path, tmp_path: Path) -> None:
    arguments = {"data": str(photos), "test": str(photos), "task.held_out": "1", "trainer.epochs": "1"}
    folder = train(tmp_path / "mine", **FILTERS, **arguments)
    metrics = sp.RunFolder(folder).metrics()
    assert metrics["protocol"]["split"] == {
        "train": str(photos),
        "validation": f"the last 1 images of {photos} by name, which are not trained on",
        "test": str(photos),
    }
    assert list(sp.RunFolder(folder).environment()["data_sha256"]) == [str(photos)]


def test_a_filter_larger_than_the_crop_is_found_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"size=11; expected a filter within .* \(9\)"):
        train(tmp_path / "run", **{"energy.size": "11"})
    with pytest.raises(DataError, match=r"expected at least task\.crop=64"):
        train(tmp_path / "run", **{"task.crop": "64"})
    assert not (tmp_path / "run").exists()


def test_compare_shows_db(run: Path, convnet: Path) -> None:
    table = spen("compare", f"ours={run}", f"net={convnet}").stdout
    psnr = sp.RunFolder(convnet).metrics()["test"]["psnr"]
    assert f"{psnr:.2f}" in table and "dB" in table


def test_the_figure_has_a_row_for_each_image_and_a_column_for_each_run(run: Path, convnet: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = image_rows.denoised_rows(read_groups([f"ours={run}", f"net={convnet}"]), 2)
    assert len(rows) == 2 and [name for name, *_ in rows[0]] == ["clean", "noisy", "ours", "net"]
    predictor = sp.load(run)
    task = load_task(sp.RunFolder.open(run), Registry())
    for (clean, noisy, denoised, _), example, answer in zip(
        rows, task.part("test"), predictor.predict_examples(task.part("test")[:2]), strict=False
    ):
        np.testing.assert_allclose(clean[1] * 255, example.clean, atol=1e-3)
        psnr = -10 * np.log10(np.square(denoised[1].astype(float) - clean[1]).mean())
        assert psnr == pytest.approx(answer["psnr"], abs=1e-3) and denoised[2] == f"{answer['psnr']:.2f} dB"
        assert noisy[2].endswith(" dB") and float(noisy[2][:-3]) == pytest.approx(20.17, abs=0.5)
    figure = images_figure(rows, 2.2)
    titles = [axis.get_title() for axis in figure.axes]
    assert len(titles) == 8 and titles[0] == "clean" and titles[4] == ""
    assert titles[2] == f"ours\n{rows[0][2][2]}" and titles[7] == rows[1][3][2]
    np.testing.assert_array_equal(figure.axes[6].images[0].get_array(), rows[1][2][1])


def test_plot_denoise_writes_files(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = spen("plot", "denoise", run, "--images", "1", "--out", tmp_path / "figure").stdout.split()
    assert [Path(path).name for path in paths] == ["figure.png", "figure.svg"]
    with Image.open(paths[0]) as image:
        assert image.width > image.height


def test_runs_with_other_noise_are_not_drawn_together(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = train(tmp_path / "other", **FILTERS, **{"trainer.epochs": "1"}, sigma="50")
    with pytest.raises(ConfigError, match=r"other has other images or other noise"):
        image_rows.denoised_rows(read_groups([str(run), str(other)]), 1)


def test_runs_without_images_are_not_drawn(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(image_rows, "load_task", lambda folder, registry: ToyLabels())
    with pytest.raises(ConfigError, match=r"no images to show: its task is ToyLabels; expected 'images\.denoising'"):
        image_rows.denoised_rows(read_groups([str(run)]), 1)
