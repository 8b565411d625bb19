"""Tokenisers of many kinds: spaces before words, texts and characters without pieces, and long texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, trainers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Metaspace, Sequence, Split, Whitespace
from transformers import AutoConfig, AutoModel, BertConfig, BertModel, PreTrainedTokenizerFast

import spen_plugins as sp
from spen_plugins.builtin.features.pieces import PieceIndexer
from spen_plugins.builtin.features.pretrained import WEIGHTLESS, find_longest, load
from spen_plugins.builtin.features.transformer import Transformer
from tests.builtin.features.test_encoders import build_network
from tests.loaded import loaded

WORDS = ["the", "coach", "didn't", "sing", "12"]
END = "<|endoftext|>"
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def train_byte_tokenizer(pre_tokenizer: Any, normalizer: Any = None) -> Tokenizer:
    """A byte-level tokeniser trained on the words above."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([" ".join(WORDS * 2)] * 5, trainer)
    return tokenizer


def make_marked(scheme: str) -> Tokenizer:
    """A tokeniser of single letters that marks spaces."""
    letters = ["▁", *sorted(set("".join(WORDS)))]
    tokenizer = Tokenizer(models.Unigram([(END, 0.0), *((letter, -1.0) for letter in letters)], 0))
    tokenizer.pre_tokenizer = Metaspace(prepend_scheme=scheme)
    return tokenizer


def save_encoder(tokenizer: Tokenizer, folder: Path, kind: str | None = None) -> str:
    """A folder of a small encoder with this tokeniser, read by transformers' class `kind`."""
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=20, **SIZES)).save_pretrained(
        folder
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    if kind:
        (folder / "tokenizer_config.json").write_text(f'{{"tokenizer_class": "{kind}", "eos_token": "{END}"}}')
    return str(folder)


def make_byte_level(**options: Any) -> ByteLevel:
    return ByteLevel(add_prefix_space=False, **options)


GLUED: dict[str, tuple[Callable[[], Tokenizer], str | None]] = {
    "bytes": (lambda: train_byte_tokenizer(make_byte_level()), None),
    "bytes of a class": (lambda: train_byte_tokenizer(make_byte_level()), "GPT2Tokenizer"),
    "normalised": (
        lambda: train_byte_tokenizer(make_byte_level(), normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])),
        None,
    ),
    "split": (
        lambda: train_byte_tokenizer(
            Sequence([Split(Regex(r"'t|\s?[^\W\d]+|\s?\d+|\W"), "isolated"), make_byte_level(use_regex=False)]),
            normalizers.NFC(),
        ),
        None,
    ),
    "split by a class": (lambda: train_byte_tokenizer(make_byte_level(), normalizers.NFC()), "Qwen2Tokenizer"),
    "digits": (lambda: train_byte_tokenizer(Sequence([Digits(individual_digits=True), make_byte_level()])), None),
    "spaces": (lambda: make_marked("never"), None),
}


@pytest.mark.parametrize(("make", "kind"), GLUED.values(), ids=GLUED)
def test_words_are_read_as_after_a_space(tmp_path: Path, make: Callable[[], Tokenizer], kind: str | None) -> None:
    """Words are read as in a text, also after the tokeniser was saved with a run."""
    raw = PreTrainedTokenizerFast(tokenizer_object=make())
    _, tokenizer = load(save_encoder(make(), tmp_path / "model", kind))
    pieces = tokenizer(WORDS, is_split_into_words=True)["input_ids"]
    if kind is None:
        prefix_length = len(raw(WORDS[0])["input_ids"])
        assert pieces == raw(" ".join([WORDS[0], *WORDS]))["input_ids"][prefix_length:]
        assert pieces != raw(WORDS, is_split_into_words=True)["input_ids"]
    assert pieces == [piece for word in WORDS for piece in tokenizer([word], is_split_into_words=True)["input_ids"]]
    if kind is not None:
        assert tokenizer.decode(pieces).split() == WORDS
    for _ in range(2):
        tokenizer.save_pretrained(tmp_path / "model")
        (tmp_path / "model" / WEIGHTLESS).touch()
        _, tokenizer = load(str(tmp_path / "model"))
        assert tokenizer(WORDS, is_split_into_words=True)["input_ids"] == pieces


CORRECT: dict[str, Callable[[], Tokenizer]] = {
    "prefix": lambda: train_byte_tokenizer(ByteLevel(add_prefix_space=True)),
    "without spaces": lambda: train_byte_tokenizer(Sequence([Whitespace(), make_byte_level()])),
    "first": lambda: make_marked("first"),
    "always": lambda: make_marked("always"),
}


@pytest.mark.parametrize("make", CORRECT.values(), ids=CORRECT)
def test_a_tokeniser_that_reads_words_after_a_space_is_kept(tmp_path: Path, make: Callable[[], Tokenizer]) -> None:
    _, tokenizer = load(save_encoder(make(), tmp_path))
    expected = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert tokenizer.backend_tokenizer.to_str() == expected.backend_tokenizer.to_str()


