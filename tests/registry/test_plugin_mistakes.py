"""Mistakes of plugin authors: checks and training say what broke, and a broken plugin disturbs no other."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from pydantic import Field
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins import testing
from spen_plugins.config.evaluation import evaluate
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.loop import ledger
from spen_plugins.loop.ownership import check_stages
from spen_plugins.loop.random_state import random_state
from spen_plugins.loop.rehearsal import rehearse
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from spen_plugins.runs.train import runner
from spen_plugins.settings.fields import wrong_default
from spen_plugins.testing import ToyFeatures, ToyLabels
from tests.loop.test_loop import ToyEnergy, ToyNet, ToyTask, energy_phase, make_loop, net_phase


class Energy(sp.Energy):
    def __init__(self, config: Any, task: sp.Task, features: Any = None) -> None:
        super().__init__(config, task, features)
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, features: Any, y: Tensor) -> Tensor:
        return (y.square() * self.weight).sum(-1)


class LayersInAList(Energy):
    def __init__(self, config: Any, task: sp.Task, features: Any = None) -> None:
        super().__init__(config, task, features)
        self.layers = [nn.Linear(4, 4)]

    def forward(self, features: Any, y: Tensor) -> Tensor:
        return self.layers[0](y).sum(-1)


class WeightsInADict(Energy):
    def __init__(self, config: Any, task: sp.Task, features: Any = None) -> None:
        super().__init__(config, task, features)
        self._weights = {"one": [torch.ones(4, requires_grad=True)]}


class Detaches(Energy):
    def forward(self, features: Any, y: Tensor) -> Tensor:
        return super().forward(features, y.detach())


class OneMoreAxis(Energy):
    def forward(self, features: Any, y: Tensor) -> Tensor:
        return super().forward(features, y).unsqueeze(-1)


class StopsHalfway(Energy):
    def forward(self, features: Any, y: Tensor) -> Tensor:
        return (y * y.detach() * self.weight).sum(-1)


class OneDerivative(Energy):
    def forward(self, features: Any, y: Tensor) -> Tensor:
        return Square.apply(y).sum(-1)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return y.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0] * gradient


@pytest.mark.parametrize(
    ("energy", "says"),
    [
        (LayersInAList, r"LayersInAList\.layers holds weights that are not registered .* nn\.ModuleList"),
        (WeightsInADict, r"WeightsInADict\._weights holds weights that are not registered"),
        (Detaches, "Detaches has no gradient in y"),
        (OneMoreAxis, r"OneMoreAxis gave energies of shape \(4, 3, 1\) .* expected \(batch, sample\) = \(4, 3\)"),
        (StopsHalfway, "Jacobian mismatch"),
        (OneDerivative, "Jacobian mismatch"),
    ],
)
def test_the_check_of_energies_says_what_broke(energy: type[Energy], says: str) -> None:
    task = ToyLabels()
    with pytest.raises((AssertionError, RuntimeError, PluginError), match=says):
        testing.check_energy(energy(sp.Config(), task), task)
    testing.check_energy(Energy(sp.Config(), task), task)


def net_that_returns(made: Callable[[sp.Proposal], Any], task: sp.Task) -> sp.InferenceNet:
    class Net(sp.InferenceNet):
        uses_features = True

        def __init__(self, config: Any, task: sp.Task, features: Any = None) -> None:
            super().__init__(config, task, features)
            self.linear = nn.Linear(features.output_dim, task.space.shape[-1])

        def forward(self, x: sp.X, energy: Any = None) -> Any:
            return made(self.space.independent(self.linear(self.features(x)).unsqueeze(1), x.mask))

    return Net(sp.Config(), task, ToyFeatures(task))


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        (lambda energies: {}, "has no term"),
        (lambda energies: {"a": 1.0}, "term 'a' is one number per example: found float, expected a tensor of shape"),
        (lambda energies: {"a": energies.sum()}, r"term 'a' is one number per example: found shape \(\)"),
        (lambda energies: {"a": energies.detach()}, "has no gradient to the energy"),
    ],
)
def test_the_check_of_energy_losses_says_what_broke(terms: Any, says: str) -> None:
    class Loss(sp.EnergyLoss):
        def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Any:
            return terms(energy(proposal.mean)[:, 0] * batch.labelled)

    task = ToyLabels()
    energy, net = Energy(sp.Config(), task), net_that_returns(lambda proposal: proposal, task)
    with pytest.raises(AssertionError, match=says):
        testing.check_energy_loss(Loss(sp.Config(), task), energy, net, task)


def by_cross_entropy(model: sp.Model, loss: Callable[[sp.Context], Any], epochs: int = 1) -> sp.Stage:
    phase = sp.Phase("net", ("inference_net",), loss, sp.Player())
    return sp.Stage("train", (phase,), epochs, frozen=sp.frozen_except(model, "inference_net"))


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        (lambda model: [by_cross_entropy(model, wanted, 0)], "T trains for no epoch"),
        (lambda model: [by_cross_entropy(model, lambda c: {"a": 1.0})], "term 'a': found float, expected a tensor"),
        (
            lambda model: [by_cross_entropy(model, lambda c: {"a": sp.cross_entropy(c).detach()})],
            "term 'a' is detached",
        ),
        (lambda model: [by_cross_entropy(model, lambda c: {"a": sp.cross_entropy(c).mean()})], r"found shape \(\)"),
    ],
)
def test_the_check_of_trainers_says_what_broke(stages: Any, says: str) -> None:
    class T(sp.Trainer):
        def stages(self, model: sp.Model, task: sp.Task) -> Any:
            return stages(model)

    task = ToyLabels()
    model = sp.Model(net_that_returns(lambda proposal: proposal, task), None, None)
    with pytest.raises(AssertionError, match=says):
        testing.check_trainer(T(sp.TrainerConfig()), model, task)


def wanted(context: sp.Context) -> Any:
    return {"cross_entropy": sp.cross_entropy(context)}


# The same mistakes in training, where nobody has called a check


@pytest.fixture
def toy() -> ToyTask:
    task = ToyTask(sp.Config())
    task.load()
    return task


def test_a_term_of_a_sum_of_energies_is_a_number_an_output(toy: ToyTask) -> None:
    class Whole(ToyEnergy):
        def forward(self, features: Any, y: Tensor) -> Tensor:
            return super().forward(features, y).sum()

    terms = {name: cls(sp.Config(), toy) for name, cls in (("sound", ToyEnergy), ("wrong", Whole))}
    cls = Registry().resolve("energy", "sum")
    batch = toy.collate(toy.part("train")[:3])
    with pytest.raises(PluginError, match=r"^Whole gave energies of shape \(\) .* = \(3, 2\)"):
        cls(cls.Config(), toy, terms=terms).at(batch.x)(torch.zeros(3, 2, 4))


def test_terms_are_tensors_by_name() -> None:
    for terms, says in (
        (torch.zeros(3), "the loss of phase 'p' is a Tensor; expected tensors by name"),
        ({"a": 1.0}, r"loss 'a' of phase 'p' is 1\.0; expected a tensor of shape \(batch,\)"),
    ):
        with pytest.raises(PluginError, match=says):
            ledger.check_terms(terms, 3, "p")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"loss": lambda context: {"ce": torch.zeros(len(context.batch))}}, "the loss of phase .* has no gradient"),
        ({"measures": lambda context: {"m": torch.zeros(())}}, r"measure 'm' of phase .*: found shape \(\)"),
    ],
)
def test_a_wrong_loss_is_told_in_training(toy: ToyTask, tmp_path: Any, changed: Any, says: str) -> None:
    model = sp.Model(ToyNet(sp.Config(), toy), ToyEnergy(sp.Config(), toy), None)
    wrong = sp.Phase(**{**vars(net_phase()), **changed})
    with pytest.raises(PluginError, match=says):
        make_loop(model, toy, [sp.Stage("s", (energy_phase(), wrong), 1)], tmp_path / "run").run()


def test_stages_are_a_list(toy: ToyTask) -> None:
    model = sp.Model(ToyNet(sp.Config(), toy), ToyEnergy(sp.Config(), toy), None)
    with pytest.raises(PluginError, match="the trainer's stages are a Stage; expected a list of Stage"):
        check_stages(model, sp.Stage("a", (energy_phase(), net_phase()), 1))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"trains": ("inference_net", "inference_net.liner")},
            "phase 'net' trains 'inference_net.liner', .* Did you mean",
        ),
        ({"frozen": ("energy", "cost_net")}, "'frozen' has 'cost_net', and the model has no parameter or module"),
    ],
)
def test_a_prefix_is_the_name_of_something(toy: ToyTask, fields: Any, says: str) -> None:
    model = sp.Model(ToyNet(sp.Config(), toy), ToyEnergy(sp.Config(), toy), None)
    phase = replace(net_phase(), trains=fields.get("trains", ("inference_net",)))
    with pytest.raises(ConfigError, match=says):
        check_stages(model, [sp.Stage("a", (phase,), 1, frozen=fields.get("frozen", ("energy",)))])


# A few examples pass through all stages before the first of them is trained


class NoForward(sp.Energy):
    """It is all there but for `forward`."""


class WrongName(ToyEnergy):
    def forward(self, features: Any, y: Tensor) -> Tensor:
        return self.scores(features, y)

    def scores(self, features: Any, y: Tensor) -> Tensor:
        return self.liner(y).sum(-1)


class WrongWidth(ToyEnergy):
    def encode(self, x: sp.X) -> Tensor:
        return self.linear(x.inputs["vector"][:, :3])


class Rule:
    """A loss and a gradient rule with a mistake each."""

    def __call__(self, update: sp.Update) -> None:
        update.backward(update.losses)

    @staticmethod
    def loss(context: sp.Context) -> Any:
        return {"a": context.proposal.logits.sum() / context.examples}


class Given(sp.Trainer):
    """A trainer with these stages."""

    def __init__(self, stages: list[sp.Stage]) -> None:
        super().__init__(sp.TrainerConfig())
        self.given = stages

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        return self.given


def rehearsed(toy: ToyTask, energy: type[sp.Energy] = ToyEnergy, **second: Any) -> sp.Model:
    """Rehearse two stages: cross entropy, which is right, and another one with the energy."""
    model = sp.Model(ToyNet(sp.Config(), toy), energy(sp.Config(), toy), None)
    fields = {name: second.pop(name) for name in ("loss", "gradient", "measures") if name in second}
    frozen = sp.frozen_except(model, "inference_net")
    stages = [
        sp.Stage("first", (replace(net_phase(), loss=wanted),), 1, frozen=frozen),
        sp.Stage("second", (replace(net_phase(), **fields),), 1, frozen=frozen, **second),
    ]
    rehearse(model, toy, Given(stages), check_stages(model, stages), 0, Accelerator(cpu=True))
    return model


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"energy": NoForward},
            "^NoForward.forward is called in phase 'net' of stage 'second', and is not implemented",
        ),
        (
            {"energy": WrongName},
            "^WrongName.scores fails in phase 'net' .*AttributeError: .*no attribute 'liner'.*line",
        ),
        ({"energy": WrongWidth}, "^WrongWidth.encode fails in phase 'net' of stage 'second', .*RuntimeError: mat1"),
        ({"loss": Rule.loss}, "^Rule.loss fails in phase 'net' .*AttributeError: 'LiveContext' .* 'examples'"),
        ({"loss": lambda c: {"a": sp.cross_entropy(c).mean()}}, r"loss 'a' of phase 'net' has shape \(\)"),
        ({"gradient": Rule()}, "in phase 'net' of stage 'second', .*AttributeError: 'Update' .* 'losses'"),
        ({"measures": lambda c: {"m": c.nothing}}, "AttributeError: 'LiveContext' object has no attribute 'nothing'"),
        ({"start": lambda model: model.nothing}, "fails at the start of stage 'second', .*no attribute 'nothing'"),
        ({"set": lambda: None}, "fails at the start of stage 'second', .*TypeError"),
        ({"select": lambda model, batches: batches.x}, "fails in the validation of stage 'second', .*'x'"),
    ],
)
def test_a_mistake_in_a_later_stage_is_named_before_training(toy: ToyTask, fields: Any, says: str) -> None:
    rehearsed(toy)
    with pytest.raises(PluginError, match=says):
        rehearsed(toy, **fields)


@pytest.mark.parametrize(
    "error", [sp.RunError("diverged"), ZeroDivisionError("no count"), torch.linalg.LinAlgError("x")]
)
def test_errors_that_depend_on_the_weights_are_left_to_training(toy: ToyTask, error: Exception) -> None:
    def fails(*given: Any) -> Any:
        raise error

    rehearsed(toy, loss=fails)
    rehearsed(toy, gradient=fails)
    rehearsed(toy, start=fails)


def test_a_stage_whose_start_needs_the_one_before_is_left_to_training(toy: ToyTask) -> None:
    """Its start reads what the stage before writes, and its loss needs that."""

    def start(model: sp.Model) -> None:
        model.table = Path("no such file").read_text()

    rehearsed(toy, start=start, loss=lambda c: {"a": c.model.table})


class ChangesItself(ToyEnergy):
    """An energy that changes itself at each call."""

    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("table", torch.zeros(3), persistent=False)
        self.seen, self.steps, self.mean, self.rng = [], {"n": 0}, torch.zeros(2), np.random.default_rng(3)

    def encode(self, x: sp.X) -> Tensor:
        self.seen.append(len(self.seen))
        self.steps["n"] += 1
        self.mean += 1
        self.table = self.table + self.rng.random()
        self.late = random.random() + np.random.random()
        return self.norm(super().encode(x)[:, 0]).unsqueeze(1)


class Counts:
    """A loss that counts its calls."""

    calls = 0

    def __call__(self, context: sp.Context) -> Any:
        self.calls += 1
        return {"a": context.energy(context.proposal.rsample(3)).sum(1)}


def test_a_rehearsal_changes_nothing(toy: ToyTask) -> None:
    def start(model: sp.Model) -> None:
        with torch.no_grad():
            model.energy.linear.weight.zero_()
        model.energy.drop.p = 0.1

    loss, model = Counts(), sp.Model(ToyNet(sp.Config(), toy), ChangesItself(sp.Config(), toy), None)
    phases = (replace(energy_phase(), loss=loss), replace(net_phase(), loss=partial(Counts.__call__, loss)))
    stages = [sp.Stage("first", phases, 1), sp.Stage("second", phases, 1, start=start, set=start, select=_score)]

    def state() -> str:
        energy = vars(model.energy)
        own = [energy[name] for name in ("seen", "steps", "mean")]
        weights = {name: value.tolist() for name, value in [*model.named_parameters(), *model.named_buffers()]}
        modes = [module.training for module in model.modules()]
        drawn = random_state()
        numbers = (
            drawn["torch"].tolist(),
            drawn["numpy"][1].tolist(),
            drawn["python"],
            energy["rng"].bit_generator.state,
        )
        return str([own, weights, modes, model.energy.drop.p, loss.calls, "late" in energy, numbers])

    model.inference_net.eval()
    before = state()
    rehearse(model, toy, Given(stages), check_stages(model, stages), 0, Accelerator(cpu=True))
    assert state() == before
    assert all(parameter.grad is None for parameter in model.parameters())


def _score(model: sp.Model, batches: Any) -> float:
    model.energy.at(batches[0].x)(batches[0].gold)
    return 0.0


def test_a_mistake_leaves_no_run_folder(site: Any, tmp_path: Path) -> None:
    """Of SEAL-static the net learns first; the energy's mistake is said before."""
    site.install("bad", HOOKS)
    site.module("parts_of_bad", "import spen_plugins as sp\nclass E(sp.Energy): pass")
    config = evaluate("mlc_seal", {"method": "static_nce", "trainer.epochs": "1"})
    config |= {"energy": {"type": "bad.e"}}
    with pytest.raises(PluginError, match=r"E\.forward is called in .* of stage .*, and is not implemented"):
        runner.run(config, "mlc_seal", tmp_path / "run", runner.RunOptions("cpu", quiet=True))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def __init__(self, config, task): pass", r"^E\.__init__ fails: TypeError: .*takes 3 positional arguments"),
        (
            "def __init__(self, *given): self.width = given[2].output_dim",
            r"^E\.__init__ fails: AttributeError: .*line 3",
        ),
        ("def __init__(self, *given): self.net = sp.nn.mlp", r"^E\.__init__ fails: "),
    ],
)
def test_a_mistake_in_a_constructor_is_named(site: Any, tmp_path: Path, source: str, says: str) -> None:
    site.install("bad", HOOKS)
    site.module("parts_of_bad", f"import spen_plugins as sp\nclass E(sp.Energy):\n    {source}\n")
    config = evaluate("mlc_seal", {}) | {"energy": {"type": "bad.e"}}
    with pytest.raises(PluginError, match=says):
        runner.run(config, "mlc_seal", tmp_path / "run", runner.RunOptions("cpu", quiet=True))
    assert not (tmp_path / "run").exists()


