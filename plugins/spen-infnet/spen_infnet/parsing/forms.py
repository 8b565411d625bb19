"""The two forms of a tree as an output: one tag per word, and a label or none for each span."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_infnet.parsing import tags, trees
from spen_infnet.parsing.chart import count_places, find_ends
from spen_infnet.parsing.span_trees import SpanTrees
from spen_plugins.sentences import SentenceBatch, rounded

Trees = list[tuple[list[trees.Span], bool]]
"""The spans of each sentence's tree, and true if its output was repaired."""


class Form(ABC):
    """A form of outputs.

    Args:
        config: the task's config.
        names: the learned tags or labels, which are also the tags of the composed task `tagging`.
    """

    decoding: str
    """The decoder, for a run's protocol."""

    def __init__(self, config: Any, names: Sequence[str]) -> None:
        self.names = list(names)

    @staticmethod
    @abstractmethod
    def learn(sentences: Sequence[trees.Sentence], min_count: int) -> tuple[list[str], str]:
        """The names seen at least `min_count` times in the training part, and a note on the others."""

    @abstractmethod
    def find_tags(self, sentence: trees.Sentence) -> tuple[str, ...] | None:
        """The learned tags of a sentence's words; None if outputs are of another form."""

    @abstractmethod
    def make_space(self, tagging: sp.Tagging) -> sp.OutputSpace:
        """The output space."""

    @abstractmethod
    def collate(self, batch: SentenceBatch) -> SentenceBatch:
        """The batch of the composed task of tags, with outputs of this form."""

    @abstractmethod
    def decode(self, proposal: sp.Proposal) -> Tensor:
        """The output that is reported and scored, `(batch, 1, *variables)`."""

    @abstractmethod
    def find_trees(self, y: Tensor, lengths: Sequence[int]) -> Trees:
        """The trees of decoded outputs `(batch, 1, *variables)`."""

    @abstractmethod
    def decisions(self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch) -> sp.Decisions | None:
        """Decisions on each word's tag, or on each constituent."""

    @abstractmethod
    def scores(
        self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch, parses: Trees
    ) -> list[list[float]]:
        """Calibrated probabilities of these decisions for each sentence."""


class TagForm(Form):
    """One tag per word (Gómez-Rodríguez & Vilares 2018)."""

    decoding = "the most probable tags if they encode a tree, otherwise those of the best tree that a beam search finds"

    def __init__(self, config: Any, names: Sequence[str]) -> None:
        super().__init__(config, names)
        self._tag_set = tags.TagSet(list(map(tags.Tag.parse, names)))

    @staticmethod
    def learn(sentences: Sequence[trees.Sentence], min_count: int) -> tuple[list[str], str]:
        counts = Counter(tag for sentence in sentences for tag in _encode(sentence))
        tag_set = tags.TagSet.from_counts(counts, min_count)
        rare = sum(count for tag, count in counts.items() if tag_set.replace(tag) != tag) / counts.total()
        note = (
            f"{len(tag_set.tags)} of {len(counts)} tags are learned; {rare:.1%} of the training words have other tags"
        )
        return list(map(str, tag_set.tags)), note

    def find_tags(self, sentence: trees.Sentence) -> tuple[str, ...]:
        return tuple(str(self._tag_set.replace(tag)) for tag in _encode(sentence))

    def make_space(self, tagging: sp.Tagging) -> sp.OutputSpace:
        return tagging.space

    def collate(self, batch: SentenceBatch) -> SentenceBatch:
        return batch

    def decode(self, proposal: sp.Proposal) -> Tensor:
        """The most probable tags if they encode a tree, otherwise those of the best tree that `TagSet.search` finds, by
        the marginals."""
        return proposal.keep("tree", lambda: self._search(proposal)) if proposal.chosen is None else proposal.chosen

    def _search(self, proposal: sp.Proposal) -> Tensor:
        y, mean = proposal.mode.clone(), proposal.mean.detach()
        lengths = [y.shape[2]] * len(y) if proposal.mask is None else proposal.mask.sum(1).tolist()
        for row, sentence_tags in enumerate(self._look_up(y, lengths)):
            if tags.is_tree(sentence_tags):
                continue
            if (numbers := self._tag_set.search(mean[row, 0, : len(sentence_tags)].log().cpu())) is not None:
                y[row, 0, : len(sentence_tags)] = F.one_hot(torch.tensor(numbers), y.shape[-1]).to(y)
        return y

    def _look_up(self, y: Tensor, lengths: Sequence[int]) -> list[list[tags.Tag]]:
        """The tags of each sentence."""
        rows = zip(y[:, 0].argmax(-1).tolist(), lengths, strict=True)
        return [[self._tag_set.tags[number] for number in numbers[:length]] for numbers, length in rows]

    def find_trees(self, y: Tensor, lengths: Sequence[int]) -> Trees:
        sequences = self._look_up(y, lengths)
        return [
            (spans := tags.decode(sequence), tags.encode(spans, len(sequence)) != sequence) for sequence in sequences
        ]

    def decisions(self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch) -> sp.Decisions | None:
        return tagging.decisions(replace(proposal, chosen=self.decode(proposal)), batch)

    def scores(
        self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch, parses: Trees
    ) -> list[list[float]]:
        decoded = replace(proposal, chosen=self.decode(proposal))
        return [prediction["scores"] for prediction in tagging.predictions(decoded, batch, batch.examples)]


