"""Words of texts keep combining marks; a pretrained encoder reads the words between blanks."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unicodedata import category

import numpy as np
import pytest
from transformers import BertTokenizerFast, PreTrainedTokenizerFast

import spen_plugins as sp
from spen_plugins.builtin.features.pieces import PieceIndexer
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.data.texts.words import LONGEST, words_of
from tests.loaded import ROOT, loaded

CONFIG = ROOT / "configs/texts.jsonnet"
UNCHANGED = {"lowercase": False, "digits": False}
ACUTE = "\u0301"


def split_words(text: str, **fields: Any) -> list[str]:
    return sp.TextLabels(sp.TextLabels.Config(**fields)).words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("किताब, क्या?", ["किताब", ",", "क्या", "?"]),
        ("שָׁלוֹם!", ["שָׁלוֹם", "!"]),
        (f"Cafe{ACUTE} d’e{ACUTE}te{ACUTE}.", [f"cafe{ACUTE}", f"d'e{ACUTE}te{ACUTE}", "."]),
        ("ශ්\u200dරී ලංකා", ["ශ්\u200dරී", "ලංකා"]),
        ("I ❤\ufe0flove \ufe0fit", ["i", "❤", "\ufe0f", "love", "\ufe0f", "it"]),  # marks without a letter
    ],
)
def test_combining_marks_stay_in_their_word(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected
    assert split_words(text, punctuation=False) == [word for word in expected if re.match(r"\w", word)]


def test_words_without_combining_marks_match_those_of_earlier_versions() -> None:
    rng = np.random.default_rng(0)
    characters = "ab'' _.-,’\u200d❤€éßЖ中²½٣\n" + "".join(map(chr, range(0x250, 0x2100, 7)))
    letters = [letter for letter in characters if not category(letter).startswith("M")]
    assert len(letters) > 500
    for _ in range(300):
        text = "".join(rng.choice(letters, 40))
        for marks, pattern in ((True, r"\w+(?:'\w+)*|[^\w\s]"), (False, r"\w+(?:'\w+)*")):
            assert words_of(text, make_config(punctuation=marks)) == re.findall(pattern, text.replace("’", "'"))


def make_config(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"words": "rule", "punctuation": True, **UNCHANGED, **fields})


def test_words_between_blanks() -> None:
    text = "It’s  the goal, (law-court)\n1,950\u00a0किताब ❤\ufe0f!"
    assert split_words(text, words="blanks", **UNCHANGED) == text.split()
    assert split_words(text, words="blanks")[-4:] == ["(law-court)", "0,000", "किताब", "❤\ufe0f!"]
    with pytest.raises(sp.ConfigError, match=r"task\.punctuation=false requires task\.words=rule"):
        loaded("text", corpus="sample", words="blanks", punctuation=False)


def test_long_words_between_blanks_are_cut_at_punctuation() -> None:
    sentence = "这是一个很长的句子" * 4 + "。"
    for text in (sentence * 30, "x" * 1234, "ก\u0e34" * 200, "https://" + "path/of=it?" * 40, "。" * 250):
        pieces = split_words(text, words="blanks", **UNCHANGED)
        assert "".join(pieces) == text and max(map(len, pieces)) <= LONGEST + 1 and len(pieces) < 45
    assert split_words(sentence * 30, words="blanks") == [*[sentence * 2] * 15]
    assert not any(word.startswith("\u0e34") for word in split_words("aก\u0e34" + "ก\u0e34" * 200, words="blanks"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我喜欢iPhone 12，很好", ["我", "喜", "欢", "iphone", "00", "，", "很", "好"]),
        ("カナとかな々", ["カ", "ナ", "と", "か", "な", "々"]),
        ("ที่นี่ ฿5", ["ที่", "นี่", "฿", "0"]),
        ("မြန်မာ ភាសា ລາວ", ["မြ", "န်", "မာ", "ភា", "សា", "ລ", "າ", "ວ"]),
        ("d’été, किताब 한국어 ش́", ["d'été", ",", "किताब", "한국어", "ش́"]),
    ],
)
def test_characters_of_scripts_without_blanks_are_words(text: str, expected: list[str]) -> None:
    rule = SimpleNamespace(words="rule", punctuation=True, lowercase=True, digits=True)
    assert words_of(text, rule, unspaced=True) == expected
    rule.punctuation = False
    assert words_of(text, rule, unspaced=True) == [word for word in expected if re.match(r"\w", word)]
    assert words_of("我喜欢", rule) == ["我喜欢"]


def test_texts_without_blanks_are_split_where_training_has_them(tmp_path: Path) -> None:
    """A few foreign words in other texts leave their words as they are."""

    def load_task(chinese: int, **fields: Any) -> sp.TextLabels:
        rows = ["我很好\tx\n"] * chinese + ["so fine 中国\tx\n"] + ["a day\ty\n"] * (199 - chinese)
        (tmp_path / "x.tsv").write_text("".join(rows), encoding="utf-8")
        return loaded("text", train=str(tmp_path / "x.tsv"), validation=str(tmp_path / "x.tsv"), **fields)

    few, many = load_task(1), load_task(2)
    assert {"我很好", "中国"} <= {*few.inputs.words} and not few.facts()["unspaced"]
    assert {*many.inputs.words} == {*"我很好中国", "so", "fine", "a", "day"}
    prefix = "each character of Han, Kana"
    assert any(note.startswith(prefix) for note in many.notes()) and not any(n.startswith(prefix) for n in few.notes())
    assert "我很好" in load_task(2, words="blanks").inputs.words
    restored = sp.TextLabels(many.config)
    restored.restore(many.facts())
    assert restored.words("我很好") == ["我", "很", "好"]


# What pretrained encoders read


def make_bert_tokenizer(folder: Path, lower: bool = True) -> Any:
    """A tokeniser with BERT's kind of pieces: letters and marks."""
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHI0123456789.,;:!?()-/'’\"%$+=", "the", "goal"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=lower)


