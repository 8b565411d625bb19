"""Sentences from other tools' JSON values, converted to the form of `parse_tagged`.

Lists of words and tags may have other names (datasets' tokens and ner_tags); a text with spans of characters (doccano,
Prodigy, Label Studio, spaCy) is tokenised by spaCy's rules, unless the value holds its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spen_plugins.data.schemes import Span
from spen_plugins.data.sentences.items import FORM, bad, tags_of
from spen_plugins.data.texts.words import is_mostly_unspaced
from spen_plugins.errors import ConfigError, DataError, explain_missing


def blank_tokeniser(language: str, setting: str) -> Any:
    """A pipeline of spaCy that only tokenises; `setting` is the user's setting of the language, for an error."""
    with explain_missing(
        "raw text requires spaCy's tokeniser: pip install 'spen-plugins[spacy]'; or pass a file of words"
    ):
        import spacy
    try:
        return spacy.blank(language)
    except (ImportError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{setting} {language}: spaCy has no tokeniser for it (en, de, …; xx for any): {reason}"
        ) from error


WORDS = ("words", "tokens")
SPANS = ("entities", "spans", "label", "labels")
"""Keys of spans beside a text."""
SPAN = '[0, 4, "PER"] or {"start": 0, "end": 4, "label": "PER"}, with characters from 0 and an exclusive end'

Bounds = list[tuple[int, int]]
"""Index of each word's first character, and of the character after its last."""


def is_sentence(value: Any) -> bool | None:
    """True for a sentence of words, or a text with spans; None if its labels are an empty list."""
    if not isinstance(value, Mapping) or any(key in value for key in (*WORDS, "entities", "spans", "data")):
        return isinstance(value, Mapping)
    labels = next((value[key] for key in SPANS if key in value), "")
    return None if labels == [] else isinstance(labels, list) and not isinstance(labels[0], str)


def own_form(value: Any, places: Any, widened_spans: list[str]) -> Any:
    """A value of JSON in the form that `parse_tagged` reads; `places` is a `TagPlaces`, or a config with its names.

    `widened_spans` receives a description of each span that did not end at word boundaries and was widened to them.
    """
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], Mapping):
        value = {"text": value[0], **value[1]}  # spaCy's training tuples
    if not isinstance(value, Mapping):
        return value
    if value.get("answer", "accept") != "accept":
        expected = "only accepted texts: jq -c 'select(.answer == \"accept\")' FILE > NEW"
        raise bad(f"a text with the answer {value['answer']!r}", expected)
    if isinstance(value.get("data"), Mapping):
        value = _convert_label_studio(value)
    words = next((key for key in (places.words, *WORDS) if key in value and _is_words(value[key])), None)
    if words is not None:
        return _convert_lists(value, words, places)
    if isinstance(value.get("text"), str):
        return _convert_text(value, places, widened_spans)
    expected = f'words or tokens, as in {FORM}, or a text with spans: {{"text": "…", "entities": [[0, 4, "PER"]]}}'
    raise bad(f"the keys {', '.join(map(str, value)) or '(none)'}", f"{expected}; task.words and task.tags set others")


def _is_words(values: Any) -> bool:
    return not isinstance(values, list) or not any(isinstance(word, Mapping) for word in values)


def _convert_lists(value: Mapping[str, Any], words: str, places: Any) -> dict[str, Any]:
    tag_keys = ("tags", "pos_tags", "upos") if places.scheme == "none" else ("tags", "ner_tags")
    tags = next((key for key in (places.tags, *tag_keys) if key in value), None)
    columns = {n: value[key] for n, key in places.columns.items() if isinstance(key, str) and key in value}
    form = {key: value[key] for key in ("columns", "entities") if key in value} | {"words": value[words]}
    if columns:
        form["columns"] = {**(form.get("columns") or {}), **columns}
    if tags is not None:
        form["tags"] = value[tags]
        if isinstance(form["tags"], list):  # numbers of names, as in Parquet
            form["tags"] = [str(tag) if type(tag) is int else tag for tag in form["tags"]]
    return form


