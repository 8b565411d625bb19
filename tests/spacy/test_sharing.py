"""Components that share an encoder: one copy, one encoding per sentence, and unchanged annotations."""

from __future__ import annotations

import gc
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

import spen_plugins as sp
from spen_plugins.nn import int8
from spen_plugins.nn.int8 import has_int8
from spen_plugins.runs.many import together
from spen_spacy import predicting, sharing
from spen_spacy.extensions import TOKEN_SCORES
from spen_spacy.packaging.package import make_pipeline, write_pipeline
from spen_spacy.packaging.runs import Part
from spen_spacy.srl import SpenSrl
from spen_spacy.storage import pack
from tests.loaded import QUIET, piped
from tests.runs.test_together import few, given  # noqa: F401, a fixture

SENTENCES = [
    "Ann saws the cats .",
    "The dog gave Ann the saw .",
    "the cat saws .",
    "Ann saws the cats .",
    "dogs .",
    "Ann gaven the dog the cats in the saw .",
]


@spacy.registry.misc("spen_tests.second_word")
def second_word():
    return lambda doc: [min(1, len(doc) - 1)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts of speech and roles over one tiny encoder."""
    folder = tmp_path_factory.mktemp("shared")
    together.run(given(folder / "bert", epochs=1), folder / "runs", QUIET)
    return folder / "runs"


def load_pipeline(runs: Path, **tags: Any) -> Language:
    nlp = piped("spen_pos", model=runs / "tags", **tags)
    config = {"model": str(runs / "roles"), "predicates": {"@misc": "spen_tests.second_word"}}
    nlp.add_pipe("spen_srl", config=config)
    for name in nlp.pipe_names:
        nlp.get_pipe(name).run()
    return nlp


@pytest.fixture
def nlp(runs: Path) -> Language:
    gc.collect()  # pipelines of earlier tests, in reference cycles, would still use the same encoder
    return load_pipeline(runs)


def make_docs(nlp: Language) -> list[Doc]:
    return [Doc(nlp.vocab, words=text.split()) for text in SENTENCES]


def collect(annotated_docs: Any) -> list[Any]:
    """Returns the tags and frames of docs, and the scores of both separately."""
    names: list[Any] = []
    scores: list[float] = []
    for doc in annotated_docs:
        names.append([[token.pos_, token.tag_] for token in doc])
        names.append([(span.start, span.end, span.label_) for span in doc.spans["spen_srl"]])
        scores += [*doc.user_data[TOKEN_SCORES].tolist(), *doc.spans["spen_srl"].attrs["scores"]]
    return [names, torch.tensor(scores)]


def annotate_separately(runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the annotations of a pipeline whose components share nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(predicting, "join", lambda *_: [])
        separate = load_pipeline(runs)
    assert get_encoder(separate, "spen_pos") is not get_encoder(separate, "spen_srl")
    return collect(separate.pipe(make_docs(separate)))


def get_encoder(nlp: Language, name: str) -> Any:
    return next(part.encoder for part in nlp.get_pipe(name).run().predictor.model.modules() if hasattr(part, "encoder"))


def get_shared_encoder(nlp: Language) -> sharing.SharedEncoder:
    [encoder] = nlp.get_pipe("spen_pos").run()._encoders
    return encoder


def assert_same(annotations: list[Any], expected: list[Any]) -> None:
    assert annotations[0] == expected[0]
    torch.testing.assert_close(annotations[1], expected[1], rtol=1e-4, atol=1e-5, equal_nan=True)


def test_one_copy_one_encoding_and_the_same_annotations(nlp: Language, runs: Path, monkeypatch) -> None:
    assert get_encoder(nlp, "spen_pos") is get_encoder(nlp, "spen_srl")
    encoder = get_shared_encoder(nlp)
    rows, read = [], encoder._read
    monkeypatch.setattr(encoder, "_read", lambda **inputs: rows.append(len(inputs["input_ids"])) or read(**inputs))
    annotations = collect(nlp.pipe(make_docs(nlp), batch_size=4))
    assert sum(rows) == 3 + 2  # the different sentences of each batch of docs
    assert any(annotations[0][1::2])  # frames
    assert not encoder._vectors
    assert_same(annotations, annotate_separately(runs, monkeypatch))
    assert_same(collect(map(nlp, make_docs(nlp))), annotations)


def test_another_precision_encodes_separately(runs: Path, monkeypatch) -> None:
    nlp = load_pipeline(runs, precision="bf16")
    assert get_encoder(nlp, "spen_pos") is get_encoder(nlp, "spen_srl")
    names, scores = collect(nlp.pipe(make_docs(nlp)))
    expected = annotate_separately(runs, monkeypatch)
    assert names[1::2] == expected[0][1::2]  # frames, in float32
    torch.testing.assert_close(scores, expected[1], rtol=0.1, atol=0.02, equal_nan=True)


@pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")
def test_int8_is_not_shared_with_float32(runs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(int8, "NARROW", 1)
    nlp = load_pipeline(runs, precision="int8")
    assert get_encoder(nlp, "spen_pos") is not get_encoder(nlp, "spen_srl")
    expected = annotate_separately(runs, monkeypatch)
    names, scores = collect(nlp.pipe(make_docs(nlp)))
    assert names[1::2] == expected[0][1::2]  # frames, in float32
    torch.testing.assert_close(scores, expected[1], rtol=0.1, atol=0.05, equal_nan=True)
    nlp.to_disk(tmp_path / "pipeline")
    saved = spacy.load(tmp_path / "pipeline")
    assert saved.get_pipe_config("spen_pos")["precision"] == "int8"
    assert_same(collect(saved.pipe(make_docs(saved))), [names, scores])
    int8_nlp = spacy.load(tmp_path / "pipeline", config={"components": {"spen_srl": {"precision": "int8"}}})
    assert get_encoder(int8_nlp, "spen_pos") is get_encoder(int8_nlp, "spen_srl")


@pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")
def test_int8_leaves_parts_without_an_encoder_as_they_are(runs: Path, monkeypatch) -> None:
    monkeypatch.setattr(int8, "NARROW", 1)
    pipes = Path("plugins/spen-en/spen_en/pipeline")
    settings = {"model": runs / "roles", "predicates_model": pipes / "spen_srl/predicates", "precision": "int8"}
    nlp = piped("spen_srl", **settings)
    assert len(list(nlp.pipe(make_docs(nlp)))) == len(SENTENCES)
    with pytest.raises(sp.ConfigError, match="speeds up pretrained encoders"):
        piped("spen_pos", model=pipes / "spen_pos/model", precision="int8").get_pipe("spen_pos").run()


def test_the_cache_is_bounded(nlp: Language, runs: Path, monkeypatch) -> None:
    monkeypatch.setattr(sharing, "PIECES", 9)
    nlp.disable_pipe("spen_srl")
    list(nlp.pipe(make_docs(nlp)))
    encoder = get_shared_encoder(nlp)
    assert 0 < sum(map(len, encoder._vectors.values())) == encoder._pieces <= 9
    nlp.enable_pipe("spen_srl")
    assert_same(collect(nlp.pipe(make_docs(nlp))), annotate_separately(runs, monkeypatch))


def test_other_weights_are_not_shared(nlp: Language, runs: Path, monkeypatch) -> None:
    def join_changed(self: Any, model: Any, device: str) -> Any:
        for part in model.modules():
            if isinstance(part, sp.FeatureNetwork) and part.shared_part() is not None:
                next(part.shared_part().parameters()).data[0, 0] += 1e-3
        return sharing.join(self, model, device)

    monkeypatch.setattr(predicting, "join", join_changed)
    other_nlp = load_pipeline(runs)
    assert get_encoder(other_nlp, "spen_pos") is get_encoder(other_nlp, "spen_srl") is not get_encoder(nlp, "spen_pos")


def test_stored_pipelines_and_processes_annotate_the_same(nlp: Language, tmp_path: Path) -> None:
    expected = collect(nlp.pipe(make_docs(nlp)))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert_same(collect(loaded.pipe(make_docs(loaded))), expected)
    assert get_encoder(loaded, "spen_pos") is get_encoder(nlp, "spen_srl")  # shared within a process
    copy = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert_same(collect(copy.pipe(make_docs(copy))), expected)
    tags = spacy.load(tmp_path, exclude=["spen_srl"])
    assert [[token.pos_ for token in doc] for doc in tags.pipe(make_docs(tags))] == [
        [pos for pos, _ in row] for row in expected[0][::2]
    ]
    assert_same(collect(nlp.pipe(make_docs(nlp), n_process=2, batch_size=3)), expected)


def test_bytes_have_the_encoder_of_several_parts_once(runs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(SpenSrl, "check", lambda *_: None)  # any run with the encoder can be the second part
    pipe = piped("spen_srl", model=runs / "roles", predicates_model=runs / "tags").get_pipe("spen_srl")
    data = pipe.to_bytes()
    files = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert len([name for name in files if name.startswith("encoders/")]) == 1
    pipe.to_disk(tmp_path)
    for packed in (data, pack(tmp_path)):  # the second as earlier versions packed it
        assert pipe.from_bytes(packed).to_bytes() == data


def test_a_written_pipeline_has_the_encoder_once(runs: Path, tmp_path: Path) -> None:
    pairs = (("spen_pos", "tags"), ("spen_srl", "roles"))
    parts = [Part(name, name, sp.RunFolder.open(runs / run)) for name, run in pairs]
    meta = {"lang": "en", "name": "both", "version": "0.0.0", "description": "", "author": "", "license": ""}
    write_pipeline(make_pipeline(parts, "en"), parts, meta, tmp_path / "here", half=True, keep_energy=False)
    (tmp_path / "here").rename(tmp_path / "there")
    [half_file] = (tmp_path / "there/encoders").iterdir()
    half_size = half_file.stat().st_size
    loaded = spacy.load(tmp_path / "there")
    assert get_encoder(loaded, "spen_pos") is get_encoder(loaded, "spen_srl")
    expected = collect(loaded.pipe(make_docs(loaded)))
    assert spacy.load(tmp_path / "there", exclude=["spen_pos"]).pipe_names == ["spen_srl"]
    (tmp_path / "there/assets/mine").touch()
    for folder in (tmp_path / "again", tmp_path / "there"):  # elsewhere, and over itself, in 32 bits
        loaded.to_disk(folder)
        [encoder_file] = (folder / "encoders").iterdir()
        assert encoder_file.stat().st_size > 1.5 * half_size
        assert len([path for path in (folder / "assets").iterdir() if path.is_dir()]) == 1
        reloaded = spacy.load(folder)
        assert_same(collect(reloaded.pipe(make_docs(reloaded))), expected)
    assert (tmp_path / "there/assets/mine").exists()


def test_saving_deletes_nothing_behind_links(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(folder := tmp_path / "here")
    stale = "0123456789abcdef"
    for name in ("encoders", "assets", "spen_srl"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
    (tmp_path / "encoders" / f"{stale}.safetensors").write_text("of another pipeline")
    (tmp_path / "assets" / stale).mkdir()
    (tmp_path / "spen_srl/predicates").mkdir()
    (tmp_path / "spen_srl/model/mine.txt").write_text("mine")
    outside_paths = sorted(path for path in tmp_path.rglob("*") if folder not in path.parents)
    nlp.to_disk(folder)
    assert sorted(path for path in tmp_path.rglob("*") if folder not in path.parents) == outside_paths
    assert (folder / "encoders").is_symlink() and not (folder / "spen_srl").is_symlink()
    expected = collect(nlp.pipe(make_docs(nlp)))
    assert_same(collect((loaded := spacy.load(folder)).pipe(make_docs(loaded))), expected)
    (folder / "assets").unlink()
    (folder / "assets").mkdir()
    (folder / "assets" / stale).symlink_to(tmp_path / "assets" / stale)
    (folder / "spen_srl/predicates").symlink_to(tmp_path / "spen_srl/predicates")
    nlp.to_disk(folder)
    assert not (folder / "assets" / stale).is_symlink() and not (folder / "spen_srl/predicates").is_symlink()
    assert sorted(path for path in tmp_path.rglob("*") if folder not in path.parents) == outside_paths


def test_a_component_saved_alone_has_its_encoder(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    for name in ("config.cfg", "meta.json"):  # such files elsewhere belong to something else
        (tmp_path / name).write_bytes((tmp_path / "pipeline" / name).read_bytes())
    nlp.get_pipe("spen_pos").to_disk(tmp_path / "tags")
    assert not (tmp_path / "encoders").exists()
    nlp.get_pipe("spen_pos").from_disk(tmp_path / "tags").run().predict([])


def test_a_damaged_index_keeps_all_encoders(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path)
    (stray := tmp_path / "encoders/0123456789abcdef.safetensors").touch()
    index = tmp_path / "spen_srl/model/encoders.json"
    text = index.read_text()
    index.write_text("[]")
    nlp.get_pipe("spen_pos").to_disk(tmp_path / "spen_pos")
    assert stray.exists()
    index.write_text(text)
    nlp.get_pipe("spen_pos").to_disk(tmp_path / "spen_pos")
    assert not stray.exists()
    spacy.load(tmp_path)
