"""The trainer: its stages, what it refuses before training starts, the loop with it, exact resume."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spen_plugins as sp
from spen_implicit.bilevel import Bilevel
from spen_implicit.divergence import ContrastiveDivergence
from spen_implicit.gradient import ImplicitGradient
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.testing import check_trainer
from spen_seal.contrast import Nce
from spen_seal.margin import CompoundMargin, Margin
from spen_seal.regression import Regression
from tests.e2e.toys import energy_for, make, resumes_exactly, toy
from tests.infnet.toys import loop_for

PLAYER = sp.Player(type="adam", lr=0.01, weight_decay=0.0)
LOSSES = {
    "cd": lambda task: make(ContrastiveDivergence, task, samples=3),
    "ssvm": lambda task: make(Margin, task, cost="score"),
    "dvn": lambda task: make(Regression, task),
}


def trainer(**fields: object) -> Bilevel:
    common = {"epochs": 2, "batch_size": 4, "net": PLAYER, "energy": PLAYER, "gradient_norms_every": 1}
    return Bilevel(Bilevel.Config(**{**common, **fields}))


def model_for(task: sp.Task, loss: str = "cd") -> sp.Model:
    return sp.Model(make(Independent, task), energy_for(task).float(), LOSSES[loss](task))


@pytest.mark.parametrize("kind", ["labels", "tags"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("inverse", ["series", "none"])
def test_contract(kind: str, loss: str, inverse: str) -> None:
    task, _ = toy(kind)
    check_trainer(trainer(inverse=inverse), model_for(task, loss), task)


def test_stages() -> None:
    task, _ = toy("tags")
    model = model_for(task)
    alone, both = trainer(net_epochs=3, net=PLAYER.model_copy(update={"steps": 4})).stages(model, task)
    assert (alone.name, alone.epochs, both.name, both.epochs) == ("net", 3, "bilevel", 2)
    inner, outer = both.phases
    assert (inner.name, inner.player.steps, outer.name) == ("inference_net", 4, "energy")
    assert inner.additive and not outer.additive and outer.frozen_dropout and outer.second_derivatives
    [control] = trainer(inverse="none").stages(model, task)
    assert control.phases[1].additive and control.phases[1].gradient is sp.Phase("", (), None, PLAYER).gradient


def test_the_auxiliary_loss() -> None:
    task, batch = toy("tags")
    model = model_for(task).double()
    context = sp.OneBatch(model, batch)
    found = trainer(energy_weight=0.3)._compute_auxiliary(context)
    proposal = context.proposal
    torch.testing.assert_close(found["cross_entropy"], -proposal.log_prob(batch.gold)[:, 0])
    torch.testing.assert_close(found["energy"], 0.3 * context.energy(proposal.mean)[:, 0])


def test_a_loss_whose_outputs_carry_no_gradient_is_refused(tmp_path) -> None:
    task, _ = toy("labels")
    for loss in (make(ContrastiveDivergence, task, outputs="discrete"), make(Nce, task, samples=3)):
        model = sp.Model(make(Independent, task), energy_for(task).float(), loss)
        with pytest.raises(sp.ConfigError, match=r"passes no gradient to the net.*trainer.inverse=none"):
            loop_for(model, task, trainer(), tmp_path / type(loss).__name__).run()
        early = loop_for(model, task, trainer(net_epochs=2), tmp_path / "early" / type(loss).__name__)
        with pytest.raises(sp.ConfigError, match="passes no gradient to the net"):
            early.run()
        assert not early.folder.history()
        loop_for(model, task, trainer(inverse="none", epochs=1), tmp_path / "control" / type(loss).__name__).run()


class _Once(torch.autograd.Function):
    """Sigmoid with a first derivative only, as kernels of some recurrent nets have."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(y := x.sigmoid())
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        [y] = ctx.saved_tensors
        return grad * y * (1 - y)


class Once(nn.Module):
    def forward(self, x):
        return _Once.apply(x)


