"""Whole texts, and labels after them, under networks for sentences."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_decoders.reading import LabelsAsWords, TextWords, read_words
from spen_plugins.builtin.features.bilstm import BiLstm
from spen_plugins.task import Indexer
from spen_plugins.testing import ToyLabels, check_feature_network
from tests.loaded import loaded


def network(cls: type, **settings) -> tuple[sp.FeatureNetwork, sp.Task]:
    """The network over a small BiLSTM, with the task that has its indexer."""
    task = loaded("text", corpus="sample")
    inner = cls.make_inner_task(task)
    config = BiLstm.Config(word_dim=5, affix_dim=4, hidden=3, layers=1, mark_dim=4, mark_state=False, dropout=0)
    torch.manual_seed(0)
    reader = BiLstm(config, inner)
    features = cls(cls.Config(**settings), task, reader)
    name, indexer = features.indexer()
    assert isinstance(indexer, Indexer) and "." not in name
    task.indexers = {name: indexer}
    return features.eval(), task


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_vectors_of_texts_obey_the_contract(pooling: str) -> None:
    features, task = network(TextWords, pooling=pooling, longest=9)
    check_feature_network(features, task)


def test_padding_changes_nothing_and_long_texts_are_truncated() -> None:
    features, task = network(TextWords, longest=5)
    examples = [task.parse("one two"), task.parse("a b c d e f g"), task.parse("")]
    words, mask = read_words(features, task.collate(examples).x)
    assert mask.sum(1).tolist() == [2, 5, 1] and words.shape == (3, 5, 6)
    assert torch.equal(features(task.collate(examples).x), words * mask.unsqueeze(2))
    for row, example in enumerate(examples):
        single, single_mask = read_words(features, task.collate([example]).x)
        torch.testing.assert_close(words[row, : single.shape[1]], single[0])
        assert single_mask.all()


def test_labels_follow_the_words_of_each_text() -> None:
    features, task = network(LabelsAsWords, longest=5)
    labels = len(task.space.labels)
    examples = [task.parse("one two"), task.parse("a b c d e f g"), task.parse("")]
    words, is_word, vectors = features.split(task.collate(examples).x)
    assert vectors.shape == (3, labels, 6) and is_word.sum(1).tolist() == [2, 5, 1]
    assert not words[~is_word].any() and torch.equal(features(task.collate(examples).x), vectors)
    for row, example in enumerate(examples):
        single, _, single_vectors = features.split(task.collate([example]).x)
        torch.testing.assert_close(single_vectors[0], vectors[row])
        torch.testing.assert_close(single[0, is_word[row].nonzero()[:, 0]], words[row][is_word[row]])
    assert (vectors[0].unsqueeze(0) - vectors[0].unsqueeze(1)).abs().sum(2).fill_diagonal_(1).min() > 0  # all differ


def test_other_inputs_are_rejected() -> None:
    with pytest.raises(sp.ConfigError, match="requires texts as inputs"):
        TextWords(TextWords.Config(), ToyLabels())
    with pytest.raises(sp.ConfigError, match="requires a reader"):
        TextWords(TextWords.Config(), loaded("text", corpus="sample"))
    features, task = network(LabelsAsWords)
    with pytest.raises(sp.ConfigError, match=r"requires features 'decoders\.words'"):
        read_words(features, task.collate([task.parse("a")]).x)
