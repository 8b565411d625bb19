"""The tree CRF's distribution, and the contracts of its space and net."""

from __future__ import annotations

import json

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_infnet.parsing import trees
from spen_infnet.parsing.chart import count_places
from spen_infnet.parsing.span_trees import SpanTrees, TreeCrfProposal
from spen_infnet.parsing.tree_crf import BiaffineSpans, TreeCrf
from spen_plugins.testing import ToyFeatures, ToyTags, check_inference_net, check_space, check_task
from tests.infnet.test_chart import labelled, score
from tests.infnet.test_chart import trees as trees_of
from tests.loaded import experiment, loaded, parsed, spen, trained, written

LENGTHS = torch.tensor([3, 1, 2])
MASK = torch.arange(6) < torch.tensor([6, 1, 3]).unsqueeze(1)


class ToyTrees(ToyTags):
    """Sentences with trees that branch to the right, and each word a label."""

    def set_up(self):
        super().set_up()
        self.space = SpanTrees(["X", "Y", "Z"])

    def collate(self, examples, rows=None):
        batch = super().collate(examples, rows)
        places = [count_places(len(words)) for words, *_ in examples]
        mask = torch.arange(max(places)) < torch.tensor(places).unsqueeze(1)
        tags = torch.zeros(mask.shape, dtype=torch.long)
        for row, (words, _, labels) in zip(tags, examples, strict=True):
            for first, label in enumerate(labels):
                row[count_places(len(words) - 1) + first] = label
                row[count_places(first) + first] = 1
        gold = self.space.one_hot(tags.unsqueeze(1), mask).float()
        return sp.Batch.of(batch.x.inputs, mask, gold, batch.labelled, rows)


def make_proposal():
    torch.manual_seed(0)
    logits = torch.randn(3, 1, 6, 3, dtype=torch.double, requires_grad=True)
    return TreeCrfProposal(SpanTrees(["X", "Y"]), logits, MASK)


def test_contracts():
    check_space(SpanTrees(["X"]), 7)
    task = ToyTrees()
    torch.manual_seed(0)
    check_inference_net(TreeCrf(TreeCrf.Config(size=4), task, ToyFeatures(task)), task)


def test_probabilities():
    proposal = make_proposal()
    scores = (proposal.logits[:, 0, :, 1:] - proposal.logits[:, 0, :, :1]).detach()
    for row, words in enumerate(LENGTHS.tolist()):
        all_trees = labelled(words)
        places = all_trees.shape[1]
        log_p = score(scores[row, :places], all_trees).log_softmax(0)
        y = F.pad(F.one_hot(all_trees, 3), (0, 0, 0, 6 - places)).double()
        torch.testing.assert_close(proposal.log_prob(y.expand(3, *y.shape))[row], log_p)
        torch.testing.assert_close(proposal.mean[row, 0], torch.einsum("t,tpv->pv", log_p.exp(), y))
        assert torch.equal(proposal.mode[row, 0], y[log_p.argmax()])


def test_spans_that_cross_have_no_probability():
    proposal = make_proposal()
    y = F.one_hot(torch.zeros(3, 2, 6, dtype=torch.long), 3).double()
    y[:, 0, [1, 4]] = torch.tensor([0.0, 1.0, 0.0], dtype=torch.double)  # words 1–2 and 2–3
    y = y * MASK[:, None, :, None]
    assert (proposal.log_prob(y) == -torch.inf).tolist() == [[True, False], [False, False], [False, False]]
    relaxed = proposal.log_prob(0.9 * y + 0.1 * y.roll(1, 1))
    assert torch.isfinite(relaxed).all()


def test_biaffine_scores():
    torch.manual_seed(0)
    layer = BiaffineSpans(3, 4, 2, 0.5).double().eval()
    vectors = torch.randn(2, 3, 3, dtype=torch.double)
    scores = layer(vectors)
    a, b = (F.leaky_relu(part(vectors), 0.1) for part in (layer.first, layer.last))
    a, b = (torch.cat([values, torch.ones(2, 3, 1, dtype=torch.double)], -1) for values in (a, b))
    for last in range(3):
        for first in range(last + 1):
            expected = torch.einsum("bi,lij,bj->bl", a[:, first], layer.weight, b[:, last])
            torch.testing.assert_close(scores[:, count_places(last) + first], expected)


