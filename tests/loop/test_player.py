"""A player's rates: groups, schedules and plateaus, by hand and in resumed runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from pydantic import ValidationError

import spen_plugins as sp
from spen_plugins.builtin.trainers.phases import cross_entropy
from spen_plugins.errors import ConfigError
from spen_plugins.loop.active import ActivePhase, planned_updates
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.recipe import assign_stages
from spen_plugins.runs.folder.folder import RunFolder
from tests.loop.test_loop import ToyTask, check_resuming, energy_phase, make_loop, model_for, net_phase


@pytest.fixture
def task() -> ToyTask:
    return ToyTask()


def list_rates(schedule: sp.Schedule, planned: int) -> list[float]:
    return [schedule.share(update, planned) for update in range(planned)]


def test_schedules_by_hand() -> None:
    assert list_rates(sp.Schedule(), 3) == [1.0, 1.0, 1.0]
    assert list_rates(sp.Schedule(warmup=4), 6) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert list_rates(sp.Schedule(type="linear"), 4) == [1.0, 0.75, 0.5, 0.25]
    assert list_rates(sp.Schedule(type="linear", warmup=2, final=0.5), 6) == [0.5, 1.0, 1.0, 0.875, 0.75, 0.625]
    half = math.sqrt(0.5)
    assert list_rates(sp.Schedule(type="cosine"), 4) == pytest.approx([1.0, (1 + half) / 2, 0.5, (1 - half) / 2])
    assert list_rates(sp.Schedule(type="cosine", final=0.2), 2) == pytest.approx([1.0, 0.6])


def test_a_warm_up_below_1_is_a_share_of_the_planned_updates() -> None:
    assert list_rates(sp.Schedule(type="linear", warmup=0.5), 8) == list_rates(sp.Schedule(type="linear", warmup=4), 8)
    assert list_rates(sp.Schedule(warmup=1), 3) == [1.0, 1.0, 1.0]


def test_the_rate_is_constant_after_the_last_planned_update() -> None:
    for kind in ("linear", "cosine"):
        assert [sp.Schedule(type=kind, final=0.1).share(n, 5) for n in (5, 6, 100)] == pytest.approx([0.1] * 3)
    assert sp.Schedule(type="linear", warmup=9).share(2, 5) == 3 / 9, "a stage shorter than its warm-up"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"plateau": {}, "schedule": {"type": "cosine"}}, "plateau and a cosine schedule both lower the rate"),
        ({"schedule": {"warmup": 1.5}}, "expected a whole number of updates"),
        ({"schedule": {"final": 0.1}}, "final is where a decay ends"),
        ({"groups": {"features": 0.0}}, "greater than 0"),
    ],
)
def test_incompatible_settings_are_rejected(fields: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        sp.Player.model_validate_json(json.dumps(fields))


def test_the_settings_of_a_player_are_set_by_their_path() -> None:
    registry = sp.Registry()
    spec = {"type": "cross_entropy", "net": {"lr": 0.1, "schedule": {"type": "linear"}, "groups": {"features": 0.5}}}
    _, config = registry.parse("trainer", spec, "trainer", "test")
    assert config.net == sp.Player(lr=0.1, schedule=sp.Schedule(type="linear"), groups={"features": 0.5})
    with pytest.raises(ConfigError, match=r"unknown key 'trainer\.net\.schedule\.warm_up'\. Did you mean 'warmup'"):
        registry.parse("trainer", {**spec, "net": {"schedule": {"warm_up": 3}}}, "trainer", "test")
    with pytest.raises(ConfigError, match=r"trainer\.net.*plateau and a linear schedule both lower the rate"):
        registry.parse("trainer", {**spec, "net": {**spec["net"], "plateau": {}}}, "trainer", "test")


def test_the_longest_prefix_of_a_name_wins() -> None:
    player = sp.Player(groups={"features": 0.1, "features.layers.2": 0.5, "features.layers": 0.3})
    names = {
        "features.layers.2.weight": 0.5,
        "features.layers.20.weight": 0.3,
        "features.norm": 0.1,
        "featuresque": 1.0,
    }
    for name, multiplier in names.items():
        assert player.multiplier(f"inference_net.{name}") == multiplier, name
    assert player.multiplier("inference_net.output.features") == 1.0
    player = sp.Player(groups={"features.reader": 1.0, "*": 20.0})
    names = ["inference_net.output.weight", "inference_net.features.head", "inference_net.features.reader.encoder.a"]
    assert [player.multiplier(name) for name in names] == [20.0, 20.0, 1.0]


def test_there_is_one_parameter_group_per_rate() -> None:
    parameters = {f"inference_net.{name}": torch.nn.Parameter(torch.zeros(1)) for name in "abcd"}

    def list_groups(**groups: float) -> list[tuple[int, float]]:
        phase = net_phase(sp.Player(lr=0.5, groups=groups))
        active = ActivePhase(phase, parameters, frozenset(), Accelerator(cpu=True))
        assert active.learning_rate == 0.5
        return [(len(group["params"]), group["lr"]) for group in active.optimizer.param_groups]

    assert list_groups() == [(4, 0.5)]
    assert list_groups(a=0.1, c=0.1) == [(2, 0.5), (2, 0.05)]
    assert list_groups(a=0.1, b=0.1, c=0.1, d=0.1) == [(4, 0.05)]


def test_lower_layers_have_lower_rates() -> None:
    """Names as in BERT, ModernBERT and adapters. Parameters outside an encoder's layers have the full rate."""
    rates_by_name = {
        "inference_net.output.weight": 1.0,
        "inference_net.features.marks.predicate.weight": 0.1,
        "inference_net.features.encoder.encoder.layer.10.output.dense.weight": 0.1,
        "inference_net.features.encoder.encoder.layer.9.attention.self.query.lora_A.default.weight": 0.05,
        "inference_net.features.encoder.encoder.layer.8.output.dense.bias": 0.025,
        "inference_net.features.encoder.embeddings.word_embeddings.weight": 0.1 * 0.5**11,
        "inference_net.head.encoder.layers.1.mlp.Wi.weight": 1.0,
        "inference_net.head.encoder.layers.0.mlp.Wi.weight": 0.5,
        "inference_net.head.encoder.embeddings.tok_embeddings.weight": 0.25,
        "inference_net.head.encoder.final_norm.weight": 1.0,
        "inference_net.layers.0.weight": 1.0,
    }
    parameters = {name: torch.nn.Parameter(torch.zeros(1)) for name in rates_by_name}
    groups = sp.Player(groups={"features": 0.1}, layer_decay=0.5).parameter_groups(parameters)
    rates_by_id = {id(p): rate for rate, group in groups.items() for p in group}
    assert {name: rates_by_id[id(p)] for name, p in parameters.items()} == pytest.approx(rates_by_name)


