"""The work of `spen package`: finished runs as an installable pipeline, through spaCy's own `spacy package`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import spacy
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version
from spacy.cli.package import package as spacy_package

import spen_plugins as sp
from spen_spacy.packaging.card import write_card
from spen_spacy.packaging.meta import list_requirements, list_scores, list_sources
from spen_spacy.packaging.runs import Part
from spen_spacy.places import SETTINGS

NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*")
CHECK = "requirements_check"
"""Module that is imported with the package."""
CHECK_SOURCE = '''"""An ImportError that names missing packages, before spaCy fails on an unknown factory."""

from importlib import metadata


def missing(names):
    for name in names:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name


lacking = list(missing({names}))
if lacking:
    raise ImportError("the pipeline {pipeline} needs " + " and ".join(lacking) + ": pip install " + " ".join(lacking))
'''
BACKEND = "from setuptools import build_meta; build_meta.build_{kind}('dist')"


def full_name(name: str, lang: str, note: Callable[[str], None]) -> str:
    """The package's name prefixed with the language, as in spaCy; `ConfigError` if it is not a valid package name."""
    package_name = name if name.startswith(f"{lang}_") else f"{lang}_{name}"
    if not NAME.fullmatch(name):
        raise sp.ConfigError(
            f"--name {name}: a package's name has letters, digits and single '_' between them, the first a letter, "
            f"as in {lang}_ner_mine"
        )
    if package_name != name:
        note(f"the package is called {package_name}: spaCy prefixes the name with the language")
    return package_name


def check(lang: str, version: str) -> None:
    """Raises a `ConfigError` for an unknown language or an invalid version."""
    try:
        spacy.util.get_lang_class(lang)
    except ImportError as error:
        raise sp.ConfigError(f"found language {lang!r}; spaCy has no such language (en, de, …; xx for any)") from error
    try:
        normal = str(Version(version))
    except InvalidVersion:
        normal = None
    # Python's build tools normalise the version in the file's name.
    if normal != version:
        raise sp.ConfigError(f"--version {version}: expected a version in Python's normal form, {normal or '1.0.0'}")


def make_pipeline(components: Sequence[Part], lang: str, settings: Mapping[str, str] | None = None) -> spacy.Language:
    """Makes the pipeline and loads its models, so that errors of a run come early; all components have `settings`."""
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:  # of a package that the language's tokeniser requires
        raise sp.ConfigError(f"spaCy has no tokeniser for {lang} here: {str(error).splitlines()[0]}") from error
    for component in components:
        nlp.add_pipe(component.factory, name=component.name, config={**component.config, **(settings or {})})
    return nlp


def write_pipeline(
    nlp: spacy.Language,
    components: Sequence[Part],
    meta_entries: dict[str, Any],
    folder: Path,
    half: bool,
    keep_energy: bool,
    installed: Mapping[str, str] | None = None,
) -> None:
    """Writes the pipeline's folder with meta.json, card, configs of the runs, and models, halved if asked.

    A pretrained encoder that several models hold is stored once, in the folder `encoders`; energies that prediction
    does not use are left out unless `keep_energy`. `meta_entries` are `lang`, `name`, `version`, `license` and others
    of spaCy's; `installed` are names of models, by component, as a plugin registers them.
    """
    nlp.to_disk(folder, exclude=[component.name for component in components])
    configs = []
    (folder / "training").mkdir()
    for component in components:
        for part, run in component.runs.items():
            model = folder / component.name / part
            predictor = sp.load(run.path)
            energy = keep_energy or predictor.model.inference_net.uses_energy
            predictor.save(model, energy=energy, half=half, apart=True)
            _forget_machine(model / "environment.json")
            configs.append(json.loads((model / "config.json").read_text(encoding="utf-8")))
            _write_json(run.config(), folder / "training" / f"{component.name}-{part}.json")
    _forget_runs(folder / "config.cfg", components, installed or {})
    extra = {"performance": list_scores(components), "requirements": list_requirements(configs, sp.Registry())}
    meta = {**nlp.meta, **meta_entries, **extra, "sources": list_sources(components)}
    _write_json(meta, folder / "meta.json")
    (folder / "README.md").write_text(
        write_card(meta, f"{meta_entries['lang']}_{meta_entries['name']}", components), encoding="utf-8"
    )


def _write_json(value: Any, path: Path) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _forget_machine(path: Path) -> None:
    """Removes paths of the machine on which a run was trained."""
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
        _write_json({name: value for name, value in record.items() if name != "working_folder"}, path)


def _forget_runs(path: Path, components: Sequence[Part], installed: Mapping[str, str]) -> None:
    """Removes paths of run folders, which are invalid elsewhere: the pipeline's folder has the models.

    An installed model's name takes their place: a pipeline made of the config alone has that model.
    """
    config = spacy.util.load_config(path, interpolate=False)
    for component in components:
        settings = config["components"][component.name]
        settings |= {key: None for key in SETTINGS if key in settings} | {"model": installed.get(component.name)}
    config.to_disk(path)


def make_package(work: Path, full: str) -> None:
    """Turns `work/pipeline` into the package's folder with `spacy package`, which loads the pipeline; `RunError` if
    spaCy rejects it."""
    module = work / f"{CHECK}.py"
    distributions = json.loads((work / "pipeline/meta.json").read_text(encoding="utf-8"))["requirements"]
    names = [Requirement(text).name for text in distributions]
    module.write_text(CHECK_SOURCE.format(names=names, pipeline=full), encoding="utf-8")
    try:
        spacy_package(work / "pipeline", work, code_paths=[module], create_sdist=False, silent=True)
    except SystemExit as error:
        raise sp.RunError("`spacy package` rejected the pipeline; see its message above") from error
    finally:
        sys.modules.pop(CHECK, None)  # spaCy imports it as a check


def build(folder: Path, kind: str) -> str | None:
    """Builds a wheel or sdist in `folder/dist` and returns its name; unlike `python -m build` without network access.
    `RunError` if that fails."""
    if kind == "none":
        return None
    (folder / "dist").mkdir()
    process = subprocess.run(
        [sys.executable, "-P", "-c", BACKEND.format(kind=kind)], cwd=folder, capture_output=True, text=True, check=False
    )
    if process.returncode != 0:
        tail = "\n".join((process.stderr or process.stdout).strip().splitlines()[-5:])
        raise sp.RunError(
            f"the {kind} could not be built (this requires setuptools>=70.1; --build none does not):\n{tail}"
        )
    for leftover in [folder / "build", *folder.glob("*.egg-info")]:
        shutil.rmtree(leftover, ignore_errors=True)
    [distribution] = (folder / "dist").iterdir()
    return distribution.name
