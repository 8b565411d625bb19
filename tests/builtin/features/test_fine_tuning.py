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
from tests.builtin.features.test_encoders import SENTENCE, ready, save_model
from tests.loaded import loaded


def batch_of(task: sp.Task) -> sp.X:
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
    """No gradients, no dropout; all the others have both, and vectors are the same."""
    whole = ready(task, Transformer, model=save_model(tmp_path))
    network = ready(task, Transformer, model=str(tmp_path), frozen=frozen)
    x = batch_of(task)
    torch.testing.assert_close(network(x), whole(x))
    assert network.state_dict().keys() == whole.state_dict().keys()
    network.train()
    below = [name for name, p in network.named_parameters() if not p.requires_grad]
    assert below == [name for name, _ in whole.named_parameters() if name.startswith(FROZEN[frozen])]
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Dropout):
            assert module.training != (f"{name}.".startswith(tuple(f"{n}." for n in FROZEN[frozen])))
    if frozen in (2, "all"):
        assert not network(x).requires_grad
        return
    network(x).pow(3).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is None] == below


@pytest.mark.parametrize("checkpointing", [False, True])
def test_nothing_is_kept_of_frozen_layers(task, tmp_path, checkpointing) -> None:
    """Autograd's graph has no part of them."""
    fields = {"frozen": 1, "gradient_checkpointing": checkpointing}
    network = ready(task, Transformer, model=save_model(tmp_path), **fields).train()
    reached = []
    network.encoder.encoder.layer[0].register_forward_hook(lambda m, i, found: reached.append(found))
    network(batch_of(task))
    states = reached[0][0] if isinstance(reached[0], tuple) else reached[0]
    assert not states.requires_grad


def test_a_projection_of_embeddings_is_one_of_them() -> None:
    """ELECTRA has one between its embeddings and its layers."""
    from transformers import ElectraConfig, ElectraModel

    sizes = {"hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 4}
    encoder = ElectraModel(ElectraConfig(vocab_size=9, embedding_size=2, **sizes))
    freeze(find_lowest(encoder, 1))
    assert {name.split(".layer.")[-1][0] for name, p in encoder.named_parameters() if p.requires_grad} == {"1"}


def test_learned_marks_are_trained_through_frozen_layers(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path, types=1), frozen="all").train()
    network(batch_of(task)).pow(3).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is not None] == ["marks.predicate.weight"]


def test_too_many_frozen_layers_are_a_config_error(task, tmp_path) -> None:
    with pytest.raises(sp.ConfigError, match=r"features\.frozen: found 3; expected at most 2"):
        ready(task, Transformer, model=save_model(tmp_path), frozen=3)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("frozen", [0, 1])
def test_checkpointing_changes_no_gradient(task, tmp_path, frozen, half) -> None:
    """With the same dropout; and with attention in float32 inside bfloat16, which has none."""
    save_model(tmp_path)
    drops = {"dropout": 0.0, "attention_dropout": 0} if half else {"dropout": 0.2}
    found = []
    for checkpointing in (False, True):
        fields = {"frozen": frozen, "gradient_checkpointing": checkpointing}
        network = ready(task, Transformer, model=str(tmp_path), **drops, **fields).train()
        reached = []
        network.encoder.encoder.layer[1].attention.register_forward_hook(lambda *_, seen=reached: seen.append(1))
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = network(batch_of(task))
        learned = [p for p in network.parameters() if p.requires_grad]
        found.append([y, *torch.autograd.grad(y.float().pow(3).sum(), learned)])
        assert len(reached) == 1 + checkpointing
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


LORA = {"rank": 3, "alpha": 6.0}


@pytest.mark.parametrize("frozen", [0, 1])
def test_adapters_alone_are_trained(task, tmp_path, frozen) -> None:
    """They start as nothing; the vectors are those of W + (alpha / rank) B A."""
    pytest.importorskip("peft")
    plain = ready(task, Transformer, model=save_model(tmp_path))
    network = ready(task, Transformer, model=str(tmp_path), lora=LORA, frozen=frozen)
    x = batch_of(task)
    torch.testing.assert_close(network(x), plain(x))
    named = dict(network.named_parameters())
    trained = {name for name, p in named.items() if p.requires_grad}
    types = {"encoder.embeddings.token_type_embeddings.weight"}
    assert trained == {name for name in named if ".lora_" in name} | (types if frozen == 0 else set())
    assert len([name for name in trained if ".lora_" in name]) == (2 - frozen) * 4
    network(x).pow(3).sum().backward()
    assert {name for name in named if named[name].grad is not None} == trained
    with torch.no_grad():
        for layer in {name.partition(".lora_")[0] for name in trained - types}:
            a, b = (named[f"{layer}.lora_{which}.default.weight"].normal_() for which in "AB")
            plain.get_submodule(layer).weight += 2 * b @ a
    torch.testing.assert_close(network(x), plain(x))


