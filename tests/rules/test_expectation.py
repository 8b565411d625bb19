"""Losses of nets that learn from rules: votes as gold, the votes' energy, and generalized expectation."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_plugins.testing import comparing as toys
from spen_rules.files import Rule
from spen_rules.imitation import Expectation, Imitation, make_targets
from spen_rules.violation import Violation
from spen_rules.vote_energy import Votes
from spen_seal.static import Static
from tests.rules.test_votes import BIO, PLAIN, bound, collate, votes_for


class RuledTags(ToyTags, sp.TakesRules):
    """Toy sentences with rules for these tags."""

    def __init__(self, space: sp.TagSequence | None = None, *rules) -> None:
        super().__init__()
        self.space = space or self.space
        self.rules = bound(self.space, *rules)
        self.indexers["rules"] = self.rules


class RuledLabels(ToyLabels, sp.TakesRules):
    """Toy vectors with rules for these labels."""

    def __init__(self, space: sp.LabelSet, *rules) -> None:
        super().__init__()
        self.space, self.rules = space, bound(space, *rules)


def make_expectation(task: sp.Task, **fields: float) -> Expectation:
    return Expectation(Expectation.Config(**fields), task).double()


def make_batch(fired: Tensor, mask: Tensor | None = None, labelled: Tensor | None = None) -> sp.Batch:
    """Returns a batch without inputs other than the places where rules fire."""
    labelled = torch.zeros(len(fired), dtype=torch.bool) if labelled is None else labelled
    x = sp.X({sp.FIRED: fired}, mask, len(fired))
    return sp.Batch(x, torch.arange(len(fired)), None, labelled)


def compute_term(loss: Expectation, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
    """Returns the loss's term, after a check that it is the same in all rows."""
    values = loss.net_terms(None, batch, proposal)["expectation"]
    assert values.shape == (len(batch),) and (values == values[0]).all()
    return values[0]


def compute_divergence(g: list[float], counts: list[float]) -> float:
    return sum(a * math.log(a / (c / sum(counts))) for a, c in zip(g, counts, strict=True))


def test_the_optimum_of_one_token_and_one_rule_is_its_target():
    task = RuledTags(sp.TagSequence(["A", "B"]), votes_for("A", "a"))
    loss = make_expectation(task, target=0.75, memory=0)
    batch = make_batch(torch.ones(1, 1, 1, dtype=torch.bool))
    logits = torch.tensor([-1.0, 2.0], dtype=torch.float64).view(1, 1, 1, 2).requires_grad_()
    g = torch.tensor([0.75, 0.25], dtype=torch.float64)
    for step in range(200):
        value = compute_term(loss, batch, task.space.independent(logits))
        q = logits.detach().softmax(-1).flatten()
        assert float(value.detach()) == pytest.approx(compute_divergence([0.75, 0.25], q.tolist()), abs=1e-12)
        [gradient] = torch.autograd.grad(value, [logits])
        torch.testing.assert_close(gradient.flatten(), q - g, rtol=0, atol=1e-12)
        logits = (logits - gradient).detach().requires_grad_() if step < 199 else logits
    torch.testing.assert_close(logits.softmax(-1).flatten(), g, rtol=0, atol=1e-6)


@pytest.mark.parametrize("tags", [PLAIN, BIO])
def test_the_gradient_on_a_crf_is_the_covariance_of_mann_and_mccallum(tags):
    rules = (
        (votes_for("PER", "Ann Lee"), votes_for("LOC", "Lee", against=True))
        if tags == BIO
        else (votes_for("N A", "Ann Lee"), votes_for("V", "Lee"))
    )
    space = sp.TagSequence(tags)
    task = RuledTags(space, *rules)
    loss = make_expectation(task, memory=0)
    cls, config = Registry().parse("inference_net", {"type": "crf"}, "inference_net", "test")
    crf = cls(config, task, ToyFeatures(task)).double()
    first, last, transitions = (torch.nn.init.normal_(part).tolist() for part in (crf.start, crf.end, crf.transitions))
    sentences = [("Ann", "Lee", "x"), ("Lee", "Ann")]
    inputs = task.rules.collate([task.rules.index(words) for words in sentences])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    words = torch.tensor([[2, 3, 4], [5, 2, 0]])
    proposal = crf(sp.X({"words": words}, mask, 2))
    emissions = proposal.logits
    [gradient] = torch.autograd.grad(compute_term(loss, make_batch(inputs[sp.FIRED], mask), proposal), [emissions])

    kinds = [tag.partition("-")[2] or tag for tag in tags]
    order = list(dict.fromkeys(kinds))
    paths: list[list[tuple[tuple[int, ...], float]]] = []  # per sentence, with probabilities
    for row, sentence in enumerate(sentences):
        scored = []
        for path in itertools.product(range(len(tags)), repeat=len(sentence)):
            score = first[path[0]] + last[path[-1]] + sum(transitions[a][b] for a, b in itertools.pairwise(path))
            score += sum(float(emissions[row, 0, t, k].detach()) for t, k in enumerate(path))
            scored.append((path, math.exp(score)))
        z = sum(weight for _, weight in scored)
        paths.append([(path, weight / z) for path, weight in scored])

    def count_hits(row: int, rule: int, kind: str, path: tuple[int, ...]) -> int:
        return sum(bool(inputs[sp.FIRED][row, t, rule]) and kinds[k] == kind for t, k in enumerate(path))

    expected = torch.zeros_like(emissions)
    for rule, kind in itertools.product(range(2), order):
        hits = float(inputs[sp.FIRED][..., rule].sum())
        q = sum(p * count_hits(row, rule, kind, path) for row in range(2) for path, p in paths[row]) / hits
        g = float(loss.targets[rule, order.index(kind)])
        for row, (t, k) in itertools.product(range(2), itertools.product(range(3), range(len(tags)))):
            if t < len(sentences[row]):
                joint = sum(p * count_hits(row, rule, kind, path) for path, p in paths[row] if path[t] == k)
                mean = sum(p * count_hits(row, rule, kind, path) for path, p in paths[row])
                expected[row, 0, t, k] -= (
                    g / q / hits * (joint - mean * sum(p for path, p in paths[row] if path[t] == k))
                )
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-10)
    assert gradient.abs().max() > 0.01


