"""Task `parsing`: the constituents of a sentence, as one tag per word or as labelled spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_infnet.parsing import trees
from spen_infnet.parsing.forms import FORMS, Form, Trees
from spen_infnet.parsing.scores import DEFINITIONS, TreeMetric
from spen_plugins.sentences import (
    FileParts,
    FilesConfig,
    RawText,
    SentenceBatch,
    SentenceTask,
    TaggedExample,
    TaggedSentence,
    name_files,
    read_file_parts,
    with_file_encoding,
)


@dataclass(eq=False)
class TreeExample(TaggedExample):
    """A sentence; `sentence` has its gold tree if that is known."""

    sentence: trees.Sentence | None = None


class Parsing(SentenceTask, sp.ReadsInputs, sp.WritesFormats):
    """Constituency parsing: words -> a tree."""

    selection = "bracket_f1"
    lower_is_better = ("repaired",)

    class Config(FilesConfig):
        corpus: Literal["sample"] | None = None
        """"sample": trees written by a small grammar of the package; null: files with one bracketed tree per line."""
        form: Literal["tags", "spans"] = "tags"
        """Outputs: "tags": one tag per word (Gómez-Rodríguez & Vilares 2018); "spans": a label or none for each span,
        as the inference net `infnet.tree_crf` takes them."""
        min_tag_count: int = Field(5, ge=1)
        """Minimal number of words of the training part with a tag, or constituents with a label, that is learned; other
        tags lose their unary chain, or become the most frequent one with the same change of depth, and other labels
        the longest part of their unary chain that is learned, or the most frequent label."""
        decode: Literal["mbr", "viterbi"] = "mbr"
        """Decoding of spans: "mbr": the tree of largest Σ (p − ½) over its constituents, which has the fewest expected
        wrong and missed ones; "viterbi": the most probable tree."""

    @with_file_encoding
    def load(self) -> None:
        file_parts = self._read_parts()
        names, note = FORMS[self.config.form].learn(file_parts.parts["train"][1], self.config.min_tag_count)
        self._form = self._make_form(names)
        tagging = _make_tagging(self.config)
        tagged_parts = {
            part: (source, list(map(self._encode, sentences))) for part, (source, sentences) in file_parts.parts.items()
        }
        tagging.learn(file_parts._replace(parts=tagged_parts), names)
        self._compose(tagging)
        self._parts = {
            part: list(map(self._make_example, sentences)) for part, (_, sentences) in file_parts.parts.items()
        }
        self._read = file_parts._replace(notes=[*file_parts.notes, note])

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._form = self._make_form(sp.listed(facts, "tags"))
        tagging = _make_tagging(self.config)
        tagging.restore(facts)
        self._compose(tagging)
        self._parts = {part: [] for part in sp.PARTS}
        self._read = FileParts({}, {}, [], None)

    def facts(self) -> dict[str, Any]:
        return self._tagging.facts()

    def read(self, path: str) -> list[TreeExample]:
        """Sentences of a file with one bracketed tree per line."""
        return list(map(self._make_example, trees.read(sp.locate(path))))

    def read_inputs(self, path: str) -> list[TreeExample]:
        """Sentences of a file whose first line is a tree or begins as one, or of any format of tagged words."""
        first, has_trees = "", True
        try:
            first = _find_first(sp.read_lines(sp.locate(path)))
            trees.parse(first)
        except sp.DataError:
            has_trees = trees.is_beginning(first)
        if has_trees:
            return list(map(self._hide_gold, self.read(path)))
        examples = self._tagging.read_inputs(path)
        self._read = self._read._replace(notes=list(self._tagging.notes()))
        return list(map(self._hide_gold, examples))

    def read_text(self, raw: RawText) -> list[TreeExample]:
        if trees.is_beginning(first := _find_first(sp.split_lines(raw.text))):
            raise sp.DataError("text", None, sp.shorten(first), "raw text; trees are read from a file")
        return list(map(self._hide_gold, self._tagging.read_text(raw)))

    def parse(self, item: Any) -> TreeExample:
        """`{"words": ["Anna", "sleeps"]}`, such a list alone, or a text, which is split at blanks; with gold
        `{"tree": "(TOP (S (NP (NNP Anna)) (VP (VBZ sleeps))))"}`."""
        if isinstance(item, Mapping) and isinstance(item.get("tree"), str):
            return self._make_example(trees.parse(item["tree"]))
        return self._hide_gold(self._tagging.parse(item))

    def collate(self, examples: Sequence[TreeExample], rows: Sequence[int] | None = None) -> SentenceBatch:
        return self._form.collate(self._tagging.collate(examples, rows))

    def decode(self, proposal: sp.Proposal, x: sp.X | None = None) -> Tensor:
        return self._form.decode(proposal)

    def metric(self) -> sp.Metric:
        return TreeMetric(self._find_spans)

    def decisions(self, proposal: sp.Proposal, batch: sp.Batch) -> sp.Decisions | None:
        """Decisions on each word's tag, or on each constituent of spans."""
        assert isinstance(batch, SentenceBatch)
        return self._form.decisions(self._tagging, proposal, batch)

    def predictions(
        self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[TreeExample]
    ) -> list[dict[str, Any]]:
        """`tree`, in brackets with XX for each part of speech; `constituents`, from the top: `label` (of a unary chain
        as in S+VP), `start`, `end` (exclusive); and `scores`, the calibrated probability of each word's tag, or of each
        constituent of spans."""
        self._tagging.temperature = self.temperature
        parses = self._find_spans(proposal, [len(example.entry.ids) for example in examples])
        scores = self._form.scores(self._tagging, proposal, batch, parses)
        return [
            {
                "words": list(example.entry.words),
                "tree": trees.write(trees.build(spans, len(example.entry.words)), example.entry.words),
                "constituents": [{"label": label, "start": start, "end": end} for start, end, label in spans],
                "scores": numbers,
            }
            for example, (spans, _), numbers in zip(examples, parses, scores, strict=True)
        ]

    def formats(self) -> dict[str, sp.Writer]:
        return {"trees": lambda predictions, examples: "".join(f"{prediction['tree']}\n" for prediction in predictions)}

    def protocol(self) -> dict[str, Any]:
        return {**DEFINITIONS, "decoding": self._form.decoding, "split": self._read.split, "threshold": None}

    def show(self, example: TreeExample) -> sp.Shown:
        return self._tagging.show(example)

    def _find_spans(self, proposal: sp.Proposal, lengths: Sequence[int]) -> Trees:
        return self._form.find_trees(self.decode(proposal), lengths)

    def _make_form(self, names: Sequence[str]) -> Form:
        if self.config.form == "tags" and self.config.decode != "mbr":
            raise sp.ConfigError("task.decode requires task.form=spans")
        return FORMS[self.config.form](self.config, names)

    def _compose(self, tagging: sp.Tagging) -> None:
        tagging.indexers = self.indexers
        self._tagging, self.space, self.inputs = tagging, self._form.make_space(tagging), tagging.inputs

    def _encode(self, sentence: trees.Sentence) -> TaggedSentence:
        """The sentence with the tags that are learned."""
        return TaggedSentence(sentence.words, self._form.find_tags(sentence))

    def _make_example(self, sentence: trees.Sentence) -> TreeExample:
        return TreeExample(**vars(self._tagging.example(self._encode(sentence), "input")), sentence=sentence)

    def _hide_gold(self, example: TaggedExample) -> TreeExample:
        """The example without its gold."""
        return TreeExample(example.entry, example.columns)

    def _read_parts(self) -> FileParts[trees.Sentence]:
        if files := name_files(self.config, ["sample"]):
            return read_file_parts(files, _read_file, _list_labels, "labels")
        from spen_infnet.parsing.samples import sample_trees

        return FileParts(
            {part: ("the sample", sentences) for part, sentences in sample_trees().items()}, {}, [], "the sample"
        )


def _find_first(lines: Iterable[str]) -> str:
    """The first line that is not blank, "" if there is none."""
    return next((line for line in lines if line.strip()), "")


def _read_file(path: Path) -> tuple[list[trees.Sentence], str]:
    sentences = trees.read(path)
    return sentences, f"{len(sentences):,} trees"


def _list_labels(sentence: trees.Sentence) -> set[str]:
    return {label for *_, label in trees.find_nodes(sentence.tree)}


def _make_tagging(config: Parsing.Config) -> sp.Tagging:
    """The composed task of tags, not yet loaded."""
    settings = {name: getattr(config, name) for name in FilesConfig.model_fields}
    return sp.Tagging(sp.Tagging.Config(**settings))
