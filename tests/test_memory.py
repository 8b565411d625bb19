"""The memory that a config needs is estimated before it is taken, and before there is a run folder."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from spen_plugins.config import memory
from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.config.experiment import build, check
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.runs import runner


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("features.hidden=[1000000000]", r"weights of .* GiB of memory; .*features\.hidden\.0=1000000000"),
        ("features.hidden=[1000000000000000000]", r"weights of more bytes .*features\.hidden\.0=1000000000000000000"),
        ("energy.hidden=100000000000000", r"weights of .* energy\.hidden=100000000000000"),
        ("energy_loss.samples=1000000000000000", r"outputs of a batch .* energy_loss\.samples=1000000000000000"),
    ],
)
def test_what_can_not_fit_is_refused_with_its_key_before_there_is_a_folder(tmp_path, word, said):
    config = evaluate("mlc_seal", parse_arguments([word]))
    with pytest.raises(ConfigError, match=f"found a config that needs at least .*{said}"):
        runner.run(config, "mlc_seal", tmp_path / "run", "cpu", quiet=True)
    assert not (tmp_path / "run").exists()


def test_the_parts_of_an_estimate(monkeypatch):
    """Weights once, gradients of the player that has most, two moments of each: by hand, of the net's parameters."""
    experiment = check(evaluate("mlc_seal", {"energy_loss.samples": "7"}), "mlc_seal", Registry())
    built = build(experiment)
    stages = built.trainer.stages(built.model, built.task)
    sizes = {name: 4 * sum(p.numel() for p in net.parameters()) for name, net in built.model.named_children()}
    total = sum(sizes.values())
    # 32 examples of 7 outputs, which may be lists of one label.
    wanted = total + max(sizes.values()) + 2 * total + 32 * 7 * 4
    monkeypatch.setattr(memory, "available", lambda device: wanted - total)  # beside the weights, which are made
    memory.check_memory(experiment, built, stages, torch.device("cpu"))
    monkeypatch.setattr(memory, "available", lambda device: wanted - total - 1)
    with pytest.raises(ConfigError, match=r"weights .*, gradients .*, optimisers .*, outputs of a batch"):
        memory.check_memory(experiment, built, stages, torch.device("cpu"))


def test_parameters_of_many_small_modules_are_summed():
    with memory.Limit(1000, []):
        nn.Sequential(*[nn.Linear(5, 5, bias=False) for _ in range(10)])
    with pytest.raises(ConfigError, match="weights of"), memory.Limit(1000, []):
        nn.Sequential(*[nn.Linear(5, 5, bias=False) for _ in range(11)])
    nn.Linear(1000, 1000)  # outside there is no limit


def test_shared_parameters_count_once():
    with memory.Limit(1000, []):
        layer = nn.Linear(10, 20, bias=False)
        for _ in range(3):
            other = nn.Linear(1, 1, bias=False)
            other.weight = layer.weight


def test_errors_of_allocators():
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**50)
    assert memory.out_of_memory(error.value) and memory.out_of_memory(MemoryError())
    assert not memory.out_of_memory(RuntimeError("shapes differ"))
