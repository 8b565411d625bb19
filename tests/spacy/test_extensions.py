"""Extensions of docs that have changed, and their speed."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from spen_plugins.errors import RunError
from spen_spacy.extensions import (
    ENERGIES,
    SCORES,
    SENSE_SCORES,
    SENSES,
    STARTS,
    _find_beginning,
    keep_frames,
    make_group,
    set_extensions,
)
from spen_spacy.kept import FRAMES

set_extensions()
VOCAB = spacy.blank("en").vocab


def make_doc(*places: tuple[int, int, str]) -> tuple[Doc, list[Span]]:
    """Returns a doc and spans in this order, whose probabilities are 0.5, 0.25 and so on."""
    doc = Doc(VOCAB, words=list("abcdefgh"))
    spans = [Span(doc, start, end, label=label) for start, end, label in places]
    doc.spans["ours"] = make_group(doc, "ours", spans, [0.5**i for i in range(1, len(spans) + 1)])
    return doc, spans


def test_scores_are_found_in_groups_of_any_order() -> None:
    _, spans = make_doc((5, 6, "V"), (0, 2, "A"), (6, 8, "B"), (0, 2, "B"), (0, 3, "A"), (7, 8, "A"))
    assert [span._.spen_score for span in spans] == [0.5**i for i in range(1, 7)]
    assert Span(spans[0].doc, 0, 2, label="C")._.spen_score is None


def test_only_spans_that_begin_at_a_token_are_examined() -> None:
    doc, _ = make_doc((5, 6, "V"), (0, 2, "A"), (5, 8, "B"), (7, 8, "A"))
    assert [sorted(map(int, _find_beginning(doc.spans["ours"], i))) for i in range(8)] == [
        [1], [], [], [], [], [0, 2], [], [3],
    ]  # fmt: skip


def test_scores_of_other_components_are_found() -> None:
    doc = Doc(VOCAB, words=list("abc"))
    spans = [Span(doc, 1, 2, label="X"), Span(doc, 0, 1, label="X")]
    doc.spans["sc"] = SpanGroup(doc, name="sc", attrs={"scores": np.array([0.25, 0.5])}, spans=spans)
    assert [span._.spen_score for span in spans] == [0.25, 0.5]


def test_spans_added_by_hand_have_no_scores() -> None:
    doc, spans = make_doc((0, 1, "A"))
    doc.spans["ours"].append(Span(doc, 1, 2, label="A"))
    assert doc.spans["ours"][1]._.spen_score is None and spans[0]._.spen_score is None


def test_frames_are_not_returned_for_other_tokens(nlp: Language) -> None:
    """spaCy doesn't adapt the spans of groups when tokens are merged, so they would cover other words."""
    doc = nlp("The old farmer told Anna Smith in Boston that they sent a letter.")
    assert doc._.srl and doc.ents
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:3])
    for read_extension in (lambda: doc._.srl, lambda: doc[0]._.srl_frame):
        with pytest.raises(
            RunError, match=r"found 12 tokens .* expected 14 .* Merge or split tokens in a component be"
        ):
            read_extension()
    assert [span._.spen_score for span in doc.ents] == [None] * len(doc.ents) and doc[0]._.spen_score is None
    assert nlp(doc)._.srl


def test_frames_are_not_returned_for_other_spans(nlp: Language) -> None:
    doc = nlp("The old farmer told Anna a story.")
    doc.spans["spen_srl"].append(Span(doc, 0, 1, label="V"))
    with pytest.raises(RunError, match="leave its spans as they are"):
        _ = doc._.srl


def list_frames(doc: Doc) -> list[tuple]:
    """Returns the frames as text and numbers."""
    return [
        (
            f.predicate.text,
            f.score,
            f.energy,
            f.sense,
            f.sense_score,
            [(a.role, a.span.text, a.score) for a in f.arguments],
        )
        for f in doc._.srl
    ]


@pytest.fixture
def framed_doc(nlp: Language) -> Doc:
    doc = nlp.make_doc("The old farmer told Anna Smith in Boston that they sent a letter.")
    places = [(3, 4, "V"), (0, 3, "ARG0"), (4, 6, "ARG2"), (8, 13, "ARG1"), (10, 11, "V"), (9, 10, "ARG0")]
    spans = [Span(doc, first, last, label=label) for first, last, label in places]
    senses = {SENSES: ["tell.01", "send.01"], SENSE_SCORES: [0.75, 0.5]}
    frame_attributes = {STARTS: [0, 4], ENERGIES: [-1.5, -2.0]} | senses
    doc.spans["frames"] = group = make_group(doc, "frames", spans, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], **frame_attributes)
    keep_frames(doc, spans, group.attrs[SCORES], frame_attributes, [doc[:], doc[:]])
    return doc


def test_a_span_as_a_doc_has_the_frames_in_it(framed_doc: Doc) -> None:
    full_doc = framed_doc[:].as_doc(copy_user_data=True)
    assert list_frames(full_doc) == list_frames(framed_doc)
    assert [argument.description for argument in full_doc._.srl[0].arguments] == ["Speaker", "Hearer", "Utterance"]
    later_doc = framed_doc[4:].as_doc(copy_user_data=True)
    assert list_frames(later_doc) == list_frames(framed_doc)[1:]
    assert framed_doc[5:5].as_doc(copy_user_data=True)._.srl == []


@pytest.mark.filterwarnings("ignore:.*W101")
def test_frames_outside_a_span_do_not_appear_in_joined_docs(nlp: Language, framed_doc: Doc) -> None:
    """The span's doc keeps them at positions beyond its text, where the next doc's words are."""
    piece = framed_doc[0:4].as_doc(copy_user_data=True)
    for length in range(1, 12):
        words = ["x" * length, *(["word"] * 12)]
        joined = Doc.from_docs([piece, Doc(nlp.vocab, words=words), framed_doc[8:].as_doc(copy_user_data=True)])
        assert [frame[0] for frame in list_frames(joined)] == ["told", "sent"], length


def test_an_argument_that_is_cut_is_left_out(framed_doc: Doc) -> None:
    full_frame, _ = list_frames(framed_doc)
    [cut_frame] = list_frames(framed_doc[1:10].as_doc(copy_user_data=True))
    assert cut_frame == (*full_frame[:-1], [argument for argument in full_frame[-1] if argument[1] == "Anna Smith"])


def test_a_reannotated_doc_has_no_older_frames(nlp: Language) -> None:
    doc = nlp("The old farmer gave Bob a book.")
    keys = {key for key in doc.user_data if key[:2] == ("._.", FRAMES)}
    doc.user_data[("._.", FRAMES, 0, None)] = {}
    assert len(keys) == 1 and doc._.srl
    assert {key for key in nlp(doc).user_data if key[:2] == ("._.", FRAMES)} == keys
