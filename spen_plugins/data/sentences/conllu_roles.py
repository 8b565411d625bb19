"""Semantic roles in CoNLL-U and CoNLL-2009, here of the word "Anna" before the predicate "left":

    ARG0:1-1 beside leave.01, in UP:ARGSPANS; or ARG0:1, in UP:ARGHEADS    Universal PropBank 2, CoNLL-U Plus
    _ _ ARG0, and at the predicate Y leave.01 _, after the other fields    Universal PropBank 1, CoNLL-2009
    Roleset=-|Args=ARG0, and Roleset=leave.01|Args=V, in MISC              Universal PropBank 1 of English

With several predicates there are as many columns of roles, or roles separated by / in Args. If a role belongs to a word
(a head), its argument is the word's subtree. A word belongs to the nearest word above it that has a role or is the
predicate, so that arguments share no words; later pieces of an argument have the role C-X.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spen_plugins.data.formats import Head
from spen_plugins.data.schemes import write_owner_tags, write_span_tags
from spen_plugins.data.sentences.conllu import Word, conllu_sentences
from spen_plugins.data.sentences.srl import UNMARKED, Proposition, Sentence
from spen_plugins.errors import DataError

_NO_ROLES = "the fields UP:PRED and UP:ARGSPANS or UP:ARGHEADS, one column of roles per predicate, or Args= in MISC"
_SUBTREES = ", one argument per head's subtree"
_PREDICATE = ("up:pred", "up:preds")
_CONLL_2009 = (
    *("id", "form", "lemma", "plemma", "pos", "ppos", "feat", "pfeat"),
    *("head", "phead", "deprel", "pdeprel", "fillpred", "pred"),
)
_FILLPRED = _CONLL_2009.index("fillpred")


_Reader = Callable[[Path, Sequence[Word]], list[Proposition]]
"""Reads the propositions of a sentence."""


def _split_rows(head: Head) -> list[list[str]]:
    return [line.split("\t") for line in head.filled if not line.startswith("#")]


def is_conll_2009(head: Head) -> bool:
    """True for 14 columns or more, separated by tabs, with a number as head and Y or _ as mark of a predicate."""
    rows = _split_rows(head)
    return bool(rows) and all(
        len(row) >= len(_CONLL_2009) and row[_CONLL_2009.index("head")].isdigit() and row[_FILLPRED] in ("Y", "_")
        for row in rows
    )


def is_conllu(head: Head) -> bool:
    """True if the file names its columns, or has 10 columns or more, separated by tabs, and counts tokens from 1."""
    if any(line.startswith("# global.columns") for line in head.lines):
        return True
    rows = _split_rows(head)
    if not rows or len(rows[0]) < 10 or is_conll_2009(head):
        return False
    number, head = rows[0][0], rows[0][6]
    return number.partition("-")[0] == "1" and (head == "_" or head.isdigit())


def read_conll_2009(path: Path) -> list[Sentence]:
    """All sentences of a file of CoNLL-2009."""
    sentences = list(conllu_sentences(path, _CONLL_2009))
    for _, words in sentences:
        count = [_read_cell(word, _FILLPRED) for word in words].count("Y")
        for word in words:
            if len(word.fields) + 1 != len(_CONLL_2009) + count:
                problem = f"{len(word.fields) + 1} columns in a sentence with {count} predicates (Y in column 13)"
                raise DataError(path, word.line, problem, f"{len(_CONLL_2009) + count}, one of roles per predicate")
    return _make_sentences(path, sentences, partial(_read_role_columns, _FILLPRED))


def read_conllu_roles(path: Path) -> tuple[list[Sentence], str]:
    """All sentences of a file, and a description of its format."""
    sentences = list(conllu_sentences(path))
    fields = {field for _, words in sentences for word in words for field in word.fields}
    if not sentences or "form" not in fields:
        expected = "a field FORM; merge a file without words with its treebank (Universal PropBank's merge_ud_up.py)"
        raise DataError(path, None, "no words", expected)
    if fields & {*_PREDICATE}:
        read, name = _read_plus, "CoNLL-U Plus with UP fields (Universal PropBank 2)"
        if "up:argspans" not in fields:
            name += _SUBTREES
    elif any("Args=" in word.fields.get("misc", "") for _, words in sentences for word in words):
        read, name = _read_misc, f"CoNLL-U with Args= in MISC (Universal PropBank 1){_SUBTREES}"
    else:
        flag = next((n for n in (8, 10) if _fits(sentences, n)), None)
        if flag is None:
            raise DataError(path, sentences[0][1][0].line, "CoNLL-U without roles", _NO_ROLES)
        read = partial(_read_role_columns, flag)
        name = f"CoNLL-U with a column of roles per predicate (Universal PropBank 1){_SUBTREES}"
    return _make_sentences(path, sentences, read), name


def _make_sentences(
    path: Path, sentences: Sequence[tuple[str | None, Sequence[Word]]], read: _Reader
) -> list[Sentence]:
    return [
        Sentence(tuple(word.fields["form"] for word in words), tuple(read(path, words)), name)
        for name, words in sentences
    ]


def _fits(sentences: Sequence[tuple[Any, Sequence[Word]]], flag: int) -> bool:
    """True if column `flag` marks predicates with Y, and there are as many columns of roles as marks."""
    count = 0
    for _, words in sentences:
        values = [_read_cell(word, flag) for word in words]
        if not {*values} <= {"Y", "_"} or any(len(word.fields) + 1 != flag + 2 + values.count("Y") for word in words):
            return False
        count += values.count("Y")
    return count > 0


def _read_cell(word: Word, column: int) -> str:
    """The content of a column; column 0 is the token's number."""
    return list(word.fields.values())[column - 1] if column <= len(word.fields) else ""


