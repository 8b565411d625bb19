"""The loop: ownership, caching, update counts, order, gradients, failures."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from rich.console import Console
from torch import nn

import spen_plugins as sp
from spen_plugins.builtin.trainers.phases import cross_entropy
from spen_plugins.errors import ConfigError, Interrupted, NonFiniteLoss, RunError
from spen_plugins.loop.active import ActivePhase
from spen_plugins.loop.checkpoint import Checkpoint, flatten, unflatten
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.evaluation import collate_rows, proposals
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.order import Epochs, batches_of_pass, evaluation_batches
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import Callbacks, Recipe, assign, find_touched
from spen_plugins.loop.torch_modes import attention_kernels, random_state, seed_everything, set_random_state
from spen_plugins.runs.folder.folder import RunFolder
from tests.loaded import parsed


class ToyMetric(sp.Metric):
    def __init__(self) -> None:
        self.correct = self.count = 0

    def update(self, proposal: sp.Proposal, batch: sp.Batch) -> None:
        self.correct += int((proposal.mode == batch.gold).all(-1).sum())
        self.count += len(batch)

    def compute(self) -> dict[str, Any]:
        return {"accuracy": self.correct / self.count}


class ToyTask(sp.Task):
    """Four labels, each the sign of one coordinate of x."""

    selection = "accuracy"

    def __init__(self, config: sp.Config | None = None) -> None:
        super().__init__(config or sp.Config())
        self.load()

    def load(self) -> None:
        self.space = sp.LabelSet(list("abcd"))
        self.inputs = sp.VectorInputs(4, binary=False)
        x = torch.randn(48, 4, generator=torch.Generator().manual_seed(0))
        rows = [(x[i], (x[i] > 0).float()) for i in range(48)]
        self.parts = {"train": rows[:32], "validation": rows[32:40], "test": rows[40:]}

    def part(self, name: str) -> list[Any]:
        return self.parts[name]

    def collate(self, examples: Any, rows: Any = None) -> sp.Batch:
        x = torch.stack([example[0] for example in examples])
        gold = torch.stack([example[1] for example in examples]).unsqueeze(1)
        labelled = torch.ones(len(x), dtype=torch.bool)
        numbers = torch.arange(len(x)) if rows is None else torch.tensor(rows)
        return sp.Batch(sp.X({"vector": x}, None, len(x)), numbers, gold, labelled)

    def metric(self) -> ToyMetric:
        return ToyMetric()

    def predictions(self, proposal: Any, batch: Any, examples: Any) -> list[Any]:
        return proposal.mode[:, 0].tolist()

    def read(self, path: str) -> list[Any]:
        return self.parts["test"]

    def parse(self, item: Any) -> Any:
        return item

    def facts(self) -> dict[str, Any]:
        return {}

    def restore(self, facts: Any) -> None:
        self.load()

    def protocol(self) -> dict[str, Any]:
        return {}


class ToyNet(sp.InferenceNet):
    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        self.calls += 1
        return self.space.independent(self.linear(x.inputs["vector"]).unsqueeze(1))


class ToyEnergy(sp.Energy):
    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.encoded = 0

    def encode(self, x: sp.X) -> torch.Tensor:
        self.encoded += 1
        return self.linear(x.inputs["vector"]).unsqueeze(1)

    def forward(self, features: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (self.drop(features) * (y - 0.5)).sum(-1)


@pytest.fixture
def task() -> ToyTask:
    return ToyTask()


def model_for(task: ToyTask, energy: type[sp.Energy] = ToyEnergy) -> sp.Model:
    torch.manual_seed(0)
    return sp.Model(ToyNet(sp.Config(), task), energy(sp.Config(), task), None)


@pytest.fixture
def model(task: ToyTask) -> sp.Model:
    return model_for(task)


ADAM = sp.Player(lr=0.05, clip=None)


def adam(**settings: Any) -> sp.Player:
    """`ADAM` with other settings."""
    return sp.Player(**{"lr": 0.05, "clip": None, **settings})


def energy_phase(player: sp.Player = ADAM, **options: Any) -> sp.Phase:
    def loss(context: Any) -> dict[str, torch.Tensor]:
        return {"contrast": (context.energy(context.batch.gold) - context.energy(context.proposal.mean))[:, 0]}

    return sp.Phase("energy", ("energy",), loss, player, **options)


def net_phase(player: sp.Player = ADAM, **options: Any) -> sp.Phase:
    def loss(context: Any) -> dict[str, torch.Tensor]:
        return {"energy": context.energy(context.proposal.mean)[:, 0], "cross_entropy": cross_entropy(context)}

    return sp.Phase("net", ("inference_net",), loss, player, **options)


def make_loop(
    model: sp.Model, task: sp.Task, stages: list[sp.Stage], folder: Path, config: Any = None, **callbacks: Any
) -> Loop:
    """A silent loop over stages on the CPU, with a trainer's config, or with some of its fields and batches of 8."""
    if not isinstance(config, sp.TrainerConfig):
        config = sp.TrainerConfig(batch_size=8, **config or {})
    run = RunFolder(folder) if (folder / "config.json").exists() else RunFolder.create(folder, {})
    reporter = Reporter(Console(quiet=True), task.selection)
    recipe = Recipe(model, task, stages, config, 0)
    return Loop(recipe, run, Accelerator(cpu=True), reporter, Callbacks(**callbacks))


