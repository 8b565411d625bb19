"""Fine-tuning a pretrained encoder: frozen layers."""

from __future__ import annotations

import copy
import sys
from importlib.util import find_spec

import pytest
import torch
from transformers import AutoConfig, AutoModel

import spen_plugins as sp
from spen_plugins.builtin.features.stored import check_upper
from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.features.tuning import Lora, add_adapters, check_adapters, find_layers, find_lowest, freeze
from tests.builtin.features.test_encoders import SENTENCE, build_network, save_model
from tests.loaded import loaded


def make_batch(task: sp.Task) -> sp.X:
    items = [{"words": SENTENCE, "predicate": 1}, {"words": ["dog", "gaven"], "predicate": 1}]
    return task.collate([task.parse(item) for item in items]).x


FROZEN = {
    0: (),
    "embeddings": ("encoder.embeddings",),
    1: ("encoder.embeddings", "encoder.encoder.layer.0"),
    2: ("encoder.embeddings", "encoder.encoder.layer"),
    "all": ("encoder",),
}


@pytest.mark.parametrize("frozen", FROZEN)
def test_frozen_layers_are_not_trained(task, tmp_path, frozen) -> None:
    """Frozen layers have no gradients and no dropout, all others have both, and vectors stay the same."""
    plain = build_network(task, Transformer, model=save_model(tmp_path))
    network = build_network(task, Transformer, model=str(tmp_path), frozen=frozen)
    x = make_batch(task)
    torch.testing.assert_close(network(x), plain(x))
    assert network.state_dict().keys() == plain.state_dict().keys()
    network.train()
    frozen_names = [name for name, p in network.named_parameters() if not p.requires_grad]
    assert frozen_names == [name for name, _ in plain.named_parameters() if name.startswith(FROZEN[frozen])]
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Dropout):
            assert module.training != (f"{name}.".startswith(tuple(f"{n}." for n in FROZEN[frozen])))
    if frozen in (2, "all"):
        assert not network(x).requires_grad
        return
    network(x).pow(3).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is None] == frozen_names


@pytest.mark.parametrize("checkpointing", [False, True])
def test_the_graph_contains_no_frozen_layers(task, tmp_path, checkpointing) -> None:
    """Autograd's graph does not include them."""
    fields = {"frozen": 1, "gradient_checkpointing": checkpointing}
    network = build_network(task, Transformer, model=save_model(tmp_path), **fields).train()
    outputs = []
    network.encoder.encoder.layer[0].register_forward_hook(lambda m, i, output: outputs.append(output))
    network(make_batch(task))
    states = outputs[0][0] if isinstance(outputs[0], tuple) else outputs[0]
    assert not states.requires_grad


def test_a_projection_of_embeddings_is_frozen_with_them() -> None:
    """ELECTRA has one between its embeddings and its layers."""
    from transformers import ElectraConfig, ElectraModel

    sizes = {"hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 4}
    encoder = ElectraModel(ElectraConfig(vocab_size=9, embedding_size=2, **sizes))
    freeze(find_lowest(encoder, 1))
    assert {name.split(".layer.")[-1][0] for name, p in encoder.named_parameters() if p.requires_grad} == {"1"}


def test_learned_marks_are_trained_through_frozen_layers(task, tmp_path) -> None:
    network = build_network(task, Transformer, model=save_model(tmp_path, types=1), frozen="all").train()
    network(make_batch(task)).pow(3).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is not None] == ["marks.predicate.weight"]


def test_too_many_frozen_layers_are_a_config_error(task, tmp_path) -> None:
    with pytest.raises(sp.ConfigError, match=r"features\.frozen: found 3; expected at most 2"):
        build_network(task, Transformer, model=save_model(tmp_path), frozen=3)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("frozen", [0, 1])
