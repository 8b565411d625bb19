"""`spen_srl`: predicates and their arguments, with their probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.scorer import Scorer
from spacy.symbols import VERB
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from spen_plugins import ConfigError, SemanticRoles, Tagging
from spen_plugins.sentences import SenseTask
from spen_spacy.extensions import ENERGIES, SCORES, SENSE_SCORES, SENSES, STARTS, keep_frames, make_group
from spen_spacy.predicting import Run
from spen_spacy.reading import Reading, Window, find_window
from spen_spacy.word_component import WordComponent, ask

Predicates = Mapping[int, float]
"""The words that are predicates, with their probabilities."""


class SpenSrl(WordComponent):
    """Frames of a run of task `srl`, at predicates of a run of task `tagging`; see the factory for its settings."""

    factory = "spen_srl"
    optional = ("senses",)

    @property
    def labels(self) -> tuple[str, ...]:
        tags = self._runs["model"].task.space.tags if self._runs else ()
        return tuple(sorted({tag.partition("-")[2] for tag in tags} - {"", "C-V"}))

    @property
    def parts(self) -> tuple[str, ...]:
        return ("model", "predicates") if self.settings["predicates"] == "model" else ("model",)

    def places(self) -> dict[str, Path]:
        places = super().places()
        if self.settings["predicates"] != "model" and self.settings["predicates_model"] is not None:
            raise ConfigError(f"{self.name}: found both predicates_model and predicates other than 'model'; omit one")
        others = ("predicates_model", "senses_model")
        places |= self._find_named(setting for setting in others if self.settings[setting] is not None)
        if "predicates" in self.parts and "predicates" not in places:
            self.load_part("model", places["model"])  # raises an error if this is no model of roles
            raise ConfigError(
                f"{self.name}: found no model of predicates beside {places['model']}. Train one (spen-run predicates) "
                'and give its folder as predicates_model, or set predicates="verbs"'
            )
        return places

    def check(self, part: str, run: Run) -> None:
        if part == "senses":
            if not isinstance(run.task, SenseTask):
                raise ConfigError(
                    f"{self.name}: found a senses_model that does not predict senses; expected one of task "
                    "'propbank.senses', as the config `senses` trains"
                )
        elif part == "model":
            if not isinstance(run.task, SemanticRoles):
                is_tagger = isinstance(run.task, Tagging) and "B-V" in run.task.space.tags
                fault = "tags predicates, for predicates_model" if is_tagger else "does not label semantic roles"
                raise ConfigError(
                    f"{self.name}: found a run that {fault}; expected a model of task 'srl', as the config `roles` "
                    "trains"
                )
        elif not isinstance(run.task, Tagging) or "B-V" not in run.task.space.tags:
            raise ConfigError(
                f"{self.name}: found a predicates_model that does not tag predicates; expected one of task 'tagging' "
                "with task.format or task.corpus 'predicates', as the config `predicates` trains"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        run = self.run()
        readings = [Reading(doc) for doc in docs]
        chosen = self._find_predicates(readings)
        examples = [[*self._make_examples(run, *pair)] for pair in zip(readings, chosen, strict=True)]
        answers = ask(run, [[example for _, _, example in doc_examples] for doc_examples in examples])
        senses = self._find_senses(readings, chosen)
        for reading, predicates, doc_examples, doc_answers, doc_senses in zip(
            readings, chosen, examples, answers, senses, strict=True
        ):
            frames = [
                (window, predicates[place], answer)
                for (place, window, _), answer in zip(doc_examples, doc_answers, strict=True)
            ]
            self._set(reading, frames, doc_senses)

    def _find_senses(
        self, readings: Sequence[Reading], chosen: Sequence[Predicates]
    ) -> list[list[tuple[str | None, float | None]]]:
        """The sense of each predicate and its probability, doc by doc; empty lists without a model of senses."""
        if "senses" not in self._runs:
            return [[] for _ in readings]
        run = self.run("senses")
        examples = [
            [example for _, _, example in self._make_examples(run, reading, predicates)]
            for reading, predicates in zip(readings, chosen, strict=True)
        ]
        return [[(answer["sense"], answer["score"]) for answer in doc_answers] for doc_answers in ask(run, examples)]

    def _make_examples(self, run: Run, reading: Reading, predicates: Predicates) -> Iterable[tuple[int, Window, Any]]:
        """Each predicate with the window around it and its example."""
        pieces = iter(self.pieces(reading))
        start = end = 0
        sentence = None  # examples of one piece share the features of its words
        for place in sorted(predicates):
            while place >= end:
                start, end = next(pieces)
                sentence = None
            window = find_window(place, start, end, self.settings["window"])
            if sentence is None or sentence[0] != window:
                words = reading.words[window.start : window.end]
                sentence = window, run.task.parse({"words": words, "predicate": place - window.start})
            yield place, window, run.task.moved(sentence[1], place - window.start)

    def _find_predicates(self, readings: Sequence[Reading]) -> list[Predicates]:
        source = self.settings["predicates"]
        if source == "model":
            predictions = self.read(self.run("predicates"), readings)
            return [
                {
                    window.start + entity["start"]: entity["score"]
                    for window, answer in answers
                    for entity in answer["entities"]
                    if window.own_start <= window.start + entity["start"] < window.own_end
                }
                for answers in predictions
            ]
        find = self._find_verbs if source == "verbs" else self._call_predicates
        return [dict.fromkeys(find(reading), 1.0) for reading in readings]

    def _find_verbs(self, reading: Reading) -> list[int]:
        if reading.words and not reading.doc.has_annotation("POS"):
            raise ConfigError(
                f'{self.name}: found predicates="verbs", but a doc without token.pos_; add a component that sets it '
                "(spen_pos, or a tagger and an attribute ruler) before this one"
            )
        tokens = reading.doc.to_array("POS")
        return [word for word, place in enumerate(reading.places) if tokens[place] == VERB]

    def _call_predicates(self, reading: Reading) -> list[int]:
        """The predicates that the user's function returns, without whitespace."""
        word_numbers = {place: number for number, place in enumerate(reading.places)}
        words = []
        for token in self.settings["predicates"](reading.doc):
            place = token.i if isinstance(token, Token) else token
            if isinstance(place, bool) or not isinstance(place, (int, np.integer)) or not 0 <= place < len(reading.doc):
                raise ConfigError(
                    f"{self.name}: found the predicate {token!r}; expected predicates(doc) to return tokens of the "
                    "doc or their indices"
                )
            if place in word_numbers:
                words.append(word_numbers[place])
        return words

    def _set(
        self,
        reading: Reading,
        frames: Sequence[tuple[Window, float, Any]],
        senses: Sequence[tuple[str | None, float | None]],
    ) -> None:
        doc, places = reading.doc, reading.places
        spans, scores, starts, pieces = [], [], [], []
        for window, score, answer in frames:
            starts.append(len(spans))
            pieces.append(doc[places[window.start] : places[window.end - 1] + 1])
            predicate = places[window.start + answer["predicate"]["index"]]
            spans.append(Span(doc, predicate, predicate + 1, label="V"))
            scores.append(score)
            for argument in answer["arguments"]:
                first = places[window.start + argument["start"]]
                last = places[window.start + argument["end"] - 1]
                spans.append(Span(doc, first, last + 1, label=argument["role"]))
                scores.append(argument["score"])
        key = self.settings["spans_key"] or self.name
        energies = [answer["energy"] for _, _, answer in frames] if self.settings["energy"] else []
        attributes = {STARTS: starts, ENERGIES: energies}
        attributes |= {SENSES: [sense for sense, _ in senses], SENSE_SCORES: [score for _, score in senses]}
        doc.spans.pop(key, None)  # so that the frames written last are the last in doc.spans
        self._warn_of_others(doc)
        doc.spans[key] = group = make_group(doc, key, spans, scores, **attributes)
        keep_frames(doc, spans, group.attrs[SCORES], attributes, pieces)
        self.keep_energy(doc, [answer for _, _, answer in frames])

    def _warn_of_others(self, doc: Doc) -> None:
        """Warns of frames of another component, which `doc._.srl` will no longer show."""
        for other, group in doc.spans.items():
            if STARTS in group.attrs:
                warnings.warn(
                    f"{self.name}: the doc has frames of another component; doc._.srl will show those of {self.name} "
                    f"alone. The others stay in doc.spans[{other!r}]: each predicate (V), then its arguments",
                    stacklevel=2,
                )

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """`srl_p`, `srl_r`, `srl_f` and `srl_per_type` of the spans of `doc.spans`, which include predicates as V.

        A span that is an argument of several predicates counts once. The same scores are under `spans_spen_srl_p` and
        so on, which `spacy evaluate --spans-key spen_srl` shows.
        """
        key = self.settings["spans_key"] or self.name
        scores = Scorer.score_spans(
            examples,
            f"spans_{key}",
            getter=lambda doc, _: doc.spans.get(key, []),
            has_annotation=lambda doc: key in doc.spans,
            allow_overlap=True,
        )
        return {name.replace(f"spans_{key}", "srl"): score for name, score in scores.items()} | scores
