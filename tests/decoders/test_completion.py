"""Optimal completion distillation: targets by enumeration, the loss of sampled sequences, nets that learn it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import spen_plugins as sp
from spen_decoders.completion import Completion, completion_loss, find_targets
from spen_decoders.sequence import SequenceNet
from spen_plugins.model import Model
from spen_plugins.testing import ToyLabels, check_trainer
from tests.decoders.test_sequences import find_log_p, proposed, sequences_of
from tests.exact.toys import all_sets
from tests.seal.toys import batch_of, make


def test_targets_are_uniform_over_the_remaining_labels() -> None:
    sets = all_sets(3) > 0.5
    for gold in sets:
        targets = find_targets(sets.unsqueeze(1), gold[None, None])[:, 0]
        for written_set, target in zip(sets, targets, strict=True):
            remaining = [i for i in range(3) if gold[i] and not written_set[i]] or [3]
            expected = torch.zeros(4)
            expected[remaining] = 1 / len(remaining)
            torch.testing.assert_close(target, expected)


def test_the_loss_is_the_mean_over_sequences() -> None:
    """The expectation over all sequences sums the Kullback-Leibler divergence of each step up to the end."""
    q, batch, _ = proposed(3, order="none")
    gold, sequences = batch.gold[..., q.order] > 0.5, sequences_of(3)
    log_p, exact = find_log_p(q, sequences).detach(), 0
    for number, sequence in enumerate(sequences.tolist()):
        state, loss = q.writer.begin(q.memory), 0
        for label in sequence:
            step = torch.log_softmax(state.scores, 2)
            targets = find_targets(state.is_written, gold).double()
            loss = loss + torch.where(targets > 0, targets * (targets.log() - step), 0).sum((1, 2))
            if label == 3:
                break
            state = q.writer.write(q.memory, state, torch.full((4, 1), label))
        exact = exact + log_p[:, number].exp() * loss
    torch.manual_seed(0)
    losses = torch.stack([completion_loss(q, batch.gold, 3) for _ in range(400)]).detach()
    spread = losses.std(0) / 400**0.5
    assert ((losses.mean(0) - exact.detach()).abs() < 5 * spread + 1e-9).all()


def test_one_example_is_learned() -> None:
    task = ToyLabels(labels=5)
    torch.manual_seed(0)
    net, batch = make(SequenceNet, task, dim=12, embedding=6, order="none"), batch_of(task, 2)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(120):
        loss = completion_loss(net(batch.x), batch.gold, 5).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert torch.equal(net(batch.x).mode, batch.gold)


def test_the_contract() -> None:
    task = ToyLabels(labels=4)
    model = Model(make(SequenceNet, task, dim=5, embedding=4, order="none"), None, None)
    check_trainer(Completion(Completion.Config()), model, task)
    ordered = Model(make(SequenceNet, task, dim=5), None, None)
    with pytest.raises(sp.ConfigError, match="order=none; found SequenceNet with an order"):
        Completion(Completion.Config()).stages(ordered, task)
    task.config = SimpleNamespace(class_weight="balanced")
    with pytest.raises(sp.ConfigError, match="does not support class_weight"):
        Completion(Completion.Config()).stages(model, task)