def test_checkpointing_changes_no_gradient(task, tmp_path, frozen, half) -> None:
    """With the same dropout, and with float32 attention inside bfloat16, which has no dropout."""
    save_model(tmp_path)
    drops = {"dropout": 0.0, "attention_dropout": 0} if half else {"dropout": 0.2}
    results = []
    for checkpointing in (False, True):
        fields = {"frozen": frozen, "gradient_checkpointing": checkpointing}
        network = build_network(task, Transformer, model=str(tmp_path), **drops, **fields).train()
        calls = []
        network.encoder.encoder.layer[1].attention.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = network(make_batch(task))
        learned = [p for p in network.parameters() if p.requires_grad]
        results.append([y, *torch.autograd.grad(y.float().pow(3).sum(), learned)])
        assert len(calls) == 1 + checkpointing
    for plain, checkpointed in zip(*results, strict=True):
        torch.testing.assert_close(plain, checkpointed)


LORA = {"rank": 3, "alpha": 6.0}


@pytest.mark.parametrize("frozen", [0, 1])
def test_adapters_alone_are_trained(task, tmp_path, frozen) -> None:
    """Adapters change nothing at first; vectors are those of W + (alpha / rank) B A."""
    pytest.importorskip("peft")
    plain = build_network(task, Transformer, model=save_model(tmp_path))
    network = build_network(task, Transformer, model=str(tmp_path), lora=LORA, frozen=frozen)
    x = make_batch(task)
    torch.testing.assert_close(network(x), plain(x))
    parameters = dict(network.named_parameters())
    trained = {name for name, p in parameters.items() if p.requires_grad}
    types = {"encoder.embeddings.token_type_embeddings.weight"}
    assert trained == {name for name in parameters if ".lora_" in name} | (types if frozen == 0 else set())
    assert len([name for name in trained if ".lora_" in name]) == (2 - frozen) * 4
    network(x).pow(3).sum().backward()
    assert {name for name in parameters if parameters[name].grad is not None} == trained
    with torch.no_grad():
        for layer in {name.partition(".lora_")[0] for name in trained - types}:
            a, b = (parameters[f"{layer}.lora_{letter}.default.weight"].normal_() for letter in "AB")
            plain.get_submodule(layer).weight += 2 * b @ a
    torch.testing.assert_close(network(x), plain(x))


def test_adapters_are_saved_and_loaded(task, tmp_path) -> None:
    """A run folder yields the same vectors without the encoder's own folder."""
    pytest.importorskip("peft")
    (model := tmp_path / "bert").mkdir()
    network = build_network(task, Transformer, model=save_model(model), lora=LORA)
    for name, p in network.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(p)
    network.save_assets(tmp_path / "assets")
    (model / "model.safetensors").unlink()
    config = Transformer.relocated(network.config, tmp_path / "assets")
    reloaded = Transformer(config, task).eval()
    reloaded.load_state_dict(network.state_dict())
    expected = network(make_batch(task))
    task.indexers.update([reloaded.indexer()])
    assert torch.equal(reloaded(make_batch(task)), expected)


def test_adapters_that_cannot_be_built_are_config_errors(task, tmp_path, monkeypatch) -> None:
    model = save_model(tmp_path)
    if find_spec("peft"):
        with pytest.raises(sp.ConfigError, match=r"features\.lora\.targets: found \['quary'\].*query, key, value"):
            build_network(task, Transformer, model=model, lora={"targets": ["quary"]})
        with pytest.raises(sp.ConfigError, match="leaves nothing to adapt"):
            build_network(task, Transformer, model=model, lora={}, frozen="all")
        with pytest.raises(sp.ConfigError, match="frozen=2, which leaves nothing to adapt"):
            build_network(task, Transformer, model=model, lora={}, frozen=2)
        with pytest.raises(sp.ConfigError, match=r"found \['query', 'quary'\].* ends in 'quary'; .*query, key, value"):
            build_network(task, Transformer, model=model, lora={"targets": ["query", "quary"]})
        with pytest.raises(sp.ConfigError, match=r"targets: found \['quary'\].* ends in 'quary'"):
            build_network(task, Transformer, model=model, lora={"targets": ["quary"]}, frozen=1)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(sp.ConfigError, match=r"pip install 'spen-plugins\[lora\]'"):
        build_network(task, Transformer, model=model, lora={})


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("gpt2", None), ("gpt2", ["attn.c_proj"]), ("modernbert", ["Wqkv", "Wo"]), ("bert", ["dense"]), ("roberta", None)],
)
def test_upper_layers_have_adapters_in_every_architecture(kind, targets) -> None:
    """The layers of GPT-2 and ModernBERT are at the encoder's root."""
    pytest.importorskip("peft")
    encoder, lora = make_tiny(kind), Lora(rank=2, targets=targets)
    check_adapters(encoder, lora, 1)
    add_adapters(encoder, lora, 1)
    adapters = {name for name, _ in encoder.named_parameters() if ".lora_" in name}
    upper = {id(p) for p in find_layers(encoder)[1].parameters()}
    assert adapters and adapters == {
        name for name, p in encoder.named_parameters() if ".lora_" in name and id(p) in upper
    }


