"""Fine-tuning a pretrained encoder: frozen layers."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.tasks.srl import SemanticRoles
from spen_plugins.errors import ConfigError
from tests.test_encoders import SENTENCE, ready, save_model


@pytest.fixture
def task() -> SemanticRoles:
    task = SemanticRoles(SemanticRoles.Config(corpus="sample"))
    task.load()
    return task


def batch_of(task: SemanticRoles) -> sp.X:
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


def test_nothing_is_kept_of_frozen_layers(task, tmp_path) -> None:
    """Autograd's graph has no part of them."""
    network = ready(task, Transformer, model=save_model(tmp_path), frozen=1).train()
    reached = []
    network.encoder.encoder.layer[0].register_forward_hook(lambda m, i, found: reached.append(found))
    network(batch_of(task))
    states = reached[0][0] if isinstance(reached[0], tuple) else reached[0]
    assert not states.requires_grad


def test_learned_marks_are_trained_through_frozen_layers(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path, types=1), frozen="all").train()
    network(batch_of(task)).pow(3).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is not None] == ["marks.predicate.weight"]


def test_too_many_frozen_layers_are_a_config_error(task, tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"features\.frozen: found 3; expected at most 2"):
        ready(task, Transformer, model=save_model(tmp_path), frozen=3)