def stop_after(batches: int) -> Callable[[], bool]:
    """Returns a function that stops a loop after so many batches."""
    calls = itertools.count()
    return lambda: next(calls) == batches


def check_resuming(build_loop: Callable[..., Loop], folder: Path, stops: Sequence[int]) -> None:
    """Checks that a loop stopped after some batches and resumed writes the same files as an uninterrupted one."""
    build_loop(folder / "whole").run()
    for batches in stops:
        interrupted = folder / str(batches)
        with pytest.raises(Interrupted):
            build_loop(interrupted, stop=stop_after(batches)).run()
        build_loop(interrupted).run(resume=True)
        for name in ("weights.safetensors", "history.jsonl"):
            assert (interrupted / name).read_bytes() == (folder / "whole" / name).read_bytes(), (batches, name)


def test_every_parameter_needs_exactly_one_owner(model: sp.Model) -> None:
    with pytest.raises(ConfigError, match=r"inference_net\.linear\.weight.*no phase trains it"):
        assign(model, sp.Stage("s", (energy_phase(),), 1))
    with pytest.raises(ConfigError, match=r"energy\.linear\.weight.*claimed by energy and again"):
        duplicate = sp.Phase("again", ("energy.linear",), lambda context: {}, ADAM)
        assign(model, sp.Stage("s", (energy_phase(), net_phase(), duplicate), 1))
    message = "frozen names 'ener', but no parameter begins with it. Did you mean 'energy'?"
    with pytest.raises(ConfigError, match=re.escape(message)):  # a prefix is a whole name
        assign(model, sp.Stage("s", (net_phase(),), 1, frozen=("ener",)))
    owned = assign(model, sp.Stage("s", (net_phase(),), 1, frozen=("energy",)))
    assert list(owned["net"]) == ["inference_net.linear.weight", "inference_net.linear.bias"]


def test_a_shared_parameter_counts_once_and_touches_both(model: sp.Model) -> None:
    model.energy.linear = model.inference_net.linear
    owned = assign(model, sp.Stage("s", (net_phase(),), 1))
    assert len(owned["net"]) == 2
    assert find_touched(model, owned["net"].values()) == {"energy", "inference_net"}
    with pytest.raises(ConfigError, match="claimed by energy and net"):
        assign(model, sp.Stage("s", (energy_phase(), net_phase()), 1))


def test_the_net_runs_once_when_both_are_updated_once(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (energy_phase(frozen_dropout=True), net_phase()), 1)
    loop = make_loop(model, task, [stage], tmp_path / "run", config={"gradient_norms_every": 0})
    loop.begin(stage)
    loop.run_batch(stage, np.arange(8))
    assert model.inference_net.calls == 1
    assert model.energy.encoded == 2  # once for each Θ


def test_only_updated_parts_are_recomputed(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (energy_phase(adam(steps=3)), net_phase(adam(steps=2))), 1, rounds=2)
    loop = make_loop(model, task, [stage], tmp_path / "run", config={"gradient_norms_every": 0})
    loop.begin(stage)
    loop.run_batch(stage, np.arange(8))
    # Each round: the energy's phase needs the net's eval-mode proposal once, the net's phase one for each of 2 updates.
    assert model.inference_net.calls == 2 * (1 + 2)
    assert model.energy.encoded == 2 * (3 + 1)
    assert [active.updates for active in loop.active] == [6, 4]


