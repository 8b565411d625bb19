"""Every registered component passes the contract checks, found through the registry as a user's own would be."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from dataclasses import replace
from string import ascii_lowercase

import pytest
import torch
from pydantic import ConfigDict

import spen_plugins as sp
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.model import Model
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from spen_plugins.spaces import IndependentLabels, IndependentTags, LabelSet, TagSequence, allowed_transitions
from spen_plugins.testing import (
    ToyFeatures,
    ToyImages,
    ToyLabels,
    ToyMasks,
    ToyTags,
    check_config,
    check_cost_net,
    check_energy,
    check_energy_loss,
    check_feature_network,
    check_inference_net,
    check_space,
    check_task,
    check_trainer,
)
from spen_plugins.testing.comparing import collate, pick_by_length, relaxed
from spen_plugins.trainer import backward
from tests.loaded import loaded, of_six_digits, small_bert

REGISTRY = Registry()
TOYS = {
    "labels": ToyLabels,
    "binary labels": lambda: ToyLabels(binary=True),
    "tags": ToyTags,
    "texts": lambda: load_sample_texts(),
    "images": ToyImages,
    "images of one size": lambda: ToyImages(padded=False),
    "masks": ToyMasks,
    "masks of one size": lambda: ToyMasks(padded=False),
}
PLAIN = {name: TOYS[name] for name in TOYS if name not in ("binary labels", "texts")}
WITH_NETS = [
    *(("labels", "independent"), ("tags", "independent"), ("tags", "crf")),
    *(("images", "e2e.convnet"), ("images of one size", "e2e.convnet")),
    *(("masks", "images.fcn"), ("masks of one size", "images.fcn")),
]
"""Toys, and the net of checks that need one."""

# Fields that a type requires here, or that make it small.
SMALL = {
    "mlp": {"hidden": [3, 2]},
    "bilstm": {"word_dim": 3, "hidden": 2, "layers": 2},
    "one_reading": {"dim": 3, "hidden": 2},
    "encoder": {"word_dim": 3, "mark_dim": 2, "char_dim": 2, "char_filters": 2, "hidden": 2},
    "seal.labels": {"hidden": 3},
    "e2e.convnet": {"filters": 2, "size": 3},
    "e2e.deep_prior": {"filters": 2, "size": 3},
    "e2e.foe": {"filters": 2, "size": 3},
    "images.fcn": {"filters": 2, "levels": 2, "groups": 1},
    "images.cglow": {"levels": 1, "steps": 1, "width": 8, "samples": 400},
    "images.conv": {"filters": [3, 2], "size": 3, "hidden": 3},
    "seal.self_attention": {"dim": 4, "heads": 2},
    "rules.frame_roles": {"rolesets": "rolesets.jsonl"},
    "rules.implies": {"pairs": [["label0", "label1"]]},
    "rules.excludes": {"pairs": [["label0", "label1"]]},
    "infnet.tag_lm": {"hidden": 5, "tag_dim": 3},
    "infnet.word_tag_lm": {"hidden": 5, "tag_dim": 3},
    "implicit.citations": {"corpus": "sample"},
    "infnet.parsing": {"corpus": "sample"},
    "images.denoising": {"corpus": "sample"},
    "images.segmentation": {"corpus": "sample"},
    "multilabel": {"corpus": "sample"},
    "propbank.senses": {"corpus": "sample"},
    "srl": {"corpus": "sample"},
    "task e2e.arcs": {"corpus": "sample", "longest": 2},
    "tagging": {"corpus": "ner", "scheme": "bio", "encoding": "bioes", "columns": {"pos": 1, "chunk": 2}},
    "text": {"corpus": "sample"},
    "bag": {"buckets": 32, "characters": [2, 3]},
    "decoders.words": {"pooling": "mean"},
    "decoders.sequence": {"dim": 3, "embedding": 2, "samples": 8},
    "ngrams": {"hidden": [3, 2], "buckets": 32, "characters": [2, 3]},
}

ON_A_NET = ("rerank", "reweight", "e2e.unrolled", "alen.refine")
"""Inference nets that require another one."""
WITHOUT_GRADIENT = {"alen.refine": ("net",)}
"""Nets whose prediction has no gradient to some parts: in training, losses see another proposal."""
APPROXIMATE = {"decoders.sequence": ("mode", "mean", "tempered")}
"""Members of the proposals of some nets that are documented as approximate."""
NET_OF = {"images.flow_nce": "images.beside_flow"}
"""Energy losses that take samples of one kind of inference net."""
READ_ALONE = ("bilstm", "encoder")
"""Feature networks that may have another one below them, but require none."""
TRAINED_NET = {
    "e2e.unroll": ("e2e.unrolled", {}),
    "gspen.staged": ("gspen.mirror", {}),
    "decoders.ocd": ("decoders.sequence", {"order": "none"}),
    "decoders.laco": ("decoders.laco", {}),
}
"""Trainers of one kind of inference net, and that net's fields."""
VECTORS = {"decoders.labels_as_words": lambda task: len(task.space.labels)}
"""Numbers of vectors per example for feature networks that have several and read no sequence."""
TRAINED_LOSS = {"gspen.staged": "gspen.gap"}
"""Trainers of one energy loss."""
ENERGY_OF = dict.fromkeys(("likelihood", "exact.fenchel_young"), "local")
ENERGY_OF |= dict.fromkeys(("gspen.mirror", "gspen.gap"), "gspen.star")
"""Energy losses and inference nets that accept few energies, and one that they accept."""


