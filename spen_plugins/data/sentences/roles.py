"""Sentences with semantic roles: read from files of several formats, recognised by content; and written as text.

`read_roles` reads all formats that are written: columns, CoNLL-2005's props, CoNLL-U Plus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.catalogue import CONLL_2012, count_other_files, find_conll_2012_files, find_files, is_pattern
from spen_plugins.data.formats import JSON_LINES, Format, Head, is_prose, recognise
from spen_plugins.data.records import read_json_lines
from spen_plugins.data.schemes import spans
from spen_plugins.data.sentences.columns import cell
from spen_plugins.data.sentences.conll_roles import is_conll_2012, is_words_or_props, read_conll_2012, read_props
from spen_plugins.data.sentences.conllu_roles import is_conll_2009, is_conllu, read_conll_2009, read_conllu_roles
from spen_plugins.data.sentences.items import KEYS, ROLE_FORM, WRITTEN, sentence_of
from spen_plugins.data.sentences.srl import UNMARKED, Proposition, Sentence, read_srl, write_brackets
from spen_plugins.errors import DataError


class RoleFile(NamedTuple):
    """A file's sentences, and a description of its format."""

    sentences: list[Sentence]
    format: str
    ignored: Sequence[str] = ()
    """Keys of JSON that are not read."""

    @property
    def description(self) -> str:
        """A sentence about the file, for the user."""
        predicates = sum(len(sentence.propositions) for sentence in self.sentences)
        keys = ", ".join(self.ignored[:5]) + ", …" * (len(self.ignored) > 5)
        ignored = f"; ignored keys: {keys} (known: {', '.join(KEYS)})" if keys else ""
        sentences = f"{len(self.sentences):,} sentence{'s' * (len(self.sentences) != 1)}"
        return f"read as {self.format}: {sentences}, {predicates:,} predicate{'s' * (predicates != 1)}{ignored}"


def _is_columns(head: Head) -> bool:
    return bool(head.filled) and not is_prose(head) and not head.filled[0].startswith("[")


_JSON = Format("JSONL", ROLE_FORM, JSON_LINES.fits)
_CONLLU = Format(
    "CoNLL-U with roles", "Universal PropBank: at least 10 fields, or those named in # global.columns", is_conllu
)
_CONLL_2012 = Format(
    "CoNLL-2012", "gold_conll: document, part, number, word, part of speech, …, brackets, coreference", is_conll_2012
)
_CONLL_2009 = Format("CoNLL-2009", "14 columns separated by tabs, and one column of roles per predicate", is_conll_2009)
_PROPS = Format(
    "CoNLL-2005 in two files", "train.words, one word per line; train.props, verbs and brackets", is_words_or_props
)
_COLUMNS = Format(
    "columns as in CoNLL-2005",
    "one token per line: the word, a column that marks predicates ('-' elsewhere), one column of brackets for each",
    _is_columns,
)
_PLACEHOLDERS = {"[WORD]": " (PropBank's release has map_all_to_conll.py for this, CoNLL-2012 skeleton2conll)", "_": ""}
"""The words of files that are published without their text, and the scripts that fill them in."""
FORMATS = [_JSON, _CONLLU, _CONLL_2009, _CONLL_2012, _PROPS, _COLUMNS]


def read_roles(path: Path, layout: str = "auto", gold: bool = True) -> RoleFile:
    """All sentences of a file, of the files that match a pattern, or of the CoNLL-2012 files below a folder, by path.

    Args:
        path: the file, pattern or folder; either of CoNLL-2005's two files.
        layout: as in `read_srl`, for columns; "auto" recognises each file's format.
        gold: if true, every predicate must have its arguments.

    Raises:
        DataError: a file is of no known format, broken, or without its words; with file, line, what was found and
            what was expected. Or a folder or pattern has no such file, or its files have no marked predicate.
    """
    if not path.is_dir() and not is_pattern(path):
        return _read_file(path, layout, gold)
    files = role_files(path)
    parts = [_read_file(file, layout, gold, is_single=False) for file in files]
    sentences = [sentence for part in parts for sentence in part.sentences]
    if gold and not any(sentence.propositions for sentence in sentences):
        raise DataError(path, None, f"no predicate in {len(files):,} files", "sentences with marked predicates")
    others, kinds = count_other_files(path) if path.is_dir() else (0, "")
    ignored = f" ({others:,} others ignored: {kinds})" if others else ""
    formats = " and ".join(dict.fromkeys(part.format for part in parts))
    return RoleFile(sentences, f"{formats}, {len(files):,} file{'s' * (len(files) > 1)}{ignored}")


