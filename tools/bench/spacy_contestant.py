"""One contestant of `bench_spacy.py`, measured in a process of its own: loaded, scored, timed."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.srl import Sentence
from tools.bench.spacy_docs import Kind, plain, read, words_of
from tools.bench.spacy_scores import score

FACTORIES = {"ner": "spen_ner", "tag": "spen_pos", "srl": "spen_srl"}
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
MARKED = "bench_predicates"
"""Doc extension that holds the corpus's predicates."""


@dataclass(frozen=True)
class Contestant:
    """A pipeline, or a run of ours.

    Args:
        name: its row in the table.
        source: a folder for `spacy.load`, an installed package, a run folder or a saved component's.
        also: for a pipeline, the components to load (None: all); for a run of `srl`, the run that tags predicates.
        precision: the precision of our components.
    """

    name: str
    source: str
    also: str | None = None
    precision: str = "no"

    @classmethod
    def parse(cls, word: str) -> Contestant:
        """Parses `NAME=SOURCE` or `NAME=SOURCE:ALSO`, either with `@PRECISION`."""
        name, separator, rest = word.partition("=")
        rest, _, precision = rest.partition("@")
        source, _, also = rest.partition(":")
        if not (name and separator and source) or precision not in ("", "bf16", "int8"):
            raise ValueError(
                f"found {word!r}; expected NAME=PIPELINE, NAME=RUN or either with :MORE, and @bf16 or @int8"
            )
        return cls(name, source, also or None, precision or "no")

    @property
    def is_run(self) -> bool:
        """True if the source is a folder of a run or of a saved component, without a pipeline's `config.cfg`."""
        path = Path(self.source)
        return path.is_dir() and not (path / "config.cfg").is_file()

    def load(self, kind: Kind) -> Language:
        """Returns a pipeline ready to annotate."""
        if not self.is_run:
            pipes = spacy.info(self.source, silent=True)["pipeline"]
            excluded = set(pipes) - set((self.also or "").split(","))
            precisions = {f"components.{pipe}.precision": self.precision for pipe in pipes if pipe.startswith("spen_")}
            return spacy.load(self.source, exclude=list(excluded) if self.also else [], config=precisions)
        nlp = spacy.blank("en")
        config: dict[str, Any] = {"model": self.source, "precision": self.precision}
        if self.also:
            config["predicates_model"] = self.also
        nlp.add_pipe(FACTORIES[kind], config=config)
        return nlp


def measure(contestant: Contestant, kind: Kind, test: Path, limit: int | None, clock: str) -> dict[str, Any]:
    """Scores as fractions, `load` in seconds, `texts` and `docs` in words per second, memory and size in MB."""
    timer, sentences = CLOCKS[clock], read(kind, test)[:limit]
    memory_before = resident()
    started = timer()
    nlp = contestant.load(kind)
    figures: dict[str, Any] = {"load": timer() - started, "memory_before": memory_before, "memory": resident()}
    figures["disk"] = size_on_disk(nlp)
    figures |= scores(nlp, kind, sentences)  # an untimed first pass, which fills caches
    texts = [" ".join(words_of(sentence)) for sentence in sentences]
    figures["texts"] = rate(nlp, texts, timer)
    figures["docs"] = rate(nlp, [plain(sentence, nlp.vocab) for sentence in sentences], timer)
    gc.collect()
    figures["memory_after"] = resident()
    return figures


def scores(nlp: Language, kind: Kind, sentences: Sequence[TaggedSentence | Sentence]) -> dict[str, float]:
    """Scores on the corpus's own tokens; for `srl` with predicted and, as `f1_gold`, with gold predicates."""
    docs = list(nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences))
    fractions = score(kind, docs, sentences)
    if kind == "srl":
        fractions["f1_gold"] = score(kind, with_gold_predicates(nlp, sentences), sentences)["f1"]
    return fractions


def with_gold_predicates(nlp: Language, sentences: Sequence[Sentence]) -> list[Doc]:
    """Docs annotated with gold predicates."""
    settings = nlp.get_pipe(FACTORIES["srl"]).settings
    original, settings["predicates"] = settings["predicates"], lambda doc: doc.user_data[MARKED]
    docs = [plain(sentence, nlp.vocab) for sentence in sentences]
    for doc, sentence in zip(docs, sentences, strict=True):
        doc.user_data[MARKED] = [p.predicate for p in sentence.propositions]
    docs = list(nlp.pipe(docs))
    settings["predicates"] = original
    return docs


def rate(nlp: Language, inputs: Sequence[str | Doc], timer: Callable[[], float]) -> float:
    """Words per second through `nlp.pipe`; the resulting Docs are discarded, as in a program over a corpus."""
    started = timer()
    words = sum(map(len, nlp.pipe(inputs)))
    return words / (timer() - started)


def resident() -> float:
    """This process' memory in MB."""
    return psutil.Process().memory_info().rss / 1e6


def size_on_disk(nlp: Language) -> float:
    """Size of the folder written by `nlp.to_disk`, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