def test_frozen_nets_run_in_evaluation_mode_unless_asked(model: sp.Model, task: ToyTask) -> None:
    nets = NetStates(model)
    context = LiveContext(nets, task.collate(task.part("train")))
    nets.enter(frozenset({"energy"}))
    assert model.energy.training and not model.inference_net.training
    first = context.energy
    assert context.energy is first
    nets.enter(frozenset({"inference_net"}))
    assert context.energy is not first, "an energy without dropout is another one"


def test_only_the_parameters_of_the_phase_change(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (net_phase(),), 1, frozen=("energy",))
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.run()
    for name, value in model.state_dict().items():
        assert torch.equal(value, initial[name]) == name.startswith("energy"), name


def test_gradients_flow_through_the_frozen_energy(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    """The net's gradient on the energy term is λ ∂E/∂y ∂y/∂Ψ, worked out by hand for the linear toy."""
    model.eval()
    batch = task.collate(task.part("train")[:4])
    context = LiveContext(NetStates(model), batch)
    grad = torch.autograd.grad(context.energy(context.proposal.mean).sum() / 4, model.inference_net.linear.weight)[0]
    x = batch.x.inputs["vector"]
    y = torch.sigmoid(model.inference_net.linear(x))
    expected = (model.energy.linear(x) * y * (1 - y)).T @ x / 4
    torch.testing.assert_close(grad, expected)


def test_history_and_best_weights(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (energy_phase(), net_phase()), 4, patience=10)
    loop = make_loop(model, task, [stage], tmp_path / "run", config={"gradient_norms_every": 1})
    loop.run()
    history = loop.folder.history()
    assert [record["epoch"] for record in history] == [0, 1, 2, 3]
    assert history[-1]["updates"] == {"energy": 16, "net": 16}
    assert set(history[0]["losses"]) == {"energy.contrast", "net.energy", "net.cross_entropy"}
    shares = history[0]["gradient_share"]
    assert math.isclose(shares["net.energy"] + shares["net.cross_entropy"], 1.0)
    best = max(record["score"] for record in history)
    assert history[[record["score"] for record in history].index(best)]["best"]
    accuracy = ToyMetric()
    with torch.no_grad():
        batch = task.collate(task.part("validation"))
        accuracy.update(model.propose(batch.x), batch)
    assert accuracy.compute()["accuracy"] == best


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_stage_that_goes_on_keeps_the_best_of_the_previous_stage(
    task: ToyTask, model: sp.Model, tmp_path: Path, goes_on: bool
) -> None:
    """The second stage makes each score worse: with its weights the net predicts no labels."""

    def forget(model: sp.Model) -> None:
        nn.init.zeros_(model.inference_net.linear.weight)
        nn.init.constant_(model.inference_net.linear.bias, -9)

    learns = sp.Stage("one", (net_phase(adam(lr=0.1)),), 3, frozen=("energy",))
    forgets = sp.Stage("two", (net_phase(adam(lr=1e-9)),), 2, frozen=("energy",), start=forget, goes_on=goes_on)
    loop = make_loop(model, task, [learns, forgets], tmp_path / "run")
    loop.run()
    history = [json.loads(line) for line in (tmp_path / "run/history.jsonl").read_text().splitlines()]
    assert [record["best"] for record in history[3:]] == ([False, False] if goes_on else [True, False])
    assert (model.inference_net.linear.weight.abs().max().item() > 1e-3) == goes_on


def test_logged_losses_are_means_over_examples(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    phase = sp.Phase("net", ("inference_net",), net_phase().loss, adam(lr=1e-30, weight_decay=0))
    task.parts["train"] = task.parts["train"][:20]  # a last batch of 4
    stage = sp.Stage("s", (phase,), 1, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.run()
    batch = task.collate(task.part("train"))
    expected = cross_entropy(LiveContext(NetStates(model), batch)).mean().item()
    assert math.isclose(loop.folder.history()[0]["losses"]["net.cross_entropy"], expected, rel_tol=1e-5)


def test_accumulation_makes_the_same_update(task: ToyTask, tmp_path: Path) -> None:
    states = []
    for parts in (1, 3):
        model = model_for(task)
        model.energy.drop.p = 0.0
        sgd = sp.Player(type="sgd", lr=0.1, clip=1.0)
        stage = sp.Stage("s", (energy_phase(sgd), net_phase(sgd)), 2)
        make_loop(model, task, [stage], tmp_path / str(parts), config={"accumulate": parts}).run()
        states.append(model.state_dict())
    for name, value in states[0].items():
        torch.testing.assert_close(value, states[1][name])


def test_early_stopping_counts_epochs_without_a_better_score(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (net_phase(),), 50, frozen=("energy",), patience=3, select=lambda model, batches: 1.0)
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.run()
    assert len(loop.folder.history()) == 4


def test_a_phase_may_have_its_own_gradient_rule(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    updates = []

    def rule(update: Any) -> None:
        updates.append((update.stage.name, update.phase.name, update.loss.ndim, len(update.parameters)))
        for parameter in update.parameters:
            parameter.grad = torch.ones_like(parameter)

    initial = model.inference_net.linear.bias.detach().clone()
    sgd = sp.Player(type="sgd", lr=0.5, weight_decay=0, clip=None)
    stage = sp.Stage("s", (net_phase(sgd, gradient=rule),), 1, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.begin(stage)
    loop.run_batch(stage, np.arange(8))
    assert updates == [("s", "net", 0, 2)]
    torch.testing.assert_close(model.inference_net.linear.bias, initial - 0.5)


def test_a_gradient_that_is_not_finite_changes_no_weights(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    """A finite loss whose gradient is NaN: sqrt at 0."""

    def loss(context: Any) -> dict[str, torch.Tensor]:
        return {"root": (context.proposal.logits * 0).sum((1, 2)).abs().sqrt()}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, adam(clip=1.0)),), 1, frozen=("energy",))
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    loop = make_loop(model, task, [stage], tmp_path / "clipped")
    with pytest.raises(NonFiniteLoss, match=r"gradient norm of phase 'net' is nan.*There is no checkpoint yet"):
        loop.run()
    assert all(torch.equal(value, initial[name]) for name, value in model.state_dict().items())


def test_measures_are_means_and_use_their_own_random_numbers(task: ToyTask, tmp_path: Path) -> None:
    def measures(context: Any) -> dict[str, torch.Tensor]:
        return {"row": context.batch.rows.float(), "noise": torch.rand(len(context.batch))}

    states = []
    for function in (None, measures):
        model = model_for(task)
        stage = sp.Stage("s", (net_phase(measures=function),), 1, frozen=("energy",))
        loop = make_loop(model, task, [stage], tmp_path / str(function is None), config={"gradient_norms_every": 1})
        loop.run()
        states.append(torch.get_rng_state())
    record = loop.folder.history()[0]
    assert set(record["measures"]) == {"net.row", "net.noise"}
    assert record["measures"]["net.row"] == pytest.approx(15.5)
    assert torch.equal(*states)


def test_a_gradient_norm_is_measured_before_scaling() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    active = ActivePhase(net_phase(), {"p": parameter}, frozenset(), Accelerator(cpu=True))
    parameter.grad = torch.tensor([24.0, 32.0])
    assert active.gradient_norm() == 40.0
    assert active.gradient_norm(torch.amp.GradScaler("cpu", init_scale=8.0)) == 5.0


def test_weights_that_are_not_finite_are_never_saved(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    """Without clipping no norm is checked. The gradient of the last batch is NaN, but its loss is finite."""
    calls = []

    def loss(context: Any) -> dict[str, torch.Tensor]:
        calls.append(1)
        root = (context.proposal.logits * 0).sum((1, 2)).abs().sqrt()
        return {"cross_entropy": cross_entropy(context) + (root if len(calls) == 8 else 0)}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, ADAM),), 3, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run", checkpoint_seconds=0.0)
    with pytest.raises(NonFiniteLoss, match=r"weights of phase 'net' is nan.*epoch 2.*last good checkpoint"):
        loop.run()
    for weights in (loop.folder.checkpoint.load()["model"], loop.folder.weights()):
        assert all(torch.isfinite(value).all() for value in weights.values())


def test_stopping_does_not_save_weights_that_are_not_finite(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    def loss(context: Any) -> dict[str, torch.Tensor]:
        return {"root": (context.proposal.logits * 0).sum((1, 2)).abs().sqrt()}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, ADAM),), 1, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run", stop=lambda: True)
    with pytest.raises(NonFiniteLoss, match="weights of phase 'net' is nan"):
        loop.run()
    assert not loop.folder.checkpoint.exists()


def test_shared_parameters_are_saved_once_and_restored(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    model.energy.linear = model.inference_net.linear
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save({"model": dict(model.state_dict())})
    weights = checkpoint.load()["model"]
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_a_term_that_does_not_reach_the_phase_has_no_gradient_norm(
    model: sp.Model, task: ToyTask, tmp_path: Path
) -> None:
    def loss(context: Any) -> dict[str, torch.Tensor]:
        return {"own": cross_entropy(context), "other": context.energy(context.batch.gold)[:, 0]}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, ADAM),), 1, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.run()
    assert loop.folder.history()[0]["gradient_norms"]["net.other"] == 0.0


