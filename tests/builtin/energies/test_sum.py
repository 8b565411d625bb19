"""Sums of energies."""

from __future__ import annotations

import pytest
import torch

from spen_plugins.builtin.energies.basic import LinearChain, Local, Sum
from spen_plugins.config.experiment import build, parse_experiment
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags, check_energy
from spen_plugins.testing.comparing import collate, pick_by_length, relaxed


def make_sum(task, weights, **terms):
    torch.manual_seed(0)
    built_terms = {name: cls(cls.Config(), task, ToyFeatures(task)) for name, cls in terms.items()}
    return Sum(Sum.Config(weights=weights), task, None, built_terms)


@pytest.mark.parametrize("weights", [{}, {"b": 0.25}, {"a": 0.0, "b": -2}])
def test_a_weighted_sum(weights):
    task = ToyTags()
    energy = make_sum(task, weights, a=LinearChain, b=Local).double().eval()
    batch = collate(task, pick_by_length(task, 4))
    y = relaxed(task.space, batch, 3)
    expected = sum(weights.get(name, 1) * term.at(batch.x)(y) for name, term in energy.terms.items())
    torch.testing.assert_close(energy.at(batch.x)(y), expected)


@pytest.mark.parametrize("task", [ToyTags, ToyLabels])
def test_contract(task):
    check_energy(make_sum(task(), {"b": 0.5}, a=Local, b=Local), task())


def test_x_is_encoded_once_for_many_outputs():
    task, calls = ToyTags(), []
    energy = make_sum(task, {}, a=LinearChain, b=Local).double().eval()
    for term in energy.terms.values():
        term.features.register_forward_hook(lambda *_: calls.append(1))
    batch = collate(task, pick_by_length(task, 4))
    bound = energy.at(batch.x)
    for _ in range(3):
        bound(batch.gold)
    assert len(calls) == 2


def test_terms_are_trained_and_stored_under_their_names():
    energy = make_sum(ToyTags(), {}, a=LinearChain, b=Local)
    assert {key.split(".")[1] for key in energy.state_dict()} == {"a", "b"}
    assert energy.terms["a"].pairs.requires_grad


@pytest.mark.parametrize("terms", [None, {}])
def test_a_sum_requires_terms(terms):
    with pytest.raises(ConfigError, match=r"found no terms.*linear_chain"):
        Sum(Sum.Config(), ToyTags(), None, terms)


def test_a_weight_requires_its_term():
    with pytest.raises(ConfigError, match=r"weights: found 'tags', which is not a term; expected one of: 'a', 'b'"):
        make_sum(ToyTags(), {"tags": 1.0}, a=Local, b=Local)


@pytest.mark.parametrize("name", ["a.b", "keys", "forward", ""])
def test_invalid_module_names_are_rejected(name):
    with pytest.raises(ConfigError, match="is not a valid module name in PyTorch"):
        make_sum(ToyTags(), {}, **{name: Local})


def test_a_config_sets_terms_and_their_features():
    features = {"type": "encoder", "encoder": "pass_through", "word_dim": 3, "char_dim": 0}
    config = {
        "task": {"type": "srl", "corpus": "sample"},
        "features": {"type": "bilstm", "word_dim": 3, "hidden": 2, "layers": 1},
        "inference_net": {"type": "independent"},
        "energy": {
            "type": "sum",
            "terms": {"chain": {"type": "linear_chain"}, "words": {"type": "local", "features": features}},
            "weights": {"words": 0.5},
        },
        "trainer": {"type": "cross_entropy"},
    }
    registry = Registry()
    experiment = parse_experiment(config, "test", registry)
    assert experiment.table()["energy"]["terms"]["words"]["features"]["hidden"] == 200  # complete, with defaults
    components = build(experiment)
    energy = components.model.energy
    assert {name: type(term.features).__name__ for name, term in energy.terms.items()} == {
        "chain": "BiLstm",
        "words": "Encoder",
    }
    batch = components.task.collate(components.task.part("train")[:3])
    assert energy.at(batch.x)(batch.gold).shape == (3, 1)
    config["energy"]["terms"]["chain"]["featurs"] = {}
    with pytest.raises(ConfigError, match=r"energy\.terms\.chain\.featurs"):
        parse_experiment(config, "test", registry)
    config["energy"]["terms"] = {"a.b": {"type": "linear_chain"}}
    with pytest.raises(
        ConfigError, match=r"energy\.terms: found .*; expected tables of kind energy, under names without a dot"
    ):
        parse_experiment(config, "test", registry)
