"""Gradient-based inference against closed forms and enumeration."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
from pydantic import ValidationError

import spen_plugins as sp
from spen_plugins.batch import Batch
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.builtin.losses.basic import Dvn, Ssvm
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.config.experiment import build, parse_experiment
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.inference import descent
from spen_plugins.inference.descent import Descent, ProbeConfig, minimise, starts
from spen_plugins.inference.gbi import Gbi
from spen_plugins.loop.evaluation import probe
from spen_plugins.nn import margin_cost
from spen_plugins.registry import Registry
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.scores.label_decoding import LabelDecoder
from spen_plugins.spaces import LabelSet, TagSequence
from spen_plugins.task_parts import selection_score
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from tests.loaded import experiment, spen, trained

LABELS = LabelSet(list("abcdefghijkl"))
TAGS = TagSequence(list("abc"))

# Settings that should reach a minimum, with plenty of steps.
CONFIGS = [
    Descent(steps=400, method="projected", optimizer="gradient", lr=0.2),
    Descent(steps=200, method="projected", optimizer="gradient", lr=0.1, momentum=0.5),
    Descent(steps=400, method="projected", optimizer="adam", lr=0.02),
    Descent(steps=400, method="mirror", optimizer="gradient", lr=2.0),
    Descent(steps=400, method="mirror", optimizer="adam", lr=0.1),
    Descent(steps=400, method="logits", optimizer="adam", lr=0.1),
]
IDS = [f"{config.method}-{config.optimizer}{'-momentum' if config.momentum else ''}" for config in CONFIGS]


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_the_minimum_of_a_quadratic_in_the_box(config):
    target = torch.rand(3, 1, 12, dtype=torch.float64) * 0.8 + 0.1

    def objective(y):
        return (y - target).square().sum(-1)

    start = starts(["uniform", "random"], LABELS, target, None, random=2)
    result = minimise(objective, LABELS, start, None, config)
    assert result.y.shape == (3, 3, 12)
    torch.testing.assert_close(result.y, target.expand(3, 3, 12), atol=2e-2, rtol=0)
    torch.testing.assert_close(result.energy, objective(result.y))


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_the_minimum_of_a_quadratic_on_the_simplex_and_padding(config):
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    target = torch.softmax(torch.randn(2, 1, 4, 3, dtype=torch.float64), -1) * mask[:, None, :, None]
    result = minimise(
        lambda y: (y - target).square().flatten(2).sum(-1), TAGS, starts(["uniform"], TAGS, target, mask), mask, config
    )
    torch.testing.assert_close(result.y, target, atol=3e-2, rtol=0)
    assert not result.y[1, :, 2:].any()


def test_a_minimum_outside_the_box_is_found_on_its_border():
    target = torch.tensor([[[2.0, -1.0, 0.5]]])
    space = LabelSet(list("abc"))
    result = minimise(
        lambda y: (y - target).square().sum(-1), space, torch.full_like(target, 0.5), None, Descent(steps=100, lr=0.05)
    )
    torch.testing.assert_close(result.y, target.clamp(0, 1), atol=1e-3, rtol=0)


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_the_best_of_all_label_sets(config):
    """An energy that is linear in each label, so that some corner is a relaxed minimum, which enumeration
    finds."""
    torch.manual_seed(1)
    linear = torch.randn(4, 12)
    pairs = torch.randn(12, 12) * 0.1
    pairs = (pairs + pairs.T) / 2
    pairs.fill_diagonal_(0)  # linear in each label: some corner is a minimum

    def objective(y):
        return (y * linear.unsqueeze(1)).sum(-1) + torch.einsum("bsi,ij,bsj->bs", y, pairs, y)

    corners = torch.tensor(list(itertools.product([0.0, 1.0], repeat=12))).expand(4, -1, -1)
    best = objective(corners).amin(1)
    start = starts(["zeros", "uniform", "random"], LABELS, torch.zeros(4, 1, 12), None, random=4, seed=0)
    result = minimise(objective, LABELS, start, None, config).lowest()
    rounded = objective(LABELS.round(result.y))[:, 0]
    torch.testing.assert_close(rounded, best, atol=1e-4, rtol=0)


@pytest.mark.parametrize("optimizer", ["adam", "gradient"])
def test_mirror_descent_stays_inside(optimizer):
    slope = torch.randn(2, 1, 5, 3) * 10
    start = starts(["uniform"], TAGS, slope, torch.ones(2, 5, dtype=torch.bool))
    config = Descent(steps=20, method="mirror", optimizer=optimizer, lr=0.5)
    mask = torch.ones(2, 5, dtype=torch.bool)
    result = minimise(lambda y: (y * slope).flatten(2).sum(-1), TAGS, start, mask, config, keep=True)
    assert len(result.path) == 21
    for y in result.path:
        assert (y >= 0).all()
        torch.testing.assert_close(y.sum(-1), torch.ones(2, 1, 5))
    assert torch.equal(result.y.argmax(-1), slope.argmin(-1))


def test_best_and_last():
    """A step too long for a parabola: the last iterate is worse than the start, the best is the start."""
    start = torch.full((1, 1, 1), 0.6)
    space = LabelSet(["a"])

    def objective(y):
        return (y - 0.5).square().sum(-1)

    settings = {"steps": 1, "optimizer": "gradient", "lr": 10.0}
    last = minimise(objective, space, start, None, Descent(**settings, pick="last"))
    best = minimise(objective, space, start, None, Descent(**settings))
    assert last.y.item() == 0.0 and best.y.item() == pytest.approx(0.6)
    assert best.energy.item() == pytest.approx(0.01)


def test_several_starts_find_the_deeper_of_two_wells():
    space = LabelSet(["a"])

    def objective(y):  # wells at 0.1 and 0.9, the second deeper
        z = y[..., 0]
        return (z - 0.1).square() * (z - 0.9).square() * 50 - 0.2 * z

    start = torch.tensor([[[0.05], [0.95]]])
    result = minimise(objective, space, start, None, Descent(steps=200, lr=0.01))
    assert result.y[0, 0].item() < 0.5 < result.y[0, 1].item()
    assert result.lowest().y.item() == result.y[0, 1].item()


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_examples_are_independent(config):
    target = torch.rand(3, 1, 12)
    scale = torch.tensor([1.0, 100.0, 0.01]).view(3, 1)

    def make_objective(rows):
        return lambda y: scale[rows] * (y - target[rows]).square().sum(-1)

    config = config.model_copy(update={"steps": 5})
    start = torch.full_like(target, 0.5)
    joint = minimise(make_objective([0, 1, 2]), LABELS, start, None, config).y
    for i in range(3):
        single = minimise(make_objective([i]), LABELS, start[i : i + 1], None, config).y
        torch.testing.assert_close(joint[i : i + 1], single)


def test_seeded_random_starts_are_the_same_for_all_and_longer_ones_begin_alike():
    short, long = torch.zeros(2, 1, 3, 3), torch.zeros(2, 1, 5, 3)
    masks = [torch.ones(2, t, dtype=torch.bool) for t in (3, 5)]
    a = starts(["random"], TAGS, short, masks[0], random=2, seed=0)
    b = starts(["random"], TAGS, long, masks[1], random=2, seed=0)
    assert torch.equal(a, b[:, :, :3]) and torch.equal(a[0], a[1]) and not torch.equal(a[:, 0], a[:, 1])
    assert not torch.equal(starts(["random"], TAGS, short, masks[0]), starts(["random"], TAGS, short, masks[0]))


def test_no_finite_energy_is_an_error():
    with pytest.raises(RunError, match="no finite energy"):
        minimise(lambda y: y.sum(-1) * float("nan"), LABELS, torch.zeros(1, 1, 12), None, Descent(steps=2))


def test_a_start_without_a_finite_energy_leaves_the_others_unaffected():
    """A start at which the energy is NaN hides neither its example's other start nor the other examples."""

    def objective(y):
        energy = (y - 0.3).square().sum(-1)
        return torch.where(y[..., 0] > 0.8, torch.nan, energy)

    start = torch.tensor([[[0.9, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.2, 0.2]]])
    result = minimise(objective, LabelSet(["a", "b"]), start, None, Descent(steps=200, lr=0.02))
    assert result.energy.isnan().tolist() == [[True, False], [False, False]]
    torch.testing.assert_close(result.lowest().y, torch.full((2, 1, 2), 0.3), atol=1e-2, rtol=0)
    with pytest.raises(RunError, match="some example"):
        minimise(objective, LabelSet(["a", "b"]), start[:, :1], None, Descent(steps=5))


