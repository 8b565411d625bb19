"""Task `arcs`: semantic role labelling of whole sentences, a role for each pair of a predicate and a span."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.builtin.tasks.arc_examples import Example, gold_roles, parsed, reach_of, told
from spen_plugins.builtin.tasks.arc_metric import DEFINITIONS, ArcMetric, Roles
from spen_plugins.builtin.tasks.arc_repair import Repair
from spen_plugins.builtin.tasks.facts import listed
from spen_plugins.builtin.tasks.file_parts import in_file_encoding
from spen_plugins.builtin.tasks.partly_labelled import WithoutGold
from spen_plugins.builtin.tasks.role_parts import read_parts, role_formats, unseen_roles
from spen_plugins.builtin.tasks.sentences import (
    PADDING,
    UNKNOWN,
    SentenceBatch,
    Vocabulary,
    collate_words,
    one_hot_gold,
    padded,
)
from spen_plugins.builtin.tasks.srl import SemanticRoles
from spen_plugins.datasets import locate
from spen_plugins.errors import DataError
from spen_plugins.readers.raw_text import RawText
from spen_plugins.readers.role_items import sentences_of_text
from spen_plugins.readers.roles import read_roles, role_files
from spen_plugins.readers.srl import Sentence
from spen_plugins.readers.text import sha256
from spen_plugins.readers.trees import TREE_CANDIDATES, Tree, all_spans, read_trees, tree_candidates
from spen_plugins.readers.write_roles import FileExamples
from spen_plugins.scores.calibration import Decisions, SpanConfidences, TagConfidences, rounded
from spen_plugins.scores.spans import Argument
from spen_plugins.spaces import Proposal, TagSequence
from spen_plugins.task import PARTS, ArcInputs, Shown, Task, Writer

NONE = "none"
Trees = Mapping[tuple[str, ...], Tree]


class RoleArcs(Task, WithoutGold):
    """Semantic role labelling as arcs (Belanger et al. 2017, Sec. 6.2): a sentence with its predicates -> a role, or
    none, for each pair of a predicate and a candidate, a span of words that doesn't hold the predicate.

    y is `(batch, sample, pair, role)`, the mask `(batch, pair)`.
    """

    selection = "span_f1"
    lower_is_better = ("violations",)

    class Config(SemanticRoles.Config):
        trees: list[str] = Field(default_factory=list)
        """CoNLL-U files with dependency trees of the sentences, which are found by their words; candidates are taken
        from the trees. Without them, all spans of at most `longest` words are candidates."""
        longest: int = Field(6, ge=1)
        """Most words of a candidate where there is no tree."""
        repair: Repair = "heuristic"
        """How decoded arcs are made to obey the constraints that no two arguments of a predicate overlap and that no
        core role is there twice: "heuristic", the most probable arcs first; "ilp", the most probable roles of all that
        obey, by integer linear programming; "none", not at all."""

    @in_file_encoding
    def load(self) -> None:
        read = read_parts(self.config)
        sentences = {part: some for part, (_, some) in read.parts.items()}
        self._checksums, self._split = read.checksums, read.split
        self._notes = [*read.notes, *unseen_roles(sentences)]
        self._trees = trees = self._read_trees(self.config.trees)
        self._checksums |= {name: sha256(locate(name)) for name in self.config.trees}
        names = {tag[2:] for s in sentences["train"] for p in s.propositions for tag in p.tags or ()} - {"", "V", "C-V"}
        self._set(Vocabulary.of((s.words for s in sentences["train"]), self.config), [NONE, *sorted(names)])
        self._parts = {part: self._examples(sentences[part], trees, self._where(part)) for part in PARTS}
        for part in PARTS:
            where, some = read.parts[part]
            if not self._parts[part] and some:
                raise DataError(where, None, f"no predicate (task.{part})", "sentences with a predicate marked")
        self._reach = {part: reach_of(examples) for part, examples in self._parts.items() if examples}

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set(Vocabulary(listed(facts, "words"), self.config), listed(facts, "roles"))
        self._reach = dict(facts["reach"])
        self._parts = {part: [] for part in PARTS}
        self._trees = {}
        self._checksums: dict[str, str] = {}
        self._notes: list[str] = []
        self._split: Any = None

    def facts(self) -> dict[str, Any]:
        return {"words": self._vocabulary.words, "roles": self.space.tags, "reach": self._reach}

    def part(self, name: str) -> Sequence[Example]:
        return self._parts[name]

    def read(self, path: str) -> list[Example]:
        """A file's sentences; trees are those of `trees` as far as the files are there, and of a file of the same name
        that ends in `.conllu`, beside each file of a folder or pattern. A sentence without a tree has all spans of at
        most `longest` words as candidates."""
        file = locate(path)
        read = role_files(file)
        beside = [str(tree) for one in read if (tree := one.with_suffix(".conllu")) != one and tree.exists()]
        files = [name for name in self.config.trees if locate(name).exists()]
        self._trees = trees = self._read_trees([*files, *beside])
        found = read_roles(file, self.config.layout, gold=False)
        self._notes = [f"{path}: {found.said}"]
        sentences = [s for s in found.sentences if s.propositions]
        missing = sum(sentence.words not in trees for sentence in sentences)
        if self.config.trees and missing:
            name = read[0].with_suffix(".conllu").name
            warnings.warn(
                f"{path}: {missing} of {len(sentences)} sentences have no tree, in {name} or in task.trees: all "
                f"spans of at most {self.config.longest} words are their candidates",
                stacklevel=2,
            )
        return self._examples(found.sentences, trees)

    def read_text(self, raw: RawText) -> list[Example]:
        return self._examples(sentences_of_text(raw), self._trees)

    def formats(self) -> dict[str, Writer]:
        return role_formats()

    def parse(self, item: Any) -> Example:
        """`{"words": ["Forces", "killed", "him"], "predicates": [1]}`, predicates from 0; optional are `"heads"`
        (`[1, -1, 1]`, each word's head in a dependency tree, from 0, -1 for none), `"relations"` of Universal
        Dependencies to them, and gold `"tags"`, a list of BIO tags for each predicate."""
        return self._example(*parsed(item))

    def collate(self, examples: Sequence[Example], rows: Sequence[int] | None = None) -> SentenceBatch:
        inputs, _ = collate_words([example.entry for example in examples], self.indexers)
        inputs["predicate_at"] = _table([example.predicates for example in examples], -1)
        for column, end in enumerate(("first", "last")):
            inputs[f"candidate_{end}"] = _table([example.candidates[:, column] for example in examples], -1)
        sizes = np.array([len(example.pairs) for example in examples])
        inside = np.arange(max(1, int(sizes.max(initial=0)))) < sizes[:, None]
        for column, name in enumerate(("predicate", "candidate")):
            inputs[f"pair_{name}"] = padded([example.pairs[:, column] for example in examples], inside)
        gold, known = one_hot_gold([example.roles for example in examples], inside, len(self.space.tags), 0)
        numbers = torch.arange(len(examples)) if rows is None else torch.as_tensor(rows, dtype=torch.long)
        return SentenceBatch(X(inputs, torch.from_numpy(inside), len(examples)), numbers, gold, known, tuple(examples))

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The roles under the constraints, by `repair`; without `x`, the most probable ones."""
        if x is None or proposal.chosen is not None:
            return super().decode(proposal)
        places, roles = self._roles.decide(proposal, x, self.config.repair)
        decided = torch.zeros(proposal.mean.shape[0], 1, *proposal.mean.shape[2:3], dtype=torch.long)
        decided[places.row, 0, places.column] = torch.from_numpy(roles)
        return self.space.one_hot(decided.to(proposal.mean.device), x.mask).to(proposal.mean.dtype)

    def metric(self) -> ArcMetric:
        return ArcMetric(self._roles, self.config.repair)

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """For each of `predicates`, its `index` and `word`, and its arguments: `role`, `start`, `end` (exclusive),
        `text` and `score`, the calibrated probability that the argument is right; a C-X has the score of its X."""
        predictions: list[dict[str, Any]] = []
        for example in examples:
            words = example.entry.words
            found = [{"index": i, "word": words[i], "arguments": []} for i in example.predicates.tolist()]
            predictions.append({"words": list(words), "predicates": found})
        width = batch.x.inputs["predicate_at"].shape[1]
        for (number, argument), score in zip(*self._scored(proposal, batch), strict=True):
            row, i = divmod(number, width)
            words = examples[row].entry.words
            predictions[row]["predicates"][i]["arguments"] += [
                {
                    "role": argument.role if k == 0 else f"C-{argument.role}",
                    "start": first,
                    "end": last + 1,
                    "text": " ".join(words[first : last + 1]),
                    "score": score,
                }
                for k, (first, last) in enumerate(argument.pieces)
            ]
        for found in predictions:
            for predicate in found["predicates"]:
                predicate["arguments"].sort(key=lambda argument: argument["start"])
        return predictions

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each argument, right in the sense of `span_f1`."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        width = batch.x.inputs["predicate_at"].shape[1]
        arguments, confidences = self._confidences(proposal, batch, batch.labelled.cpu().numpy())
        right = [argument in batch.examples[n // width].arguments[n % width] for n, argument in arguments]
        return Decisions("arguments", confidences, np.array(right, dtype=bool))

    def protocol(self) -> dict[str, Any]:
        config = self.config
        spans = f"all spans of at most {config.longest} words"
        return {
            **DEFINITIONS,
            "candidates": (TREE_CANDIDATES if config.trees else spans) + "; none holds the predicate",
            "reach of the candidates": self._reach,
            "trees": config.trees,
            "decoding": {"none": "the most probable role of each pair"}.get(config.repair, f"repair: {config.repair}"),
            "split": self._split,
            "threshold": None,
        }

    def show(self, example: Example) -> Shown:
        gold = None if example.names is None else list(told(example, example.arguments))
        return Shown(example.entry.words, gold)

    def notes(self) -> Sequence[str]:
        return self._notes

    def checksums(self) -> dict[str, str]:
        return self._checksums

    def length(self, example: Example) -> int:
        return len(example.pairs)

    def words_read(self, example: Example) -> int | None:
        return example.entry.words_read(self.indexers)

    def _set(self, vocabulary: Vocabulary, roles: list[str]) -> None:
        self._vocabulary = vocabulary
        self._roles = Roles(roles)
        core = [role for role, is_core in zip(roles, self._roles.core, strict=True) if is_core]
        self.inputs = ArcInputs([PADDING, UNKNOWN, *vocabulary.words], {}, core=core)
        self.space = TagSequence(roles)
        self._number = {role: i for i, role in enumerate(roles) if i}

    def _where(self, part: str) -> str:
        return getattr(self.config, part) or self.config.file or f"the sample's {part} part"

    def _read_trees(self, files: Iterable[str]) -> dict[tuple[str, ...], Tree]:
        trees: dict[tuple[str, ...], Tree] = {}
        for name in files:
            trees = read_trees(locate(name)) | trees
        return trees

    def _examples(self, sentences: Iterable[Sentence], trees: Trees, where: str | Path | None = None) -> FileExamples:
        """The sentences that have a predicate; if `where` is given, a sentence without a tree is an error."""
        examples, words, rows = [], [], []
        for number, sentence in enumerate(sentences, 1):
            words.append(sentence.words)
            if sentence.propositions:
                tree = trees.get(sentence.words)
                if tree is None and self.config.trees and where is not None:
                    named = f"sentence {sentence.name or number}, {' '.join(sentence.words)[:60]!r}, without a tree"
                    raise DataError(where, None, named, "a sentence of the same words in the files of task.trees")
                examples.append(self._example(sentence, tree))
                rows.append(number - 1)
        return FileExamples(examples, words, rows)

    def _example(self, sentence: Sentence, tree: Tree | None) -> Example:
        n = len(sentence.words)
        candidates = all_spans(n, self.config.longest) if tree is None else tree_candidates(tree)
        predicates = np.array([p.predicate for p in sentence.propositions], dtype=np.int64)
        first, last = candidates.T
        apart = (predicates[:, None] < first) | (last < predicates[:, None])
        pairs = np.stack(np.nonzero(apart), 1)
        tags = [p.tags for p in sentence.propositions if p.tags is not None]
        known = len(tags) == len(predicates)
        spans = np.concatenate([pairs[:, :1], candidates[pairs[:, 1]]], 1)
        roles = gold_roles(tags, spans, self._number) if known else None
        entry = self._vocabulary.entry(sentence.words)
        return Example(entry, predicates, candidates, pairs, tuple(tags) if known else None, roles)

    def _confidences(
        self, proposal: Proposal, batch: Batch, known: np.ndarray | None = None
    ) -> tuple[list[tuple[int, Argument]], SpanConfidences]:
        """The decoded arguments, each with its predicate's number, and the confidences in them; of the rows `known`."""
        places, roles = self._roles.decide(proposal, batch.x, self.config.repair)
        if known is not None:
            roles = np.where(known[places.row], roles, 0)
        found = [(n, a) for n, some in sorted(self._roles.arguments(places, roles).items()) for a in some]
        pairs = places.pairs
        arcs = np.flatnonzero(roles)
        spans = zip(pairs.predicate[arcs].tolist(), pairs.first[arcs].tolist(), pairs.last[arcs].tolist(), strict=True)
        number = {(n, *piece): i for i, (n, argument) in enumerate(found) for piece in argument.pieces}
        owner = np.array([number[span] for span in spans], dtype=np.int64)
        p = TagConfidences(places.values(proposal.mean)[arcs], roles[arcs])
        return found, SpanConfidences(p, np.ones(len(arcs), dtype=bool), owner, len(found))

    def _scored(self, proposal: Proposal, batch: Batch) -> tuple[list[tuple[int, Argument]], list[float]]:
        found, confidences = self._confidences(proposal, batch)
        return found, rounded(confidences.at(self.temperature))


def _table(rows: Sequence[np.ndarray], fill: int) -> Tensor:
    """Rows of different lengths as `(row, longest)`, at least one column."""
    table = np.full((len(rows), max(1, *(len(row) for row in rows))), fill, dtype=np.int64)
    sizes = np.array([len(row) for row in rows])
    table[np.arange(table.shape[1]) < sizes[:, None]] = np.concatenate(rows)
    return torch.from_numpy(table)
