"""Errors of `add_pipe` without a model, or with one that doesn't fit the component."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.attrs import POS

from spen_plugins.errors import ConfigError, PluginError, RunError
from spen_plugins.registry import Registry
from spen_plugins.runs.train.averaging import average_runs
from spen_spacy.pos import choose_attributes
from tests.loaded import QUIET, piped

FACTORIES = ("spen_ner", "spen_pos", "spen_parser", "spen_srl", "spen_multilabel", "spen_task")


def add(factory: str, **config: Any) -> Any:
    return spacy.blank("en").add_pipe(factory, config=config)


@pytest.fixture
def plugin_site(site, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The only folder in which plugins are found; it is empty at first."""
    monkeypatch.setattr("spen_spacy.places.Registry", lambda: Registry([str(site.path)]))
    return site


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_missing_model_is_reported(factory: str, plugin_site) -> None:
    with pytest.raises(
        ConfigError, match=rf"{factory}: no model is named, and none is installed.*spen-run [a-z_.]+ --out runs/mine"
    ):
        add(factory)


@pytest.mark.parametrize("factory", FACTORIES)
def test_missing_folders_and_folders_without_a_run_are_rejected(factory: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"{factory}: found the model '.*nowhere', which does not exist"):
        add(factory, model=str(tmp_path / "nowhere"), **get_required_settings(factory))
    with pytest.raises(ConfigError, match=r"holds no config\.json"):
        add(factory, model=str(tmp_path), **get_required_settings(factory))
    (tmp_path / "config.txt").touch()
    with pytest.raises(ConfigError, match=r"config\.txt', which is a file; give its folder"):
        add(factory, model=str(tmp_path / "config.txt"), **get_required_settings(factory))
    with pytest.raises(ConfigError, match=rf"{factory}: found the model '', an empty name"):
        add(factory, model="", **get_required_settings(factory))


def test_a_folder_below_the_users_own(runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(runs["ner"].parent))
    assert add("spen_ner", model="~/ner/").labels


