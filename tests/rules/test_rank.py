"""The rank loss: hand-computed pairs, noisy inference, the search for outputs of higher reward."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.testing import ToyLabels
from spen_rules.rank import Rank, change_one
from tests.rules.test_expectation import RuledLabels, RuledTags
from tests.rules.test_votes import BIO, collate, votes_for
from tests.seal.toys import batch_of


class Rewarded(ToyLabels, sp.Rewards):
    """Toy label sets with a reward for each, indexed by the set as a binary number."""

    rewards: Tensor | None = None

    def reward(self, x: sp.X, y: Tensor) -> Tensor | None:
        return None if self.rewards is None else self.rewards.to(y)[number_sets(y)]


def number_sets(y: Tensor) -> Tensor:
    return (y @ (2.0 ** torch.arange(y.shape[-1], dtype=y.dtype))).long()


class Table(sp.Energy):
    """One parameter per label set; multilinear between the sets."""

    def __init__(self, task: sp.Task) -> None:
        super().__init__(sp.Config(), task)
        self.table = torch.nn.Parameter(torch.zeros(2 ** len(task.space.labels), dtype=torch.float64))

    def forward(self, features: object, y: Tensor) -> Tensor:
        sets = torch.tensor([*itertools.product((0, 1), repeat=y.shape[-1])]).flip(-1)
        return torch.where(sets.bool(), y.unsqueeze(2), 1 - y.unsqueeze(2)).prod(-1) @ self.table


class Constant(sp.Energy):
    def forward(self, features: object, y: Tensor) -> Tensor:
        return 0 * y.flatten(2).sum(2)


def make_rank(task: sp.Task, **fields: object) -> Rank:
    return Rank(Rank.Config(**fields), task)


def make_toy(labels: int, examples: int, rewards: list[float] | None) -> tuple[Rewarded, sp.Batch, Table]:
    """Returns a task with these rewards, a batch without gold, and a table of energies."""
    task = Rewarded(labels=labels)
    task.rewards = None if rewards is None else torch.tensor(rewards, dtype=torch.float64)
    examples = [(vector, None) for vector, _ in task.part("train")[:examples]]
    return task, sp.testing.comparing.collate(task, examples), Table(task)


def make_outputs(*numbers: int, labels: int = 2) -> Tensor:
    return torch.tensor([[[float(n >> i & 1) for i in range(labels)] for n in numbers]], dtype=torch.float64)


REWARDS = [0.0, 0.5, 0.5, 0.9]


@pytest.mark.parametrize(
    ("path", "energies", "margin", "loss"),
    [
        ((0, 1), [9, 4, 0, 0], 10, 0),  # the margin of 5 is met exactly
        ((0, 1), [9, 3, 0, 0], 10, 0),
        ((0, 1), [9, 6, 0, 0], 10, 2),
        ((1, 0), [9, 6, 0, 0], 10, 2),  # the order of a pair doesn't matter
        ((0, 1), [0, 3, 0, 0], 0, 3),
        ((0, 1), [3, 0, 0, 0], 0, 0),
        ((1, 2), [0, 5, 9, 0], 10, 0),  # equal rewards
        ((1, 1), [0, 5, 0, 0], 10, 0),
        ((0, 1, 2, 3), [9, 6, 1, 1], 10, 2 + 0 + 4),
    ],
)
def test_pairs_by_hand(monkeypatch, path, energies, margin, loss):
    task, batch, table = make_toy(2, 1, REWARDS)
    table.table.data = torch.tensor(energies, dtype=torch.float64)
    start = make_outputs(3)  # the start belongs to no pair
    monkeypatch.setattr(Rank, "_infer", lambda *_: torch.cat([start, make_outputs(*path)], 1))
    value = make_rank(task, pairs="iterates", margin=margin)(
        table.at(batch.x), batch, task.space.independent(make_outputs(0))
    )
    assert value.tolist() == pytest.approx([loss])
    if len(path) == 2:
        search = make_rank(task, pairs="search", margin=margin)
        monkeypatch.setattr(Rank, "_infer", lambda *_: make_outputs(3, path[0]))
        monkeypatch.setattr(Rank, "_search", lambda *_: make_outputs(path[1]))
        value = search(table.at(batch.x), batch, task.space.independent(make_outputs(0)))
        assert value.tolist() == pytest.approx([loss])


def test_rewards_that_differ_by_rounding_are_equal(monkeypatch):
    task, batch, table = make_toy(2, 1, [0.1, 0.5, 0.5 + 1e-7, 0.3])
    table.table.data = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    for pair in ((1, 2), (2, 1)):
        monkeypatch.setattr(Rank, "_infer", lambda *_, pair=pair: make_outputs(0, *pair))
        assert make_rank(task, pairs="iterates")(table.at(batch.x), batch, None).tolist() == [0]
        start = make_outputs(pair[0])
        assert torch.equal(make_rank(task)._search(batch, start), start)


def test_rewards_are_scores_in_rows_with_gold_and_0_without_rules():
    task, batch, table = make_toy(2, 2, REWARDS)
    y = make_outputs(0, 1, 3).expand(2, -1, -1)
    torch.testing.assert_close(make_rank(task).judge(batch, 0.9 * y), task.rewards[[0, 1, 3]].expand(2, -1))
    gold = make_outputs(1).expand(2, -1, -1) * torch.tensor([1.0, 0.0]).view(2, 1, 1)
    partial_batch = sp.Batch(batch.x, batch.rows, gold, torch.tensor([True, False]))
    expected = torch.tensor([[0, 1, 2 / 3], REWARDS[:2] + REWARDS[3:]], dtype=torch.float64)
    torch.testing.assert_close(make_rank(task).judge(partial_batch, y), expected)
    task.rewards = None
    torch.testing.assert_close(make_rank(task).judge(partial_batch, y), expected * torch.tensor([[1.0], [0.0]]))
    assert make_rank(task).judge(batch, y) is None
    loss = make_rank(task)(table.at(batch.x), batch, task.space.independent(torch.zeros(2, 1, 2).double()))
    assert loss.tolist() == [0, 0] and loss.requires_grad


def test_without_noise_and_margin_the_loss_is_the_fall_of_energy_where_the_reward_falls():
    task, batch, table = make_toy(3, 4, [0.0, 0.1, 0.3, 0.2, 0.9, 0.5, 0.7, 0.6])
    costs = torch.tensor([2.0, -3.0, 1.0], dtype=torch.float64)
    table.table.data = make_outputs(*range(8), labels=3)[0] @ costs  # linear in y
    loss = make_rank(task, pairs="iterates", margin=0, noise=0, steps=6, lr=1.5)
    start = torch.zeros(4, 1, 3, dtype=torch.float64)
    torch.manual_seed(1)
    values = loss(table.at(batch.x), batch, task.space.independent(start))
    torch.manual_seed(1)
    z = torch.rand_like(start)
    path = []
    for _ in range(7):
        y = torch.sigmoid(z)
        path.append(y)
        z = z - 1.5 * costs * y * (1 - y)
    expected = torch.zeros(4, dtype=torch.float64)
    for row, (a, b) in itertools.product(range(4), itertools.pairwise(path[1:])):
        falls = task.rewards[number_sets(a.round())][row, 0] > task.rewards[number_sets(b.round())][row, 0]
        expected[row] += float((a - b)[row, 0] @ costs) if falls else 0
    torch.testing.assert_close(values.detach(), expected)
    assert expected.any()


def test_the_noise_has_the_variance_that_is_documented():
    task = Rewarded(labels=50)
    batch = batch_of(task, 12)
    loss, energy = make_rank(task, lr=0.3, noise=2.0, steps=60), Constant(sp.Config(), task)
    with torch.no_grad():
        path = loss._infer(energy.at(batch.x), batch, task.space.independent(0 * batch.gold))
    assert path.shape == (12, 61, 50)
    steps = torch.logit(path).diff(dim=1)
    assert float(steps.std()) == pytest.approx(0.3 * (2 * 0.3 * 2.0) ** 0.5, rel=0.02)
    assert ((path[:, 0] >= 0.5) & (path[:, 0] <= torch.sigmoid(torch.tensor(1.0)))).all()


@pytest.mark.parametrize("kind", ["tags", "labels", "grid"])
def test_a_change_affects_one_variable_and_never_padding(kind):
    rows, mask = 3000, None
    if kind == "tags":
        space = sp.TagSequence(BIO)
        mask = torch.arange(4).expand(rows, -1) < torch.arange(rows).view(-1, 1) % 4 + 1
        y = space.one_hot(torch.randint(5, (rows, 1, 4)), mask).float()
    elif kind == "labels":
        space = sp.LabelSet(["a", "b", "c"])
        y = torch.randint(2, (rows, 1, 3)).float()
    else:
        space = sp.BinaryGrid()
        mask = torch.tensor([[1, 1, 0], [1, 0, 0]]).bool().expand(rows, -1, -1)
        y = torch.randint(2, (rows, 1, 2, 3)).float() * mask.unsqueeze(1)
    output = change_one(space, y, mask)
    assert output.shape == y.shape and torch.equal(space.round(output, mask), output)
    is_different = output != y
    is_changed = is_different.any(-1) if kind == "tags" else is_different
    assert (is_changed.flatten(1).sum(1) <= 1).all()
    inside = torch.ones(rows, *y.shape[2:-1] if kind == "tags" else y.shape[2:]) if mask is None else mask
    assert torch.equal(is_changed[:, 0].any(0), inside.bool().any(0))  # each variable is changed in some row
    if kind == "tags":
        pairs = {(int(a), int(b)) for a, b in zip(y[is_changed].argmax(-1), output[is_changed].argmax(-1), strict=True)}
        assert pairs == set(itertools.permutations(range(5), 2))


@pytest.mark.parametrize("kind", ["tags", "labels"])
@pytest.mark.parametrize(("proposals", "gain"), [(1, 0.0), (5, 0.0), (200, 0.0), (200, 2.0)])
def test_a_search_returns_its_start_or_an_output_of_higher_reward(kind, proposals, gain):
    if kind == "tags":
        rules = [votes_for("PER", "Ann Lee", weight=2.0), votes_for("LOC", "Lee"), votes_for("O", "x")]
        task: sp.Task = RuledTags(sp.TagSequence(BIO, "bio"), *rules)
        texts = ("Ann Lee x x", "Lee", "Ann Lee Ann Lee x Lee", "b c")
    else:
        rules = [votes_for("a b", "x"), votes_for("c", "x", against=True)]
        task, texts = RuledLabels(sp.LabelSet(["a", "b", "c", "d"]), *rules), ("x", "y", "x y")
    x = collate(task.rules, *20 * texts)
    start = task.space.round(torch.rand(x.size, 1, *x.inputs[sp.VOTES].shape[1:], dtype=torch.float64), x.mask)
    batch = sp.Batch(x, torch.arange(x.size), None, torch.zeros(x.size, dtype=torch.bool))
    original = start.clone()
    output = make_rank(task, proposals=proposals, gain=gain)._search(batch, start)
    first, last = (task.reward(x, y)[:, 0] for y in (start, output))
    assert torch.equal(start, original) and torch.equal(task.space.round(output, x.mask), output)
    is_same = (output == start).flatten(1).all(1)
    assert ((last > first) | is_same).all() and not is_same.all()
    if proposals == 1 or gain == 0:  # one change that raises the reward
        assert ((output != start).flatten(1).sum(1) <= (2 if kind == "tags" else 1)).all()
    if gain > 1:  # it continues to the end
        assert float(last.min()) > 0.99


def test_a_table_learns_the_order_of_rewards():
    rewards = torch.randint(0, 6, (16,)).double() / 5
    task, batch, table = make_toy(4, 8, rewards.tolist())
    loss = make_rank(task, pairs="iterates", margin=10.0)
    optimizer = torch.optim.Adam(table.parameters(), 0.05)
    values = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(400):
            paths = torch.cat([make_outputs(0, *torch.randperm(16).tolist(), labels=4) for _ in range(8)])
            patch.setattr(Rank, "_infer", lambda *_, paths=paths: paths)
            value = loss(table.at(batch.x), batch, task.space.independent(paths[:, :1])).sum()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            values.append(float(value.detach()))
        energies = table.table.detach()
        zero_count = 0
        for low, high in itertools.permutations(range(16), 2):
            if rewards[high] > rewards[low]:
                patch.setattr(
                    Rank, "_infer", lambda *_, pair=(low, high): make_outputs(0, *pair, labels=4).expand(8, -1, -1)
                )
                is_zero = not loss(table.at(batch.x), batch, task.space.independent(paths[:, :1])).any()
                assert not is_zero or energies[high] < energies[low]
                zero_count += is_zero
    assert zero_count > 0 and sum(values[-50:]) < sum(values[:50]) / 2
