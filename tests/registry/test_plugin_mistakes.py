"""Mistakes of plugin authors: checks and training report them, and a broken plugin affects no other."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins.builtin.trainers import phases
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import Built
from spen_plugins.config.node import Node, make
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.loop import ledger
from spen_plugins.loop.mistakes import rehearse, translate_mistakes
from spen_plugins.loop.recipe import Recipe, assign_stages
from spen_plugins.loop.torch_modes import random_state
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from spen_plugins.runs.train import runner
from spen_plugins.runs.train.preparing import make_ready
from spen_plugins.settings.fields import validate
from tests.loop.test_loop import ToyEnergy, ToyNet, ToyTask, energy_phase, make_loop, model_for, net_phase

# In training, without a call of the checks


@pytest.fixture
def toy() -> ToyTask:
    return ToyTask()


def test_a_term_of_a_sum_of_energies_is_one_number_per_output(toy: ToyTask) -> None:
    class Whole(ToyEnergy):
        def forward(self, features: Any, y: Tensor) -> Tensor:
            return super().forward(features, y).sum()

    terms = {name: cls(sp.Config(), toy) for name, cls in (("sound", ToyEnergy), ("wrong", Whole))}
    cls = Registry().resolve("energy", "sum")
    batch = toy.collate(toy.part("train")[:3])
    with pytest.raises(PluginError, match=r"^Whole returned energies of shape \(\) .* = \(3, 2\)"):
        cls(cls.Config(), toy, terms=terms).at(batch.x)(torch.zeros(3, 2, 4))


def test_terms_are_tensors_by_name() -> None:
    for terms, message in (
        ({}, "the loss of phase 'p' is {}; expected tensors by name, at least one"),
        (torch.zeros(3), "the loss of phase 'p' is tensor.*; expected tensors by name"),
        ({"a": 1.0}, r"loss 'a' of phase 'p': found 1\.0; expected a tensor of shape \(batch,\)"),
        ({"a": torch.tensor(0.0)}, r"loss 'a' of phase 'p': found \(\); expected .* \(batch,\) = \(3,\)"),
        ({"a": torch.zeros(3), "b": torch.zeros(3, 1)}, r"loss 'b' .* \(3, 1\)"),
    ):
        with pytest.raises(PluginError, match=message):
            ledger.check_terms(terms, 3, "p")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loss": lambda context: {"ce": torch.zeros(len(context.batch))}}, "the loss of phase .* has no gradient"),
        (
            {"measures": lambda context: {"m": torch.zeros(())}},
            r"measure 'm' of phase .*: found \(\)",
        ),
    ],
)
def test_an_invalid_loss_is_reported_in_training(toy: ToyTask, tmp_path: Any, changed: Any, message: str) -> None:
    model = model_for(toy)
    phase = replace(net_phase(), **changed)
    with pytest.raises(PluginError, match=message):
        make_loop(model, toy, [sp.Stage("s", (energy_phase(), phase), 1)], tmp_path / "run").run()


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], r"found no epochs in any stage \(none\)"),
        ([("a", 0), ("b", 0)], r"found no epochs in any stage \(a, b\)"),
        ([("a", 1), ("a", 2)], "found the stages a, a; expected different names"),
    ],
)
def test_stages_that_train_nothing_or_share_a_name(toy: ToyTask, stages: Any, message: str) -> None:
    model = model_for(toy)
    phases = (energy_phase(), net_phase())
    with pytest.raises(ConfigError, match=message):
        assign_stages(model, [sp.Stage(name, phases, epochs) for name, epochs in stages])
    assign_stages(model, [sp.Stage("a", phases, 0), sp.Stage("b", phases, 1)])


@pytest.mark.parametrize("field", ["type", "features", "net"])
def test_a_field_may_not_use_a_reserved_key(field: str) -> None:
    config = type("Config", (sp.Config,), {"__annotations__": {field: int}, field: 1})
    energy = type("Mine", (sp.Energy,), {"Config": config, "parts": {"net": "inference_net"}})
    with pytest.raises(PluginError, match=f"Mine.Config has a field '{field}', which its table reserves"):
        KINDS["energy"].check(energy, "energy 'mine'")


def test_a_layer_may_not_have_the_name_of_a_method(toy: ToyTask) -> None:
    """PyTorch would store the layer, and Python find the method."""

    class Shadows(ToyEnergy):
        def __init__(self, config: Any, task: sp.Task) -> None:
            super().__init__(config, task)
            self.at = nn.Linear(4, 4)

    with pytest.raises(PluginError, match=r"^Shadows\.at: found a Linear under the name of an attribute of the class"):
        Shadows(sp.Config(), toy)


def test_an_annotation_that_only_type_checkers_see_is_named() -> None:
    config = type("Config", (sp.Config,), {"__annotations__": {"folder": "Folder"}, "__module__": __name__})
    energy = type("Mine", (sp.Energy,), {"Config": config})
    with pytest.raises(PluginError, match=r"^energy 'mine': Mine.Config: the annotation 'Folder' is not defined"):
        KINDS["energy"].check(energy, "energy 'mine'")


@pytest.mark.parametrize(("kind", "value"), [(int, "hello"), (float, float("inf"))])
def test_defaults_are_checked_like_values(kind: type, value: Any) -> None:
    config = type("Config", (sp.Config,), {"__annotations__": {"scale": kind}, "scale": value})
    with pytest.raises(ConfigError, match=r"mine\.json: 'energy\.scale': found .*; expected "):
        validate(config, {}, "energy", "mine.json")
    assert validate(config, {"scale": 2}, "energy", "mine.json").scale == 2


# A mistake in a component's code


class NoForward(sp.Energy):
    """An energy without `forward`."""


class WrongName(ToyEnergy):
    def encode(self, x: sp.X) -> Tensor:
        return self.scores(x)

    def scores(self, x: sp.X) -> Tensor:
        return self.liner(x.inputs["vector"])


class WrongWidth(ToyEnergy):
    def encode(self, x: sp.X) -> Tensor:
        return self.linear(x.inputs["vector"][:, :3])


class WrongValue(ToyEnergy):
    def encode(self, x: sp.X) -> Tensor:
        raise ValueError("my own")


class Two(sp.Trainer):
    """Cross entropy, then a stage with changed fields."""

    def __init__(self, **second: Any) -> None:
        super().__init__(sp.TrainerConfig())
        self.second = second

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        phase = {name: self.second[name] for name in ("loss", "gradient", "measures") if name in self.second}
        stage = {name: value for name, value in self.second.items() if name not in phase}
        frozen = sp.frozen_except(model, "inference_net")
        first = replace(net_phase(), loss=lambda context: {"ce": sp.cross_entropy(context)})
        return [
            sp.Stage("first", (first,), 1, frozen=frozen),
            sp.Stage("second", (replace(net_phase(), **phase),), 1, frozen=frozen, **stage),
        ]


def rehearse_two(toy: ToyTask, energy: type[sp.Energy] = ToyEnergy, **second: Any) -> list[str]:
    return rehearse_model(toy, model_for(toy, energy), Two(**second))


def rehearse_model(toy: ToyTask, model: sp.Model, trainer: sp.Trainer) -> list[str]:
    return rehearse(trainer, Recipe(model, toy, trainer.stages(model, toy), trainer.config, 0), Accelerator(cpu=True))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"energy": NoForward}, r"^(Energy|NoForward)\.forward .*fails: NotImplementedError"),
        ({"energy": WrongName}, r"^WrongName\.scores \(.*line \d+\) fails: AttributeError: .*no attribute 'liner'"),
        ({"energy": WrongWidth}, r"^WrongWidth\.encode \(.*line \d+\) fails: RuntimeError: mat1"),
        ({"loss": lambda c: {"a": sp.cross_entropy(c).mean()}}, r"loss 'a' of phase 'net': found \(\)"),
        ({"loss": lambda c: {"a": c.examples}}, r"^stage 'second' \(.*line \d+\) fails: AttributeError: .*'examples'"),
        ({"gradient": lambda update: update.losses}, r"^stage 'second' .* fails: AttributeError: .*'losses'"),
        ({"measures": lambda c: {"m": c.nothing}}, r"^stage 'second' .* fails: AttributeError: .*'nothing'"),
        ({"measures": lambda c: {"m": torch.zeros(())}}, r"^measure 'm' of phase 'net': found \(\)"),
        ({"start": lambda model: model.nothing}, r"^stage 'second' .* fails: AttributeError: .*'nothing'"),
        ({"loss": lambda c: {}["a"]}, r"^stage 'second' \(.*line \d+\) fails: KeyError: 'a'"),
        ({"energy": WrongValue}, r"^WrongValue\.encode \(.*line \d+\) fails: ValueError: my own"),
        ({"set": lambda: None}, r"^stage 'second' .* fails: TypeError"),
        ({"select": lambda model, batches: batches.x}, r"^stage 'second' .* fails: AttributeError: .*'x'"),
    ],
)
def test_a_mistake_in_a_later_stage_is_named_before_training(
    toy: ToyTask, tmp_path: Path, fields: Any, message: str
) -> None:
    """An energy's mistake is also named in training."""
    rehearse_two(toy)
    with pytest.raises(PluginError, match=message):
        rehearse_two(toy, **fields)
    if "energy" in fields:
        stage = sp.Stage("s", (net_phase(),), 1, frozen=("energy",) if fields["energy"] is not NoForward else ())
        with pytest.raises(PluginError, match=message), translate_mistakes():
            make_loop(model_for(toy, fields["energy"]), toy, [stage], tmp_path / "run").run()


