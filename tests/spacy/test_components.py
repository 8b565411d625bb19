"""Annotations of each component, which equal those of `spen predict` for the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.pipeline import EntityRuler
from spacy.tokens import Doc, Span
from spacy.training import Example

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_plugins.runs.train.decoding import decode
from spen_spacy import Argument
from spen_spacy.reading import Entity, Reading
from tests.loaded import QUIET, piped, trained

WORDS = ["The", "old", "farmer", "told", "Anna", "in", "Boston", "that", "they", "sent", "a", "letter", "."]


def annotate(nlp: Language, words: list[str] = WORDS) -> Doc:
    return nlp(Doc(nlp.vocab, words=words))


def test_names_are_those_of_the_run(nlp: Language, runs: dict[str, Path]) -> None:
    doc = annotate(nlp)
    [prediction] = sp.load(runs["ner"]).predict([{"words": WORDS}], energy=True)
    expected = [(e["start"], e["end"], e["type"], pytest.approx(e["score"])) for e in prediction["entities"]]
    assert expected
    assert [(e.start, e.end, e.label_, e._.spen_score) for e in doc.ents] == expected
    group = doc.spans["spen_ner"]
    assert [(e.start, e.end, e.label_, s) for e, s in zip(group, group.attrs["scores"], strict=True)] == expected
    assert doc._.spen_energy == {"spen_ner": pytest.approx(prediction["energy"])}
    assert Span(doc, 0, 1, label="none")._.spen_score is None


def test_tags_are_those_of_the_run(nlp: Language, runs: dict[str, Path]) -> None:
    doc = annotate(nlp)
    [prediction] = sp.load(runs["pos"]).predict([{"words": WORDS}])
    assert [token.pos_ for token in doc] == prediction["tags"] and not any(token.tag_ for token in doc)
    assert [token._.spen_score for token in doc] == pytest.approx(prediction["scores"])


def test_frames_are_those_of_the_run(nlp: Language, runs: dict[str, Path]) -> None:
    doc = annotate(nlp)
    [predicates] = sp.load(runs["predicates"]).predict([{"words": WORDS}])
    items = [{"words": WORDS, "predicate": entity["start"]} for entity in predicates["entities"]]
    predictions = sp.load(runs["srl"]).predict(items)
    assert [frame.predicate.i for frame in doc._.srl] == [item["predicate"] for item in items] != []
    assert [frame.score for frame in doc._.srl] == pytest.approx([e["score"] for e in predicates["entities"]])
    for frame, prediction in zip(doc._.srl, predictions, strict=True):
        expected = [(a["role"], a["start"], a["end"], pytest.approx(a["score"])) for a in prediction["arguments"]]
        assert [(a.role, a.span.start, a.span.end, a.score) for a in frame.arguments] == expected
        assert frame.energy is None and all(isinstance(argument, Argument) for argument in frame.arguments)
        assert doc[frame.predicate.i]._.srl_frame == frame
    assert any(frame.arguments for frame in doc._.srl)
    assert doc[0]._.srl_frame is None
    labels = [span.label_ for span in doc.spans["spen_srl"]]
    assert labels.count("V") == len(doc._.srl) and len(labels) == sum(1 + len(f.arguments) for f in doc._.srl)


def test_labels_are_those_of_the_run(nlp: Language, runs: dict[str, Path], text: str) -> None:
    [prediction] = sp.load(runs["text"]).predict([{"text": text}])
    cats = nlp(text).cats
    assert set(cats) == set(nlp.get_pipe("spen_multilabel").labels)
    best = {label: p for label, p in prediction["probabilities"].items() if p >= sorted(cats.values())[-5]}
    assert best == pytest.approx({label: cats[label] for label in best}, abs=1e-5)
    chosen = {label for label, p in cats.items() if p > nlp.get_pipe("spen_multilabel").threshold}
    assert chosen == set(prediction["labels"])


@pytest.mark.parametrize("settings", [{"decode": "expected_f1"}, {"threshold": 0.95, "nonempty": True}])
def test_label_sets_without_a_threshold_are_those_of_the_run(
    settings: dict[str, Any], runs: dict[str, Path], tmp_path: Path
) -> None:
    folder = decode(runs["text"], tmp_path / "decoded", {"decode": "threshold", **settings}, QUIET)
    texts = ["Anna sent a letter.", "The farmer moved to Boston.", "Bob gave Acme Corp. a book."]
    nlp = piped("spen_multilabel", model=folder)
    pipe = nlp.get_pipe("spen_multilabel")
    docs = list(nlp.pipe(texts))
    predictions = sp.load(folder).predict(texts)
    assert [set(pipe.predicted(doc)) for doc in docs] == [set(answer["labels"]) for answer in predictions]
    assert pipe.threshold is None and all(answer["labels"] for answer in predictions)
    gold = [nlp.make_doc(text) for text in texts]
    for doc, answer in zip(gold, predictions, strict=True):
        doc.cats = {label: float(label in answer["labels"]) for label in pipe.labels}
    scores = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold])
    assert scores["cats_micro_f"] == 1 and 0 < scores["cats_score"] <= 1


def test_whitespace_is_skipped(nlp: Language) -> None:
    spaced_words = [word for pair in zip(WORDS, [" ", "\n"] * 7, strict=False) for word in pair]
    plain_doc, doc = annotate(nlp), annotate(nlp, [" ", *spaced_words])
    assert [(e.text.split(), e.label_) for e in doc.ents] == [(e.text.split(), e.label_) for e in plain_doc.ents] != []
    assert [token.pos_ for token in doc if not token.is_space] == [token.pos_ for token in plain_doc]
    assert {(t.pos_, t.tag_, t._.spen_score) for t in doc if t.is_space} == {("SPACE", "", None)}
    assert [[(a.role, a.span.text.split()) for a in frame.arguments] for frame in doc._.srl] == [
        [(a.role, a.span.text.split()) for a in frame.arguments] for frame in plain_doc._.srl
    ]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("auto", [("PROPN", "NNP"), ("VERB", "VBZ"), ("PUNCT", ".")]),
        ("tag", [("", "NNP"), ("", "VBZ"), ("", ".")]),
        ("pos", [("PROPN", ""), ("VERB", ""), ("PUNCT", "")]),
    ],
)
def test_combined_tags_are_split(runs: dict[str, Path], attribute: str, expected: list[tuple[str, str]]) -> None:
    nlp = piped("spen_pos", model=runs["fine"], attribute=attribute)
    doc = annotate(nlp, ["Anna", "sleeps", ".", "\n"])
    assert [(token.pos_, token.tag_) for token in doc[:3]] == expected
    assert (doc[3].pos_, doc[3].tag_) == ("" if attribute == "tag" else "SPACE", "" if attribute == "pos" else "_SP")


def test_universal_tags_can_be_written_as_fine_grained_tags(runs: dict[str, Path]) -> None:
    doc = annotate(piped("spen_pos", model=runs["pos"], attribute="tag"))
    assert all(token.tag_ and not token.pos_ for token in doc)


@pytest.mark.parametrize("overwrite", [False, True])
def test_existing_entities_are_kept_or_overwritten(runs: dict[str, Path], overwrite: bool) -> None:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    assert isinstance(ruler, EntityRuler)
    ruler.add_patterns([{"label": "MINE", "pattern": "farmer told"}, {"label": "MINE", "pattern": "in Boston"}])
    nlp.add_pipe("spen_ner", config={"model": str(runs["ner"]), "overwrite": overwrite})
    doc = annotate(nlp)
    entities = [(span.text, span.label_) for span in doc.spans["spen_ner"]]
    assert ("Boston", "LOC") in entities and ("Anna", "PER") in entities
    existing = [("farmer told", "MINE"), ("in Boston", "MINE")]
    remaining = [("Boston", "LOC")] if overwrite else [existing[1]]
    expected = [existing[0], *(f for f in entities if "Boston" not in f[0]), *remaining]
    assert [(span.text, span.label_) for span in doc.ents] == expected


@pytest.mark.parametrize("overwrite", [False, True])
def test_tokens_blocked_for_entities(runs: dict[str, Path], overwrite: bool) -> None:
    nlp = piped("spen_ner", model=runs["ner"], overwrite=overwrite)
    assert [span.text for span in annotate(nlp).ents] == ["Anna", "Boston"]
    doc = Doc(nlp.vocab, words=WORDS)
    doc.set_ents([Span(doc, 0, 2, label="MINE")], blocked=[doc[4:5]])
    doc = nlp(doc)
    assert [span.text for span in doc.ents] == ["The old", "Boston"]
    assert (doc[4].ent_iob_, doc[4].ent_type_) == ("B", "")


def test_an_address_is_not_a_person(runs: dict[str, Path]) -> None:
    nlp = piped("spen_ner", model=runs["ner"])
    doc = nlp.make_doc("Mail anna@acme.com or bob@acme.com")
    entities = [Entity(1, 2, "PER", 0.9), Entity(2, 4, "PER", 0.9)]
    nlp.get_pipe("spen_ner")._set(Reading(doc), entities)
    assert [span.text for span in doc.ents] == ["or bob@acme.com"] and len(doc.spans["spen_ner"]) == 1
    doc.ents = []
    nlp.get_pipe("spen_ner")._set(Reading(doc), [Entity(1, 2, "EMAIL", 0.9)])
    assert [span.label_ for span in doc.ents] == ["EMAIL"]


def test_a_run_that_reads_columns_causes_a_warning(runs: dict[str, Path], tmp_path: Path) -> None:
    values = {"columns": '{"pos": 1, "chunk": 2}', "method": "cross_entropy"}
    values |= {"features.hidden": "4", "trainer.epochs": "1"}
    trained("names", tmp_path / "run", **values)
    with pytest.warns(UserWarning, match="spen_ner: its run was trained with the columns chunk, pos, which docs do"):
        piped("spen_ner", model=tmp_path / "run")


def test_spans_are_stored_under_their_key(runs: dict[str, Path]) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("spen_ner", name="names", config={"model": str(runs["ner"])})
    nlp.add_pipe("spen_ner", name="more", config={"model": str(runs["ner"]), "spans_key": "here"})
    assert set(annotate(nlp).spans) == {"names", "here"}


def make_srl_pipeline(runs: dict[str, Path], **config: Any) -> Language:
    return piped("spen_srl", model=runs["srl"], **config)


def test_verbs_are_predicates_on_request(runs: dict[str, Path]) -> None:
    nlp = make_srl_pipeline(runs, predicates="verbs")
    poses = ["VERB" if word in ("told", "sent") else "X" for word in WORDS]
    doc = nlp(Doc(nlp.vocab, words=WORDS, pos=poses))
    assert [(frame.predicate.text, frame.score) for frame in doc._.srl] == [("told", 1.0), ("sent", 1.0)]
    assert nlp("")._.srl == []
    with pytest.raises(ConfigError, match=r"without token\.pos_; add a component that sets it"):
        nlp("No tags")


@spacy.registry.misc("spen_tests.chosen")
def make_finder() -> Any:
    return lambda doc: [doc[-1], 1, *(token.i for token in doc if token.is_space)]


def test_a_registered_function_chooses_predicates(runs: dict[str, Path]) -> None:
    nlp = make_srl_pipeline(runs, predicates={"@misc": "spen_tests.chosen"})
    doc = annotate(nlp, [*WORDS, " "])
    assert [frame.predicate.i for frame in doc._.srl] == [1]  # the last token is whitespace
    assert nlp.config["components"]["spen_srl"]["predicates"] == {"@misc": "spen_tests.chosen"}
    with pytest.raises(ConfigError, match="found the predicate 1; expected"):
        annotate(nlp, ["x"])


def test_energies_of_frames(runs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"found energy=True, but .* has no energy"):
        make_srl_pipeline(runs, predicates="verbs", energy=True)


def test_rerank_chooses_by_the_energy(runs: dict[str, Path]) -> None:
    baseline, reranked = (piped("spen_ner", model=runs["ner"], energy=True, rerank=k) for k in (0, 8))
    energies = [annotate(nlp)._.spen_energy["spen_ner"] for nlp in (baseline, reranked)]
    assert energies[1] <= energies[0]
    predictions = sp.load(runs["ner"], refine={"type": "rerank", "k": 8}).predict([{"words": WORDS}], energy=True)
    assert energies[1] == pytest.approx(predictions[0]["energy"])


def test_pipes_are_analysed_and_scored(nlp: Language) -> None:
    analysis = nlp.analyze_pipes()
    assert "doc.ents" in analysis["summary"]["spen_ner"]["assigns"]
    assert "doc._.srl" in analysis["summary"]["spen_srl"]["assigns"] and not any(analysis["problems"].values())
    reference = annotate(nlp)
    reference.cats = {label: p > nlp.get_pipe("spen_multilabel").threshold for label, p in reference.cats.items()}
    scores = nlp.evaluate([Example(nlp.make_doc(" ".join(WORDS)), reference)])
    for key in ("ents_f", "pos_acc", "srl_f", "spans_spen_srl_f", "cats_micro_f"):
        assert scores[key] == 1, key
    assert set(scores["srl_per_type"]) == {span.label_ for span in reference.spans["spen_srl"]}
    weights = nlp.config["training"]["score_weights"]
    assert all(weights[key] for key in ("ents_f", "pos_acc", "srl_f", "cats_score"))


def test_wrong_gold_lowers_the_score(nlp: Language) -> None:
    reference = annotate(nlp)
    reference.set_ents([Span(reference, 0, 1, label="PER")])
    scores = nlp.evaluate([Example(nlp.make_doc(" ".join(WORDS)), reference)])
    assert scores["ents_f"] == 0 and scores["pos_acc"] == 1


def test_labels_are_listed_and_nothing_is_trainable(nlp: Language) -> None:
    assert set(nlp.pipe_labels["spen_ner"]) == {"LOC", "ORG", "PER"}
    assert {"V", "ARG0", "ARG1"} <= set(nlp.pipe_labels["spen_srl"])
    assert not any(getattr(pipe, "is_trainable", False) for _, pipe in nlp.pipeline)


def test_other_components_train_alongside_ours(runs: dict[str, Path]) -> None:
    nlp = piped("spen_ner", model=runs["ner"])
    nlp.add_pipe("textcat")
    docs = [(nlp.make_doc(text), {"cats": {"A": a, "B": 1 - a}}) for text, a in (("yes", 1.0), ("no", 0.0))]
    examples = [Example.from_dict(doc, gold) for doc, gold in docs]
    with nlp.select_pipes(disable=["spen_ner"]):
        optimizer = nlp.initialize(lambda: examples)
        assert nlp.update(examples, sgd=optimizer)["textcat"] > 0
    assert annotate(nlp).spans["spen_ner"]
