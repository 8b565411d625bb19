"""Models of a pipeline's components: those it was saved with, those named at load, those installed."""

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
from spen_spacy.packaging.runs import Component
from tools.english import build_english

TEXT = "Anna told Bob that the farmer sent a letter to Boston."
WORDS = ["tok2vec", "senter", "morphologizer", "lemmatizer"]
MODELS = {"model": "roles", "predicates_model": "predicates", "senses_model": "senses"}
"""The settings of `spen_srl` that name models, and what trains them."""


def load(name: str, *without: str, **roles: str) -> Language:
    """A pipeline without spaCy's parts, and with these settings of `spen_srl`."""
    config = {f"components.spen_srl.{key}": value for key, value in roles.items()}
    return spacy.load(name, exclude=[*WORDS, *without], config=config)


def packages(nlp: Language) -> dict[str, str]:
    """Part of a component -> the package that its run lies in, or where else."""
    places = {
        f"{name}/{part}": run.predictor.folder.path
        for name in nlp.pipe_names
        for part, run in nlp.get_pipe(name)._runs.items()
    }
    ours = {spen_en.PIPELINE: "en", spen_en_md.PIPELINE: "md"}
    return {part: next((ours[up] for up in place.parents if up in ours), str(place)) for part, place in places.items()}


@pytest.mark.parametrize("setting", MODELS)
def test_a_model_named_at_load_takes_the_place_of_the_saved_one(setting: str) -> None:
    found = packages(load("spen_en", "spen_pos", **{setting: "spen_srl_md"}))
    new = {"model": {"model", "predicates", "senses"}}.get(setting, {setting.removesuffix("_model")})
    wanted = {f"spen_srl/{part}": "md" if part in new else "en" for part in ("model", "predicates", "senses")}
    assert found == wanted | {"spen_ner/model": "en"}


@pytest.mark.parametrize("setting", MODELS)
def test_a_model_that_is_missing_is_named_with_its_setting(setting: str) -> None:
    what = rf"spen_srl: found the {setting} '/nowhere', .*\(spen-run {MODELS[setting]} --out .*config={{\"{setting}\":"
    with pytest.raises(ConfigError, match=what):
        load("spen_en", **{setting: "/nowhere"})
    with pytest.raises(ConfigError, match=what):
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
    assert packages(spacy.load(tmp_path)) == {"spen_ner/model": str(tmp_path / "spen_ner/model")}
    assert packages(spacy.load(tmp_path, config={"paths.names": "spen_ner_md"})) == {"spen_ner/model": "md"}


def test_a_loaded_component_reads_any_folder(tmp_path: Path) -> None:
    """Settings that differ matter only while a saved pipeline is read."""
    load("spen_en", "spen_pos", "spen_srl").to_disk(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("spen_ner", config={"model": "spen_ner_md"}).from_disk(tmp_path / "spen_ner")
    assert packages(nlp) == {"spen_ner/model": str(tmp_path / "spen_ner/model")}


@pytest.mark.parametrize("how", ["add", "replace"])
def test_a_component_in_place_of_a_saved_one_is_loaded_when_it_is_added(how: str) -> None:
    nlp = load("spen_en", "spen_srl", *(["spen_ner"] if how == "add" else []))

    def put(model: str) -> None:
        if how == "add":
            nlp.add_pipe("spen_ner", config={"model": model})
        else:
            nlp.replace_pipe("spen_ner", "spen_ner", config={"model": model})

    with pytest.raises(ConfigError, match="spen_ner: found the model '/nowhere'"):
        put("/nowhere")
    nlp = load("spen_en", "spen_srl", *(["spen_ner"] if how == "add" else []))
    put("spen_ner_md")
    assert packages(nlp) == {"spen_pos/model": "en", "spen_ner/model": "md"}


def test_a_pipelines_name_is_no_models() -> None:
    found = r"'spen_en_md', which is a pipeline, not a model \(its own: spen_ner_md\)\. "
    with pytest.raises(ConfigError, match=rf"{found}Name an installed one \(spen_ner, spen_ner_md\), or train one"):
        spacy.blank("en").add_pipe("spen_ner", config={"model": "spen_en_md"})


def test_the_larger_pipeline_names_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    run = component.Run
    monkeypatch.setattr(component, "Run", lambda place, **rest: (made.append(place), run(place, **rest))[1])
    nlp = spacy.load("spen_en_md")
    assert len(made) == len(set(made)) == 5  # each model once
    named = {name: nlp.config["components"][name]["model"] for name in ("spen_pos", "spen_ner", "spen_srl")}
    assert set(named.values()) == spen_en_md.spen_model().keys()
    texts = [inspect.getdoc(model) for model in spen_en_md.spen_model().values()]  # of `spen describe model`
    assert all(text.startswith("The folder of the ") for text in texts)
    assert set(packages(load_model_from_config(nlp.config, auto_fill=True, exclude=WORDS)).values()) == {"md"}


def test_the_builder_writes_these_names(tmp_path: Path) -> None:
    shipped = spacy.util.load_config(spen_en_md.PIPELINE / "config.cfg")["components"]
    assert build_english.MD.installed == {name: shipped[name]["model"] for name in build_english.MD.components}
    found = [Component("spen_ner", "spen_ner", RunFolder.open(spen_en.PIPELINE / "spen_ner/model"))]
    own = {"lang": "en", "name": "x", "version": "0.0.0", "description": "", "author": "", "license": ""}
    write_pipeline(make_pipeline(found, "en"), found, own, tmp_path / "x", True, False, build_english.MD.installed)
    assert spacy.util.load_config(tmp_path / "x/config.cfg")["components"]["spen_ner"]["model"] == "spen_ner_md"
    assert packages(spacy.load(tmp_path / "x")) == {"spen_ner/model": str(tmp_path / "x/spen_ner/model")}


@contextmanager
def default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(("name", "dtype"), [("spen_en", torch.float64), ("spen_en_md", torch.float16)])
def test_torchs_default_type_does_not_matter(name: str, dtype: torch.dtype) -> None:
    def said(nlp: Language) -> list[Any]:
        doc = nlp(TEXT)
        roles = [(frame.sense, [(a.role, a.span.text) for a in frame.arguments]) for frame in doc._.srl]
        return [doc.to_json(), roles]

    wanted = said(load(name))
    with default(dtype):
        nlp = load(name)
        assert said(nlp) == wanted
    assert said(nlp) == wanted