def role_files(path: Path) -> list[Path]:
    """The files below a folder, or that match a pattern; for a file, the file itself.

    Raises:
        DataError: a folder without CoNLL-2012 files, or a pattern that no file matches.
    """
    if not path.is_dir():
        return [file for _, file in find_files(path)] if is_pattern(path) else [path]
    files = [file for _, file in find_conll_2012_files(path)]
    if not files:
        others, kinds = count_other_files(path)
        remedy = f"a folder with CoNLL-2012 files below it (*{CONLL_2012}), a pattern such as dir/**/*.conll, or a file"
        raise DataError(path, None, f"a folder of {others:,} files ({kinds})" if others else "an empty folder", remedy)
    return files


def _read_file(path: Path, layout: str, gold: bool, is_single: bool = True) -> RoleFile:
    """`read_roles` for one file; if it is one of several, not `is_single`, it may have no predicate."""
    form = recognise(path, FORMATS) if layout == "auto" else None
    if form is None:
        file = RoleFile(read_srl(path, layout, gold), f"columns, task.layout {layout}")
    elif form is _JSON:
        file = _read_json(path)
    elif form is _CONLLU:
        file = RoleFile(*read_conllu_roles(path))
    elif form is _CONLL_2009:
        file = RoleFile(read_conll_2009(path), "CoNLL-2009, one argument per head's subtree")
    elif form is _CONLL_2012:
        file = RoleFile(read_conll_2012(path, gold and is_single), "CoNLL-2012 (gold_conll)")
    elif form is _PROPS:
        file = RoleFile(*read_props(path, gold))
    else:
        file = RoleFile(read_srl(path, layout, gold), form.name)
    unlabelled = next((s for s in file.sentences for p in s.propositions if p.tags is None), None) if gold else None
    if unlabelled is not None:
        words = f"{' '.join(unlabelled.words):.60}"
        raise DataError(path, None, f"a predicate without arguments, in {words!r}", "gold arguments of each predicate")
    _check_words(path, file.sentences)
    return file


def _check_words(path: Path, sentences: Sequence[Sentence]) -> None:
    words = Counter(word for sentence in sentences for word in sentence.words)
    word, script = max(_PLACEHOLDERS.items(), key=lambda item: words[item[0]])
    if words[word] * 2 > words.total():
        problem = f"{word} in place of {words[word]:,} of {words.total():,} words"
        raise DataError(path, None, problem, f"words; fill them in from the annotated corpus{script}")


def _read_json(path: Path) -> RoleFile:
    keys: dict[str, None] = {}

    def make(item: Any) -> Sentence:
        sentence = sentence_of(item)
        keys.update(dict.fromkeys(item))
        return sentence

    sentences = merged(sentence for _, sentence in read_json_lines(path, ROLE_FORM, make))
    return RoleFile(sentences, _JSON.name, [key for key in keys if key not in (*KEYS, *WRITTEN)])