def test_a_tokeniser_that_cannot_read_words_after_a_space_is_a_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spen_plugins.builtin.features.pretrained._glues_words", lambda fast: True)
    with pytest.raises(sp.ConfigError, match="ignores the spaces between the words"):
        load(save_encoder(train_byte_tokenizer(make_byte_level()), tmp_path))


def save_without_specials(folder: Path) -> str:
    """A BERT whose tokeniser adds no special pieces."""
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, END: 1, "the": 2, "coach": 3}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = Whitespace()
    return save_encoder(tokenizer, folder)


EMPTY = {"frozen": (0, 0.0), "stored": (1, 1.0), "all stored": ("all", 1.0)}


@pytest.mark.parametrize(("frozen", "gib"), EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_text_without_pieces_is_read(tmp_path: Path, pooling: str, frozen: int | str, gib: float) -> None:
    """Alone and in a batch with texts that may have windows."""
    texts = loaded("text", corpus="sample")
    fields = {"model": save_without_specials(tmp_path), "pooling": pooling, "dropout": 0.0}
    network = build_network(texts, Transformer, **fields, frozen=frozen, store_gib=gib)
    unstored = build_network(texts, Transformer, **fields)
    examples = [texts.parse(text) for text in ("", "the coach", "", "the coach " * 30)]
    for part in network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    network.train()
    with torch.no_grad():
        expected = unstored(texts.collate(examples).x)
        for _ in range(2):
            torch.testing.assert_close(network(texts.collate(examples).x), expected)
        for row, example in zip(expected, examples, strict=True):
            torch.testing.assert_close(network(texts.collate([example]).x)[0], row)
        states = unstored.encoder(input_ids=torch.tensor([[1]])).last_hidden_state
    assert expected.isfinite().all()
    torch.testing.assert_close(expected[0], states[0, 0])


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_sentence_without_pieces_is_read(task: sp.Task, tmp_path: Path, pooling: str) -> None:
    network = build_network(task, Transformer, model=save_without_specials(tmp_path), pooling=pooling)
    item = network.indexer()[1].index(["\x01", "\x02"])
    assert item.ids.tolist() == [[1]] and item.owner.tolist() == [[-1]] and item.first.tolist() == [0, 0]
    words = [["\x01", "\x02"], ["the", "coach", "the"]]
    x = task.collate([task.parse({"words": sentence, "predicate": 0}) for sentence in words]).x
    with torch.no_grad():
        assert network(x).isfinite().all()


@pytest.mark.parametrize(
    "model",
    [
        lambda: models.Unigram([(END, 0.0), ("a", -1.0), ("b", -1.0)], None),
        lambda: models.WordPiece({END: 0, "a": 1, "b": 2}, unk_token="[UNK]"),
        lambda: models.WordLevel({END: 0, "a": 1, "b": 2}, unk_token="[UNK]"),
        lambda: models.BPE({END: 0, "a": 1, "b": 2}, [], unk_token="[UNK]"),
    ],
    ids=["unigram", "word pieces", "words", "bpe"],
)
def test_a_tokeniser_without_an_unknown_piece_is_a_config_error(tmp_path: Path, model: Callable[[], Any]) -> None:
    tokenizer = Tokenizer(model())
    tokenizer.pre_tokenizer = Whitespace()
    with pytest.raises(sp.ConfigError, match=r"could not be loaded \(.*(?i:unk)"):
        load(save_encoder(tokenizer, tmp_path))


@pytest.mark.parametrize(
    ("kind", "room"),
    [
        ("bert", 20),
        ("roberta", 18),
        ("xlm-roberta", 18),
        ("mpnet", 18),
        ("data2vec-text", 18),
        ("roberta-prelayernorm", 18),
        ("xlm-roberta-xl", 18),
        ("ibert", 18),
        ("deberta-v2", 20),
        ("electra", 20),
    ],
)
def test_the_longest_sentence_is_read(kind: str, room: int) -> None:
    settings = AutoConfig.for_model(kind, vocab_size=30, max_position_embeddings=20, pad_token_id=1, **SIZES)
    encoder = AutoModel.from_config(settings).eval()
    assert find_longest(encoder, SimpleNamespace(model_max_length=10**9)) == room
    ids = torch.full((1, room), 5)
    with torch.no_grad():
        assert encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.shape[1] == room


def test_equal_tokenisers_with_other_special_pieces_are_kept_apart(tmp_path: Path) -> None:
    """The piece of an empty text is one of them."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "c": 2}))
    indexers = [
        PieceIndexer(end, PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end), 9) for end in "bc"
    ]
    assert [indexer.index([]).ids.item() for indexer in indexers] == [1, 2]