def test_a_rule_that_is_not_additive_rejects_accumulation(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    stage = sp.Stage("s", (net_phase(additive=False),), 1, frozen=("energy",))
    with pytest.raises(ConfigError, match="phase 'net' can't be accumulated"):
        make_loop(model, task, [stage], tmp_path / "run", config={"accumulate": 2})


def test_cached_values_have_gradients_even_if_computed_without(model: sp.Model, task: ToyTask) -> None:
    context = LiveContext(NetStates(model), task.collate(task.part("train")))
    with torch.no_grad():
        context.energy(context.proposal.mean)
    assert context.proposal.mean.requires_grad and context.energy(context.batch.gold).requires_grad


def test_an_infinite_loss_names_phase_epoch_and_batch(model: sp.Model, task: ToyTask, tmp_path: Path) -> None:
    calls = []

    def loss(context: Any) -> dict[str, torch.Tensor]:
        calls.append(1)
        value = cross_entropy(context)
        return {"cross_entropy": value / (0.0 if len(calls) == 6 else 1.0)}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, ADAM),), 3, frozen=("energy",))
    loop = make_loop(model, task, [stage], tmp_path / "run", checkpoint_seconds=0.0)
    with pytest.raises(NonFiniteLoss, match=r"'cross_entropy' of phase 'net' is inf.*epoch 2, batch 1, update 5"):
        loop.run()
    state = loop.folder.checkpoint.load()
    assert all(torch.isfinite(value).all() for value in state["model"].values())
    assert state["position"]["epoch"] == 1


