"""Pipelines through folders, bytes and pickles, after their runs have been deleted."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import spacy
from safetensors.torch import load_file
from spacy.language import Language

from spen_plugins.errors import ConfigError, RunError
from spen_spacy.component import Component
from spen_spacy.storage import pack, unpack
from tests.loaded import piped

FRESH = """
import json, sys, spacy
if sys.argv[1] == "disk":
    nlp = spacy.load(sys.argv[2])
else:
    saved = json.loads(open(sys.argv[2] + "/meta.json").read())
    nlp = spacy.blank("en").from_config(spacy.util.load_config(sys.argv[2] + "/config.cfg"), meta=saved)
    nlp.from_bytes(open(sys.argv[2] + ".bytes", "rb").read())
doc = nlp(sys.argv[3])
print(json.dumps([doc.to_json(), [[f.predicate.i, *[a.role for a in f.arguments]] for f in doc._.srl], nlp.pipe_names]))
"""


@pytest.fixture(scope="module")
def moved_nlp(settings: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Language:
    """A pipeline whose runs have been deleted."""
    out = tmp_path_factory.mktemp("moved")
    nlp = spacy.blank("en")
    for factory, config in settings.items():
        copied_config = dict(config)
        for key in ("model", "predicates_model"):
            if key in config:
                copied_config[key] = str(shutil.copytree(config[key], out / f"{factory}-{key}"))
        nlp.add_pipe(factory, config=copied_config)
    shutil.rmtree(out)
    return nlp


def summarise(nlp: Language, text: str) -> list[Any]:
    doc = nlp(text)
    frames = [[frame.predicate.i, *[argument.role for argument in frame.arguments]] for frame in doc._.srl]
    return json.loads(json.dumps([doc.to_json(), frames, nlp.pipe_names]))


@pytest.mark.parametrize("form", ["disk", "bytes"])
def test_a_fresh_process_annotates_the_same(moved_nlp: Language, text: str, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "pipeline"
    moved_nlp.to_disk(folder)
    if form == "bytes":
        (tmp_path / "pipeline.bytes").write_bytes(moved_nlp.to_bytes())
    words = [sys.executable, "-c", FRESH, form, str(folder), text]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == summarise(moved_nlp, text)


def test_saved_files_are_safe_and_need_no_run(moved_nlp: Language, tmp_path: Path) -> None:
    moved_nlp.to_disk(tmp_path / "once")
    moved_nlp.to_disk(tmp_path / "once")  # over itself
    files = [path for path in (tmp_path / "once").glob("spen_*/**/*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    assert {path.name for path in (tmp_path / "once/spen_srl").iterdir()} == {"model", "predicates"}
    assert any(name.startswith("energy.") for name in load_file(tmp_path / "once/spen_ner/model/weights.safetensors"))
    loaded = spacy.load(tmp_path / "once")
    loaded.to_disk(tmp_path / "twice")
    for path in files:
        other = tmp_path / "twice" / path.relative_to(tmp_path / "once")
        assert other.read_bytes() == path.read_bytes(), path


def test_an_energy_that_is_not_used_is_left_out(runs: dict[str, Path], tmp_path: Path) -> None:
    piped("spen_ner", model=runs["ner"]).to_disk(tmp_path)
    assert not any(name.startswith("energy.") for name in load_file(tmp_path / "spen_ner/model/weights.safetensors"))


def test_files_of_another_component_are_removed(runs: dict[str, Path], tmp_path: Path) -> None:
    users_file = tmp_path / "mine.txt"
    users_file.write_text("not ours")
    for config, parts in (
        ({"predicates_model": str(runs["predicates"])}, {"model", "predicates"}),
        ({"predicates": "verbs"}, {"model"}),
    ):
        spacy.blank("en").add_pipe("spen_srl", config={"model": str(runs["srl"]), **config}).to_disk(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {*parts, users_file.name}


def test_configs_make_the_same_pipeline(nlp: Language, text: str) -> None:
    other = spacy.blank("en").from_config(nlp.config)
    assert summarise(other, text) == summarise(nlp, text)
    assert other.config["components"] == nlp.config["components"]


def test_components_are_pickled_as_their_files(moved_nlp: Language, text: str) -> None:
    pipe = moved_nlp.get_pipe("spen_srl")
    pipe.set_error_handler(spacy.util.ignore_error)
    data = pickle.dumps(pipe)
    pipe.set_error_handler(spacy.util.raise_error)
    other = pickle.loads(data)
    assert other.get_error_handler() is spacy.util.ignore_error and other.settings == pipe.settings
    original_doc, other_doc = pipe(moved_nlp.make_doc(text)), other(moved_nlp.make_doc(text))
    assert [(s.start, s.end, s.label_) for s in original_doc.spans["spen_srl"]] == [
        (s.start, s.end, s.label_) for s in other_doc.spans["spen_srl"]
    ]


def test_components_are_sourced(nlp: Language, text: str) -> None:
    other = spacy.blank("en")
    other.add_pipe("spen_ner", source=nlp)
    other.add_pipe("spen_srl", name="roles", source=nlp)
    doc = other(text)
    assert [str(span) for span in doc.ents] == [str(span) for span in nlp(text).ents] and "roles" in doc.spans
    nlp.get_pipe("spen_srl").name = "spen_srl"  # spaCy renames it in both pipelines


def test_a_component_without_its_files_fails_at_first_use(moved_nlp: Language, tmp_path: Path) -> None:
    moved_nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(tmp_path / "pipeline/spen_ner")
    with pytest.raises(RunError, match=r"spen_ner: .*spen_ner holds no folder 'model'"):
        spacy.load(tmp_path / "pipeline")
    nlp = spacy.blank("en").from_config(moved_nlp.config, meta=moved_nlp.meta)
    assert nlp.pipe_labels["spen_ner"] == []
    with pytest.raises(ConfigError, match=r"spen_pos: found the model .*which does not exist"):
        nlp("Anna")


def test_a_component_of_another_config_is_not_loaded(runs: dict[str, Path], nlp: Language, tmp_path: Path) -> None:
    spacy.blank("en").add_pipe("spen_srl", config={"model": str(runs["srl"]), "predicates": "verbs"}).to_disk(tmp_path)
    with pytest.raises(RunError, match=r"spen_srl: .* holds no folder 'predicates'; expected the files of a component"):
        nlp.get_pipe("spen_srl").from_disk(tmp_path)
    assert nlp("Anna told Bob.")._.srl  # it is unchanged


def test_bytes_are_a_plain_archive(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a/b.json").write_text("{}")
    (source / "c").write_bytes(b"\x00\xff")
    data = pack(source)
    assert data == pack(shutil.copytree(source, tmp_path / "other"))
    unpack(data, tmp_path / "target")
    assert (tmp_path / "target/a/b.json").read_text() == "{}" and (tmp_path / "target/c").read_bytes() == b"\x00\xff"


def test_bytes_cannot_write_outside(nlp: Language, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("../evil", "a/../../evil", "/evil", "a\\..\\evil", "C:evil"):
            archive.writestr(zipfile.ZipInfo(name), "x")
    unpack(packed.getvalue(), tmp_path / "inside/target")
    assert not [path for path in tmp_path.rglob("*evil") if tmp_path / "inside/target" not in path.parents]
    assert not Path("/evil").exists()
    ner: Component = nlp.get_pipe("spen_ner")
    with pytest.raises(RunError, match="holds no folder 'model'"):
        ner.from_bytes(packed.getvalue())
    assert nlp("Anna").text  # and it is unchanged


def test_archives_that_unpack_to_far_more_bytes_are_rejected(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/config.json", b" " * 1_000_000)
    with pytest.raises(RunError, match="unpack to more than they hold"):
        unpack(packed.getvalue(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_overlapping_files_in_bytes_are_rejected(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model/a.json", b" " * 10_000)
        [entry] = archive.infolist()
        archive.filelist += [entry] * 50
        archive._didModify = True
    with pytest.raises(RunError, match="unpack to more than they hold"):
        unpack(packed.getvalue(), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_damaged_bytes_are_rejected(nlp: Language) -> None:
    with pytest.raises(RunError, match="damaged"):
        nlp.get_pipe("spen_ner").from_bytes(b"nothing")


def test_no_pickle_is_read(moved_nlp: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if a folder holds one under a name that other libraries read."""

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was unpickled")

    pipe: Component = moved_nlp.get_pipe("spen_ner")
    pipe.to_disk(tmp_path)
    for name in ("pytorch_model.bin", "weights.pt", "model.pkl"):
        (tmp_path / "model" / name).write_bytes(pickle.dumps({}))
    data = pipe.to_bytes()
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    pipe.from_disk(tmp_path)
    pipe.from_bytes(data)
