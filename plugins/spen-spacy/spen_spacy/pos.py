"""`spen_pos`: parts of speech and finer tags, with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from spacy.attrs import POS, TAG
from spacy.parts_of_speech import IDS
from spacy.scorer import Scorer
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from spen_plugins import ConfigError, Tagging
from spen_spacy.extensions import keep_token_scores
from spen_spacy.predicting import Run
from spen_spacy.reading import Reading
from spen_spacy.word_component import WordComponent

UNIVERSAL = frozenset(IDS) - {"", "CONJ", "EOL", "SPACE"}
WHITESPACE = {TAG: "_SP", POS: "SPACE"}


class SpenPos(WordComponent):
    """Tags of a run of task `tagging` whose tags do not encode spans; see the factory for its settings."""

    factory = "spen_pos"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._runs["model"].task.space.tags) if self._runs else ()

    def check(self, part: str, run: Run) -> None:
        if not isinstance(run.task, Tagging) or run.task.config.scheme != "none":
            raise ConfigError(
                f"{self.name}: found a run that doesn't give each word a tag of its own; expected one of task "
                "'tagging' with task.scheme none, as the config `tags` trains"
            )
        tags = run.task.space.tags
        columns = choose_attributes(tags, self.settings["attribute"])
        if not columns:
            raise ConfigError(
                f"{self.name}: found attribute='pos', but tags such as {tags[0]!r}, which are not Universal POS tags; "
                "expected attribute='tag' or 'auto'"
            )
        self._columns = list(columns)
        self.unassigned = frozenset(
            {TAG: "token.tag", POS: "token.pos"}[column] for column in {TAG, POS} - columns.keys()
        )
        names = [(*row, WHITESPACE[column]) for column, row in columns.items()]
        self._names = sorted({name for row in names for name in row})
        self._number = {tag: i for i, tag in enumerate(tags)}
        ids = {TAG: get_string_id, POS: IDS.__getitem__}
        # A column per attribute; whitespace in the last row.
        self._values = np.array(
            [[ids[column](name) for name in row] for column, row in zip(columns, names, strict=True)], dtype=np.uint64
        ).T

    def annotate(self, docs: Sequence[Doc]) -> None:
        run = self.run()
        readings = [Reading(doc) for doc in docs]
        predictions = self.read(run, readings)
        for strings in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
            for name in self._names:
                strings.add(name)
        for reading, answers in zip(readings, predictions, strict=True):
            doc = reading.doc
            tags: list[str] = []
            scores: list[float] = []
            for window, answer in answers:
                own_words = slice(window.own_start - window.start, window.own_end - window.start)
                tags += answer["tags"][own_words]
                scores += answer["scores"][own_words]
            numbers = np.full(len(doc), len(self._number))
            numbers[reading.places] = [self._number[tag] for tag in tags]
            token_scores = np.full(len(doc), np.nan, dtype=np.float32)
            token_scores[reading.places] = scores
            if len(doc):
                doc.from_array(self._columns, self._values[numbers])
            keep_token_scores(doc, token_scores)
            self.keep_energy(doc, [answer for _, answer in answers])

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """`tag_acc` and `pos_acc`, of the attributes that the component sets."""
        self.run()
        examples = list(examples)
        names = ["tag"] * (TAG in self._columns) + ["pos"] * (POS in self._columns)
        return {key: value for name in names for key, value in Scorer.score_token_attr(examples, name).items()}


def choose_attributes(tags: Sequence[str], attribute: str) -> Mapping[int, Sequence[str]]:
    """The value of each tag of a run for each token attribute; empty if the tags don't fit `attribute`: "auto", "pos"
    or "tag"."""
    pairs = [tag.partition("+")[::2] for tag in tags]
    if all(fine and coarse in UNIVERSAL for coarse, fine in pairs):  # as in NOUN+NNS
        values = {TAG: [fine for _, fine in pairs], POS: [coarse for coarse, _ in pairs]}
        return values if attribute == "auto" else {TAG: values[TAG]} if attribute == "tag" else {POS: values[POS]}
    is_universal = all(tag in UNIVERSAL for tag in tags)
    if attribute == "tag" or (attribute == "auto" and not is_universal):
        return {TAG: tags}
    return {POS: tags} if is_universal else {}
