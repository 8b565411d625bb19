"""Weights of classes and examples in the loss, against torch's, scikit-learn's and repeated examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.data.parts.given import pairs
from spen_plugins.data.parts.gold import weigh_labels, weigh_tags
from spen_plugins.testing.comparing import double
from tests.loaded import built, in_memory, loaded, parsed

SMALL = {"features.hidden": "[8]", "energy.hidden": "4"}
NARROW = {"features.hidden": "4", "features.word_dim": "4"}
METHODS = [
    ("labels", {"method": "cross_entropy", "features.hidden": "[8]"}),
    ("labels", {"method": "margin", **SMALL}),
    ("labels", {"method": "regression_s", **SMALL}),
    ("labels", {"method": "unrolled", **SMALL}),
    ("names", {"method": "compound", **NARROW}),
    ("names", {"method": "crf", **NARROW}),
    ("tags", {"method": "static_crf", "trainer.energy_share": "null", **NARROW}),
]


def build_in_double(name: str, **arguments: str):
    experiment = built(name, **arguments)
    experiment.model.double().eval()
    return experiment


def compute_gradients(phase: sp.Phase, model: sp.Model, batch: sp.Batch, total: float) -> list[torch.Tensor]:
    """The loss, divided by a total weight, and its gradients; random numbers are the same at each call."""
    torch.manual_seed(0)
    loss = sum(term.sum() for term in phase.loss(sp.OneBatch(model, batch)).values()) / total
    trained = [p for p in model.parameters() if p.requires_grad]
    return [loss, *torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize(("name", "arguments"), METHODS, ids=[f"{n}-{a['method']}" for n, a in METHODS])
def test_a_weight_is_a_number_of_repetitions(name, arguments) -> None:
    experiment = build_in_double(name, **arguments)
    if arguments["method"] == "regression_s":  # its samples are drawn anew for each row
        experiment.model.energy_loss.config = experiment.model.energy_loss.config.model_copy(update={"std": 1e-9})
    examples, weights = experiment.task.part("train")[:3], [2, 1, 3]
    batch = double(experiment.task.collate(examples))
    weighted = replace(batch, weights=torch.tensor(weights, dtype=torch.float64))
    repeated = double(experiment.task.collate([e for e, w in zip(examples, weights, strict=True) for _ in range(w)]))
    for stage in experiment.trainer.stages(experiment.model, experiment.task):
        if stage.set is not None:
            stage.set(experiment.model)
        for phase in stage.phases:
            actual, expected = (
                compute_gradients(phase, experiment.model, one, sum(weights)) for one in (weighted, repeated)
            )
            assert expected[0] != 0
            for a, b in zip(actual, expected, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
            ones = replace(batch, weights=torch.ones(3, dtype=torch.float64))
            for a, b in zip(
                *(compute_gradients(phase, experiment.model, one, 3) for one in (ones, batch)), strict=True
            ):
                assert torch.equal(a, b)


def draw_labels() -> tuple[sp.Proposal, torch.Tensor]:
    logits = 3 * torch.randn(5, 1, 4, dtype=torch.float64)
    return sp.LabelSet(list("abcd")).independent(logits), (torch.rand(5, 1, 4) < 0.4).double()


def draw_tags() -> tuple[sp.Proposal, torch.Tensor, torch.Tensor]:
    """A proposal, gold, and gold's indices, -100 on padding."""
    mask = torch.tensor([[True, True, True], [True, False, False]])
    space = sp.TagSequence(list("abcd"), "none")
    tags = torch.randint(4, (2, 3))
    gold = space.one_hot(tags.unsqueeze(1), mask).double()
    return space.independent(torch.randn(2, 1, 3, 4, dtype=torch.float64), mask), gold, tags.masked_fill(~mask, -100)


def test_weights_of_labels_match_torch() -> None:
    proposal, gold = draw_labels()
    off, on = torch.rand(2, 4, dtype=torch.float64) + 0.5
    expected = F.binary_cross_entropy_with_logits(
        proposal.logits, gold, weight=off, pos_weight=on / off, reduction="none"
    )
    torch.testing.assert_close(-proposal.weighted_log_prob(gold, torch.stack([off, on])), expected.sum(-1))
    # With several samples.
    samples = torch.cat([gold, 1 - gold], 1)
    actual = proposal.weighted_log_prob(samples, torch.stack([off, on]))
    torch.testing.assert_close(actual[:, :1], -expected.sum(-1))