def load_sample_texts():
    """The sample's texts, which require no files."""
    return loaded("text", corpus="sample")


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.base is not None])
def test_configs_take_finite_numbers_only(kind: str) -> None:
    for name in REGISTRY.names(kind):
        check_config(REGISTRY.resolve(kind, name).Config)


def test_a_config_that_accepts_any_number_is_found() -> None:
    class Lax(sp.Config):
        model_config = ConfigDict(allow_inf_nan=True)
        rate: float = 1.0
        """A rate."""

    with pytest.raises(AssertionError, match=r"Lax\.rate accepts nan"):
        check_config(Lax)
    with pytest.raises(AssertionError, match=r"expected a class that extends spen_plugins\.Config"):
        check_config(sp.Energy)


def parse(kind: str, name: str, tmp_path, **overrides):
    fields = {**SMALL.get(name, SMALL.get(f"{kind} {name}", {})), **overrides}
    if name == "transformer":
        fields["model"] = small_bert(tmp_path, [*ascii_lowercase, *[f"##{c}" for c in "aehnsty"]])
    try:
        return REGISTRY.parse(kind, {"type": name, **fields}, kind, "test")
    except PluginError as error:
        pytest.fail(str(error))


def make_component(kind: str, name: str, task, tmp_path=None, **overrides):
    """The component on this task; raises a `ConfigError` where the component rejects the task."""
    cls, config = parse(kind, name, tmp_path, **overrides)
    if kind == "features":
        parts = {} if name in READ_ALONE else cls.parts
        inner = cls.make_inner_task(task) if parts else task
        return cls(
            config, task, **{key: make_component(part, "bilstm", inner, tmp_path) for key, part in parts.items()}
        )
    parts = {"net": make_independent(task)} if name in ON_A_NET else {}
    if name == "images.beside_flow":
        parts = {"net": make_component("inference_net", "images.cglow", task), "predictor": make_independent(task)}
    if name == "mean":  # a net, and an energy
        parts = {"nets": {"a": make_independent(task), "b": make_independent(task)}}
    return cls(config, task, ToyFeatures(task) if cls.uses_features else None, **parts)


def build(kind: str, name: str, task, tmp_path, **fields):
    """The component; skips the test where the component rejects the task."""
    try:
        return make_component(kind, name, task, tmp_path, **fields)
    except ConfigError as error:
        pytest.skip(str(error))


def make_energy(task, name=None):
    """An energy for the task's outputs that the energy loss or the inference net of this name accepts."""
    return make_component("energy", ENERGY_OF.get(name) or ENERGY_FOR[type(task)], task)


ENERGY_FOR = {ToyLabels: "seal.labels", ToyTags: "linear_chain", ToyImages: "e2e.deep_prior", ToyMasks: "images.conv"}
NET_FOR = {ToyImages: "e2e.convnet", ToyMasks: "images.fcn"}


def make_independent(task):
    """A net whose variables are independent given x."""
    return make_component("inference_net", NET_FOR.get(type(task), "independent"), task)


def make_linear(task):
    """Net `independent` on the vectors themselves."""
    net, config = REGISTRY.parse("inference_net", {"type": "independent", "bias": True}, "inference_net", "test")
    return net(config, task, make_component("features", "bag", task))


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("energy"))
def test_energies(name, toy, tmp_path):
    task = TOYS[toy]()
    check_energy(build("energy", name, task, tmp_path), task)


BOTH = {"directions": ["forward", "backward"]}
VARIANTS = [
    *((name, "labels", {}) for name in ("local", "seal.labels")),
    *((name, "tags", {}) for name in ("local", "linear_chain", "seal.self_attention")),
    ("seal.self_attention", "tags", {"heads": 1, "local": False}),
    *(("infnet.tag_lm", "tags", fields) for fields in ({}, BOTH, {"directions": ["backward"]})),
    ("infnet.word_tag_lm", "tags", {}),
    *(("infnet.skip_chain", "tags", fields) for fields in ({}, {"order": 1}, {"order": 9})),
    *(("infnet.high_order", "tags", fields) for fields in ({}, {"order": 1}, {"order": 4})),
]


def make_variant(name, toy, fields, *lengths):
    """The task, an energy in float64 with large weights, a batch with sentences of these lengths, and relaxed y."""
    task = TOYS[toy]()
    cls, config = REGISTRY.parse("energy", {"type": name, **SMALL.get(name, {}), **fields}, "energy", "test")
    energy = cls(config, task, ToyFeatures(task) if cls.uses_features else None).double().eval()
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.normal_(std=0.7)
    sentences = [(ToyTags.WORDS[2 : 2 + n], [0] * n, [i % 4 for i in range(n)]) for n in lengths]
    batch = collate(task, sentences if toy == "tags" else pick_by_length(task, len(lengths)))
    return task, energy, batch, relaxed(task.space, batch, 3)


