"""The trainer of unrolled nets: its loss by hand, its stages, clamped and copied parameters, exact resume."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from accelerate import Accelerator

import spen_plugins as sp
from spen_e2e.unroll import Unroll
from spen_e2e.unrolled import Unrolled, iterates
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.losses.basic import Ssvm
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.trainers.basic import EnergyAlone
from spen_plugins.loop.evaluation import evaluate
from spen_plugins.loop.mistakes import rehearse
from spen_plugins.loop.recipe import Recipe
from spen_plugins.testing import check_trainer
from spen_seal.dynamic import Dynamic
from spen_seal.margin import Margin
from tests.e2e.toys import KINDS, Bad, check_slope, energy_for, make, net_for, resumes_exactly, toy
from tests.infnet.toys import loop_for

PLAYER = sp.Player(type="adam", lr=0.02, weight_decay=0.0)
CHAIN = {"energy.features": "inference_net.net.features", "energy.local": "inference_net.net.output"}


def make_trainer(**fields: object) -> Unroll:
    common = {"epochs": 2, "batch_size": 4, "net": PLAYER, "energy": PLAYER, "gradient_norms_every": 1}
    return Unroll(Unroll.Config(**{**common, **fields}))


def make_model(task: sp.Task, loss: sp.EnergyLoss | None = None, **fields: object) -> sp.Model:
    return sp.Model(net_for(task, **fields), energy_for(task), loss)


def make_chain_model(task: sp.Task, bias: bool = False) -> sp.Model:
    """A chain of tags, whose local terms have the shapes of the net at the start."""
    net = make(Independent, task, bias=bias)
    unrolled = Unrolled(Unrolled.Config(steps=2, entropy=1.0, rates="learned"), task, net=net)
    return sp.Model(unrolled, make(LinearChain, task), None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_variable", [False, True])
def test_the_loss_against_equation_9(kind: str, per_variable: bool) -> None:
    """1/T Σ_t 1/(T − t + 1) ℓ(y_t), t = 1 … T, with ℓ = −ln q of gold, written out for each kind of output."""
    task, batch = toy(kind)
    labelled = torch.arange(len(batch)) != 1
    batch = replace(batch, labelled=labelled, gold=batch.gold * labelled.view(-1, *[1] * (batch.gold.dim() - 1)))
    model, results = make_model(task), {}
    model.double()
    context = sp.OneBatch(model, batch)
    for selection in ("all", "last"):
        [stage] = make_trainer(iterates=selection, per_variable=per_variable).stages(model, task)
        [results[selection]] = stage.phases[0].loss(context).values()
    losses, gold, mask = [], batch.gold, batch.x.mask
    for logits in iterates(context.proposal)[1:]:
        if kind == "images":
            values = 0.5 * ((gold - logits) / 0.5).square() * mask.unsqueeze(1)
        elif kind == "tags":
            values = -gold * torch.log_softmax(logits, -1)
        else:
            p = torch.sigmoid(logits)
            values = -(gold * p.log() + (1 - gold) * (1 - p).log())
        sizes = mask.flatten(1).sum(-1) if mask is not None else gold.shape[-1]
        losses.append(values.flatten(1).sum(-1) / (sizes if per_variable else 1) * labelled)
    torch.testing.assert_close(results["last"], losses[2])
    torch.testing.assert_close(results["all"], (losses[0] / 3 + losses[1] / 2 + losses[2]) / 3)
    assert results["all"][1] == 0 and results["all"][0] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_gold_has_a_loss_of_zero_with_a_gradient(kind: str) -> None:
    task, batch = toy(kind)
    model = make_model(task)
    context = sp.OneBatch(model.double(), replace(batch, gold=None, labelled=torch.zeros_like(batch.labelled)))
    [stage] = make_trainer().stages(model, task)
    [loss] = stage.phases[0].loss(context).values()
    loss.sum().backward()
    assert loss.tolist() == [0] * len(batch) and not any(p.grad.any() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("kind", ["labels", "tags"])
@pytest.mark.parametrize("fields", [{}, {"rates": "learned", "momentum": 0.3}, {"checkpoint": True, "entropy": 0.5}])
@pytest.mark.parametrize("selection", ["all", "last"])
def test_contract(kind: str, fields: dict, selection: str) -> None:
    task, _ = toy(kind)
    model = make_model(task, **fields)
    trainers = [make_trainer(init_epochs=epochs, clamped_epochs=1, iterates=selection) for epochs in (0, 1)]
    check_trainer(trainers[0], model, task)
    check_trainer(trainers[1], model, task, ["inference_net.log_rates"])  # no step is made in stage `init`


def test_the_stages() -> None:
    task, _ = toy("tags")
    stages = make_trainer(init_epochs=3, clamped_epochs=4, epochs=5, patience=7).stages(make_model(task), task)
    assert [(s.name, s.epochs, s.patience) for s in stages] == [("init", 3, 7), ("clamped", 4, 7), ("all", 5, 7)]
    assert [s.name for s in make_trainer().stages(make_model(task), task)] == ["all"]
    images, _ = toy("images")
    model = make_model(images)
    assert [s.name for s in make_trainer(init_epochs=3).stages(model, images)] == [
        "all"
    ]  # nothing to train at the start


def test_the_stage_of_the_net_alone_makes_no_step(tmp_path) -> None:
    """Its loss is the net's own, and so are the scores by which its best epoch is chosen."""
    task, _ = toy("tags")
    model = make_model(task).float()
    loop = loop_for(model, task, make_trainer(init_epochs=2), tmp_path / "run")
    stage, initial = loop.stages[0], {k: v.clone() for k, v in model.state_dict().items()}
    loop.begin(stage)
    assert model.inference_net.steps == 0
    loop.run_epoch(stage)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, initial[name])}
    assert changed and all(name.startswith("inference_net.net.") for name in changed)
    [record] = loop.folder.history()
    net_only = sp.Model(model.inference_net.net, None, None)
    assert record["score"] == evaluate(net_only, task, task.part("validation"), 4, "cpu").compute()["exact_match"]
    loop.begin(loop.stages[1])
    assert model.inference_net.steps == 3


