"""The configs that ship with the package, in its folder `configs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.files import save_text

FOLDER = (Path(__file__).parent.parent / "configs").resolve()
"""Configs, with imported libraries below `lib/`; users' configs may import them by the same names."""


def names() -> list[str]:
    """Names of the shipped configs, `srl_seal`."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonnet"))


def find(path: Path) -> Path:
    """The file for a user's path: `path` itself, or the shipped config of that name if no such file exists."""
    shipped = FOLDER / f"{path.name.removesuffix('.jsonnet')}.jsonnet"
    if path.is_file() or path.name != str(path) or path.suffix not in ("", ".jsonnet") or not shipped.is_file():
        return path
    return shipped


def summary(name: str) -> str:
    """The first line of a shipped config: what it trains."""
    return _shipped(name).read_text(encoding="utf-8").partition("\n")[0].lstrip("/ ").strip()


def copy(name: str, folder: Path) -> list[Path]:
    """Write a shipped config and the libraries it imports to a folder; files that are there already stay.

    Returns:
        The files, the config first.

    Raises:
        ConfigError: the config is unknown, or one of the files exists with other contents.
        RunError: a file can't be written.
    """
    sources = list(dict.fromkeys(_with_imports(_shipped(name))))
    targets = [folder / source.relative_to(FOLDER) for source in sources]
    texts = {target: source.read_bytes() for source, target in zip(sources, targets, strict=True)}
    other = [str(path) for path, text in texts.items() if path.exists() and path.read_bytes() != text]
    if other:
        raise ConfigError(f"{', '.join(other)}: there already, and different; nothing was written. Name another folder")
    for path, text in texts.items():
        if not path.exists():
            save_text(text.decode(), path)
    return targets


def _shipped(name: str) -> Path:
    known = names()
    if name.removesuffix(".jsonnet") not in known:
        raise ConfigError(f"no config {name!r} ships.{did_you_mean(name, known)} There are: {', '.join(known)}")
    return FOLDER / f"{name.removesuffix('.jsonnet')}.jsonnet"


def _with_imports(path: Path) -> Iterator[Path]:
    yield path
    for found in re.findall(r"""\bimport\s+['"]([^'"]+)['"]""", path.read_text(encoding="utf-8")):
        beside = path.parent / found
        yield from _with_imports((beside if beside.exists() else FOLDER / found).resolve())