def test_damaged_runs_are_named_with_the_component(runs: dict[str, Path], tmp_path: Path) -> None:
    run = shutil.copytree(runs["ner"], tmp_path / "run")
    weights = (run / "weights.safetensors").read_bytes()
    (run / "weights.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(RunError, match=r"spen_ner: .*weights\.safetensors is damaged"):
        add("spen_ner", model=str(run))


@pytest.mark.parametrize("config", [{"window": 0}, {"window": "5"}, {"rerank": -1}, {"rerank": "4"}])
def test_invalid_numbers_are_rejected(runs: dict[str, Path], config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"spen_ner: found {next(iter(config))}=.* expected a whole number, at leas"):
        add("spen_ner", model=str(runs["ner"]), **config)


@pytest.mark.parametrize("threshold", [2, -1])
def test_a_threshold_that_is_no_probability_is_rejected(runs: dict[str, Path], threshold: float) -> None:
    with pytest.raises(ConfigError, match=rf"spen_multilabel: found threshold={threshold}.*; expected a probability"):
        add("spen_multilabel", model=str(runs["text"]), threshold=threshold)


def get_required_settings(factory: str) -> dict[str, str]:
    return {"predicates": "verbs"} if factory == "spen_srl" else {}


@pytest.mark.parametrize(
    ("factory", "run", "message"),
    [
        ("spen_ner", "pos", "spans of words"),
        ("spen_ner", "predicates", "tags predicates"),
        ("spen_ner", "text", "task 'tagging'"),
        ("spen_pos", "ner", "task.scheme none"),
        ("spen_srl", "ner", "task 'srl'"),
        ("spen_multilabel", "srl", "task 'text'"),
        ("spen_task", "ner", r"sp\.ReadsDocs"),
    ],
)
def test_a_run_of_another_task_is_rejected(runs: dict[str, Path], factory: str, run: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        add(factory, model=str(runs[run]), **get_required_settings(factory))


def test_an_attribute_that_does_not_fit_the_tags_is_rejected(runs: dict[str, Path], tmp_path: Path) -> None:
    run = shutil.copytree(runs["pos"], tmp_path / "run")
    facts = json.loads((run / "vocabulary.json").read_text())
    facts["tags"][0] = "_"  # CoNLL-U's sign for no value
    (run / "vocabulary.json").write_text(json.dumps(facts))
    assert add("spen_pos", model=str(run)).unassigned == {"token.tag"}
    facts["tags"][1] = "NNS"
    (run / "vocabulary.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match="'NNS', which are not Universal POS tags"):
        add("spen_pos", model=str(run), attribute="pos")
    assert add("spen_pos", model=str(run))


@pytest.mark.parametrize("tags", [["NOUN", "_"], ["NOUN+NNS", "_"], ["NOUN+NNS", "_+NNS"]])
def test_a_word_without_a_value_leaves_the_others_their_parts_of_speech(tags: list[str]) -> None:
    assert choose_attributes(tags, "auto")[POS] == ["NOUN", "_"]


def test_predicates_need_a_source(runs: dict[str, Path], plugin_site) -> None:
    with pytest.raises(ConfigError, match=r'found no model of predicates.*predicates="verbs"'):
        add("spen_srl", model=str(runs["srl"]))
    with pytest.raises(ConfigError, match=r"tags predicates, for predicates_model; expected a model of task 'srl'"):
        add("spen_srl", model=str(runs["predicates"]))
    with pytest.raises(ConfigError, match="a run that does not label semantic roles"):
        add("spen_srl", model=str(runs["ner"]))
    with pytest.raises(ConfigError, match="does not tag predicates"):
        add("spen_srl", model=str(runs["srl"]), predicates_model=str(runs["ner"]))
    with pytest.raises(ConfigError, match="found both predicates_model and predicates other than 'model'"):
        add("spen_srl", model=str(runs["srl"]), predicates="verbs", predicates_model=str(runs["predicates"]))


def test_a_run_whose_plugin_is_missing_is_reported(runs: dict[str, Path], tmp_path: Path) -> None:
    run = shutil.copytree(runs["ner"], tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["trainer"]["type"] = "acme.trainer"
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(PluginError, match="acme"):
        add("spen_ner", model=str(run))


def test_a_saved_component_is_a_model(runs: dict[str, Path], tmp_path: Path) -> None:
    saved = add("spen_srl", model=str(runs["srl"]), predicates_model=str(runs["predicates"]))
    saved.to_disk(tmp_path)
    other = add("spen_srl", model=str(tmp_path))
    assert other.labels == saved.labels and other.places().keys() == {"model", "predicates"}
    assert add("spen_srl", model=str(tmp_path), predicates="verbs").places().keys() == {"model"}


MODELS = "from spen_plugins import hookimpl\n\n@hookimpl\ndef spen_model():\n    return {'spen_ner': %r}\n"


def test_installed_models_are_found(runs: dict[str, Path], tmp_path: Path, plugin_site) -> None:
    add("spen_ner", model=str(runs["ner"])).to_disk(tmp_path / "saved")
    plugin_site.module("acme_names", f"def model():\n    return {str(tmp_path / 'saved')!r}\n")
    plugin_site.install("acme", MODELS % "acme_names:model")
    assert set(add("spen_ner").labels) == {"LOC", "ORG", "PER"}


def test_models_are_found_by_name_and_by_factory_if_only_one_is_installed(
    runs: dict[str, Path], tmp_path: Path, plugin_site
) -> None:
    add("spen_ner", model=str(runs["ner"])).to_disk(tmp_path / "saved")
    plugin_site.module("acme_names", f"def model():\n    return {str(tmp_path / 'saved')!r}\n")
    plugin_site.install("acme", (MODELS % "acme_names:model").replace("'spen_ner'", "'acme_large'"))
    assert set(add("spen_ner", model="acme_large").labels) == {"LOC", "ORG", "PER"}
    with pytest.raises(ConfigError, match="none is installed"):
        add("spen_ner")
    with pytest.raises(ConfigError, match="'acme_huge', which does not exist"):
        add("spen_ner", model="acme_huge")
    for other in ("more", "other"):
        plugin_site.install(other, MODELS % f"{other}_names:model")
    with pytest.raises(ConfigError, match=r"several packages provide a model \(spen-more, spen-other\)"):
        add("spen_ner")


def test_a_broken_package_of_models_is_named(plugin_site) -> None:
    plugin_site.install("acme", MODELS % "nowhere_to_be_found:model")
    with pytest.raises(PluginError, match=r"'acme' \(spen-acme 1.0\): model 'spen_ner' .*'nowhere_to_be_found:model'"):
        add("spen_ner")


def test_a_plugin_that_cannot_be_imported_is_named_where_no_model_is_found(plugin_site) -> None:
    plugin_site.install("acme", "raise RuntimeError('boom')")
    with pytest.raises(ConfigError, match=r"(?s)none is installed.*\nnote: plugin 'acme'.*boom"):
        add("spen_ner")


def test_factories_exist_without_an_import_and_load_nothing() -> None:
    code = (
        "import sys, spacy; nlp = spacy.blank('en'); print(all(nlp.has_factory(n) for n in sys.argv[1:]), "
        "[m for m in sys.modules "
        "if m in ('spen_plugins.runs.predict.predictor', 'spen_spacy.component', 'transformers')])"
    )
    process = subprocess.run([sys.executable, "-c", code, *FACTORIES], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "True []"


def test_a_pipeline_without_a_transformer_loads_no_training_packages() -> None:
    code = "import spacy, sys; spacy.load('spen_en'); print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"accelerate", "transformers"} & set(process.stdout.split())


def test_a_folder_of_several_methods_stands_for_the_chosen_run(runs, tmp_path) -> None:
    (tmp_path / "both/nce").mkdir(parents=True)
    (tmp_path / "both/nce/seed-0").symlink_to(runs["ner"])
    record = {"methods": ["crf", "nce"], "chosen": "nce", "run": "nce/seed-0"}
    (tmp_path / "both/methods.json").write_text(json.dumps(record))
    entities = []
    for model in (runs["ner"], tmp_path / "both"):
        doc = piped("spen_ner", model=model)("Anna lives in Paris .")
        entities.append([(span.text, span.label_) for span in doc.ents])
    assert entities[0] == entities[1]


def test_a_mean_of_runs_is_a_model(runs, tmp_path) -> None:
    average_runs([runs["ner"], runs["ner"]], tmp_path / "mean", options=QUIET)
    docs = [piped("spen_ner", model=model)("Anna lives in Paris .") for model in (runs["ner"], tmp_path / "mean")]
    assert [(span.text, span.label_) for span in docs[0].ents] == [(span.text, span.label_) for span in docs[1].ents]
    piped("spen_ner", model=tmp_path / "mean").to_disk(tmp_path / "pipeline")
    assert len(spacy.load(tmp_path / "pipeline")("Anna lives in Paris .").ents) == len(docs[0].ents)
