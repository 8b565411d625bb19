"""Task `e2e.arcs`: candidates from trees, constraints, scores, predictions, and bad input."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from spen_e2e import arc_repair
from spen_e2e.arc_repair import Pairs, find_violations, repair_roles, solve_exactly
from spen_e2e.arcs_task import RoleArcs
from spen_e2e.trees import Tree, all_spans, read_trees, tree_candidates
from spen_plugins.builtin.features.bilstm import BiLstm
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.runs.predict.tokenised import TokenisedText
from tests.builtin.tasks.roles.test_srl_task import TEST, TRAIN, UNSEEN
from tests.loaded import loaded

# Ann came and saw 27 Ships . / She saw ships . / Bo saw 14 ships today .
TREES = (
    [("Ann", 2, "nsubj"), ("came", 0, "root"), ("and", 4, "cc"), ("saw", 2, "conj"), ("27", 6, "nummod"),
     ("Ships", 4, "obj")],
    [("She", 2, "nsubj"), ("saw", 0, "root"), ("ships", 2, "obj")],
    [("Bo", 2, "nsubj"), ("saw", 0, "root"), ("14", 4, "nummod"), ("ships", 2, "obj"), ("today", 2, "obl:tmod")],
)  # fmt: skip


def format_conllu(*sentences) -> str:
    lines = []
    for sentence in sentences:
        lines += [
            f"{i}\t{w}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_" for i, (w, head, relation) in enumerate(sentence, 1)
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


def make(folder: Path, trees: str | None = format_conllu(*TREES), **fields) -> RoleArcs:
    for name, text in (("train", TRAIN), ("dev", TRAIN), ("test", TEST), ("trees.conllu", trees)):
        if text is not None:
            (folder / name).write_text(text)
    tree_fields = {} if trees is None else {"trees": [str(folder / "trees.conllu")]}
    files = {"train": str(folder / "train"), "validation": str(folder / "dev"), "test": str(folder / "test")}
    return loaded("e2e.arcs", **files, **tree_fields, **fields)


@pytest.fixture
def task(tmp_path: Path) -> RoleArcs:
    return make(tmp_path)


@pytest.fixture(scope="module")
def sample() -> RoleArcs:
    return loaded("e2e.arcs", corpus="sample")


def make_proposal(task: RoleArcs, batch, *arcs: tuple[int, str, int, int, float]):
    """A proposal of these arcs, (predicate in the batch's first row, role, first, last, logit); none elsewhere."""
    logits = torch.zeros(batch.gold.shape)
    logits[..., 0] = 5
    for predicate, role, first, last, logit in arcs:
        example = batch.examples[0]
        spans = [(p, *example.candidates[c]) for p, c in example.pairs.tolist()]
        logits[0, 0, spans.index((predicate, first, last)), task.space.tags.index(role)] = logit
    return task.space.independent(logits, batch.x.mask)


def score(task: RoleArcs, proposal, batch) -> dict:
    metric = task.metric()
    metric.update(proposal, batch)
    return metric.compute()


def test_candidates_by_hand():
    # " It is a bad tradeoff , sadly " : tradeoff is the head of a copula
    heads = (5, 5, 5, 5, 5, -1, 7, 5, 5)
    relations = ("punct", "nsubj", "cop", "det", "amod", "root", "punct", "advmod", "punct")
    candidates = tree_candidates(Tree(heads, relations)).tolist()
    words = [[i, i] for i in (1, 2, 3, 4, 5, 7)]
    assert candidates == sorted([*words, [0, 8], [1, 7], [6, 7], [3, 7]])


def test_a_subtree_with_a_gap_is_no_candidate():
    # The subtree of the first word holds the third, but not the second.
    candidates = tree_candidates(Tree((1, -1, 0, 1), ("a", "root", "b", "c"))).tolist()
    assert candidates == [[0, 0], [0, 3], [1, 1], [2, 2], [3, 3]]


def test_all_spans():
    assert all_spans(3, 2).tolist() == [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]


def test_one_example_per_sentence(task):
    first, second = task.part("train")
    assert first.predicates.tolist() == [1, 3] and second.predicates.tolist() == [1]
    spans = [(p, *first.candidates[c]) for p, c in first.pairs.tolist()]
    # came: Ann to its left, the words below saw to its right. No candidate contains its predicate.
    assert spans == [
        *((0, a, b) for a, b in [(0, 0), (2, 2), (2, 5), (3, 3), (4, 4), (4, 5), (5, 5)]),
        *((1, a, b) for a, b in [(0, 0), (1, 1), (2, 2), (4, 4), (4, 5), (5, 5)]),
    ]
    assert task.space.tags == ["none", "A0", "A1"] and list(task.inputs.core) == ["A0", "A1"]
    assert [(spans[i], task.space.tags[r]) for i, r in enumerate(first.roles) if r] == [
        ((0, 0, 0), "A0"),
        ((1, 0, 0), "A0"),
        ((1, 4, 5), "A1"),
    ]
    # The role of today is unseen in training: no role is learned.
    assert task.part("test")[0].roles.tolist().count(-1) == 1
    assert task.protocol()["reach of the candidates"] == {"train": 1.0, "validation": 1.0, "test": 1.0}


def test_collate(task):
    batch = task.collate(task.part("train"), [7, 3])
    inputs = batch.x.inputs
    assert batch.rows.tolist() == [7, 3] and batch.x.mask.sum(1).tolist() == [13, 2]
    assert batch.gold.shape == (2, 1, 13, 3)
    assert inputs["words"].shape == (2, 6) and inputs["predicate_at"].tolist() == [[1, 3], [1, -1]]
    assert inputs["candidate_first"].shape == (2, 9) and inputs["candidate_last"][1].tolist()[4:] == [-1] * 5
    assert batch.gold.sum(-1)[:, 0].tolist() == batch.x.mask.float().tolist()
    assert task.collate([task.parse({"words": ["He", "came"], "predicates": [1]})]).gold is None


@pytest.mark.parametrize("trial", range(8))
def test_ilp_against_enumeration(trial):
    rng = np.random.default_rng(trial)
    n, core = 5, np.array([False, True, True, False])
    first = rng.integers(0, 6, n)
    pairs = Pairs(np.sort(rng.integers(0, 2, n)), first, first + rng.integers(0, 3, n))
    p = rng.dirichlet(np.ones(4), n)

    def allowed(roles) -> bool:
        for i, j in product(range(n), range(n)):
            if i < j and roles[i] and roles[j] and pairs.predicate[i] == pairs.predicate[j]:
                if pairs.first[i] <= pairs.last[j] and pairs.first[j] <= pairs.last[i]:
                    return False
                if roles[i] == roles[j] and core[roles[i]]:
                    return False
        return True

    def value(roles) -> float:
        return np.log(p[np.arange(n), list(roles)]).sum()

    highest = max(value(roles) for roles in product(range(4), repeat=n) if allowed(roles))
    for roles in (solve_exactly(p, pairs, core), repair_roles(p, pairs, core, "ilp")):
        assert allowed(roles) and value(roles) == pytest.approx(highest, abs=1e-9)
    greedy = repair_roles(p, pairs, core, "heuristic")
    assert allowed(greedy) and value(greedy) <= highest + 1e-9
    assert allowed(p.argmax(1)) == (not any(map(len, find_violations(pairs, p.argmax(1), core))))


def test_many_predicates_match_solving_each_alone(monkeypatch):
    monkeypatch.setattr(arc_repair, "MANY", 300)
    rng = np.random.default_rng(0)
    n, core = 1000, np.arange(8) % 2 == 1
    first = rng.integers(0, 20, n)
    pairs = Pairs(np.sort(rng.integers(0, 100, n)), first, first + rng.integers(0, 4, n))
    p = rng.dirichlet(np.ones(8), n)
    roles = solve_exactly(p, pairs, core)
    for assignment in (roles, repair_roles(p, pairs, core, "heuristic")):
        assert not any(map(len, find_violations(pairs, assignment, core)))
    for predicate in (0, 50, 99):
        rows = pairs.predicate == predicate
        solution = solve_exactly(p[rows], pairs.take(rows), core)
        values = [np.log(p[rows][np.arange(rows.sum()), r]).sum() for r in (roles[rows], solution)]
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_the_heuristic_keeps_the_most_probable(task):
    batch = task.collate(task.part("train")[:1])
    arcs = [(1, "A1", 4, 5, 8.0), (1, "A1", 4, 4, 9.0), (1, "A0", 0, 0, 7.0), (1, "A0", 1, 1, 6.0)]
    proposal = make_proposal(task, batch, *arcs)
    spans = [(p, *batch.examples[0].candidates[c]) for p, c in batch.examples[0].pairs.tolist()]

    def chosen(y) -> list[tuple]:
        roles = y[0, 0].argmax(-1).tolist()
        return [(*spans[i], task.space.tags[r]) for i, r in enumerate(roles) if r]

    assert chosen(task.decode(proposal, batch.x)) == [(1, 0, 0, "A0"), (1, 4, 4, "A1")]
    assert len(chosen(task.decode(proposal))) == 4
    scores = score(task, proposal, batch)
    assert (scores["violations"], scores["overlaps"], scores["repeats"]) == (0.5, 0.5, 0.5)
    # Gold: came A0 Ann, saw A0 Ann, saw A1 27 Ships.
    assert scores["f1_none"] == pytest.approx(2 * 2 / (4 + 3)) and scores["f1_heuristic"] == scores["span_f1"] == 2 / 5
    assert scores["f1_ilp"] == 2 / 5 and scores["reach"] == 1


def test_f1_is_that_of_task_srl(task, tmp_path):
    """The same spans, as arcs and as tags."""
    tags = loaded("srl", **{part: getattr(task.config, part) for part in ("train", "validation")})
    first, second, _ = tags.part("train")
    batch = task.collate(task.part("train")[:1])
    arc_scores = score(
        task, make_proposal(task, batch, (0, "A1", 0, 0, 9), (1, "A0", 0, 0, 9), (1, "A1", 5, 5, 9)), batch
    )
    tag_batch = tags.collate([first, second])
    logits = torch.zeros(tag_batch.gold.shape)
    for row, names in enumerate(("B-A1 B-V O O O O", "B-A0 O O B-V O B-A1")):
        for t, name in enumerate(names.split()):
            logits[row, 0, t, tags.space.tags.index(name)] = 9
    metric = tags.metric()
    metric.update(tags.space.independent(logits, tag_batch.x.mask), tag_batch)
    tag_scores = metric.compute()
    for name in ("span_precision", "span_recall", "span_f1", "roles"):
        assert arc_scores[name] == tag_scores[name], name


def test_gold_scores_what_candidates_reach(sample):
    # Without a C-X whose X is no candidate, since these count as an X.
    examples = [
        e for e in sample.part("test") if all(len(a.pieces) == 1 for arguments in e.arguments for a in arguments)
    ]
    batch = sample.collate(examples[:60])
    proposal = sample.space.independent((batch.gold * 2 - 1) * 10, batch.x.mask)
    scores = score(sample, proposal, batch)
    assert scores["span_precision"] == scores["reached_f1"] == 1 and scores["span_recall"] == scores["reach"] < 1
    assert scores["violations"] == 0
    metric = sample.metric()
    metric.update(proposal, batch)
    numerator, denominator = metric.ratios()
    assert float(numerator.sum() / denominator.sum()) == pytest.approx(scores["span_f1"])


def test_discontinuous_arguments(sample):
    """A C-X belongs to the X before it, in gold as in predictions."""
    example = next(
        e for e in sample.part("train") if any(len(a.pieces) > 1 for arguments in e.reached for a in arguments)
    )
    batch = sample.collate([example])
    proposal = sample.space.independent((batch.gold * 2 - 1) * 10, batch.x.mask)
    assert score(sample, proposal, batch)["reached_f1"] == 1
    decisions = sample.decisions(proposal, batch)
    assert decisions.right.all() and len(decisions.right) == sum(len(arguments) for arguments in example.reached)
    [prediction] = sample.predictions(proposal, batch, [example])
    roles = [argument["role"] for predicate in prediction["predicates"] for argument in predicate["arguments"]]
    assert any(role.startswith("C-") for role in roles)


def test_predictions(task):
    batch = task.collate(task.part("train")[:1])
    [prediction] = task.predictions(
        make_proposal(task, batch, (1, "A1", 4, 5, 8), (1, "A0", 0, 0, 9)), batch, task.part("train")[:1]
    )
    assert [p["word"] for p in prediction["predicates"]] == ["came", "saw"] and prediction["predicates"][0][
        "arguments"
    ] == []
    a0, a1 = prediction["predicates"][1]["arguments"]
    assert (a0["role"], a0["text"], a1["role"], a1["text"]) == ("A0", "Ann", "A1", "27 Ships")
    assert (a1["start"], a1["end"]) == (4, 6)
    assert a0["score"] > a1["score"] > 0.9
    assert list(task.show(task.part("train")[0]).gold) == ["came A0: Ann", "saw A0: Ann", "saw A1: 27 Ships"]


def test_parse(task):
    example = task.parse(
        {"words": ["Bo", "saw", "ships"], "predicates": [1], "heads": [1, -1, 1], "tags": [["B-A0", "B-V", "B-A1"]]}
    )
    assert example.candidates.tolist() == [[0, 0], [0, 2], [1, 1], [2, 2]] and example.roles.tolist() == [1, 2]
    # Without a tree, all spans.
    assert len(task.parse({"words": ["Bo", "saw", "ships"], "predicates": [1]}).candidates) == 6


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"words": "Bo saw"}, "predicates"),
        ({"words": ["Bo", "saw"], "predicates": [2]}, "0 to 1"),
        ({"words": ["Bo", "saw"], "predicates": [1, 1]}, "different"),
        ({"words": ["Bo", "saw"], "predicates": [1], "tags": []}, "one per predicate"),
        ({"words": ["Bo", "saw"], "predicates": [1], "tags": [["B-V"]]}, "one tag per word"),
        ({"words": ["Bo", "saw"], "predicates": [1], "heads": [1]}, "2 of each"),
        ({"words": ["Bo", "saw"], "predicates": [1], "heads": [1, 0]}, "its own ancestor at word 0"),
        ({"words": ["Bo", "saw"], "predicates": [1], "heads": [2, -1]}, "head 2 of 2 words at word 0"),
    ],
)
def test_invalid_items_are_rejected(task, item, message):
    with pytest.raises(DataError, match=message):
        task.parse(item)


