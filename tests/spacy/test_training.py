"""`spacy train` and the like: what our components refuse to learn, and that they annotate where they are frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.find_threshold import find_threshold
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str

from spen_plugins.errors import ConfigError

TAGGER = """
[nlp]
lang = "en"
pipeline = ["spen_ner", "tagger"]

[components]

[components.spen_ner]
{ours}

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 8
depth = 1
embed_size = 20
window_size = 1
maxout_pieces = 1
subword_features = false

[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = {path}

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = {path}

[training]
seed = 0
gpu_allocator = null
dev_corpus = "corpora.dev"
train_corpus = "corpora.train"
max_steps = 1
frozen_components = {frozen}
annotating_components = {annotating}

[training.score_weights]
tag_acc = 1.0

[initialize]
"""
"""A tagger beside a `spen_ner`."""


@pytest.fixture
def gold(tmp_path: Path) -> str:
    """A file of one sentence with its tags, as JSON writes the file's name."""
    doc = Doc(spacy.blank("en").vocab, words=["Anna", "sleeps", "."], tags=["NNP", "VBZ", "."])
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    return f'"{(tmp_path / "gold.spacy").as_posix()}"'


def started(ours: str, path: str, frozen: str = "[]", annotating: str = "[]") -> Language:
    """The pipeline that `spacy train` makes of the config before its first update."""
    config = TAGGER.format(ours=ours, path=path, frozen=frozen, annotating=annotating)
    return init_nlp(load_config_from_str(config, interpolate=False))


@pytest.mark.parametrize("sourced", [False, True])
def test_frozen_components_annotate_while_others_train(
    runs: dict[str, Path], gold: str, tmp_path: Path, sourced: bool
) -> None:
    saved = spacy.blank("en")
    saved.add_pipe("spen_ner", config={"model": str(runs["ner"])})
    saved.to_disk(tmp_path / "saved")
    made = f'factory = "spen_ner"\nmodel = "{runs["ner"].as_posix()}"'
    ours = f'source = "{(tmp_path / "saved").as_posix()}"' if sourced else made
    nlp = started(ours, gold, frozen='["spen_ner"]', annotating='["spen_ner"]')
    seen: list[tuple[str, ...]] = []
    tagger = nlp.get_pipe("tagger")
    update = tagger.update
    tagger.update = lambda examples, **rest: (  # type: ignore[method-assign]
        seen.extend(tuple(span.text for span in example.predicted.ents) for example in examples),
        update(examples, **rest),
    )[1]
    (tmp_path / "trained").mkdir()
    train(nlp, tmp_path / "trained")
    assert set(seen) == {("Anna",)}
    doc = spacy.load(tmp_path / "trained/model-last")("Anna sleeps.")
    assert [span.text for span in doc.ents] == ["Anna"] and all(token.tag_ for token in doc)


def test_spacy_train_says_what_trains_a_component(runs: dict[str, Path], gold: str, tmp_path: Path) -> None:
    made = f'factory = "spen_ner"\nmodel = "{runs["ner"].as_posix()}"'
    nlp = started(made, gold)
    (tmp_path / "trained").mkdir()
    with pytest.raises(ConfigError, match=r"spen_ner: spaCy can't train .*spen-run names data=FILE "):
        train(nlp, tmp_path / "trained")


def test_each_factory_refuses_to_learn(nlp: Language) -> None:
    doc = nlp.make_doc("Anna sleeps.")
    doc.set_ents([Span(doc, 0, 1, label="PER")])
    examples = [Example(nlp.make_doc("Anna sleeps."), doc)]
    configs = {"spen_ner": "names", "spen_pos": "tags", "spen_srl": "roles"}
    for name, config in (configs | {"spen_multilabel": "texts"}).items():
        refused = pytest.raises(ConfigError, match=rf"{name}: .*spen-run {config} data=.*frozen_components")
        with nlp.select_pipes(enable=[name]), refused:
            nlp.update(examples)
        with pytest.raises(ConfigError, match=rf"{name}: found add_label\('NEW'\).*spen-run {config} data="):
            nlp.get_pipe(name).add_label("NEW")


def test_a_pipeline_is_initialised(nlp: Language, gold: str) -> None:
    """As `spacy assemble` does without examples, and `spacy debug data` with them, of frozen components, too."""
    nlp.initialize()
    docs = list(DocBin().from_disk(json.loads(gold)).get_docs(nlp.vocab))
    nlp.initialize(lambda: [Example(nlp.make_doc("Anna sleeps."), doc) for doc in docs])
    assert nlp("Anna sleeps.").ents


def test_find_threshold(nlp: Language, tmp_path: Path) -> None:
    """Gold labels that are those above 0.5 are best found at 0.5."""
    texts = ["Anna sent a letter.", "The farmer moved to Boston.", "Bob gave Acme Corp. a book."]
    docs = [nlp.make_doc(text) for text in texts]
    for doc, found in zip(docs, nlp.pipe(texts), strict=True):
        doc.cats = {label: float(p > 0.5) for label, p in found.cats.items()}
    assert all(0 < sum(doc.cats.values()) < len(doc.cats) for doc in docs)
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    only = spacy.blank("en")
    only.add_pipe("spen_multilabel", config={"model": nlp.config["components"]["spen_multilabel"]["model"]})
    only.to_disk(tmp_path / "pipeline")
    asked: Any = (tmp_path / "pipeline", tmp_path / "gold.spacy", "spen_multilabel", "threshold", "cats_micro_f")
    _, best, scores = find_threshold(*asked, n_trials=3)
    assert list(scores) == [0, 0.5, 1] and best == scores[0.5] == 1 > scores[0]


def test_the_threshold_is_a_setting(runs: dict[str, Path]) -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("spen_multilabel", config={"model": str(runs["text"]), "threshold": 0.9})
    assert pipe.threshold == 0.9
