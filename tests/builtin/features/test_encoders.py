"""Feature networks for sentences: padding, marks, word pieces, and errors for missing models."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.batch import X
from spen_plugins.builtin.features import word_tables
from spen_plugins.builtin.features.bilstm import BiLstm, Encoder
from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.features.word_tables import (
    AFFIX_BUCKETS,
    AFFIXES,
    CHARACTERS,
    LONGEST,
    SPELLING,
    WordIndexer,
    make_hashed,
)
from spen_plugins.errors import ConfigError
from spen_plugins.testing.tasks import ToyLabels
from tests.loaded import parsed

WORDS = ["the", "dog", "cat", "saw", "##s", "gave", "##n", "Ann", ".", "[UNK]"]


def build_network(task, cls, **config):
    torch.manual_seed(0)
    network = cls(cls.Config(**config), task)
    if indexer := network.indexer():
        task.indexers.update([indexer])
    return network.eval()


SMALL = {"word_dim": 8, "mark_dim": 4, "affix_dim": 6, "hidden": 7}


@pytest.mark.parametrize("options", [{}, {"layers": 1}, {"mark_state": False}, {"affix_dim": 0}])
def test_bilstm_ignores_padding(task, options):
    network = build_network(task, BiLstm, **SMALL | options)
    examples = sorted(task.part("train")[:40], key=task.length)[::13]
    assert len({task.length(example) for example in examples}) > 1
    batch = task.collate(examples)
    batched = network(batch.x)
    assert batched.shape == (len(examples), batch.x.mask.shape[1], network.output_dim)
    assert batched[~batch.x.mask].abs().sum() == 0
    for row, example in zip(batched, examples, strict=True):
        single = network(task.collate([example]).x)[0]
        assert torch.allclose(row[: len(single)], single, atol=1e-6)


def test_bilstm_equals_a_packed_bidirectional_lstm(task):
    network = build_network(task, BiLstm, **SMALL, layers=1, mark_state=False)
    lstm = torch.nn.LSTM(8 + 4 + 6, 7, bidirectional=True, batch_first=True)
    for name, weight in network.forwards[0].named_parameters():
        getattr(lstm, name).data.copy_(weight.data)
        getattr(lstm, f"{name}_reverse").data.copy_(getattr(network.backwards[0], name).data)
    batch = task.collate(task.part("train")[:6])
    inputs = batch.x.inputs
    affixes = network.affixes(inputs[AFFIXES.name].flatten(0, 1)).unflatten(0, inputs["words"].shape)
    vectors = torch.cat([network.words(inputs["words"]), affixes, network.marks["predicate"](inputs["predicate"])], -1)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        vectors, batch.x.mask.sum(1), batch_first=True, enforce_sorted=False
    )
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    assert torch.allclose(network(batch.x), expected, atol=1e-6)


def test_bilstm_drops_only_in_training(task):
    network = build_network(task, BiLstm, **SMALL, dropout=0.5, word_dropout=0.5)
    x = task.collate(task.part("train")[:3]).x
    assert torch.equal(network(x), network(x))
    network.train()
    assert not torch.equal(network(x), network(x))


def test_affixes_distinguish_unknown_words():
    indexer = WordIndexer([AFFIXES])
    words = ["walking", "Talking", "1987", "2024"]
    table = indexer.collate([words[:1], words])[AFFIXES.name]
    assert table.shape == (2, 4, 4) and not table[0, 1:].any() and torch.equal(table[0, 0], table[1, 0])
    items = table[1]
    assert (items > 0).all() and (items < AFFIX_BUCKETS).all()
    assert items[0, 1] == items[1, 1] and items[0, 2] == items[1, 2] and items[0, 3] != items[1, 3]
    assert items[2, 3] == items[3, 3] and items[2, 0] != items[3, 0]


def test_an_indexer_returns_the_same_numbers_as_it_grows_and_forgets(monkeypatch):
    indexer = WordIndexer([AFFIXES, make_hashed(50)])
    words = [f"w{i}" for i in range(100)]
    one_by_one = [indexer.collate([words[i : i + 3]]) for i in range(98)]
    monkeypatch.setattr(word_tables, "REMEMBERED", 10)
    for i in (97, 0, 50):
        tensors = indexer.collate([words[i : i + 3]])
        assert all(torch.equal(tensors[name], one_by_one[i][name]) for name in (AFFIXES.name, "words.hashed:50"))
    assert len(indexer._word_indices) < 100


def test_hashed_words_are_folded_and_lie_within_the_table():
    rows = [make_hashed(8000).numbers(word) for word in ("Dogs", "dogs", "1987", "2024", "cats", "\ud800")]
    assert rows[0] == rows[1] and rows[2] == rows[3] and len({tuple(row) for row in rows}) == 4
    assert all(0 < number < 8000 for row in rows for number in row)


@pytest.mark.parametrize("network", [BiLstm, Encoder, Transformer])
def test_vectors_are_rejected(network):
    config = network.Config(model="x") if network is Transformer else network.Config()
    with pytest.raises(ConfigError, match="requires sentences"):
        network(config, ToyLabels())


ENCODERS = get_args(Encoder.Config.model_fields["encoder"].annotation)
TINY = {"word_dim": 6, "mark_dim": 3, "char_dim": 4, "char_filters": 3, "char_widths": [2, 3], "hidden": 8}


@pytest.fixture(params=ENCODERS)
def encoder(request, task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return build_network(task, Encoder, encoder=request.param, **TINY).double()


def test_encoders_ignore_padding(task, encoder):
    x = task.collate(sorted(task.part("train")[:40], key=task.length)[::13]).x
    batched = encoder(x)
    assert batched.shape == (*x.mask.shape, encoder.output_dim)
    assert batched[~x.mask].abs().sum() == 0
    tokens = {name for name, value in x.inputs.items() if value.shape == x.mask.shape}
    assert tokens == x.inputs.keys() - {"words.characters"}
    for i, (row, mask) in enumerate(zip(batched, x.mask, strict=True)):
        length = int(mask.sum())
        inputs = {n: v[i : i + 1, :length] if n in tokens else v for n, v in x.inputs.items()}
        single = encoder(X(inputs, mask[None, :length], 1))[0]
        assert torch.allclose(row[:length], single, atol=1e-10)
    other_inputs = {name: torch.where(x.mask, v, 1) if name in tokens else v for name, v in x.inputs.items()}
    assert torch.allclose(encoder(replace(x, inputs=other_inputs)), batched, atol=1e-10)


def test_encoders_accept_rows_without_tokens(task, encoder):
    x = task.collate(task.part("train")[:3]).x
    full = encoder(x)
    for empty in ([1], [0, 1, 2]):
        mask = x.mask.clone()
        mask[empty] = False
        nonempty = [row for row in range(3) if row not in empty]
        out = encoder(replace(x, mask=mask))
        assert out[empty].abs().sum() == 0 and torch.allclose(out[nonempty], full[nonempty], atol=1e-10)


def test_encoders_train_every_parameter(task, encoder):
    x = task.collate(task.part("train")[:3]).x
    encoder.train()(x).square().sum().backward()
    assert [n for n, p in encoder.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def check_second(compute, weights) -> None:
    """The second derivative of a sum in these weights against a difference of the first."""

    def compute_steepness():
        slopes = torch.autograd.grad(compute(), weights, create_graph=True)
        return sum(slope.square().sum() for slope in slopes)

    steepness = compute_steepness()
    second = torch.autograd.grad(steepness, weights)
    step = [1e-6 * s / torch.cat([s.flatten() for s in second]).norm() for s in second]
    with torch.no_grad():
        for weight, move in zip(weights, step, strict=True):
            weight += move
    expected = sum((s * move).sum() for s, move in zip(second, step, strict=True))
    assert (compute_steepness() - steepness).item() == pytest.approx(expected.item(), rel=1e-3)


def test_encoders_differentiate_twice(task, encoder):
    x = task.collate(task.part("train")[:2]).x
    # The fourth power, as the second derivative of a squared linear function says little.
    check_second(lambda: encoder(x).pow(4).sum(), [encoder.words.weight])


def test_encoders_drop_only_in_training(task, encoder):
    x = task.collate(task.part("train")[:3]).x
    state = torch.get_rng_state()
    assert torch.equal(encoder(x), encoder(x))
    encoder.train()
    with torch.no_grad():
        assert not torch.equal(encoder(x), encoder(x))
    encoder.eval()
    torch.set_rng_state(state)
    encoder(x)
    assert torch.equal(torch.get_rng_state(), state)  # evaluating doesn't change what training draws


@pytest.mark.parametrize(
    ("network", "fields", "minimum"),
    [
        *((BiLstm, SMALL | {"mark_state": mark_state}, 1e-5) for mark_state in (True, False)),
        *((Encoder, TINY | {"encoder": name}, 1e-6) for name in ("lstm", "gru")),
    ],
)
def test_the_predicate_is_seen_everywhere(task, network, fields, minimum):
    net, words = build_network(task, network, **fields), ["Anna", "saw", "Boris", "fall", "."]
    first, second = net(task.collate([task.parse({"words": words, "predicate": i}) for i in (1, 3)]).x)
    assert ((first - second).abs().amax(-1) > minimum).all()


@pytest.mark.parametrize("parts", [{}, {"word_dim": 0, "char_dim": 0, "hash_dim": 6}], ids=["characters", "hashed"])
def test_unknown_words_are_distinguished(task, parts):
    sentences = [{"words": [word, "saw", "zqxv"], "predicate": 1} for word in ("vrumpled", "vrumpling")]
    x = task.collate([task.parse(item) for item in sentences]).x
    assert x.inputs["words"][0, 0] == x.inputs["words"][1, 0] == 1
    plain = build_network(task, Encoder, encoder="pass_through", **TINY | {"char_dim": 0})
    assert plain.indexer() is None
    assert torch.equal(*plain(x)[:, 0])
    network = build_network(task, Encoder, encoder="pass_through", **TINY | parts)
    x = task.collate([task.parse(item) for item in sentences]).x
    first, second = network(x)
    assert not torch.equal(first[0], second[0]) and torch.equal(first[1:], second[1:])


def test_characters_equal_the_librarys_encoder(task):
    """With all windows in its mask, the library's encoder yields our numbers, to its precision."""
    cnn = build_network(task, Encoder, **TINY).cnn._module
    words = torch.randn(5, 12, 4)
    assert torch.allclose(cnn(words), CnnEncoder.forward(cnn, words, None)) and cnn(words).shape == (5, 6)
    words[:, 9:] = 0  # padding of a filter's width: more padding changes nothing
    assert torch.equal(cnn(words), cnn(torch.cat([words, torch.zeros(5, 4, 4)], 1)))