def test_linear_layers_of_gpt2_are_listed_in_the_error() -> None:
    with pytest.raises(sp.ConfigError, match=r"'quary'; expected name endings of linear layers: c_attn, c_proj, c_fc"):
        check_adapters(make_tiny("gpt2"), Lora(targets=["quary"]), 0)


def make_uneven_batch(task: sp.Task, long: int = 0) -> sp.X:
    words = [SENTENCE, ["dog", "gaven"], (SENTENCE * 20)[:long] or ["cats"]]
    return task.collate([task.parse({"words": sentence, "predicate": 1 % len(sentence)}) for sentence in words]).x


def make_plain_and_stored(task: sp.Task, **fields: object) -> list[Transformer]:
    """A network in training and one that stores vectors, without dropout in the layers above."""
    networks = [build_network(task, Transformer, **fields, dropout=0.0, store_gib=gib).train() for gib in (0, 1)]
    for network in networks:
        network.encoder.encoder.layer[1].eval()
    return networks


@pytest.mark.parametrize("long", [0, 60], ids=["short", "windows"])
@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("frozen", [1, 2, "all"])
def test_stored_vectors_equal_those_of_the_frozen_layers(task, tmp_path, frozen, pooling, long) -> None:
    """The same vectors and gradients, and the lowest layer runs once for each example."""
    plain, stored = make_plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling=pooling)
    calls = []
    stored.encoder.encoder.layer[0].attention.register_forward_hook(lambda *_: calls.append(1))
    x = make_uneven_batch(task, long)
    for _ in range(2):
        vectors, expected = stored(x), plain(x)
        torch.testing.assert_close(vectors, expected)
        if frozen == 1:
            for network, y in ((stored, vectors), (plain, expected)):
                network.zero_grad()
                y.pow(3).sum().backward()
            for stored_parameter, plain_parameter in zip(stored.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(stored_parameter.grad, plain_parameter.grad)
    assert len(calls) == x.size
    stored(task.collate([task.parse({"words": words, "predicate": 1}) for words in (SENTENCE, ["cats", "dog"])]).x)
    assert len(calls) == x.size + 1  # the first is already stored


SAME_PIECES = (["dog", "cats"], ["dog", "cats", "\u200d"])
"""A zero-width joiner at the end has no piece: the same ids, and one vector more."""


@pytest.mark.parametrize("lora", [None, {"rank": 3}], ids=["plain", "lora"])
def test_stored_vectors_work_with_checkpointing(task, tmp_path, lora) -> None:
    """Vectors and gradients equal those without checkpointing, stored or not."""
    if lora:
        pytest.importorskip("peft")
    fields = {"model": save_model(tmp_path), "frozen": 1, "lora": lora, "dropout": 0.0, "attention_dropout": 0.0}
    networks = [
        build_network(task, Transformer, **fields, store_gib=gib, gradient_checkpointing=checkpointing)
        for gib, checkpointing in ((0, False), (1, False), (0, True), (1, True))
    ]
    x, results = make_uneven_batch(task), []
    for network in networks:
        network.load_state_dict(networks[0].state_dict())
        for part in network.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        network.train()
        for _ in range(2):  # the second time from the store
            network.zero_grad()
            y = network(x)
            y.pow(3).sum().backward()
        results.append([y, *(p.grad for p in network.parameters() if p.requires_grad)])
        assert all(p.grad is None for p in network.parameters() if not p.requires_grad)
    for other_result in results[1:]:
        for value, other_value in zip(results[0], other_result, strict=True):
            torch.testing.assert_close(value, other_value)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize(
    ("kind", "frozen", "items"),
    [
        ("text", "all", ["Ann saws", "the cats . Ann", "dog"]),
        ("text", "all", [""]),  # its special pieces
        *(("srl", frozen, [{"words": words, "predicate": 1} for words in SAME_PIECES]) for frozen in (1, "all")),
    ],
)
def test_an_input_is_stored_once(tmp_path, kind, frozen, items, pooling) -> None:
    task, calls = loaded(kind, corpus="sample"), []
    plain, stored = make_plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling=pooling)
    stored.encoder.encoder.layer[0].attention.register_forward_hook(lambda *_: calls.append(1))
    for part in (items[:1], items, items[:1]):
        x = task.collate([task.parse(item) for item in part]).x
        torch.testing.assert_close(stored(x), plain(x))
    assert len(calls) == len(items)


