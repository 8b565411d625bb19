"""Constituents among a doc's span groups, which `doc._.tree`, `span._.tree` and `doc._.noun_phrases` read.

Like other attributes of span groups, trees are kept by `Doc.to_bytes` and `DocBin`, and not by `Doc.from_docs` and
`Span.as_doc`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from spacy.tokens import Doc, Span, SpanGroup

from spen_plugins import RunError

PIECES = "tree_pieces"
"""Attribute of a span group of constituents: first token and end (exclusive) of each tree, one after the other."""
SIZES = "tree_sizes"
"""Attribute of a span group of constituents: the number of tokens in the doc, and of spans in the group."""
JOINT = "+"
"""Joins the labels of a unary chain, as in S+VP."""


def keep_trees(doc: Doc, name: str, pieces: Sequence[tuple[int, int]], spans: Sequence[Span]) -> None:
    """Writes the trees of a doc: the begin and end of each, and all constituents, those of a tree from the top."""
    places = [place for piece in pieces for place in piece]
    doc.spans[name] = SpanGroup(doc, name=name, attrs={PIECES: places, SIZES: [len(doc), len(spans)]}, spans=spans)


def doc_tree(doc: Doc) -> str | None:
    """The trees of a doc in brackets, one per line; None if no component has parsed it.

    Raises:
        RunError: the number of tokens, or of the group's spans, is no longer that of the parsed doc.
    """
    return _write_trees(doc, 0, len(doc))


def span_tree(span: Span) -> str | None:
    """The trees within a span, such as a sentence, as `doc_tree` writes them."""
    return _write_trees(span.doc, span.start, span.end)


def noun_phrases(doc: Doc) -> list[Span]:
    """The constituents that are NP, from left to right; a larger phrase goes before those in it.

    Raises:
        RunError: as in `doc_tree`.
    """
    group = _find_group(doc)
    spans = () if group is None else group
    return [Span(doc, span.start, span.end, label="NP") for span in spans if "NP" in span.label_.split(JOINT)]


def _find_group(doc: Doc) -> SpanGroup | None:
    """The constituents that were written last."""
    group = next((group for group in reversed([*doc.spans.values()]) if PIECES in group.attrs), None)
    if group is not None and [*group.attrs[SIZES]] != [len(doc), len(group)]:
        raise RunError(
            f"doc.spans[{group.name!r}] no longer holds the predicted constituents: found {len(doc)} tokens and "
            f"{len(group)} spans; expected {' and '.join(map(str, group.attrs[SIZES]))}. Merge or split tokens in a "
            "component before spen_parser, and leave its spans as they are"
        )
    return group


def _write_trees(doc: Doc, first: int, last: int) -> str | None:
    group = _find_group(doc)
    if group is None:
        return None
    opening: dict[int, list[Span]] = defaultdict(list)
    for span in group:
        opening[span.start].append(span)
    places = group.attrs[PIECES]
    pieces = zip(places[::2], places[1::2], strict=True)
    return "\n".join(_write(doc, start, end, opening) for start, end in pieces if first <= start and end <= last)


def _write(doc: Doc, start: int, end: int, opening: dict[int, list[Span]]) -> str:
    """A tree; XX stands for a part of speech that the doc doesn't have."""
    text = "(TOP"
    closing: Counter[int] = Counter()
    for token in doc[start:end]:
        for span in opening.get(token.i, ()):
            labels = span.label_.split(JOINT)
            text += "".join(f" ({label}" for label in labels)
            closing[span.end] += len(labels)
        if not token.is_space:
            word = re.sub(r"\s+", "_", token.text.replace("(", "-LRB-").replace(")", "-RRB-"))
            text += f" ({token.tag_ or 'XX'} {word})"
        text += ")" * closing[token.i + 1]
    return text + ")"