@pytest.mark.parametrize(("name", "toy", "fields"), VARIANTS)
def test_variants_of_energies(name, toy, fields):
    task, energy, batch, y = make_variant(name, toy, fields, 1, 3, 6)
    check_energy(energy, task)

    def value(y, *_):
        return energy.at(batch.x)(y)

    args = (y.requires_grad_(), *(p for p in energy.parameters() if p.requires_grad))
    assert torch.autograd.gradcheck(value, args, fast_mode=True)
    assert torch.autograd.gradgradcheck(value, args, fast_mode=True)


@pytest.mark.parametrize(("name", "toy", "fields"), [row for row in VARIANTS if row[1] == "tags"])
def test_values_on_padding_never_count(name, toy, fields):
    """They may be left by an optimiser over y; a sentence has the same energy alone as in a batch."""
    _, energy, batch, y = make_variant(name, toy, fields, 1, 2, 6, 4)
    energies, dirty = energy.at(batch.x)(y), torch.where(batch.x.mask[:, None, :, None], y, 7.0)
    torch.testing.assert_close(energy.at(batch.x)(dirty), energies)
    for b, n in enumerate(batch.x.mask.sum(1).tolist()):
        inputs = {key: value[b : b + 1, :n] for key, value in batch.x.inputs.items()}
        torch.testing.assert_close(energy.at(sp.X(inputs, None, 1))(y[b : b + 1, :, :n])[0], energies[b])


@pytest.mark.parametrize(("name", "toy", "fields"), VARIANTS)
def test_energies_are_summed_in_full_precision_under_autocast(name, toy, fields):
    _, energy, batch, _ = make_variant(name, toy, fields, 1, 2, 6, 4)
    energy, gold = energy.float(), batch.gold.float()
    x = replace(batch.x, inputs={k: v.float() if v.is_floating_point() else v for k, v in batch.x.inputs.items()})
    expected = energy.at(x)(gold)
    with torch.autocast("cpu", torch.bfloat16):
        energies = energy.at(x)(gold)
    assert energies.dtype == torch.float32
    torch.testing.assert_close(energies, expected, rtol=0.03, atol=0.05 if name.startswith("infnet") else 0.03)


@pytest.mark.parametrize(("toy", "net"), WITH_NETS)
@pytest.mark.parametrize("name", REGISTRY.names("energy_loss"))
def test_energy_losses(name, toy, net, tmp_path):
    task = TOYS[toy]()
    loss = build("energy_loss", name, task, tmp_path)
    check_energy_loss(loss, make_energy(task, name), make_component("inference_net", NET_OF.get(name, net), task), task)


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("inference_net"))
def test_inference_nets(name, toy, tmp_path):
    task = TOYS[toy]()
    net = build("inference_net", name, task, tmp_path)
    energy = make_energy(task, name) if net.uses_energy else None
    allow_idle, approximate = WITHOUT_GRADIENT.get(name, ()), APPROXIMATE.get(name, ())
    check_inference_net(net, task, energy, allow_idle, approximate)


@pytest.mark.parametrize(("toy", "net"), WITH_NETS)
@pytest.mark.parametrize("name", REGISTRY.names("cost_net"))
def test_cost_nets(name, toy, net, tmp_path):
    task = TOYS[toy]()
    cost_net, net = build("cost_net", name, task, tmp_path), make_component("inference_net", net, task)
    try:
        cost_net.bind(net)
    except ConfigError as error:
        pytest.skip(str(error))
    check_cost_net(cost_net, net, task)


@pytest.mark.parametrize("toy", TOYS)
@pytest.mark.parametrize("name", REGISTRY.names("features"))
def test_feature_networks(name, toy, tmp_path):
    task = TOYS[toy]()
    features = build("features", name, task, tmp_path)
    networks = [module for module in features.modules() if isinstance(module, sp.FeatureNetwork)]
    task.indexers.update(indexer for network in networks if (indexer := network.indexer()) is not None)
    check_feature_network(features, task, vectors=VECTORS[name](task) if name in VECTORS else None)


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("trainer"))
def test_trainers(name, toy, tmp_path):
    task = TOYS[toy]()
    cls, config = parse("trainer", name, tmp_path)
    net_name, fields = TRAINED_NET.get(name, (None, {}))
    net = build("inference_net", net_name, task, tmp_path, **fields) if net_name else make_independent(task)
    net = make_linear(task) if name == "one_vs_rest" and isinstance(task, ToyLabels) else net
    losses = {None: None}
    if "energy_loss" in cls.needs:
        losses = {}
        for loss_name in [TRAINED_LOSS[name]] if name in TRAINED_LOSS else REGISTRY.names("energy_loss"):
            with contextlib.suppress(ConfigError):  # from losses that reject this task
                losses[loss_name] = make_component("energy_loss", loss_name, task, tmp_path)
    for loss_name, loss in losses.items():
        try:
            learner = (
                make_component("inference_net", NET_OF[loss_name], task)
                if loss_name in NET_OF and not net_name
                else net
            )
            check_trainer(cls(config), Model(learner, make_energy(task, loss_name), loss), task)
        except ConfigError as error:  # from trainers that would leave a loss's own net untrained
            if name == "one_vs_rest" and not isinstance(task, ToyLabels):
                assert "and label sets" in str(error)
            else:
                assert "has its own net" in str(error) and any(True for _ in loss.parameters())


