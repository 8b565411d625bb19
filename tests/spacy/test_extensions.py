"""What can be asked of docs after they were changed, and how fast."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from spen_plugins.errors import RunError
from spen_spacy.extensions import _beginning, group_of, set_extensions

set_extensions()
VOCAB = spacy.blank("en").vocab


def doc_with(*places: tuple[int, int, str]) -> tuple[Doc, list[Span]]:
    """A doc, and spans in this order, whose probabilities are 0.5, 0.25 and so on."""
    doc = Doc(VOCAB, words=list("abcdefgh"))
    spans = [Span(doc, start, end, label=label) for start, end, label in places]
    doc.spans["ours"] = group_of(doc, "ours", spans, [0.5**i for i in range(1, len(spans) + 1)])
    return doc, spans


def test_scores_are_found_in_groups_of_any_order() -> None:
    _, spans = doc_with((5, 6, "V"), (0, 2, "A"), (6, 8, "B"), (0, 2, "B"), (0, 3, "A"), (7, 8, "A"))
    assert [span._.spen_score for span in spans] == [0.5**i for i in range(1, 7)]
    assert Span(spans[0].doc, 0, 2, label="C")._.spen_score is None


def test_only_spans_that_begin_there_are_looked_at() -> None:
    doc, _ = doc_with((5, 6, "V"), (0, 2, "A"), (5, 8, "B"), (7, 8, "A"))
    assert [sorted(map(int, _beginning(doc.spans["ours"], i))) for i in range(8)] == [
        [1], [], [], [], [], [0, 2], [], [3],
    ]  # fmt: skip


def test_scores_of_other_components_are_found() -> None:
    doc = Doc(VOCAB, words=list("abc"))
    spans = [Span(doc, 1, 2, label="X"), Span(doc, 0, 1, label="X")]
    doc.spans["sc"] = SpanGroup(doc, name="sc", attrs={"scores": np.array([0.25, 0.5])}, spans=spans)
    assert [span._.spen_score for span in spans] == [0.25, 0.5]


def test_spans_added_by_hand_have_no_scores() -> None:
    doc, spans = doc_with((0, 1, "A"))
    doc.spans["ours"].append(Span(doc, 1, 2, label="A"))
    assert doc.spans["ours"][1]._.spen_score is None and spans[0]._.spen_score is None


def test_frames_are_not_told_of_other_tokens(nlp: Language) -> None:
    """spaCy leaves the spans of groups as they are where tokens are merged, so that they would be other words'."""
    doc = nlp("The old farmer told Anna Smith in Boston that they sent a letter.")
    assert doc._.srl and doc.ents
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:3])
    for ask in (lambda: doc._.srl, lambda: doc[0]._.srl_frame):
        with pytest.raises(
            RunError, match=r"found 12 tokens .* expected 14 .* Merge or split tokens in a component be"
        ):
            ask()
    assert [span._.spen_score for span in doc.ents] == [None] * len(doc.ents) and doc[0]._.spen_score is None
    assert nlp(doc)._.srl


def test_frames_are_not_told_of_other_spans(nlp: Language) -> None:
    doc = nlp("The old farmer told Anna a story.")
    doc.spans["spen_srl"].append(Span(doc, 0, 1, label="V"))
    with pytest.raises(RunError, match="leave its spans as they are"):
        _ = doc._.srl
