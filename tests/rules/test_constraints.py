"""Constraints against logic: all outputs of small spaces, and the written-out formulas for random relaxed outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags

FALSE = math.log(1e-6)
TAGS = ["O", "B-A0", "I-A0", "B-A1", "R-A0"]
LABELS = ["sport", "football", "politics", "weather"]
LOGICS = ("godel", "product")


class Tags(ToyTags):
    """Toy tags with these names."""

    def load(self) -> None:
        super().load()
        self.space = sp.TagSequence(TAGS)


class Labels(ToyLabels):
    """Toy labels with these names."""

    def load(self) -> None:
        super().load()
        self.space = sp.LabelSet(LABELS)


def make_constraint(kind: str, space: sp.OutputSpace, **fields: object) -> sp.Energy:
    """Returns a constraint over the outputs of a space, without a task's data."""
    cls, config = Registry().parse("energy", {"type": f"rules.{kind}", **fields}, "energy", "test")
    task = ToyTags() if isinstance(space, sp.TagSequence) else ToyLabels()
    task.space = space
    return cls(config, task, ToyFeatures(task) if cls.uses_features else None)


def list_tag_sequences(length: int) -> tuple[list[tuple[str, ...]], Tensor]:
    """Returns all sequences of this length, as names and as outputs `(1, sequence, token, tag)`."""
    rows = list(itertools.product(range(len(TAGS)), repeat=length))
    y = torch.nn.functional.one_hot(torch.tensor(rows), len(TAGS)).double()
    return [tuple(TAGS[i] for i in row) for row in rows], y.unsqueeze(0)


def list_label_sets() -> tuple[list[set[str]], Tensor]:
    rows = list(itertools.product((0.0, 1.0), repeat=len(LABELS)))
    sets = [{name for name, active in zip(LABELS, row, strict=True) if active} for row in rows]
    return sets, torch.tensor(rows, dtype=torch.float64).unsqueeze(0)


def make_implication(pairs: Sequence[tuple[str, str]]) -> Callable[[set[str]], bool]:
    return lambda active: all(b in active for a, b in pairs if a in active)


LABEL_RULES = [
    ("at_most_one", {}, lambda active: len(active) <= 1),
    ("at_most_one", {"names": ["sport", "politics"]}, lambda active: len(active & {"sport", "politics"}) <= 1),
    ("exactly_one", {}, lambda active: len(active) == 1),
    ("exactly_one", {"names": ["sport", "politics", "weather"]}, lambda active: len(active - {"football"}) == 1),
    ("implies", {"pairs": [["football", "sport"]]}, make_implication([("football", "sport")])),
    (
        "implies",
        {"pairs": [["football", "sport"], ["sport", "weather"]]},
        make_implication([("football", "sport"), ("sport", "weather")]),
    ),
    ("excludes", {"pairs": [["sport", "politics"]]}, lambda active: not {"sport", "politics"} <= active),
]


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields", "holds"), LABEL_RULES)
def test_only_label_sets_that_keep_a_rule_have_no_violation(kind, fields, holds, logic):
    sets, y = list_label_sets()
    values = make_constraint(kind, sp.LabelSet(LABELS), logic=logic, **fields).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [holds(active) for active in sets]
    assert (values >= 0).all() and (values[values > 0] > 13).all()


TAG_RULES = [
    (
        "at_most_one",
        {"names": ["A0", "A1"]},
        lambda active: not ({"B-A0", "I-A0", "R-A0"} & active and "B-A1" in active),
    ),
    ("at_most_one", {"names": ["R-A0", "B-A1"]}, lambda active: not {"R-A0", "B-A1"} <= active),
    ("exactly_one", {"names": ["B-A0", "B-A1"]}, lambda active: ("B-A0" in active) != ("B-A1" in active)),
    ("implies", {"pairs": [["R-A0", "B-A0"]]}, make_implication([("R-A0", "B-A0")])),
    ("excludes", {"pairs": [["I-A0", "B-A1"]]}, lambda active: not {"I-A0", "B-A1"} <= active),
]


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields", "holds"), TAG_RULES)
def test_only_tag_sequences_that_keep_a_rule_have_no_violation(kind, fields, holds, logic):
    names, y = list_tag_sequences(3)
    values = make_constraint(kind, sp.TagSequence(TAGS), logic=logic, **fields).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [holds(set(tags)) for tags in names]


@pytest.mark.parametrize("logic", LOGICS)
def test_sequences_that_begin_no_core_role_twice_have_no_violation(logic):
    names, y = list_tag_sequences(4)
    values = make_constraint("unique_role", sp.TagSequence(TAGS), logic=logic).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [
        tags.count("B-A0") <= 1 and tags.count("B-A1") <= 1 for tags in names
    ]
    indices = [names.index(("B-A0", "O", "B-A0", "O")), names.index(("B-A1", "B-A0", "B-A1", "B-A0"))]
    torch.testing.assert_close(values[indices], torch.tensor([-2 * FALSE, -4 * FALSE], dtype=torch.float64))


def test_a_role_of_one_word_and_one_of_several_are_equal():
    tags = ["O", "B-A0", "E-A0", "S-A0"]
    y = torch.eye(4, dtype=torch.float64)[torch.tensor([[[3, 0, 1, 2], [0, 0, 1, 2]]])]
    values = make_constraint("unique_role", sp.TagSequence(tags)).forward(None, y)
    torch.testing.assert_close(values, torch.tensor([[-2 * FALSE, 0]], dtype=torch.float64))


def log(p: float) -> float:
    return math.log(min(max(p, 1e-6), 1))


def conjunction(values: list[float], logic: str) -> float:
    return min(values, default=0.0) if logic == "godel" else max(sum(values), FALSE)