def _read_role_columns(flag: int, path: Path, words: Sequence[Word]) -> list[Proposition]:
    predicates = [i for i, word in enumerate(words) if _read_cell(word, flag) == "Y"]
    return [
        _build_from_heads(
            path, words, i, _read_cell(words[i], flag + 1), [_read_cell(word, flag + 2 + k) for word in words]
        )
        for k, i in enumerate(predicates)
    ]


def _read_misc(path: Path, words: Sequence[Word]) -> list[Proposition]:
    for word in words:
        if "misc" not in word.fields:
            raise DataError(path, word.line, f"{len(word.fields) + 1} fields without 'misc'", "the 10 of CoNLL-U")
    table = [dict(pair.split("=", 1) for pair in w.fields["misc"].split("|") if "=" in pair) for w in words]
    predicates = [i for i, values in enumerate(table) if values.get("Roleset", "-") not in UNMARKED]
    roles = [values.get("Args", "").split("/") for values in table]
    for word, word_roles in zip(words, roles, strict=True):
        if len(word_roles) != max(1, len(predicates)):
            raise DataError(
                path, word.line, f"{len(word_roles)} values of Args=", f"{len(predicates)}, one per predicate"
            )
    return [
        _build_from_heads(path, words, i, table[i]["Roleset"], [word_roles[k] for word_roles in roles])
        for k, i in enumerate(predicates)
    ]


def _read_plus(path: Path, words: Sequence[Word]) -> list[Proposition]:
    indices = {word.id: i for i, word in enumerate(words)}
    propositions = []
    for i, word in enumerate(words):
        frame = next((word.fields[name] for name in _PREDICATE if name in word.fields), "_")
        if frame in UNMARKED:
            continue
        spans = word.fields.get("up:argspans")
        if spans is not None:
            tags = write_span_tags(len(words), i, [*_parse_arguments(path, word, spans, indices)])
            propositions.append(_make_proposition(word, i, frame, tags))
            continue
        roles = ["_"] * len(words)
        for role, first, _ in _parse_arguments(path, word, word.fields.get("up:argheads", "_"), indices):
            roles[first] = role
        propositions.append(_build_from_heads(path, words, i, frame, roles))
    return propositions


def _parse_arguments(path: Path, word: Word, cell: str, indices: Mapping[int, int]) -> list[tuple[str, int, int]]:
    """Role, first and last word of each of `A0:1-2|A1:4`."""
    arguments = []
    for part in [] if cell in ("_", "") else cell.split("|"):
        role, _, span = part.rpartition(":")
        ends = [int(n) if n.isdigit() else -1 for n in span.split("-")]
        if not role or len(ends) > 2 or not {*ends} <= indices.keys() or ends[0] > ends[-1]:
            expected = f"ROLE:first-last with words from 1 to {max(indices)}, separated by |"
            raise DataError(path, word.line, f"the argument {part!r}", expected)
        arguments.append((role, indices[ends[0]], indices[ends[-1]]))
    return arguments


def _build_from_heads(
    path: Path, words: Sequence[Word], predicate: int, frame: str, roles: Sequence[str]
) -> Proposition:
    """The proposition whose arguments are the subtrees of the words with roles."""
    heads = _read_heads(path, words)
    owner: list[int | None] = []
    for word in range(len(words)):
        ancestor, steps = word, 0
        while ancestor is not None and ancestor != predicate and roles[ancestor] in UNMARKED and steps <= len(words):
            ancestor, steps = heads[ancestor], steps + 1
        if steps > len(words):
            raise DataError(path, words[word].line, "a cycle of heads", "heads that form a tree")
        owner.append(predicate if word == predicate else None if ancestor == predicate else ancestor)
    names = ["V" if i == predicate else role for i, role in enumerate(roles)]
    return _make_proposition(words[predicate], predicate, frame, write_owner_tags(owner, names))


def _make_proposition(word: Word, predicate: int, frame: str, tags: tuple[str, ...]) -> Proposition:
    pos = next((word.fields[name] for name in ("xpos", "pos", "upos") if word.fields.get(name, "_") != "_"), None)
    return Proposition(predicate, frame, tags, frame if "." in frame else None, pos)


def _read_heads(path: Path, words: Sequence[Word]) -> list[int | None]:
    indices: dict[int, int | None] = {0: None} | {word.id: i for i, word in enumerate(words)}
    heads = []
    for word in words:
        head = word.fields.get("head", "_")
        if not head.isdigit() or int(head) not in indices:
            raise DataError(path, word.line, f"{head!r} as a word's head", f"a number from 0 to {len(words)}")
        heads.append(indices[int(head)])
    return heads