def test_clamped_parameters_stay(tmp_path) -> None:
    task, _ = toy("tags")
    model = make_chain_model(task)
    loop = loop_for(model, task, make_trainer(clamped_epochs=2), tmp_path / "run")
    initial = {k: v.clone() for k, v in model.state_dict().items()}
    loop.begin(loop.stages[0])
    loop.run_epoch(loop.stages[0])
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, initial[name])}
    assert changed == {"energy.pairs", "energy.start", "energy.end", "inference_net.log_rates"}
    loop.position = loop.position.next_stage()
    loop.begin(loop.stages[1])
    loop.run_epoch(loop.stages[1])
    unchanged = {name for name, value in model.state_dict().items() if torch.equal(value, initial[name])}
    assert not unchanged


def test_clamped_parameters_can_be_named() -> None:
    task, _ = toy("tags")
    [stage, _] = make_trainer(clamped_epochs=1, clamp=["energy.pairs", "inference_net"]).stages(
        make_chain_model(task), task
    )
    assert set(stage.frozen) == {
        "energy.pairs",
        "inference_net.log_rates",
        "inference_net.net.output.weight",
        *(
            f"inference_net.net.features.{name}"
            for name, _ in make_chain_model(task).energy.features.named_parameters()
        ),
    }
    assert "energy.local.weight" in stage.phases[0].trains


def test_the_local_terms_begin_as_the_pretrained_net(tmp_path) -> None:
    """With an entropy weight of 1, the net's own output is the minimum of the energy's local terms."""
    task, batch = toy("tags")
    model = make_chain_model(task)
    loop = loop_for(model, task, make_trainer(init_epochs=2, clamped_epochs=1, copies=CHAIN), tmp_path / "run")
    loop.begin(loop.stages[0])
    loop.run_epoch(loop.stages[0])
    assert not torch.equal(model.energy.local.weight, model.inference_net.net.output.weight)
    loop.position = loop.position.next_stage()
    loop.begin(loop.stages[1])
    assert torch.equal(model.energy.local.weight, model.inference_net.net.output.weight)
    for name, value in model.energy.features.named_parameters():
        assert torch.equal(value, model.inference_net.net.features.get_parameter(name))
    for value in (model.energy.pairs, model.energy.start, model.energy.end):
        torch.nn.init.zeros_(value)
    model.double()
    with torch.no_grad():
        steps = model.propose(batch.x).mean
    torch.testing.assert_close(steps, model.inference_net.net(batch.x).mean)


def test_copies_are_made_once_before_the_energy_learns() -> None:
    task, _ = toy("tags")
    model = make_chain_model(task)
    stages = make_trainer(init_epochs=1, clamped_epochs=1, copies=CHAIN).stages(model, task)
    for stage, copied in zip(stages, (False, True, False), strict=True):
        torch.nn.init.normal_(model.energy.local.weight)
        if stage.start is not None:
            stage.start(model)
        assert torch.equal(model.energy.local.weight, model.inference_net.net.output.weight) == copied


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"copies": {"energy.locl": "inference_net.net.output"}}, "'energy.locl'. Did you mean 'energy.local'"),
        ({"copies": {"energy.local": "inference_net.net.out"}}, "begins with 'inference_net.net.out'"),
        (
            {"copies": {"energy.pairs": "energy.start"}},
            r"energy.pairs of shape \(4, 4\) .*start, which has shape \(4,\)",
        ),
        ({"copies": {"inference_net.net.output": "energy.local"}}, "energy.local.bias, which does not exist.*{}"),
        ({"clamped_epochs": 1, "clamp": ["energy.features.tabel"]}, "trainer.clamp: no parameter.*Did you mean"),
        ({"clamped_epochs": 1, "clamp": ["energy", "inference_net"]}, "nothing to train: trainer.clamp freezes all"),
    ],
)
def test_prefixes_that_do_not_fit(fields: dict, message: str) -> None:
    task, _ = toy("tags")
    with pytest.raises(sp.ConfigError, match=message):
        make_trainer(**fields).stages(make_chain_model(task, bias=True), task)