def test_settings_that_do_not_fit():
    with pytest.raises(ValidationError, match="lbfgs"):
        Descent(optimizer="lbfgs")
    with pytest.raises(ValidationError, match="momentum"):
        Descent(momentum=0.5)


# The net, and losses that search for outputs themselves


def make_energy(task):
    torch.manual_seed(0)
    cls = LinearChain if isinstance(task.space, TagSequence) else Local
    return cls(cls.Config(), task, ToyFeatures(task))


def make_batch(task) -> Batch:
    return task.collate([task.part("train")[i] for i in range(4)])


@pytest.mark.parametrize("toy", [ToyLabels, ToyTags])
def test_gbi_finds_the_local_energys_minimum(toy):
    """The local energy is linear: its minimum over labels is known, sign by sign, and over tags, token by token."""
    task = toy()
    energy = Local(Local.Config(), task, ToyFeatures(task))
    batch = make_batch(task)
    net = Gbi(Gbi.Config(steps=60, starts=["uniform"]), task).eval()
    bound, mask = energy.at(batch.x), batch.x.mask
    with torch.no_grad():
        mean = net(batch.x, bound).mean
    expected = task.space.relax(bound.features[0].unsqueeze(1), mask)
    assert torch.equal(task.space.round(mean, mask), task.space.round(expected, mask))


