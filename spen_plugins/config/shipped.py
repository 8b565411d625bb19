"""The configs that ship with the core and with plugins, each in the folder `configs` of its package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.files import save_text
from spen_plugins.registry.host import PluginHost

FOLDER = (Path(__file__).parent.parent / "configs").resolve()
"""The core's configs, with imported libraries below `lib/`; other configs may import them by the same names."""


def names() -> list[str]:
    """Names of the shipped configs, `srl_seal`."""
    return sorted(_find_files())


def find(path: Path) -> Path:
    """The file for a user's path: `path` itself, or the shipped config of that name if no such file exists."""
    if path.is_file() or path.name != str(path) or path.suffix not in ("", ".jsonnet"):
        return path
    core_path = FOLDER / f"{path.stem}.jsonnet"
    if core_path.is_file():
        return core_path
    files = _find_files()
    return _find_single(path.stem, files) if path.stem in files else path


def summaries() -> dict[str, str]:
    """The first line of each shipped config's file, or a note that it ships with two plugins."""
    summaries = {}
    for name, (path, *other_paths) in sorted(_find_files().items()):
        summary = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("/ ").strip()
        summaries[name] = (
            f"ships with two plugins: {', '.join(map(str, [path, *other_paths]))}" if other_paths else summary
        )
    return summaries


def copy(name: str, folder: Path) -> list[Path]:
    """Write a shipped config and the libraries it imports to a folder; existing files stay.

    Returns the files, the config first.
    """
    config = _find_shipped(name)
    folders = [config.parent, *list_folders()]
    sources = list(dict.fromkeys(_walk_imports(config, folders)))
    targets = [folder / source.relative_to(_find_place(source, folders)) for source in sources]
    texts = {target: source.read_bytes() for source, target in zip(sources, targets, strict=True)}
    conflicts = [str(path) for path, text in texts.items() if path.exists() and path.read_bytes() != text]
    if conflicts:
        raise ConfigError(
            f"found {', '.join(conflicts)} with other contents; nothing was written. Choose another folder"
        )
    for path, text in texts.items():
        if not path.exists():
            save_text(text.decode(), path)
    return targets


def list_folders() -> list[Path]:
    """The folders of the shipped configs, the core's first; a config may import their files by name."""
    folders = [FOLDER]
    for plugin in PluginHost().plugins.values():
        spec = find_spec(plugin.entry.partition(":")[0].partition(".")[0])  # of a whole package: imports nothing
        locations = (spec and spec.submodule_search_locations) or ()
        folders += [folder for location in locations if (folder := (Path(location) / "configs").resolve()).is_dir()]
    return list(dict.fromkeys(folders))


def is_library(path: Path) -> bool:
    """True for a library that ships, which is below the folder `configs` of a package."""
    packages = (folder.parent for folder in path.parents if folder.name == "configs")
    in_package = path.is_relative_to(FOLDER) or any((package / "__init__.py").is_file() for package in packages)
    return path.suffix == ".libsonnet" and in_package


def _find_files() -> dict[str, list[Path]]:
    """Files of each shipped config: one, unless several plugins have a config of that name. The core's come first."""
    files: dict[str, list[Path]] = {}
    for folder in list_folders():
        for path in folder.glob("*.jsonnet"):
            files.setdefault(path.stem, []).append(path)
    return {name: paths[:1] if paths[0].parent == FOLDER else paths for name, paths in files.items()}


def _find_shipped(name: str) -> Path:
    files, stem = _find_files(), name.removesuffix(".jsonnet")
    if stem not in files:
        raise ConfigError(
            f"unknown config {name!r}.{did_you_mean(name, files)} Shipped configs: {', '.join(sorted(files))}"
        )
    return _find_single(stem, files)


def _find_single(name: str, files: Mapping[str, Sequence[Path]]) -> Path:
    path, *other_paths = files[name]
    if other_paths:
        listing = ", ".join(map(str, files[name]))
        raise ConfigError(f"config {name!r} ships with two plugins; give the path of one: {listing}")
    return path


def _walk_imports(path: Path, folders: Sequence[Path]) -> Iterator[Path]:
    yield path
    for name in re.findall(r"""\bimport\s+['"]([^'"]+)['"]""", path.read_text(encoding="utf-8")):
        files = (place / name for place in (path.parent, *folders))
        yield from _walk_imports(next((file for file in files if file.exists()), path.parent / name).resolve(), folders)


def _find_place(file: Path, folders: Sequence[Path]) -> Path:
    """The folder below which a file is, among several."""
    return next(folder for folder in folders if file.is_relative_to(folder))
