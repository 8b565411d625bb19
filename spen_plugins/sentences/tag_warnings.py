"""Warnings about the tags and words of files of sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spen_plugins.data.parts.file_parts import note_unseen
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.texts.words import is_mostly_unspaced
from spen_plugins.errors import DataError

CLAUSE = 6
"""Characters of a short clause in a script without blanks; words in such scripts have fewer on average."""
OTHER_COLUMNS = "words= and tags= name other columns than the run's"
NO_TAGS = f"{OTHER_COLUMNS}; a file to predict does not need a column of tags"
"""For errors about tags of such a file."""


def warn_of_blank_tags(source: object, sentences: Sequence[TaggedSentence], field: int | str | None) -> list[str]:
    """A warning if most tags have `_`, which is CoNLL's sign for no value, or any part of speech of CoNLL-U is."""
    tags = [tag for sentence in sentences for tag in sentence.tags or ()]
    is_conllu = any(s.line is not None and s.lines is not None for s in sentences)  # only its reader sets both
    names = str(field or "upos").split("+") if is_conllu else []
    parts = [i for i, name in enumerate(names) if name in ("upos", "xpos")]
    blank_count = sum(tag == "_" or "_" in [tag.split("+", len(names) - 1)[i] for i in parts] for tag in tags)
    share = f"warning: {blank_count:,} of {len(tags):,} tags in {source} have '_', CoNLL's sign for no value"
    if blank_count * 2 > len(tags):
        return [f"{share}; is task.tags the right column?"]
    return [f"{share}, and learned as a tag; expected a value for each word"] * (bool(parts) and blank_count > 0)


def warn_of_spans(source: object, sentences: Sequence[TaggedSentence]) -> list[str]:
    """A warning if tags that are learned one by one look like tags of spans."""
    tags = {tag for sentence in sentences for tag in sentence.tags or ()}
    if "O" not in tags or len(tags) == 1 or not all(re.fullmatch(r"O|[BIES]-.+", tag) for tag in tags):
        return []
    problem = f"the tags in {source} are those of spans ({_format_tags(tags)})"
    return [f"warning: {problem}, but are scored one by one; `spen-run names` learns and scores whole spans"]


def unseen_tags(
    config: Any, encoded: Mapping[str, Sequence[tuple[tuple[str, ...] | None, object]]], training_tags: Collection[str]
) -> list[str]:
    """A warning if other parts than training have tags, or types of spans, that are not among the `training_tags`.

    The first element of each of the `encoded` sentences is its tags as they are learned, None if unknown.
    """
    other_tags = {
        tag for part, sentences in encoded.items() if part != "train" for names, _ in sentences for tag in names or ()
    }
    has_spans = config.scheme != "none"
    known_types, other_types = (
        {tag[2:] if has_spans else tag for tag in tags if not has_spans or tag != "O"}
        for tags in (training_tags, other_tags)
    )
    return note_unseen(
        sorted(other_types - known_types), len(known_types | other_types), "entity types" if has_spans else "tags"
    )


def unknown_tags(
    config: Any,
    path: object,
    sentences: Sequence[TaggedSentence],
    gold: Sequence[Sequence[str]],
    known_tags: Collection[str],
) -> list[str]:
    """A warning if a file to predict has tags, but none that the run knows; it shows tags in the files' scheme.

    Raises a DataError if, moreover, each sentence has one word, as in raw text whose lines' last words seem to be tags.
    """
    tags = {tag for names in gold for tag in names} - {"_"}
    if not tags or tags & {*known_tags}:
        return []
    file_tags = {tag for sentence in sentences for tag in sentence.tags or ()} - {"_"}
    expected = _format_tags(_restrict_to_scheme(known_tags, config.scheme))
    if all(len(names) == 1 for names in gold):
        found = f"tags such as {_format_tags(file_tags)}, which the run does not know"
        raise DataError(path, None, found, f"tags such as {expected}; {NO_TAGS}")
    return [
        f"warning: {path} has tags such as {_format_tags(file_tags)}, but none of the run's tags ({expected}). "
        f"If it is raw text, pass it by --text or on standard input; {OTHER_COLUMNS}"
    ]


def unknown_columns(
    path: object, sentences: Sequence[TaggedSentence], column_values: Mapping[str, Collection[str]]
) -> list[str]:
    """A warning for each column of a file to predict with mostly unknown values: perhaps the column of tags."""
    warnings = []
    for name, known_values in column_values.items():
        values = [value for sentence in sentences for value in sentence.columns.get(name, ())]
        unknown_values = [value for value in values if value not in known_values]
        if 2 * len(unknown_values) > len(values):
            warnings.append(
                f"warning: {path} has values in the column of {name}, such as {_format_tags({*unknown_values})}, "
                f"that no training example has ({len(unknown_values)} of {len(values)}); is it the column of {name} "
                f"(task.columns.{name})?"
            )
    return warnings


def _restrict_to_scheme(tags: Collection[str], scheme: str) -> set[str]:
    """The tags, as they are learned, that files in a scheme can have."""
    prefixes = ("E-", "S-") if scheme != "bioes" else ()
    file_tags = {tag for tag in tags if not tag.startswith(prefixes)}
    return {tag.partition("-")[2] or tag for tag in file_tags} if scheme == "io" else file_tags


def _format_tags(tags: Collection[str]) -> str:
    return ", ".join(sorted(tags)[:5])


def unspaced_lines(path: object, words: Sequence[str]) -> list[str]:
    """A warning if words of a script without blanks are as long as clauses, so that raw text was read as words."""
    mean = sum(map(len, words)) / max(1, len(words))
    if mean < CLAUSE or not is_mostly_unspaced("".join(words)):
        return []
    return [
        f"warning: the words of {path} have {mean:.0f} characters on average. If it is raw text, name its "
        "language (--language zh, ja, th, …)"
    ]
