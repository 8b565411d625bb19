"""Drawings of frames: every label fits into its box, boxes are below their words; and frames for displaCy."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, Span, SpanGroup

from spen_spacy import DISPLACY_OPTIONS, displacy_frames, draw, set_extensions
from spen_spacy.drawing.svg import COLOURS, LETTER
from spen_spacy.extensions import ENERGIES, SCORES, SENSE_SCORES, SENSES, STARTS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def doc() -> Doc:
    """Two sentences; in the first, I is an argument of one letter, and <b> has to be escaped."""
    set_extensions()
    words = ["I", "gave", "<b>", "本", "it", ".", " \n", "He", "ran", "."]
    doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[i in (0, 7) for i in range(10)])
    labels = [("V", 1), ("ARG0", 0), ("ARGM-TMP", 2), ("ARG1", 3), ("V", 8), ("R-ARG0", 7)]
    spans = [Span(doc, start, start + 1, label=label) for label, start in labels]
    attributes = {SCORES: [1.0] * 6, STARTS: [0, 4], ENERGIES: []}
    doc.spans["roles"] = SpanGroup(doc, name="roles", attrs=attributes, spans=spans)
    return doc


def parse_svg(svg: str) -> tuple[list[ElementTree.Element], list[ElementTree.Element], list[ElementTree.Element]]:
    """Returns the elements of words, boxes and labels."""
    _, words, shapes = ElementTree.fromstring(svg)
    return list(words), shapes.findall(f"{SVG}rect"), shapes.findall(f"{SVG}text")


def test_labels_fit_and_stand_below_their_words(doc: Doc) -> None:
    words, boxes, labels = parse_svg(draw(doc))
    assert [word.text for word in words] == [token.text for token in doc if not token.is_space]
    assert [label.text for label in labels] == ["V", "ARG0", "ARGM-TMP", "ARG1", "V", "R-ARG0"]
    positions = {word.text: float(word.get("x", 0)) for word in words}
    for box, label, word in zip(boxes, labels, ["gave", "I", "<b>", "本", "ran", "He"], strict=True):
        assert float(box.get("x", 0)) == positions[word]
        assert float(box.get("width", 0)) >= LETTER * len(label.text or "")
    rows = [float(box.get("y", 0)) for box in boxes]
    assert len(set(rows[:4])) == len(set(rows[4:])) == 1 and rows[0] < rows[4]
    extents = sorted((float(box.get("x", 0)), float(box.get("width", 0))) for box in boxes[:4])
    assert all(x + width < next_x for (x, width), (next_x, _) in pairwise(extents))


def test_a_sentence_has_its_own_frames(doc: Doc) -> None:
    _, second = doc.sents
    words, _, labels = parse_svg(draw(second))
    assert [word.text for word in words] == ["He", "ran", "."]
    assert [label.text for label in labels] == ["V", "R-ARG0"]
    assert parse_svg(draw(doc[8:]))[2][0].text == "V" and len(parse_svg(draw(doc[8:]))[2]) == 1


def test_no_frames_and_no_words() -> None:
    set_extensions()
    assert [word.text for word in parse_svg(draw(spacy.blank("en")("Hello")))[0]] == ["Hello"]
    assert parse_svg(draw(spacy.blank("en")(""))) == ([], [], [])


def parse_wrapped_svg(svg: str) -> tuple[list[ElementTree.Element], list[str], list[ElementTree.Element], list[str]]:
    """Returns the words, the predicates beside rows, the boxes and their labels."""
    _, words, names, shapes = ElementTree.fromstring(svg)
    labels = [label.text or "" for label in shapes.findall(f"{SVG}text")]
    return list(words), [name.text or "" for name in names], shapes.findall(f"{SVG}rect"), labels


def test_long_texts_are_wrapped(doc: Doc) -> None:
    """Below each line is a row for each of its frames; a span that a line break divides is labelled on both lines."""
    spans = [Span(doc, a, b, label=label) for label, a, b in (("V", 1, 2), ("ARG0", 0, 1), ("ARG1", 2, 6))]
    spans += [Span(doc, a, b, label=label) for label, a, b in (("V", 8, 9), ("R-ARG0", 7, 8))]
    doc.spans["roles"] = SpanGroup(doc, attrs={SCORES: [1.0] * 5, STARTS: [0, 3], ENERGIES: []}, spans=spans)
    svg = draw(doc, width=220)
    words, names, boxes, labels = parse_wrapped_svg(svg)
    assert [word.text for word in words] == [token.text for token in doc if not token.is_space]
    assert labels == ["V", "ARG0", "ARG1 …", "… ARG1", "V", "R-ARG0"] and names == ["gave", "gave", "ran"]
    heights = list(dict.fromkeys(float(word.get("y", 0)) for word in words))
    rows = list(dict.fromkeys(float(box.get("y", 0)) for box in boxes))
    assert len(heights) == 2 and heights[0] < rows[0] < heights[1] < rows[1] < rows[2]
    size = ElementTree.fromstring(svg)
    assert float(size.get("width", 0)) <= 220
    assert all(float(box.get("x", 0)) + float(box.get("width", 0)) <= 220 for box in boxes)
    for box, label in zip(boxes, labels, strict=True):
        assert float(box.get("width", 0)) >= LETTER * len(label)


@pytest.mark.parametrize("width", [1, 60, 150, 10_000])
def test_every_word_is_drawn_once_at_any_width(doc: Doc, width: float) -> None:
    root = ElementTree.fromstring(draw(doc, width=width))
    words = list(root[1])
    assert [word.text for word in words] == [token.text for token in doc if not token.is_space]
    assert len({(word.get("x"), word.get("y")) for word in words}) == len(words)
    assert all(float(word.get("y", 0)) < float(root.get("height", 0)) for word in words)


def test_characters_that_xml_forbids_are_replaced() -> None:
    doc = Doc(spacy.blank("en").vocab, words=["a\x07b", "\x00", "c\nd", "\x7f", "\ufffe", "&"])
    assert [word.text for word in parse_svg(draw(doc))[0]] == ["a�b", "�", "c�d", "�", "�", "&"]


# displaCy


@pytest.fixture
def framed_doc() -> Doc:
    """Two sentences with a frame each; the predicate of the second has no known sense."""
    words = ["I", "gave", "<b>", "it", ".", "He", "who", "ran", "."]
    doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[i in (0, 5) for i in range(9)])
    places = [("V", 1, 2), ("ARG0", 0, 1), ("ARG1", 2, 4), ("V", 7, 8), ("ARG0", 5, 6), ("R-ARG0", 6, 7)]
    spans = [Span(doc, start, end, label=label) for label, start, end in places]
    senses = {SENSES: ["give.01", None], SENSE_SCORES: [0.9, None]}
    attributes = {SCORES: [1.0] * 6, STARTS: [0, 3], ENERGIES: [], **senses}
    doc.spans["roles"] = SpanGroup(doc, name="roles", attrs=attributes, spans=spans)
    return doc


def test_each_frame_has_the_words_of_its_sentence(framed_doc: Doc) -> None:
    first, second = displacy_frames(framed_doc)
    assert first["tokens"] == ["I", "gave", "<b>", "it", "."] and second["tokens"] == ["He", "who", "ran", "."]
    assert [(span["label"], span["kb_id"]) for span in first["spans"]] == [("V", "give.01"), ("ARG0", ""), ("ARG1", "")]
    for entry, texts in ((first, ["gave", "I", "<b> it"]), (second, ["ran", "He", "who"])):
        assert [entry["text"][span["start"] : span["end"]] for span in entry["spans"]] == texts
        words = [" ".join(entry["tokens"][span["start_token"] : span["end_token"]]) for span in entry["spans"]]
        assert words == texts
    assert displacy_frames(list(framed_doc.sents)[1]) == [second]


def test_a_span_has_only_the_arguments_inside_it(framed_doc: Doc) -> None:
    [entry] = displacy_frames(framed_doc[1:3])
    assert entry["tokens"] == ["gave", "<b>"] and [span["label"] for span in entry["spans"]] == ["V", "ARG1"]
    assert displacy_frames(framed_doc[8:]) == []


def test_displacy_renders_frames_in_the_colours_of_their_roles(framed_doc: Doc) -> None:
    settings = {"style": "span", "manual": True, "options": DISPLACY_OPTIONS, "jupyter": False}
    html = displacy.render(displacy_frames(framed_doc), **settings)
    assert html.count(COLOURS["ARG0"]) > html.count(COLOURS["ARG1"]) > 0
    assert "give.01" in html and "R-ARG0" in html and "<b>" not in html


def test_a_drawn_predicate_has_its_sense(framed_doc: Doc) -> None:
    svg = draw(framed_doc)
    assert ">give.01<" in svg and svg.count(">V<") == 1