def test_characters_have_rows_below_the_tables_size():
    items = [SPELLING.numbers(word) for word in ("a", "Ab", "語" * 100, "\U0010ffff")]
    assert [len(row) for row in items] == [3, 4, LONGEST + 2, 3] and max(map(max, items)) < CHARACTERS
    assert items[0] == [1, 3 + ord("a"), 2]


def test_characters_are_stored_once_per_different_word():
    indexer = WordIndexer([SPELLING])
    tensors = indexer.collate([indexer.index(["a", "b"]), indexer.index(["ab", "a", "a"])])
    words, index = tensors["words.characters"], tensors["words.characters.index"]
    assert words.shape == (4, 4) and not words[0].any()  # padding, and three words
    assert index.shape == (2, 3) and index[0, 2] == 0
    spelt = {"a": [1, 3 + ord("a"), 2, 0], "b": [1, 3 + ord("b"), 2, 0], "ab": [1, 3 + ord("a"), 3 + ord("b"), 2]}
    assert words[index[0, :2]].tolist() == [spelt["a"], spelt["b"]]
    assert words[index[1]].tolist() == [spelt["ab"], spelt["a"], spelt["a"]]


def test_widths_of_filters_are_at_least_one():
    with pytest.raises(ConfigError, match=r"features\.char_widths\.0': found 0"):
        parsed("features", "encoder", char_widths=[0, 3])


