"""Constituency trees: brackets, spans and scores."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spen_infnet.parsing import trees
from spen_infnet.parsing.scores import TreeMetric
from spen_plugins import DataError

TREES = [
    "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))",
    "(TOP (NP (NN cat)))",
    "(TOP (S (VP (VB Go))) (. !))",
    "(TOP (NN cat) (NN dog))",
    "(TOP (X (S (VP (VB Stop) (S (VP (VBG using) (NP (NP (PRP it)))))))))",
]


def random_tree(rng: random.Random, length: int) -> trees.Tree:
    """A tree over all words, with unary chains and words right below the root."""

    def divide(start: int, end: int) -> tuple[trees.Tree | int, ...]:
        if end - start == 1:
            children: tuple[trees.Tree | int, ...] = (start,)
        else:
            cuts = sorted(rng.sample(range(start + 1, end), rng.randint(1, min(3, end - start - 1))))
            children = tuple(child for a, b in zip([start, *cuts], [*cuts, end], strict=True) for child in divide(a, b))
        while rng.random() < 0.4:
            children = (trees.Tree(rng.choice("ABC"), children),)
        return children

    return trees.Tree(trees.ROOT, divide(0, length))


def count_correct(predicted: list, gold: list) -> int:
    """The number of correct brackets: each predicted bracket crosses out an equal gold one."""
    remaining = list(gold)
    correct = 0
    for bracket in predicted:
        if bracket in remaining:
            remaining.remove(bracket)
            correct += 1
    return correct


@pytest.mark.parametrize("text", TREES)
def test_brackets_are_written_as_they_were_read(text: str):
    sentence = trees.parse(text)
    assert trees.write(sentence.tree, sentence.words, sentence.tags) == text


def test_function_tags_traces_and_missing_roots():
    sentence = trees.parse("( (S=2 (NP-SBJ-1 (-NONE- *)) (VP (VB Go) (NP=1-X (-LRB- -LRB-) (NP-TMP (NN home))))) )")
    assert sentence.words == ("Go", "(", "home")
    assert trees.write(sentence.tree, sentence.words) == "(TOP (S (VP (XX Go) (NP (XX -LRB-) (NP (XX home))))))"
    assert trees.parse("(S (NN x))").tree == trees.parse("(TOP (S (NN x)))").tree


@pytest.mark.parametrize(
    "text",
    ["(TOP (NN cat)", "(TOP (NN cat)))", "(TOP (NP the cat))", "(TOP (NP (DT the) cat))", "cat", "(TOP (S+VP (VB go)))",
     "(TOP (NN a)) (TOP (NN b))", "(TOP (-NONE- *))", "(TOP ((NN cat)))"],
)  # fmt: skip
def test_invalid_trees_are_an_error_with_their_line(text: str, tmp_path: Path):
    path = tmp_path / "some.trees"
    path.write_text(f"{TREES[0]}\n\n{text}\n")
    with pytest.raises(DataError, match=r"some.trees:3: found .* expected"):
        trees.read(path)


def test_spans_join_unary_chains_in_preorder():
    tree = trees.parse(TREES[4]).tree
    assert trees.spans(tree) == [(0, 3, "X+S+VP"), (1, 3, "S+VP"), (2, 3, "NP+NP")]
    assert trees.spans(trees.parse(TREES[2]).tree) == [(0, 1, "S+VP")]


def test_build_is_the_inverse_of_spans():
    rng = random.Random(0)
    for _ in range(500):
        length = rng.randint(1, 12)
        tree = random_tree(rng, length)
        spans = trees.spans(tree)
        assert trees.build(rng.sample(spans, len(spans)), length) == tree


def test_deep_trees():
    chain = [(0, 5000 - i, "A") for i in range(4000)]
    assert trees.spans(trees.build(chain, 5000)) == chain


@pytest.mark.parametrize("spans", [[(0, 2, "A"), (1, 3, "B")], [(0, 4, "A")], [(1, 1, "A")], [(-1, 1, "A")]])
def test_spans_that_form_no_tree_are_an_error(spans: list):
    with pytest.raises(ValueError, match="found the span"):
        trees.build(spans, 3)


def make_metric() -> TreeMetric:
    return TreeMetric(lambda proposal, lengths: [])


def score(predicted: str, gold: str) -> dict[str, float]:
    metric = make_metric()
    metric.add(trees.parse(predicted).tree, trees.parse(gold))
    return {name: metric.compute()[name] for name in ("bracket_f1", "precision", "recall", "exact_match")}


def test_scores_of_pairs_counted_by_hand():
    gold = "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (NN it)))) (. .)))"
    flat = "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits)) (PP (IN on) (NP (NN it))) (. .)))"
    # Of S, NP, VP, PP and NP, all but VP are right: its end differs.
    assert score(flat, gold) == {"bracket_f1": 0.8, "precision": 0.8, "recall": 0.8, "exact_match": 0.0}
    # A full stop within S or next to it scores the same, and a constituent of punctuation alone does not count.
    regrouped = "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (NN it))))) (X (. .)))"
    assert set(score(regrouped, gold).values()) == {1.0}
    # No bracket at all.
    assert score("(TOP (DT The) (NN cat))", "(TOP (NP (DT The) (NN cat)))") == dict.fromkeys(
        ("bracket_f1", "precision", "recall", "exact_match"), 0.0
    )
    # Two of three NPs over the same words are predicted, and both are right.
    scores = score("(TOP (NP (NP (NN it))))", "(TOP (NP (NP (NP (NN it)))))")
    assert scores == {"bracket_f1": 0.8, "precision": 1.0, "recall": pytest.approx(2 / 3), "exact_match": 0.0}


def test_scores_count_multisets_of_brackets():
    rng = random.Random(1)
    metric, total = make_metric(), [0, 0, 0]
    for _ in range(300):
        length = rng.randint(1, 8)
        tags = [rng.choice(["NN", ",", "."]) for _ in range(length)]
        bracket_lists = []
        pair = [random_tree(rng, length) for _ in range(2)]
        for tree in pair:
            word_indices = [i for i, tag in enumerate(tags) if tag == "NN"]
            nodes = [
                ([i for i in word_indices if start <= i < end], label) for start, end, label in trees.find_nodes(tree)
            ]
            bracket_lists.append([node for node in nodes if node[0]])
        correct = count_correct(*bracket_lists)
        gold = trees.Sentence(("x",) * length, tuple(tags), pair[1])
        assert metric.add(pair[0], gold) == (2 * correct, len(bracket_lists[0]) + len(bracket_lists[1]))
        total = [a + b for a, b in zip(total, (correct, *map(len, bracket_lists)), strict=True)]
    scores = metric.compute()
    assert scores["precision"] == total[0] / total[1]
    assert scores["recall"] == total[0] / total[2]
