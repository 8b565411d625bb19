"""Encoders stored apart from runs, in 8 and 16 bits: once, close to the originals; damage is reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import spen_plugins as sp
from spen_plugins.errors import RunError
from spen_plugins.runs.folder import encoders
from spen_plugins.runs.many import together
from tests.loaded import QUIET
from tests.runs.test_together import few, given  # noqa: F401, a fixture


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one tiny encoder."""
    folder = tmp_path_factory.mktemp("apart")
    together.run(given(folder / "bert", epochs=1), folder / "runs", QUIET)
    return folder / "runs"


@pytest.fixture
def stored(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both runs, saved as parts of a pipeline."""
    monkeypatch.setattr(encoders, "ROWS", 8)
    for part in ("tags", "roles"):
        sp.load(runs / part).save(tmp_path / part / "model", half=True, apart=True)
    return tmp_path


def test_rows_in_8_bits_differ_by_at_most_half_a_step() -> None:
    table = torch.cat([torch.randn(50, 7), torch.zeros(1, 7), 1e-40 * torch.ones(1, 7), 1e30 * torch.randn(1, 7)])
    numbers, scales = encoders.round_rows(table)
    assert numbers.dtype == torch.int8 and scales.shape == (53,)
    errors = (numbers.float() * scales.unsqueeze(1) - table).abs()
    assert (errors <= 0.501 * scales.unsqueeze(1) + 1e-38).all()


def test_an_encoder_of_two_runs_is_stored_once_and_read_back(runs: Path, stored: Path) -> None:
    [file] = (stored / "encoders").iterdir()
    dtypes = {name: tensor.dtype for name, tensor in load_file(file).items()}
    assert dtypes["embeddings.word_embeddings.weight"] == torch.int8
    assert dtypes["embeddings.word_embeddings.weight" + encoders.SCALES] == torch.float32
    assert dtypes["encoder.layer.0.attention.self.query.weight"] == torch.float16
    for part in ("tags", "roles"):
        assert not any(".encoder.encoder." in name for name in load_file(stored / part / "model/weights.safetensors"))
        actual, expected = (sp.load(run).model.state_dict() for run in (stored / part / "model", runs / part))
        assert actual.keys() == expected.keys()
        for name, tensor in expected.items():
            assert actual[name].dtype == tensor.dtype
            torch.testing.assert_close(actual[name], tensor, rtol=1e-3, atol=1e-3)


def test_tokenisers_are_stored_once_too(runs: Path, stored: Path, tmp_path: Path) -> None:
    [folder] = (stored / "assets").iterdir()
    assert any(path.name == "tokenizer.json" for path in folder.rglob("*"))
    for part in ("tags", "roles"):
        assert not (stored / part / "model/assets").exists()
        copy = tmp_path / f"{part}-alone"
        sp.load(stored / part / "model").save(copy)
        actual, expected = (
            {p.name: p.read_bytes() for p in f.rglob("*.json")} for f in (copy / "assets", runs / part / "assets")
        )
        assert actual.keys() == expected.keys() and actual["tokenizer.json"] == expected["tokenizer.json"]


def test_without_half_nothing_changes(runs: Path, tmp_path: Path) -> None:
    for part in ("tags", "roles"):
        sp.load(runs / part).save(tmp_path / part / "model", apart=True)
        actual, expected = (sp.load(run).model.state_dict() for run in (tmp_path / part / "model", runs / part))
        assert all(torch.equal(actual[name], tensor) for name, tensor in expected.items())
    assert len(list((tmp_path / "encoders").iterdir())) == 1


TABLE = "embeddings.word_embeddings.weight"
SCALES = TABLE + encoders.SCALES


def damage_tensors(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        [file] = (folder / "encoders").iterdir()
        tensors = load_file(file)
        change(tensors)
        save_file(tensors, file)

    return damage


def cut_file(folder: Path) -> None:
    [file] = (folder / "encoders").iterdir()
    file.write_bytes(file.read_bytes()[:-100])


def point_elsewhere(folder: Path) -> None:
    index = folder / "tags/model/encoders.json"
    index.write_text(json.dumps(dict.fromkeys(json.loads(index.read_text()), "../../../other.safetensors")))


DAMAGE = {
    "missing": (lambda folder: next((folder / "encoders").iterdir()).unlink(), "copy the whole folder of its pipeline"),
    "no assets": (
        lambda folder: shutil.rmtree(folder / "assets"),
        "with the tokeniser .* copy the whole folder of the run",
    ),
    "assets elsewhere": (
        lambda folder: (folder / "tags/model/assets.json").write_text('{"folder": "../../other"}'),
        "assets.json is damaged: expected the name of a folder",
    ),
    "cut": (cut_file, "damaged"),
    "a path": (point_elsewhere, "encoders.json is damaged: expected names of files"),
    "NaN": (damage_tensors(lambda t: t[SCALES].fill_(float("nan"))), "NaN|finite"),
    "huge": (damage_tensors(lambda t: t[SCALES].fill_(3e38)), "numbers in .* that are NaN or infinite"),
    "other rows": (
        damage_tensors(lambda t: t.update({TABLE: t[TABLE][1:].clone(), SCALES: t[SCALES][1:].clone()})),
        "have other shapes",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_reported(stored: Path, kind: str) -> None:
    damage, message = DAMAGE[kind]
    damage(stored)
    with pytest.raises(RunError, match=message):
        sp.load(stored / "tags/model")