def test_layer_decay_without_layers_is_a_config_error(task: ToyTask) -> None:
    stage = sp.Stage("s", (net_phase(sp.Player(layer_decay=0.9)),), 1, frozen=("energy",))
    with pytest.raises(ConfigError, match=r"phase 'net'.*layer_decay=0\.9 but trains no encoder layers"):
        assign_stages(model_for(task), [stage])


def test_updates_follow_the_rates_of_their_groups_and_the_schedule(task: ToyTask, tmp_path: Path) -> None:
    """Plain gradient descent on a gradient of ones: each update subtracts its rate from every weight."""

    def set_ones(update: sp.trainer.Update) -> None:
        for parameter in update.parameters:
            parameter.grad = torch.ones_like(parameter)

    schedule = sp.Schedule(type="linear", warmup=2, final=0.5)
    plain = {"type": "sgd", "weight_decay": 0, "clip": None, "steps": 3}
    player = sp.Player(lr=0.5, schedule=schedule, groups={"linear.bias": 0.25}, **plain)
    model = model_for(task)
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    stage = sp.Stage("s", (net_phase(player, gradient=set_ones),), 1, rounds=2, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.begin(stage)
    [active] = loop.active
    assert active.planned == 4 * 2 * 3  # batches x rounds x steps
    loop.run_epoch(stage)
    total = sum(list_rates(schedule, 24))
    changes = {name: initial[name] - value for name, value in model.state_dict().items()}
    torch.testing.assert_close(changes["inference_net.linear.weight"], torch.full((4, 4), 0.5 * total))
    torch.testing.assert_close(changes["inference_net.linear.bias"], torch.full((4,), 0.25 * 0.5 * total))
    assert loop.folder.history()[0]["learning_rate"] == {"net": 0.5 * schedule.share(23, 24)}


def test_the_mean_of_the_weights_is_saved_and_training_continues_from_the_last(task: ToyTask, tmp_path: Path) -> None:
    """Plain gradient descent on a gradient of ones: after n updates of 0.5 a weight is n / 2 below its first value."""

    def set_ones(update: sp.trainer.Update) -> None:
        for parameter in update.parameters:
            parameter.grad = torch.ones_like(parameter)

    player = sp.Player(type="sgd", lr=0.5, weight_decay=0, clip=None, steps=3, average=0.5)
    model = model_for(task)
    first = model.inference_net.linear.weight.detach().clone()
    stage = sp.Stage("s", (net_phase(player, gradient=set_ones),), 1, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.begin(stage)
    loop.run_epoch(stage)
    torch.testing.assert_close(model.inference_net.linear.weight, first - 12 / 2)
    mean = 0.0
    for update in range(1, 13):
        decay = min(0.5, update / (update + 9))
        mean = decay * mean + (1 - decay) * -update / 2
    loop.folder.load_weights(model)
    torch.testing.assert_close(model.inference_net.linear.weight, first + mean)


def test_planned_updates_count_every_nth_batch() -> None:
    phase = energy_phase(sp.Player(steps=2), every=3)
    assert planned_updates(sp.Stage("s", (phase,), epochs=5, rounds=4), phase, batches=7) == 5 * 7 // 3 * 4 * 2


def test_a_player_is_updated_at_every_nth_turn_of_its_phase(task: ToyTask, tmp_path: Path) -> None:
    phases = (net_phase(sp.Player(every=2)), energy_phase(sp.Player(every=2, steps=3), every=2))
    stage = sp.Stage("s", phases, epochs=3)
    loop = make_loop(model_for(task), task, [stage], tmp_path / "run")
    loop.begin(stage)
    for _ in range(3):
        loop.run_epoch(stage)
        loop.position.next_epoch()
    batches = 3 * loop.epochs.batches
    assert [active.updates for active in loop.active] == [batches // 2, batches // 4 * 3]
    assert [planned_updates(stage, phase, loop.epochs.batches) for phase in phases] == [batches // 2, batches // 4 * 3]


def test_a_player_that_never_has_a_turn_is_an_error(task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (net_phase(sp.Player(every=1000)),), epochs=1, frozen=("energy",))
    with pytest.raises(ConfigError, match="only at every 1000th batch"):
        make_loop(model_for(task), task, [stage], tmp_path / "run").begin(stage)


def test_a_plateau_lowers_the_rate_that_a_warm_up_reaches() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    player = sp.Player(lr=0.4, schedule=sp.Schedule(warmup=4), plateau=sp.PlateauConfig(patience=0))
    active = ActivePhase(net_phase(player), {"inference_net.p": parameter}, frozenset(), Accelerator(cpu=True), 10)
    learning_rates = []
    for _ in range(3):
        for _ in range(2):
            parameter.grad = torch.ones(1)
            active.step(Accelerator(cpu=True))
            learning_rates.append(active.learning_rate)
        active.epoch_ends(0.5)
    assert learning_rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.2, 0.2])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"liner": 0.1}, r"phase 'net'.*'liner'.*Did you mean 'linear'\? They begin with: linear"),
        ({"linear": 0.1, "linear.wieght": 0.1}, r"'linear\.wieght'.*Did you mean 'linear\.weight'"),
        ({"inference_net.linear": 0.1}, "none of its parameters begins with it"),
        ({"": 0.1}, "none of its parameters begins with it"),
    ],
)
def test_a_prefix_that_matches_no_parameter_is_an_error(task: ToyTask, groups: dict, message: str) -> None:
    stage = sp.Stage("s", (net_phase(sp.Player(groups=groups)), energy_phase()), 1)
    with pytest.raises(ConfigError, match=message):
        assign_stages(model_for(task), [stage])


