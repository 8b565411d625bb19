"""A component of a run on word pieces: long docs, storage, and folders from others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spen_plugins.errors import ConfigError, RunError
from tests.loaded import piped, small_bert, trained

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,"
WORDS = ["The", "old", "farmer", "told", "Anna", "in", "Boston", "that", "they", "sent", "a", "letter"] * 30


@pytest.fixture(scope="module")
def nlp(tmp_path_factory: pytest.TempPathFactory) -> Language:
    """A tagger of names with a random encoder of letters that reads 512 pieces; run and encoder have been deleted."""
    out = tmp_path_factory.mktemp("transformer")
    pieces = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    encoder = small_bert(out / "encoder", pieces, lower=False, hidden_size=16, intermediate_size=16)
    trained("names", out / "run", encoder=encoder, method="cross_entropy", **{"trainer.epochs": "1"})
    nlp = piped("spen_ner", model=out / "run", window=300)
    shutil.rmtree(out)
    return nlp


@pytest.fixture
def saved(nlp: Language, tmp_path: Path) -> Path:
    nlp.get_pipe("spen_ner").to_disk(tmp_path)
    return tmp_path


def find_names(nlp: Language) -> list[tuple[int, int, str, float]]:
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    scores = doc.spans["spen_ner"].attrs["scores"].tolist()
    return [(e.start, e.end, e.label_, score) for e, score in zip(doc.spans["spen_ner"], scores, strict=True)]


def test_words_beyond_the_last_piece_are_read(nlp: Language, recwarn: pytest.WarningsRecorder) -> None:
    assert sum(map(len, WORDS)) > 2 * 512
    entities = find_names(nlp)
    assert max(end for _, end, _, _ in entities) > len(WORDS) - 20
    assert not [warning for warning in recwarn if "word pieces" in str(warning.message)]


def test_a_moved_pipeline_predicts_the_same(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    loaded = spacy.load(tmp_path / "there")
    assert find_names(loaded) == find_names(nlp)
    assert find_names(
        spacy.blank("en").from_config(nlp.config, meta=nlp.meta).from_bytes(loaded.to_bytes())
    ) == find_names(nlp)


def test_missing_files_are_not_downloaded(saved: Path) -> None:
    shutil.rmtree(saved / "model/assets")
    config = json.loads((saved / "model/config.json").read_text())
    config["features"]["model"] = "bert-base-cased"
    (saved / "model/config.json").write_text(json.dumps(config))
    with pytest.raises(
        RunError, match=r"spen_ner: found no folder .*with the tokeniser of 'bert-base-cased'; copy the"
    ):
        piped("spen_ner", model=saved)


def test_code_in_a_folder_is_not_run(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the user isn't asked for permission."""
    [assets] = (saved / "model/assets").iterdir()
    settings = json.loads((assets / "config.json").read_text())
    settings |= {"model_type": "acme", "auto_map": {"AutoConfig": "acme.Config", "AutoModel": "acme.Model"}}
    (assets / "config.json").write_text(json.dumps(settings))
    (assets / "acme.py").write_text(f"open({str(saved / 'run')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ConfigError, match="custom code"):
        piped("spen_ner", model=saved)
    assert not (saved / "run").exists()
