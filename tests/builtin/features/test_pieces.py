"""Word pieces: long sentences in windows, and vectors of words and texts from their pieces."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

import spen_plugins as sp
from spen_plugins.builtin.features.pieces import PieceIndexer, find_window_starts
from spen_plugins.builtin.features.transformer import Transformer
from tests.builtin.features.test_encoders import SENTENCE, build_network, save_model
from tests.loaded import loaded

LONG = SENTENCE * 3
PREDICATE = 4


def compute_by_hand(network: Transformer, words: list[str], room: int) -> list[list[Tensor]]:
    """The states of each word's pieces in the window where the word has the most context, reading each window alone."""
    tokenizer, model = network.indexer()[1]._tokenizer, network.encoder
    pieces = [(i, piece) for i, word in enumerate(words) for piece in tokenizer.tokenize(word)]
    start, end, states_by_word = tokenizer.cls_token_id, tokenizer.sep_token_id, {}
    for first in find_window_starts(len(pieces), room):
        window = pieces[first : first + room]
        ids = [start, *tokenizer.convert_tokens_to_ids([piece for _, piece in window]), end]
        types = [0, *(int(i == PREDICATE) for i, _ in window), 0]
        states = model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])).last_hidden_state[0]
        for i in range(len(words)):
            indices = [index for index, (owner, _) in enumerate(pieces) if owner == i]
            context = min(indices[0] - first, first + len(window) - 1 - indices[-1])
            word_states = [states[1 + index - first] for index in indices if first <= index < first + len(window)]
            if word_states and (i not in states_by_word or context > states_by_word[i][0]):
                states_by_word[i] = (context, word_states)
    return [states_by_word[i][1] for i in range(len(words))]


def test_equal_tokenisers_cut_a_sentence_once(tmp_path: Path) -> None:
    model = save_model(tmp_path)
    first, second, short_indexer = (
        PieceIndexer(name, AutoTokenizer.from_pretrained(model), longest)
        for name, longest in (("a", 40), ("b", 40), ("c", 6))
    )
    assert first.index(SENTENCE) is second.index(tuple(SENTENCE))
    assert len(short_indexer.index(LONG).ids) > 1 == len(first.index(SENTENCE).ids)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("positions", [40, 9, 6])
def test_words_take_their_vectors_where_they_have_most_context(
    task: sp.Task, tmp_path: Path, pooling: str, positions: int
) -> None:
    """With a short sentence, alone, and as computed by hand, without warnings."""
    network = build_network(task, Transformer, model=save_model(tmp_path, positions=positions), pooling=pooling)
    items: list[Any] = [{"words": ["dog", "gaven"], "predicate": 1}, {"words": LONG, "predicate": PREDICATE}]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        examples = [task.parse(item) for item in items]
        x = task.collate(examples).x
        batched, singles = network(x), [network(task.collate([example]).x)[0] for example in examples]
        expected = compute_by_hand(network, LONG, positions - 2)
    assert (x.inputs[f"{network.indexer()[0]}.windows"].shape[1] > 1) == (positions < 40)
    assert batched[0, 2:].abs().sum() == 0
    for row, single in zip(batched, singles, strict=True):
        torch.testing.assert_close(row[: len(single)], single)
    vectors = [states[0] if pooling == "first" else sum(states) / len(states) for states in expected]
    torch.testing.assert_close(singles[1], torch.stack(vectors))


@pytest.mark.parametrize("room", [1, 2, 4, 5, 10])
def test_windows_cover_a_sentence(room: int) -> None:
    for pieces in range(30):
        starts = find_window_starts(pieces, room)
        assert starts[0] == 0 and starts[-1] == max(0, pieces - room)
        assert all(0 < next_start - start <= room - room // 4 for start, next_start in pairwise(starts))


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_vectors_of_texts(tmp_path: Path, pooling: str) -> None:
    """The first piece, or the mean of all with each word once, averaged over windows; a text may be empty."""
    texts = loaded("text", corpus="sample", lowercase=False, punctuation=True)
    for positions in (40, 9):
        network = build_network(texts, Transformer, model=save_model(tmp_path, positions=positions), pooling=pooling)
        examples = [texts.parse(" ".join(words)) for words in ([], ["dog"], LONG)]
        with torch.no_grad():
            x = texts.collate(examples).x
            vectors = network(x)
            for row, example in zip(vectors, examples, strict=True):
                torch.testing.assert_close(row, network(texts.collate([example]).x)[0])
            item = network.indexer()[1].index(LONG)
            assert (len(item.ids) == 1) == (positions == 40)
            states = network.encoder(input_ids=torch.from_numpy(item.ids)).last_hidden_state
        if pooling == "first":
            expected = states[:, 0].mean(0)
        else:
            width = item.ids.shape[1]
            indices = [
                (w, p)
                for w, row in enumerate(item.owner)
                for p, word in enumerate(row)
                if word < 0 or item.first[word] // width == w
            ]
            expected = torch.stack([states[index] for index in indices]).mean(0)
        torch.testing.assert_close(vectors[2], expected)


def test_lengths_of_texts_are_numbers_of_pieces(tmp_path: Path) -> None:
    texts = loaded("text", corpus="sample")
    assert texts.length(texts.parse("a dog")) == 1
    build_network(texts, Transformer, model=save_model(tmp_path))
    assert texts.length(texts.parse("a dog")) == 5