def find_floats(scores):
    """The floats of a table of scores and of those nested in it."""
    for value in scores.values():
        if isinstance(value, dict):
            yield from find_floats(value)
        elif not isinstance(value, int):
            yield value


@pytest.mark.parametrize("name", REGISTRY.names("task"))
def test_scores_are_python_floats_computed_in_double_precision(name, tmp_path):
    """A single-precision score would fit into 24 bits without being a fraction of a power of two, such as 0.375."""
    cls, config = parse("task", name, tmp_path)
    if "average_precision" in cls.Config.model_fields:
        config = config.model_copy(update={"average_precision": True})
    task = cls(config)
    task.load()
    metric, batch = task.metric(), task.collate(list(task.part("train"))[:7])
    metric.update(task.space.independent(batch.gold + torch.randn_like(batch.gold), batch.x.mask), batch)
    scores = list(find_floats({**metric.compute(), **metric.details()}))
    assert scores and all(type(value) is float for value in scores)
    single = [value for value in scores if value == torch.tensor(value, dtype=torch.float32).item()]
    assert all((math.frexp(value)[0] * 2**16).is_integer() for value in single)


@pytest.mark.parametrize("name", REGISTRY.names("task"))
def test_tasks(name, tmp_path):
    cls, config = parse("task", name, tmp_path)
    task = cls(config)
    task.load()
    check_task(task)
    check_space(task.space)


@pytest.mark.parametrize("temperature", [1.0, 1.7])
@pytest.mark.parametrize("name", REGISTRY.names("task"))
def test_numbers_in_predictions_have_six_digits(name, temperature, tmp_path):
    cls, config = parse("task", name, tmp_path)
    task = cls(config)
    task.load()
    task.temperature = temperature
    examples = list(task.part("train"))[:3]
    batch = task.collate(examples)
    logits = 2 * batch.gold + 0.3 * torch.randn(batch.gold.shape, generator=torch.Generator().manual_seed(0))
    predictions = task.predictions(task.space.independent(logits, batch.x.mask), batch, examples)
    json.loads(json.dumps(predictions), parse_float=of_six_digits)


@pytest.mark.parametrize("toy", TOYS)
def test_toys(toy):
    task = TOYS[toy]()
    check_task(task, [(*example[:-1], None) for example in task.part("train")[3:5]] if toy != "texts" else ())
    check_space(TOYS[toy]().space)


def test_every_plugin_can_be_imported():
    """Every plugin of this environment can be imported; otherwise the tests above would silently omit it."""
    assert [plugin.error for plugin in REGISTRY.check() if plugin.error] == []


class SumOfLabels(sp.Energy):
    """A sound energy."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.weight = torch.nn.Parameter(torch.randn(task.space.shape[-1]))

    def forward(self, features, y):
        y = y * self.weight
        return -y.tanh().sum(-1) if y.dim() == 3 else -(y.tanh().sum(-1) * features.unsqueeze(1)).sum(-1)


class TwoNamesForOneTensor(SumOfLabels):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.alias = self.weight


class LayersInAList(SumOfLabels):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.layers = [torch.nn.Linear(4, 4)]


class WeightsInADict(SumOfLabels):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self._weights = {"one": [torch.ones(4, requires_grad=True)]}


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        ctx.save_for_backward(y)
        return y.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


def make_broken(change):
    """The sound energy with one change."""

    class Broken(SumOfLabels):
        def forward(self, features, y):
            return change(super().forward, features, y)

    return Broken


def test_a_sound_energy_passes():
    for toy in ("labels", "tags"):
        task = TOYS[toy]()
        for energy in (SumOfLabels, TwoNamesForOneTensor):
            check_energy(energy(sp.Config(), task), task)


@pytest.mark.parametrize(
    ("energy", "toy", "message"),
    [
        (
            make_broken(lambda sound, x, y: sound(x, y) - y.mean((1, 2)).unsqueeze(1)),
            "labels",
            "depends on other outputs",
        ),
        (make_broken(lambda sound, x, y: sound(x, y) - y.mean((0, 2))), "labels", "neighbours"),
        (make_broken(lambda sound, x, y: sound(x, y) + torch.arange(y.shape[0]).unsqueeze(1)), "labels", "permuting"),
        (make_broken(lambda sound, x, y: sound(x, y) / y.shape[2]), "tags", "padding"),
        (make_broken(lambda sound, x, y: sound(x, y.detach())), "labels", "Broken has no gradient in y"),
        (
            make_broken(lambda sound, x, y: sound(x, y.detach()) + 0 * y.flatten(2).sum(-1)),
            "labels",
            "gradient in y|Jacobian mismatch",
        ),
        (make_broken(lambda sound, x, y: sound(x, y) * y.detach().sum(-1)), "labels", "Jacobian mismatch"),
        (make_broken(lambda sound, x, y: Square.apply(y).sum(-1)), "labels", "Jacobian mismatch"),
        (
            make_broken(lambda sound, x, y: sound(x, y) - y.log().sum(-1)),
            "labels",
            "Broken is not finite at gold outputs",
        ),
        (make_broken(lambda sound, x, y: sound(x, y).T), "labels", "expected"),
        (
            make_broken(lambda sound, x, y: sound(x, y).unsqueeze(-1)),
            "labels",
            r"Broken returned energies of shape \(4, 3, 1\) .* expected \(batch, sample\) = \(4, 3\)",
        ),
        (LayersInAList, "labels", r"LayersInAList\.layers holds weights that are not registered .* nn\.ModuleList"),
        (WeightsInADict, "labels", r"WeightsInADict\._weights holds weights that are not registered"),
    ],
)
def test_the_checks_find_a_broken_energy(energy, toy, message):
    task = TOYS[toy]()
    with pytest.raises((AssertionError, RuntimeError, PluginError), match=message):
        check_energy(energy(sp.Config(), task), task)
    with pytest.raises(AssertionError, match="expected an instance, such as"):
        check_energy(energy, task)


def mask_energy(energy, batch, proposal):
    """The energies of the net's output, 0 in rows without gold."""
    return energy(proposal.mean)[:, 0] * batch.labelled * (batch.gold is not None)


