"""The schedule of SEAL-dynamic, and that it learns."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

import spen_plugins as sp
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.trainers.basic import CrossEntropy
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.trainer import Context
from spen_seal.contrast import Nce
from spen_seal.dynamic import Dynamic
from spen_seal.labels import Labels
from spen_seal.margin import CompoundMargin
from tests.seal.toys import make, proposal_for, toy


class FreshContext(Context):
    """A context without a cache."""

    def __init__(self, model, batch):
        self.model, self.batch = model, batch

    @property
    def energy(self):
        return self.model.energy.at(self.batch.x)

    @property
    def proposal(self):
        return self.model.propose(self.batch.x)


def make_model(task, loss=Nce, **fields):
    return sp.Model(make(Independent, task), make(Labels, task, hidden=3), make(loss, task, **fields))


def make_stage(task, model, **fields):
    return Dynamic(Dynamic.Config(**fields)).stages(model, task)[0]


def test_the_released_schedule_is_rounds_of_steps():
    task, _ = toy("labels")
    stage = make_stage(task, make_model(task), energy=sp.Player(steps=12), rounds=5)
    assert [(phase.name, phase.player.steps) for phase in stage.phases] == [("energy", 12), ("inference_net", 1)]
    assert stage.rounds == 5
    assert [phase.player for phase in stage.phases] == [sp.Player(steps=12), sp.Player()]
    assert stage.phases[0].frozen_dropout


def test_the_net_may_begin_and_may_sample_without_dropout():
    task, _ = toy("labels")
    stage = make_stage(task, make_model(task), first="net", sampling_dropout=False)
    assert [phase.name for phase in stage.phases] == ["inference_net", "energy"]
    assert not stage.phases[1].frozen_dropout


@pytest.mark.parametrize("has_dropout", [False, True])
def test_the_energy_teaches_the_net_with_dropout_only_if_asked(has_dropout):
    task, _ = toy("labels")
    stage = make_stage(task, make_model(task), **({"energy_dropout": True} if has_dropout else {}))
    assert [phase.frozen_dropout for phase in stage.phases] == [True, has_dropout]


@pytest.mark.parametrize(("redraw", "is_same"), [("step", False), ("round", True)])
def test_samples_of_a_round_are_drawn_from_one_proposal(redraw, is_same, monkeypatch):
    task, batch = toy("labels")
    model = make_model(task, samples=30, redraw=redraw)
    nets = NetStates(model)
    context, outputs = LiveContext(nets, batch), []
    forward = model.energy.forward
    monkeypatch.setattr(model.energy, "forward", lambda features, y: outputs.append(y.detach()) or forward(features, y))
    energy = make_stage(task, model).phases[0]
    for _ in range(2):
        energy.loss(context)
        nets.moves["energy"] += 1
    assert torch.equal(*outputs) is is_same
    nets.moves["inference_net"] += 1  # a new round: the net has moved
    energy.loss(context)
    assert not torch.equal(outputs[1], outputs[2])


def test_the_net_minimises_both_terms_with_their_weights():
    task, batch = toy("labels")
    model = make_model(task)
    terms = (
        make_stage(task, model, energy_weight=0.5, cross_entropy_weight=2.0).phases[1].loss(FreshContext(model, batch))
    )
    proposal = model.propose(batch.x)
    torch.testing.assert_close(terms["energy"], 0.5 * model.energy.at(batch.x)(proposal.mean)[:, 0])
    bce = torch.nn.functional.binary_cross_entropy(proposal.mean, batch.gold, reduction="none").sum((1, 2))
    torch.testing.assert_close(terms["cross_entropy"], 2.0 * bce)
    per_variable = make_stage(task, model, per_variable=True).phases[1].loss(FreshContext(model, batch))
    torch.testing.assert_close(per_variable["cross_entropy"], bce / 4)


@pytest.mark.parametrize("share", [None, 0.5])
def test_without_weight_a_term_is_not_computed(share):
    task, batch = toy("labels")
    model = make_model(task)
    control = make_stage(task, model, energy_weight=0.0, energy_share=share)
    model.energy_loss.net_terms = lambda *_: pytest.fail("the energy's term has no weight")
    assert list(control.phases[1].loss(FreshContext(model, batch))) == ["cross_entropy"]
    assert control.phases[0].trains == ("energy",)
    with pytest.raises(ValidationError, match="the net learns nothing"):
        Dynamic.Config(energy_weight=0.0, cross_entropy_weight=0.0)


@pytest.mark.parametrize(("weight", "trains", "frozen"), [(1.0, 2, ()), (0.0, 1, ("energy_loss",))])
def test_an_energy_loss_with_parameters_moves_with_the_net(weight, trains, frozen):
    task, _ = toy("labels")
    stage = make_stage(task, make_model(task, CompoundMargin), energy_weight=weight)
    assert stage.phases[1].trains == ("inference_net", "energy_loss")[:trains]
    assert stage.frozen == frozen


def test_cross_entropy_leaves_the_energy_alone_and_can_match_updates():
    task, batch = toy("labels")
    model = make_model(task, CompoundMargin)
    (stage,) = CrossEntropy(CrossEntropy.Config(net=sp.Player(steps=2), rounds=5)).stages(model, task)
    assert set(stage.frozen) == {"energy", "energy_loss"}
    assert (stage.rounds, stage.phases[0].player.steps, stage.phases[0].trains) == (5, 2, ("inference_net",))
    (stage,) = CrossEntropy(CrossEntropy.Config()).stages(sp.Model(model.inference_net, None, None), task)
    assert stage.frozen == ()
    assert stage.phases[0].loss(FreshContext(model, batch))["cross_entropy"].shape == (4,)


def test_the_energy_learns_to_prefer_gold_to_the_nets_samples():
    """A few hundred updates on one batch: gold's energy falls below that of every other likely output."""
    task, batch = toy("labels")
    model = make_model(task)
    stage = make_stage(task, model, energy=sp.Player(lr=0.05))
    optimizer = torch.optim.AdamW(model.energy.parameters(), lr=0.05)
    for _ in range(300):
        loss = sum(term.mean() for term in stage.phases[0].loss(FreshContext(model, batch)).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bound, proposal = model.energy.at(batch.x), proposal_for(task, batch, 0.1)
    samples = proposal.sample(200)
    is_wrong = (samples != batch.gold).any(-1)
    assert (bound(batch.gold) < bound(samples))[is_wrong].double().mean() > 0.95


def test_the_warm_up_trains_the_net_by_cross_entropy_alone():
    task, batch = toy("labels")
    model = make_model(task, CompoundMargin)
    warmup, seal = Dynamic(Dynamic.Config(warmup_epochs=2, epochs=5, energy_weight=0.5)).stages(model, task)
    assert (warmup.name, warmup.epochs, warmup.patience) == ("warmup", 2, None)
    assert (seal.name, seal.epochs, seal.patience) == ("seal", 5, 20)
    terms = [set(stage.phases[1].loss(FreshContext(model, batch))) for stage in (warmup, seal)]
    assert terms == [{"cross_entropy"}, {"energy", "cross_entropy"}]
    assert warmup.frozen == ("energy_loss",) and seal.frozen == ()
    with pytest.raises(ValidationError, match="warmup_epochs requires"):
        Dynamic.Config(warmup_epochs=1, cross_entropy_weight=0)


def test_the_cost_net_may_be_its_own_player():
    task, _ = toy("labels")
    sgd = sp.Player(type="sgd", lr=0.1, steps=2)
    stage = make_stage(task, make_model(task, CompoundMargin), cost_net=sgd, energy_weight=0.5, first="net")
    assert [(phase.name, phase.trains) for phase in stage.phases] == [
        ("inference_net", ("inference_net",)),
        ("cost_net", ("energy_loss",)),
        ("energy", ("energy",)),
    ]
    assert stage.phases[1].player == sgd and not stage.frozen
    warmup, _ = Dynamic(Dynamic.Config(cost_net=sgd, warmup_epochs=1)).stages(make_model(task, CompoundMargin), task)
    assert [phase.name for phase in warmup.phases] == ["energy", "inference_net"] and warmup.frozen == ("energy_loss",)
    with pytest.raises(sp.ConfigError, match=r"trainer\.cost_net: Nce has no cost-augmented net"):
        make_stage(task, make_model(task), cost_net=sgd)


def test_the_cost_net_minimises_lambda_times_the_net_term():
    task, batch = toy("labels")
    model = make_model(task, CompoundMargin)
    stage = make_stage(task, model, cost_net=sp.Player(), energy_weight=0.5)
    context = FreshContext(model, batch)
    [loss] = stage.phases[2].loss(context).values()
    [net_term] = model.energy_loss.net_terms(context.energy, batch, context.proposal).values()
    torch.testing.assert_close(loss, 0.5 * net_term)