def relaxed(*shape: int) -> Tensor:
    """Returns random outputs on the simplex, some of them nearly certain."""
    return torch.softmax(4 * torch.randn(*shape, dtype=torch.float64), -1)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize("length", [1, 2, 6])
def test_unique_roles_equal_their_formula(length, logic):
    y = relaxed(3, 2, length, len(TAGS))
    mask = torch.arange(length) < torch.tensor([[length], [max(length - 1, 1)], [1]])
    values = make_constraint("unique_role", sp.TagSequence(TAGS), logic=logic).forward(mask, y)
    for b, s in itertools.product(range(3), range(2)):
        places = range(int(mask[b].sum()))
        expected = 0.0
        for tag, i in itertools.product((TAGS.index("B-A0"), TAGS.index("B-A1")), places):
            others = [log(1 - float(y[b, s, j, tag])) for j in places if j != i]
            expected += max(0.0, log(float(y[b, s, i, tag])) - conjunction(others, logic))
        assert float(values[b, s]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def disjunction(values: list[float], logic: str) -> float:
    """Returns the probability of "or" from those of its parts."""
    return max(values) if logic == "godel" else 1 - math.prod(1 - value for value in values)


def compute_violation(kind: str, fields: dict, p: dict[str, tuple[float, float]], logic: str) -> float:
    """Returns the violation from the probabilities that each name is present and absent."""

    def clauses() -> Iterator[tuple[float, float]]:
        if kind in ("implies", "excludes"):
            for a, b in fields["pairs"]:
                if kind == "implies":
                    yield log(p[a][0]), log(p[b][0])
                else:
                    yield from ((log(p[a][0]), log(p[b][1])), (log(p[b][0]), log(p[a][1])))
            return
        names = fields.get("names", list(p))
        for a in names:
            yield log(p[a][0]), conjunction([log(p[b][1]) for b in names if b != a], logic)
        if kind == "exactly_one":
            yield 0.0, log(max(p[a][0] for a in names) if logic == "godel" else 1 - math.prod(p[a][1] for a in names))

    return sum(max(0.0, premise - conclusion) for premise, conclusion in clauses())


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, fields, _ in LABEL_RULES])
def test_rules_about_labels_equal_their_formulas(kind, fields, logic):
    y = torch.sigmoid(4 * torch.randn(3, 2, len(LABELS), dtype=torch.float64))
    values = make_constraint(kind, sp.LabelSet(LABELS), logic=logic, **fields).forward(None, y)
    for b, s in itertools.product(range(3), range(2)):
        p = {name: (float(q), 1 - float(q)) for name, q in zip(LABELS, y[b, s], strict=True)}
        assert float(values[b, s]) == pytest.approx(compute_violation(kind, fields, p, logic), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, fields, _ in TAG_RULES])
def test_rules_about_tags_equal_their_formulas(kind, fields, logic):
    y = relaxed(2, 2, 5, len(TAGS))
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    values = make_constraint(kind, sp.TagSequence(TAGS), logic=logic, **fields).forward(mask, y)
    kinds = {name: [i for i, tag in enumerate(TAGS) if name in (tag, tag[2:])] for name in [*TAGS, "A0", "A1"]}
    for b, s in itertools.product(range(2), range(2)):
        p = {}
        for name, columns in kinds.items():
            present = disjunction([float(y[b, s, t, columns].sum()) for t in range(int(mask[b].sum()))], logic)
            p[name] = (present, 1 - present)
        assert float(values[b, s]) == pytest.approx(compute_violation(kind, fields, p, logic), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields"), [("unique_role", {}), *((kind, fields) for kind, fields, _ in TAG_RULES)])
def test_padding_does_not_count(kind, fields, logic):
    y = relaxed(2, 3, 5, len(TAGS))
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    constraint = make_constraint(kind, sp.TagSequence(TAGS), logic=logic, **fields)
    zeroed = constraint.forward(mask, y * mask[:, None, :, None])
    torch.testing.assert_close(constraint.forward(mask, y), zeroed, rtol=0, atol=0)
    torch.testing.assert_close(constraint.forward(None, y[1:, :, :2]), zeroed[1:], rtol=1e-12, atol=1e-12)


def test_the_gradient_lowers_the_less_probable_of_two_equal_roles():
    y = torch.zeros(1, 1, 3, len(TAGS), dtype=torch.float64)
    y[0, 0, :, TAGS.index("B-A0")] = torch.tensor([0.9, 0.6, 0.0])
    y[..., 0] = 1 - y[..., 1]
    gradient = make_constraint("unique_role", sp.TagSequence(TAGS)).gradient(None, y)[0, 0, :, TAGS.index("B-A0")]
    assert (gradient[:2] > 0).all() and gradient[2] == 0


@pytest.mark.parametrize(
    ("kind", "fields", "space", "message"),
    [
        ("at_most_one", {"names": ["sport", "footbal"]}, sp.LabelSet(LABELS), "'footbal'.*Did you mean 'football'"),
        ("implies", {"pairs": [["A0", "A2"]]}, sp.TagSequence(TAGS), "unknown output 'A2'"),
        ("exactly_one", {}, sp.TagSequence(TAGS), r"energy\.names: found null; expected the tags or types"),
        ("unique_role", {}, sp.TagSequence(["O", "B-PER", "I-PER"]), "requires tags of core roles, B-A0"),
        ("unique_role", {}, sp.LabelSet(LABELS), "scores tag sequences"),
        ("excludes", {"pairs": [["a", "b"]]}, sp.BinaryGrid(), "found BinaryGrid"),
    ],
)
def test_rules_that_do_not_fit_the_task_are_rejected(kind, fields, space, message):
    with pytest.raises(sp.ConfigError, match=message):
        make_constraint(kind, space, **fields)
