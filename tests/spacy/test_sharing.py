"""Components of one encoder: one copy, one reading of a sentence, and the words of each alone."""

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
from spen_spacy.packaging.runs import Component as Part
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


def pipeline(runs: Path, **tags: Any) -> Language:
    nlp = piped("spen_pos", model=runs / "tags", **tags)
    config = {"model": str(runs / "roles"), "predicates": {"@misc": "spen_tests.second_word"}}
    nlp.add_pipe("spen_srl", config=config)
    for name in nlp.pipe_names:
        nlp.get_pipe(name).run()
    return nlp


@pytest.fixture
def nlp(runs: Path) -> Language:
    gc.collect()  # pipelines of earlier tests, in cycles, would be users of the same encoder
    return pipeline(runs)


def docs(nlp: Language) -> list[Doc]:
    return [Doc(nlp.vocab, words=text.split()) for text in SENTENCES]


def said(found: Any) -> list[Any]:
    """Tags and frames of docs, and the scores of both apart."""
    names: list[Any] = []
    scores: list[float] = []
    for doc in found:
        names.append([[token.pos_, token.tag_] for token in doc])
        names.append([(span.start, span.end, span.label_) for span in doc.spans["spen_srl"]])
        scores += [*doc.user_data[TOKEN_SCORES].tolist(), *doc.spans["spen_srl"].attrs["scores"]]
    return [names, torch.tensor(scores)]


