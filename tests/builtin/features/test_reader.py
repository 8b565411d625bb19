"""Networks of words with a `reader` below them, and batches of similar lengths in word pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.config.experiment import build, check
from spen_plugins.model import Model
from spen_plugins.registry import Registry
from spen_plugins.testing import check_feature_network
from tests.builtin.features.test_encoders import save_model

NETWORKS = [
    {"type": "bilstm", "word_dim": 0, "affix_dim": 0, "case_dim": 3, "char_dim": 2, "hidden": 5, "layers": 1},
    {"type": "encoder", "encoder": "pass_through", "word_dim": 0, "char_dim": 0, "case_dim": 3},
]


def made(network: dict, reader: dict | None) -> tuple[sp.Task, Model]:
    config = {
        "task": {"type": "tagging", "corpus": "pos"},
        "features": network | ({} if reader is None else {"reader": reader}),
        "inference_net": {"type": "independent"},
        "trainer": {"type": "cross_entropy"},
    }
    built = build(check(config, "test", Registry()))
    return built.task, built.model.eval()


@pytest.fixture
def reader(tmp_path: Path) -> dict:
    return {"type": "transformer", "model": str(save_model(tmp_path))}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_contracts_hold_with_a_reader(network: dict, reader: dict) -> None:
    task, model = made(network, reader)
    check_feature_network(model.inference_net.features, task)


def test_a_words_vector_ends_in_the_readers(reader: dict) -> None:
    task, model = made(NETWORKS[1], reader)
    features = model.inference_net.features
    x = task.collate(task.part("train")[:4]).x
    vectors = features(x)
    assert vectors.shape[-1] == features.output_dim == 3 + features.reader.output_dim
    torch.testing.assert_close(vectors[..., 3:], features.reader(x))
    assert features.contextual and not made(NETWORKS[1], None)[1].inference_net.features.contextual


def test_a_reader_alone_is_enough_to_look_at(reader: dict) -> None:
    nothing = {"type": "bilstm", "word_dim": 0, "affix_dim": 0, "hidden": 5}
    assert made(nothing, reader)[1].inference_net.features.word_width == 16
    with pytest.raises(sp.ConfigError, match="reader null"):
        made(nothing, None)


def test_sentences_of_similar_numbers_of_pieces_are_in_one_batch(reader: dict) -> None:
    """A word of many pieces among short sentences would make all of them long."""
    task, _ = made({"type": "transformer"} | reader, None)
    words = ["the"] * 6
    short, long = (task.parse({"words": given}) for given in (words, [*words[1:], "cats"]))
    [indexer] = task.indexers.values()
    pieces = [indexer.index(example.entry.words).ids.size for example in (short, long)]
    assert [task.length(example) for example in (short, long)] == pieces
    assert pieces[0] < pieces[1]
    plain, _ = made(NETWORKS[0], None)
    assert plain.length(plain.parse({"words": words})) == 6


def test_roles_of_one_reading_are_as_long_as_their_sentences_pieces(reader: dict) -> None:
    config = {
        "task": {"type": "srl", "corpus": "sample"},
        "features": {"type": "one_reading", "reader": reader},
        "inference_net": {"type": "independent"},
        "trainer": {"type": "cross_entropy"},
    }
    task = build(check(config, "test", Registry())).task
    examples = task.part("train")[:20]
    x = task.collate(examples).x
    [name] = [name for name in x.inputs if name.endswith(".owner")]
    pieces = (x.inputs[name] > -2).sum(1)[x.inputs["sentence"]]
    assert np.array_equal([task.length(example) for example in examples], pieces)