def test_adapters_are_saved_and_loaded(task, tmp_path) -> None:
    """A run folder gives the same vectors, without the encoder's own folder."""
    pytest.importorskip("peft")
    (model := tmp_path / "bert").mkdir()
    network = ready(task, Transformer, model=save_model(model), lora=LORA)
    for name, p in network.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(p)
    network.save_assets(tmp_path / "assets")
    (model / "model.safetensors").unlink()
    config = Transformer.relocated(network.config, tmp_path / "assets")
    again = Transformer(config, task).eval()
    again.load_state_dict(network.state_dict())
    wanted = network(batch_of(task))
    task.indexers.update([again.indexer()])
    assert torch.equal(again(batch_of(task)), wanted)


def test_adapters_that_can_t_be_made_are_config_errors(task, tmp_path, monkeypatch) -> None:
    model = save_model(tmp_path)
    if find_spec("peft"):
        with pytest.raises(sp.ConfigError, match=r"features\.lora\.targets: found \['quary'\].*query, key, value"):
            ready(task, Transformer, model=model, lora={"targets": ["quary"]})
        with pytest.raises(sp.ConfigError, match="leaves nothing to adapt"):
            ready(task, Transformer, model=model, lora={}, frozen="all")
        with pytest.raises(sp.ConfigError, match="frozen=2, which leaves nothing to adapt"):
            ready(task, Transformer, model=model, lora={}, frozen=2)
        with pytest.raises(sp.ConfigError, match=r"found \['query', 'quary'\].* ends in 'quary'; .*query, key, value"):
            ready(task, Transformer, model=model, lora={"targets": ["query", "quary"]})
        with pytest.raises(sp.ConfigError, match=r"targets: found \['quary'\].* ends in 'quary'"):
            ready(task, Transformer, model=model, lora={"targets": ["quary"]}, frozen=1)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(sp.ConfigError, match=r"pip install 'spen-plugins\[lora\]'"):
        ready(task, Transformer, model=model, lora={})


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("gpt2", None), ("gpt2", ["attn.c_proj"]), ("modernbert", ["Wqkv", "Wo"]), ("bert", ["dense"]), ("roberta", None)],
)
def test_upper_layers_have_adapters_wherever_they_are(kind, targets) -> None:
    """GPT-2's and ModernBERT's are at the encoder's root."""
    pytest.importorskip("peft")
    encoder, lora = tiny(kind), Lora(rank=2, targets=targets)
    check_adapters(encoder, lora, 1)
    add_adapters(encoder, lora, 1)
    found = {name for name, _ in encoder.named_parameters() if ".lora_" in name}
    upper = {id(p) for p in find_layers(encoder)[1].parameters()}
    assert found and found == {name for name, p in encoder.named_parameters() if ".lora_" in name and id(p) in upper}


def test_linear_layers_of_gpt2_are_told() -> None:
    with pytest.raises(sp.ConfigError, match=r"'quary'; expected name endings of linear layers: c_attn, c_proj, c_fc"):
        check_adapters(tiny("gpt2"), Lora(targets=["quary"]), 0)


def lengths_differ(task: sp.Task, long: int = 0) -> sp.X:
    words = [SENTENCE, ["dog", "gaven"], (SENTENCE * 20)[:long] or ["cats"]]
    return task.collate([task.parse({"words": one, "predicate": 1 % len(one)}) for one in words]).x


def plain_and_stored(task: sp.Task, **fields: object) -> list[Transformer]:
    """A network in training and one that stores vectors, without dropout in the layers above."""
    networks = [ready(task, Transformer, **fields, dropout=0.0, store_gib=gib).train() for gib in (0, 1)]
    for network in networks:
        network.encoder.encoder.layer[1].eval()
    return networks