def merged(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Sentences; consecutive ones with the same words and different predicates are merged into one."""
    result: list[Sentence] = []
    for sentence in sentences:
        last = result[-1] if result else None
        pool = (*last.propositions, *sentence.propositions) if last and last.words == sentence.words else ()
        if last and last.propositions and sentence.propositions and len({p.predicate for p in pool}) == len(pool) > 0:
            ordered = sorted(pool, key=lambda proposition: proposition.predicate)
            result[-1] = Sentence(last.words, tuple(ordered), last.name)
        else:
            result.append(sentence)
    return result


class FileExamples(list[Any]):
    """A file's examples, with all its sentences, including those without predicates.

    Args:
        examples: in the file's order.
        words: the words of each sentence.
        rows: the index of each example's sentence.
    """

    def __init__(self, examples: Iterable[Any], words: Sequence[tuple[str, ...]], rows: Sequence[int]) -> None:
        super().__init__(examples)
        self.words, self.rows = words, rows


def predicted(predictions: Sequence[Any], examples: Sequence[Any]) -> list[Sentence]:
    """The sentences of predictions; each has all its predicates, which are marked V."""
    sentences = [sentence_of(prediction) for prediction in predictions]
    sentences = [Sentence(s.words, tuple(_mark_predicate(s.words, p) for p in s.propositions)) for s in sentences]
    if not isinstance(examples, FileExamples):
        return merged(sentences)
    propositions: list[list[Proposition]] = [[] for _ in examples.words]
    for row, sentence in zip(examples.rows, sentences, strict=True):
        propositions[row] += sentence.propositions
    return [Sentence(words, tuple(frames)) for words, frames in zip(examples.words, propositions, strict=True)]


def _mark_predicate(words: Sequence[str], proposition: Proposition) -> Proposition:
    """The proposition with B-V at the predicate, which cuts any argument there; its lemma defaults to the word."""
    tags, index = list(proposition.tags or ()), proposition.predicate
    lemma = words[index] if words[index] not in UNMARKED else "?"
    if tags[index][2:] not in ("V", "C-V"):
        role, end = tags[index][2:], index + 1
        while role and end < len(tags) and tags[end] == f"I-{role}":
            continuation = role if tags[index].startswith("B-") or role.startswith("C-") else f"C-{role}"
            tags[end] = f"{'B' if end == index + 1 else 'I'}-{continuation}"
            end += 1
        tags[index] = "B-V"
    return Proposition(index, proposition.lemma or lemma, tuple(tags), proposition.roleset)


def columns(sentences: Iterable[Sentence]) -> str:
    """The layout `propbank` of `read_srl`, with part of speech and roleset as `-`."""
    lines = []
    for sentence in sentences:
        if sentence.name:
            lines.append(f"# sent_id = {sentence.name}")
        for i, (word, cells) in enumerate(zip(sentence.words, _list_props(sentence), strict=True)):
            lines.append("\t".join([str(i), cell(word), "-", "*", cells[0], "-", *cells[1:]]))
        lines.append("")
    return "".join(line + "\n" for line in lines)


def props(sentences: Iterable[Sentence]) -> str:
    """CoNLL-2005's props: verb and brackets, for its evaluation; the words are in a separate file."""
    return "".join("".join("\t".join(cells) + "\n" for cells in _list_props(s)) + "\n" for s in sentences)


def _list_props(sentence: Sentence) -> Iterator[list[str]]:
    """For each word, the lemma if it is a predicate, otherwise `-`, and one cell of brackets per proposition."""
    marks = {p.predicate: p.lemma or "?" for p in sentence.propositions}
    brackets = [write_brackets(p.tags) for p in sentence.propositions if p.tags is not None]
    for i in range(len(sentence.words)):
        yield [cell(marks.get(i, "-")), *(column[i] for column in brackets)]


def conllu(sentences: Iterable[Sentence]) -> str:
    """CoNLL-U Plus with Universal PropBank's fields; a verb of several words has spans of role V."""
    lines = ["# global.columns = ID FORM UP:PRED UP:ARGSPANS"]
    for sentence in sentences:
        if sentence.name:
            lines.append(f"# sent_id = {sentence.name}")
        propositions = {p.predicate: p for p in sentence.propositions}
        for i, word in enumerate(sentence.words):
            pred, args = "_", []
            if i in propositions:
                pred = cell(propositions[i].lemma or "?")
                arguments = [s for s in spans(propositions[i].tags or (), "bio") if s != ("V", i, i + 1)]
                args = [f"{span.type}:{span.start + 1}-{span.end}" for span in arguments]
            lines.append("\t".join([str(i + 1), cell(word) or "_", pred, "|".join(args) or "_"]))
        lines.append("")
    return "".join(line + "\n" for line in lines)
