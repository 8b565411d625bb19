"""Task `srl`: span semantic role labelling, one example per predicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from spen_plugins.batch import Batch
from spen_plugins.builtin.tasks.roles.srl_metric import DEFINITIONS, Example, SrlMetric
from spen_plugins.builtin.tasks.span_task import SpanConfig, SpanTask
from spen_plugins.data.catalogue import locate
from spen_plugins.data.parts.file_parts import (
    FileParts,
    FilesConfig,
    with_file_encoding,
)
from spen_plugins.data.parts.gold import PartlyLabelledConfig, WithoutGold
from spen_plugins.data.parts.rules import MarkedWords, NamesSenses, RulesConfig, TakesRules
from spen_plugins.data.schemes import complete_tags
from spen_plugins.data.sentences.items import parse_one_predicate
from spen_plugins.data.sentences.roles import FileExamples, read_roles
from spen_plugins.data.sentences.srl import Proposition, Sentence
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.scores.calibration import Confidences, Decisions, rounded
from spen_plugins.scores.spans import CORE, Argument, SpanTable, join
from spen_plugins.sentences.batches import (
    PADDING,
    UNKNOWN,
    Entry,
    SentenceBatch,
    Vocabulary,
    one_hot_gold,
)
from spen_plugins.sentences.tasks import PredicateTask, hide_roles, kept, read_parts, role_formats, unseen_roles
from spen_plugins.settings.facts import listed
from spen_plugins.spaces import Proposal, TagSequence
from spen_plugins.task import PARTS, Metric, WordInputs, Writer
from spen_plugins.task_parts import WritesFormats


class SemanticRoles(PredicateTask, SpanTask, WithoutGold, TakesRules, NamesSenses, WritesFormats):
    """Semantic role labelling: words and a marked predicate -> BIO tags of its arguments."""

    selection = "span_f1"
    lower_is_better = ("ucr", "invalid_bio")
    _sense_numbers: Mapping[str, int] | None = None
    """Number of each sense in a batch; None: batches have no senses."""

    class Config(FilesConfig, PartlyLabelledConfig, RulesConfig, SpanConfig):
        corpus: Literal["sample"] | None = None
        """"sample": the synthetic corpus of the package; null: the files below."""
        train: str | None = None
        """Training file: columns as in CoNLL-2005 or PropBank's releases, CoNLL-2005's words or props, CoNLL-2009,
        CoNLL-2012, CoNLL-U with roles, or JSONL; `data:` paths are below $SPEN_DATA."""
        validation: str | None = None
        """Validation file; without one, it is carved from the training file, stratified by roles."""
        layout: Literal["auto", "propbank", "word-predicate"] = "auto"
        """Order of columns. auto: the format is recognised by its content; in columns, the word comes first, the
        brackets last, and the predicate before the brackets."""
        auxiliaries: bool = True
        """If false, the frames of auxiliaries and modals, which have no arguments (be.03, do.01, have.01, …), are
        ignored if the file has rolesets."""
        unique_roles: bool = False
        """If true, a predicate has each core role (ARG0 to ARG5, A0 to A5) at most once: the prediction is
        the most probable tags with this property (Punyakanok et al. 2008), or the best such set of spans."""

    @with_file_encoding
    def load(self) -> None:
        self._read = hide_roles(self.config, read_parts(self.config))
        sentences = {part: part_sentences for part, (_, part_sentences) in self._read.parts.items()}
        tags = {tag for s in sentences["train"] for p in s.propositions for tag in p.tags or ()}
        all_tags = complete_tags(tags, "bio")
        self._set(Vocabulary.of((s.words for s in sentences["train"]), self.config), all_tags)
        self._parts: dict[str, Sequence[Example]] = {part: self._examples(sentences[part]) for part in PARTS}
        gold = [example for example in self._parts["train"] if example.tags is not None]
        if self._parts["train"] and not gold:
            raise DataError(self._read.parts["train"][0], None, "no predicate with roles (task.train)", "at least one")
        self._read.notes.extend(unseen_roles(sentences))
        if self.config.repeat > 1:
            self._parts["train"] = [*self._parts["train"], *gold * (self.config.repeat - 1)]
        for part in PARTS:
            path, part_sentences = self._read.parts[part]
            if not self._parts[part] and part_sentences:
                raise DataError(path, None, f"no predicate (task.{part})", "sentences with marked predicates")
        self._read.notes.extend(self.apply_rules(self._find_hits, lambda example: example.tags))
        self.indexers.pop("rules", None)  # their hits differ from predicate to predicate

    def _find_hits(self, example: Example) -> Any:
        items, name = example.entry.items, f"rules {example.predicate}"
        if name not in items:
            items[name] = self.rules.index(MarkedWords(example.entry.words, predicate=example.predicate))
        return items[name]

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set(Vocabulary(listed(facts, "words"), self.config), listed(facts, "tags"))
        self.restore_decoder(facts)
        self._parts = {part: [] for part in PARTS}
        self._read = FileParts({}, {}, [], None)

    def facts(self) -> dict[str, Any]:
        return {"words": self._vocabulary.words, "tags": self.space.tags, **self.decoder_facts()}

    def read(self, path: str) -> list[Example]:
        file = read_roles(locate(path), self.config.layout, gold=False)
        self._read = self._read._replace(notes=[f"{path}: {file.description}"])
        return self._examples(kept(self.config, file.sentences))

    def formats(self) -> dict[str, Writer]:
        return role_formats()

    def parse(self, item: Any) -> Example:
        """`{"words": ["Forces", "killed", "him"], "predicate": 1}`, predicate from 0; optional gold are `"tags"`, or
        `"arguments"`: `[{"role": "ARG0", "start": 0, "end": 1}]`, `end` exclusive."""
        sentence = parse_one_predicate(item)
        [proposition] = sentence.propositions
        return self._make_example(self._vocabulary.entry(sentence.words), proposition)

    def number_senses(self, senses: Sequence[str]) -> None:
        self._sense_numbers = {sense: i for i, sense in enumerate(senses)}
        examples = self._parts["train"]
        if examples and not any(example.sense in self._sense_numbers for example in examples):
            sense = next((example.sense for example in examples if example.sense is not None), None)
            description = "no senses" if sense is None else f"other senses, such as {sense!r}"
            raise ConfigError(f"task.train: found {description}; expected some of {', '.join([*senses][:3])}, …")

    def collate(self, examples: Sequence[Example], rows: Sequence[int] | None = None) -> SentenceBatch:
        inputs, is_token = self._inputs([e.entry for e in examples], [e.predicate for e in examples])
        if self.rules is not None:
            inputs |= self.rules.collate([self._find_hits(example) for example in examples])
        if self._sense_numbers is not None:
            inputs["sense"] = torch.tensor([self._sense_numbers.get(e.sense, -1) for e in examples])
        gold, is_labelled = one_hot_gold([e.tags for e in examples], is_token, len(self.space.tags), self._outside_tag)
        return SentenceBatch.of(inputs, torch.from_numpy(is_token), gold, is_labelled, rows, examples=tuple(examples))

    def metric(self) -> Metric:
        return self._make_metric(lambda decode: SrlMetric(self.space.tags, decode))

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Arguments as `role`, `start`, `end` (exclusive), `text` and `score`; without V.

        The score is the calibrated probability that the argument is right; a C-X has the score of its X.
        """
        best, lengths = self._decide(proposal, examples)
        predictions = [
            self._make_prediction(example, row) for example, row in zip(examples, best.tolist(), strict=True)
        ]
        spans = self._table.spans(best, lengths)
        _, owner, confidences = self._find_argument_confidences(proposal, best, lengths, spans)
        scores = rounded(confidences.at(self.temperature))
        for (row, kind, first, last), index in zip(spans.tolist(), owner.tolist(), strict=True):
            if index >= 0:
                text = " ".join(examples[row].entry.words[first : last + 1])
                span = {"role": self._table.roles[kind], "start": first, "end": last + 1}
                predictions[row]["arguments"].append({**span, "text": text, "score": scores[index]})
        return predictions

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each argument, right in the sense of `span_f1`."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        best, lengths = self._decide(proposal, batch.examples)
        spans = self._table.spans(best, np.where(batch.labelled.cpu().numpy(), lengths, 0))
        arguments, _, confidences = self._find_argument_confidences(proposal, best, lengths, spans)
        is_right = [argument in batch.examples[row].arguments for row, argument in arguments]
        return Decisions("arguments", confidences, np.array(is_right, dtype=bool))

    def protocol(self) -> dict[str, Any]:
        count = self.config.labelled
        return {
            **DEFINITIONS,
            **({} if count is None else {"labelled": f"the first {count} training sentences"}),
            "unique_roles": self.config.unique_roles,
            "split": self._read.split,
            "threshold": self._describe_threshold(),
        }

    def _set(self, vocabulary: Vocabulary, tags: list[str]) -> None:
        self._vocabulary = vocabulary
        self.inputs = WordInputs([PADDING, UNKNOWN, *vocabulary.words], {"predicate": 2})
        core = {tag[2:] for tag in tags if CORE.fullmatch(tag[2:])} if self.config.unique_roles else set()
        self.space = TagSequence(tags, "bio", sorted(core))
        self._table = SpanTable(tags)
        self._tag_numbers = {tag: i for i, tag in enumerate(tags)}
        self._outside_tag = self._tag_numbers["O"]

    def _make_example(self, entry: Entry, proposition: Proposition) -> Example:
        names = proposition.tags
        tags = None if names is None else np.array([self._tag_numbers.get(name, -1) for name in names], dtype=np.int64)
        return Example(entry, proposition.predicate, names, tags, proposition.pos, proposition.roleset)

    def _examples(self, sentences: Iterable[Sentence]) -> FileExamples:
        examples, words, rows = [], [], []
        for row, sentence in enumerate(sentences):
            words.append(sentence.words)
            if sentence.propositions:
                entry = self._vocabulary.entry(sentence.words)
                examples.extend(self._make_example(entry, p) for p in sentence.propositions)
                rows.extend([row] * len(sentence.propositions))
        return FileExamples(examples, words, rows)

    def _make_prediction(self, example: Example, row: Sequence[int]) -> dict[str, Any]:
        """A prediction without its arguments."""
        words = example.entry.words
        tags = [self.space.tags[i] for i in row[: len(words)]]
        predicate = {"index": example.predicate, "word": words[example.predicate]}
        return {"words": list(words), "predicate": predicate, "arguments": [], "tags": tags}

    def _find_argument_confidences(
        self, proposal: Proposal, best: np.ndarray, lengths: np.ndarray, spans: np.ndarray
    ) -> tuple[list[tuple[int, Argument]], np.ndarray, Confidences]:
        """The arguments of spans of `self._table`, with the row of each; the index of each span's argument (`(span,)`,
        -1 for V); and the confidences in the arguments."""
        pieces: dict[int, list[tuple[str, int, int]]] = {}
        for row, kind, first, last in spans.tolist():
            pieces.setdefault(row, []).append((self._table.roles[kind], first, last))
        arguments = [(row, argument) for row, row_pieces in pieces.items() for argument in join(row_pieces)]
        indices = {(row, first): n for n, (row, argument) in enumerate(arguments) for first, _ in argument.pieces}
        owner = np.array([indices.get((row, first), -1) for row, _, first, _ in spans.tolist()], dtype=np.int64)
        is_argument = owner >= 0
        return arguments, owner, self._find_confidences(proposal, best, spans[is_argument], lengths, owner[is_argument])
