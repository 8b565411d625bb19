"""Models of a pipeline's components: saved with it, named at load, or installed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from spacy.language import Language
from spacy.util import load_model_from_config

import spen_en
import spen_en_md
from spen_plugins import RunFolder
from spen_plugins.errors import ConfigError
from spen_spacy import component
from spen_spacy.packaging.package import make_pipeline, write_pipeline
from spen_spacy.packaging.runs import Part
from tools.english import build_english

TEXT = "Anna told Bob that the farmer sent a letter to Boston."
PIPES = ["tok2vec", "senter", "morphologizer", "lemmatizer"]
MODELS = {"model": "roles", "predicates_model": "predicates", "senses_model": "senses"}
"""The settings of `spen_srl` that name models, and the configs that train these."""


def load(name: str, *without: str, **roles: str) -> Language:
    """Loads a pipeline without spaCy's components, and with these settings of `spen_srl`."""
    config = {f"components.spen_srl.{key}": value for key, value in roles.items()}
    return spacy.load(name, exclude=[*PIPES, *without], config=config)


def find_packages(nlp: Language) -> dict[str, str]:
    """Returns, for each part of a component, the package that contains its run, or the run's path."""
    places = {
        f"{name}/{part}": run.predictor.folder.path
        for name in nlp.pipe_names
        for part, run in nlp.get_pipe(name)._runs.items()
    }
    pipelines = {spen_en.PIPELINE: "en", spen_en_md.PIPELINE: "md"}
    return {
        part: next((pipelines[parent] for parent in place.parents if parent in pipelines), str(place))
        for part, place in places.items()
    }


@pytest.mark.parametrize("setting", MODELS)
def test_a_model_named_at_load_replaces_the_saved_one(setting: str) -> None:
    packages = find_packages(load("spen_en", "spen_pos", **{setting: "spen_srl_md"}))
    replaced = {"model": {"model", "predicates", "senses"}}.get(setting, {setting.removesuffix("_model")})
    expected = {f"spen_srl/{part}": "md" if part in replaced else "en" for part in ("model", "predicates", "senses")}
    assert packages == expected | {"spen_ner/model": "en"}


@pytest.mark.parametrize("setting", MODELS)
def test_a_model_that_is_missing_is_named_with_its_setting(setting: str) -> None:
    message = (
        rf"spen_srl: found the {setting} '/nowhere', .*\(spen-run {MODELS[setting]} --out .*config={{\"{setting}\":"
    )
    with pytest.raises(ConfigError, match=message):
        load("spen_en", **{setting: "/nowhere"})
    with pytest.raises(ConfigError, match=message):
        spacy.blank("en").add_pipe("spen_srl", config={setting: "/nowhere"})


def test_a_variable_that_names_a_model_is_overridden(tmp_path: Path) -> None:
    load("spen_en", "spen_pos", "spen_srl").to_disk(tmp_path)
    config = tmp_path / "config.cfg"
    text = (
        config.read_text()
        .replace("model = null", "model = ${paths.names}")
        .replace("[paths]", '[paths]\nnames = "gone"')
    )
    config.write_text(text)
    assert find_packages(spacy.load(tmp_path)) == {"spen_ner/model": str(tmp_path / "spen_ner/model")}
    assert find_packages(spacy.load(tmp_path, config={"paths.names": "spen_ner_md"})) == {"spen_ner/model": "md"}


def test_a_loaded_component_reads_any_folder(tmp_path: Path) -> None:
    """Settings that differ matter only while a saved pipeline is read."""
    load("spen_en", "spen_pos", "spen_srl").to_disk(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("spen_ner", config={"model": "spen_ner_md"}).from_disk(tmp_path / "spen_ner")
    assert find_packages(nlp) == {"spen_ner/model": str(tmp_path / "spen_ner/model")}


@pytest.mark.parametrize("action", ["add", "replace"])
def test_a_component_that_replaces_a_saved_one_is_loaded_when_added(action: str) -> None:
    nlp = load("spen_en", "spen_srl", *(["spen_ner"] if action == "add" else []))

    def place_model(model: str) -> None:
        if action == "add":
            nlp.add_pipe("spen_ner", config={"model": model})
        else:
            nlp.replace_pipe("spen_ner", "spen_ner", config={"model": model})

    with pytest.raises(ConfigError, match="spen_ner: found the model '/nowhere'"):
        place_model("/nowhere")
    nlp = load("spen_en", "spen_srl", *(["spen_ner"] if action == "add" else []))
    place_model("spen_ner_md")
    assert find_packages(nlp) == {"spen_pos/model": "en", "spen_ner/model": "md"}


def test_a_pipelines_name_is_not_the_name_of_a_model() -> None:
    message = r"'spen_en_md', which is a pipeline, not a model \(its own: spen_ner_md\)\. "
    with pytest.raises(ConfigError, match=rf"{message}Name an installed one \(spen_ner, spen_ner_md\), or train one"):
        spacy.blank("en").add_pipe("spen_ner", config={"model": "spen_en_md"})


def test_the_larger_pipeline_names_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    run = component.Run
    monkeypatch.setattr(component, "Run", lambda place, **options: (folders.append(place), run(place, **options))[1])
    nlp = spacy.load("spen_en_md")
    assert len(folders) == len(set(folders)) == 5  # each model once
    models = {name: nlp.config["components"][name]["model"] for name in ("spen_pos", "spen_ner", "spen_srl")}
    assert set(models.values()) == spen_en_md.spen_model().keys()
    texts = [inspect.getdoc(model) for model in spen_en_md.spen_model().values()]  # shown by `spen describe model`
    assert all(text.startswith("The folder of the ") for text in texts)
    assert set(find_packages(load_model_from_config(nlp.config, auto_fill=True, exclude=PIPES)).values()) == {"md"}


def test_the_builder_writes_these_names(tmp_path: Path) -> None:
    shipped = spacy.util.load_config(spen_en_md.PIPELINE / "config.cfg")["components"]
    assert build_english.MD.installed == {name: shipped[name]["model"] for name in build_english.MD.components}
    components = [Part("spen_ner", "spen_ner", RunFolder.open(spen_en.PIPELINE / "spen_ner/model"))]
    meta = {"lang": "en", "name": "x", "version": "0.0.0", "description": "", "author": "", "license": ""}
    write_pipeline(
        make_pipeline(components, "en"), components, meta, tmp_path / "x", True, False, build_english.MD.installed
    )
    assert spacy.util.load_config(tmp_path / "x/config.cfg")["components"]["spen_ner"]["model"] == "spen_ner_md"
    assert find_packages(spacy.load(tmp_path / "x")) == {"spen_ner/model": str(tmp_path / "x/spen_ner/model")}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


@pytest.mark.parametrize(("name", "dtype"), [("spen_en", torch.float64), ("spen_en_md", torch.float16)])
def test_torchs_default_type_does_not_matter(name: str, dtype: torch.dtype) -> None:
    def annotate(nlp: Language) -> list[Any]:
        doc = nlp(TEXT)
        roles = [(frame.sense, [(a.role, a.span.text) for a in frame.arguments]) for frame in doc._.srl]
        return [doc.to_json(), roles]

    expected = annotate(load(name))
    with default_dtype(dtype):
        nlp = load(name)
        assert annotate(nlp) == expected
    assert annotate(nlp) == expected
