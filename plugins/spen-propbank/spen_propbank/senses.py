"""Task `senses`: the sense of a predicate among those of its lemma, one example per predicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins import (
    PARTS,
    Batch,
    ChoiceInputs,
    DataError,
    Decisions,
    Proposal,
    Shown,
    TagConfidences,
    TagSequence,
    listed,
    locate,
)
from spen_plugins.sentences import (
    PADDING,
    UNKNOWN,
    Entry,
    FileExamples,
    FileParts,
    FilesConfig,
    Proposition,
    SenseTask,
    Sentence,
    SentenceBatch,
    Vocabulary,
    note_unseen,
    parse_one_predicate,
    read_parts,
    read_roles,
    rounded,
    with_file_encoding,
)
from spen_propbank.candidates import PLACES, Inventory, find_lemma, list_senses, select_attributes
from spen_propbank.lexicon import rolesets
from spen_propbank.metric import DEFINITIONS, Example, SensesMetric
from spen_propbank.sample import sample_senses

WITH_SENSES = "PropBank's columns, CoNLL-2012, CoNLL-2009, CoNLL-U with roles, or JSONL with sense"


class Senses(SenseTask):
    """Senses of predicates: words and a marked predicate -> one of the rolesets of its lemma.

    Candidates are the senses that PropBank's lexicon or the training part has for the lemma, those with a particle
    (`give_up.07`) where it is near. The output is one tag, the candidate's place, the most frequent first.
    """

    selection = "accuracy"

    class Config(FilesConfig):
        corpus: Literal["sample"] | None = None
        """"sample": made-up sentences of the package; null: the files below."""
        train: str | None = None
        """Training file with rolesets: PropBank's columns, CoNLL-2012, CoNLL-2009, CoNLL-U with roles, or JSONL with
        `sense`; `data:` paths are below $SPEN_DATA."""
        validation: str | None = None
        """Validation file; without one, it is carved from the training file, stratified by senses."""
        layout: Literal["auto", "propbank"] = "auto"
        """Order of columns; auto: the format is recognised by its content."""
        lemmas: Literal["file", "words"] = "file"
        """Lemmas of predicates: the file's where it has them, or always those that the word can have, by the training
        part's words, the lexicon and spelling."""
        window: int | None = Field(None, ge=1)
        """Words that are read on each side of the predicate; null: all."""

    @with_file_encoding
    def load(self) -> None:
        self._read = read_parts(self.config, sample_senses, list_senses, "senses", gold=False)
        sentences = {part: part_sentences for part, (_, part_sentences) in self._read.parts.items()}
        inventory = Inventory.from_sentences(sentences["train"])
        if not inventory.counts:
            path = self._read.parts["train"][0]
            raise DataError(path, None, "no predicate with a sense (task.train)", f"rolesets: {WITH_SENSES}")
        vocabulary = Vocabulary.of((sentence.words for sentence in sentences["train"]), self.config)
        self._set(vocabulary, inventory, [])
        self._parts = {part: self._examples(sentences[part]) for part in PARTS}
        attributes = select_attributes(example.candidates for example in self._parts["train"])
        self._set(vocabulary, inventory, attributes)
        senses = {part: set().union(*map(list_senses, part_sentences)) for part, part_sentences in sentences.items()}
        all_senses = set().union(*senses.values())
        unseen = sorted(sense for sense in all_senses - senses["train"] if rolesets().get(sense) is None)
        self._read.notes.extend(note_unseen(unseen, len(all_senses), "senses"))

    def restore(self, facts: Mapping[str, Any]) -> None:
        inventory = Inventory(facts["senses"], facts["forms"])
        self._set(Vocabulary(listed(facts, "words"), self.config), inventory, listed(facts, "attributes"))
        self._parts = {part: [] for part in PARTS}
        self._read = FileParts({}, {}, [], None)

    def facts(self) -> dict[str, Any]:
        return {
            "words": self._vocabulary.words,
            "attributes": list(self.inputs.attributes),
            "senses": self._inventory.counts,
            "forms": {form: list(lemmas) for form, lemmas in self._inventory.forms.items()},
        }

    def read(self, path: str) -> list[Example]:
        file = read_roles(locate(path), self.config.layout, gold=False)
        self._read = self._read._replace(notes=[f"{path}: {file.description}"])
        return self._examples(file.sentences)

    def parse(self, item: Any) -> Example:
        """`{"words": ["Forces", "killed", "him"], "predicate": 1}`, predicate from 0; optional are `"lemma"`, and gold,
        `"sense"`, such as `"kill.01"`."""
        return self._examples([parse_one_predicate(item)])[0]

    def collate(self, examples: Sequence[Example], rows: Sequence[int] | None = None) -> SentenceBatch:
        inputs, _ = self._inputs([example.entry for example in examples], [example.entry_index for example in examples])
        inputs["candidates"] = self._collate_candidates(examples)
        has_gold = torch.tensor([example.sense is not None for example in examples])
        gold = None
        if has_gold.any():
            # A sense that is not a candidate has the first candidate's place here, and counts as wrong in every score.
            # In training, only senses beyond `PLACES` are no candidates, since these come from the training part.
            places = torch.tensor([max(example.place, 0) for example in examples])
            gold = torch.nn.functional.one_hot(places, PLACES).float() * has_gold.unsqueeze(-1)
            gold = gold[:, None, None]
        mask = torch.ones(len(examples), 1, dtype=torch.bool)
        return SentenceBatch.of(inputs, mask, gold, has_gold, rows, examples=tuple(examples))

    def metric(self) -> SensesMetric:
        return SensesMetric(self.decode)

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """The `sense`, its `gloss` if the lexicon has it, and `score`, the calibrated probability that it is right.

        All three are None for a word that neither the lexicon nor the training part knows.
        """
        best, confidences = self._compute_confidences(proposal, np.ones(len(examples), dtype=bool))
        predictions = []
        for example, place, score in zip(
            examples, best.tolist(), rounded(confidences.at(self.temperature)), strict=True
        ):
            sense = example.candidates[place].sense or None
            words = list(example.words)
            predictions.append(
                {
                    "words": words,
                    "predicate": {"index": example.predicate, "word": words[example.predicate]},
                    "sense": sense,
                    "gloss": None if sense is None else self.gloss(sense),
                    "score": score if sense else None,
                }
            )
        return predictions

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each predicate's sense."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        has_gold = batch.labelled.cpu().numpy()
        best, confidences = self._compute_confidences(proposal, has_gold)
        gold = np.array([example.place for example in batch.examples], dtype=np.int64)[has_gold]
        return Decisions("senses", confidences, best == gold)

    def protocol(self) -> dict[str, Any]:
        lemmas = "the file's" if self.config.lemmas == "file" else "of the words"
        return {**DEFINITIONS, "lemmas": lemmas, "split": self._read.split, "threshold": None}

    def show(self, example: Example) -> Shown:
        words = list(example.words)
        words[example.predicate] = f"[{words[example.predicate]}]"
        return Shown([" ".join(words)], None if example.sense is None else [example.sense])

    def moved(self, example: Example, predicate: int) -> Example:
        """An example of another predicate of the same sentence, without gold."""
        return self._make_example(example.words, Proposition(predicate, None, None), example.entry)

    @classmethod
    def gloss(cls, sense: str) -> str | None:
        roleset = rolesets().get(sense)
        return None if roleset is None else roleset.gloss

    @classmethod
    def describe(cls, sense: str, role: str) -> str | None:
        roleset = rolesets().get(sense)
        return None if roleset is None else roleset.describe(role)

    def _set(self, vocabulary: Vocabulary, inventory: Inventory, attributes: Sequence[str]) -> None:
        self._vocabulary, self._inventory = vocabulary, inventory
        words = [PADDING, UNKNOWN, *vocabulary.words]
        self.inputs = ChoiceInputs(words, {"predicate": 2}, attributes=list(attributes))
        self.space = TagSequence([str(place + 1) for place in range(PLACES)])
        self._number = {name: i for i, name in enumerate(attributes, 2)}

    def _make_example(
        self, words: tuple[str, ...], proposition: Proposition, sentence_entry: Entry | None = None
    ) -> Example:
        """Makes an example; `sentence_entry` is the whole sentence's entry, if there is one."""
        index, window = proposition.predicate, self.config.window
        lemma = find_lemma(proposition) if self.config.lemmas == "file" else None
        is_seen = any(name in self._inventory.counts for name in self._inventory.lemmas(words[index], lemma))
        candidates = self._inventory.candidates(words, index, lemma)
        start = 0 if window is None else max(0, index - window)
        window_words = words if window is None else words[start : index + window + 1]
        entry = (
            sentence_entry
            if sentence_entry is not None and sentence_entry.words == window_words
            else self._vocabulary.entry(window_words)
        )
        return Example(entry, index - start, words, index, candidates, is_seen, proposition.roleset, proposition.pos)

    def _examples(self, sentences: Iterable[Sentence]) -> FileExamples:
        examples, words, rows = [], [], []
        for row, sentence in enumerate(sentences):
            words.append(sentence.words)
            rows += [row] * len(sentence.propositions)
            if sentence.propositions:
                entry = self._vocabulary.entry(sentence.words) if self.config.window is None else None
                examples += [
                    self._make_example(sentence.words, proposition, entry) for proposition in sentence.propositions
                ]
        return FileExamples(examples, words, rows)

    def _collate_candidates(self, examples: Sequence[Example]) -> Tensor:
        """Attributes `(batch, candidate, attribute)`."""
        tables = [self._number_attributes(example) for example in examples]
        shape = [max((table.shape[axis] for table in tables), default=1) for axis in (0, 1)]
        padded = np.zeros((len(tables), *shape), dtype=np.int64)
        for row, table in zip(padded, tables, strict=True):
            row[: table.shape[0], : table.shape[1]] = table
        return torch.from_numpy(padded)

    def _number_attributes(self, example: Example) -> np.ndarray:
        if example.numbers is None:
            rows = [[self._number.get(name, 1) for name in candidate.attributes] for candidate in example.candidates]
            width = max(map(len, rows))
            example.numbers = np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int32)
        return example.numbers

    def _compute_confidences(self, proposal: Proposal, rows: np.ndarray) -> tuple[np.ndarray, TagConfidences]:
        """The places `(row,)` of the senses decoded in these rows, and the confidences in them."""
        best = self.decode(proposal)[:, 0, 0].argmax(-1).cpu().numpy()[rows]
        return best, TagConfidences(proposal.mean[:, 0, 0].detach().float().cpu().numpy()[rows], best)
