"""`spen_parser`: docs get the trees of the run, and noun phrases."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span

import spen_plugins as sp
from spen_plugins.errors import ConfigError, RunError
from spen_spacy.parsing.trees import keep_trees
from tests.loaded import piped, trained

WORDS = ["The", "cat", "(", "Ben", ")", "sees", "Anna", ".", "Go", "!"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("parsing", tmp_path_factory.mktemp("parser") / "run", **{"trainer.epochs": "2"})


def test_trees_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    nlp = piped("spen_parser", model=run)
    doc = nlp(Doc(nlp.vocab, words=WORDS, sent_starts=[i in (0, 8) for i in range(10)]))
    predictions = sp.load(run).predict([{"words": WORDS[:8]}, {"words": WORDS[8:]}])
    assert doc._.tree.splitlines() == [prediction["tree"] for prediction in predictions]
    assert [sentence._.tree for sentence in doc.sents] == [prediction["tree"] for prediction in predictions]
    nlp.to_disk(tmp_path)
    restored = spacy.load(tmp_path)(Doc(nlp.vocab, words=WORDS, sent_starts=[i in (0, 8) for i in range(10)]))
    assert restored._.tree == doc._.tree == Doc(nlp.vocab).from_bytes(doc.to_bytes())._.tree


def test_long_sentences_have_several_trees(run: Path) -> None:
    nlp = piped("spen_parser", model=run, window=6, sentences="doc")
    doc = nlp(" ".join(["the cat sees the dog in the house of Anna and"] * 3))
    assert len(doc._.tree.splitlines()) > 1
    assert doc._.tree.count(" (XX ") == len(doc)


def test_trees_and_noun_phrases_written_by_hand() -> None:
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["The", "cat", "  ", "of", "Ben", "sleeps", "Go"], tags=["DT", "NN", "_SP", *["X"] * 4])
    assert doc._.tree is None and doc._.noun_phrases == []
    spans = [(0, 6, "S"), (0, 5, "NP"), (0, 2, "NP"), (3, 5, "PP"), (4, 5, "NP+NP"), (5, 6, "VP"), (6, 7, "S+VP")]
    keep_trees(doc, "spen_parser", [(0, 6), (6, 7)], [Span(doc, a, b, label=label) for a, b, label in spans])
    first = "(TOP (S (NP (NP (DT The) (NN cat)) (PP (X of) (NP (NP (X Ben))))) (VP (X sleeps))))"
    assert doc._.tree == f"{first}\n(TOP (S (VP (X Go))))"
    assert doc[:6]._.tree == first
    assert [span.text for span in doc._.noun_phrases] == [doc[:5].text, "The cat", "Ben"]
    other = doc.copy()
    other.spans["spen_parser"].append(Span(other, 1, 3, label="X"))
    with pytest.raises(RunError, match="found 7 tokens and 8 spans; expected 7 and 7"):
        other._.tree  # noqa: B018
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(RunError, match="no longer holds the predicted constituents"):
        doc._.tree  # noqa: B018


def test_a_run_of_another_task_is_rejected(tmp_path: Path) -> None:
    run = trained("tags", tmp_path / "run", method="cross_entropy", **{"trainer.epochs": "1"})
    with pytest.raises(ConfigError, match=r"spen_parser: found a run whose outputs are not trees"):
        piped("spen_parser", model=run)