@pytest.mark.parametrize("frozen", [1, "all"])
@pytest.mark.parametrize("texts", [True, False])
def test_stored_vectors_have_full_precision(task, tmp_path, frozen, texts) -> None:
    """States stored by training in bfloat16 are used in float32 for validation."""
    if texts:
        task = loaded("text", corpus="sample")
        items = [{"text": "Ann saws"}, {"text": "dog"}]
    else:
        items = [{"words": SENTENCE, "predicate": 1}, {"words": ["dog", "gaven"], "predicate": 1}]
    plain, stored = make_plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling="mean")
    single, batch = (task.collate([task.parse(item) for item in part]).x for part in (items[:1], items))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(stored(single).float(), plain(single).float(), atol=0.1, rtol=0.1)
    torch.testing.assert_close(stored(batch), plain(batch))


def test_stored_vectors_are_discarded_when_the_weights_change(task, tmp_path) -> None:
    network = build_network(
        task, Transformer, model=save_model(tmp_path), frozen="all", dropout=0.0, store_gib=1
    ).train()
    x, calls = make_batch(task), []
    network.encoder.register_forward_hook(lambda *_: calls.append(1))
    vectors = network(x)
    network.load_state_dict(network.state_dict())
    torch.testing.assert_close(network(x), vectors)
    assert len(calls) == x.size
    network.load_state_dict({name: value + 0.1 * value.abs() for name, value in network.state_dict().items()})
    assert not torch.allclose(network(x), vectors) and len(calls) == 2 * x.size
    assert network.double()(x).dtype == torch.float64
    assert not copy.deepcopy(network)._store and network._store


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "deberta-v2"])
def test_lowest_layers_of_many_encoders_can_be_stored(kind) -> None:
    check_lowest(make_tiny(kind))


@pytest.mark.parametrize("kind", ["gpt2", "mpnet"])
def test_layers_above_trained_parts_or_dropout_are_a_config_error(kind) -> None:
    """GPT-2's positions are trained, and so is MPNet's position bias, which all layers share."""
    with pytest.raises(sp.ConfigError, match=rf"the states of the frozen layers of '{kind}' change in training"):
        check_lowest(make_tiny(kind))


def check_lowest(encoder: torch.nn.Module) -> None:
    frozen = find_lowest(encoder, 1)
    freeze(frozen)
    check_upper(encoder, frozen, find_layers(encoder)[:1], torch.tensor([[1, 5, 6, 2]]))


