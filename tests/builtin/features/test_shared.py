"""Feature network `shared`: an energy on the inference net's vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import spen_plugins as sp
from spen_plugins.testing import check_energy
from tests.loaded import built, loaded

SHARED = {"type": "shared"}


def made(**more: Any) -> tuple[sp.Task, sp.Model]:
    """The sample's labels, and a net with an energy on its vectors."""
    config = {
        "task": {"type": "multilabel", "corpus": "sample"},
        "features": {"type": "mlp", "hidden": [5], "dropout": 0.5},
        "inference_net": {"type": "independent"},
        "energy": {"type": "local", "features": SHARED},
        "trainer": {"type": "cross_entropy"},
    }
    found = built(config | more)
    return found.task, found.model


def test_it_equals_an_energy_with_a_copy_of_the_net_s_network() -> None:
    task, model = made()
    _, other = made(energy={"type": "local"})
    other.energy.features.load_state_dict(model.inference_net.features.state_dict())
    other.energy.local.load_state_dict(model.energy.local.state_dict())
    assert not [name for name, _ in model.energy.named_parameters() if "features" in name]
    batch = task.collate(task.part("train")[:7])
    found, wanted = (some.eval().energy.at(batch.x)(batch.gold) for some in (model, other))
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    assert all(p.grad is None for p in model.inference_net.parameters()), "the energy trains what it puts on top"
    model.inference_net.double()
    check_energy(model.energy, task)


def test_a_batch_is_read_once_until_a_weight_moves() -> None:
    task, model = made()
    network = model.inference_net.features
    calls: list[bool] = []
    network.register_forward_hook(lambda module, args, output: calls.append(torch.is_grad_enabled()))
    batch, other = (task.collate(task.part("train")[at : at + 7]) for at in (0, 7))
    model.train()
    proposal = model.propose(batch.x)
    found = model.energy.features(batch.x)
    assert len(calls) == 1 and not found.requires_grad
    torch.testing.assert_close(found, proposal.features.detach(), rtol=0, atol=0)  # with its dropout
    assert model.energy.features(batch.x) is found
    with torch.no_grad():
        next(network.parameters()).mul_(2)
    assert model.energy.features(batch.x) is not found and calls == [True, False]
    model.energy.features(other.x)
    model.eval()
    model.energy.features(other.x)
    assert len(calls) == 4


@pytest.mark.parametrize("fused", [False, True])
def test_after_a_step_of_the_net_it_reads_anew_and_after_one_of_the_energy_it_does_not(fused: bool) -> None:
    task, model = made()
    model.eval()
    batch = task.collate(task.part("train")[:7])
    before = model.energy.features(batch.x)
    for net, again in ((model.energy, False), (model.inference_net, True)):
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, fused=fused)
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert (model.energy.features(batch.x) is not before) == again
    torch.testing.assert_close(model.energy.features(batch.x), model.inference_net.features(batch.x))


@pytest.mark.parametrize(
    "tables",
    [
        {"features": SHARED, "energy": None},
        {"inference_net": {"type": "independent", "features": SHARED}},
        {"inference_net": {"type": "gbi"}, "trainer": {"type": "energy"}, "energy_loss": {"type": "ssvm"}},
    ],
    ids=["the net's own", "the net's own table", "a net without any"],
)
def test_without_a_network_of_the_net_it_is_a_sentence(tables: dict[str, Any]) -> None:
    with pytest.raises(sp.ConfigError, match="'shared' reuse those of the inference net"):
        made(**tables)


def test_it_trains_and_is_read_back(tmp_path: Path) -> None:
    small = {"features.hidden": [8], "energy.hidden": 4, "energy_loss.samples": 3, "trainer.epochs": 2}
    small |= {"trainer.epoch_updates": 1, "energy.features.type": "shared"}
    sp.train("labels", out=tmp_path / "run", quiet=True, **small)
    names = load_file(tmp_path / "run/weights.safetensors")
    assert any(name.startswith("energy.") for name in names)
    assert not any(name.startswith("energy.features.") for name in names)
    predictor = sp.load(tmp_path / "run", refine="rerank")
    batch = predictor.task.collate(loaded("multilabel", corpus="sample").part("test")[:5])
    with torch.no_grad():
        energies = predictor.energy.at(batch.x)(batch.gold)
    assert torch.isfinite(energies).all() and energies.std() > 0