def test_weights_of_tags_match_torch_and_padding_has_none() -> None:
    proposal, gold, tags = draw_tags()
    weights = torch.rand(4, dtype=torch.float64)
    losses = F.cross_entropy(proposal.logits[:, 0].transpose(1, 2), tags, weights, reduction="none")
    torch.testing.assert_close(-proposal.weighted_log_prob(gold, weights)[:, 0], losses.sum(1))
    truncated = replace(proposal, logits=proposal.logits[1:, :, :1], mask=None)
    torch.testing.assert_close(
        truncated.weighted_log_prob(gold[1:, :, :1], weights), proposal.weighted_log_prob(gold, weights)[1:]
    )


def test_weights_of_1_change_nothing() -> None:
    proposal, gold = draw_labels()
    assert torch.equal(proposal.weighted_log_prob(gold, torch.ones(2, 4)), proposal.log_prob(gold))
    proposal, gold, _ = draw_tags()
    assert torch.equal(proposal.weighted_log_prob(gold, torch.ones(4)), proposal.log_prob(gold))


@pytest.mark.parametrize("per_variable", [False, True])
def test_the_cross_entropy_has_the_weights_of_the_task(per_variable) -> None:
    experiment = build_in_double("tags", method="cross_entropy", **NARROW, **{"task.class_weight": "balanced"})
    batch = double(experiment.task.collate(experiment.task.part("train")[:4]))
    assert batch.weights is None
    context = sp.OneBatch(experiment.model, batch)
    logits, mask, gold = context.proposal.logits[:, 0], batch.x.mask, batch.gold[:, 0].argmax(-1)
    losses = F.cross_entropy(logits.transpose(1, 2), gold, batch.class_weights.double(), reduction="none") * mask
    expected = losses.sum(1) / (mask.sum(1) if per_variable else 1)
    torch.testing.assert_close(sp.cross_entropy(context, per_variable), expected)


def test_without_weights_a_batch_has_none() -> None:
    for name in ("labels", "texts", "names"):
        experiment = build_in_double(name, method="cross_entropy")
        batch = experiment.task.collate(experiment.task.part("train")[:3])
        assert batch.weights is None and batch.class_weights is None


class Example:
    """An example whose labels or tags are counted for the weights."""

    def __init__(self, gold: list[int], weight: float = 1.0) -> None:
        self.gold = self.tags = np.array(gold, dtype=np.int32)
        self.weight = weight


def test_balanced_weights_match_scikit_learn() -> None:
    sets = [[0], [0, 1], [1], [], [0, 3], [3, 0]]
    weights = weigh_labels("balanced", list("abcd"), [*map(Example, sets)])
    for label in (0, 1, 3):
        expected = compute_class_weight(
            "balanced", classes=np.array([0, 1]), y=[int(label in label_set) for label_set in sets]
        )
        np.testing.assert_allclose(weights[:, label], expected, rtol=1e-6)
    assert weights[:, 2].tolist() == [1, 1]  # one class
    tags = [[0, 0, 1], [0], [2, 0, 0, 1]]
    weights = weigh_tags("balanced", list("abcd"), False, [*map(Example, tags)])
    expected = compute_class_weight("balanced", classes=np.arange(3), y=np.concatenate(tags))
    np.testing.assert_allclose(weights, [*expected, 1], rtol=1e-6)


def test_balanced_weights_count_weighted_examples() -> None:
    examples = [Example([0], 3), Example([1]), Example([0, 1], 2)]
    repeated = [Example([0])] * 3 + [Example([1])] + [Example([0, 1])] * 2
    assert torch.equal(weigh_labels("balanced", "ab", examples), weigh_labels("balanced", "ab", repeated))
    assert torch.equal(weigh_tags("balanced", "ab", False, examples), weigh_tags("balanced", "ab", False, repeated))


def test_tags_of_spans_are_weighed_by_type() -> None:
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    assert weigh_tags({"PER": 3, "O": 0.5}, names, True, []).tolist() == [0.5, 3, 3, 1, 1]
    weights = weigh_tags("balanced", names, True, [Example([0, 0, 0, 1, 2, 3])])
    np.testing.assert_allclose(weights, [6 / 9, 1, 1, 2, 2], rtol=1e-6)