@pytest.mark.parametrize("method", ["terms", "net_terms", "measures"])
def test_a_loss_that_returns_a_tensor_is_named_before_training(toy: ToyTask, method: str) -> None:
    loss_class = type(
        "Mine", (sp.EnergyLoss,), {method: lambda self, energy, batch, proposal: energy(proposal.mean)[:, 0]}
    )
    model = sp.Model(ToyNet(sp.Config(), toy), ToyEnergy(sp.Config(), toy), loss_class(sp.Config(), toy))
    phase = phases.energy_phase(sp.Player())
    fields = {
        "terms": {"loss": phase.loss},
        "net_terms": {"loss": sp.net_terms},
        "measures": {"measures": phase.measures},
    }
    with pytest.raises(PluginError, match=rf"^Mine\.{method} returned a Tensor; expected a dict of tensors"):
        rehearse_model(toy, model, Two(**fields[method]))


class LayersInAList(ToyEnergy):
    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.layers = [nn.Linear(4, 4)]


def test_weights_that_are_not_registered_are_named_before_training(toy: ToyTask) -> None:
    with pytest.raises(PluginError, match=r"^LayersInAList\.layers holds weights .* not registered .* nn\.ModuleList"):
        rehearse_two(toy, LayersInAList)

    class Frozen(ToyEnergy):
        """Its list also contains itself."""

        def __init__(self, config: Any, task: sp.Task) -> None:
            super().__init__(config, task)
            self.encoder: list[Any] = [nn.Linear(4, 4).requires_grad_(False)]
            self.encoder.append(self.encoder)

    assert rehearse_two(toy, Frozen) == []