def save_model(folder, types: int = 2, positions: int = 40):
    from transformers import BertConfig, BertModel

    specials = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join(specials + WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": false}')
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    settings = BertConfig(
        vocab_size=len(specials + WORDS), max_position_embeddings=positions, type_vocab_size=types, **sizes
    )
    BertModel(settings).save_pretrained(folder)
    return str(folder)


SENTENCE = ["Ann", "saws", "the", "cats", "."]


@pytest.fixture(params=[2, 1], ids=["token types", "learned mark"])
def bert(request, task, tmp_path):
    return build_network(task, Transformer, model=save_model(tmp_path, request.param))


def test_words_are_aligned_to_first_pieces(task, bert):
    pieces = bert.indexer()[1].index(SENTENCE)
    assert pieces.owner.tolist() == [[-1, 0, 1, 1, 2, 3, 3, 4, -1]]
    assert pieces.first.tolist() == [1, 2, 4, 5, 7]
    tokenizer = bert.indexer()[1]._tokenizer
    pieces_of_sentence = ["[CLS]", "Ann", "saw", "##s", "the", "cat", "##s", ".", "[SEP]"]
    assert tokenizer.convert_ids_to_tokens(pieces.ids[0]) == pieces_of_sentence


def test_pretrained_vectors_equal_those_of_the_model(task, bert):
    task.indexers.update([bert.indexer()])
    x = task.collate([task.parse({"words": SENTENCE, "predicate": 1})]).x
    ids = x.inputs[f"{bert.indexer()[0]}.ids"]
    types = torch.tensor([[0, 0, 1, 1, 0, 0, 0, 0, 0]])
    with torch.no_grad():
        if bert.encoder.config.type_vocab_size == 2:
            states = bert.encoder(input_ids=ids, token_type_ids=types).last_hidden_state
        else:
            mark = bert.marks["predicate"].weight[1]
            embedded = bert.encoder.get_input_embeddings()(ids) + types.unsqueeze(-1) * mark
            states = bert.encoder(inputs_embeds=embedded).last_hidden_state
        assert torch.allclose(bert(x)[0], states[0, [1, 2, 4, 5, 7]], atol=1e-6)


def test_transformer_ignores_padding(task, bert):
    items = [{"words": SENTENCE, "predicate": 1}, {"words": ["dog", "gaven"], "predicate": 1}]
    examples = [task.parse(item) for item in items]
    batch = task.collate(examples)
    batched = bert(batch.x)
    assert batched.shape == (2, 5, 16) and batched[1, 2:].abs().sum() == 0
    for row, example in zip(batched, examples, strict=True):
        single = bert(task.collate([example]).x)[0]
        assert torch.allclose(row[: len(single)], single, atol=1e-6)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_transformer_differentiates_twice(task, tmp_path, attention):
    bert = build_network(task, Transformer, model=save_model(tmp_path), attention=attention)
    x = task.collate([task.parse({"words": SENTENCE, "predicate": 1})]).x
    weight = next(p for name, p in bert.named_parameters() if name.endswith("query.weight"))
    with sdpa_kernel(SDPBackend.MATH) if attention == "sdpa" else nullcontext():
        (first,) = torch.autograd.grad(bert(x)[..., 0].square().sum(), weight, create_graph=True)
    assert torch.autograd.grad(first.square().sum(), weight)[0].abs().sum() > 0


def test_attention_equals_the_formula(task, tmp_path):
    """Vectors and gradients of torch's kernels equal those of the plain formula, also with padding."""
    items = [{"words": SENTENCE, "predicate": 1}, {"words": ["dog", "gaven"], "predicate": 1}]
    results = []
    for attention in ("eager", "sdpa"):
        bert = build_network(task, Transformer, model=save_model(tmp_path), attention=attention).double()
        assert bert.encoder.config._attn_implementation == attention
        y = bert(task.collate([task.parse(item) for item in items]).x)
        results.append([y, *torch.autograd.grad(y.pow(3).sum(), list(bert.parameters()))])
    for eager, sdpa in zip(*results, strict=True):
        torch.testing.assert_close(eager, sdpa)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_attention_uses_the_dropout_of_the_config(task, tmp_path, attention):
    model = Path(save_model(tmp_path))
    settings = json.loads((model / "config.json").read_text()) | {"hidden_dropout_prob": 0.0}
    (model / "config.json").write_text(json.dumps(settings))
    for rate, is_equal in ((0, True), (None, False)):
        fields = {"attention": attention, "attention_dropout": rate, "dropout": 0.0}
        bert = build_network(task, Transformer, model=str(model), **fields)
        x = task.collate([task.parse({"words": SENTENCE, "predicate": 1})] * 20).x
        assert torch.allclose(bert.train()(x), bert.eval()(x), atol=1e-6) == is_equal


def test_a_model_without_dropout_of_attention_is_a_config_error(task, tmp_path):
    from transformers import XLNetConfig, XLNetModel

    save_model(tmp_path)
    XLNetModel(XLNetConfig(vocab_size=30, d_model=8, n_layer=1, n_head=2, d_inner=8)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"features.attention_dropout: .*of type xlnet, has no separate dropout"):
        Transformer(Transformer.Config(model=str(tmp_path), attention_dropout=0), task)


def test_outputs_are_differentiated_twice_through_fused_kernels(task, bert):
    """Unrolled inference and descent differentiate dE/dy, which asks the encoder for a first derivative only."""
    vectors = bert(task.collate([task.parse({"words": SENTENCE, "predicate": 1})]).x)
    y = torch.rand(vectors.shape[:2], requires_grad=True)
    (slope,) = torch.autograd.grad((vectors.sum(-1) * y).pow(2).sum(), y, create_graph=True)
    slope.pow(2).sum().backward()
    assert all(p.grad is not None for p in bert.parameters())


def test_a_word_without_pieces_takes_those_of_its_neighbour(task, bert):
    pieces = bert.indexer()[1].index(["dog", "\u200b", "saw"])
    assert pieces.first.tolist() == [1, 1, 2]


# Several encoders in a run: each has its own folder among the run's assets, and its own pieces


ALIKE = [("日本", "模型"), ("x.1", "x-1"), ("x.1", "x_1"), ("a/b", "a-b"), ("a" * 100 + "/b", "c" + "a" * 99 + "/b")]


def make_encoders(task, names: tuple[str, str]) -> list[Transformer]:
    """Networks of two encoders, whose tokenisers differ."""
    networks = []
    for name, ending in zip(names, ("##s", "##w"), strict=True):
        folder = Path(name)
        folder.mkdir(parents=True)
        save_model(folder)
        vocabulary = (folder / "vocab.txt").read_text()
        (folder / "vocab.txt").write_text(vocabulary.replace("##s", ending))
        networks.append(build_network(task, Transformer, model=f"./{name}"))
    return networks


@pytest.mark.parametrize("names", ALIKE, ids=["letters", "dots", "lines", "slashes", "long"])
def test_two_encoders_have_separate_assets_and_pieces(task, tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    networks = make_encoders(task, names)
    assert len({network.indexer()[0] for network in networks}) == 2
    assert all("." not in network.indexer()[0] for network in networks)
    for network in networks:
        network.save_assets(tmp_path / "assets")
    assert len(list((tmp_path / "assets").iterdir())) == 2
    expected = [network.indexer()[1].index(SENTENCE).ids.tolist() for network in networks]
    assert expected[0] != expected[1]
    reloaded = [
        build_network(task, Transformer, model=Transformer.relocated(n.config, tmp_path / "assets").model)
        for n in networks
    ]
    assert [network.indexer()[1].index(SENTENCE).ids.tolist() for network in reloaded] == expected


@pytest.mark.parametrize("name", ["minilm", "bert-base-cased"])
def test_a_name_of_plain_letters_is_that_of_its_folder(tmp_path, name):
    (tmp_path / name).mkdir()
    assert Transformer.relocated(Transformer.Config(model=name), tmp_path).model == str(tmp_path / name)


def test_a_changed_tokeniser_is_detected(task, tmp_path):
    save_model(tmp_path)
    (tmp_path / "README.md").write_text("Not read.")
    network = build_network(task, Transformer, model=str(tmp_path))
    checksums = network.checksums()
    assert {Path(path).name for path in checksums} >= {"config.json", "vocab.txt"}
    assert not {Path(path).name for path in checksums} & {"README.md", "model.safetensors"}
    (tmp_path / "vocab.txt").write_text((tmp_path / "vocab.txt").read_text() + "##more\n")
    changed_checksums = network.checksums()
    assert {path for path in changed_checksums if checksums[path] != changed_checksums[path]} == {
        str(tmp_path / "vocab.txt")
    }
