"""`Predictor.save`: a small folder that predicts as the run does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.runs.predict.predictor import Predictor
from tests.loaded import trained

ITEM = {"words": ["Anna", "lives", "in", "New", "York", "."]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "ner"
    vectors = folder.with_name("vectors.txt")
    vectors.write_text("anna 0.1 0.2\nyork 0.3 0.4\n")
    settings = {"trainer.epochs": "1", "trainer.pretrain_epochs": "1", "method": "contrastive", "vectors": str(vectors)}
    trained("names", folder, **settings)
    vectors.unlink()
    return folder


def predict_alike(a: Predictor, b: Predictor) -> bool:
    return a.predict([ITEM]) == b.predict([ITEM])


def test_saved_folders_predict_and_save_again_without_the_run(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    predictor = sp.load(copied)
    predictor.save(tmp_path / "first")
    shutil.rmtree(copied)
    first = sp.load(tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    first.save(tmp_path / "second")
    assert sp.load(tmp_path / "second").model.energy is not None
    assert predict_alike(predictor, sp.load(tmp_path / "second"))
    names = {path.name for path in (tmp_path / "second").iterdir()}
    assert {"config.json", "vocabulary.json", "weights.safetensors", "metrics.json", "environment.json"} <= names
    assert not names & {"history.jsonl", "times.jsonl", "checkpoint"}


def test_without_energy_only_the_inference_net_is_saved(run: Path, tmp_path: Path) -> None:
    sp.load(run).save(tmp_path / "net", energy=False)
    net = sp.load(tmp_path / "net")
    assert net.model.energy is None and net.batch_size == sp.load(run).batch_size and predict_alike(sp.load(run), net)
    assert all(name.startswith("inference_net.") for name in sp.RunFolder(tmp_path / "net").weights())


def test_half_halves_the_weights(run: Path, tmp_path: Path) -> None:
    sp.load(run).save(tmp_path / "full")
    sp.load(run).save(tmp_path / "half", half=True)
    full, half = (sp.RunFolder(tmp_path / name).weights() for name in ("full", "half"))
    assert full.keys() == half.keys()
    assert {t.dtype for t in half.values()} == {torch.float16} and {t.dtype for t in full.values()} == {torch.float32}
    assert sp.load(tmp_path / "half").predict([ITEM])


def test_half_stores_tensors_beyond_half_precision_in_full(run: Path, tmp_path: Path) -> None:
    predictor = sp.load(run)
    large, bounds = (p.data for p in list(predictor.model.inference_net.parameters())[:2])
    for number in (-65504.0, -torch.inf):
        large.view(-1)[0], bounds.view(-1)[0] = 1e5, number
        folder = tmp_path / str(number)
        predictor.save(folder, half=True)
        names = [f"inference_net.{name}" for name, _ in predictor.model.inference_net.named_parameters()]
        saved = sp.RunFolder(folder).weights()
        loaded = [saved[name].float() for name in names[:2]]
        assert torch.equal(loaded[0], large) and torch.equal(loaded[1], bounds.half().float())
    loaded = list(sp.load(tmp_path / "-65504.0").model.inference_net.parameters())
    assert torch.equal(loaded[0], large)
    with pytest.raises(RunError, match=f"don't fit this config: found 1 of .* in {names[1]} that are NaN or infinite"):
        sp.load(tmp_path / "-inf")


def test_assets_that_cannot_be_written_are_reported(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    predictor = sp.load(run)
    for part in predictor.model.modules():
        if isinstance(part, sp.FeatureNetwork):
            monkeypatch.setattr(part, "save_assets", fail)
    with pytest.raises(RunError, match=r"assets can't be written: No space left"):
        predictor.save(tmp_path / "saved")


def test_a_refined_predictor_saves_the_runs_own_net(run: Path, tmp_path: Path) -> None:
    sp.load(run, refine={"type": "gbi", "steps": 1}).save(tmp_path / "saved")
    assert predict_alike(sp.load(run), sp.load(tmp_path / "saved"))


def test_nothing_is_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match=r"nothing was overwritten. Use an empty or new folder"):
        sp.load(run).save(tmp_path)
    with pytest.raises(ConfigError, match=r"nothing was overwritten. Use an empty or new folder"):
        sp.load(run).save(run)


def test_a_run_that_predicts_with_its_energy_keeps_it(run: Path, tmp_path: Path) -> None:
    predictor = sp.load(run)
    predictor.model.inference_net.uses_energy = True
    with pytest.raises(ConfigError, match="predicts with its energy"):
        predictor.save(tmp_path / "net", energy=False)
