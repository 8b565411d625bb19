"""A sentence with tags from a Python or JSON value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from spen_plugins.data.schemes import Scheme, Span, write_tags
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.errors import DataError

FORM = '{"words": ["in", "New", "York"], "tags": ["O", "B-LOC", "I-LOC"]}'
bad = partial(DataError, "input", None)


def wrap_words(item: Any) -> Any:
    """A list or array of words as an item for `parse_tagged`; anything else as it is."""
    item = item.tolist() if hasattr(item, "tolist") else item
    return {"words": item} if isinstance(item, (list, tuple)) else item


def parse_tagged(item: Any, scheme: str = "none", columns: Mapping[str, Any] | None = None) -> TaggedSentence:
    """The sentence of one item: `{"words": […]}`, or a text, which is split at blanks.

    Optional: `"columns"`, a list of values by name, of the known ones if these are given, and gold: `"tags"` in the
    scheme, or, where tags are spans, `"entities"`, tables of `type`, `start` and `end` (exclusive), which go before
    tags. What `spen predict` writes has this form.
    """
    item = {"words": item.split()} if isinstance(item, str) else item
    if not isinstance(item, Mapping):
        raise bad(repr(item)[:80], '{"words": ["in", "New", "York"]}, or a text')
    words = _strings(item.get("words"), "words")
    if not words:
        raise bad("no word", "at least one")
    given, tags, entities = item.get("columns") or {}, item.get("tags"), item.get("entities")
    if not isinstance(given, Mapping) or (columns is not None and not given.keys() <= columns.keys()):
        raise bad(f"columns {given!r:.80}", f"lists of values by name; known: {', '.join(columns or ()) or 'none'}")
    values = {name: _strings(some, f"columns.{name}", len(words)) for name, some in given.items()}
    if entities is not None and scheme != "none":
        spans = given_spans(entities, "type", "entity", len(words), '{"type": "LOC", "start": 1, "end": 3}')
        tags = tags_of(spans, "entity", len(words), scheme)  # type: ignore[arg-type]
    return TaggedSentence(words, None if tags is None else _strings(tags, "tags", len(words)), values)


def given_spans(values: Any, key: str, what: str, words: int, form: str) -> list[Span]:
    """Spans from tables of a type, under `key`, `start` and `end` (exclusive); `form` is an example, for errors."""
    if not isinstance(values, (list, tuple)):
        raise bad(f"{_several(what)} {values!r:.80}", f"a list of {form}")
    spans = []
    for value in values:
        table = value if isinstance(value, Mapping) else {}
        kind, start, end = (table.get(name) for name in (key, "start", "end"))
        numbers = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end))
        if not isinstance(kind, str) or not kind or not numbers or not 0 <= start < end <= words:
            raise bad(f"{what} {value!r:.80}", f"{form}, words from 0 to {words}, the end exclusive")
        spans.append(Span(kind, start, end))
    return spans


def tags_of(spans: Sequence[Span], what: str, words: int, scheme: Scheme) -> list[str]:
    """The tags of spans in any order."""
    ordered = sorted(spans, key=lambda span: span.start)
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise bad(f"{before.type} and {after.type}, which share word {after.start}", f"{_several(what)} apart")
    return write_tags(ordered, words, scheme)


def _several(what: str) -> str:
    return what.removesuffix("y") + ("ies" if what.endswith("y") else "s")


def _strings(values: Any, what: str, size: int | None = None) -> tuple[str, ...]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise bad(f"{what} {values!r:.80}", "a list of strings")
    if size is not None and len(values) != size:
        raise bad(f"{len(values)} {what} for {size} words", "one a word")
    return tuple(values)