def add_sampled_energy(energy, batch, proposal, shift):
    """The energies of samples, of other examples if shifted, 0 in rows without gold."""
    return energy(proposal.sample(1).roll(shift, 0))[:, 0] * batch.labelled * (batch.gold is not None)


def change_gold(energy, batch, proposal):
    loss = mask_energy(energy, batch, proposal)
    batch.gold.mul_(0.9)
    return loss


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"forward": lambda _, energy, batch, proposal: energy(proposal.mean).mean().expand(len(batch))},
            "of one example depends on the net's output for another",
        ),
        (
            {"forward": lambda _, energy, batch, proposal: energy(proposal.mean)[:, 0]},
            "not 0 in rows without gold",
        ),
        (
            {
                "forward": lambda _, *args: mask_energy(*args),
                "net_terms": lambda _, energy, batch, proposal: {"energy": energy(proposal.mean.detach())[:, 0]},
            },
            "have no gradient to the net",
        ),
        (
            {
                "terms": lambda _, *args: {name: mask_energy(*args) for name in ("one", "two")},
                "measures": lambda _, energy, batch, proposal: {"energy": energy(proposal.mean)[:, 0]},
            },
            "measure 'energy' is not 0 in rows without gold",
        ),
        ({"terms": lambda *_: {}}, "has no term"),
        (
            {"terms": lambda *_: {"a": 1.0}},
            "term 'a', one number per example: found float, expected a tensor of shape",
        ),
        (
            {"terms": lambda _, *args: {"one": mask_energy(*args), "two": mask_energy(*args).sum()}},
            r"term 'two', one number per example: found shape \(\)",
        ),
        ({"terms": lambda _, *args: {"a": mask_energy(*args).detach()}}, "has no gradient to the energy"),
        (
            {"forward": lambda _, *args: mask_energy(*args) + add_sampled_energy(*args, shift=1)},
            "'energy_loss' of one example depends on its neighbours or on padding",
        ),
        (
            {
                "forward": lambda _, *args: mask_energy(*args),
                "measures": lambda _, *args: {"a": add_sampled_energy(*args, shift=2)},
            },
            "measure 'a' of one example depends on its neighbours",
        ),
        (
            {"forward": lambda _, *args: mask_energy(*args) if args[1].gold is None else change_gold(*args)},
            "Broken changes batch.gold",
        ),
    ],
)
def test_the_checks_find_a_broken_loss(methods, message):
    task, loss = ToyLabels(), type("Broken", (sp.EnergyLoss,), methods)
    with pytest.raises(AssertionError, match=message):
        check_energy_loss(loss(sp.Config(), task), make_energy(task), make_independent(task), task)


class NeedsConfidence(sp.EnergyLoss):
    """0 unless the net is sure, as a hinge within its margin."""

    def forward(self, energy, batch, proposal):
        return mask_energy(energy, batch, proposal) * (proposal.mean - 0.5).abs().flatten(1).amax(1).gt(0.499)


class SumsOverPadding(sp.EnergyLoss):
    def forward(self, energy, batch, proposal):
        return mask_energy(energy, batch, proposal) + (proposal.mean + 0.1).sum((1, 2, 3)) * batch.labelled


def test_the_checks_try_several_outputs_of_a_net():
    task = ToyLabels()
    check_energy_loss(NeedsConfidence(sp.Config(), task), make_energy(task), make_independent(task), task)
    task = ToyTags()
    with pytest.raises(AssertionError, match="depends on its neighbours or on padding"):
        check_energy_loss(SumsOverPadding(sp.Config(), task), make_energy(task), make_independent(task), task)


class SaysNothing(sp.EnergyLoss):
    pass


def test_a_loss_without_methods_is_reported():
    task = ToyLabels()
    with pytest.raises(NotImplementedError, match="SaysNothing has neither forward nor terms"):
        check_energy_loss(SaysNothing(sp.Config(), task), make_energy(task), make_independent(task), task)


