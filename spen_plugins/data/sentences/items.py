"""Sentences with tags or semantic roles from Python and JSON values, and from raw text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from spen_plugins.data.schemes import Scheme, Span, write_tags
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.srl import Proposition, Sentence
from spen_plugins.data.text import RawText
from spen_plugins.errors import DataError

FORM = '{"words": ["in", "New", "York"], "tags": ["O", "B-LOC", "I-LOC"]}'
bad = partial(DataError, "input", None)


def wrap_words(item: Any) -> Any:
    """A list or array of words as an item for `parse_tagged`; anything else as it is."""
    item = item.tolist() if hasattr(item, "tolist") else item
    return {"words": item} if isinstance(item, (list, tuple)) else item


def _split_at_blanks(text: str) -> list[str]:
    words = text.split()
    if any(word[-1] in ",;:" and word[-2:-1].isalnum() for word in words) or re.search(r"\w[.!?]\s*$", text):
        warnings.warn(
            "a text is split at blanks only, so a comma or full stop stays part of the word before it; pass lists of "
            "words, or use spen predict --text, which tokenises",
            stacklevel=2,
        )
    return words


def parse_tagged(item: Any, scheme: str = "none", columns: Mapping[str, Any] | None = None) -> TaggedSentence:
    """The sentence of one item: `{"words": […]}`, or a text, which is split at blanks.

    Optional: `"columns"`, a list of values by name, of the known ones if these are given, and gold: `"tags"` in the
    scheme, or, where tags are spans, `"entities"`, tables of `type`, `start` and `end` (exclusive), which go before
    tags. What `spen predict` writes has this form.
    """
    item = {"words": _split_at_blanks(item)} if isinstance(item, str) else item
    if not isinstance(item, Mapping):
        raise bad(repr(item)[:80], '{"words": ["in", "New", "York"]}, or a text')
    words = _strings(item.get("words"), "words")
    if not words:
        raise bad("no word", "at least one word")
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
            raise bad(f"{what} {value!r:.80}", f"{form}, with words from 0 to {words} and an exclusive end")
        spans.append(Span(kind, start, end))
    return spans


def tags_of(spans: Sequence[Span], what: str, words: int, scheme: Scheme) -> list[str]:
    """The tags of spans in any order."""
    ordered = sorted(spans, key=lambda span: span.start)
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise bad(f"{before.type} and {after.type}, which share word {after.start}", f"separate {_several(what)}")
    return write_tags(ordered, words, scheme)


def _several(what: str) -> str:
    return what.removesuffix("y") + ("ies" if what.endswith("y") else "s")


def _strings(values: Any, what: str, size: int | None = None) -> tuple[str, ...]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise bad(f"{what} {values!r:.80}", "a list of strings")
    if size is not None and len(values) != size:
        raise bad(f"{len(values)} {what} for {size} words", "one per word")
    return tuple(values)


ROLE_FORM = '{"words": ["Forces", "killed", "him"], "predicate": 1}'
FORMS = '{"words": ["Forces", "killed", "him"], "predicates": [1]}'

KEYS = ("words", "tokens", "predicate", "predicates", "tags", "arguments", "lemma", "sense")
"""Keys of an item that are read."""
WRITTEN = ("gloss", "score", "energy", "start_char", "end_char", "line")
"""Others that `spen predict` writes."""


def sentence_of(item: Any) -> Sentence:
    """The sentence of one item.

    Either of one predicate: `{"words": […], "predicate": 1, "tags": […]}`, or of several: `{"words": […],
    "predicates": [1, 4], "tags": [[…], […]]}`; or of none. Words may be called `"tokens"`. Predicates are words, from
    0, or tables `{"index": 1}`. Gold is optional: BIO tags, or in their place `"arguments"`, tables of `role`, `start`
    and `end` (exclusive), beside `predicate` or in the table of each of `predicates`; in the same place `"lemma"` and
    the roleset, `"sense"`. What `spen predict` writes has one of these forms.

    Raises:
        DataError: another form.
    """
    words = item.get("words", item.get("tokens")) if isinstance(item, Mapping) else None
    if not isinstance(words, (list, tuple)):
        raise bad(repr(item)[:80], f"{ROLE_FORM} or {FORMS}")
    if not words or not all(isinstance(word, str) and word for word in words):
        raise bad(f"words {words!r:.80}", "a list of at least one word, without empty words")
    if item.get("predicates") is not None:
        return Sentence(tuple(words), _propositions(item, len(words)))
    if item.get("predicate") is None:
        return Sentence(tuple(words), ())
    return Sentence(tuple(words), (_proposition(item["predicate"], item, item.get("tags"), len(words)),))


def parse_one_predicate(item: Any) -> Sentence:
    """`sentence_of` an item that has one predicate; a `DataError` if it has none or several."""
    sentence = sentence_of(item)
    if not sentence.propositions:
        expected = f"one, as in {ROLE_FORM}; a run of `predicates` or `spen predict RUN FILE` finds predicates"
        raise DataError("input", None, f"no predicate among the keys {', '.join(map(str, item))}", expected)
    if len(sentence.propositions) > 1:
        found = f"{len(sentence.propositions)} predicates"
        raise DataError("input", None, found, f"one item per predicate, as in {ROLE_FORM}")
    return sentence


def parse_raw_text(raw: RawText) -> list[Sentence]:
    """The sentences of raw text with their predicates."""
    sentences = raw.sentences()
    return [
        Sentence(tuple(words), tuple(Proposition(i, None, None) for i in some))
        for words, some in zip(sentences, raw.predicates(sentences), strict=True)
    ]


def _propositions(item: Mapping[str, Any], words: int) -> tuple[Proposition, ...]:
    predicates, tags = item["predicates"], item.get("tags")
    if not isinstance(predicates, (list, tuple)):
        raise bad(f"predicates {predicates!r:.80}", f"different word numbers from 0 to {words - 1}")
    if tags is not None and not (isinstance(tags, (list, tuple)) and all(isinstance(t, (list, tuple)) for t in tags)):
        raise bad(f"tags {tags!r:.80}", 'lists of one tag per word, as in ["B-ARG0", "B-V"]')
    if tags is not None and len(tags) != len(predicates):
        raise bad(f"{len(tags)} lists of tags", f"{len(predicates)}, one per predicate")
    found = []
    for i, given in enumerate(predicates):
        table = given if isinstance(given, Mapping) else {}
        found.append(_proposition(given, table, table.get("tags") if tags is None else tags[i], words))
    if len({proposition.predicate for proposition in found}) < len(found):
        raise bad(f"predicates {predicates!r:.80}", f"different word numbers from 0 to {words - 1}")
    return tuple(sorted(found, key=lambda proposition: proposition.predicate))


def _proposition(given: Any, table: Mapping[str, Any], tags: Any, words: int) -> Proposition:
    predicate = given.get("index") if isinstance(given, Mapping) else given
    if not isinstance(predicate, int) or isinstance(predicate, bool) or not 0 <= predicate < words:
        raise bad(f"predicate {given!r:.80}", f"a word number from 0 to {words - 1}")
    if tags is not None and not (isinstance(tags, (list, tuple)) and all(isinstance(tag, str) for tag in tags)):
        raise bad(f"tags {tags!r:.80}", 'a list of tags, as in ["B-ARG0", "B-V", "O"]')
    if tags is not None and len(tags) != words:
        raise bad(f"{len(tags)} tags for {words} words", "one tag per word")
    if tags is None and table.get("arguments") is not None:
        tags = _tags(table["arguments"], predicate, words)
    for key in ("lemma", "sense"):
        if not isinstance(table.get(key), (str, type(None))):
            raise bad(f"{key} {table[key]!r:.80}", "a text, such as give or give.01")
    return Proposition(predicate, table.get("lemma"), None if tags is None else tuple(tags), table.get("sense") or None)


def _tags(arguments: Any, predicate: int, words: int) -> list[str]:
    spans = given_spans(arguments, "role", "argument", words, '{"role": "ARG0", "start": 0, "end": 1}')
    own = Span("V", predicate, predicate + 1)  # converters of PropBank list it, too
    return tags_of([own, *(span for span in spans if span != own)], "argument", words, "bio")
