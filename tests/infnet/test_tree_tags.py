"""Trees as one tag per word."""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import product

import pytest
import torch

from spen_infnet.parsing import trees
from spen_infnet.parsing.tags import Tag, TagSet, decode, encode, is_tree
from spen_plugins import locate
from tests.infnet.test_trees import TREES, random_tree


def encode_tree(tree: trees.Tree, length: int) -> list[Tag]:
    return encode(trees.spans(tree), length)


def test_tags_of_a_tree_written_by_hand():
    sentence = trees.parse(TREES[0])
    tags = [str(tag) for tag in encode_tree(sentence.tree, len(sentence.words))]
    # "The cat" share S and NP, "cat sleeps" S alone, "sleeps ." too.
    assert tags == ["+2:NP:", "-1:S:", "+0:S:VP", "::"]


def test_every_tree_is_recovered_from_its_tags():
    rng = random.Random(0)
    cases = [(random_tree(rng, length), length) for length in range(1, 15) for _ in range(40)]
    cases += [(sentence.tree, len(sentence.words)) for sentence in map(trees.parse, TREES)]
    for tree, length in cases:
        tags = encode_tree(tree, length)
        assert trees.build(decode(tags), length) == tree
        assert [Tag.parse(str(tag)) for tag in tags] == tags


def test_any_tags_give_a_tree_over_all_words():
    rng = random.Random(1)
    repaired = 0
    for _ in range(1000):
        length = rng.randint(1, 10)
        tags = [
            Tag(rng.choice([None, *range(-3, 4)]), rng.choice(["", "A", "B+A"]), rng.choice(["", "C", "C+A"]))
            for _ in range(length)
        ]
        spans = decode(tags)
        tree = trees.build(spans, length)
        assert trees.spans(tree) == spans == decode(tags)
        canonical = encode(spans, length)
        assert decode(canonical) == spans
        repaired += canonical != tags
    assert repaired > 500


def test_repair():
    # A depth below 0, two labels of one constituent, one without label, and a change at the last word.
    tags = [Tag(-2, "A", ""), Tag(1, "B", ""), Tag(0, "C", ""), Tag(2, "D", ""), Tag(1, "", "E")]
    assert decode(tags) == [(1, 5, "B"), (3, 5, "D"), (4, 5, "E")]


def test_the_search_finds_the_best_tags_of_a_tree():
    """Against the enumeration of all tags of sentences of up to four words."""
    rng = random.Random(2)
    candidates = [Tag(*parts) for parts in product((None, -1, 0, 1, 2), ("", "A", "B"), ("", "C"))]
    for length in (1, 2, 3, 4) * 6:
        tag_set = TagSet([*rng.sample(candidates, 12), Tag(None, "", "")])
        scores = torch.tensor([[rng.gauss(0, 1) for _ in tag_set.tags] for _ in range(length)])
        totals = {
            numbers: sum(float(scores[i, number]) for i, number in enumerate(numbers))
            for numbers in product(range(len(tag_set.tags)), repeat=length)
            if is_tree([tag_set.tags[number] for number in numbers])
        }
        assert tuple(tag_set.search(scores, choices=len(tag_set.tags), width=10_000) or ()) == max(
            totals, key=totals.__getitem__, default=()
        )


def test_the_search_finds_nothing_where_no_tags_form_a_tree():
    tag_set = TagSet([Tag(1, "S", ""), Tag(0, "NP", "")])
    assert tag_set.search(torch.zeros(3, 2)) is None


def test_unknown_tags_are_replaced():
    common, plain, other = Tag(1, "S", ""), Tag(-1, "NP", ""), Tag(-1, "VP", "NP")
    rare = Tag(-1, "NP", "NP")
    tag_set = TagSet.from_counts(Counter({common: 9, plain: 5, other: 6, rare: 4}), 5)
    assert tag_set.tags == [common, other, plain]
    replaced = [tag_set.replace(tag) for tag in (rare, other, Tag(-1, "S", ""), Tag(-7, "S", ""), Tag(None, "", "X"))]
    assert replaced == [plain, other, other, other, common]
    assert TagSet.from_counts(Counter([rare]), 5).tags == [rare]


@pytest.mark.slow
@pytest.mark.skipif("SPEN_DATA" not in os.environ, reason="$SPEN_DATA is not set")
def test_all_trees_of_the_web_treebank():
    counts: Counter[Tag] = Counter()
    total = 0
    for part in ("train", "dev", "test"):
        for sentence in trees.read(locate(f"data:parsing/ewt/{part}.trees")):
            length = len(sentence.words)
            tags = encode_tree(sentence.tree, length)
            assert trees.build(decode(tags), length) == sentence.tree
            total += 1
            counts.update(tags if part == "train" else ())
    assert total == 16_536
    assert (len(counts), len(TagSet.from_counts(counts, 5).tags)) == (1349, 584)
