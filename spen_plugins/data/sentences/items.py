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

    Optional: `"columns"`, lists of values by name, only of `columns` if these are given, and gold: `"tags"` in the
    scheme, or, if tags are spans, `"entities"`, tables of `type`, `start` and `end` (exclusive), which take precedence
    over tags. `spen predict` writes this form.
    """
    item = {"words": _split_at_blanks(item)} if isinstance(item, str) else item
    if not isinstance(item, Mapping):
        raise bad(repr(item)[:80], '{"words": ["in", "New", "York"]}, or a text')
    words = _check_strings(item.get("words"), "words")
    if not words:
        raise bad("no word", "at least one word")
    item_columns, tags, entities = item.get("columns") or {}, item.get("tags"), item.get("entities")
    if not isinstance(item_columns, Mapping) or (columns is not None and not item_columns.keys() <= columns.keys()):
        raise bad(
            f"columns {item_columns!r:.80}", f"lists of values by name; known: {', '.join(columns or ()) or 'none'}"
        )
    values = {name: _check_strings(cells, f"columns.{name}", len(words)) for name, cells in item_columns.items()}
    if entities is not None and scheme != "none":
        spans = given_spans(entities, "type", "entity", len(words), '{"type": "LOC", "start": 1, "end": 3}')
        tags = tags_of(spans, "entity", len(words), scheme)  # type: ignore[arg-type]
    return TaggedSentence(words, None if tags is None else _check_strings(tags, "tags", len(words)), values)


def given_spans(values: Any, key: str, noun: str, words: int, form: str) -> list[Span]:
    """Spans from tables of a type, under `key`, `start` and `end` (exclusive); `form` is an example, for errors."""
    if not isinstance(values, (list, tuple)):
        raise bad(f"{_pluralise(noun)} {values!r:.80}", f"a list of {form}")
    spans = []
    for value in values:
        table = value if isinstance(value, Mapping) else {}
        kind, start, end = (table.get(name) for name in (key, "start", "end"))
        are_integers = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end))
        if not isinstance(kind, str) or not kind or not are_integers or not 0 <= start < end <= words:
            raise bad(f"{noun} {value!r:.80}", f"{form}, with words from 0 to {words} and an exclusive end")
        spans.append(Span(kind, start, end))
    return spans


def tags_of(spans: Sequence[Span], noun: str, words: int, scheme: Scheme) -> list[str]:
    """The tags of spans in any order."""
    ordered = sorted(spans, key=lambda span: span.start)
    for first, second in pairwise(ordered):
        if second.start < first.end:
            raise bad(
                f"{first.type} and {second.type}, which share word {second.start}", f"separate {_pluralise(noun)}"
            )
    return write_tags(ordered, words, scheme)


def _pluralise(noun: str) -> str:
    return noun.removesuffix("y") + ("ies" if noun.endswith("y") else "s")


def _check_strings(values: Any, name: str, size: int | None = None) -> tuple[str, ...]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise bad(f"{name} {values!r:.80}", "a list of strings")
    if size is not None and len(values) != size:
        raise bad(f"{len(values)} {name} for {size} words", "one per word")
    return tuple(values)


ROLE_FORM = '{"words": ["Forces", "killed", "him"], "predicate": 1}'
FORMS = '{"words": ["Forces", "killed", "him"], "predicates": [1]}'
"""An item with several predicates, as messages show it."""

KEYS = ("words", "tokens", "predicate", "predicates", "tags", "arguments", "lemma", "sense")
"""Keys of an item that are read."""
WRITTEN = ("gloss", "score", "energy", "start_char", "end_char", "line")
"""Other keys, which `spen predict` writes."""


def sentence_of(item: Any) -> Sentence:
    """The sentence of one item.

    It has one predicate: `{"words": […], "predicate": 1, "tags": […]}`, several: `{"words": […], "predicates": [1, 4],
    "tags": [[…], […]]}`, or none. Words may be called `"tokens"`. Predicates are words, from 0, or tables
    `{"index": 1}`. Gold is optional: BIO tags, or instead `"arguments"`, tables of `role`, `start` and `end`
    (exclusive), beside `predicate` or in the table of each of `predicates`. `"lemma"` and the roleset, `"sense"`, are
    in the same place. `spen predict` writes these forms.

    Raises:
        DataError: another form.
    """
    words = item.get("words", item.get("tokens")) if isinstance(item, Mapping) else None
    if not isinstance(words, (list, tuple)):
        raise bad(repr(item)[:80], f"{ROLE_FORM} or {FORMS}")
    if not words or not all(isinstance(word, str) and word for word in words):
        raise bad(f"words {words!r:.80}", "a list of at least one word, without empty words")
    if item.get("predicates") is not None:
        return Sentence(tuple(words), _parse_propositions(item, len(words)))
    if item.get("predicate") is None:
        return Sentence(tuple(words), ())
    return Sentence(tuple(words), (_parse_proposition(item["predicate"], item, item.get("tags"), len(words)),))


def parse_one_predicate(item: Any) -> Sentence:
    """`sentence_of` for an item with one predicate; a `DataError` if it has none or several."""
    sentence = sentence_of(item)
    if not sentence.propositions:
        expected = f"one, as in {ROLE_FORM}; a run of `predicates` or `spen predict RUN FILE` finds predicates"
        raise DataError("input", None, f"no predicate among the keys {', '.join(map(str, item))}", expected)
    if len(sentence.propositions) > 1:
        problem = f"{len(sentence.propositions)} predicates"
        raise DataError("input", None, problem, f"one item per predicate, as in {ROLE_FORM}")
    return sentence


def parse_raw_text(raw: RawText) -> list[Sentence]:
    """The sentences of raw text with their predicates."""
    sentences = raw.sentences()
    return [
        Sentence(tuple(words), tuple(Proposition(i, None, None) for i in predicates))
        for words, predicates in zip(sentences, raw.predicates(sentences), strict=True)
    ]


def _parse_propositions(item: Mapping[str, Any], words: int) -> tuple[Proposition, ...]:
    predicates, tags = item["predicates"], item.get("tags")
    if not isinstance(predicates, (list, tuple)):
        raise bad(f"predicates {predicates!r:.80}", f"different word numbers from 0 to {words - 1}")
    if tags is not None and not (isinstance(tags, (list, tuple)) and all(isinstance(t, (list, tuple)) for t in tags)):
        raise bad(f"tags {tags!r:.80}", 'lists of one tag per word, as in ["B-ARG0", "B-V"]')
    if tags is not None and len(tags) != len(predicates):
        raise bad(f"{len(tags)} lists of tags", f"{len(predicates)}, one per predicate")
    propositions = []
    for i, predicate in enumerate(predicates):
        table = predicate if isinstance(predicate, Mapping) else {}
        propositions.append(_parse_proposition(predicate, table, table.get("tags") if tags is None else tags[i], words))
    if len({proposition.predicate for proposition in propositions}) < len(propositions):
        raise bad(f"predicates {predicates!r:.80}", f"different word numbers from 0 to {words - 1}")
    return tuple(sorted(propositions, key=lambda proposition: proposition.predicate))


def _parse_proposition(value: Any, table: Mapping[str, Any], tags: Any, words: int) -> Proposition:
    predicate = value.get("index") if isinstance(value, Mapping) else value
    if not isinstance(predicate, int) or isinstance(predicate, bool) or not 0 <= predicate < words:
        raise bad(f"predicate {value!r:.80}", f"a word number from 0 to {words - 1}")
    if tags is not None and not (isinstance(tags, (list, tuple)) and all(isinstance(tag, str) for tag in tags)):
        raise bad(f"tags {tags!r:.80}", 'a list of tags, as in ["B-ARG0", "B-V", "O"]')
    if tags is not None and len(tags) != words:
        raise bad(f"{len(tags)} tags for {words} words", "one tag per word")
    if tags is None and table.get("arguments") is not None:
        tags = _convert_arguments(table["arguments"], predicate, words)
    for key in ("lemma", "sense"):
        if not isinstance(table.get(key), (str, type(None))):
            raise bad(f"{key} {table[key]!r:.80}", "a text, such as give or give.01")
    return Proposition(predicate, table.get("lemma"), None if tags is None else tuple(tags), table.get("sense") or None)


def _convert_arguments(arguments: Any, predicate: int, words: int) -> list[str]:
    spans = given_spans(arguments, "role", "argument", words, '{"role": "ARG0", "start": 0, "end": 1}')
    verb = Span("V", predicate, predicate + 1)  # PropBank's converters list it, too
    return tags_of([verb, *(span for span in spans if span != verb)], "argument", words, "bio")
