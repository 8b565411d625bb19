"""Words, pieces and windows of docs."""

from __future__ import annotations

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spen_spacy.reading import Entity, Reading, Window, drop_overlaps, windows

NLP = spacy.blank("en")


def join_pieces(reading: Reading, *pieces: tuple[int, int]) -> list[str]:
    return [" ".join(reading.words[start:end]) for start, end in pieces]


def split_by_rule(text: str) -> list[str]:
    reading = Reading(NLP(text))
    return join_pieces(reading, *reading.pieces("rule", "doc"))


def test_whitespace_is_left_out() -> None:
    reading = Reading(NLP("  New \n York\t "))
    assert reading.words == ["New", "York"]
    assert [reading.doc[place].text for place in reading.places] == reading.words


@pytest.mark.parametrize("text", ["", " ", "\n\n \t"])
def test_blank_text_has_no_pieces(text: str) -> None:
    assert Reading(NLP(text)).pieces("auto", "doc") == []


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("He left. She stayed", ["He left .", "She stayed"]),
        ("Why?! Because...", ["Why ? !", "Because ..."]),
        ('"He left." She stayed.', ['" He left . "', "She stayed ."]),
        ('He left. "She stayed."', ["He left .", '" She stayed . "']),
        ("(He left.) She stayed", ["( He left . )", "She stayed"]),
        ("A title\n\nA text", ["A title", "A text"]),
        ("One\nline", ["One line"]),
        ("Name\tCity\nAnna\tYork\r\nBob\t\n", ["Name", "City", "Anna", "York", "Bob"]),
        ("One\nline\n\tTwo\nlines", ["One line", "Two lines"]),
        (". . x", [". .", "x"]),
    ],
)
def test_pieces_by_rule(text: str, pieces: list[str]) -> None:
    assert split_by_rule(text) == pieces


def test_sentences_of_the_doc_come_first_and_can_be_overruled() -> None:
    doc = Doc(NLP.vocab, words=["a", ".", "\n", "b", "c"], sent_starts=[True, False, False, False, True])
    reading = Reading(doc)
    assert join_pieces(reading, *reading.pieces("auto", "rule")) == ["a . b", "c"]
    assert join_pieces(reading, *reading.pieces("rule", "rule")) == ["a .", "b c"]
    assert join_pieces(reading, *reading.pieces("doc", "rule")) == ["a . b c"]


def test_blank_lines_and_tabs_end_pieces_of_any_doc() -> None:
    words = ["Boston", "\t", "Anna", "Lee", "\r\n\r\n", "Bob", "\n", "Ray", "."]
    for starts, pieces in ((None, ["Bob Ray ."]), ([i in (0, 7) for i in range(len(words))], ["Bob", "Ray ."])):
        reading = Reading(Doc(NLP.vocab, words=words, sent_starts=starts))
        assert join_pieces(reading, *reading.pieces("auto", "doc")) == ["Boston", "Anna Lee", *pieces]
        assert len(reading.pieces("doc", "rule")) == 1


def test_docs_without_sentences_are_split_as_the_component_is_configured() -> None:
    reading = Reading(NLP("One. Two"))
    assert len(reading.pieces("auto", "rule")) == 2 and len(reading.pieces("auto", "doc")) == 1


@given(st.integers(0, 50), st.integers(1, 700), st.integers(1, 300))
def test_each_word_is_owned_by_the_window_where_it_is_farthest_from_an_edge(start: int, length: int, size: int) -> None:
    end = start + length
    all_windows = list(windows(start, end, size))
    assert [i for w in all_windows for i in range(w.own_start, w.own_end)] == list(range(start, end))
    assert all(w.start >= start and w.end <= end and w.end - w.start == min(size, length) for w in all_windows)

    def margin(window: Window, i: int) -> float:
        """Returns the distance to the nearer edge that is not an edge of the piece."""
        left = i - window.start if window.start > start else float("inf")
        right = window.end - 1 - i if window.end < end else float("inf")
        return min(left, right)

    for window in all_windows:
        for i in range(window.own_start, window.own_end):
            others = [margin(other, i) for other in all_windows if other.start <= i < other.end]
            assert margin(window, i) >= max(others) - 1  # in the middle of an even overlap both are equally good


def test_the_number_of_windows_is_linear() -> None:
    assert len(list(windows(0, 50_000, 200))) <= 50_000 / 160 + 1


def test_the_more_probable_of_two_overlapping_spans_is_kept() -> None:
    a, b, c = Entity(0, 3, "X", 0.5), Entity(2, 4, "X", 0.9), Entity(4, 5, "Y", 0.1)
    assert drop_overlaps([c, a, b]) == [b, c]
    assert drop_overlaps([a, Entity(2, 4, "X", 0.4), c]) == [a, c]