class Inner(sp.Config):
    rate: float = float("inf")


class Needs(sp.Config):
    key: int
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"scale": (int, "hello")},
            r"Mine\.Config: the default of 'scale' is 'hello'; input should be a valid integer",
        ),
        ({"scale": (float, float("inf"))}, "the default of 'scale' is inf; input should be a finite number"),
        ({"scale": (int, Field(-1, ge=0))}, "the default of 'scale' is -1"),
        ({"inner": (Needs, ...)}, "Inner: the default of 'rate' is inf"),
    ],
)
def test_a_class_with_a_wrong_default_is_refused(fields: Any, says: str) -> None:
    given = {name: default for name, (_, default) in fields.items() if default is not ...}
    config = type("Config", (sp.Config,), {"__annotations__": {n: a for n, (a, _) in fields.items()}, **given})
    config.__qualname__ = "Mine.Config"
    with pytest.raises(PluginError, match=f"energy 'mine': .*{says}"):
        KINDS["energy"].check(type("Mine", (sp.Energy,), {"Config": config}), "energy 'mine'")
    with pytest.raises(AssertionError, match=says):
        testing.check_config(config)


def test_a_config_may_have_keys_without_a_default() -> None:
    class Config(sp.Config):
        key: int
        weights: dict[str, float] = Field(default={})
        sizes: tuple[int, ...] = (3,)
        rate: float = 1

    assert wrong_default(Config) is None