@pytest.mark.parametrize("long", [0, 60], ids=["short", "windows"])
@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("frozen", [1, 2, "all"])
def test_stored_vectors_are_those_of_the_frozen_layers(task, tmp_path, frozen, pooling, long) -> None:
    """The same vectors and gradients, and the lowest layer runs once for each example."""
    plain, stored = plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling=pooling)
    ran = []
    stored.encoder.encoder.layer[0].attention.register_forward_hook(lambda *_: ran.append(1))
    x = lengths_differ(task, long)
    for _ in range(2):
        found, expected = stored(x), plain(x)
        torch.testing.assert_close(found, expected)
        if frozen == 1:
            for network, y in ((stored, found), (plain, expected)):
                network.zero_grad()
                y.pow(3).sum().backward()
            for one, other in zip(stored.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(one.grad, other.grad)
    assert len(ran) == x.size
    stored(task.collate([task.parse({"words": one, "predicate": 1}) for one in (SENTENCE, ["cats", "dog"])]).x)
    assert len(ran) == x.size + 1  # the first was seen


SAME_PIECES = (["dog", "cats"], ["dog", "cats", "\u200d"])
"""A zero-width joiner at the end has no piece: the same ids, and one vector more."""


@pytest.mark.parametrize("lora", [None, {"rank": 3}], ids=["plain", "lora"])
def test_stored_vectors_beside_checkpointing(task, tmp_path, lora) -> None:
    """Vectors and gradients are those without checkpointing, stored or not."""
    if lora:
        pytest.importorskip("peft")
    fields = {"model": save_model(tmp_path), "frozen": 1, "lora": lora, "dropout": 0.0, "attention_dropout": 0.0}
    made = [
        ready(task, Transformer, **fields, store_gib=gib, gradient_checkpointing=again)
        for gib, again in ((0, False), (1, False), (0, True), (1, True))
    ]
    x, found = lengths_differ(task), []
    for network in made:
        network.load_state_dict(made[0].state_dict())
        for part in network.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        network.train()
        for _ in range(2):  # the second time from the store
            network.zero_grad()
            y = network(x)
            y.pow(3).sum().backward()
        found.append([y, *(p.grad for p in network.parameters() if p.requires_grad)])
        assert all(p.grad is None for p in network.parameters() if not p.requires_grad)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            torch.testing.assert_close(one, other)


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
    task, ran = loaded(kind, corpus="sample"), []
    plain, stored = plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling=pooling)
    stored.encoder.encoder.layer[0].attention.register_forward_hook(lambda *_: ran.append(1))
    for some in (items[:1], items, items[:1]):
        x = task.collate([task.parse(item) for item in some]).x
        torch.testing.assert_close(stored(x), plain(x))
    assert len(ran) == len(items)


@pytest.mark.parametrize("frozen", [1, "all"])
@pytest.mark.parametrize("texts", [True, False])
def test_stored_vectors_are_of_full_precision(task, tmp_path, frozen, texts) -> None:
    """States that training in bfloat16 stored are validated in float32."""
    if texts:
        task = loaded("text", corpus="sample")
        items = [{"text": "Ann saws"}, {"text": "dog"}]
    else:
        items = [{"words": SENTENCE, "predicate": 1}, {"words": ["dog", "gaven"], "predicate": 1}]
    plain, stored = plain_and_stored(task, model=save_model(tmp_path), frozen=frozen, pooling="mean")
    one, both = (task.collate([task.parse(item) for item in some]).x for some in (items[:1], items))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(stored(one).float(), plain(one).float(), atol=0.1, rtol=0.1)
    torch.testing.assert_close(stored(both), plain(both))


def test_stored_vectors_go_with_the_weights_they_are_of(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path), frozen="all", dropout=0.0, store_gib=1).train()
    x, ran = batch_of(task), []
    network.encoder.register_forward_hook(lambda *_: ran.append(1))
    before = network(x)
    network.load_state_dict(network.state_dict())
    torch.testing.assert_close(network(x), before)
    assert len(ran) == x.size
    network.load_state_dict({name: value + 0.1 * value.abs() for name, value in network.state_dict().items()})
    assert not torch.allclose(network(x), before) and len(ran) == 2 * x.size
    assert network.double()(x).dtype == torch.float64
    assert not copy.deepcopy(network)._store and network._store


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "deberta-v2"])
def test_lowest_layers_of_many_encoders_can_be_stored(kind) -> None:
    check_lowest(tiny(kind))


