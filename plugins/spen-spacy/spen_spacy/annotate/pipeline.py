"""The pipeline of a corpus, which each process loads; a checksum of its files identifies it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from spen_plugins import ConfigError, RunError, RunFolder, SpenError, __version__, did_you_mean, sha256
from spen_spacy.component import Component
from spen_spacy.packaging.package import make_pipeline
from spen_spacy.packaging.runs import choose_components, choose_factory, choose_language
from spen_spacy.places import find_installed

NOT_HASHED = frozenset(
    {"README.md", "environment.json", "examples.safetensors", "history.jsonl", "metrics.json", "times.jsonl"}
)
"""Files that record how a model came to be, and do not affect its predictions."""


@dataclass(frozen=True)
class Pipeline:
    """A pipeline to load, as plain values for other processes and machines."""

    source: str
    """A folder, or the name of an installed pipeline."""
    runs: tuple[str, ...] = ()
    """Run folders to make the pipeline of; () if `source` is one already."""
    language: str = "en"
    """Language code of the tokeniser for `runs`."""
    device: str | None = None
    """Device of our components; None: the device of spaCy."""
    precision: str | None = None
    """Precision of our components; None: as the pipeline says."""

    def load(self) -> Language:
        """The pipeline; `SpenError` if it can't be loaded."""
        if self.device is not None and self.device.startswith("cuda"):
            spacy.prefer_gpu(int(self.device.partition(":")[2] or 0))  # for spaCy's own components, if it has CuPy
        options = {"device": self.device, "precision": self.precision}
        settings = {name: value for name, value in options.items() if value is not None}
        if self.runs:
            return make_pipeline(choose_components(self.runs), self.language, settings)
        nlp = self._load_with_spacy()
        component_names = [name for name, component in nlp.pipeline if isinstance(component, Component)]
        if self.precision is not None and not component_names:
            raise ConfigError(f"--precision {self.precision}: {self.source} has no component of spen-plugins")
        if settings and component_names:
            nlp = self._load_with_spacy(
                {f"components.{name}.{key}": settings[key] for name in component_names for key in settings}
            )
        return nlp

    def _load_with_spacy(self, config: dict[str, Any] | None = None) -> Language:
        try:
            return spacy.load(self.source, config=config or {})
        except SpenError:
            raise
        except Exception as error:  # raised by any component, or by a package that is no pipeline
            raise ConfigError(f"{self.source} can't be loaded by spaCy ({type(error).__name__}: {error})") from error

    @property
    def tags_words(self) -> bool:
        """True if it is made of runs whose outputs are for the words of spaCy's tokeniser."""
        return bool(self.runs) and choose_factory(RunFolder.open(Path(self.runs[0]))) != "spen_multilabel"

    def identity(self) -> dict[str, str]:
        """The checksum of the files, and the versions; equal identities give equal annotations."""
        digest = hashlib.sha256()
        for folder in map(Path, self.runs or [self._find_folder()]):
            for path in _list_files(folder):
                digest.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
        return {"sha256": digest.hexdigest(), "spacy": spacy.__version__, "spen_plugins": __version__}

    def check(self, expected_identity: dict[str, str]) -> None:
        """Raises a `RunError` if the pipeline on this machine has another identity than `expected_identity`."""
        if (identity := self.identity()) != expected_identity:
            actual, expected = describe_identity(identity), describe_identity(expected_identity)
            raise RunError(f"{self.source} is not the pipeline of the plan: found {actual}; expected {expected}")

    def _find_folder(self) -> Path:
        return Path(self.source) if Path(self.source).is_dir() else spacy.util.get_package_path(self.source)


def describe_identity(identity: dict[str, str]) -> str:
    """An identity, for messages."""
    return ", ".join(f"{name} {value:.12}" for name, value in identity.items())


def find_pipeline(
    source: str, predicates: str | None, language: str | None, device: str | None, precision: str | None = None
) -> Pipeline:
    """The pipeline of a source: the folder or name of a spaCy pipeline, or a run folder. A run of `srl` has by default
    the predicates of the installed pipeline. `ConfigError` if there is no such pipeline, or an option does not
    fit it.
    """
    path = Path(source).expanduser()
    if (path / "config.json").is_file():
        runs = [str(path.resolve())]
        if predicates is not None:
            runs.append(str(Path(predicates).expanduser().resolve()))
        elif choose_factory(RunFolder.open(path)) == "spen_srl":
            runs.append(str(find_installed("--predicates", "spen_srl") / "predicates"))
        option = "--language" if language else "task.language"
        language = language or choose_language(map(RunFolder.open, map(Path, runs)))
        try:
            spacy.util.get_lang_class(language)
        except ImportError as error:
            raise ConfigError(f"{option} {language}: spaCy has no such language (en, de, …; xx for any)") from error
        return Pipeline(runs[0], tuple(runs), language, device, precision)
    for option, value in (("--predicates", predicates), ("--language", language)):
        if value is not None:
            raise ConfigError(f"{option} {value}: {source} is not a run folder; a pipeline has its own")
    if path.is_dir():
        if not (path / "config.cfg").is_file():
            raise ConfigError(f"{source} is neither a run folder nor a pipeline: it has no config.json or config.cfg")
        return Pipeline(str(path.resolve()), device=device, precision=precision)
    if not spacy.util.is_package(source):
        installed = spacy.util.get_installed_models()
        raise ConfigError(
            f"found no pipeline and no folder {source!r}.{did_you_mean(source, installed)} Installed pipelines: "
            f"{', '.join(installed) or 'none'}"
        )
    return Pipeline(source, device=device, precision=precision)


def _list_files(folder: Path) -> Iterator[Path]:
    """The files that determine a pipeline's predictions."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        is_hidden = any(part.startswith(".") or part in ("__pycache__", "checkpoint") for part in parts)
        if path.is_file() and not is_hidden and path.name not in NOT_HASHED and path.suffix != ".partial":
            yield path
