"""`spacy train` and related commands: our components reject training, and annotate while frozen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import spacy
from confection import Config
from spacy.cli.debug_data import debug_data
from spacy.cli.find_threshold import find_threshold
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train

from spen_plugins.errors import ConfigError
from tests.loaded import piped


@pytest.fixture
def gold(tmp_path: Path) -> str:
    """A file of one sentence with its tags."""
    doc = Doc(spacy.blank("en").vocab, words=["Anna", "sleeps", "."], tags=["NNP", "VBZ", "."])
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    return str(tmp_path / "gold.spacy")


def make_tagger_config(nlp: Language, path: str, frozen: Sequence[str] = ()) -> Config:
    """Returns the config of a pipeline with `spen_ner` and a tagger, which is trained for one update."""
    nlp.add_pipe("tagger")
    config = nlp.config
    config["paths"] |= {"train": path, "dev": path}
    config["training"] |= {"max_steps": 1, "frozen_components": [*frozen], "annotating_components": [*frozen]}
    return config


@pytest.mark.parametrize("sourced", [False, True])
def test_frozen_components_annotate_while_others_train(
    runs: dict[str, Path], gold: str, tmp_path: Path, sourced: bool
) -> None:
    saved = piped("spen_ner", model=runs["ner"])
    saved.to_disk(tmp_path / "saved")
    config = make_tagger_config(saved, gold, ["spen_ner"])
    if sourced:
        config["components"]["spen_ner"] = {"source": str(tmp_path / "saved")}
    nlp = init_nlp(config)
    entities: list[tuple[str, ...]] = []
    tagger = nlp.get_pipe("tagger")
    update = tagger.update
    tagger.update = lambda examples, **options: (  # type: ignore[method-assign]
        entities.extend(tuple(span.text for span in example.predicted.ents) for example in examples),
        update(examples, **options),
    )[1]
    (tmp_path / "trained").mkdir()
    train(nlp, tmp_path / "trained")
    assert set(entities) == {("Anna",)}
    doc = spacy.load(tmp_path / "trained/model-last")("Anna sleeps.")
    assert [span.text for span in doc.ents] == ["Anna"] and all(token.tag_ for token in doc)


def test_spacy_train_says_what_trains_a_component(runs: dict[str, Path], gold: str, tmp_path: Path) -> None:
    nlp = init_nlp(make_tagger_config(piped("spen_ner", model=runs["ner"]), gold))
    (tmp_path / "trained").mkdir()
    with pytest.raises(ConfigError, match=r"spen_ner: spaCy can't train .*spen-run names data=FILE "):
        train(nlp, tmp_path / "trained")


def test_no_factory_can_be_trained(nlp: Language) -> None:
    doc = nlp.make_doc("Anna sleeps.")
    doc.set_ents([Span(doc, 0, 1, label="PER")])
    examples = [Example(nlp.make_doc("Anna sleeps."), doc)]
    configs = {"spen_ner": "names", "spen_pos": "tags", "spen_srl": "roles"}
    for name, config in (configs | {"spen_multilabel": "texts"}).items():
        expected_error = pytest.raises(ConfigError, match=rf"{name}: .*spen-run {config} data=.*frozen_components")
        with nlp.select_pipes(enable=[name]), expected_error:
            nlp.update(examples)
        with pytest.raises(ConfigError, match=rf"{name}: found add_label\('NEW'\).*spen-run {config} data="):
            nlp.get_pipe(name).add_label("NEW")


def test_a_pipeline_is_initialised(nlp: Language, gold: str) -> None:
    """As by `spacy assemble`, without examples, and by `spacy debug data`, with them and for frozen components too."""
    nlp.initialize()
    docs = list(DocBin().from_disk(gold).get_docs(nlp.vocab))
    nlp.initialize(lambda: [Example(nlp.make_doc("Anna sleeps."), doc) for doc in docs])
    assert nlp("Anna sleeps.").ents


@pytest.mark.parametrize("frozen", [[], ["spen_ner"]])
def test_debug_data(frozen: list[str], gold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_tagger_config(piped("spen_ner"), gold, frozen).to_disk(tmp_path / "config.cfg")
    with pytest.raises(SystemExit):  # it reports too few examples
        debug_data(tmp_path / "config.cfg", no_format=True, silent=False)
    assert "3 label(s) in train data" in capsys.readouterr().out


def test_find_threshold(nlp: Language, tmp_path: Path) -> None:
    """If gold is the labels above 0.5, 0.5 is the best threshold."""
    texts = ["Anna sent a letter.", "The farmer moved to Boston.", "Bob gave Acme Corp. a book."]
    docs = [nlp.make_doc(text) for text in texts]
    for doc, annotated in zip(docs, nlp.pipe(texts), strict=True):
        doc.cats = {label: float(p > 0.5) for label, p in annotated.cats.items()}
    assert all(0 < sum(doc.cats.values()) < len(doc.cats) for doc in docs)
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    multilabel_nlp = piped("spen_multilabel", model=nlp.config["components"]["spen_multilabel"]["model"])
    multilabel_nlp.to_disk(tmp_path / "pipeline")
    arguments: Any = (tmp_path / "pipeline", tmp_path / "gold.spacy", "spen_multilabel", "threshold", "cats_micro_f")
    _, best, scores = find_threshold(*arguments, n_trials=3)
    assert list(scores) == [0, 0.5, 1] and best == scores[0.5] == 1 > scores[0]


def test_the_threshold_is_a_setting(runs: dict[str, Path]) -> None:
    assert piped("spen_multilabel", model=runs["text"], threshold=0.9).get_pipe("spen_multilabel").threshold == 0.9