def test_the_checks_find_a_loss_that_spoils_the_proposal_for_the_net(monkeypatch, tmp_path):
    """Noise is drawn without gradients; a proposal that caches such values has none for cross entropy."""
    monkeypatch.setattr(sp.Proposal, "restore_grad_mode", lambda self: contextlib.nullcontext())
    task = ToyTags()
    loss = build("energy_loss", "seal.nce", task, tmp_path)
    with pytest.raises((AssertionError, RuntimeError), match=r"after Nce has used a proposal"):
        check_energy_loss(loss, make_energy(task), make_component("inference_net", "crf", task), task)


class IdleNet(sp.InferenceNet):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.linear, self.spare = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)

    def forward(self, x, energy=None):
        return self.space.independent(self.linear(self.features(x)).unsqueeze(1), x.mask)


class IdleFeatures(ToyFeatures):
    def __init__(self, task):
        super().__init__(task)
        self.spare = torch.nn.Parameter(torch.ones(2))


class MovingMean(IdleNet):
    """A running mean in a plain attribute."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.shift = torch.zeros(())

    def forward(self, x, energy=None):
        proposal = super().forward(x)
        if self.training:
            self.shift = 0.9 * self.shift + 0.1 * proposal.logits.detach().mean()
        return replace(proposal, logits=proposal.logits - self.shift)


class Sharpens(IdleNet):
    """A number that grows in training."""

    scale = 1.0

    def forward(self, x, energy=None):
        proposal = super().forward(x)
        self.scale += 0.01 * self.training
        return replace(proposal, logits=proposal.logits * self.scale)


class Remembers(IdleNet):
    """A list that grows in training."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.calls = []

    def forward(self, x, energy=None):
        proposal = super().forward(x)
        self.calls += [1] * self.training
        return replace(proposal, logits=proposal.logits + len(self.calls))


class Locked(MovingMean):
    """A module that can't be copied."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.lock = threading.Lock()


class KeepsLast(IdleNet):
    """Attributes without any influence on the output."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.last, self.seed = None, 2**63 + 5

    def forward(self, x, energy=None):
        proposal = super().forward(x)
        self.last = proposal.logits.detach()
        return proposal


class Normalises(IdleNet):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.spare = torch.nn.BatchNorm1d(4)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (MovingMean, r"MovingMean\.shift changes in training.*register_buffer\('shift'"),
        (Locked, r"Locked\.shift changes in training"),
        (Sharpens, r"Sharpens\.scale changes in training.*register_buffer\('scale'"),
        (Remembers, "Remembers returns other numbers after its state was saved and loaded"),
        (Normalises, r"Normalises\.spare is a BatchNorm1d in training mode, so an example's result depends on other"),
    ],
)
def test_the_checks_find_a_state_that_is_not_saved_or_mixes_examples(net, message):
    task = ToyLabels()
    with pytest.raises(AssertionError, match=message):
        check_inference_net(net(sp.Config(), task, ToyFeatures(task)), task, allow_idle=["spare"])


def test_attributes_may_change_if_the_output_does_not():
    task = ToyLabels()
    check_inference_net(KeepsLast(sp.Config(), task, ToyFeatures(task)), task, allow_idle=["spare"])


def test_the_checks_find_idle_parameters():
    task = ToyLabels()
    net = IdleNet(sp.Config(), task, ToyFeatures(task))
    with pytest.raises(AssertionError, match=r"no gradient to spare\.weight, spare\.bias; .* allow_idle"):
        check_inference_net(net, task)
    check_inference_net(net, task, allow_idle=("spare",))
    with pytest.raises(AssertionError, match=r"output has no gradient to spare"):
        check_feature_network(IdleFeatures(task), task)
    check_feature_network(IdleFeatures(task), task, allow_idle=("spare",))
    cls, config = REGISTRY.parse("trainer", {"type": "cross_entropy"}, "trainer", "test")
    with pytest.raises(AssertionError, match=r"no gradient to inference_net\.spare\.weight"):
        check_trainer(cls(config), Model(net, None, None), task)
    check_trainer(cls(config), Model(net, None, None), task, allow_idle=("inference_net.spare",))


class ListsOthers(IndependentLabels):
    """Its labels are not those that are likely under its logits, which `k_best` doesn't take into account."""

    @property
    def mode(self):
        return 1 - super().mode


class HalfLabels(IndependentLabels):
    @property
    def mode(self):
        return super().mode / 2


@pytest.mark.parametrize(("kind", "message"), [(HalfLabels, "mode is not discrete"), (ListsOthers, "don't begin with")])
def test_the_checks_find_a_broken_proposal(kind, message):
    class Net(IdleNet):
        def forward(self, x, energy=None):
            return kind(self.space, self.linear(self.features(x)).unsqueeze(1), x.mask)

    task = ToyLabels()
    with pytest.raises(AssertionError, match=message):
        check_inference_net(Net(sp.Config(), task, ToyFeatures(task)), task, allow_idle=("spare",))


def test_the_checks_find_a_net_without_a_proposal():
    class Net(IdleNet):
        def forward(self, x, energy=None):
            return self.linear(self.features(x)).unsqueeze(1)

    task = ToyLabels()
    with pytest.raises(PluginError, match=r"Net\.forward returns a Tensor; expected a Proposal, such as self\.space"):
        check_inference_net(Net(sp.Config(), task, ToyFeatures(task)), task)


