"""Task `tagging`: vocabulary, batches, encodings, scores, predictions, facts; real data if available."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.data.schemes import Span, write_tags
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.runs.many.groups import find_run_selection, find_task_selection
from tests.loaded import loaded, written

TRAIN = """Ann NNP I-PER
Lee NNP I-PER
saw VBD O
27 CD O
Oslo NNP I-LOC

Bo NNP I-PER
Oslo NNP B-PER
saw VBD O
"""
TEST = """Cy NNPS I-PER
saw VBD O
Mars NNP I-ORG

14 CD O
"""
CONLLU = "1\tshe\tshe\tPRON\tPRP\t_\t_\t_\t_\t_\n2\truns\trun\tVERB\tVBZ\t_\t_\t_\t_\t_\n"


def make_task(tmp_path: Path, train: str = TRAIN, test: str = TEST, **options) -> sp.Tagging:
    for name, text in (("train", train), ("validation", train), ("test", test)):
        (tmp_path / name).write_text(text)
    return loaded("tagging", **{part: str(tmp_path / part) for part in sp.PARTS}, **options)


@pytest.fixture
def pos(tmp_path: Path) -> sp.Tagging:
    return make_task(tmp_path, tags=1)


@pytest.fixture
def ner(tmp_path: Path) -> sp.Tagging:
    return make_task(tmp_path, scheme="iob1", encoding="bioes", columns={"pos": 1})


def propose_tags(task: sp.Tagging, batch, *rows: str) -> sp.Proposal:
    """A proposal with a logit of 9 for these tags, or that of `TAG:LOGIT`."""
    logits = torch.zeros(len(rows), 1, batch.x.mask.shape[1], len(task.space.tags))
    for i, row in enumerate(rows):
        for t, tag in enumerate(row.split()):
            name, _, logit = tag.partition(":")
            logits[i, 0, t, task.space.tags.index(name)] = float(logit or 9)
    return task.space.independent(logits, batch.x.mask)


def update_metric(task: sp.Tagging, examples, *rows: str):
    batch = task.collate(examples)
    metric = task.metric()
    metric.update(propose_tags(task, batch, *rows), batch)
    return metric


def test_vocabulary_tags_and_values(pos, ner):
    assert pos.space.tags == ["CD", "NNP", "VBD"] and pos.space.scheme == "none"
    assert ner.space.tags == ["O", *(f"{p}-{kind}" for kind in ("LOC", "PER") for p in "BEIS")]
    assert ner.space.scheme == "bioes"
    assert list(ner.inputs.words) == ["<pad>", "<unk>", "oslo", "saw", "00", "ann", "bo", "lee"]
    assert ner.inputs.columns == {"pos": 5} and pos.inputs.columns == {} and not ner.inputs.marks


@pytest.mark.parametrize(
    ("options", "tags", "first"),
    [
        ({"encoding": None}, "O B-LOC I-LOC B-PER I-PER", "B-PER I-PER O O B-LOC"),
        ({"encoding": "bioes"}, "O B-LOC E-LOC I-LOC S-LOC B-PER E-PER I-PER S-PER", "B-PER E-PER O O S-LOC"),
    ],
)
def test_gold_is_encoded_through_spans(tmp_path, options, tags, first):
    task = make_task(tmp_path, scheme="iob1", **options)
    assert " ".join(task.space.tags) == tags and task.space.scheme == (options["encoding"] or "bio")
    assert " ".join(task.part("train")[0].names) == first


def test_spans_longer_than_those_of_training_can_be_predicted(ner):
    batch = ner.collate([ner.parse("Cape of Good Hope")])
    (prediction,) = ner.predictions(propose_tags(ner, batch, "B-LOC I-LOC I-LOC E-LOC"), batch, batch.examples)
    assert prediction["entities"][0]["text"] == "Cape of Good Hope" and prediction["tags"] == ["I-LOC"] * 4


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
@pytest.mark.parametrize("encoding", ["bio", "bioes"])
def test_predicted_tags_are_in_the_scheme_of_the_files(tmp_path, scheme, encoding):
    spans = [Span("PER", 0, 1), Span("PER", 1, 3), Span("LOC", 4, 5)]
    tags_by_scheme = {name: write_tags(spans, 5, name) for name in ("bio", "iob1", "bioes")}
    lines = "".join(f"{word} {tag}\n" for word, tag in zip("abcde", tags_by_scheme[scheme], strict=True))
    task = make_task(tmp_path, train=lines, test=lines, scheme=scheme, encoding=encoding)
    batch = task.collate(task.part("test"))
    (prediction,) = task.predictions(
        propose_tags(task, batch, " ".join(tags_by_scheme[encoding])), batch, batch.examples
    )
    assert prediction["tags"] == tags_by_scheme[scheme]


def test_an_unconstrained_space_has_no_scheme(tmp_path):
    task = make_task(tmp_path, scheme="iob1", constrained=False)
    metric = update_metric(task, task.part("train")[1:], "O I-PER O")
    assert metric.compute()["invalid"] == 1.0
    # Under strict counting an I-PER without its beginning is no span; for conlleval it is one of the two gold spans.
    assert metric.compute()["f1"] == 0.0 and metric.compute()["conlleval_f1"] == pytest.approx(2 / 3)
    assert "of all sequences" in task.protocol()["decoding"]


def test_collate(ner):
    batch = ner.collate(ner.part("train"), [7, 3])
    assert batch.rows.tolist() == [7, 3] and batch.labelled.tolist() == [True, True]
    assert batch.x.mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert batch.x.inputs["words"].tolist() == [[5, 7, 3, 4, 2], [6, 2, 3, 0, 0]]
    assert batch.x.inputs["pos"].tolist() == [[3, 3, 4, 2, 3], [3, 3, 4, 0, 0]]
    assert batch.gold.shape == (2, 1, 5, 9) and batch.gold.sum(-1).tolist() == [[[1.0] * 5], [[1.0] * 3 + [0.0] * 2]]
    assert batch.gold.argmax(-1)[:, 0].tolist() == [[5, 6, 0, 0, 4], [8, 8, 0, 0, 0]]
    assert batch.to("cpu").examples == batch.examples
    assert [ner.length(example) for example in ner.part("train")] == [5, 3]


def test_unseen_words_values_and_tags(ner, pos):
    batch = ner.collate(ner.part("test"))
    assert batch.x.inputs["words"].tolist() == [[1, 3, 1], [4, 0, 0]]
    assert batch.x.inputs["pos"].tolist() == [[1, 4, 3], [2, 0, 0]]
    assert batch.gold[0, 0].argmax(-1).tolist() == [8, 0, 0]  # S-ORG is not among the tags: O, for the tensors
    metric = update_metric(ner, ner.part("test"), "S-PER O O", "O")
    scores = metric.compute()
    assert (scores["precision"], scores["recall"], scores["accuracy"]) == (1.0, 0.5, 3 / 4)
    assert scores["types"]["ORG"]["support"] == 1 and scores["types"]["ORG"]["f1"] == 0
    assert metric.ratios()[0].tolist() == [2, 0] and metric.ratios()[1].tolist() == [3, 0]
    # NNPS isn't among the tags: CD, the first, for the tensors, and still wrong.
    metric = update_metric(pos, pos.part("test"), "CD VBD NNP", "CD")
    assert metric.compute()["accuracy"] == 3 / 4 and metric.ratios()[0].tolist() == [2, 1]
    assert metric.compute()["tags"]["NNPS"] == {
        "precision": 0,
        "recall": 0,
        "f1": 0,
        "support": 1,
        "predicted": 0,
    }


def test_scores_by_hand(ner):
    metric = ner.metric()
    for example, tags in zip(ner.part("train"), ("B-PER E-PER O S-LOC O", "S-LOC:5 S-PER O"), strict=True):
        batch = ner.collate([example])
        metric.update(propose_tags(ner, batch, tags), batch)
    scores = metric.compute()
    # Right: PER 0-2 of the first, PER 1-2 of the second. Wrong: LOC 3-4, and LOC 0-1 for a PER.
    assert (scores["precision"], scores["recall"], scores["f1"]) == (2 / 4, 2 / 4, 0.5)
    assert scores["conlleval_f1"] == 0.5 and scores["accuracy"] == 5 / 8 and scores["invalid"] == 0
    assert scores["exact_match"] == 0
    assert scores["types"]["PER"] == {
        "precision": 1.0,
        "recall": 2 / 3,
        "f1": pytest.approx(0.8),
        "support": 3,
        "predicted": 2,
    }
    numerator, denominator = metric.ratios()
    assert numerator.tolist() == [2, 2] and denominator.tolist() == [4, 4]


def test_decoding_repairs_invalid_sequences(ner):
    batch = ner.collate(ner.part("train")[1:])
    metric = ner.metric()
    proposal = propose_tags(ner, batch, "B-PER S-PER:5 O")
    metric.update(proposal, batch)
    assert metric.compute()["invalid"] == 1.0
    # B-PER requires E-PER: the most likely such sequence omits the less certain S-PER.
    assert ner.predictions(proposal, batch, batch.examples)[0]["tags"] == ["I-PER", "I-PER", "O"]


def test_invalid_includes_the_end_of_sentences_but_not_padding(ner):
    metric = update_metric(ner, ner.part("train"), "O O O O B-PER", "S-PER O O")
    assert metric.compute()["invalid"] == 0.5
    metric = update_metric(ner, ner.part("train"), "O O O O O", "S-PER O O E-PER E-PER")
    assert metric.compute()["invalid"] == 0


def test_rows_without_gold(ner):
    labelled, unlabelled = ner.part("train")[1], ner.parse("Ann came")
    assert ner.collate([unlabelled]).gold is None
    batch = ner.collate([unlabelled, labelled])
    assert batch.labelled.tolist() == [False, True] and batch.gold[0].sum() == 0
    metric = ner.metric()
    metric.update(propose_tags(ner, batch, "S-PER O", "S-PER S-PER O"), batch)
    assert metric.compute()["f1"] == 1.0 and metric.compute()["accuracy"] == 1.0
    assert metric.ratios()[1].tolist() == [0, 4]
    with pytest.raises(DataError, match="no sentence with gold tags"):
        update_metric(ner, [unlabelled], "O O").compute()


def list_warnings(task: sp.Tagging) -> list[str]:
    return [note for note in task.notes() if "can't be learned" in note]


def test_tags_missing_in_training_are_reported(tmp_path):
    warning = "warning: no training example has 1 of the 3 entity types (ORG): they can't be learned"
    for encoding in ("bio", "bioes"):
        assert list_warnings(make_task(tmp_path, scheme="iob1", encoding=encoding)) == [warning]
    warning = "warning: no training example has 1 of the 4 tags (NNPS): they can't be learned"
    pos = make_task(tmp_path, tags=1)
    assert list_warnings(pos) == [warning]
    for name, expected in (("test", [warning]), ("train", [])):  # also for a file to evaluate
        pos.read(str(tmp_path / name))
        assert list_warnings(pos) == expected
    assert list_warnings(make_task(tmp_path, test=TRAIN, scheme="iob1")) == []
    # B-LOC is new, but its type isn't.
    assert list_warnings(make_task(tmp_path, test="Oslo NNP I-LOC\nOslo NNP B-LOC\n", scheme="iob1")) == []
    [message] = list_warnings(
        make_task(tmp_path, labelled=1, scheme="iob1", train="Bo NNP I-PER\n\n" + TRAIN, test="Al NNP O\nruns VBZ O\n")
    )
    assert "1 of the 2 entity types (LOC)" in message


def test_notes_name_the_column_of_tags(tmp_path):
    assert make_task(tmp_path, scheme="iob1").notes()[0].endswith("8 words, tags of the last column")
    assert make_task(tmp_path, tags=1).notes()[0].endswith("8 words, tags of column 1")
    with pytest.raises(DataError, match=r"train:1: found tags of spans in column 2 .*task\.tags=1 \(CD, NNP, VBD\)"):
        make_task(tmp_path)
    assert "B-PER" in make_task(tmp_path, tags=-1).space.tags  # as set


def test_a_last_column_without_tags_is_an_error_with_advice(ner, tmp_path):
    path = written(tmp_path / "new", "Ann NNP\nsaw VBD\n")
    with pytest.raises(
        DataError, match=r"new:1: found the tag 'NNP'; .*a file to predict does not need a column of tags$"
    ):
        make_task(tmp_path, scheme="iob1").read(path)
    with pytest.raises(DataError, match=r"new:1: found 1 column, so no column 1 for pos; expected task\.columns\.pos"):
        ner.read(written(tmp_path / "new", "Ann\nsaw\n"))


def test_a_column_of_unknown_values_is_reported(ner, tmp_path):
    """The second of two columns has tags, but the run expects parts of speech in it."""
    for read in (ner.read, ner.read_inputs):
        read(written(tmp_path / "new", "Ann NNP\nsaw ??\n\nBo NNP\n"))
        assert "task.columns" not in " ".join(ner.notes()), "a third is unknown"
        read(written(tmp_path / "new", "Ann I-PER\nsaw O\n\nBo NNP\n"))
        assert "values in the column of pos, such as I-PER, O, that no training example has (2 of 3)" in ner.notes()[-1]


def test_predictions(ner, pos):
    batch = ner.collate([ner.part("train")[0]])
    (prediction,) = ner.predictions(propose_tags(ner, batch, "B-PER E-PER O O S-LOC"), batch, batch.examples)
    scores = [entity.pop("score") for entity in prediction["entities"]]
    assert all(0.9 < score <= 1 for score in scores)
    assert json.loads(json.dumps(prediction)) == {
        "words": ["Ann", "Lee", "saw", "27", "Oslo"],
        "tags": ["I-PER", "I-PER", "O", "O", "I-LOC"],  # in the files' scheme
        "entities": [
            {"type": "PER", "start": 0, "end": 2, "text": "Ann Lee"},
            {"type": "LOC", "start": 4, "end": 5, "text": "Oslo"},
        ],
    }
    batch = pos.collate([pos.part("train")[1]])
    (prediction,) = pos.predictions(propose_tags(pos, batch, "NNP CD VBD"), batch, batch.examples)
    scores = prediction.pop("scores")
    assert len(scores) == 3 and all(0.9 < score <= 1 for score in scores)
    assert prediction == {"words": ["Bo", "Oslo", "saw"], "tags": ["NNP", "CD", "VBD"]}


def test_parse(ner):
    example = ner.parse({"words": ["Ann", "saw"], "columns": {"pos": ["NNP", "??"]}, "tags": ["I-PER", "O"]})
    assert example.names == ("S-PER", "O") and example.columns["pos"].tolist() == [3, 1]
    assert example.entry.ids.tolist() == [5, 3] and example.tags.tolist() == [8, 0]
    plain = ner.parse(" Ann  saw ")
    assert plain.entry.words == ("Ann", "saw") and plain.names is None and plain.columns["pos"].tolist() == [1, 1]
    assert ner.show(example) == (("Ann", "saw"), ("S-PER", "O"))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (3, r'found 3; expected \{"words"'),
        ("  ", r"no word"),
        ({"words": "Ann"}, r"words 'Ann'; expected a list of strings"),
        ({"words": ["Ann"], "tags": ["O", "O"]}, r"2 tags for 1 words"),
        ({"words": ["Ann"], "tags": [""]}, r"the tag ''; expected .*iob1"),
        ({"words": ["Ann"], "tags": ["E-PER"]}, r"the tag 'E-PER'; expected .*iob1"),
        ({"words": ["Ann"], "columns": {"chunk": ["x"]}}, r"known: pos"),
        ({"words": ["Ann"], "columns": {"pos": ["x", "y"]}}, r"2 columns\.pos for 1 words"),
    ],
)
def test_invalid_items_are_rejected(ner, item, message):
    with pytest.raises(DataError, match=message):
        ner.parse(item)


def test_read_with_and_without_tags(ner, tmp_path):
    (tmp_path / "new").write_text("Bo NNP\nran VBD\n")
    (example,) = ner.read(str(tmp_path / "new"))
    assert example.names is None and example.columns["pos"].tolist() == [3, 4]
    assert [e.names for e in ner.read(str(tmp_path / "test"))] == [("S-PER", "O", "S-ORG"), ("O",)]


def test_facts_are_enough_to_predict(ner):
    facts = json.loads(json.dumps(ner.facts()))
    restored = sp.Tagging(ner.config)
    restored.restore(facts)
    assert restored.space.tags == ner.space.tags and restored.inputs == ner.inputs and restored.facts() == ner.facts()
    item = {"words": ["Ann", "SAW", "99"], "columns": {"pos": ["NNP", "VBD", "?"]}}
    inputs, other_inputs = (task.collate([task.parse(item)]).x.inputs for task in (ner, restored))
    assert inputs.keys() == other_inputs.keys() and all(
        torch.equal(inputs[name], other_inputs[name]) for name in inputs
    )


def test_checksums_and_protocol(ner, pos, tmp_path):
    assert list(ner.checksums()) == [str(tmp_path / part) for part in sp.PARTS]
    assert ner.selection == "f1" and pos.selection == "accuracy"
    assert ner.protocol()["metric"].startswith("f1:") and pos.protocol()["metric"].startswith("accuracy:")
    assert ner.protocol()["scheme"] == "iob1, learned as bioes" and "under bioes" in ner.protocol()["decoding"]
    assert ner.protocol()["split"]["test"] == str(tmp_path / "test")


def test_comparisons_find_the_score_of_both_kinds(tmp_path):
    selections = [
        find_task_selection({"type": "tagging", "scheme": scheme}, sp.Registry()) for scheme in ("none", "bio")
    ]
    assert selections == ["accuracy", "f1"]
    (tmp_path / "metrics.json").write_text('{"protocol": {"constant_predictor": {"score": "micro_f1"}}}')
    assert find_run_selection(sp.RunFolder(tmp_path), sp.Registry()) == "micro_f1"  # by its data


def test_indexers_run_once_and_may_not_share_a_columns_name(ner):
    class Counting(sp.Indexer):
        calls = 0

        def index(self, words):
            Counting.calls += 1
            return len(words)

        def collate(self, items):
            return {"lengths": torch.tensor(items)}

    ner.indexers["lengths"] = Counting()
    for _ in range(2):
        assert ner.collate(ner.part("train")).x.inputs["lengths"].tolist() == [5, 3]
    assert Counting.calls == 2
    ner.indexers["lengths"].collate = lambda items: {"pos": torch.tensor(items)}
    with pytest.raises(ConfigError, match=r"task\.columns: the feature network uses the name 'pos'"):
        ner.collate(ner.part("train"))


def test_conllu_is_recognised_by_its_suffix(tmp_path):
    files = dict.fromkeys(("train", "validation"), written(tmp_path / "a.conllu", CONLLU))
    task = loaded("tagging", **files, columns={"ptb": "xpos"})
    assert task.space.tags == ["PRON", "VERB"] and task.part("train")[0].columns["ptb"].tolist() == [2, 3]
    task = loaded("tagging", **files, words="lemma", tags="xpos")
    assert task.part("train")[0].entry.words == ("she", "run") and task.space.tags == ["PRP", "VBZ"]
    for options, message in (
        ({"words": 1}, r"task\.words: found 1, but .*a\.conllu is read as CoNLL-U; expected the name of a field"),
        ({"format": "columns", "tags": "upos"}, r"task\.tags: found 'upos'.*the number of a column.*task\.format"),
    ):
        with pytest.raises(ConfigError, match=message):
            loaded("tagging", **files, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            r"neither corpus nor train; expected task\.corpus \('pos' or 'ner' or 'predicates'\), task\.file, or",
        ),
        ({"corpus": "pos", "encoding": "bio"}, r"task\.encoding: found 'bio'; expected a task\.scheme of spans with"),
        ({"corpus": "pos", "columns": {"words": 1}}, r"the name 'words'"),
        (
            {"corpus": "pos", "tags": "nonsense"},
            "task.tags: found .nonsense., which has no effect: it applies to files",
        ),
        ({"corpus": "pos", "format": "conllu"}, r"task\.format: found .*no effect"),
        ({"corpus": "ner", "columns": {"lemma": 1}}, r"no column 'lemma' in the corpus 'ner'; it has pos, chunk"),
    ],
)
def test_invalid_configs_are_rejected(options, message):
    with pytest.raises(ConfigError, match=message):
        loaded("tagging", **options)


def test_broken_tags_are_reported_with_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"train:1: found I-PER as the first tag; expected B-PER .*scheme=iob1"):
        make_task(tmp_path, scheme="bio")
    with pytest.raises(DataError, match=r"train:3: found O after I-PER; expected I-PER or E-PER"):
        make_task(tmp_path, scheme="bioes", train=TRAIN.replace("I-PER", "B-PER", 1))
    with pytest.raises(DataError, match=r"test:1: found 1 column, so column -1 for tags"):
        make_task(tmp_path, test="word\n", scheme="iob1")


def test_a_training_part_without_spans_is_rejected(tmp_path):
    with pytest.raises(
        DataError, match=r"train: found the tag O throughout .*; expected other tags, .* set task\.tags"
    ):
        make_task(tmp_path, train="a O\nb O\n", test="c B-X\n", scheme="bio")
    task = make_task(tmp_path, train="a O\nb O\n", test="c O\n")
    assert task.space.tags == ["O"]


@pytest.mark.parametrize(("corpus", "options"), [("pos", {}), ("ner", {"scheme": "bio", "columns": {"pos": 1}})])
def test_gold_scores_one_on_the_sample(corpus, options):
    task = loaded("tagging", corpus=corpus, **options)
    check_gold_scores_one(task)
    assert "sample" in task.protocol()["split"] and task.checksums() == {}


def check_gold_scores_one(task: sp.Tagging) -> None:
    for part in sp.PARTS:
        metric = task.metric()
        for i in range(0, len(task.part(part)), 200):
            batch = task.collate(task.part(part)[i : i + 200])
            metric.update(task.space.independent(30 * batch.gold, batch.x.mask), batch)
        assert metric.compute()[task.selection] == 1.0
        numerator, denominator = metric.ratios()
        assert torch.equal(numerator, denominator) and len(numerator) == len(task.part(part))


DATA = Path(os.environ.get("SPEN_DATA", "/nowhere"))


@pytest.mark.skipif(not (DATA / "ner/wnut17").is_dir(), reason="no real data")
@pytest.mark.parametrize(
    ("paths", "options", "counts"),
    [
        ("pos/twitter_pos/: oct27.splits/oct27.train oct27.splits/oct27.dev daily547.conll", {}, (1000, 327, 547)),
        ("ner/btc/btc.: train dev test", {"scheme": "bio", "encoding": "bioes"}, (6338, 1001, 2001)),
        (
            "ner/wnut17/: wnut17train.conll emerging.dev.conll emerging.test.annotated",
            {"scheme": "bio", "encoding": "bioes"},
            (3394, 1009, 1287),
        ),
    ],
)
def test_real_data_is_read_and_gold_scores_one(paths, options, counts):
    folder, names = paths.split(": ")
    files = {part: f"data:{folder}{name}" for part, name in zip(sp.PARTS, names.split(), strict=True)}
    task = loaded("tagging", **files, **options)
    assert tuple(len(task.part(part)) for part in sp.PARTS) == counts
    check_gold_scores_one(task)


def test_predicates_are_tagged_and_scored_as_spans(tmp_path):
    file = tmp_path / "roles.conll"
    file.write_text("0\tShe\t-\t-\t-\t-\t(ARG0*)\t*\n1\ttried\t-\t-\ttry\t-\t(V*)\t*\n2\tto\t-\t-\t-\t-\t(ARG1*\t*\n")
    lines = file.read_text() + "3\tread\t-\t-\tread\t-\t*)\t(V*)\n\n0\tYes\t-\t-\t-\t-\n\n"
    file.write_text(lines)
    files = {"train": str(file), "validation": str(file), "format": "predicates"}
    task = loaded("tagging", **files, scheme="bio", min_count=1_000_000)
    first, second = task.part("train")
    assert first.names == ("O", "B-V", "O", "B-V") and second.names == ("O",)
    assert task.selection == "f1" and task.space.tags == ["O", "B-V"] and len(task.inputs.words) == 2
    with pytest.raises(ConfigError, match=r"task\.scheme: found 'none'; predicates require 'bio'"):
        loaded("tagging", **files)
    with pytest.raises(ConfigError, match=r"task\.tags: task\.format=predicates has fixed columns"):
        loaded("tagging", **files, scheme="bio", tags=3)


def test_the_sample_of_predicates_equals_that_of_roles():
    task, roles = loaded("tagging", corpus="predicates", scheme="bio"), loaded("srl", corpus="sample")
    predicates = {(e.entry.words, i) for e in task.part("test") for i, name in enumerate(e.names) if name == "B-V"}
    assert predicates == {(e.entry.words, e.predicate) for e in roles.part("test")}


def test_only_some_training_sentences_have_tags(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Io\nruns\n")
    task = make_task(tmp_path, tags=1, labelled=1, repeat=3, unlabelled=[str(tmp_path / "more")])
    assert any(f"{tmp_path / 'more'}: read as " in note and "1 sentence, 2 words" in note for note in task.notes())
    train = task.part("train")
    assert [example.names is not None for example in train] == [True, False, False, True, True]
    assert train[2].entry.words == ("Io", "runs") and train[4] is train[0]
    assert set(task.facts()["tags"]) == {"NNP", "VBD", "CD"} and "io" in task.facts()["words"]
    batch = task.collate(train[:3])
    assert batch.labelled.tolist() == [True, False, False] and not batch.gold[1:].any()
    assert task.collate(train[1:3]).gold is None
    assert len(make_task(tmp_path, tags=1, labelled=1, rest=False).part("train")) == 1
    assert task.protocol()["labelled"] == "the first 1 training sentences"
    assert "labelled" not in make_task(tmp_path, tags=1).protocol()
    spans = make_task(tmp_path, scheme="iob1", columns={"pos": 1}, labelled=1)
    assert [len(example.spans) for example in spans.part("train")] == [2, 0]
    assert spans.part("train")[1].columns["pos"].tolist() == spans.part("train")[0].columns["pos"][:3].tolist()
    with pytest.raises(DataError, match=r"train: found 2 training sentences; expected at least task\.labelled=3"):
        make_task(tmp_path, tags=1, labelled=3)


def test_tags_in_unlabelled_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Io X-Y\nruns ??\n")
    task = make_task(tmp_path, scheme="iob1", unlabelled=str(tmp_path / "more"))
    assert task.part("train")[-1].names is None and str(tmp_path / "more") in task.checksums()