def test_counts_run_over_batches_only_in_training():
    task = RuledTags(sp.TagSequence(PLAIN), votes_for("N", "a"), votes_for("V", "b"))
    loss = make_expectation(task, memory=0.5)
    fired = torch.tensor([[[1, 0], [1, 1]], [[1, 1], [0, 1]]]).bool()
    first, second = (torch.randn(2, 1, 2, 3, dtype=torch.float64).requires_grad_() for _ in range(2))
    p, p2 = (logits.detach().softmax(-1)[:, 0] for logits in (first, second))
    g = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]]

    def compute_loss(counts: Tensor) -> float:
        return sum(compute_divergence(target, row.tolist()) for target, row in zip(g, counts, strict=True))

    counts = torch.stack([p[0, 0] + p[0, 1] + p[1, 0], p[0, 1] + p[1, 0] + p[1, 1]])
    value = compute_term(loss, make_batch(fired), task.space.independent(first))
    assert float(value.detach()) == pytest.approx(compute_loss(counts))
    torch.testing.assert_close(loss.running, counts)

    # The second batch's first row has gold.
    labelled = torch.tensor([True, False])
    updated = 0.5 * counts + torch.stack([p2[1, 0], p2[1, 0] + p2[1, 1]])
    for logits in (second.detach(), second):
        running = loss.running.clone()
        value = compute_term(loss, make_batch(fired, labelled=labelled), task.space.independent(logits))
        assert float(value.detach()) == pytest.approx(compute_loss(updated))
        assert torch.equal(loss.running, running) is not logits.requires_grad
    torch.testing.assert_close(loss.running, updated)
    assert not loss.running.requires_grad
    [gradient] = torch.autograd.grad(value, [second])
    assert not gradient[0].any() and gradient[1].any(-1).all()


def test_a_rule_that_never_fires_adds_nothing():
    task = RuledTags(sp.TagSequence(PLAIN), votes_for("N", "a"), votes_for("N V A", "b"))
    loss = make_expectation(task)
    logits = torch.randn(1, 1, 2, 3, dtype=torch.float64, requires_grad=True)
    for fired in ([[0, 0], [0, 0]], [[0, 1], [0, 1]]):  # the second rule votes for all tags, so it favours none
        assert compute_term(loss, make_batch(torch.tensor([fired]).bool()), task.space.independent(logits)) == 0


def test_labels_by_hand():
    space = sp.LabelSet(["a", "b", "c"])
    task = RuledLabels(space, votes_for("a", "x"), votes_for("b", "y", against=True))
    loss = make_expectation(task, target=0.75, memory=0)
    fired = torch.tensor([[1, 0], [1, 1], [0, 1], [1, 0]]).bool()
    labelled = torch.tensor([False, False, False, True])
    logits = torch.randn(4, 1, 3, dtype=torch.float64)
    p = torch.sigmoid(logits)[:, 0]
    present, absent = float(p[:2, 0].mean()), float(p[1:3, 1].mean())
    expected = compute_divergence([0.75, 0.25], [present, 1 - present]) + compute_divergence(
        [0.25, 0.75], [absent, 1 - absent]
    )
    value = compute_term(loss, make_batch(fired, labelled=labelled), space.independent(logits))
    assert float(value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("side", "target"),
    [
        ([1, 0, 0], [0.9, 0.05, 0.05]),
        ([1, 1, 0], [0.45, 0.45, 0.1]),
        ([-1, 0, 0], [0.1, 0.45, 0.45]),
        ([-1, -1, 0], [0.05, 0.05, 0.9]),
        ([0, 0, 0], [0, 0, 0]),
        ([1, 1, 1], [0, 0, 0]),
        ([-1, -1, -1], [0, 0, 0]),
    ],
)
def test_targets_of_tags(side, target):
    targets = make_targets(torch.tensor([side]), 0.9, has_tags=True)[0]
    torch.testing.assert_close(targets, torch.tensor(target).float())
    assert float(targets.sum()) == pytest.approx(1 if any(target) else 0)