def test_the_checks_find_a_task_that_ignores_the_nets_choice():
    class Modes(ToyLabels):
        def decode(self, proposal, x=None):
            return proposal.mode

    check_task(ToyLabels())
    with pytest.raises(AssertionError, match=r"decode ignores the output that the net has chosen"):
        check_task(Modes())


def make_labels(kind):
    """A space of three labels whose default distribution is of this class."""

    class Labels(LabelSet):
        def independent(self, logits, mask=None, **fields):
            return kind(self, logits, mask, **fields)

    return Labels(["a", "b", "c"])


class ListsNothing(IndependentLabels):
    k_best = sp.Proposal.k_best


def test_a_distribution_may_lack_its_k_best():
    task = ToyLabels()
    task.space = make_labels(ListsNothing)
    check_space(task.space)
    task.space.labels = [*task.space.labels, "d"]
    net = IdleNet(sp.Config(), task, ToyFeatures(task))
    with pytest.raises(PluginError, match=r"ListsNothing, .* doesn't list its k best .* 'rerank' .* method k_best"):
        net(task.collate(task.part("train")).x).k_best(2)
    check_inference_net(net, task, allow_idle=("spare",))


class Unnormalised(IndependentLabels):
    def log_prob(self, y):
        return super().log_prob(y) - 0.5


class LikesFewLabels(IndependentLabels):
    @property
    def mode(self):
        return (self.logits > 1).to(self.logits.dtype)


class FixedNoise(IndependentLabels):
    def rsample(self, n, temperature=1.0):
        return super().rsample(n, temperature).detach().requires_grad_()


class DrawsItsMode(IndependentLabels):
    """It forgets `sparse = False`."""

    def sample(self, n):
        return self.mode.expand(-1, n, -1)


class HalfOfTheLabels(LabelSet):
    def sizes(self, mask):
        return (len(self.labels) // 2,)


class RepairsGreedily(TagSequence):
    def independent(self, logits, mask=None, **fields):
        return RepairedTags(self, logits, mask, **fields)


class RepairedTags(IndependentTags):
    """The likeliest tag at each token, O where it breaks the scheme: a BIO sequence, but not the likeliest one."""

    @property
    def mode(self):
        space = self.space
        tags = TagSequence(space.tags).independent(self.logits, self.mask).mode.argmax(-1)
        allowed, start, _ = allowed_transitions(space.tags, "bio")
        tags[..., 0] *= start[tags[..., 0]]
        for t in range(1, tags.shape[-1]):
            tags[..., t] *= allowed[tags[..., t - 1], tags[..., t]]
        return space.one_hot(tags, self.mask).to(self.logits.dtype)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (make_labels(Unnormalised), "log_prob doesn't sum to 1"),
        (make_labels(LikesFewLabels), "mode is not the most probable"),
        (make_labels(FixedNoise), "rsample has no gradient"),
        (make_labels(DrawsItsMode), r"DrawsItsMode\.sample: the average of 1000 samples is 0\.\d\d away"),
        (HalfOfTheLabels(["a", "b", "c"]), "sizes: found"),
        (RepairsGreedily(["O", "B-a", "I-a"], "bio"), "mode is not the most probable"),
    ],
)
def test_the_checks_find_a_broken_space(space, message):
    with pytest.raises(AssertionError, match=message):
        check_space(space)


def test_sound_spaces_pass_whether_or_not_they_are_small():
    for space in (
        LabelSet(["a"]),
        LabelSet(list("abcde")),
        LabelSet([str(i) for i in range(40)]),
        TagSequence(["x", "y"]),
        TagSequence(["O", "B-a", "I-a", "I-b", "B-b"], "bio"),
        TagSequence(["O", "B-a", "I-a", "E-a", "S-b"], "bioes"),
    ):
        check_space(space)


def make_stage(loss, epochs=1, names=("net",), trains=("inference_net",), gradient=backward, **fields):
    """The net alone, in phases of one loss."""
    phases = tuple(sp.Phase(name, trains, loss, sp.Player(), gradient) for name in names)
    return sp.Stage("train", phases, epochs, **fields)


