"""Sentences with semantic roles as text: columns, CoNLL-2005's props, CoNLL-U Plus. `read_roles` reads each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spen_plugins.data.schemes import spans
from spen_plugins.data.sentences.columns import cell
from spen_plugins.data.sentences.role_items import sentence_of
from spen_plugins.data.sentences.roles import merged
from spen_plugins.data.sentences.srl import UNMARKED, Proposition, Sentence, write_brackets


class FileExamples(list[Any]):
    """A file's examples, with all its sentences, those without predicates too.

    Args:
        examples: in the file's order.
        words: the words of each sentence.
        rows: of each example, which sentence it is of.
    """

    def __init__(self, examples: Iterable[Any], words: Sequence[tuple[str, ...]], rows: Sequence[int]) -> None:
        super().__init__(examples)
        self.words, self.rows = words, rows


def predicted(predictions: Sequence[Any], examples: Sequence[Any]) -> list[Sentence]:
    """The sentences of predictions, each with all its predicates, which are marked V."""
    found = [sentence_of(prediction) for prediction in predictions]
    found = [Sentence(s.words, tuple(_marked(s.words, p) for p in s.propositions)) for s in found]
    if not isinstance(examples, FileExamples):
        return merged(found)
    propositions: list[list[Proposition]] = [[] for _ in examples.words]
    for row, sentence in zip(examples.rows, found, strict=True):
        propositions[row] += sentence.propositions
    return [Sentence(words, tuple(some)) for words, some in zip(examples.words, propositions, strict=True)]


def _marked(words: Sequence[str], given: Proposition) -> Proposition:
    """With the word as its lemma, and B-V at the predicate: an argument that was predicted there is cut."""
    tags, at = list(given.tags or ()), given.predicate
    lemma = words[at] if words[at] not in UNMARKED else "?"
    if tags[at][2:] not in ("V", "C-V"):
        role, end = tags[at][2:], at + 1
        while role and end < len(tags) and tags[end] == f"I-{role}":
            later = role if tags[at].startswith("B-") or role.startswith("C-") else f"C-{role}"
            tags[end] = f"{'B' if end == at + 1 else 'I'}-{later}"
            end += 1
        tags[at] = "B-V"
    return Proposition(at, given.lemma or lemma, tuple(tags), given.roleset)


def columns(sentences: Iterable[Sentence]) -> str:
    """The layout `propbank` of `read_srl`, with part of speech and roleset as `-`."""
    lines = []
    for sentence in sentences:
        if sentence.name:
            lines.append(f"# sent_id = {sentence.name}")
        for i, (word, cells) in enumerate(zip(sentence.words, _props(sentence), strict=True)):
            lines.append("\t".join([str(i), cell(word), "-", "*", cells[0], "-", *cells[1:]]))
        lines.append("")
    return "".join(line + "\n" for line in lines)


def props(sentences: Iterable[Sentence]) -> str:
    """CoNLL-2005's props: verb and brackets, for its evaluation; the words are in a file of their own."""
    return "".join("".join("\t".join(cells) + "\n" for cells in _props(s)) + "\n" for s in sentences)


def _props(sentence: Sentence) -> Iterator[list[str]]:
    """Of each word, the lemma if it is a predicate, and a cell of brackets for each proposition."""
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
        found = {p.predicate: p for p in sentence.propositions}
        for i, word in enumerate(sentence.words):
            pred, args = "_", []
            if i in found:
                pred = cell(found[i].lemma or "?")
                kept = [s for s in spans(found[i].tags or (), "bio") if s != ("V", i, i + 1)]
                args = [f"{span.type}:{span.start + 1}-{span.end}" for span in kept]
            lines.append("\t".join([str(i + 1), cell(word) or "_", pred, "|".join(args) or "_"]))
        lines.append("")
    return "".join(line + "\n" for line in lines)