def test_a_sentence_without_a_tree(tmp_path):
    with pytest.raises(DataError) as error:
        make(tmp_path, trees=format_conllu(TREES[0], TREES[2]))
    assert "train" in str(error.value) and "She saw ships" in str(error.value) and "task.trees" in str(error.value)


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        (("She", "x", "nsubj"), 8, "'x' as a word's head"),
        (("She", 9, "nsubj"), 8, "head 9 of 3 words"),
        (("She", 1, "nsubj"), 8, "its own ancestor"),
    ],
)
def test_invalid_trees_are_rejected(tmp_path, row, line, message):
    with pytest.raises(DataError, match=f"line {line}.*{message}|:{line}.*{message}"):
        make(tmp_path, trees=format_conllu(TREES[0], [row, *TREES[1][1:]], TREES[2]))


def test_a_file_that_is_no_conllu(tmp_path):
    with pytest.raises(DataError, match=r"trees\.conllu"):
        make(tmp_path, trees=TRAIN)
    with pytest.raises(DataError, match="no such file"):
        read_trees(tmp_path / "absent.conllu")


def test_read_with_and_without_trees(task, tmp_path):
    restored = RoleArcs(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    expected = task.part("test")[0]
    [example] = restored.read(task.config.test)
    assert (
        example.candidates.tolist() == expected.candidates.tolist()
        and example.roles.tolist() == expected.roles.tolist()
    )
    (tmp_path / "trees.conllu").unlink()
    with pytest.warns(UserWarning, match="1 of 1 sentences have no tree"):
        [treeless] = restored.read(task.config.test)
    assert len(treeless.candidates) == 15
    (tmp_path / "test.conllu").write_text(format_conllu(TREES[2]))
    [with_tree] = restored.read(task.config.test)
    assert with_tree.candidates.tolist() == expected.candidates.tolist()


def test_sentences_without_predicates_keep_their_trees(task, tmp_path):
    expected = task.part("test")[0]
    file = tmp_path / "words.jsonl"
    file.write_text(json.dumps({"words": expected.entry.words}))
    raw = TokenisedText("")
    raw.words = task.read(str(file)).words
    raw.predicates = lambda sentences: [expected.predicates.tolist()]
    [example] = task.read_text(raw)
    assert example.candidates.tolist() == expected.candidates.tolist()


def test_roles_missing_from_training_are_reported(task):
    assert task.notes()[-1] == UNSEEN


def test_checksums_include_the_trees(task):
    assert len(task.checksums()) == 4 and task.config.trees[0] in task.checksums()


def test_nets_of_words_reject_arcs(sample):
    features = BiLstm(BiLstm.Config(word_dim=3, hidden=2), sample)
    net = Independent(Independent.Config(), sample, features)
    with pytest.raises(ConfigError, match="not tags of words"):
        net(sample.collate(sample.part("train")[:2]).x)