@pytest.mark.parametrize("kind", ["gpt2", "mpnet"])
def test_layers_above_what_is_trained_or_drops_out_are_a_config_error(kind) -> None:
    """GPT-2's positions are trained, and MPNet's position bias, which is of all layers."""
    with pytest.raises(sp.ConfigError, match=rf"the states of the frozen layers of '{kind}' change in training"):
        check_lowest(tiny(kind))


def check_lowest(encoder: torch.nn.Module) -> None:
    frozen = find_lowest(encoder, 1)
    freeze(frozen)
    check_upper(encoder, frozen, find_layers(encoder)[:1], torch.tensor([[1, 5, 6, 2]]))


def tiny(kind: str) -> torch.nn.Module:
    """An encoder with two layers."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    others = {
        "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2},
        "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
        "electra": {**sizes, "embedding_size": 16},
        "modernbert": sizes | dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
    }
    config = AutoConfig.for_model(kind, vocab_size=20, **others.get(kind, sizes))
    return AutoModel.from_config(config)


def test_a_mark_is_part_of_what_is_stored(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path), frozen=2, dropout=0.0, store_gib=1).train()
    one, other = (task.collate([task.parse({"words": SENTENCE, "predicate": at})]).x for at in (1, 3))
    assert not torch.allclose(network(one), network(other))


def test_networks_that_share_an_encoder_keep_their_own_pooling(task, tmp_path) -> None:
    fields = {"model": save_model(tmp_path), "frozen": "all", "dropout": 0.0, "store_gib": 1}
    one, other = (ready(task, Transformer, pooling=pooling, **fields).train() for pooling in ("first", "mean"))
    plain = ready(task, Transformer, **fields | {"store_gib": 0}, pooling="mean").train()
    other.share(one)
    x = batch_of(task)
    one(x)
    torch.testing.assert_close(other(x), plain(x))
    assert not torch.allclose(other(x), one(x))


def test_nothing_is_stored_in_prediction_or_without_room(task, tmp_path) -> None:
    save_model(tmp_path)
    for gib, training in ((1, False), (1e-9, True)):
        network = ready(task, Transformer, model=str(tmp_path), frozen="all", dropout=0.0, store_gib=gib)
        network.train(training)
        ran, x = [], batch_of(task)
        network.encoder.register_forward_hook(lambda *_, ran=ran: ran.append(1))
        torch.testing.assert_close(network(x), network(x))
        assert len(ran) == (4 if training else 2)  # one example at a time, or the batch


def test_a_full_store_says_so_once(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path), frozen="all", dropout=0.0, store_gib=4e-6).train()
    x = lengths_differ(task, 60)
    with pytest.warns(UserWarning, match=r"store_gib=4e-06 is full with 2 inputs; the others") as said:
        found = network(x)
    assert len(said) == 1
    torch.testing.assert_close(network(x), found)


@pytest.mark.parametrize(
    ("frozen", "types", "said"), [(0, 2, "freezes none"), (1, 1, "trained vectors below its layers")]
)
def test_what_moves_is_not_stored(task, tmp_path, frozen, types, said) -> None:
    with pytest.raises(sp.ConfigError, match=said):
        ready(task, Transformer, model=save_model(tmp_path, types=types), frozen=frozen, store_gib=1)


def test_layers_that_say_more_than_vectors_are_a_config_error(task, tmp_path, monkeypatch) -> None:
    """As those of T5, whose first layer has the position bias of all."""
    from transformers.models.bert.modeling_bert import BertEmbeddings, BertLayer

    embed, layer, said = BertEmbeddings.forward, BertLayer.forward, []

    def embedded(self, *args, **kwargs):
        said.clear()
        return embed(self, *args, **kwargs)

    def forward(self, hidden_states, *args, **kwargs):
        found = layer(self, hidden_states, *args, **kwargs)
        said.append(hidden_states[0, 0, 0])
        shift = said[0] if len(said) > 1 else 0.0
        return found + shift if isinstance(found, torch.Tensor) else (found[0] + shift, *found[1:])

    monkeypatch.setattr(BertEmbeddings, "forward", embedded)
    monkeypatch.setattr(BertLayer, "forward", forward)
    with pytest.raises(sp.ConfigError, match=r"features\.store_gib: the upper layers of 'bert' depend on more"):
        ready(task, Transformer, model=save_model(tmp_path), frozen=1, store_gib=1)
