"""Senses of frames in spaCy: descriptions of frames and arguments, and their storage."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_spacy import Argument
from spen_spacy import frame as frames
from spen_spacy.extensions import ENERGIES, SENSE_SCORES, SENSES, STARTS, make_group, set_extensions
from spen_spacy.packaging.card import write_card
from spen_spacy.packaging.meta import list_sources
from spen_spacy.packaging.runs import choose_components
from tests.loaded import piped, trained

TEXT = "The old farmer gave the book. Then they told Anna it."


@pytest.fixture(scope="module")
def senses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = {"features.hidden": "8", "trainer.epochs": "1", "trainer.patience": "1"}
    out = tmp_path_factory.mktemp("senses") / "senses"
    return trained("senses", out, **values)


@pytest.fixture(scope="module")
def roles(runs: dict[str, Path], senses: Path) -> Language:
    return piped("spen_srl", model=runs["srl"], predicates_model=runs["predicates"], senses_model=senses)


def list_frames(doc: Doc) -> list[object]:
    return [
        (frame.predicate.text, frame.sense, frame.sense_score, frame.gloss, [a.description for a in frame.arguments])
        for frame in doc._.srl
    ]


def make_framed_doc() -> Doc:
    """Returns a doc with a frame of known sense."""
    set_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["Anna", "gave", "it", "up"])
    spans = [Span(doc, 1, 2, label="V"), Span(doc, 0, 1, label="ARG0"), Span(doc, 2, 3, label="ARGM-TMP")]
    attributes = {STARTS: [0], ENERGIES: [], SENSES: ["give.01"], SENSE_SCORES: [0.75]}
    doc.spans["roles"] = make_group(doc, "roles", spans, [1.0, 1.0, 1.0], **attributes)
    return doc


def test_a_frame_describes_its_sense_and_roles() -> None:
    [frame] = make_framed_doc()._.srl
    assert (frame.sense, frame.gloss, frame.sense_score) == ("give.01", "transfer", 0.75)
    assert [argument.description for argument in frame.arguments] == ["giver", None]
    role, span, score = frame.arguments[0]
    assert (role, span.text, score) == ("ARG0", "Anna", 1.0)
    restored = pickle.loads(pickle.dumps(Argument("ARG1", None, 0.5, "give.01")))
    assert restored == Argument("ARG1", None, 0.5) and restored.description == "thing given"


def test_senses_are_those_of_the_lemma_and_are_kept(roles: Language, tmp_path: Path) -> None:
    doc = roles(TEXT)
    assert doc._.srl
    for frame in doc._.srl:
        assert frame.sense.startswith({"gave": "give", "told": "tell"}[frame.predicate.text])
        assert 0 < frame.sense_score <= 1 and frame.gloss
    bin_ = DocBin(docs=[doc], store_user_data=True)
    [restored] = DocBin().from_bytes(bin_.to_bytes()).get_docs(roles.vocab)
    assert list_frames(restored) == list_frames(doc) == list_frames(Doc(roles.vocab).from_bytes(doc.to_bytes()))
    roles.to_disk(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved/spen_srl").iterdir()} == {"model", "predicates", "senses"}
    loaded = spacy.load(tmp_path / "saved")
    assert list_frames(loaded(TEXT)) == list_frames(doc)
    other = piped("spen_srl", model=tmp_path / "saved/spen_srl")
    assert (
        list_frames(other(TEXT))
        == list_frames(doc)
        == list_frames(pickle.loads(pickle.dumps(roles.get_pipe("spen_srl")))(other.make_doc(TEXT)))
    )


def test_frames_have_no_sense_without_a_run_for_senses(nlp: Language) -> None:
    for frame in nlp(TEXT)._.srl:
        assert frame.sense is frame.gloss is frame.sense_score is None
        assert all(argument.description is None for argument in frame.arguments)


def test_without_the_plugin_nothing_is_described(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "Registry", lambda: sp.Registry([]))
    monkeypatch.setattr(frames, "find_lexicon", frames.find_lexicon.__wrapped__)
    [frame] = make_framed_doc()._.srl
    assert (frame.sense, frame.gloss) == ("give.01", None)
    assert [argument.role for argument in frame.arguments] == ["ARG0", "ARGM-TMP"]
    assert not any(argument.description for frame in (frame, *nlp(TEXT)._.srl) for argument in frame.arguments)


def test_a_run_of_another_task_is_rejected(runs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match="found a senses_model that does not predict senses"):
        piped("spen_srl", model=runs["srl"], predicates_model=runs["predicates"], senses_model=runs["pos"])


def test_a_package_carries_the_run_and_names_the_lexicon(runs: dict[str, Path], senses: Path) -> None:
    chosen = choose_components([str(runs["srl"]), str(runs["predicates"]), str(senses)])
    assert chosen[0].config["senses_model"] == str(senses) and [*chosen[0].runs] == ["model", "predicates", "senses"]
    meta = {"description": "", "version": "1", "license": "x", "spacy_version": "3", "requirements": []}
    text = write_card(meta | {"sources": list_sources(chosen)}, "en_mine", chosen)
    assert "its senses" in text and "frame.sense" in text and "PropBank frames" in text and "CC BY-SA 4.0" in text
    for paths, message in (
        ([senses], "no roles to label"),
        ([runs["srl"], runs["predicates"], senses, senses], "which have the same use"),
    ):
        with pytest.raises(ConfigError, match=message):
            choose_components([str(path) for path in paths])