def make_tiny(kind: str) -> torch.nn.Module:
    """An encoder with two layers."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes_by_kind = {
        "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2},
        "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
        "electra": {**sizes, "embedding_size": 16},
        "modernbert": sizes | dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
    }
    config = AutoConfig.for_model(kind, vocab_size=20, **sizes_by_kind.get(kind, sizes))
    return AutoModel.from_config(config)


def test_stored_vectors_depend_on_the_mark(task, tmp_path) -> None:
    network = build_network(task, Transformer, model=save_model(tmp_path), frozen=2, dropout=0.0, store_gib=1).train()
    first, second = (task.collate([task.parse({"words": SENTENCE, "predicate": index})]).x for index in (1, 3))
    assert not torch.allclose(network(first), network(second))


def test_networks_that_share_an_encoder_keep_their_own_pooling(task, tmp_path) -> None:
    fields = {"model": save_model(tmp_path), "frozen": "all", "dropout": 0.0, "store_gib": 1}
    first, second = (
        build_network(task, Transformer, pooling=pooling, **fields).train() for pooling in ("first", "mean")
    )
    plain = build_network(task, Transformer, **fields | {"store_gib": 0}, pooling="mean").train()
    second.share(first)
    x = make_batch(task)
    first(x)
    torch.testing.assert_close(second(x), plain(x))
    assert not torch.allclose(second(x), first(x))


def test_nothing_is_stored_in_prediction_or_without_room(task, tmp_path) -> None:
    save_model(tmp_path)
    for gib, training in ((1, False), (1e-9, True)):
        network = build_network(task, Transformer, model=str(tmp_path), frozen="all", dropout=0.0, store_gib=gib)
        network.train(training)
        calls, x = [], make_batch(task)
        network.encoder.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        torch.testing.assert_close(network(x), network(x))
        assert len(calls) == (4 if training else 2)  # one example at a time, or the batch


def test_a_full_store_warns_once(task, tmp_path) -> None:
    network = build_network(
        task, Transformer, model=save_model(tmp_path), frozen="all", dropout=0.0, store_gib=4e-6
    ).train()
    x = make_uneven_batch(task, 60)
    with pytest.warns(UserWarning, match=r"store_gib=4e-06 is full with 2 inputs; the others") as warnings:
        vectors = network(x)
    assert len(warnings) == 1
    torch.testing.assert_close(network(x), vectors)


@pytest.mark.parametrize(
    ("frozen", "types", "message"), [(0, 2, "freezes none"), (1, 1, "trained vectors below its layers")]
)
def test_trained_layers_are_not_stored(task, tmp_path, frozen, types, message) -> None:
    with pytest.raises(sp.ConfigError, match=message):
        build_network(task, Transformer, model=save_model(tmp_path, types=types), frozen=frozen, store_gib=1)


def test_layers_that_pass_on_more_than_vectors_are_a_config_error(task, tmp_path, monkeypatch) -> None:
    """Such as those of T5, whose first layer has the position bias of all layers."""
    from transformers.models.bert.modeling_bert import BertEmbeddings, BertLayer

    embed, layer, states = BertEmbeddings.forward, BertLayer.forward, []

    def embed_and_clear(self, *args, **kwargs):
        states.clear()
        return embed(self, *args, **kwargs)

    def forward(self, hidden_states, *args, **kwargs):
        output = layer(self, hidden_states, *args, **kwargs)
        states.append(hidden_states[0, 0, 0])
        shift = states[0] if len(states) > 1 else 0.0
        return output + shift if isinstance(output, torch.Tensor) else (output[0] + shift, *output[1:])

    monkeypatch.setattr(BertEmbeddings, "forward", embed_and_clear)
    monkeypatch.setattr(BertLayer, "forward", forward)
    with pytest.raises(sp.ConfigError, match=r"features\.store_gib: the upper layers of 'bert' depend on more"):
        build_network(task, Transformer, model=save_model(tmp_path), frozen=1, store_gib=1)