def test_an_energy_without_gradient_to_the_net_is_noted(toy: ToyTask) -> None:
    """Such an energy has a gradient to its own weights."""

    class Scaled(ToyEnergy):
        def forward(self, features: Any, y: Tensor) -> Tensor:
            return self.linear.bias.sum() * super().forward(features, y)

    assert rehearse_two(toy, Scaled, loss=lambda c: {"energy": c.energy(c.proposal.mean)[:, 0]}) == []
    [note] = rehearse_two(toy, Scaled, loss=lambda c: {"energy": c.energy((c.proposal.mean > 0.5).float())[:, 0]})
    assert note.startswith("warning: in the first batch, the loss 'energy' of phase 'net' has no gradient to what")


class TrainsBoth(sp.Trainer):
    """The energy, then both nets."""

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        frozen = sp.frozen_except(model, "energy")
        return [
            sp.Stage("one", (energy_phase(),), 1, frozen=frozen),
            sp.Stage("two", (energy_phase(), net_phase()), 1),
        ]


class DetachedWeight(ToyEnergy):
    def encode(self, x: sp.X) -> Tensor:
        return super().encode(x).detach() + self.linear.bias


def test_parameters_without_a_gradient_are_noted(toy: ToyTask) -> None:
    trainer = TrainsBoth(sp.TrainerConfig())
    assert rehearse_model(toy, model_for(toy), trainer) == []
    [note] = rehearse_model(toy, model_for(toy, DetachedWeight), trainer)
    assert note.startswith("warning: in the first batch, no loss has a gradient to energy.linear.weight; if later")