def _convert_text(value: Mapping[str, Any], places: Any, widened_spans: list[str]) -> dict[str, Any]:
    text, hint = value["text"], ""
    if "tokens" in value:
        bounds = _find_bounds(text, value["tokens"])
    else:
        bounds = [(t.idx, t.idx + len(t)) for t in _make_tokeniser(places.language)(text) if not t.is_space]
        if places.language == "en" and is_mostly_unspaced(text):
            hint = "; the text is tokenised as English: set task.language=ja (or zh, th, …)"
    form: dict[str, Any] = {"words": [text[start:end] for start, end in bounds]}
    key = next((key for key in (places.tags, *SPANS) if key in value), None)
    if key is not None and places.scheme != "none":
        if not isinstance(value[key], (list, type(None))):
            raise bad(f"{key} {value[key]!r:.80}", f"a list of spans, {SPAN}")
        widened: list[str] = []
        spans = [_find_word_span(text, span, bounds, widened) for span in value[key] or []]
        widened_spans += [description + hint for description in widened]
        try:
            form["tags"] = tags_of(spans, "entity", len(bounds), places.scheme)
        except DataError as error:
            raise bad(error.found, error.expected + hint) from None
    return form


@lru_cache(maxsize=4)
def _make_tokeniser(language: str) -> Any:
    return blank_tokeniser(language, "task.language").tokenizer


def _find_bounds(text: str, tokens: Any) -> Bounds:
    """The bounds of a text's tokens, texts or `{"text": …}`, which are in the text's order."""
    bounds, end = [], 0
    for token in tokens if isinstance(tokens, list) else [None]:
        word = token.get("text") if isinstance(token, Mapping) else token
        start = text.find(word, end) if isinstance(word, str) else -1
        if start < 0:
            raise bad(f"the token {token!r:.80}", f"tokens in the order of the text; none such after character {end}")
        end = start + len(word)
        if word.strip():
            bounds.append((start, end))
    return bounds


def _find_word_span(text: str, span: Any, bounds: Bounds, widened_spans: list[str]) -> Span:
    """The words of a span of characters; blanks at its ends do not count."""
    start, end, label = span if isinstance(span, list) and len(span) == 3 else _parse_span_table(span)
    if not (type(start) is type(end) is int and isinstance(label, str) and label and 0 <= start < end <= len(text)):
        raise bad(f"the span {span!r:.80} in a text of {len(text)} characters", SPAN)
    content = text[start:end]
    span_text = span.get("text") if isinstance(span, Mapping) and "labels" in span else None  # of Label Studio
    if isinstance(span_text, str) and _remove_blanks(span_text) != _remove_blanks(content):
        expected = "offsets that count characters (code points, not UTF-16) from 0 and fit the span's text"
        raise bad(f"the span {span_text!r:.80} from {start} to {end}, where the text has {content!r:.80}", expected)
    start, end = end - len(content.lstrip()), start + len(content.rstrip())
    indices = [i for i, (first, last) in enumerate(bounds) if first < end and last > start]
    if not indices:
        raise bad(f"the span {span!r:.80}, {content!r}, which contains no word", SPAN)
    first, last = bounds[indices[0]][0], bounds[indices[-1]][1]
    if (first, last) != (start, end):
        widened_spans.append(f"{text[start:end]!r} to {text[first:last]!r}")
    return Span(label, indices[0], indices[-1] + 1)


def _remove_blanks(text: str) -> str:
    return "".join(text.replace("\\n", " ").split())  # Label Studio may write a line break as two characters


def _parse_span_table(span: Any) -> tuple[Any, Any, Any]:
    table = span if isinstance(span, Mapping) else {}
    start, end = (table.get(key, table.get(f"{key}_offset")) for key in ("start", "end"))
    labels = table.get("labels")
    return start, end, table.get("label", labels[0] if isinstance(labels, list) and len(labels) == 1 else None)


def _convert_label_studio(value: Mapping[str, Any]) -> dict[str, Any]:
    """A task of Label Studio's export, by its first annotation."""
    texts = {key: text for key, text in value["data"].items() if isinstance(text, str)}
    text = texts.get("text", next(iter(texts.values()), "") if len(texts) == 1 else None)
    if text is None:
        raise bad(f"data with the keys {', '.join(map(str, value['data']))}", "a text with the key text")
    annotations = [a for a in value.get("annotations") or [] if isinstance(a, Mapping) and not a.get("was_cancelled")]
    if not annotations:
        return {"text": text}
    values = [r["value"] for r in annotations[0].get("result") or [] if isinstance(r, Mapping) and "value" in r]
    return {"text": text, "entities": [v for v in values if isinstance(v, Mapping) and "labels" in v]}