def test_a_prefix_may_match_frozen_parameters(task: ToyTask) -> None:
    """A config may name parameters that its user freezes later."""
    stage = sp.Stage("s", (net_phase(sp.Player(groups={"*": 20.0, "linear.bias": 1.0})), energy_phase()), 1)
    model = model_for(task)
    model.inference_net.linear.bias.requires_grad_(False)
    assign_stages(model, [stage])
    stage = sp.Stage("s", (net_phase(sp.Player(groups={"*": 20.0, "linear.bais": 1.0})), energy_phase()), 1)
    with pytest.raises(ConfigError, match=r"'linear\.bais'"):
        assign_stages(model, [stage])


def test_a_prefix_may_match_a_module_without_parameters(task: ToyTask) -> None:
    """A config may name features that belong to another net."""
    model = model_for(task)
    model.inference_net.features = torch.nn.Dropout()
    for name in ("features", "features.reader"):
        assign_stages(model, [sp.Stage("s", (net_phase(sp.Player(groups={name: 0.1})), energy_phase()), 1)])
    with pytest.raises(ConfigError, match="'feature'"):
        assign_stages(model, [sp.Stage("s", (net_phase(sp.Player(groups={"feature": 0.1})), energy_phase()), 1)])


def test_a_shared_parameter_has_one_rate(task: ToyTask) -> None:
    model = model_for(task)
    model.inference_net.tied = model.inference_net.linear
    stage = sp.Stage("s", (net_phase(sp.Player(groups={"tied": 0.1})), energy_phase()), 1)
    with pytest.raises(
        ConfigError, match=r"two rates for .*: inference_net\.linear\.weight x1, inference_net\.tied\.weight"
    ):
        assign_stages(model, [stage])
    player = sp.Player(groups={"tied": 0.1, "linear": 0.1})
    assign_stages(model, [sp.Stage("s", (net_phase(player), energy_phase()), 1)])