def test_a_net_that_makes_no_steps_is_rejected() -> None:
    task, _ = toy("tags")
    model = sp.Model(make(Independent, task), energy_for(task), None)
    with pytest.raises(sp.ConfigError, match=r"found Independent.*Use inference_net 'e2e\.unrolled'"):
        make_trainer().stages(model, task)


def test_an_energy_without_a_second_derivative_is_found_before_anything_is_trained() -> None:
    task, _ = toy("tags")
    model = sp.Model(net_for(task).float(), Bad(sp.Config(), task), None)
    trainer = make_trainer(init_epochs=1)
    recipe = Recipe(model, task, trainer.stages(model, task), trainer.config, 0)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(sp.ConfigError, match="second derivative in y, and Bad has none"):
        rehearse(trainer, recipe, Accelerator(cpu=True))
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_an_interrupted_run_resumes_bit_for_bit_in_every_stage(tmp_path) -> None:
    task, _ = toy("tags")

    def loop_in(folder, **fields):
        torch.manual_seed(0)
        return loop_for(
            make_chain_model(task), task, make_trainer(init_epochs=1, clamped_epochs=1, copies=CHAIN), folder, **fields
        )

    resumes_exactly(loop_in, tmp_path, ["init", "clamped", "all", "all"], (2, 3, 5, 8, 10))


def test_measures(tmp_path) -> None:
    task, _ = toy("tags")
    model = make_chain_model(task)
    loop = loop_for(model, task, make_trainer(epochs=1, gradient_norms_every=100), tmp_path / "run")
    loop.run()
    [record] = loop.folder.history()
    assert record["measures"].keys() == {"energy.start", "energy.end", "energy.rate_1", "energy.rate_2"}
    assert record["measures"]["energy.rate_1"] == pytest.approx(1.0)  # at the first update


def test_it_learns_the_gold_of_a_chain(tmp_path) -> None:
    task, _ = toy("tags")
    loop = loop_for(make_chain_model(task), task, make_trainer(epochs=10, gradient_norms_every=0), tmp_path / "run")
    loop.run()
    losses = [record["losses"]["energy.iterates"] for record in loop.folder.history()]
    assert losses[-1] < 0.9 * losses[0]


def test_half_precision(tmp_path, monkeypatch) -> None:
    task, _ = toy("tags")
    loop = loop_for(make_chain_model(task), task, make_trainer(epochs=1, init_epochs=1), tmp_path / "run")
    monkeypatch.setattr(loop.accelerator, "autocast", lambda: torch.autocast("cpu", torch.bfloat16))
    loop.run()
    assert all(torch.isfinite(value).all() and value.dtype == torch.float32 for value in loop.model.parameters())


# Other trainers


def test_seals_margin_learns_through_the_steps() -> None:
    """The energy loss's gradient has a part through the violating output, which finite differences have too."""
    task, batch = toy("labels")
    model = make_model(task, Margin(Margin.Config(), task))
    model.double()

    def value() -> torch.Tensor:
        bound = model.energy.at(batch.x)
        return sum(t.sum() for t in model.energy_loss.terms(bound, batch, model.propose(batch.x)).values())

    for parameter in model.energy.parameters():
        check_slope(value, [parameter])


@pytest.mark.parametrize("name", ["dynamic", "energy"])
def test_other_trainers_train_energies_with_this_net(name: str, tmp_path) -> None:
    task, _ = toy("tags")
    if name == "dynamic":
        loss = Margin(Margin.Config(), task)
        other = Dynamic(Dynamic.Config(epochs=2, batch_size=4))
    else:
        loss = Ssvm(Ssvm.Config(starts=["net"]), task)
        other = EnergyAlone(EnergyAlone.Config(epochs=2, net_epochs=1, batch_size=4))
    model = make_model(task, loss).float()
    initial = {k: v.clone() for k, v in model.state_dict().items()}
    loop = loop_for(model, task, other, tmp_path / "run")
    loop.run()
    unchanged = {name for name, value in model.state_dict().items() if torch.equal(value, initial[name])}
    assert not unchanged
