"""Reads citations, one per line, with fields tagged inline, and anystyle's XML.

    <author> W. Landi and B. G. Ryder. </author> <title> Aliasing with and without pointers. </title>

Words and marks of punctuation are tokens, as in `4 ( 2 ) ,`. A line without tags has unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from spen_plugins import DataError, did_you_mean, read_lines, shorten
from spen_plugins.sentences import TaggedSentence

FIELDS = (
    "author",
    "booktitle",
    "date",
    "editor",
    "institution",
    "journal",
    "location",
    "note",
    "pages",
    "publisher",
    "tech",
    "title",
    "volume",
)
"""The fields of Cora (Seymore, McCallum & Rosenfeld 1999)."""

GAP = "gap"
"""The column of the white space before a token; its values are `GAPS`."""
GLUED, SPACE, BREAK = GAPS = ("glued", "space", "break")
"""No white space; white space; white space after punctuation, or the beginning."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_TAG = re.compile(r"<\s*(/?)\s*([A-Za-z][\w-]*)\s*(/?)>")
_LINE_BREAK = "br"
_XML = "anystyle's <dataset> of <sequence> elements"
_ENDS = frozenset(".,:;!?)]}\"'”’»")


def read_citations(path: Path, fields: Collection[str] = FIELDS, gold: bool = True) -> list[TaggedSentence]:
    """All citations of a file; those of a file that ends in `.xml` (anystyle's) without tags.

    The tag of a token is its field. Punctuation outside of fields belongs to the field before it; `<br>` is skipped.
    `DataError` for an unknown field, and, with `gold`, for a line without fields.
    """
    if path.suffix.lower() == ".xml":
        if gold:
            raise DataError(path, None, "an XML file, which is read without its fields", "fields tagged inline")
        return _read_xml(path)
    sentences = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            pieces = list(_split_pieces(path, number, line, fields, gold))
            if any(text.strip() for _, text in pieces):
                sentences.append(make_sentence(pieces, number))
    return sentences


def read_citation(text: str, fields: Collection[str] = FIELDS, number: int | None = None) -> TaggedSentence:
    """The citation of one text, perhaps a line's, with or without tags; `DataError` as in `read_citations`."""
    return make_sentence(list(_split_pieces("input", number, text, fields, gold=False)))


def drop_markup(line: str, fields: Collection[str] = FIELDS) -> str:
    """The line; without its tags, such as `<b>`, if none of them is a field."""
    return line if any(tag[2] in fields for tag in _TAG.finditer(line)) else _TAG.sub(" ", line)


def _split_pieces(
    path: object, number: int | None, line: str, fields: Collection[str], gold: bool
) -> Iterator[tuple[str | None, str]]:
    """Each field and its text, in order; the field is None in a line without tags."""
    excerpt = shorten(line.strip(), 100)
    tags = [tag for tag in _TAG.finditer(line) if tag[2] != _LINE_BREAK]
    if not tags:
        if gold:
            raise DataError(path, number, f"no field in {excerpt}", "fields, as in <author> A. Writer. </author>")
        yield None, _TAG.sub(" ", line)
        return
    last_field, end = None, 0
    for opening, closing in zip(tags[::2], [*tags[1::2], None], strict=False):
        name = opening[2]
        if name not in fields:
            expected = f"one of {', '.join(fields)}.{did_you_mean(name, fields)}"
            raise DataError(path, number, f"field <{name}> in {excerpt}", expected)
        if opening[1] or closing is None or not closing[1] or closing[2] != name:
            tag = opening[0] + ("" if closing is None else f" before {closing[0]}")
            raise DataError(path, number, f"{tag} in {excerpt}", f"<{name}> … </{name}>, one field after the other")
        yield from _read_punctuation(path, number, line[end : opening.start()], last_field or name, excerpt)
        yield name, line[opening.end() : closing.start()]
        last_field, end = name, closing.end()
    assert last_field is not None
    yield from _read_punctuation(path, number, line[end:], last_field, excerpt)


def _read_punctuation(
    path: object, number: int | None, text: str, field: str, excerpt: str
) -> Iterator[tuple[str, str]]:
    """Punctuation between two fields, which belongs to `field`."""
    text = _TAG.sub(" ", text).strip()
    if re.search(r"\w", text):
        raise DataError(path, number, f"{shorten(text)} outside of fields, in {excerpt}", "all words within fields")
    if text:
        yield field, text


def make_sentence(pieces: Sequence[tuple[str | None, str]], line: int | None = None) -> TaggedSentence:
    """The citation of these fields and their texts, in order; an unknown field is None."""
    words: list[str] = []
    gaps: list[str] = []
    tags: list[str | None] = []
    for field, text in pieces:
        end = -1
        for token in _TOKEN.finditer(text):
            is_glued = token.start() == end
            gaps.append(GLUED if is_glued else BREAK if not words or words[-1] in _ENDS else SPACE)
            words.append(token[0])
            tags.append(field)
            end = token.end()
    gold = None if None in tags else tuple(str(tag) for tag in tags)
    return TaggedSentence(tuple(words), gold, {GAP: tuple(gaps)}, line, (line,) * len(words) if line else None)


def _read_xml(path: Path) -> list[TaggedSentence]:
    """The text of each `<sequence>`."""
    text = "\n".join(read_lines(path))
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataError(path, error.position[0], f"broken XML ({error})", _XML) from None
    texts = (" ".join(sequence.itertext()) for sequence in root.iter("sequence"))
    sentences = [sentence for text in texts if (sentence := make_sentence([(None, text)])).words]
    if not sentences:
        raise DataError(path, None, f"<{root.tag}> without a <sequence>", _XML)
    return sentences