def make_cross_entropy(context):
    return {"a": sp.cross_entropy(context)}


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (make_stage(make_cross_entropy, names=("one", "two")), r"inference_net\.\S+ belongs to \['one', 'two'\]"),
        (make_stage(make_cross_entropy, 0), "Broken trains for no epoch"),
        (make_stage(lambda c: {"a": 1.0}), "term 'a': found float, expected a tensor"),
        (make_stage(lambda c: {"a": sp.cross_entropy(c).detach()}), "term 'a' is detached"),
        (make_stage(lambda c: {"a": sp.cross_entropy(c).mean()}), r"found shape \(\)"),
        (
            make_stage(lambda c: {"a": sp.cross_entropy(c).mean().expand(len(c.batch))}),
            "phase 'net': term 'a' of an example depends on whether other examples have gold",
        ),
        (
            make_stage(lambda c: {"a": -c.batch.gold_log_prob(c.proposal)}),
            "phase 'net': its loss fails for a batch without gold, batch.gold = None",
        ),
        (
            make_stage(
                lambda c: make_cross_entropy(c) if c.batch.gold is None else {"a": -c.batch.gold_log_prob(c.proposal)}
            ),
            "phase 'net': term 'a' of an example depends on whether other examples have gold",
        ),
        (
            make_stage(make_cross_entropy, gradient=lambda update: None),
            "gradient rule has no gradient to inference_net",
        ),
        (make_stage(make_cross_entropy, select=lambda model, batches: "x"), "select returned 'x'; expected a number"),
        (make_stage(make_cross_entropy, names=("a", "a")), "stage 'train': phases: found the names a, a; expected"),
    ],
)
def test_the_checks_find_a_broken_trainer(stage, message):
    task, trainer = ToyLabels(), type("Broken", (sp.Trainer,), {"stages": lambda *_: [stage]})
    model = Model(make_independent(task), None, None)
    with pytest.raises(AssertionError, match=message):
        check_trainer(trainer(sp.TrainerConfig()), model, task)
    with pytest.raises(AssertionError, match="expected an instance, such as"):
        check_trainer(trainer, model, task)


def make_semi_supervised(context):
    """A term of the examples without gold, if there are any."""
    labelled = context.batch.labelled
    return make_cross_entropy(context) | (
        {} if labelled.all() else {"b": context.proposal.mean.flatten(1).sum(1) * ~labelled}
    )


def refuse_unlabelled(context):
    if not context.batch.labelled.all():
        raise sp.ConfigError("needs gold")
    return make_cross_entropy(context)


@pytest.mark.parametrize(
    "stage",
    [
        make_stage(make_semi_supervised),
        make_stage(refuse_unlabelled),
        make_stage(lambda c: {"a": -c.batch.gold_log_prob(c.proposal)}, examples=ToyLabels().part("train")),
        make_stage(make_cross_entropy, select=lambda model, batches: next(model.parameters()).sum()),
    ],
)
def test_the_checks_accept_a_trainer_that_runs(stage):
    task, trainer = ToyLabels(), type("Sound", (sp.Trainer,), {"stages": lambda *_: [stage]})
    model, state = Model(make_independent(task), None, None), torch.random.get_rng_state()
    check_trainer(trainer(sp.TrainerConfig()), model, task)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_stages_of_one_name_are_found():
    task, stage = ToyLabels(), make_stage(make_cross_entropy)
    trainer = type("Broken", (sp.Trainer,), {"stages": lambda *_: [stage, stage]})
    with pytest.raises(AssertionError, match="Broken's stages: found the names train, train; expected different names"):
        check_trainer(trainer(sp.TrainerConfig()), Model(make_independent(task), None, None), task)


class LastScore(sp.Metric):
    """The score of the last batch alone."""

    def __init__(self, task, counts_all):
        self.task, self.counts_all = task, counts_all

    def update(self, proposal, batch):
        hits = self.task.space.score(proposal.mode, batch.gold, batch.x.mask)[:, 0]
        self.score = float((hits if self.counts_all else hits[batch.labelled]).mean())

    def compute(self):
        return {"exact_match": self.score}


class AnyMetric(LastScore):
    """A mean over batches, in which rows without gold count."""

    def update(self, proposal, batch):
        super().update(proposal, batch)
        self.scores = [*getattr(self, "scores", []), self.score]

    def compute(self):
        return {"exact_match": sum(self.scores) / len(self.scores)}


def crash_without_gold(self, examples, rows=None):
    return ToyLabels.collate(self, [(vector, [*labels]) for vector, labels in examples], rows)


def count_all_as_labelled(self, examples, rows=None):
    batch = ToyLabels.collate(self, examples, rows)
    return batch if batch.gold is None else replace(batch, labelled=batch.labelled | True)


def mask_in_numbers(self, examples, rows=None):
    batch = ToyLabels.collate(self, examples, rows)
    return replace(batch, x=replace(batch.x, mask=torch.ones(len(batch), 4)))


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ({"collate": crash_without_gold}, TypeError, "NoneType"),
        ({"collate": count_all_as_labelled}, AssertionError, r"found labelled=.* expected \[True, False"),
        ({"collate": mask_in_numbers}, AssertionError, r"mask: found torch\.float32; expected torch\.bool"),
        (
            {"metric": lambda task: LastScore(task, False)},
            AssertionError,
            "exact_match depends on the order of batches",
        ),
        ({"metric": lambda task: AnyMetric(task, True)}, AssertionError, "predictions for rows without gold"),
    ],
)
def test_the_checks_find_a_broken_task(methods, error, message):
    task = type("Broken", (ToyLabels,), methods)
    with pytest.raises(error, match=message):
        check_task(task(), [(vector, None) for vector, _ in ToyLabels().part("train")[3:5]])
    with pytest.raises(AssertionError, match="expected an instance, such as"):
        check_task(task)


def test_parts_of_a_task_are_checked() -> None:
    class Rewarded(ToyLabels, sp.Rewards):
        def reward(self, x: sp.X, y: torch.Tensor) -> torch.Tensor:
            return 2 + y.sum(-1)

    with pytest.raises(AssertionError, match=r"Rewarded\.reward is outside \[0, 1\]"):
        check_task(Rewarded())
