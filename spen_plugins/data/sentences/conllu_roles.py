"""Semantic roles in CoNLL-U and CoNLL-2009, here of the word "Anna" before the predicate "left":

    ARG0:1-1 beside leave.01, in UP:ARGSPANS; or ARG0:1, in UP:ARGHEADS    Universal PropBank 2, CoNLL-U Plus
    _ _ ARG0, and at the predicate Y leave.01 _, after the other fields    Universal PropBank 1, CoNLL-2009
    Roleset=-|Args=ARG0, and Roleset=leave.01|Args=V, in MISC              Universal PropBank 1 of English

With several predicates there are as many columns of roles, or roles apart by / in Args. Where a role is that of a word
(a head), its argument is the word's subtree. A word belongs to the nearest word above it that has a role or is the
predicate, so that arguments share no words; later pieces of one have the role C-X.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spen_plugins.data.formats import Head
from spen_plugins.data.schemes import spans, write_owner_tags, write_span_tags
from spen_plugins.data.sentences.columns import cell
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


def _rows(head: Head) -> list[list[str]]:
    return [line.split("\t") for line in head.filled if not line.startswith("#")]


def is_conll_2009(head: Head) -> bool:
    """True of 14 columns or more, apart by tabs, with a number as head and Y or _ where a predicate is marked."""
    rows = _rows(head)
    return bool(rows) and all(
        len(row) >= len(_CONLL_2009) and row[_CONLL_2009.index("head")].isdigit() and row[_FILLPRED] in ("Y", "_")
        for row in rows
    )


def is_conllu(head: Head) -> bool:
    """True if the file names its columns, or counts tokens from 1 in 10 columns or more, apart by tabs."""
    if any(line.startswith("# global.columns") for line in head.lines):
        return True
    rows = _rows(head)
    if not rows or len(rows[0]) < 10 or is_conll_2009(head):
        return False
    number, head = rows[0][0], rows[0][6]
    return number.partition("-")[0] == "1" and (head == "_" or head.isdigit())


def read_conll_2009(path: Path) -> list[Sentence]:
    """All sentences of a file of CoNLL-2009."""
    sentences = list(conllu_sentences(path, _CONLL_2009))
    for _, words in sentences:
        marked = [_cell(word, _FILLPRED) for word in words].count("Y")
        for word in words:
            if len(word.fields) + 1 != len(_CONLL_2009) + marked:
                found = f"{len(word.fields) + 1} columns in a sentence with {marked} predicates (Y in column 13)"
                raise DataError(path, word.line, found, f"{len(_CONLL_2009) + marked}, one of roles per predicate")
    return _made(path, sentences, partial(_columns, _FILLPRED))


def read_conllu_roles(path: Path) -> tuple[list[Sentence], str]:
    """All sentences of a file, and what was recognised."""
    left_out: list[Word] = []
    sentences = list(conllu_sentences(path, left_out=left_out))
    known = {field for _, words in sentences for word in words for field in word.fields}
    if not sentences or "form" not in known:
        wanted = "a field FORM; merge a file without words with its treebank (Universal PropBank's merge_ud_up.py)"
        raise DataError(path, None, "no words", wanted)
    if known & {*_PREDICATE}:
        read, name = _plus, "CoNLL-U Plus with UP fields (Universal PropBank 2)"
        if "up:argspans" not in known:
            name += _SUBTREES
        if lost := [word.line for word in left_out if _frame(word) not in UNMARKED]:
            count = f"{len(lost):,} predicate{'s' * (len(lost) > 1)}"
            name += f", without {count} at multiword ranges or empty nodes (first in line {lost[0]})"
    elif any("Args=" in word.fields.get("misc", "") for _, words in sentences for word in words):
        read, name = _misc, f"CoNLL-U with Args= in MISC (Universal PropBank 1){_SUBTREES}"
    else:
        flag = next((n for n in (8, 10) if _fits(sentences, n)), None)
        if flag is None:
            raise DataError(path, sentences[0][1][0].line, "CoNLL-U without roles", _NO_ROLES)
        read = partial(_columns, flag)
        name = f"CoNLL-U with a column of roles per predicate (Universal PropBank 1){_SUBTREES}"
    return _made(path, sentences, read), name


def _made(path: Path, sentences: Sequence[tuple[str | None, Sequence[Word]]], read: _Reader) -> list[Sentence]:
    return [
        Sentence(tuple(word.fields["form"] for word in words), tuple(read(path, words)), name)
        for name, words in sentences
    ]


def _fits(sentences: Sequence[tuple[Any, Sequence[Word]]], flag: int) -> bool:
    """True if column `flag` marks predicates with Y, and there are as many columns of roles as marks."""
    marked = 0
    for _, words in sentences:
        values = [_cell(word, flag) for word in words]
        if not {*values} <= {"Y", "_"} or any(len(word.fields) + 1 != flag + 2 + values.count("Y") for word in words):
            return False
        marked += values.count("Y")
    return marked > 0


def _cell(word: Word, column: int) -> str:
    """The content of a column, from 0, the number's."""
    return list(word.fields.values())[column - 1] if column <= len(word.fields) else ""