TEXTS = [
    'The goal, of law-court… (it\'s) a well-known A/B test: 1,950.5% + $3 = "x"!',
    "snake_case a@b.com http://x.org/a?b=c&d=e  \t two\nlines 'quoted' don't",
    "Zürich, naïve façade – “Größe” 中文。和",
    "",
    "...",
    "a/" * 200,
]


@pytest.mark.parametrize("lower", [True, False])
def test_pieces_of_berts_kind_match_the_rule(tmp_path: Path, lower: bool) -> None:
    indexer = PieceIndexer("p", make_bert_tokenizer(tmp_path, lower), 512)
    for text in TEXTS:
        rule, blanks = (indexer.index(split_words(text, words=mode, **UNCHANGED)) for mode in ("rule", "blanks"))
        assert rule.ids.tolist() == blanks.ids.tolist()
    assert indexer.index(split_words("it’s", words="rule")).ids.tolist() == indexer.index(["it's"]).ids.tolist()
    pieces = indexer.index(split_words("it’s", words="blanks")).ids[0].tolist()
    assert indexer._tokenizer.convert_ids_to_tokens(pieces) == ["[CLS]", "i", "##t", "’", "s", "[SEP]"]


def make_byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokeniser, in which a word follows a space."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=alphabet[0])


def test_a_byte_level_encoder_reads_a_text_as_it_is() -> None:
    indexer, text = PieceIndexer("p", make_byte_level_tokenizer(), 512), "the goal, of law-court. किताब it’s"
    blanks, rule = (indexer.index(split_words(text, words=mode, **UNCHANGED)) for mode in ("blanks", "rule"))
    assert blanks.ids[0].tolist() == indexer._tokenizer(text)["input_ids"] != rule.ids[0].tolist()


def test_every_piece_of_a_long_text_without_blanks_counts(tmp_path: Path) -> None:
    """Its words are complete in the windows from which they are taken."""
    text = "这是一个很长的句子，" * 150
    item = PieceIndexer("p", make_bert_tokenizer(tmp_path), 512).index(split_words(text, words="blanks", **UNCHANGED))
    width = item.ids.shape[1]
    assert len(item.ids) > 2
    count = sum(int(item.first[w] // width == i) for i, row in enumerate(item.owner) for w in row.tolist() if w >= 0)
    assert count == len(text)


# Configs


def test_new_runs_of_pretrained_encoders_read_between_blanks(tmp_path: Path) -> None:
    def load_config(**arguments: Any) -> dict[str, Any]:
        evaluated = evaluate(CONFIG, arguments)
        return parse_experiment(evaluated, CONFIG, sp.Registry()).task.config

    table = '{"type": "transformer", "model": "minilm"}'
    assert load_config(encoder="minilm").words == load_config(encoder=table).words == "blanks"
    assert load_config(encoder="minilm", **{"task.words": "rule"}).words == load_config().words == "rule"
    assert sp.TextLabels.Config(corpus="sample").words == "rule"  # as in the config.json of an earlier run


def test_texts_for_a_pretrained_encoder_are_labelled_between_blanks(tmp_path: Path) -> None:
    task = loaded("text", corpus="sample", words="blanks", **UNCHANGED)
    restored = sp.TextLabels(task.config)
    restored.restore(task.facts())
    indexer = PieceIndexer("p", make_bert_tokenizer(tmp_path), 512)
    for reader in (task, restored):
        reader.indexers["p"] = indexer
        example = reader.parse({"text": "It’s  (the) goal."})
        reader.collate([example])
        assert example.items["p"].ids.tolist() == indexer.index(["It’s", "(the)", "goal."]).ids.tolist()
        assert reader.length(example) == len("It’s  (the) goal.")
    assert restored.inputs.words == task.inputs.words