def test_a_prefix_may_match_parameters_trained_in_another_stage(task: ToyTask) -> None:
    player = sp.Player(groups={"linear.bias": 0.1})
    first = sp.Phase("weights", ("inference_net.linear.weight",), lambda c: {"x": cross_entropy(c)}, player)
    stages = [
        sp.Stage("first", (first,), 1, frozen=("energy", "inference_net.linear.bias")),
        sp.Stage("second", (net_phase(player),), 1, frozen=("energy",)),
    ]
    assign_stages(model_for(task), stages)
    with pytest.raises(ConfigError, match=r"phase 'weights'.*'linear\.bias'"):
        assign_stages(model_for(task), stages[:1])


def test_a_resumed_run_continues_with_its_rates(task: ToyTask, tmp_path: Path) -> None:
    def build_loop(folder: Path, **callbacks: Any) -> Loop:
        cosine = sp.Schedule(type="cosine", warmup=0.25)
        net = sp.Player(lr=0.05, schedule=cosine, groups={"linear.bias": 0.3}, average=0.9)
        energy = sp.Player(lr=0.05, schedule=sp.Schedule(warmup=5), plateau=sp.PlateauConfig(patience=0), steps=2)
        stages = [sp.Stage("s", (energy_phase(energy, frozen_dropout=True), net_phase(net)), 3)]
        return make_loop(model_for(task), task, stages, folder, **callbacks)

    check_resuming(build_loop, tmp_path, (2, 6, 9))
    history = RunFolder(tmp_path / "whole").history()
    assert len({record["learning_rate"]["net"] for record in history}) == 3