def test_a_table_weighs_the_presence_of_labels() -> None:
    assert weigh_labels({"b": 4}, list("ab"), []).tolist() == [[1, 1], [1, 4]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"config": "labels", "class_weight": {"sciense": 2}},
            "found 'sciense'; expected some of the 40 labels.*'sci",
        ),
        ({"config": "names", "task.class_weight": {"B-PER": 2}}, "entity types and O.*Did you mean 'PER'"),
        ({"config": "tags", "task.class_weight": {"noun": 2}}, "expected some of the 14 tags"),
        ({"config": "labels", "class_weight": {"science": -1}}, "class_weight"),
        ({"config": "labels", "class_weight": "equal"}, '"balanced"'),
        ({"config": "names", "method": "crf", "task.class_weight": "balanced"}, "CrfProposal has one probability"),
        ({"config": "names", "class_weight": "balanced"}, r"Did you mean 'task\.class_weight'"),
        ({"config": "labels", "method": "dvn", "class_weight": "balanced"}, "trains no net"),
    ],
)
def test_wrong_weights_are_an_error_before_training(arguments, message, tmp_path) -> None:
    with pytest.raises(sp.ConfigError, match=message):
        sp.train(**arguments, out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_weights_of_examples_have_mean_1_and_0_omits_an_example() -> None:
    for values in (np.arange(4.0), np.arange(4), [0, 1, 2, 3]):
        parts, weights = pairs({"train": (values, ["a", "b", "c", "d"], [2, 0, 4, 6.0])})
        assert weights == [0.5, 1, 1.5]
        assert [*map(int, parts["train"][0])] == [0, 2, 3] and parts["train"][1] == ["a", "c", "d"]
    parts, weights = pairs({"train": ([1], [2])})
    assert weights is None and parts == {"train": ([1], [2])}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"an array of shape \(2,\); expected one number for each of 3"),
        ([[1], [1], [1]], r"an array of shape \(3, 1\)"),
        ([1, -1, 2], "row 1: found -1; expected a finite number, at least 0"),
        ([1, 2, float("nan")], "row 2: found nan"),
        ([0, 0, 0], "found 0 for every example"),
        (["a", "b", "c"], "expected one number per example"),
    ],
)
def test_wrong_weights_of_examples(weights, message) -> None:
    with pytest.raises(sp.DataError, match=message):
        pairs({"train": ([1, 2, 3], [1, 2, 3], weights)})


def test_only_training_examples_have_weights() -> None:
    with pytest.raises(sp.DataError, match="found weights; expected weights for the training examples only"):
        pairs({"train": ([1], [1]), "validation": ([1], [1], [1])})


@pytest.mark.parametrize("kind", ["multilabel", "text", "tagging"])
def test_examples_given_in_python_have_their_weights(kind) -> None:
    inputs, outputs = {
        "multilabel": ([[1.5, 2], [0, 1], [2, 0], [1, 1]], [[1, 0], [0, 1], [1, 1], [1, 0]]),
        "text": (["a", "b c", "c", "d"], [["x"], ["y"], ["x", "y"], ["x"]]),
        "tagging": ([["a"], ["b", "c"], ["c"], ["d"]], [["X"], ["Y", "X"], ["X"], ["Y"]]),
    }[kind]
    task = in_memory(kind, {"train": (inputs, outputs, [1, 0, 2, 3]), "validation": (inputs, outputs)})
    assert len(task.part("train")) == 3
    assert task.collate(task.part("train")).weights.tolist() == [0.5, 1, 1.5]
    assert task.collate(task.part("validation")).weights is None


@pytest.mark.parametrize(
    ("kind", "head", "row"),
    [("multilabel", "x,tags,w", "{0}.5"), ("text", "text,tags,w", "words of row {0}")],
    ids=["vectors", "texts"],
)
def test_a_column_of_a_file_has_the_weights_of_its_rows(tmp_path: Path, kind: str, head: str, row: str) -> None:
    """Divided by the mean of the positive weights; the column is not a feature."""
    path, weights = tmp_path / "x.csv", [3, 1, 0, 1, 1, 3, 1, 1]
    lines = [f"{row.format(i)},{'ab'[i % 2]},{weight}" for i, weight in enumerate(weights)]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    fields = {"train": str(path), "validation": str(path), "labels": "tags", "sample_weight": "w"}
    task = loaded(kind, **fields)
    positive = [weight for weight in weights if weight]
    mean = sum(positive) / len(positive)
    assert [example.weight for example in task.part("train")] == pytest.approx([weight / mean for weight in positive])
    assert [example.weight for example in task.part("validation")] == [1] * 8
    assert task.collate(task.part("train")).weights is not None and task.space.labels == ["a", "b"]
    if kind == "multilabel":
        assert task.columns.names == ["x"]
    with pytest.raises((sp.ConfigError, sp.DataError), match=r"task.sample_weight=.*Did you mean 'w'"):
        loaded(kind, **fields | {"sample_weight": "w2"})
    for bad, message in (("-1", "a finite number, at least 0"), ("much", "one number per example")):
        path.write_text("\n".join([head, *lines[:-1], lines[-1][:-1] + bad]) + "\n", encoding="utf-8")
        with pytest.raises(sp.DataError, match=f"column 'w' of .*expected {message}"):
            loaded(kind, **fields)


def test_a_column_of_weights_needs_a_file() -> None:
    with pytest.raises(sp.ConfigError, match="requires a file"):
        parsed("task", "text", corpus="sample", sample_weight="w")
