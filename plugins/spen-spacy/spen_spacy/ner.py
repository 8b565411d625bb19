"""`spen_ner`: named entities with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from spen_plugins import ConfigError, Tagging
from spen_spacy.extensions import make_group
from spen_spacy.predicting import Run
from spen_spacy.reading import Entity, Reading, drop_overlaps
from spen_spacy.word_component import WordComponent

NAMED = {"per", "person", "org", "organisation", "organization", "corporation", "group", "loc", "location", "gpe"}
"""Types of names that an e-mail address can't have."""


class SpenNer(WordComponent):
    """Entities of a run of task `tagging` whose tags encode spans; see the factory for its settings."""

    factory = "spen_ner"
    reads_whole = True

    @property
    def labels(self) -> tuple[str, ...]:
        tags = self._runs["model"].task.space.tags if self._runs else ()
        return tuple(sorted({tag.partition("-")[2] for tag in tags} - {""}))

    def check(self, part: str, run: Run) -> None:
        if not isinstance(run.task, Tagging) or run.task.config.scheme == "none":
            raise ConfigError(
                f"{self.name}: found a run whose outputs are not spans of words; expected one of task 'tagging' with "
                "task.scheme bio, iob1 or bioes, as the config `names` trains"
            )
        if "predicates" in (run.task.config.format, run.task.config.corpus):
            raise ConfigError(f"{self.name}: found a run that tags predicates; use it in spen_srl, as predicates_model")

    def annotate(self, docs: Sequence[Doc]) -> None:
        readings = [Reading(doc) for doc in docs]
        for reading, answers in zip(readings, self.read(self.run(), readings), strict=True):
            entities = []
            for window, answer in answers:
                for entity in answer["entities"]:
                    start, end = window.start + entity["start"], window.start + entity["end"]
                    if window.own_start <= (start + end - 1) // 2 < window.own_end:
                        entities.append(Entity(start, end, entity["type"], entity["score"]))
            self._set(reading, drop_overlaps(entities))
            self.keep_energy(reading.doc, [answer for _, answer in answers])

    def _set(self, reading: Reading, entities: Sequence[Entity]) -> None:
        doc, places = reading.doc, reading.places
        entities = [
            entity
            for entity in entities
            if not (entity.label.lower() in NAMED and doc[places[entity.start]].like_email)
        ]
        spans = [Span(doc, places[entity.start], places[entity.end - 1] + 1, label=entity.label) for entity in entities]
        key = self.settings["spans_key"] or self.name
        doc.spans[key] = make_group(doc, key, spans, [entity.score for entity in entities])
        iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
        is_blocked = (iob == 3) & (kind == 0)
        is_taken = is_blocked if self.settings["overwrite"] else (iob == 1) | (iob == 3)
        chosen = [span for span in spans if not is_taken[span.start : span.end].any()]
        is_replaced = np.zeros(len(doc), dtype=bool)
        for span in chosen:
            is_replaced[span.start : span.end] = True
        earlier = [span for span in doc.ents if not is_replaced[span.start : span.end].any()]
        blocked = [doc[i : i + 1] for i in np.flatnonzero(is_blocked).tolist()]
        doc.set_ents([*earlier, *chosen], blocked=blocked)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """`ents_p`, `ents_r`, `ents_f` and `ents_per_type`, as in spaCy's `ner`."""
        return get_ner_prf(examples)
