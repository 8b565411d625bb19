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


def warn_of_blank_tags(where: object, sentences: Sequence[TaggedSentence], field: int | str | None) -> list[str]:
    """A warning if most tags are `_`, which is CoNLL's sign for no value, or any part of speech of CoNLL-U is."""
    tags = [tag for sentence in sentences for tag in sentence.tags or ()]
    is_conllu = any(s.line is not None and s.lines is not None for s in sentences)  # only its reader sets both
    is_part_of_speech = is_conllu and str(field or "upos").partition("+")[0] in ("upos", "xpos")
    blank = sum(tag == "_" or (is_part_of_speech and tag.startswith("_+")) for tag in tags)
    share = f"warning: {blank:,} of {len(tags):,} tags in {where} are '_', CoNLL's sign for no value"
    if blank * 2 > len(tags):
        return [f"{share}; is task.tags the right column?"]
    return (
        [f"{share}, and learned as a tag; fill them in or remove the sentences"] if blank and is_part_of_speech else []
    )


def warn_of_spans(where: object, sentences: Sequence[TaggedSentence]) -> list[str]:
    """A warning if tags that are learned one by one are those of spans."""
    tags = {tag for sentence in sentences for tag in sentence.tags or ()}
    if "O" not in tags or len(tags) == 1 or not all(re.fullmatch(r"O|[BIES]-.+", tag) for tag in tags):
        return []
    found = f"the tags in {where} are those of spans ({_list(tags)})"
    return [f"warning: {found}, but are scored one by one; `spen-run names` learns and scores whole spans"]


def unseen_tags(
    config: Any, encoded: Mapping[str, Sequence[tuple[tuple[str, ...] | None, object]]], known: Collection[str]
) -> list[str]:
    """A warning if other parts than training have tags, or types of spans, that are not among the `known`.

    First of each of the `encoded` sentences is its tags as they are learned, None if unknown.
    """
    others = {tag for part, some in encoded.items() if part != "train" for names, _ in some for tag in names or ()}
    spans = config.scheme != "none"
    ours, theirs = ({tag[2:] if spans else tag for tag in some if not spans or tag != "O"} for some in (known, others))
    return note_unseen(sorted(theirs - ours), len(ours | theirs), "entity types" if spans else "tags")


def unknown_tags(
    config: Any,
    path: object,
    sentences: Sequence[TaggedSentence],
    gold: Sequence[Sequence[str]],
    known: Collection[str],
) -> list[str]:
    """A warning if a file to predict has tags, but none that the run knows; it shows tags in the files' scheme.

    An error if, moreover, each sentence has one word, as short lines of raw text have if their last words are tags.
    """
    tags = {tag for names in gold for tag in names} - {"_"}
    if not tags or tags & {*known}:
        return []
    own = {tag for sentence in sentences for tag in sentence.tags or ()} - {"_"}
    expected = _list(_in_scheme(known, config.scheme))
    if all(len(names) == 1 for names in gold):
        found = f"tags such as {_list(own)}, which the run does not know"
        raise DataError(path, None, found, f"tags such as {expected}; {NO_TAGS}")
    return [
        f"warning: {path} has tags such as {_list(own)}, but none of the run's tags ({expected}). "
        f"If it is raw text, pass it by --text or on standard input; {OTHER_COLUMNS}"
    ]


def unknown_columns(
    path: object, sentences: Sequence[TaggedSentence], known: Mapping[str, Collection[str]]
) -> list[str]:
    """A warning for each column of a file to predict with mostly unknown values: perhaps the column of tags."""
    warnings = []
    for name, seen in known.items():
        values = [value for sentence in sentences for value in sentence.columns.get(name, ())]
        unseen = [value for value in values if value not in seen]
        if 2 * len(unseen) > len(values):
            warnings.append(
                f"warning: {path} has values in the column of {name}, such as {_list({*unseen})}, that no training "
                f"example has ({len(unseen)} of {len(values)}); is it the column of {name} (task.columns.{name})?"
            )
    return warnings


def _in_scheme(tags: Collection[str], scheme: str) -> set[str]:
    """The tags, as they are learned, that files in a scheme can have."""
    learned_only = ("E-", "S-") if scheme != "bioes" else ()
    in_files = {tag for tag in tags if not tag.startswith(learned_only)}
    return {tag.partition("-")[2] or tag for tag in in_files} if scheme == "io" else in_files


def _list(tags: Collection[str]) -> str:
    return ", ".join(sorted(tags)[:5])


def unspaced_lines(path: object, words: Sequence[str]) -> list[str]:
    """A warning if words of a script without blanks are as long as clauses, so that a text was read as its words."""
    mean = sum(map(len, words)) / max(1, len(words))
    if mean < CLAUSE or not is_mostly_unspaced("".join(words)):
        return []
    return [
        f"warning: the words of {path} have {mean:.0f} characters on average. If it is raw text, pass it by --text "
        "or on standard input, with its language (--language zh, ja, th, …)"
    ]
