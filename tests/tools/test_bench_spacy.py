"""tools/bench/train_spacy.py and tools/bench/bench_spacy.py: corpora as Docs, scores, the table."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spen_plugins import RunFolder
from spen_plugins.data.schemes import spans
from spen_plugins.data.sentences import roles
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.srl import Proposition, Sentence
from spen_plugins.errors import DataError
from spen_plugins.samples import srl
from spen_plugins.samples.tagged import sample_corpus
from spen_plugins.scores.spans import Argument
from tests.loaded import trained
from tools.bench.spacy_contestant import Contestant, measure

pytestmark = pytest.mark.usefixtures("whole_samples")


def import_tool(name: str) -> ModuleType:
    return importlib.import_module(f"tools.bench.{name}")


def write_columns(sentences: list[TaggedSentence], path: Path) -> Path:
    lines = ["".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags, strict=True)) for s in sentences]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def read_docs(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_names_are_converted(tmp_path):
    sentences = sample_corpus("ner")["test"][:20]
    odd_sentence = TaggedSentence(("", "Ann", "\xa0"), ("O", "B-PER", "I-PER"))
    source = write_columns([*sentences, odd_sentence], tmp_path / "names.conll")
    assert import_tool("train_spacy").convert("ner", source, tmp_path / "names.spacy") == 21
    *docs, last = read_docs(tmp_path / "names.spacy")
    assert sum(len(doc.ents) for doc in docs) > 20
    for doc, sentence in zip(docs, sentences, strict=True):
        assert tuple(token.text for token in doc) == sentence.words
        assert [(e.label_, e.start, e.end) for e in doc.ents] == spans(sentence.tags, "bio")
        assert import_tool("spacy_scores").bio(doc) == list(sentence.tags)
    assert [token.text for token in last] == ["_", "Ann", "_"] and last.ents[0].text == "Ann _"


def test_tags_that_break_bio_are_named(tmp_path):
    source = write_columns([TaggedSentence(("in", "York"), ("O", "I-LOC"))], tmp_path / "names.conll")
    with pytest.raises(DataError, match=r"names\.conll:2: found I-LOC after O"):
        import_tool("train_spacy").convert("ner", source, tmp_path / "names.spacy")


def test_tags_are_converted(tmp_path):
    sentences = sample_corpus("pos")["test"][:20]
    import_tool("train_spacy").convert("tag", write_columns(sentences, tmp_path / "pos.conll"), tmp_path / "pos.spacy")
    for doc, sentence in zip(read_docs(tmp_path / "pos.spacy"), sentences, strict=True):
        assert tuple(token.tag_ for token in doc) == sentence.tags


def test_fields_of_conllu_are_converted(tmp_path):
    source = tmp_path / "two.conllu"
    source.write_text("1\tShe\t_\tPRON\tPRP\t_\t_\t_\t_\t_\n2\treads\t_\tVERB\tVBZ\t_\t_\t_\t_\t_\n\n")
    for field, tags in {"xpos": ["PRP", "VBZ"], "upos": ["PRON", "VERB"]}.items():
        import_tool("train_spacy").convert("tag", source, tmp_path / "two.spacy", field)
        assert [token.tag_ for token in read_docs(tmp_path / "two.spacy")[0]] == tags


def test_scores_of_names_and_tags():
    """All entities, then without the first entity of each sentence: recall falls, precision doesn't."""
    sentences = [s for s in sample_corpus("ner")["test"] if any(tag != "O" for tag in s.tags)]
    vocab, score = spacy.blank("en").vocab, import_tool("spacy_scores").score
    docs = [import_tool("spacy_docs").gold("ner", s, vocab) for s in sentences]
    assert score("ner", docs, sentences) == {"f1": 1.0, "f1_strict": 1.0}
    entity_count = sum(len(doc.ents) for doc in docs)
    for doc in docs:
        doc.ents = doc.ents[1:]
    f1 = 2 * (entity_count - len(docs)) / (2 * entity_count - len(docs))
    assert score("ner", docs, sentences) == {"f1": pytest.approx(f1), "f1_strict": pytest.approx(f1)}

    sentences = sample_corpus("pos")["test"]
    docs = [import_tool("spacy_docs").gold("tag", s, vocab) for s in sentences]
    assert score("tag", docs, sentences) == {"accuracy": 1.0}
    for doc in docs:
        doc[0].tag_ = "?"
    tokens = sum(map(len, docs))
    assert score("tag", docs, sentences) == {"accuracy": pytest.approx(1 - len(docs) / tokens)}


def test_frames_of_a_doc():
    """C-A1 continues A1 in whatever order they are listed; V is not an argument."""
    doc = Doc(spacy.blank("en").vocab, words=list("abcdef"))
    spans = {2: [("C-A1", 3, 5), ("V", 2, 3), ("A1", 0, 2)], 5: []}
    frames = [
        SimpleNamespace(predicate=doc[i], arguments=[(role, doc[start:end], 1.0) for role, start, end in arguments])
        for i, arguments in spans.items()
    ]
    assert import_tool("spacy_scores").said_frames(frames) == {2: [Argument("A1", ((0, 1), (3, 4)))], 5: []}