def _columns(flag: int, path: Path, words: Sequence[Word]) -> list[Proposition]:
    marked = [i for i, word in enumerate(words) if _cell(word, flag) == "Y"]
    return [
        _of_heads(path, words, i, _cell(words[i], flag + 1), [_cell(word, flag + 2 + k) for word in words])
        for k, i in enumerate(marked)
    ]


def _misc(path: Path, words: Sequence[Word]) -> list[Proposition]:
    for word in words:
        if "misc" not in word.fields:
            raise DataError(path, word.line, f"{len(word.fields) + 1} fields without 'misc'", "the 10 of CoNLL-U")
    table = [dict(pair.split("=", 1) for pair in w.fields["misc"].split("|") if "=" in pair) for w in words]
    marked = [i for i, values in enumerate(table) if values.get("Roleset", "-") not in UNMARKED]
    roles = [values.get("Args", "").split("/") for values in table]
    for word, some in zip(words, roles, strict=True):
        if len(some) != max(1, len(marked)):
            raise DataError(path, word.line, f"{len(some)} values of Args=", f"{len(marked)}, one per predicate")
    return [_of_heads(path, words, i, table[i]["Roleset"], [some[k] for some in roles]) for k, i in enumerate(marked)]


def _plus(path: Path, words: Sequence[Word]) -> list[Proposition]:
    place = {word.id: i for i, word in enumerate(words)}
    found = []
    for i, word in enumerate(words):
        frame = _frame(word)
        if frame in UNMARKED:
            continue
        arguments = word.fields.get("up:argspans")
        if arguments is not None:
            tags = write_span_tags(len(words), i, [*_places(path, word, arguments, place)])
            found.append(_proposition(word, i, frame, tags))
            continue
        roles = ["_"] * len(words)
        for role, first, _ in _places(path, word, word.fields.get("up:argheads", "_"), place):
            roles[first] = role
        found.append(_of_heads(path, words, i, frame, roles))
    return found


def _frame(word: Word) -> str:
    return next((word.fields[name] for name in _PREDICATE if name in word.fields), "_")


def _places(path: Path, word: Word, cell: str, place: Mapping[int, int]) -> list[tuple[str, int, int]]:
    """Role, first and last word of each of `A0:1-2|A1:4`."""
    found = []
    for part in [] if cell in ("_", "") else cell.split("|"):
        role, _, span = part.rpartition(":")
        ends = [int(n) if n.isdigit() else -1 for n in span.split("-")]
        if not role or len(ends) > 2 or not {*ends} <= place.keys() or ends[0] > ends[-1]:
            wanted = f"ROLE:first-last with words from 1 to {max(place)}, separated by |"
            raise DataError(path, word.line, f"the argument {part!r}{' at an empty node' * ('.' in span)}", wanted)
        found.append((role, place[ends[0]], place[ends[-1]]))
    return found


def _of_heads(path: Path, words: Sequence[Word], predicate: int, frame: str, roles: Sequence[str]) -> Proposition:
    """The proposition whose arguments are the subtrees of the words with roles."""
    heads = _heads(path, words)
    owner: list[int | None] = []
    for word in range(len(words)):
        above, steps = word, 0
        while above is not None and above != predicate and roles[above] in UNMARKED and steps <= len(words):
            above, steps = heads[above], steps + 1
        if steps > len(words):
            raise DataError(path, words[word].line, "a cycle of heads", "heads that form a tree")
        owner.append(predicate if word == predicate else None if above == predicate else above)
    names = ["V" if i == predicate else role for i, role in enumerate(roles)]
    return _proposition(words[predicate], predicate, frame, write_owner_tags(owner, names))


def _proposition(word: Word, predicate: int, frame: str, tags: tuple[str, ...]) -> Proposition:
    pos = next((word.fields[name] for name in ("xpos", "pos", "upos") if word.fields.get(name, "_") != "_"), None)
    return Proposition(predicate, frame, tags, frame if "." in frame else None, pos)


def _heads(path: Path, words: Sequence[Word]) -> list[int | None]:
    place: dict[int, int | None] = {0: None} | {word.id: i for i, word in enumerate(words)}
    found = []
    for word in words:
        head = word.fields.get("head", "_")
        if not head.isdigit() or int(head) not in place:
            raise DataError(path, word.line, f"{head!r} as a word's head", f"a number from 0 to {len(words)}")
        found.append(place[int(head)])
    return found


def write_conllu_roles(sentences: Iterable[Sentence]) -> str:
    """CoNLL-U Plus with Universal PropBank's fields: the predicate's sense, or else its lemma, in UP:PRED; a verb of
    several words has spans of role V."""
    lines = ["# global.columns = ID FORM UP:PRED UP:ARGSPANS"]
    for sentence in sentences:
        if sentence.name:
            lines.append(f"# sent_id = {sentence.name}")
        found = {p.predicate: p for p in sentence.propositions}
        for i, word in enumerate(sentence.words):
            pred, args = "_", []
            if i in found:
                pred = cell(found[i].roleset or found[i].lemma or "?")
                kept = [s for s in spans(found[i].tags or (), "bio") if s != ("V", i, i + 1)]
                args = [f"{span.type}:{span.start + 1}-{span.end}" for span in kept]
            lines.append("\t".join([str(i + 1), cell(word) or "_", pred, "|".join(args) or "_"]))
        lines.append("")
    return "".join(line + "\n" for line in lines)