def test_other_nets_and_outputs_are_rejected():
    task = ToyTags()
    with pytest.raises(sp.ConfigError, match=r"task\.form=spans"):
        TreeCrf(TreeCrf.Config(), task, ToyFeatures(task))
    with pytest.raises(sp.ConfigError, match=r"found scores of 3 words; expected scores of 6 spans"):
        SpanTrees(["X"]).independent(torch.zeros(3, 1, 3, 2), MASK)


@pytest.fixture(scope="module")
def task():
    return loaded("infnet.parsing", corpus="sample", form="spans", min_tag_count=1)


def test_gold_spans_are_gold_trees(task):
    examples = task.part("train")[:20]
    batch = task.collate(examples)
    proposal = TreeCrfProposal(task.space, 20 * (batch.gold - 0.5), batch.x.mask)
    metric = task.metric()
    metric.update(proposal, batch)
    assert metric.compute()["bracket_f1"] == 1
    for example, prediction in zip(examples, task.predictions(proposal, batch, examples), strict=True):
        assert trees.parse(prediction["tree"]).tree == example.sentence.tree
        assert len(prediction["scores"]) == len(prediction["constituents"])
        assert min(prediction["scores"]) > 0.9
    decisions = task.decisions(proposal, batch)
    assert decisions.right.all()
    assert len(decisions.right) == len(decisions.confidences.at(2.0)) == int(batch.gold[..., 1:].sum())


def test_decoding_by_marginals(task):
    """The tree with the fewest expected errors, of all trees of a short sentence."""
    example = task.parse("Anna sees Ben")
    batch = task.collate([example])
    values = 1 + len(task.space.labels)
    torch.manual_seed(1)
    proposal = TreeCrfProposal(task.space, torch.randn(1, 1, 6, values, dtype=torch.double), batch.x.mask)
    rows = trees_of(3).double()
    label = proposal.mean[0, 0, :, 1:].argmax(-1)
    gains = rows @ (proposal.mean[0, 0, :, 1:].amax(-1) - 0.5)
    expected = torch.where(trees_of(3)[gains.argmax()], label + 1, 0)
    assert torch.equal(task.decode(proposal)[0, 0].argmax(-1), expected)


def test_unknown_labels():
    task = loaded("infnet.parsing", corpus="sample", form="spans", min_tag_count=40)
    assert any("labels are learned" in note for note in task.notes())
    item = {"tree": "(TOP (ODD (S (NP (NNP Anna)) (VP (VBZ sees) (WORSE (NNP Ben))))))"}
    batch = task.collate([task.parse(item)])
    values = [["", *task.space.labels][i] for i in batch.gold[0, 0].argmax(-1).tolist()]
    assert values == ["NP", "", "", "S", "VP", task.space.labels[0]]


def test_a_task_is_restored(task):
    cls, config = parsed("task", "infnet.parsing", corpus="sample", form="spans")
    other = cls(config)
    other.restore(task.facts())
    assert other.space.labels == task.space.labels
    check_task(task)


def test_decode_is_for_spans_only():
    with pytest.raises(sp.ConfigError, match=r"task\.form=spans"):
        loaded("infnet.parsing", corpus="sample", decode="viterbi")


OVER_MINILM = json.dumps({"type": "bilstm", "reader": {"type": "transformer", "model": "minilm"}})


@pytest.mark.parametrize(
    ("encoder", "groups"), [("bilstm", {}), ("minilm", {"features": 0.05}), (OVER_MINILM, {"features.reader": 0.05})]
)
def test_the_config(encoder, groups):
    config = experiment("parsing", method="tree_crf", data="ewt", encoder=encoder)
    assert (config["task"]["form"], config["inference_net"]["type"]) == ("spans", "infnet.tree_crf")
    assert config["trainer"]["net"]["groups"] == groups


def test_a_run_parses_text(tmp_path):
    run = trained("parsing", tmp_path / "run", method="tree_crf", **{"trainer.epochs": "1", "features.hidden": "4"})
    text = written(tmp_path / "text.txt", "Anna sees the old cat. Go!\n")
    lines = spen("predict", run, text, "--format", "trees").stdout.splitlines()
    words = [word for line in lines for word in trees.parse(line).words]
    assert words == ["Anna", "sees", "the", "old", "cat", ".", "Go", "!"]