def test_a_trial_that_is_skipped_is_noted(toy: ToyTask) -> None:
    trainer = Two()
    trainer.lock = threading.Lock()
    [note] = rehearse_model(toy, model_for(toy), trainer)
    assert note.startswith(
        "warning: the trial of one batch before training is skipped, because the model or the trainer"
    )
    assert "can't be copied (TypeError: cannot pickle '_thread.lock' object)" in note


class NoSample(ToyNet):
    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.space.independent(self.linear(x.inputs["vector"]))


def test_logits_without_samples_are_named_before_training(toy: ToyTask) -> None:
    """They would be broadcast against gold."""
    with pytest.raises(PluginError, match=r"^NoSample's logits: found shape \(32, 4\); .* = \(32, 1, 4\)"):
        rehearse_model(toy, sp.Model(NoSample(sp.Config(), toy), None, None), Two())


def test_a_protocol_is_a_table(toy: ToyTask) -> None:
    trainer = Two()
    trainer.protocol = lambda: torch.zeros(2)
    with pytest.raises(PluginError, match=r"Two\.protocol returned tensor.*; expected a table of JSON values"):
        rehearse_model(toy, model_for(toy), trainer)


@pytest.mark.parametrize(
    "error", [sp.RunError("diverged"), ZeroDivisionError("no count"), torch.linalg.LinAlgError("x")]
)
def test_errors_that_depend_on_the_weights_are_left_to_training(toy: ToyTask, error: Exception) -> None:
    def fail(*_: Any) -> Any:
        raise error

    for field in ("loss", "gradient", "start"):
        rehearse_two(toy, **{field: fail})


def test_a_stage_whose_start_needs_the_one_before_is_left_to_training(toy: ToyTask) -> None:
    """Its start reads a file that the stage before writes, and its loss needs that."""

    def start(model: sp.Model) -> None:
        model.table = Path("no such file").read_text()

    rehearse_two(toy, start=start, loss=lambda c: {"a": c.model.table})


class ChangesItself(ToyEnergy):
    """An energy that changes itself at each call, and draws random numbers."""

    def __init__(self, config: Any, task: sp.Task) -> None:
        super().__init__(config, task)
        self.norm = nn.BatchNorm1d(4)
        self.seen: list[float] = []

    def encode(self, x: sp.X) -> Tensor:
        self.seen.append(random.random() + torch.rand(()).item())
        return self.norm(super().encode(x)[:, 0]).unsqueeze(1)


