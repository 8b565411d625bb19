"""Task `citations`: the field (author, title, …) of every token of a citation, with a reward for citations without
fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

import spen_plugins as sp
from spen_implicit.citations.reader import BREAK, FIELDS, GAP, GLUED, SPACE, drop_markup, read_citation, read_citations
from spen_implicit.citations.reward import Shape, reward
from spen_implicit.citations.rules import RULES, find_rules
from spen_implicit.citations.search import COSTS, search
from spen_plugins.sentences import (
    FileParts,
    RawText,
    SentenceBatch,
    SentencesConfig,
    SentenceTask,
    TaggedExample,
    TaggedSentence,
    WithoutGold,
    hide_tags,
    name_files,
    named_files,
    read_file_parts,
    shared_inputs,
    with_file_encoding,
)

Parts = dict[str, tuple[object, Sequence[TaggedSentence]]]
RULE = "rule"


class Citations(SentenceTask, WithoutGold, sp.TakesRules):
    """Citation fields: words and punctuation -> a field for each.

    Besides the words a feature network sees two columns: `gap`, the white space before a token, and `rule`, the rule
    for words that it matches (`rules.RULES`). The reward uses these rules, or those of `task.rules`.
    """

    selection = "accuracy"

    class Config(SentencesConfig, sp.RulesConfig):
        corpus: Literal["sample"] | None = None
        """"sample": citations written from templates by the package; null: the files, of citations tagged inline."""
        parts: tuple[PositiveInt, PositiveInt, NonNegativeInt] | None = None
        """Numbers of training, validation and test citations, if `train` holds them all, in this order."""
        fields: list[str] = Field(list(FIELDS), min_length=2)
        """The fields, which are the tags."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        if len(set(config.fields)) < len(config.fields):
            raise sp.ConfigError(f"task.fields: found {config.fields}; expected each field once")

    @with_file_encoding
    def load(self) -> None:
        tagging = self._make_tagging()
        tagging.learn(self._read_parts(), self.config.fields)
        self._compose(tagging)
        self._read.notes.extend(self.apply_rules(self._find_hits, lambda example: example.tags))

    def _find_hits(self, example: TaggedExample) -> Any:
        items = example.entry.items
        if "rules" not in items:
            names = {number: gap for gap, number in self._gaps.items()}
            gaps = tuple(names.get(number, SPACE) for number in example.columns[GAP].tolist())
            items["rules"] = self.rules.index(sp.MarkedWords(example.entry.words, gaps=gaps))
        return items["rules"]

    def restore(self, facts: Mapping[str, Any]) -> None:
        tagging = self._make_tagging()
        tagging.restore(facts)
        self._compose(tagging)

    def facts(self) -> dict[str, Any]:
        return self._tagging.facts()

    def collate(self, examples: Sequence[TaggedExample], rows: Sequence[int] | None = None) -> SentenceBatch:
        """The batch with the rules' votes, as in `spen_plugins.Rules`: each names the fields that a token may have."""
        batch = self._tagging.collate(examples, rows)
        if self.config.rules is None:
            rule = batch.x.inputs[RULE]
            batch.x.inputs[sp.VOTES] = self._votes[rule]
            batch.x.inputs[sp.FIRED] = torch.nn.functional.one_hot(rule, len(self._votes))[..., 2:].bool()
        return batch

    def rule_votes(self) -> Tensor | None:
        return self._votes[2:] if self.config.rules is None else super().rule_votes()

    def metric(self) -> sp.Metric:
        return self._tagging.metric()

    def decisions(self, proposal: sp.Proposal, batch: sp.Batch) -> sp.Decisions | None:
        return self._tagging.decisions(proposal, batch)

    def show(self, example: TaggedExample) -> sp.Shown:
        return self._tagging.show(example)

    def read(self, path: str) -> list[TaggedExample]:
        """Citations of a file, tagged inline or plain, one per line; or of anystyle's XML, without fields."""
        file = sp.locate(path)
        sentences = read_citations(file, self.config.fields, gold=False)
        return [self._tagging.example(_apply_rules(sentence), file) for sentence in sentences]

    def read_text(self, raw: RawText) -> list[TaggedExample]:
        """One citation per line; tags that are no fields are dropped from a line without fields."""
        lines = enumerate(sp.split_lines(raw.text), 1)
        return [self.parse(drop_markup(line, self.config.fields), number) for number, line in lines if line.strip()]

    def parse(self, item: Any, number: int | None = None) -> TaggedExample:
        """A text, or `{"text": …}`; its fields may be tagged inline. `number` is its line, for errors."""
        text = item.get("text") if isinstance(item, Mapping) else item
        sentence = read_citation(text, self.config.fields, number) if isinstance(text, str) else None
        if sentence is None or not sentence.words:
            raise sp.DataError(
                "input", number, f"{item!r:.80}", 'a citation as text, or {"text": "A. Writer. A Title. …"}'
            )
        return self._tagging.example(_apply_rules(sentence), "input")

    def reward(self, x: sp.X, y: Tensor) -> Tensor | None:
        """The rules' votes on words, times a mean of terms about the shape of a citation: `reward.reward`."""
        return None if sp.VOTES not in x.inputs else reward(y, *self._look_up(x, y))

    @torch.no_grad()
    def search(self, x: sp.X, proposal: sp.Proposal) -> Tensor:
        """The best pieces near the net's marginals under the rules, for several weights of the net; the net's weight
        is highest in the first sample."""
        log_q = torch.log(proposal.mean[:, 0].float().clamp(min=1e-4))
        mask, votes, _, shape = self._look_up(x, log_q)
        costs = self._costs.to(log_q)[x.inputs[GAP]]
        begins = log_q.new_zeros(log_q.shape[-1])
        begins[list(shape.first)] = 1
        return self.space.one_hot(search(log_q, mask > 0, votes, costs, begins), x.mask).to(proposal.mean.dtype)

    def predictions(
        self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[TaggedExample]
    ) -> list[dict[str, Any]]:
        """Tags and scores as in task `tagging`, and `fields`: each `field` with its `text`, in order."""
        self._tagging.temperature = self.temperature
        predictions = self._tagging.predictions(proposal, batch, examples)
        for prediction, example in zip(predictions, examples, strict=True):
            spaces = ["" if gap == self._gaps.get(GLUED) else " " for gap in example.columns[GAP]]
            tokens = zip(prediction["tags"], spaces, prediction["words"], strict=True)
            prediction["fields"] = [
                {"field": tag, "text": "".join(gap + word for _, gap, word in group).strip()}
                for tag, group in groupby(tokens, key=lambda token: token[0])
            ]
        return predictions

    def protocol(self) -> dict[str, Any]:
        c = self.config
        return {
            **self._tagging.protocol(),
            "labelled": "all" if c.labelled is None else f"the first {c.labelled} training citations",
            "selection": "on the validation part with its fields, whatever the number of labelled training citations",
        }

    def _look_up(self, x: sp.X, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Shape]:
        mask = y.new_ones(x.inputs[RULE].shape) if x.mask is None else x.mask.to(y.dtype)
        votes = x.inputs[sp.VOTES].to(y.dtype)
        votes = votes - votes.amin(-1, keepdim=True)  # votes against a field become votes for all others
        breaks = (x.inputs[GAP] == self._gaps[BREAK]).to(y.dtype)
        return mask, votes, breaks, self._shape

    def _make_tagging(self) -> sp.Tagging:
        """The composed task, not yet loaded."""
        settings = {name: getattr(self.config, name) for name in SentencesConfig.model_fields}
        tagging = sp.Tagging(sp.Tagging.Config(columns={GAP: 0, RULE: 0}, constrained=False, **settings))
        tagging.indexers = self.indexers
        return tagging

    def _compose(self, tagging: sp.Tagging) -> None:
        """Sets the composed task, and the tables of its columns and fields."""
        self._tagging, self.space, self.inputs = tagging, tagging.space, tagging.inputs
        self._parts = {part: tagging.part(part) for part in sp.PARTS}
        self._read = FileParts({}, tagging.checksums(), list(tagging.notes()), None)
        values = tagging.facts()["columns"]
        numbers = {field: i for i, field in enumerate(self.space.tags)}
        # Columns number padding 0 and unknown values 1.
        self._gaps = {gap: i for i, gap in enumerate(values[GAP], 2)}
        self._votes = torch.zeros(len(values[RULE]) + 2, len(numbers))
        for row, rule in enumerate(values[RULE], 2):
            for field in RULES.get(rule, ()):
                if field in numbers:
                    self._votes[row, numbers[field]] = 1
        self._costs = torch.tensor([0.0, 0.0, *(COSTS[gap] for gap in values[GAP])])
        groups = [[numbers[f] for f in group if f in numbers] for group in _WHOLE]
        self._shape = Shape(tuple(groups[0]), tuple(tuple(group) for group in groups if group))

    def _read_parts(self) -> FileParts[TaggedSentence]:
        c = self.config
        if c.parts is not None:
            file_parts = self._cut_parts()
        elif files := name_files(c, ["sample"]):
            file_parts = read_file_parts(files, self._read_file, lambda s: set(s.tags or ()), "fields")
        else:
            from spen_implicit.citations.samples import sample_citations

            parts = {part: ("the sample", citations) for part, citations in sample_citations().items()}
            file_parts = FileParts(parts, {}, [], "sample (synthetic)")
        parts_with_rules: Parts = {
            part: (source, list(map(_apply_rules, sentences))) for part, (source, sentences) in file_parts.parts.items()
        }

        def read_plain(path: Path) -> tuple[list[TaggedSentence], str]:
            sentences = read_citations(path, c.fields, gold=False)
            return [_apply_rules(s) for s in sentences], f"{len(sentences):,} citations"

        return hide_tags(c, file_parts._replace(parts=parts_with_rules), read_plain)

    def _read_file(self, path: Path) -> tuple[list[TaggedSentence], str]:
        sentences = read_citations(path, self.config.fields)
        return sentences, f"{len(sentences):,} citations"

    def _cut_parts(self) -> FileParts[TaggedSentence]:
        """The parts of `train` in its order, with the numbers of citations of `parts`."""
        c = self.config
        if c.corpus is not None or named_files(c).keys() != {"train"}:
            keys = ", ".join(f"task.{key}" for key in ("corpus", *named_files(c)) if getattr(c, key) is not None)
            raise sp.ConfigError(f"task.parts requires task.train and nothing else; found {keys or 'no file'}")
        file = sp.locate(c.train)
        sentences = read_citations(file, c.fields)
        if len(sentences) < sum(c.parts):
            raise sp.DataError(
                file, None, f"{len(sentences)} citations", f"at least {sum(c.parts)}, the sum of task.parts"
            )
        ends = [0, c.parts[0], c.parts[0] + c.parts[1], sum(c.parts)]
        parts: Parts = {part: (file, sentences[ends[i] : ends[i + 1]]) for i, part in enumerate(sp.PARTS)}
        shared = shared_inputs({part: [s.words for s in part_sentences] for part, (_, part_sentences) in parts.items()})
        split = f"{c.train}, cut in its order: {' / '.join(map(str, c.parts))}"
        return FileParts(parts, {c.train: sp.sha256(file)}, shared, split)


_WHOLE = (("author", "editor"), ("title",), ("date",))
"""Groups of fields: a citation should have a field of each group, and begin with one of the first group."""


def _apply_rules(sentence: TaggedSentence) -> TaggedSentence:
    """The sentence with a column of rules."""
    rules = find_rules(sentence.words, sentence.columns[GAP])
    return replace(sentence, columns={**sentence.columns, RULE: rules})