class SpanForm(Form):
    """A label or none for each span; a unary chain is one label."""

    def __init__(self, config: Any, names: Sequence[str]) -> None:
        super().__init__(config, names)
        self._decode, self._space = config.decode, SpanTrees(names)
        self.decoding = {"mbr": "the tree of largest Σ (p − ½)", "viterbi": "the most probable tree"}[config.decode]
        self._numbers = {name: i for i, name in enumerate(names)}

    @staticmethod
    def learn(sentences: Sequence[trees.Sentence], min_count: int) -> tuple[list[str], str]:
        counts = Counter(label for sentence in sentences for *_, label in trees.spans(sentence.tree))
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        learned = [label for label in ranked if counts[label] >= min_count] or ranked[:1]
        rare = 1 - sum(counts[label] for label in learned) / max(counts.total(), 1)
        note = f"{len(learned)} of {len(counts)} labels are learned; "
        return learned, f"{note}{rare:.1%} of the training constituents have other labels"

    def find_tags(self, sentence: trees.Sentence) -> None:
        return None

    def make_space(self, tagging: sp.Tagging) -> SpanTrees:
        return self._space

    def collate(self, batch: SentenceBatch) -> SentenceBatch:
        """Gold replaces an unknown chain by its longest known part, or else by the most frequent label."""
        sentences = [example.sentence for example in batch.examples]
        sizes = torch.tensor([count_places(len(example.entry.ids)) for example in batch.examples])
        mask = torch.arange(count_places(batch.x.inputs["words"].shape[1])) < sizes.unsqueeze(1)
        values = torch.zeros(mask.shape, dtype=torch.long)
        for row, sentence in enumerate(sentences):
            for start, end, label in trees.spans(sentence.tree) if sentence is not None else ():
                values[row, count_places(end - 1) + start] = 1 + self._find_label(label)
        labelled = torch.tensor([sentence is not None for sentence in sentences])
        gold = self._space.one_hot(values.unsqueeze(1), mask & labelled.unsqueeze(1))
        x = sp.X(batch.x.inputs, mask, batch.x.size)
        return replace(batch, x=x, gold=gold if labelled.any() else None, labelled=labelled)

    def _find_label(self, chain: str) -> int:
        """The number of the label that stands for a unary chain."""
        parts = chain.split(trees.JOINT)
        for size in range(len(parts), 0, -1):
            for start in range(len(parts) - size + 1):
                label = trees.JOINT.join(parts[start : start + size])
                if label in self._numbers:
                    return self._numbers[label]
        return 0

    def decode(self, proposal: sp.Proposal) -> Tensor:
        if proposal.chosen is not None:
            return proposal.chosen
        if self._decode == "viterbi":
            return proposal.mode
        return proposal.space.best(proposal.mean.detach()[:, 0, :, 1:] - 0.5, proposal.mask)

    def find_trees(self, y: Tensor, lengths: Sequence[int]) -> Trees:
        parses: Trees = []
        for row, length in zip(y[:, 0].argmax(-1).cpu(), lengths, strict=True):
            first, last = find_ends(length)
            places = row[: len(first)].nonzero()[:, 0]
            ends = zip(first[places].tolist(), last[places].tolist(), row[places].tolist(), strict=True)
            spans = [(start, end + 1, self.names[value - 1]) for start, end, value in ends]
            parses.append((sorted(spans, key=lambda span: (span[0], -span[1])), False))
        return parses

    def decisions(self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch) -> sp.Decisions | None:
        if batch.gold is None:
            return None
        parses = self.find_trees(self.decode(proposal), [len(example.entry.ids) for example in batch.examples])
        p, is_right = [], []
        for numbers, (spans, _), example in zip(
            self._find_posteriors(proposal, parses), parses, batch.examples, strict=True
        ):
            if example.sentence is not None:
                gold = set(trees.spans(example.sentence.tree))
                p.extend(numbers)
                is_right.extend(span in gold for span in spans)
        return sp.Decisions("spans", sp.LabelConfidences(np.array(p)), np.array(is_right, dtype=bool))

    def scores(
        self, tagging: sp.Tagging, proposal: sp.Proposal, batch: SentenceBatch, parses: Trees
    ) -> list[list[float]]:
        return [
            rounded(sp.LabelConfidences(np.array(p)).at(tagging.temperature))
            for p in self._find_posteriors(proposal, parses)
        ]

    def _find_posteriors(self, proposal: sp.Proposal, parses: Trees) -> list[list[float]]:
        """The posterior of each constituent."""
        mean = proposal.mean.detach()[:, 0].float().cpu()
        return [
            [float(p[count_places(end - 1) + start, 1 + self._numbers[label]]) for start, end, label in spans]
            for p, (spans, _) in zip(mean, parses, strict=True)
        ]


FORMS: dict[str, type[Form]] = {"tags": TagForm, "spans": SpanForm}


def _encode(sentence: trees.Sentence) -> list[tags.Tag]:
    return tags.encode(trees.spans(sentence.tree), len(sentence.words))