def test_a_rehearsal_changes_nothing(toy: ToyTask) -> None:
    def start(model: sp.Model) -> None:
        with torch.no_grad():
            model.energy.linear.weight.zero_()

    model = model_for(toy, ChangesItself)
    trainer = Two(start=start)

    def describe_state() -> str:
        weights = {name: value.tolist() for name, value in model.state_dict().items()}
        modes, generators = [module.training for module in model.modules()], random_state()
        return str([weights, modes, model.energy.seen, generators["torch"].tolist(), generators["python"]])

    model.inference_net.eval()
    initial = describe_state()
    rehearse_model(toy, model, trainer)
    assert describe_state() == initial
    assert all(parameter.grad is None for parameter in model.parameters())


def test_errors_outside_components_are_left_alone() -> None:
    with pytest.raises(AttributeError), translate_mistakes():
        _ = object().nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("forward(self, features, y): y.sam", r"E\.forward \(.*line 3\) fails.*'sam'"),
        (
            "__init__(self, c, t, f): {}['a']\n    def forward(self, f, y): 0",
            r"E\.__init__ \(.*line 3\) .* KeyError: 'a'",
        ),
    ],
)
def test_a_mistake_leaves_no_run_folder(site: Any, tmp_path: Path, method: str, message: str) -> None:
    """SEAL-static trains the net first; the energy's mistake is reported before that."""
    site.install("bad", HOOKS)
    site.module("parts_of_bad", f"import spen_plugins as sp\nclass E(sp.Energy):\n    def {method}")
    config = evaluate("labels", {"method": "static_nce", "trainer.epochs": "1"}) | {"energy": {"type": "bad.e"}}
    with pytest.raises(PluginError, match=message):
        runner.run(config, "labels", tmp_path / "run", runner.RunOptions("cpu", quiet=True))
    assert not (tmp_path / "run").exists()


def test_a_feature_network_sets_its_output_dim(toy: ToyTask) -> None:
    node = Node("features", "f", type("F", (sp.FeatureNetwork,), {}), sp.Config(), "features")
    net = Node("inference_net", "n", ToyNet, sp.Config(), "inference_net", node)
    with pytest.raises(PluginError, match=r"^F\.__init__ sets no output_dim"):
        make(net, toy)


def test_a_component_calls_its_bases_constructor(toy: ToyTask) -> None:
    def set_layer(self: Any, *arguments: Any) -> None:
        self.layer = torch.nn.Linear(2, 2)

    for init in (lambda self, *arguments: None, set_layer):
        cls = type("Mine", (ToyEnergy,), {"__init__": init})
        with pytest.raises(PluginError, match=r"^Mine\.__init__ does not begin with super\(\)\.__init__\(…\)"):
            make(Node("energy", "acme.mine", cls, sp.Config(), "energy"), toy)


def test_stages_are_a_list(toy: ToyTask) -> None:
    trainer = Two()
    trainer.stages = lambda model, task: None
    with pytest.raises(PluginError, match=r"^Two\.stages returned None; expected a list of stages"):
        make_ready(SimpleNamespace(seed=0), Built(toy, model_for(toy), trainer), Accelerator(cpu=True))


HOOKS = "import spen_plugins as sp\n@sp.hookimpl\ndef spen_energy(): return {'e': 'parts_of_bad:E'}\n"
ENERGY = "import spen_plugins as sp\nclass E(sp.Energy):\n    def forward(self, features, y): return y.sum(-1)\n"


def test_a_modules_own_getattr_is_left_alone(site: Any) -> None:
    lazy = (
        "def __getattr__(name): raise RuntimeError(name)\ndef __dir__(): return [*globals(), 'imported_at_first_use']"
    )
    site.install("lazy", HOOKS + lazy)
    site.module("parts_of_bad", ENERGY)
    registry = Registry([str(site.path)])
    assert registry.resolve("energy", "lazy.e") and all(plugin.error is None for plugin in registry.check())


def test_ctrl_c_while_a_plugin_is_imported_interrupts(site: Any) -> None:
    site.install("slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry([str(site.path)]).check()