def test_targets_of_labels_and_of_types():
    targets = make_targets(torch.tensor([[1, -1, 0]]), 0.9, has_tags=False)[0]
    torch.testing.assert_close(targets, torch.tensor([[0.9, 0.1], [0.1, 0.9], [0, 0]]))
    loss = make_expectation(RuledTags(sp.TagSequence(BIO), votes_for("PER", "a"), votes_for("LOC", "a", against=True)))
    torch.testing.assert_close(loss.targets.float(), torch.tensor([[0.05, 0.9, 0.05], [0.45, 0.45, 0.1]]))


def make_context(task: sp.Task, cls: type[sp.EnergyLoss]) -> sp.OneBatch:
    """Returns a CRF with the votes' energy, on a batch whose first half has gold."""
    net, config = Registry().parse("inference_net", {"type": "crf"}, "inference_net", "test")
    torch.manual_seed(0)
    model = sp.Model(net(config, task, ToyFeatures(task)), Votes(Votes.Config(), task), cls(cls.Config(), task))
    words, marks, _ = task.part("train")[2]
    examples = [*task.part("train")[:2], (words, marks, None), (["dogs", "chase", "cats"], [0, 1, 0], None)]
    return sp.OneBatch(model.double(), toys.collate(task, examples))


def compute_losses(context: sp.OneBatch, weight: float) -> Tensor:
    """Returns the loss of each row in the phase of the net."""
    trainer = Static(Static.Config(energy_epochs=0, energy_weight=weight))
    [stage] = trainer.stages(context.model, ToyTags())
    return sum(stage.phases[0].loss(sp.OneBatch(context.model, context.batch)).values())


@pytest.mark.parametrize("cls", [Imitation, Violation, Expectation])
def test_without_a_weight_the_loss_is_cross_entropy_and_a_weight_adds_its_term(cls):
    task = RuledTags(None, votes_for("A0", "dogs", "cats"), votes_for("A1", "chase", weight=0.5))
    context = make_context(task, cls)
    parameters = list(context.model.inference_net.parameters())

    def gradients(loss: Tensor) -> list[Tensor]:
        grads = torch.autograd.grad(loss.mean(), parameters, allow_unused=True, retain_graph=True)
        return [torch.zeros_like(p) if g is None else g for g, p in zip(grads, parameters, strict=True)]

    net_gradients = gradients(sp.cross_entropy(context))
    torch.testing.assert_close(gradients(compute_losses(context, 0.0)), net_gradients, rtol=1e-12, atol=1e-12)
    [added] = context.model.energy_loss.net_terms(context.energy, context.batch, context.proposal).values()
    expected = [a + 0.7 * b for a, b in zip(net_gradients, gradients(added), strict=True)]
    if cls is Expectation:
        context.model.energy_loss.running = torch.zeros_like(context.model.energy_loss.running)
    torch.testing.assert_close(gradients(compute_losses(context, 0.7)), expected, rtol=1e-9, atol=1e-12)
    assert any(g.any() for g in gradients(added))
    if cls is not Violation:
        assert not context.model.energy_loss(context.energy, context.batch, context.proposal).any()


def test_imitation_is_minus_ln_q_of_the_best_votes_where_there_is_no_gold():
    """Per word; at a tie, of both tags together; not at words without a vote."""
    task = RuledTags(None, votes_for("A0", "dogs", "cats"), votes_for("A1", "chase", "cats", weight=1.0))
    context = make_context(task, Imitation)
    values = context.model.energy_loss.net_terms(context.energy, context.batch, context.proposal)["votes"]
    batch = toys.collate(task, [(["dogs", "chase", "cats"], [0, 1, 0], None)])
    p = context.model.inference_net(batch.x).mean[0, 0]
    first, second = (task.space.tags.index(tag) for tag in ("B-A0", "B-A1"))
    likelihood = p[0, first] * p[1, second] * (p[2, first] + p[2, second])
    torch.testing.assert_close(values[3], -likelihood.log())
    assert not values[:2].any() and (values[2:] > 0).all()


def test_imitation_ignores_words_without_a_vote():
    rules = RuledTags(sp.TagSequence(PLAIN), votes_for("N", "a"), Rule("r", ("V",), True, 1.0, lambda w: [(1, 2)], 1))
    x = collate(rules.rules, "a b c")
    batch = sp.Batch(x, torch.arange(1), None, torch.tensor([False]))
    logits = torch.randn(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    loss = Imitation(Imitation.Config(), rules)
    value = loss.net_terms(None, batch, rules.space.independent(logits, x.mask))["votes"]
    torch.testing.assert_close(value[0], -logits.log_softmax(-1)[0, 0, 0, PLAIN.index("N")])
    [gradient] = torch.autograd.grad(value.sum(), [logits])
    assert not gradient[0, 0, 1:].any()