# A broken plugin disturbs no other

HOOKS = "import spen_plugins as sp\n@sp.hookimpl\ndef spen_energy(): return {'e': 'parts_of_bad:E'}\n"
ENERGY = "import spen_plugins as sp\nclass E(sp.Energy):\n    def forward(self, features, y): return y.sum(-1)\n"
STOP = "class Stop(BaseException): pass\n"


@pytest.mark.parametrize(
    ("plugin", "parts", "says"),
    [
        (f"{STOP}raise Stop('here')", "", "Stop: here"),
        (HOOKS + f"{STOP}def __dir__(): raise Stop('dir')", ENERGY, "Stop: dir"),
        (HOOKS, f"{STOP}raise Stop('late')", "Stop: late"),
        (HOOKS, f"{STOP}def __getattr__(name): raise Stop(name)", "Stop: "),
        (
            HOOKS,
            f"{ENERGY}class M(type(sp.Energy)):\n    @property\n    def Config(cls): raise KeyError('c')\n"
            "class E(sp.Energy, metaclass=M): pass",
            "KeyError: 'c'",
        ),
        (f"import spen_plugins as sp\n{STOP}@sp.hookimpl\ndef spen_energy(): raise Stop('hook')", "", "Stop: hook"),
    ],
)
def test_whatever_a_plugin_raises_it_disturbs_no_other(site: Any, plugin: str, parts: str, says: str) -> None:
    site.install("bad", plugin)
    site.module("parts_of_bad", parts)
    site.module("parts_of_good", ENERGY)
    site.install("good", HOOKS.replace("parts_of_bad", "parts_of_good"))
    found = Registry([str(site.path)])
    with pytest.raises(PluginError, match=says):
        found.resolve("energy", "bad.e")
    checked = {plugin.name: plugin for plugin in found.check()}
    assert checked["bad"].status == "broken" and says in checked["bad"].error
    assert checked["good"].status == "loaded" and found.resolve("energy", "good.e")


def test_a_modules_own_getattr_is_left_alone(site: Any) -> None:
    lazy = (
        "def __getattr__(name): raise RuntimeError(name)\ndef __dir__(): return [*globals(), 'imported_at_first_use']"
    )
    site.install("lazy", HOOKS + lazy)
    site.module("parts_of_bad", ENERGY)
    found = Registry([str(site.path)])
    assert found.resolve("energy", "lazy.e") and all(plugin.error is None for plugin in found.check())


def test_ctrl_c_while_a_plugin_is_imported_interrupts(site: Any) -> None:
    site.install("slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry([str(site.path)]).check()