def test_gbi_needs_a_net_to_start_from_one():
    with pytest.raises(ConfigError, match=r"inference_net\.net"):
        Gbi(Gbi.Config(starts=["net"]), ToyLabels())


def test_losses_see_the_net_that_gbi_starts_from():
    task = ToyLabels()
    energy, batch = make_energy(task), make_batch(task)
    inner = Independent(Independent.Config(), task, ToyFeatures(task))
    assert torch.equal(
        Gbi(Gbi.Config(), task, net=inner).training_proposal(batch.x, energy.at(batch.x)).logits, inner(batch.x).logits
    )
    default = Gbi(Gbi.Config(), task).training_proposal(batch.x, energy.at(batch.x))
    assert not default.logits.any()


def test_a_net_that_no_start_uses_does_not_run():
    class Busy(sp.InferenceNet):
        def forward(self, x, energy=None):
            raise AssertionError("nobody starts here")

    task = ToyLabels()
    batch, bound = make_batch(task), make_energy(task).at(make_batch(task).x)
    with torch.no_grad():
        proposal = Gbi(Gbi.Config(starts=["random"]), task, net=Busy(sp.Config(), task)).eval()(batch.x, bound)
    assert torch.isfinite(proposal.logits).all()


def test_other_predictions_are_scored_at_their_own_threshold():
    task = MultiLabel(MultiLabel.Config(corpus="sample", threshold="validation"))
    task.load()
    batch = task.collate(task.part("validation"))
    task.decoder = LabelDecoder(0.9)  # as fitted to the model's predictions
    low = task.space.independent(torch.logit(0.1 + 0.2 * batch.gold))
    assert selection_score(task, [(low, batch)]) == 1.0
    assert task.threshold == 0.9


