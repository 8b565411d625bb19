"""SeqTag and LACO: chains of labels against enumeration, label attention, pairs of labels."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_decoders.chain import LabelChain
from spen_decoders.laco import WINDOW, Laco
from spen_decoders.occurrence import Occurrence, draw_pairs
from spen_decoders.reading import LabelsAsWords
from spen_decoders.seqtag import SeqTag
from spen_plugins.model import Model
from spen_plugins.scores.expected_f1 import find_best_sets
from spen_plugins.testing import ToyLabels, check_inference_net, check_trainer
from spen_plugins.testing.comparing import collate
from spen_plugins.trainer import OneBatch
from tests.decoders.test_reading import network
from tests.exact.toys import all_sets, check_draws, space_of
from tests.seal.toys import make

IDLE = ("features.reader.token_part", "features.reader.mark_parts")


def make_chain(labels: int, batch: int = 3) -> LabelChain:
    torch.manual_seed(labels)
    logits = 2 * torch.randn(batch, 1, labels, dtype=torch.double)
    transitions = 2 * torch.randn(2, 2, dtype=torch.double)
    fields = {"transitions": transitions.requires_grad_(), "order": torch.randperm(labels)}
    return LabelChain(space_of(labels), logits.requires_grad_(), **fields)


@pytest.mark.parametrize("labels", [1, 2, 4])
def test_a_chain_matches_enumeration(labels: int) -> None:
    q, y = make_chain(labels), all_sets(labels)
    ordered = y[:, q.order].long()
    links = q.transitions[ordered[:, :-1], ordered[:, 1:]].sum(1)
    for proposal, factor in ((q, 1.0), (q.tempered(2.0), 0.5)):
        score = factor * (q.logits[:, 0] @ y.t() + links)
        log_p = score.log_softmax(1)
        torch.testing.assert_close(proposal.log_z, score.logsumexp(1))
        torch.testing.assert_close(proposal.log_prob(y.expand(3, -1, -1)), log_p, rtol=0, atol=1e-12)
        torch.testing.assert_close(proposal.mean[:, 0], log_p.exp() @ y, rtol=0, atol=1e-12)
        assert torch.equal(proposal.mode[:, 0], y[log_p.argmax(1)])
        sets, log_q = proposal.k_best(2)
        torch.testing.assert_close(log_q, log_p.topk(2, 1).values.detach())
        torch.testing.assert_close(proposal.log_prob(sets).detach(), log_q)
        check_draws(proposal, log_p.exp().detach())
    torch.testing.assert_close(q.map_rows(lambda values: values[1:]).mean, q.mean[1:])
    assert not q.detach().log_prob(y.expand(3, -1, -1)).requires_grad


def test_the_set_of_an_input_does_not_depend_on_its_batch() -> None:
    q = make_chain(12, batch=1)
    batched = q.map_rows(lambda values: values.expand(9, -1, -1).contiguous())
    assert batched.label_powers(torch.ones(1)) is None
    assert torch.equal(find_best_sets(batched), find_best_sets(q).expand(9, -1))


def test_a_chain_without_transitions_has_independent_labels() -> None:
    q = make_chain(5)
    without_transitions = LabelChain(
        q.space, q.logits, transitions=torch.zeros(2, 2, dtype=torch.double), order=q.order
    )
    independent, y = q.space.independent(q.logits), all_sets(5).expand(3, -1, -1)
    torch.testing.assert_close(without_transitions.log_prob(y), independent.log_prob(y))
    torch.testing.assert_close(without_transitions.log_prob(y * 0.3), independent.log_prob(y * 0.3))
    torch.testing.assert_close(without_transitions.mean, independent.mean)


@pytest.mark.parametrize(("cls", "settings"), [(SeqTag, {}), (SeqTag, {"chain": True}), (Laco, {})])
def test_the_contract(cls: type, settings: dict) -> None:
    features, task = network(LabelsAsWords, longest=9)
    heads = ("pair", "given", "other") if cls is Laco else ()
    net = cls(cls.Config(**settings), task, features)
    check_inference_net(net, task, allow_idle=(*IDLE, *heads))
    with pytest.raises(sp.ConfigError, match=r"requires features 'decoders\.labels_as_words'"):
        make(cls, ToyLabels(), **settings)


def test_attention_that_is_the_same_everywhere_is_a_mean() -> None:
    features, task = network(LabelsAsWords)
    net = Laco(Laco.Config(), task, features)
    with torch.no_grad():
        net.attention.weight.zero_()
        net.attention.bias.fill_(0.3)
    words, labels = torch.randn(2, WINDOW + 4, 6), torch.randn(2, len(task.space.labels), 6)
    is_word = torch.arange(WINDOW + 4) < torch.tensor([[5], [WINDOW + 4]])
    words = words * is_word.unsqueeze(2)
    mean = words.sum(1) / is_word.sum(1, keepdim=True)
    torch.testing.assert_close(net.attend(words, is_word, labels), torch.tanh(torch.tensor(0.3)) * mean)


def test_pairs_of_labels() -> None:
    gold = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    torch.manual_seed(0)
    draws = [draw_pairs(gold, torch.rand(4, 3)) for _ in range(200)]
    pairs_of_rows = [
        {(*pairs[row].tolist(), bool(is_together[row])) for pairs, is_together, _ in draws} for row in range(4)
    ]
    positive = {(0, 2, True), (2, 0, True)}
    assert pairs_of_rows[0] == positive | {(a, b, False) for a in (0, 2) for b in (1, 3)}
    assert pairs_of_rows[1] == {(1, b, False) for b in (0, 2, 3)}
    assert pairs_of_rows[3] == {(a, b, True) for a in range(4) for b in range(4) if a != b}
    assert all(exists.tolist() == [True, True, False, True] for _, _, exists in draws)
    assert draw_pairs(torch.ones(1, 1).bool(), torch.rand(1, 3))[2].tolist() == [False]
    share = sum(bool(is_together[0]) for _, is_together, _ in draws) / 200
    assert 0.35 < share < 0.65


def test_without_weights_the_loss_is_cross_entropy() -> None:
    features, task = network(LabelsAsWords, longest=9)
    net = Laco(Laco.Config(), task, features)
    model = Model(net, None, None)
    heads = tuple(f"inference_net.{name}" for name in (*IDLE, "pair", "given", "other"))
    check_trainer(Occurrence(Occurrence.Config()), model, task, allow_idle=heads[:2])
    plain = Occurrence(Occurrence.Config(pair_weight=0, conditional_weight=0))
    check_trainer(plain, model, task, allow_idle=heads)
    batch = collate(task, task.part("train")[:4])
    [phase] = plain.stages(model, task)[0].phases
    terms = phase.loss(OneBatch(model, batch))
    assert list(terms) == ["cross_entropy"]
    torch.testing.assert_close(terms["cross_entropy"], -net(batch.x).log_prob(batch.gold)[:, 0])
    with pytest.raises(sp.ConfigError, match=r"requires inference_net 'decoders\.laco'"):
        plain.stages(Model(SeqTag(SeqTag.Config(), task, features), None, None), task)
