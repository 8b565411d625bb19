"""Probabilities of tags in the scheme of y, against all tag sequences of short sentences."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.data.schemes import complete_tags, convert
from spen_plugins.scores.calibration import tempered
from spen_plugins.sklearn.sentences import Sentences, WrittenTags
from spen_plugins.spaces import Proposal, TagSequence, allowed_transitions
from spen_plugins.spaces.chain import Chain

LENGTHS = [3, 1, 2]
MASK = torch.arange(3) < torch.tensor(LENGTHS)[:, None]
KINDS = {"B-X", "B-Y"}
CLASSES = {scheme: sorted(complete_tags(KINDS, scheme)) for scheme in ("bio", "iob1", "bioes")}


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(3))


def make_chain(encoding: str) -> CrfProposal:
    """Returns a chain under which sequences that break the encoding have probability 0."""
    tags = complete_tags(KINDS, encoding)
    k = len(tags)
    scores = (
        torch.where(allowed, 2 * draw(*allowed.shape), -1000.0) for allowed in allowed_transitions(tags, encoding)
    )
    return CrfProposal(TagSequence(tags, encoding), draw(3, 1, 3, k), MASK, chain=Chain(*scores))


def make_independent(tags: list[str]) -> Proposal:
    return TagSequence(tags).independent(draw(3, 1, 3, len(tags)), MASK)


def sum_sequences(proposal: Proposal, row: int, rewrite, classes: list[str]) -> np.ndarray:
    """Sums the probabilities of all sequences of a row at each word's class, `(word, class)`."""
    tags, length = proposal.space.tags, LENGTHS[row]
    total = np.zeros((length, len(classes)))
    for path in product(range(len(tags)), repeat=length):
        y = torch.zeros_like(proposal.logits)
        y[row, 0, torch.arange(length), list(path)] = 1
        q = float(proposal.log_prob(y)[row].exp())
        if q > 1e-12:
            for word, tag in enumerate(rewrite([tags[i] for i in path])):
                total[word, classes.index(tag)] += q
    return total


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
@pytest.mark.parametrize("encoding", ["bio", "bioes"])
def test_a_chain_in_another_scheme_is_the_sum_over_sequences_written_in_it(encoding: str, scheme: str) -> None:
    proposal, classes = make_chain(encoding), CLASSES[scheme]
    probabilities = WrittenTags(proposal.space.tags, scheme, classes)(proposal, LENGTHS, 1.0)
    for row, p in enumerate(probabilities):
        expected = sum_sequences(proposal, row, lambda tags: convert(tags, encoding, scheme), classes)
        np.testing.assert_allclose(p, expected, atol=1e-8)


def test_independent_tags_that_break_the_encoding_count_word_by_word() -> None:
    proposal, classes = make_independent(complete_tags(KINDS, "bioes")), CLASSES["iob1"]

    def rewrite(tags: list[str]) -> list[str]:
        follows = [previous[2:] == tag[2:] for previous, tag in pairwise(["O", *tags])]
        forms = [("B" if tag[0] in "BS" and f else "I") + tag[1:] for tag, f in zip(tags, follows, strict=True)]
        return [tag if tag == "O" else form for tag, form in zip(tags, forms, strict=True)]

    for row, p in enumerate(WrittenTags(proposal.space.tags, "iob1", classes)(proposal, LENGTHS, 1.0)):
        np.testing.assert_allclose(p, sum_sequences(proposal, row, rewrite, classes), atol=1e-8)


def test_plain_tags_are_in_the_order_of_the_classes_and_one_that_training_lacks_has_no_probability() -> None:
    proposal = make_independent(["N", "V", "B-day"])
    probabilities = WrittenTags(["N", "V", "B-day"], "none", ["B-day", "D", "N", "V"])(proposal, LENGTHS, 1.0)
    marginals = proposal.mean[:, 0].numpy()
    for row, p in enumerate(probabilities):
        np.testing.assert_allclose(p[:, [2, 3, 0]], marginals[row, : LENGTHS[row]])
        assert (p[:, 1] == 0).all()


@pytest.mark.parametrize(
    ("scheme", "classes", "letters"),
    [
        ("bio", ["B-X", "O"], {"B-X": "BIES", "O": "O"}),
        ("bio", ["B-X", "I-X"], {"B-X": "BS", "I-X": "IE"}),  # without O, only spans
        ("iob1", ["I-X", "O"], {"I-X": "BIES", "O": "O"}),
        ("bioes", ["O", "S-X"], {"O": "O", "S-X": "BIES"}),
        ("bioes", ["B-X", "E-X", "O"], {"B-X": "BS", "E-X": "IE", "O": "O"}),
        ("bioes", ["B-X", "I-X", "L-X", "O", "U-X"], {"B-X": "B", "I-X": "I", "L-X": "E", "O": "O", "U-X": "S"}),
    ],
)
def test_a_tag_that_y_lacks_counts_as_the_closest_of_its_type(scheme, classes, letters) -> None:
    tags = complete_tags({"B-X"}, "bioes")
    proposal = make_independent(tags)
    columns = np.array([[float(tag[0] in letters[name]) for name in classes] for tag in tags])
    for row, p in enumerate(WrittenTags(tags, scheme, classes)(proposal, LENGTHS, 1.0)):
        expected = proposal.mean[row, 0, : LENGTHS[row]].numpy() @ columns
        np.testing.assert_allclose(p, expected / expected.sum(1, keepdims=True))


def test_the_temperature_is_that_of_each_words_tags() -> None:
    proposal = make_chain("bioes")
    tags = proposal.space.tags
    p = tempered(proposal.mean[0, 0].numpy(), 2.5)
    np.testing.assert_allclose(WrittenTags(tags, "bioes", tags)(proposal, LENGTHS, 2.5)[0], p)
    [bio, *_] = WrittenTags(tags, "bio", CLASSES["bio"])(proposal, LENGTHS, 2.5)
    begin_probabilities = p[:, [tags.index("B-X"), tags.index("S-X")]].sum(1)
    np.testing.assert_allclose(bio[:, CLASSES["bio"].index("B-X")], begin_probabilities)
    for scheme, classes in CLASSES.items():
        assert all(np.allclose(rows.sum(1), 1) for rows in WrittenTags(tags, scheme, classes)(proposal, LENGTHS, 2.5))


def test_sentences_are_compared_one_by_one() -> None:
    sentences = Sentences.from_lists([["a"], ["b", "c"], ["d"]])
    assert sentences.shape == (3,) and sentences[1] == ["b", "c"]
    for others in ([["a"], ["b", "x"], ["d"]], Sentences.from_lists([["a"], ["b"], ("d",)])):
        assert (sentences == others).tolist() == [True, False, True]
        assert (sentences != others).tolist() == [False, True, False]
    even = Sentences.from_lists([["a", "b"], ["c", "d"]])
    assert even.shape == (2,) and (even == [["a", "b"], ["c", "x"]]).tolist() == [True, False]