def test_a_net_without_second_derivative_is_found_before_training(tmp_path) -> None:
    task, _ = toy("labels")
    model = model_for(task)
    model.inference_net.output = nn.Sequential(model.inference_net.output, Once())
    with pytest.raises(sp.ConfigError, match=r"no second derivative.*finite_differences"):
        loop_for(model, task, trainer(products="exact"), tmp_path / "exact").run()
    loop_for(model, task, trainer(products="finite_differences"), tmp_path / "differences").run()
    with pytest.warns(UserWarning, match="no second derivative.*finite differences"):
        loop_for(model, task, trainer(), tmp_path / "auto").run()


def test_products_are_chosen_when_each_stage_begins() -> None:
    """The choice of the first stage is lost if that is interrupted. The trial leaves no gradient behind."""
    task, _ = toy("labels")
    model = model_for(task)
    model.inference_net.output = nn.Sequential(model.inference_net.output, Once())
    for at in (0, 1):
        with pytest.warns(UserWarning, match="no second derivative"):
            trainer(net_epochs=1).stages(model, task)[at].start(model)
        assert all(p.grad is None for p in model.parameters())


def test_the_choice_of_products_survives_an_interruption() -> None:
    trained = ImplicitGradient(trainer().config, None, None)
    assert trained.products == "exact"
    trained.products = "finite_differences"
    resumed = ImplicitGradient(trainer().config, None, None)
    resumed.load_state_dict(trained.state_dict())
    assert resumed.products == "finite_differences"


def test_parts_of_a_batch_and_nets_of_the_loss_are_refused(tmp_path) -> None:
    task, _ = toy("labels")
    with pytest.raises(sp.ConfigError, match="accumulate=1"):
        loop_for(model_for(task), task, trainer(accumulate=2), tmp_path)
    model = sp.Model(make(Independent, task), energy_for(task).float(), make(CompoundMargin, task))
    with pytest.raises(sp.ConfigError, match="has its own net"):
        trainer().stages(model, task)


@pytest.mark.parametrize("products", ["exact", "finite_differences"])
def test_exact_resume(tmp_path, products: str) -> None:
    """Also in the middle of an epoch: the vector of the power iteration and the counts come back."""
    task, _ = toy("tags")

    def loop_in(folder, **options):
        torch.manual_seed(0)
        model = model_for(task)
        model.inference_net.features.dropout = nn.Dropout(0.3)
        made = trainer(net_epochs=1, power_every=2, products=products)
        return loop_for(model, task, made, folder, **options)

    batches = -(-len(task.part("train")) // 4)
    resumes_exactly(loop_in, tmp_path, ["net", "bilevel", "bilevel"], (batches + 1, 2 * batches + 2))


def test_the_history_has_the_measures(tmp_path) -> None:
    task, _ = toy("labels")
    loop = loop_for(model_for(task), task, trainer(), tmp_path)
    loop.run()
    measures = loop.folder.history()[0]["measures"]
    assert {f"energy.{name}" for name in ("explicit", "implicit", "eigenvalue_min", "eigenvalue_max", "ended")} <= set(
        measures
    )
    assert 0 <= measures["energy.ended"] <= 1


def test_parameters_that_need_no_gradient_stand_still(tmp_path) -> None:
    task, _ = toy("labels")
    model = model_for(task)
    held = [next(model.inference_net.parameters()), next(model.energy.parameters())]
    before = [p.requires_grad_(False).clone() for p in held]
    loop_for(model, task, trainer(), tmp_path).run()
    assert all(torch.equal(p, q) for p, q in zip(held, before, strict=True))


def test_measures_change_no_training(tmp_path) -> None:
    """Measures are logged at some updates, and the weights are the same without them."""
    task, _ = toy("labels")
    weights = []
    for every in (0, 1):
        torch.manual_seed(0)
        model = model_for(task)
        loop_for(model, task, trainer(gradient_norms_every=every), tmp_path / str(every)).run()
        weights.append(model.state_dict())
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name])
