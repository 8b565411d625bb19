"""Frames of docs that were split, joined, annotated again, or whose tokens were merged; set without a model."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Token

from spen_plugins.errors import RunError
from spen_spacy import Argument
from spen_spacy.extensions import ENERGY, keep_token_scores, set_extensions
from spen_spacy.reading import Reading, Window, find_window
from spen_spacy.srl import SpenSrl
from tests.pages import blocks

set_extensions()
NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")
MET = "Ann met Bob. Joe met Sue. Tim met Eva. Go at one! Go at six! All met two."
"""Sentences of one length. All but the last have frames."""
FRAMES = [(1, [("ARG0", 0, 1), ("ARG1", 2, 3)]), (5, [("ARG0", 4, 5), ("ARG1", 6, 7)])]
FRAMES += [(9, [("ARG0", 8, 9), ("ARG1", 10, 11)]), (12, []), (16, [])]


def annotate(
    doc: Doc, frames: Sequence[tuple[int, list[tuple[str, int, int]]]], name: str = "spen_srl", whole: bool = False
) -> Doc:
    """Writes frames as the component does; each has a different probability and sense."""
    reading = Reading(doc)
    answers = []
    for number, (predicate, arguments) in enumerate(frames):
        sent = doc[predicate].sent
        start, end = (0, len(doc)) if whole else (sent.start, sent.end)
        items = [
            {"role": role, "start": first - start, "end": last - start, "score": 0.5 + 2.0 ** -(number + i + 2)}
            for i, (role, first, last) in enumerate(arguments)
        ]
        window = Window(start, end, start, end)
        answers.append((window, 2.0 ** -(number + 1), {"predicate": {"index": predicate - start}, "arguments": items}))
    component = SpenSrl(name, {"spans_key": None, "energy": False, "window": 200, "rerank": 0})
    component._set(reading, answers, [(f"{name}.{i:02}", 0.5) for i in range(len(frames))])
    return doc


def list_frames(doc: Doc) -> list[tuple]:
    """Returns the frames as text and numbers."""
    return [
        (f.predicate.text, f.score, f.sense, [(a.role, a.span.text, a.score, a._sense) for a in f.arguments])
        for f in doc._.srl
    ]


def split_sentences(doc: Doc) -> list[Doc]:
    return [sent.as_doc(copy_user_data=True) for sent in doc.sents]


@pytest.mark.parametrize("space", [True, False])
def test_sentences_joined_in_any_order_have_their_own_frames(space: bool) -> None:
    doc = annotate(NLP(MET), FRAMES)
    sents = split_sentences(doc)
    assert [frame for part in sents for frame in list_frames(part)] == list_frames(doc) and len(list_frames(doc)) == 5
    for chosen in [combination for size in (1, 2, 3) for combination in product(sents, repeat=size)]:
        joined = Doc.from_docs(list(chosen), ensure_whitespace=space)
        assert list_frames(joined) == [frame for part in chosen for frame in list_frames(part)], joined.text
        token_frames = [token._.srl_frame for token in joined]
        assert [frame for frame in token_frames if frame] == joined._.srl


def test_sentences_of_a_doc_that_was_read_in_one_piece_have_their_own_frames() -> None:
    doc = annotate(NLP(MET), FRAMES[:3], whole=True)
    sents = split_sentences(doc)
    for chosen in product(sents, repeat=3):
        assert list_frames(Doc.from_docs(list(chosen))) == [frame for part in chosen for frame in list_frames(part)]


def test_a_sentence_that_another_ends_with_has_its_own_frame() -> None:
    doc = annotate(NLP("Ann met Bob. Hi. met Bob. Oh."), [(1, FRAMES[0][1][1:]), (6, [("ARG1", 7, 8)])])
    sents = split_sentences(doc)
    for chosen in product(sents, repeat=3):
        assert list_frames(Doc.from_docs(list(chosen))) == [frame for part in chosen for frame in list_frames(part)]


def test_joined_docs_can_be_split_joined_and_stored_again() -> None:
    first = annotate(NLP(MET), FRAMES)
    second = annotate(NLP("Bob met Ann. Tim met Joe."), FRAMES[:2])
    mixed = Doc.from_docs([split_sentences(second)[1], split_sentences(first)[2], split_sentences(first)[0]])
    expected = list_frames(second)[1:] + list_frames(first)[2:3] + list_frames(first)[:1]
    assert list_frames(mixed) == expected
    pieces = split_sentences(mixed)
    assert list_frames(Doc.from_docs(pieces[::-1])) == expected[::-1]
    [stored] = DocBin(docs=[Doc.from_docs(pieces)], store_user_data=True).get_docs(NLP.vocab)
    assert list_frames(stored) == expected and list_frames(stored.copy()) == expected


def test_a_doc_without_frames_gets_none_of_a_split_doc() -> None:
    sents = split_sentences(annotate(NLP(MET), FRAMES))
    assert [frame[1] for frame in list_frames(Doc.from_docs([sents[0], NLP("All met him.")]))] == [0.5]


def test_clauses_of_a_sentence_keep_their_frames_where_they_are_joined() -> None:
    doc = annotate(NLP("Ann met Bob and Joe met Sue"), [(1, FRAMES[0][1]), (5, FRAMES[1][1])])
    clauses = [doc[0:3].as_doc(copy_user_data=True), doc[4:7].as_doc(copy_user_data=True)]
    assert list_frames(Doc.from_docs(clauses[::-1])) == list_frames(doc)[::-1]


@pytest.mark.filterwarnings("ignore:.*W101")
def test_energies_belong_to_the_doc_they_were_computed_for() -> None:
    doc = NLP(MET)
    doc.user_data.setdefault(ENERGY, {})["spen_ner"] = 0.5
    keep_token_scores(doc, np.ones(len(doc), dtype=np.float32))
    assert doc._.spen_energy == {"spen_ner": 0.5} and doc[3]._.spen_score == 1
    assert Doc(NLP.vocab).from_bytes(doc.to_bytes())._.spen_energy == {"spen_ner": 0.5}
    for other in (*split_sentences(doc), Doc.from_docs([doc, doc]), doc[1:].as_doc(copy_user_data=True)):
        assert other._.spen_energy == {} and other[0]._.spen_score is None


def test_joining_docs_does_not_print_their_probabilities() -> None:
    doc = NLP("Ann met Bob.")
    keep_token_scores(doc, np.full(len(doc), 0.125, dtype=np.float32))
    with pytest.warns(UserWarning, match="W101") as warnings:
        Doc.from_docs([doc, doc])
    assert not any("0.125" in str(warning.message) for warning in warnings)


@pytest.mark.filterwarnings("error")
def test_the_last_written_frames_are_returned() -> None:
    doc = annotate(annotate(NLP("Ann met Bob."), FRAMES[:1]), FRAMES[:1])  # by the same component: no warning
    for name, earlier in (("roles", "spen_srl"), ("spen_srl", "roles")):
        with pytest.warns(UserWarning, match=rf"{name}: the doc has frames of another .* in doc.spans\['{earlier}'\]"):
            annotate(doc, FRAMES[:1], name)
        assert [frame.sense for frame in doc._.srl] == [f"{name}.00"]
        assert doc[1]._.srl_frame.sense == f"{name}.00"
        for other in (doc[:].as_doc(copy_user_data=True), Doc(NLP.vocab).from_bytes(doc.to_bytes()), doc.copy()):
            assert list_frames(other) == list_frames(doc)


def test_other_tokens_in_the_same_number_are_detected() -> None:
    doc = annotate(NLP("Ann Lee met Tim. Joe gave cannotgo it"), [(2, [("ARG0", 0, 2)]), (6, [("ARG2", 7, 8)])])
    keep_token_scores(doc, np.arange(len(doc), dtype=np.float32))
    scores = [(span, span._.spen_score) for span in doc.spans["spen_srl"]]
    assert all(score is not None for _, score in scores) and [token._.spen_score for token in doc] == [*range(len(doc))]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[7], ["cannot", "go"], heads=[(doc[7], 1), doc[6]])
    assert len(doc) == 9
    for read_extension in (lambda: doc._.srl, lambda: doc[1]._.srl_frame, lambda: doc[5]._.srl_frame):
        with pytest.raises(RunError, match=r"found the words .* Merge or split tokens in a component before"):
            read_extension()
    assert all(span._.spen_score is None for span in doc.spans["spen_srl"])
    assert [token._.spen_score for token in doc] == [None] * 8 + [8]  # the last token has not moved


def test_whitespace_tokens_have_no_scores() -> None:
    doc = NLP.make_doc("  Ann \n\n met\tBob .")
    keep_token_scores(doc, np.array([np.nan if t.is_space else t.i for t in doc], dtype=np.float32))
    assert [token._.spen_score for token in doc] == [None if t.is_space else t.i for t in doc]
    keep_token_scores(NLP.make_doc(""), np.zeros(0, dtype=np.float32))


def test_an_argument_keeps_its_sense() -> None:
    span = NLP.make_doc("Ann gave it")[2:3]
    argument = Argument("ARG0", span, 0.5, "give.01")
    assert argument._replace(role="ARG1").description == "thing given"
    assert Argument._make(argument).description is None


def test_frames_can_be_in_sets() -> None:
    doc = annotate(NLP(MET), FRAMES)
    frames = doc._.srl
    assert set(frames) == set(doc._.srl) and len(set(frames)) == 5
    assert hash(frames[0]) == hash(doc[1]._.srl_frame)


EXTENSIONS = [(Token, "srl_frame"), (Doc, "srl")]


@pytest.fixture(params=EXTENSIONS, ids=lambda extension: extension[1])
def foreign_extension(request: pytest.FixtureRequest) -> Iterator[tuple[type, str]]:
    for owner, name in EXTENSIONS:
        owner.remove_extension(name)
    owner, name = request.param
    owner.set_extension(name, default="mine")
    yield request.param
    owner.remove_extension(name)
    set_extensions()


def test_a_foreign_extension_is_kept_with_a_warning(
    foreign_extension: tuple[type, str], recwarn: pytest.WarningsRecorder
) -> None:
    owner, name = foreign_extension
    set_extensions()
    assert [str(warning.message) for warning in recwarn] == [
        f"kept the existing extension {owner.__name__}._.{name}. To use that of spen-spacy, call "
        f"spacy.tokens.{owner.__name__}.remove_extension('{name}'), then spen_spacy.set_extensions()"
    ]
    doc = NLP.make_doc("x")
    values = {"srl_frame": doc[0]._.srl_frame, "srl": doc._.srl}
    assert values == {"srl_frame": None, "srl": [], name: "mine"}
    owner.remove_extension(name)
    set_extensions()
    set_extensions()
    assert len(recwarn) == 1 and (doc[0]._.srl_frame, doc._.srl) == (None, [])


@given(st.integers(0, 50), st.integers(1, 900), st.integers(1, 300), st.data())
def test_a_word_has_room_in_its_window(start: int, length: int, size: int, data: st.DataObject) -> None:
    place = start + data.draw(st.integers(0, length - 1))
    window = find_window(place, start, start + length, size)
    assert window.end - window.start == min(size, length)
    assert place - window.start >= min(size // 4, place - start)
    assert window.end - 1 - place >= min(size // 4, start + length - 1 - place)


def test_words_near_each_other_share_a_window() -> None:
    assert len({find_window(place, 7, 1007, 200) for place in range(7, 1007)}) <= 1000 // 50
    assert {find_window(place, 7, 207, 200) for place in range(7, 207)} == {Window(7, 207, 7, 207)}


def test_the_pages_function_of_predicates_can_be_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = [block for block in blocks("docs/spacy.md", "python") if "misc(" in block]
    (tmp_path / "giving.py").write_text("import spacy\n\n\n" + block.split("nlp = ")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("giving")
    try:
        predicates = spacy.registry.misc.get("givers.v1")()
        restored = pickle.loads(pickle.dumps(predicates))
        assert [token.text for token in restored(NLP("The girl gave the boy a book."))] == ["gave"]
    finally:
        del sys.modules["giving"]