def test_a_loss_that_is_not_finite_from_the_start_names_the_component(task: ToyTask, tmp_path: Path) -> None:
    """A lower learning rate would not help."""

    class Logarithm(ToyEnergy):
        def forward(self, features: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return super().forward(features, y).square().neg().log()

    _, config = parsed("trainer", "energy", net={"lr": 7.0}, batch_size=8)
    for model, message in (
        (model_for(task, Logarithm), r"the output of energy \(Logarithm\) is the first that is not finite$"),
        (
            model_for(task),
            r"a lower learning rate \(.*; trainer\.energy\.lr=0\.001, trainer\.net\.lr=7\), .* may help",
        ),
    ):
        factor = 1.0 if isinstance(model.energy, Logarithm) else float("nan")
        phase = sp.Phase("e", ("energy",), lambda c, scale=factor: {"e": c.energy(c.batch.gold)[:, 0] * scale}, ADAM)
        stage = sp.Stage("s", (phase,), 1, frozen=("inference_net",))
        with pytest.raises(NonFiniteLoss, match=rf"update 0\. There is no checkpoint yet; {message}"):
            make_loop(model, task, [stage], tmp_path / type(model.energy).__name__, config).run()


def test_a_stopped_and_resumed_run_ends_like_an_uninterrupted_one(task: ToyTask, tmp_path: Path) -> None:
    def build_loop(folder: Path, **callbacks: Any) -> Loop:
        starts.append(0)

        def start(model: sp.Model) -> None:
            starts[-1] += 1
            nn.init.normal_(model.energy.linear.weight)  # consumes randomness: must not happen twice

        plateau = sp.PlateauConfig(patience=0)
        first = sp.Stage("first", (net_phase(adam(plateau=plateau)),), 2, frozen=("energy",))
        second = sp.Stage("second", (energy_phase(frozen_dropout=True), net_phase()), 3, rounds=2, start=start)
        return make_loop(model_for(task), task, [first, second], folder, checkpoint_seconds=0.0, **callbacks)

    starts: list[int] = []
    check_resuming(build_loop, tmp_path, (3, 8, 10, 17))
    assert starts == [1, *[0, 1], *[1, 0], *[1, 0], *[1, 0]]


def test_the_seconds_of_an_epoch_include_those_before_a_stop(
    task: ToyTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves by one second per batch, and an epoch has 4 batches."""
    seconds, run_batch = [], Loop.run_batch
    monkeypatch.setattr(Loop, "run_batch", lambda *args: seconds.append(1) or run_batch(*args))
    monkeypatch.setattr("spen_plugins.loop.loop.time", SimpleNamespace(perf_counter=lambda: float(len(seconds))))
    stage = sp.Stage("s", (net_phase(),), 3, frozen=("energy",))
    with pytest.raises(Interrupted):
        make_loop(model_for(task), task, [stage], tmp_path, stop=stop_after(6)).run()
    make_loop(model_for(task), task, [stage], tmp_path).run(resume=True)
    assert [record["seconds"] for record in RunFolder(tmp_path).times()] == [4, 4, 4]


class NoisyTask(ToyTask, sp.Augments):
    """Adds noise to training examples, and records the first number of each example that it collates."""

    def load(self) -> None:
        super().load()
        self.collated: list[list[float]] = []

    def augment(self, example: Any, rng: np.random.Generator) -> Any:
        return example[0] + torch.from_numpy(rng.normal(size=4)).float(), example[1]

    def collate(self, examples: Any, rows: Any = None) -> sp.Batch:
        batch = super().collate(examples, rows)
        self.collated.append(batch.x.inputs["vector"][:, 0].tolist())
        return batch


def make_noisy_loop(folder: Path, config: dict[str, Any] | None = None, **callbacks: Any) -> tuple[Loop, NoisyTask]:
    """Two stages of two epochs of 32 examples in batches of 8; the stage's own score reads the validation part."""
    task = NoisyTask()
    select = lambda model, batches: float(sum(model.propose(b.x).logits.sum() for b in batches))  # noqa: E731
    stages = [sp.Stage(name, (net_phase(),), 2, frozen=("energy",), select=select) for name in ("first", "second")]
    return make_loop(model_for(task), task, stages, folder, config, **callbacks), task


def test_augmented_training_resumes_exactly(tmp_path: Path) -> None:
    """Stops are within an epoch of two passes, between them, at its end, and in the second stage."""
    passes = {"epoch_updates": 8}
    check_resuming(
        lambda folder, **callbacks: make_noisy_loop(folder, passes, **callbacks)[0], tmp_path, (1, 3, 7, 10, 20, 31)
    )


def test_a_mask_of_infinities_is_restored_and_other_infinities_are_rejected(tmp_path: Path) -> None:
    def make_masked(folder: Path, **callbacks: Any) -> Loop:
        loop, _ = make_noisy_loop(folder, **callbacks)
        loop.model.inference_net.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
        return loop

    make_masked(tmp_path / "whole").run()
    with pytest.raises(Interrupted):
        make_masked(tmp_path / "part", stop=stop_after(5)).run()
    resumed = make_masked(tmp_path / "part")
    resumed.run(resume=True)
    assert resumed.model.inference_net.mask.tolist() == [0.0, -math.inf]
    resumed_file, whole_file = (tmp_path / name / "weights.safetensors" for name in ("part", "whole"))
    assert resumed_file.read_bytes() == whole_file.read_bytes()
    model = make_masked(tmp_path / "other").model
    RunFolder(tmp_path / "whole").load_weights(model)
    model.inference_net.mask[0] = math.inf
    RunFolder(tmp_path / "other").save_weights(model)
    model.inference_net.mask[0] = 0.0
    with pytest.raises(RunError, match=r"found 1 of 2 numbers in inference_net\.mask that are NaN or infinite"):
        RunFolder(tmp_path / "other").load_weights(model)


def test_an_example_is_augmented_afresh_in_each_stage_and_epoch_and_never_in_evaluation(tmp_path: Path) -> None:
    loop, task = make_noisy_loop(tmp_path / "run", {"accumulate": 2})
    loop.run()
    training, validation = ([b for b in task.collated if len(b) == size] for size in (4, 8))
    assert len(training) == 2 * 2 * 4 * 2 and len(validation) == 2 * 2 * 2
    expected = sorted(example[0][0].item() for example in task.part("validation"))
    assert all(sorted(numbers) == expected for numbers in validation)
    numbers = [number for numbers in training for number in numbers]
    assert len(set(numbers)) == 2 * 2 * 32, "each is drawn once a stage and epoch"
    whole_loop, whole_task = make_noisy_loop(tmp_path / "whole")
    whole_loop.run()
    whole_numbers = [number for numbers in whole_task.collated[:4] for number in numbers]
    assert sorted(whole_numbers) == sorted(numbers[:32]), "parts of batches are those of whole batches"


def test_evaluation_has_its_own_batch_size(tmp_path: Path) -> None:
    assert sp.TrainerConfig(batch_size=8).evaluated_at_once == 32
    loop, task = make_noisy_loop(tmp_path / "run", {"evaluation_batch_size": 3})
    loop.run()
    sizes = [len(numbers) for numbers in task.collated]
    assert sizes == ([8] * 4 + [3, 3, 2] * 2) * 4, "the task's score and the stage's own, after each epoch"


def test_the_noise_of_an_example_depends_on_seed_stage_epoch_and_row(monkeypatch: pytest.MonkeyPatch) -> None:
    task = NoisyTask()
    train = task.part("train")
    stage = sp.Stage("s", (net_phase(),), 1, frozen=("energy",))
    batch = collate_rows(task, stage, train, [9, 4], (5, 1, 2))
    for row, x, gold in zip((9, 4), batch.x.inputs["vector"], batch.gold[:, 0], strict=True):
        noise = np.random.default_rng((5, 1, 2, row)).normal(size=4)
        torch.testing.assert_close(x, train[row][0] + torch.from_numpy(noise).float())
        assert torch.equal(gold, train[row][1])
    plain, collated = ToyTask(), []
    monkeypatch.setattr(
        plain, "collate", lambda examples, rows: (collated.extend(examples), task.collate(examples, rows))[1]
    )
    collate_rows(plain, stage, train, range(32), (5, 1, 2))
    assert all(a is b for a, b in zip(collated, train, strict=True)), "a task without augmentation costs nothing"


@pytest.mark.parametrize(("learned", "epochs"), [(True, 2), (False, 6)])
def test_patience_and_plateau_wait_for_a_score_above_the_constant_predictor(
    model: sp.Model, task: ToyTask, tmp_path: Path, learned: bool, epochs: int
) -> None:
    phase = net_phase(adam(lr=1e-6, plateau={"factor": 0.5, "patience": 0}))
    loop = make_loop(model, task, [sp.Stage("s", (phase,), 6, frozen=("energy",), patience=1)], tmp_path / "run")
    loop.constant.__dict__["validation"] = -1.0 if learned else 1.0
    loop.run()
    history = loop.folder.history()
    assert len(history) == epochs
    assert (loop.active == []) and (history[-1]["learning_rate"]["net"] < 1e-6) == learned


def test_denormal_numbers_are_zero_only_in_training_and_prediction(
    model: sp.Model, task: ToyTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest, halves = torch.tensor(torch.finfo(torch.float32).tiny), []
    propose = sp.Model.propose
    monkeypatch.setattr(sp.Model, "propose", lambda self, x: (halves.append(smallest / 2), propose(self, x))[1])

    def loss(context: Any) -> dict[str, torch.Tensor]:
        halves.append(smallest / 2)
        return {"cross_entropy": cross_entropy(context)}

    stage = sp.Stage("s", (sp.Phase("net", ("inference_net",), loss, ADAM),), 1, frozen=("energy",))
    make_loop(model, task, [stage], tmp_path / "run").run()
    assert len(halves) > 2 and not any(halves)
    halves.clear()
    for _ in proposals(model, task, task.part("test"), 4, "cpu"):
        assert smallest / 2 > 0, "the caller's own mode"
    assert halves and not any(halves)
    torch.set_flush_denormal(True)
    try:
        list(proposals(model, task, task.part("test"), 4, "cpu"))
        assert smallest / 2 == 0, "the caller's own mode"
    finally:
        torch.set_flush_denormal(False)


def test_epoch_order_is_a_function_of_seed_stage_and_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, 1000)
    batches = batches_of_pass(Epochs(lengths, 16, 1, 1, 0), 3)
    assert all((a == b).all() for a, b in zip(batches, batches_of_pass(Epochs(lengths, 16, 1, 1, 0), 3), strict=True))
    assert sorted(np.concatenate(batches)) == list(range(1000))
    for seed, stage, number in ((2, 0, 3), (1, 1, 3), (1, 0, 4)):
        other_batches = batches_of_pass(Epochs(lengths, 16, 1, seed, stage), number)
        assert (np.concatenate(other_batches) != np.concatenate(batches)).any()
    ranges = [np.ptp(lengths[rows]) for rows in batches]
    assert np.mean(ranges) < 5, "a batch holds examples of like length"
    assert sorted(np.concatenate(evaluation_batches(lengths, 7))) == list(range(1000))


def test_state_survives_the_disk_bit_by_bit(tmp_path: Path) -> None:
    torch.manual_seed(3)
    state = {"a": [1, 0.1, None, True, math.inf], 7: {"t": torch.randn(3), "deep": [torch.arange(2)]}}
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.save({"state": state, "random": random_state(), "best": -math.inf, "list": [1.5, {"x": math.nan}]})
    draws = torch.rand(4), np.random.rand(4)
    [path] = checkpoint.folder.glob("*.json")
    json.loads(path.read_text(), parse_constant=pytest.fail)
    restored = checkpoint.load()
    set_random_state(restored["random"])
    assert torch.equal(draws[0], torch.rand(4)) and (draws[1] == np.random.rand(4)).all()
    assert restored["state"]["a"] == state["a"] and restored["best"] == -math.inf
    assert restored["list"][0] == 1.5 and math.isnan(restored["list"][1]["x"])
    assert torch.equal(restored["state"][7]["t"], state[7]["t"]) and torch.equal(
        restored["state"][7]["deep"][0], torch.arange(2)
    )
    json.dumps(flatten(state, {}))
    with pytest.raises(TypeError, match="can't be saved"):
        flatten({"a": object()}, {})
    assert unflatten(flatten({"a": 1}, {}), {}) == {"a": 1}


class LearnedEnergy(ToyEnergy):
    """Records whether its encoded features have a graph."""

    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.graphs: list[bool] = []

    def encode(self, x: sp.X) -> torch.Tensor:
        features = super().encode(x)
        self.graphs.append(features.requires_grad)
        return features


def draw_numbers() -> tuple[float, float, float]:
    return random.random(), np.random.rand(), torch.rand(()).item()


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_one_seed_seeds_all_three_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    expected = draw_numbers()
    seed_everything(seed)
    assert draw_numbers() == expected
    seed_everything(seed + 2**40)  # NumPy rejects this seed
    assert draw_numbers() == expected


def test_an_energy_that_is_not_updated_is_encoded_without_a_graph(task: ToyTask, tmp_path: Path) -> None:
    model = model_for(task, LearnedEnergy)
    stage = sp.Stage("s", (net_phase(), energy_phase()), 1)
    loop = make_loop(model, task, [stage], tmp_path / "run")
    loop.begin(stage)
    initial = {name: p.clone() for name, p in model.named_parameters()}
    loop.run_batch(stage, np.arange(8))
    assert model.energy.graphs == [False, True]  # the net's phase, then the energy's own
    assert all(not torch.equal(p, initial[name]) for name, p in model.named_parameters())


def test_attention_can_be_differentiated_twice_where_a_phase_needs_it() -> None:
    phase = sp.Phase("net", (), lambda context: {}, sp.Player())
    for twice in (False, True):
        stage = sp.Stage("s", (phase, replace(phase, name="energy", second_derivatives=twice)), 1)
        with attention_kernels(stage):
            assert torch.backends.cuda.flash_sdp_enabled() != twice
    assert torch.backends.cuda.flash_sdp_enabled()
