"""Citations from files: tokens, gaps and fields, and errors that name the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spen_implicit.citations.reader import BREAK, FIELDS, GAP, GLUED, SPACE, read_citation, read_citations
from spen_plugins.errors import DataError

ONE = "<author> A. Cau, W.-P. de Roever. </author> <title> Dijkstra's. </title>"


def read(tmp_path: Path, text: str, name: str = "some.txt", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_citations(path, **options)


def test_words_and_punctuation_are_tokens_of_their_field(tmp_path: Path) -> None:
    (example,) = read(tmp_path, ONE + " <br>\n\n")
    assert example.words == (
        "A",
        ".",
        "Cau",
        ",",
        "W",
        ".",
        "-",
        "P",
        ".",
        "de",
        "Roever",
        ".",
        "Dijkstra",
        "'",
        "s",
        ".",
    )
    assert example.tags == ("author",) * 12 + ("title",) * 4
    assert example.line == 1 and example.line_of(15) == 1
    gaps = [
        example.columns[GAP][example.words.index(word)] for word in ("A", "Cau", ",", "-", "P", "de", "Dijkstra", "s")
    ]
    assert gaps == [BREAK, BREAK, GLUED, GLUED, GLUED, BREAK, BREAK, GLUED]
    assert example.columns[GAP][example.words.index("Roever")] == SPACE


def test_stray_punctuation_belongs_to_the_field_before(tmp_path: Path) -> None:
    line = '" <title> Logic </title> . <br> <date> 1990 </date> ,'
    (example,) = read(tmp_path, line)
    assert list(zip(example.words, example.tags, strict=True)) == [
        ('"', "title"),
        ("Logic", "title"),
        (".", "title"),
        ("1990", "date"),
        (",", "date"),
    ]


def test_a_plain_text_is_read_like_its_tagged_form(tmp_path: Path) -> None:
    plain = re.sub(r"</?\w+>", "", ONE)
    (tagged,) = read(tmp_path, ONE)
    (example,) = read(tmp_path, f"\n{plain}<br>\n", gold=False)
    assert (example.words, example.columns, example.tags, example.line) == (tagged.words, tagged.columns, None, 2)
    assert read_citation(plain).words == read_citation(ONE).words and read_citation(ONE).tags == tagged.tags


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<author> A. <title> B </title>", r"found <author> before <title> in '<author> A\. <title>.*</author>"),
        ("<author> A. ", r"found <author> in .*expected <author> … </author>, one field after the other"),
        ("<author> A. </title>", "found <author> before </title>"),
        ("A. </author>", "found </author> in .*expected <author> …"),
        ("<autor> A. </autor>", r"found field <autor> in .*expected one of author, .*volume\. Did you mean 'author'"),
        ("<TITLE> A. </TITLE>", r"found field <TITLE> in .*Did you mean 'title'"),
        ("<author> A. </author> et al <date> 1 </date>", "found 'et al' outside of fields"),
        ("<date> 1 </date> and more", "found 'and more' outside of fields"),
        ("Plain words", "found no field in 'Plain words'"),
    ],
)
def test_a_broken_line_is_an_error_that_shows_it(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"some\.txt:2: {message}"):
        read(tmp_path, f"{ONE}\n{line}\n")


def test_user_fields(tmp_path: Path) -> None:
    (example,) = read(tmp_path, "<isbn> 1-2 </isbn>", fields=[*FIELDS, "isbn"])
    assert example.tags == ("isbn",) * 3


def test_xml_is_read_without_its_fields(tmp_path: Path) -> None:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<dataset>\n <sequence>\n  <author>Ö. Ay &amp; B.</author>\n'
        "  <container-title>In: X</container-title>\n </sequence>\n <sequence><date></date></sequence>\n</dataset>"
    )
    (example,) = read(tmp_path, text, "pool.xml", gold=False)
    assert example.words == ("Ö", ".", "Ay", "&", "B", ".", "In", ":", "X") and example.tags is None
    with pytest.raises(DataError, match="fields tagged inline"):
        read(tmp_path, text, "pool.xml")
    with pytest.raises(DataError, match=r"pool\.xml:3: found broken XML"):
        read(tmp_path, "<dataset>\n<sequence>\n</dataset>", "pool.xml", gold=False)
    with pytest.raises(DataError, match="found <other> without a <sequence>"):
        read(tmp_path, "<other/>", "pool.xml", gold=False)