def alone(runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Annotations of a pipeline whose components know nothing of one another."""
    with monkeypatch.context() as patch:
        patch.setattr(predicting, "join", lambda *_: [])
        apart = pipeline(runs)
    assert encoder(apart, "spen_pos") is not encoder(apart, "spen_srl")
    return said(apart.pipe(docs(apart)))


def encoder(nlp: Language, name: str) -> Any:
    return next(part.encoder for part in nlp.get_pipe(name).run().predictor.model.modules() if hasattr(part, "encoder"))


def shared(nlp: Language) -> sharing.SharedEncoder:
    [one] = nlp.get_pipe("spen_pos").run()._encoders
    return one


def same(found: list[Any], wanted: list[Any]) -> None:
    assert found[0] == wanted[0]
    torch.testing.assert_close(found[1], wanted[1], rtol=1e-4, atol=1e-5, equal_nan=True)


def test_one_copy_one_reading_and_the_same_words(nlp: Language, runs: Path, monkeypatch) -> None:
    assert encoder(nlp, "spen_pos") is encoder(nlp, "spen_srl")
    one = shared(nlp)
    rows, read = [], one._read
    monkeypatch.setattr(one, "_read", lambda **inputs: rows.append(len(inputs["input_ids"])) or read(**inputs))
    found = said(nlp.pipe(docs(nlp), batch_size=4))
    assert sum(rows) == 3 + 2  # of each batch of docs the different sentences
    assert any(found[0][1::2])  # frames
    assert not one._vectors
    same(found, alone(runs, monkeypatch))
    same(said(map(nlp, docs(nlp))), found)


def test_another_precision_reads_for_itself(runs: Path, monkeypatch) -> None:
    nlp = pipeline(runs, precision="bf16")
    assert encoder(nlp, "spen_pos") is encoder(nlp, "spen_srl")
    names, scores = said(nlp.pipe(docs(nlp)))
    wanted = alone(runs, monkeypatch)
    assert names[1::2] == wanted[0][1::2]  # frames, in float32
    torch.testing.assert_close(scores, wanted[1], rtol=0.1, atol=0.02, equal_nan=True)


@pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")
def test_int8_is_not_shared_with_float32(runs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(int8, "NARROW", 1)
    nlp = pipeline(runs, precision="int8")
    assert encoder(nlp, "spen_pos") is not encoder(nlp, "spen_srl")
    wanted = alone(runs, monkeypatch)
    names, scores = said(nlp.pipe(docs(nlp)))
    assert names[1::2] == wanted[0][1::2]  # frames, in float32
    torch.testing.assert_close(scores, wanted[1], rtol=0.1, atol=0.05, equal_nan=True)
    nlp.to_disk(tmp_path / "pipeline")
    saved = spacy.load(tmp_path / "pipeline")
    assert saved.get_pipe_config("spen_pos")["precision"] == "int8"
    same(said(saved.pipe(docs(saved))), [names, scores])
    both = spacy.load(tmp_path / "pipeline", config={"components": {"spen_srl": {"precision": "int8"}}})
    assert encoder(both, "spen_pos") is encoder(both, "spen_srl")


@pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")
def test_int8_leaves_parts_without_an_encoder_as_they_are(runs: Path, monkeypatch) -> None:
    monkeypatch.setattr(int8, "NARROW", 1)
    pipes = Path("plugins/spen-en/spen_en/pipeline")
    own = {"model": runs / "roles", "predicates_model": pipes / "spen_srl/predicates", "precision": "int8"}
    nlp = piped("spen_srl", **own)
    assert len(list(nlp.pipe(docs(nlp)))) == len(SENTENCES)
    with pytest.raises(sp.ConfigError, match="speeds up pretrained encoders"):
        piped("spen_pos", model=pipes / "spen_pos/model", precision="int8").get_pipe("spen_pos").run()


def test_what_is_kept_is_bounded(nlp: Language, runs: Path, monkeypatch) -> None:
    monkeypatch.setattr(sharing, "PIECES", 9)
    nlp.disable_pipe("spen_srl")
    list(nlp.pipe(docs(nlp)))
    one = shared(nlp)
    assert 0 < sum(map(len, one._vectors.values())) == one._pieces <= 9
    nlp.enable_pipe("spen_srl")
    same(said(nlp.pipe(docs(nlp))), alone(runs, monkeypatch))


def test_other_weights_are_not_shared(nlp: Language, runs: Path, monkeypatch) -> None:
    def other(self: Any, model: Any, device: str) -> Any:
        for part in model.modules():
            if isinstance(part, sp.FeatureNetwork) and part.shared_part() is not None:
                next(part.shared_part().parameters()).data[0, 0] += 1e-3
        return sharing.join(self, model, device)

    monkeypatch.setattr(predicting, "join", other)
    own = pipeline(runs)
    assert encoder(own, "spen_pos") is encoder(own, "spen_srl") is not encoder(nlp, "spen_pos")


def test_stored_and_in_processes(nlp: Language, tmp_path: Path) -> None:
    wanted = said(nlp.pipe(docs(nlp)))
    nlp.to_disk(tmp_path)
    read = spacy.load(tmp_path)
    same(said(read.pipe(docs(read))), wanted)
    assert encoder(read, "spen_pos") is encoder(nlp, "spen_srl")  # of one process
    copy = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    same(said(copy.pipe(docs(copy))), wanted)
    tags = spacy.load(tmp_path, exclude=["spen_srl"])
    assert [[token.pos_ for token in doc] for doc in tags.pipe(docs(tags))] == [
        [pos for pos, _ in row] for row in wanted[0][::2]
    ]
    same(said(nlp.pipe(docs(nlp), n_process=2, batch_size=3)), wanted)


def test_bytes_have_the_encoder_of_several_parts_once(runs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(SpenSrl, "check", lambda *_: None)  # any run over the encoder will do as a second part
    pipe = piped("spen_srl", model=runs / "roles", predicates_model=runs / "tags").get_pipe("spen_srl")
    data = pipe.to_bytes()
    files = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert len([name for name in files if name.startswith("encoders/")]) == 1
    pipe.to_disk(tmp_path)
    for packed in (data, pack(tmp_path)):  # the second as earlier versions packed it
        assert pipe.from_bytes(packed).to_bytes() == data


def test_a_written_pipeline_has_the_encoder_once(runs: Path, tmp_path: Path) -> None:
    pairs = (("spen_pos", "tags"), ("spen_srl", "roles"))
    found = [Part(name, name, sp.RunFolder.open(runs / run)) for name, run in pairs]
    own = {"lang": "en", "name": "both", "version": "0.0.0", "description": "", "author": "", "license": ""}
    write_pipeline(make_pipeline(found, "en"), found, own, tmp_path / "here", half=True, keep_energy=False)
    (tmp_path / "here").rename(tmp_path / "there")
    [half_file] = (tmp_path / "there/encoders").iterdir()
    half_size = half_file.stat().st_size
    read = spacy.load(tmp_path / "there")
    assert encoder(read, "spen_pos") is encoder(read, "spen_srl")
    wanted = said(read.pipe(docs(read)))
    assert spacy.load(tmp_path / "there", exclude=["spen_pos"]).pipe_names == ["spen_srl"]
    (tmp_path / "there/assets/mine").touch()
    for folder in (tmp_path / "again", tmp_path / "there"):  # elsewhere, and over itself, in 32 bits
        read.to_disk(folder)
        [encoder_file] = (folder / "encoders").iterdir()
        assert encoder_file.stat().st_size > 1.5 * half_size
        assert len([path for path in (folder / "assets").iterdir() if path.is_dir()]) == 1
        again = spacy.load(folder)
        same(said(again.pipe(docs(again))), wanted)
    assert (tmp_path / "there/assets/mine").exists()


def test_saving_deletes_nothing_behind_links(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(here := tmp_path / "here")
    stale = "0123456789abcdef"
    for name in ("encoders", "assets", "spen_srl"):
        (here / name).rename(tmp_path / name)
        (here / name).symlink_to(tmp_path / name)
    (tmp_path / "encoders" / f"{stale}.safetensors").write_text("of another pipeline")
    (tmp_path / "assets" / stale).mkdir()
    (tmp_path / "spen_srl/predicates").mkdir()
    (tmp_path / "spen_srl/model/mine.txt").write_text("mine")
    before = sorted(path for path in tmp_path.rglob("*") if here not in path.parents)
    nlp.to_disk(here)
    assert sorted(path for path in tmp_path.rglob("*") if here not in path.parents) == before
    assert (here / "encoders").is_symlink() and not (here / "spen_srl").is_symlink()
    wanted = said(nlp.pipe(docs(nlp)))
    same(said((read := spacy.load(here)).pipe(docs(read))), wanted)
    (here / "assets").unlink()
    (here / "assets").mkdir()
    (here / "assets" / stale).symlink_to(tmp_path / "assets" / stale)
    (here / "spen_srl/predicates").symlink_to(tmp_path / "spen_srl/predicates")
    nlp.to_disk(here)
    assert not (here / "assets" / stale).is_symlink() and not (here / "spen_srl/predicates").is_symlink()
    assert sorted(path for path in tmp_path.rglob("*") if here not in path.parents) == before


def test_a_component_saved_alone_has_its_encoder(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    for name in ("config.cfg", "meta.json"):  # such files elsewhere are of other things
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
