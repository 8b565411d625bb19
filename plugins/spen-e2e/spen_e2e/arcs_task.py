"""Task `e2e.arcs`: semantic role labelling of whole sentences, a role for each pair of a predicate and a span."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_e2e.arc_examples import (
    Example,
    collate_arcs,
    make_example,
    measure_reach,
    parse_sentence,
    write_arguments,
    write_predictions,
)
from spen_e2e.arc_metric import DEFINITIONS, ArcMetric, Roles
from spen_e2e.arc_repair import Repair
from spen_e2e.trees import TREE_CANDIDATES, Tree, all_spans, read_trees, tree_candidates
from spen_plugins.sentences import (
    PADDING,
    UNKNOWN,
    Argument,
    FileExamples,
    FileParts,
    RawText,
    Sentence,
    SentenceBatch,
    SentenceTask,
    SpanConfidences,
    Vocabulary,
    WithoutGold,
    parse_raw_text,
    read_parts,
    read_roles,
    role_files,
    role_formats,
    rounded,
    unseen_roles,
    with_file_encoding,
)

NONE = "none"
Trees = Mapping[tuple[str, ...], Tree]


class RoleArcs(SentenceTask, WithoutGold, sp.WritesFormats):
    """Semantic role labelling as arcs (Belanger et al. 2017, Sec. 6.2): a sentence with its predicates -> a role, or
    none, for each pair of a predicate and a candidate, a span of words that doesn't hold the predicate.

    y is `(batch, sample, pair, role)`, the mask `(batch, pair)`.
    """

    selection = "span_f1"
    lower_is_better = ("violations",)

    class Config(sp.SemanticRoles.Config):
        trees: list[str] = Field(default_factory=list)
        """CoNLL-U files with dependency trees of the sentences, which are found by their words; candidates are taken
        from the trees. Without them, all spans of at most `longest` words are candidates."""
        longest: int = Field(6, ge=1)
        """Maximal number of words of a candidate if there is no tree."""
        repair: Repair = "heuristic"
        """Repair of decoded arcs under the constraints that no two arguments of a predicate overlap and that no core
        role is there twice: "heuristic", the most probable arcs first; "ilp", the most probable roles of all that
        obey, by integer linear programming; "none", not at all."""

    @with_file_encoding
    def load(self) -> None:
        file_parts = read_parts(self.config)
        sentences = {part: part_sentences for part, (_, part_sentences) in file_parts.parts.items()}
        self._trees = trees = self._read_trees(self.config.trees)
        checksums = file_parts.checksums | {name: sp.sha256(sp.locate(name)) for name in self.config.trees}
        self._read = file_parts._replace(notes=[*file_parts.notes, *unseen_roles(sentences)], checksums=checksums)
        names = {tag[2:] for s in sentences["train"] for p in s.propositions for tag in p.tags or ()} - {"", "V", "C-V"}
        self._set_vocabulary(Vocabulary.of((s.words for s in sentences["train"]), self.config), [NONE, *sorted(names)])
        self._parts = {part: self._make_examples(sentences[part], trees, self._name_source(part)) for part in sp.PARTS}
        for part in sp.PARTS:
            source, part_sentences = file_parts.parts[part]
            if not self._parts[part] and part_sentences:
                raise sp.DataError(source, None, f"no predicate (task.{part})", "sentences with marked predicates")
        self._reach = {part: measure_reach(examples) for part, examples in self._parts.items() if examples}

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set_vocabulary(Vocabulary(sp.listed(facts, "words"), self.config), sp.listed(facts, "roles"))
        self._reach = dict(facts["reach"])
        self._parts = {part: [] for part in sp.PARTS}
        self._read, self._trees = FileParts({}, {}, [], None), {}

    def facts(self) -> dict[str, Any]:
        return {"words": self._vocabulary.words, "roles": self.space.tags, "reach": self._reach}

    def read(self, path: str) -> list[Example]:
        """A file's sentences. Their trees are those of the existing files of `trees`, and of a `.conllu` file of the
        same name next to each file of a folder or pattern. A sentence without a tree has all spans of at most `longest`
        words as candidates."""
        file = sp.locate(path)
        paths = role_files(file)
        tree_files = [
            str(tree)
            for role_file in paths
            if (tree := role_file.with_suffix(".conllu")) != role_file and tree.exists()
        ]
        files = [name for name in self.config.trees if sp.locate(name).exists()]
        self._trees = trees = self._read_trees([*files, *tree_files])
        roles = read_roles(file, self.config.layout, gold=False)
        self._read = self._read._replace(notes=[f"{path}: {roles.description}"])
        sentences = [s for s in roles.sentences if s.propositions]
        missing = sum(sentence.words not in trees for sentence in sentences)
        if self.config.trees and missing:
            name = paths[0].with_suffix(".conllu").name
            warnings.warn(
                f"{path}: {missing} of {len(sentences)} sentences have no tree in {name} or task.trees; their "
                f"candidates are all spans of at most {self.config.longest} words",
                stacklevel=2,
            )
        return self._make_examples(roles.sentences, trees)

    def read_text(self, raw: RawText) -> list[Example]:
        return self._make_examples(parse_raw_text(raw), self._trees)

    def formats(self) -> dict[str, sp.Writer]:
        return role_formats()

    def parse(self, item: Any) -> Example:
        """`{"words": ["Forces", "killed", "him"], "predicates": [1]}`, predicates from 0; optional are `"heads"`
        (`[1, -1, 1]`, each word's head in a dependency tree, from 0, -1 for none), `"relations"` of Universal
        Dependencies to them, and gold `"tags"`, a list of BIO tags for each predicate."""
        return self._make_example(*parse_sentence(item))

    def collate(self, examples: Sequence[Example], rows: Sequence[int] | None = None) -> SentenceBatch:
        return collate_arcs(examples, rows, self.indexers, len(self.space.tags))

    def decode(self, proposal: sp.Proposal, x: sp.X | None = None) -> Tensor:
        """The roles under the constraints, by `repair`; without `x`, the most probable ones."""
        if x is None or proposal.chosen is not None:
            return super().decode(proposal)
        places, [roles] = self._roles.decide(proposal, x, self.config.repair)
        role_numbers = torch.zeros(proposal.mean.shape[0], 1, *proposal.mean.shape[2:3], dtype=torch.long)
        role_numbers[places.row, 0, places.column] = torch.from_numpy(roles)
        return self.space.one_hot(role_numbers.to(proposal.mean.device), x.mask).to(proposal.mean.dtype)

    def metric(self) -> ArcMetric:
        return ArcMetric(self._roles, self.config.repair)

    def predictions(self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """For each of `predicates`, its `index` and `word`, and its arguments: `role`, `start`, `end` (exclusive),
        `text` and `score`, the calibrated probability that the argument is right; a C-X has the score of its X."""
        width = batch.x.inputs["predicate_at"].shape[1]
        arguments, confidences = self._find_confidences(proposal, batch)
        return write_predictions(examples, width, arguments, rounded(confidences.at(self.temperature)))

    def decisions(self, proposal: sp.Proposal, batch: sp.Batch) -> sp.Decisions | None:
        """Decisions on each argument, right in the sense of `span_f1`."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        width = batch.x.inputs["predicate_at"].shape[1]
        arguments, confidences = self._find_confidences(proposal, batch, batch.labelled.cpu().numpy())
        is_right = [argument in batch.examples[n // width].arguments[n % width] for n, argument in arguments]
        return sp.Decisions("arguments", confidences, np.array(is_right, dtype=bool))

    def protocol(self) -> dict[str, Any]:
        config = self.config
        spans = f"all spans of at most {config.longest} words"
        return {
            **DEFINITIONS,
            "candidates": (TREE_CANDIDATES if config.trees else spans) + "; none holds the predicate",
            "reach of the candidates": self._reach,
            "trees": config.trees,
            "decoding": {"none": "the most probable role of each pair"}.get(config.repair, f"repair: {config.repair}"),
            "split": self._read.split,
            "threshold": None,
        }

    def show(self, example: Example) -> sp.Shown:
        gold = None if example.names is None else list(write_arguments(example, example.arguments))
        return sp.Shown(example.entry.words, gold)

    def length(self, example: Example) -> int:
        return len(example.pairs)

    def _set_vocabulary(self, vocabulary: Vocabulary, roles: list[str]) -> None:
        self._vocabulary = vocabulary
        self._roles = Roles(roles)
        core = [role for role, is_core in zip(roles, self._roles.core, strict=True) if is_core]
        self.inputs = sp.ArcInputs([PADDING, UNKNOWN, *vocabulary.words], {}, core=core)
        self.space = sp.TagSequence(roles)
        self._number = {role: i for i, role in enumerate(roles) if i}

    def _name_source(self, part: str) -> str:
        return getattr(self.config, part) or self.config.file or f"the sample's {part} part"

    def _read_trees(self, files: Iterable[str]) -> dict[tuple[str, ...], Tree]:
        trees: dict[tuple[str, ...], Tree] = {}
        for name in files:
            trees = read_trees(sp.locate(name)) | trees
        return trees

    def _make_examples(
        self, sentences: Iterable[Sentence], trees: Trees, source: str | Path | None = None
    ) -> FileExamples:
        """The sentences that have a predicate; if `source` is given, a sentence without a tree is an error."""
        examples, words, rows = [], [], []
        for number, sentence in enumerate(sentences, 1):
            words.append(sentence.words)
            if sentence.propositions:
                tree = trees.get(sentence.words)
                if tree is None and self.config.trees and source is not None:
                    problem = f"sentence {sentence.name or number}, {' '.join(sentence.words)[:60]!r}, without a tree"
                    raise sp.DataError(
                        source, None, problem, "a sentence with the same words in the files of task.trees"
                    )
                examples.append(self._make_example(sentence, tree))
                rows.append(number - 1)
        return FileExamples(examples, words, rows)

    def _make_example(self, sentence: Sentence, tree: Tree | None) -> Example:
        candidates = all_spans(len(sentence.words), self.config.longest) if tree is None else tree_candidates(tree)
        return make_example(sentence, candidates, self._vocabulary.entry(sentence.words), self._number)

    def _find_confidences(
        self, proposal: sp.Proposal, batch: sp.Batch, labelled: np.ndarray | None = None
    ) -> tuple[list[tuple[int, Argument]], SpanConfidences]:
        """The decoded arguments, each with its predicate's number, and their confidences; for rows in `labelled`."""
        places, [roles] = self._roles.decide(proposal, batch.x, self.config.repair)
        if labelled is not None:
            roles = np.where(labelled[places.row], roles, 0)
        arguments = [(n, a) for n, group in sorted(self._roles.arguments(places, roles).items()) for a in group]
        pairs = places.pairs
        arcs = np.flatnonzero(roles)
        spans = zip(pairs.predicate[arcs].tolist(), pairs.first[arcs].tolist(), pairs.last[arcs].tolist(), strict=True)
        indices = {(n, *piece): i for i, (n, argument) in enumerate(arguments) for piece in argument.pieces}
        owner = np.array([indices[span] for span in spans], dtype=np.int64)
        p = sp.TagConfidences(places.values(proposal.mean)[arcs], roles[arcs])
        return arguments, SpanConfidences(p, np.ones(len(arcs), dtype=bool), owner, len(arguments))