def test_scores_of_frames():
    """One of four arguments is right, one loses its predicate, one is missed, and one has another role."""
    score = import_tool("spacy_scores").frame_scores
    a = [Argument("A0", ((i, i),)) for i in range(6)]
    gold = [{1: [a[0], a[2], a[4]]}, {3: [a[0]]}]
    predicted = [{1: [a[0], Argument("A1", ((2, 2),))]}, {2: [a[1]]}]
    scores = score(predicted, gold)
    assert scores == {"f1": pytest.approx(2 * 1 / (3 + 4)), "predicates_f1": pytest.approx(2 * 1 / (2 + 2))}
    corpus = [import_tool("spacy_scores").gold_frames(s) for s in srl.sample_corpus()["test"]]
    assert score(corpus, corpus) == {"f1": 1.0, "predicates_f1": 1.0}


def test_gold_frames_have_all_predicates():
    sentence = Sentence(("a", "b"), (Proposition(0, "a", ("B-V", "B-A1")), Proposition(1, "b", ("O", "B-V"))))
    assert import_tool("spacy_scores").gold_frames(sentence) == {0: [Argument("A1", ((1, 1),))], 1: []}


@pytest.fixture
def ruler(tmp_path) -> tuple[Path, Path]:
    """A saved pipeline that knows one name, and a corpus with two names in three sentences."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ann"}])
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "ruler")
    corpus = [TaggedSentence((name, "reads"), ("B-PER", "O")) for name in ("Ann", "Bo", "Ann")]
    return tmp_path / "ruler", write_columns(corpus, tmp_path / "names.conll")


def test_a_pipeline_is_measured(ruler, monkeypatch, capsys):
    pipeline, test = ruler
    options = ["--task", "ner", "--test", str(test), "--repeats", "1", "--json"]
    monkeypatch.setattr("sys.argv", ["x", f"one={pipeline}", f"two={pipeline}:sentencizer", *options])
    import_tool("bench_spacy").main()
    one, two = json.loads(capsys.readouterr().out)
    assert one["f1"] == one["f1_strict"] == pytest.approx(0.8) and two["f1_strict"] == 0
    assert one["docs_ratio"] == 1 and two["docs_ratio"] == pytest.approx(two["docs"] / one["docs"])
    assert one["disk"] > two["disk"] > 0 and one["memory"] > 50
    lines = import_tool("bench_spacy").table([one, two], import_tool("bench_spacy").SCORES["ner"]).splitlines()
    assert lines[2].startswith("| one | 80.00 | 80.00 | ") and len({line.count("|") for line in lines}) == 1


def test_the_first_sentences_only(ruler):
    measured = measure(Contestant("one", str(ruler[0])), "ner", ruler[1], 1, "cpu")
    assert measured["f1"] == 1.0


@pytest.mark.parametrize("word", ["runs/ner", "=runs/ner", "ours=", "ours=:spen_ner"])
def test_a_contestant_needs_a_name_and_a_source(word):
    with pytest.raises(ValueError, match="expected NAME="):
        import_tool("spacy_contestant").Contestant.parse(word)


def test_the_error_of_a_contestant_is_reported(ruler, monkeypatch):
    monkeypatch.setattr("sys.argv", ["x", "one=no_such_pipeline", "--task", "ner", "--test", str(ruler[1])])
    with pytest.raises(SystemExit, match="no_such_pipeline"):
        import_tool("bench_spacy").main()


def train(folder: Path, task: dict) -> Path:
    config = {
        "task": task,
        "features": {"type": "bilstm", "word_dim": 16, "hidden": 16, "layers": 1, "affix_dim": 0},
        "inference_net": {"type": "independent"},
        "trainer": {"type": "cross_entropy", "epochs": 2, "net": {"type": "adam", "lr": 0.03}},
    }
    return trained(config, folder)


def read_metrics(run: Path) -> dict[str, float]:
    return RunFolder(run).metrics()["test"]


def test_a_run_scores_as_its_own_metrics_say(tmp_path):
    run = train(tmp_path / "run", {"type": "tagging", "corpus": "ner", "scheme": "bio"})
    test = write_columns(sample_corpus("ner")["test"], tmp_path / "names.conll")
    measured = measure(Contestant("ours", str(run)), "ner", test, None, "cpu")
    f1 = read_metrics(run)["f1"]
    assert 0 < f1 < 1 and measured["f1"] == measured["f1_strict"] == pytest.approx(f1)
    assert 0 < measured["disk"] < 2 and min(measured["texts"], measured["docs"]) > 0


def test_a_run_for_roles_scores_as_its_own_metrics_say(tmp_path):
    """With the corpus' gold predicates; the second run's F1 is that of the predicates that it finds."""
    run = train(tmp_path / "roles", {"type": "srl", "corpus": "sample"})
    finder = train(tmp_path / "predicates", {"type": "tagging", "corpus": "predicates", "scheme": "bio"})
    (tmp_path / "roles.conll").write_text(roles.columns(srl.sample_corpus()["test"]))
    measured = measure(Contestant.parse(f"ours={run}:{finder}"), "srl", tmp_path / "roles.conll", None, "cpu")
    assert measured["f1_gold"] == pytest.approx(read_metrics(run)["span_f1"])
    assert measured["predicates_f1"] == pytest.approx(read_metrics(finder)["f1"])
    assert 0 < measured["f1"] <= measured["f1_gold"]