@pytest.mark.parametrize("toy", [ToyLabels, ToyTags])
@pytest.mark.parametrize("cost", ["mean_l1", "l1", "score"])
def test_ssvm_is_zero_only_without_violations(toy, cost):
    """Against enumeration of margin violations: never above the worst one, and zero if there is none."""
    task = toy()
    energy, batch = make_energy(task), make_batch(task)
    loss = Ssvm(
        Ssvm.Config(cost=cost, descent=Descent(steps=100, lr=0.1), starts=["uniform", "random"], random=8), task
    )
    proposal = task.space.independent(torch.zeros_like(batch.gold), batch.x.mask)
    bound = energy.at(batch.x)
    value = loss(bound, batch, proposal)
    assert (value >= 0).all() and value.requires_grad

    class Sure(sp.Energy):
        """Gold's energy is so low that nothing violates the margin."""

        def forward(self, features, y):
            return 1e3 * (y - batch.gold).abs().flatten(2).sum(-1)

    assert not loss(Sure(sp.Config(), task).at(batch.x), batch, proposal).any()

    class Wrong(sp.Energy):
        """Gold's energy is so high that everything else violates the margin."""

        def forward(self, features, y):
            return -10 * (y - batch.gold).abs().flatten(2).sum(-1)

    violated = loss(Wrong(sp.Config(), task).at(batch.x), batch, proposal)
    assert (violated > 1).all()
    if toy is ToyLabels:
        k = task.space.shape[-1]
        corners = torch.tensor(list(itertools.product([0.0, 1.0], repeat=k))).expand(4, -1, -1)
        worst = (margin_cost(task.space, corners, batch.gold, None, cost) - bound(corners)).amax(1) + bound(batch.gold)[
            :, 0
        ]
        if cost != "score":  # Δ − E is then linear on the box, so its maximum is at a corner
            torch.testing.assert_close(value, worst.clamp(min=0), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("toy", [ToyLabels, ToyTags])
def test_dvn_adversary_steps_along_the_gradient_of_the_loss(toy):
    """One plain step up the loss, whose gradient is not the energy's, from gold in some rows only."""
    task = toy()
    energy, batch = make_energy(task), make_batch(task)
    proposal = task.space.independent(torch.zeros_like(batch.gold), batch.x.mask)
    step = Descent(steps=1, optimizer="gradient", lr=0.3, pick="last")
    loss = Dvn(Dvn.Config(starts=["uniform"], adversary=step), task)
    bound, origins = energy.at(batch.x), set()
    for seed in range(16):
        torch.manual_seed(seed)
        outputs = loss.outputs(bound, batch, proposal)[:, 2:]
        for origin, start in (("gold", batch.gold), ("start", proposal.mean)):
            y = start.clone().requires_grad_()
            [slope] = torch.autograd.grad(loss.value_loss(bound, batch, y).sum(), y)
            is_reached = (task.space.project(start + 0.3 * slope, batch.x.mask) - outputs).abs().flatten(1).amax(
                1
            ) < 1e-6
            origins.update((origin, row) for row in is_reached.nonzero().flatten().tolist())
    assert origins == {(origin, row) for origin in ("gold", "start") for row in range(len(batch))}


def test_dvn_value_loss_is_lowest_where_the_guess_is_the_score():
    task = ToyLabels()
    batch = make_batch(task)
    y = torch.rand(4, 1, task.space.shape[-1])
    score = task.space.score(y, batch.gold, None)

    class Knows(sp.Energy):
        def forward(self, features, y):
            return -torch.logit(task.space.score(y, batch.gold, None)) + self.off

    losses = []
    for off in (-0.5, 0.0, 0.5):
        energy = Knows(sp.Config(), task)
        energy.off = off
        losses.append(Dvn(Dvn.Config(), task).value_loss(energy.at(batch.x), batch, y))
    entropy = -(score * score.log() + (1 - score) * (1 - score).log())
    torch.testing.assert_close(losses[1], entropy, atol=1e-4, rtol=1e-4)
    assert (losses[0] > losses[1]).all() and (losses[2] > losses[1]).all()


# Nested components


SMALL = {"features.hidden": "[16]", "energy.hidden": "8"}


def check_config(net: dict):
    table = experiment("labels", **SMALL, method="dvn")
    return parse_experiment({**table, "inference_net": {"type": "gbi", **net}}, "x.jsonnet", Registry())


@pytest.mark.parametrize(
    ("net", "message"),
    [
        ({"nett": {"type": "independent"}}, r"'inference_net\.nett'\. Did you mean 'net'\?.*net: table of kind"),
        ({"net": 5}, r"inference_net\.net: expected a table with a 'type', found 5"),
        ({"net": {"type": "seal.labels"}}, r"inference_net\.net\.type: .* is of kind energy"),
        ({"net": {"type": "independent", "featurs": {}}}, r"inference_net\.net\.featurs'\. Did you mean 'features'"),
        ({"net": {"type": "independent", "features": {"type": "mlp", "hiden": [4]}}}, r"net\.features\.hiden"),
        ({"net": {"type": "gbi", "features": {"type": "mlp"}}}, r"inference_net\.net\.features: .* uses no feature"),
    ],
)
def test_mistakes_in_a_nested_table(net, message):
    with pytest.raises(ConfigError, match=message):
        check_config(net)


def test_a_nested_table_is_completed_and_built():
    assert "net" not in check_config({"net": None}).inference_net.parts
    experiment = check_config({"net": {"type": "independent", "features": {"type": "mlp", "hidden": [4]}}})
    inner = experiment.table()["inference_net"]["net"]
    assert inner["bias"] is None and "dropout" in inner["features"]
    net = build(experiment).model.inference_net.net
    assert net.features.output_dim == 4
    plain = build(check_config({"net": {"type": "independent"}})).model.inference_net.net
    assert plain.features.output_dim == 16


def test_describe_lists_nested_tables():
    result = spen("describe", "inference_net", "gbi")
    assert "net: may hold the table of another component, of kind inference_net" in result.output


# Runs


@pytest.fixture(scope="module")
def seal(tmp_path_factory):
    arguments = SMALL | {"trainer.epochs": "2", "trainer.probe.steps": "3"}
    return trained("labels", tmp_path_factory.mktemp("seal") / "run", **arguments)


def test_probe_is_logged_without_changing_the_run(seal, tmp_path):
    records = [json.loads(line) for line in (seal / "history.jsonl").read_text().splitlines()]
    assert all(set(record["probe"]) == {"net", "net_gbi", "random_gbi"} for record in records)
    assert all(record["probe"]["net"] == record["score"] for record in records)
    assert all(list(record)[-4:] == ["validation", "probe", "score", "best"] for record in records)
    second = trained("labels", tmp_path / "run", **SMALL, **{"trainer.epochs": "2"})
    assert (second / "metrics.json").read_text() == (seal / "metrics.json").read_text()
    predictor = sp.load(seal)
    config = predictor.experiment.trainer.config.model_copy(update={"probe": ProbeConfig(every=2)})
    assert probe(predictor.model, predictor.task, config, torch.device("cpu"), 1, {}) == {}, "every second epoch"


def test_refined_predictions(seal):
    plain, refined = sp.load(seal), sp.load(seal, refine={"type": "gbi", "steps": 20, "lr": 0.3})
    examples = [{"vector": [0, 1] * (plain.task.inputs.size // 2) + [0] * (plain.task.inputs.size % 2)}]
    assert plain.predict(examples) != refined.predict(examples)
    assert refined.predict(examples) == refined.predict(examples)


def test_refining_lowers_the_energy(seal, tmp_path):
    plain, refined = sp.load(seal), sp.load(seal, refine="gbi")
    task = load_task(sp.RunFolder.open(seal), Registry())
    batch = task.collate(task.part("test")[:16])
    with torch.no_grad():
        bound = plain.model.energy.at(batch.x)
        plain_energy = bound(plain.model.propose(batch.x).mean)
        refined_energy = bound(refined.model.propose(batch.x).mean)
    assert (refined_energy <= plain_energy + 1e-3).all() and (refined_energy < plain_energy - 1e-2).any()


@pytest.fixture
def gold(seal, tmp_path):
    """A file with gold outputs for the run."""
    text = "@relation r\n" + "".join(
        f"@attribute {name} {{0,1}}\n" for name in [*sp.load(seal).task.columns.names, *sp.load(seal).task.space.labels]
    )
    width = len(text.splitlines()) - 1
    labels = len(sp.load(seal).task.space.labels)
    rows = [
        [(i * j) % 5 == 1 for j in range(width - labels)] + [j == i % labels for j in range(labels)] for i in range(6)
    ]
    path = tmp_path / "some.arff"
    path.write_text(text + "@data\n" + "\n".join(",".join(str(int(v)) for v in row) for row in rows) + "\n")
    return path


def test_trajectory_begins_at_the_nets_own_scores(seal, gold):
    result = spen("evaluate", seal, gold, "--refine", '{"type": "gbi", "steps": 4}', "--trajectory")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    plain = spen("evaluate", seal, gold)
    assert lines[0]["scores"]["example_f1"] == pytest.approx(json.loads(plain.stdout)["scores"]["example_f1"])
    assert lines[-1]["energy"] < lines[0]["energy"]
    refined = sp.load(seal, refine={"type": "gbi", "steps": 4}).evaluate_file(gold)
    details = {"ranking", "example_ap", "label_ap", "nll"}  # computed for runs and evaluations, not at each step
    assert {name: score for name, score in refined["scores"].items() if name not in details} == lines[-1]["scores"]
    assert refined["protocol"]["refined"].items() >= {"type": "gbi", "steps": 4, "lr": 0.1}.items()
    assert "refined" not in json.loads(plain.stdout)["protocol"]
    assert "--refine gbi" in spen("evaluate", seal, gold, "--trajectory", status=2).output


def test_any_net_with_iterates_has_a_trajectory(seal, gold):
    """The start is the net's output, and every step halves its logits."""

    class Halving(sp.InferenceNet):
        uses_energy = iterative = True

        def __init__(self, net, task):
            super().__init__(sp.Config(), task)
            self.net = net

        def forward(self, x, energy=None):
            logits = [self.net(x).logits / 2**step for step in range(3)]
            iterates = tuple(self.space.relax(iterate, x.mask) for iterate in logits) if self.keep_iterates else ()
            return self.space.independent(logits[-1], x.mask, iterates=iterates)

    predictor = sp.load(seal)
    plain = predictor.evaluate_file(gold)["scores"]
    net = predictor.model.inference_net = Halving(predictor.own_net, predictor.task)
    lines = list(predictor.trajectory_file(gold))
    assert [line["step"] for line in lines] == [0, 1, 2] and not net.keep_iterates
    assert lines[0]["scores"]["example_f1"] == pytest.approx(plain["example_f1"])
    assert len({line["energy"] for line in lines}) == 3


SHARED = {"features.hidden": "[16]", "trainer.epochs": "1"}


@pytest.fixture(scope="module")
def net_run(tmp_path_factory):
    return trained("labels", tmp_path_factory.mktemp("net") / "run", **SHARED, method="cross_entropy")


def test_a_run_without_energy_has_no_energies_and_no_trajectory(net_run, tmp_path):
    with pytest.raises(ConfigError, match="no energy"):
        sp.load(net_run).predict([{"features": []}], energy=True)
    with pytest.raises(ConfigError, match="without an energy"):
        next(sp.load(net_run).trajectory_file(tmp_path / "none.arff"))
    with pytest.raises(ConfigError, match="without an energy"):
        sp.load(net_run, refine="gbi")
    with pytest.raises(ConfigError, match="without an energy"):
        sp.load(net_run, refine="rerank")


@pytest.mark.parametrize(
    ("refine", "message"),
    [
        ("gbii", "Did you mean 'gbi'"),
        ("independent", "does not start from another"),
        ('{"type": "gbi", "net": {"type": "independent"}}', "run's own"),
        ('{"type": "gbi", "step": 3}', "Did you mean 'steps'"),
    ],
)
def test_invalid_refinements_are_rejected(seal, refine, message, tmp_path):
    (tmp_path / "x.arff").write_text("")
    assert message in spen("predict", seal, tmp_path / "x.arff", "--refine", refine, status=2).output


@pytest.mark.parametrize("method", ["spen", "dvn", "nce_alone"])
def test_an_energy_alone_learns_and_predicts(method, tmp_path):
    arguments = {"method": method, "trainer.epochs": "2", "features.hidden": "[32]", "energy.hidden": "8"}
    arguments["inference_net.steps"] = "5"
    if method != "nce_alone":
        arguments["energy_loss.descent.steps"] = "5"
    if method != "dvn":
        arguments["trainer.net_epochs"] = "3"
    folder = trained("labels", tmp_path / "run", **arguments)
    stages = [record["stage"] for record in sp.RunFolder(folder).history()]
    assert stages == ["net"] * (0 if method == "dvn" else 3) + ["energy"] * 2
    predictor = sp.load(folder)
    assert predictor.model.inference_net.uses_energy
    assert predictor.predict([{"features": []}])[0]["labels"] is not None


def test_gbi_starts_from_a_net_of_another_run(net_run, tmp_path):
    arguments = {**SHARED, "method": "nce_alone", "trainer.net_epochs": "0", "energy.hidden": "8"}
    folder = trained("labels", tmp_path / "energy", **arguments, **{"init.inference_net": str(net_run)})
    weights = sp.load(folder).model.inference_net.net.state_dict()
    expected = sp.load(net_run).model.inference_net.state_dict()
    assert weights.keys() == expected.keys() and all(torch.equal(weights[name], expected[name]) for name in weights)


def test_every_start_has_a_name():
    with pytest.raises(ValidationError):
        Gbi.Config(starts=["zero"])
    assert descent.starts(["zeros"], TAGS, torch.zeros(1, 1, 2, 3), None).sum(-1).allclose(torch.ones(1, 1, 2))
