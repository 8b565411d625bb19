"""Frames for displaCy: what it renders, in which words, with which colours."""

from __future__ import annotations

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, Span, SpanGroup

from spen_spacy import DISPLACY_OPTIONS, displacy_frames, draw
from spen_spacy.drawing import COLOURS
from spen_spacy.extensions import ENERGIES, SCORES, SENSE_SCORES, SENSES, STARTS


@pytest.fixture
def doc() -> Doc:
    """Two sentences with a frame each; the second's predicate has no known sense."""
    words = ["I", "gave", "<b>", "it", ".", "He", "who", "ran", "."]
    doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[i in (0, 5) for i in range(9)])
    found = [("V", 1, 2), ("ARG0", 0, 1), ("ARG1", 2, 4), ("V", 7, 8), ("ARG0", 5, 6), ("R-ARG0", 6, 7)]
    spans = [Span(doc, start, end, label=label) for label, start, end in found]
    known = {SENSES: ["give.01", None], SENSE_SCORES: [0.9, None]}
    attributes = {SCORES: [1.0] * 6, STARTS: [0, 3], ENERGIES: [], **known}
    doc.spans["roles"] = SpanGroup(doc, name="roles", attrs=attributes, spans=spans)
    return doc


def test_each_frame_has_the_words_of_its_sentence(doc: Doc) -> None:
    first, second = displacy_frames(doc)
    assert first["tokens"] == ["I", "gave", "<b>", "it", "."] and second["tokens"] == ["He", "who", "ran", "."]
    assert [(span["label"], span["kb_id"]) for span in first["spans"]] == [("V", "give.01"), ("ARG0", ""), ("ARG1", "")]
    for entry, texts in ((first, ["gave", "I", "<b> it"]), (second, ["ran", "He", "who"])):
        assert [entry["text"][span["start"] : span["end"]] for span in entry["spans"]] == texts
        words = [" ".join(entry["tokens"][span["start_token"] : span["end_token"]]) for span in entry["spans"]]
        assert words == texts
    assert displacy_frames(list(doc.sents)[1]) == [second]


def test_a_part_without_some_arguments(doc: Doc) -> None:
    [entry] = displacy_frames(doc[1:3])
    assert entry["tokens"] == ["gave", "<b>"] and [span["label"] for span in entry["spans"]] == ["V", "ARG1"]
    assert displacy_frames(doc[8:]) == []


def test_displacy_renders_it_in_colours_of_the_roles(doc: Doc) -> None:
    given = {"style": "span", "manual": True, "options": DISPLACY_OPTIONS, "jupyter": False}
    html = displacy.render(displacy_frames(doc), **given)
    assert html.count(COLOURS["ARG0"]) > html.count(COLOURS["ARG1"]) > 0
    assert "give.01" in html and "R-ARG0" in html and "<b>" not in html


def test_a_drawn_predicate_has_its_sense(doc: Doc) -> None:
    svg = draw(doc)
    assert ">give.01<" in svg and svg.count(">V<") == 1
