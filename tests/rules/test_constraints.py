"""Constraints against logic: all outputs of small spaces, and their formulas written out for random relaxed ones."""

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


def energy(kind: str, space: sp.OutputSpace, **fields: object) -> sp.Energy:
    """A constraint over the outputs of a space, without a task's data."""
    cls, config = Registry().parse("energy", {"type": f"rules.{kind}", **fields}, "energy", "test")
    task = ToyTags() if isinstance(space, sp.TagSequence) else ToyLabels()
    task.space = space
    return cls(config, task, ToyFeatures(task) if cls.uses_features else None)


def all_tags(length: int) -> tuple[list[tuple[str, ...]], Tensor]:
    """All sequences of this length, as names and as outputs `(1, sequence, token, tag)`."""
    rows = list(itertools.product(range(len(TAGS)), repeat=length))
    y = torch.nn.functional.one_hot(torch.tensor(rows), len(TAGS)).double()
    return [tuple(TAGS[i] for i in row) for row in rows], y.unsqueeze(0)


def all_labels() -> tuple[list[set[str]], Tensor]:
    rows = list(itertools.product((0.0, 1.0), repeat=len(LABELS)))
    sets = [{name for name, on in zip(LABELS, row, strict=True) if on} for row in rows]
    return sets, torch.tensor(rows, dtype=torch.float64).unsqueeze(0)


def implied(pairs: Sequence[tuple[str, str]]) -> Callable[[set[str]], bool]:
    return lambda on: all(b in on for a, b in pairs if a in on)


NAMED = [
    ("at_most_one", {}, lambda on: len(on) <= 1),
    ("at_most_one", {"names": ["sport", "politics"]}, lambda on: len(on & {"sport", "politics"}) <= 1),
    ("exactly_one", {}, lambda on: len(on) == 1),
    ("exactly_one", {"names": ["sport", "politics", "weather"]}, lambda on: len(on - {"football"}) == 1),
    ("implies", {"pairs": [["football", "sport"]]}, implied([("football", "sport")])),
    (
        "implies",
        {"pairs": [["football", "sport"], ["sport", "weather"]]},
        implied([("football", "sport"), ("sport", "weather")]),
    ),
    ("excludes", {"pairs": [["sport", "politics"]]}, lambda on: not {"sport", "politics"} <= on),
]


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields", "holds"), NAMED)
def test_label_sets_that_keep_a_rule_and_no_others_have_no_violation(kind, fields, holds, logic):
    sets, y = all_labels()
    values = energy(kind, sp.LabelSet(LABELS), logic=logic, **fields).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [holds(on) for on in sets]
    assert (values >= 0).all() and (values[values > 0] > 13).all()


NAMED_TAGS = [
    ("at_most_one", {"names": ["A0", "A1"]}, lambda on: not ({"B-A0", "I-A0", "R-A0"} & on and "B-A1" in on)),
    ("at_most_one", {"names": ["R-A0", "B-A1"]}, lambda on: not {"R-A0", "B-A1"} <= on),
    ("exactly_one", {"names": ["B-A0", "B-A1"]}, lambda on: ("B-A0" in on) != ("B-A1" in on)),
    ("implies", {"pairs": [["R-A0", "B-A0"]]}, implied([("R-A0", "B-A0")])),
    ("excludes", {"pairs": [["I-A0", "B-A1"]]}, lambda on: not {"I-A0", "B-A1"} <= on),
]


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields", "holds"), NAMED_TAGS)
def test_tag_sequences_that_keep_a_rule_and_no_others_have_no_violation(kind, fields, holds, logic):
    names, y = all_tags(3)
    values = energy(kind, sp.TagSequence(TAGS), logic=logic, **fields).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [holds(set(tags)) for tags in names]


@pytest.mark.parametrize("logic", LOGICS)
def test_sequences_that_begin_no_core_role_twice_have_no_violation(logic):
    names, y = all_tags(4)
    values = energy("unique_role", sp.TagSequence(TAGS), logic=logic).forward(None, y)[0]
    assert [float(value) == 0 for value in values] == [
        tags.count("B-A0") <= 1 and tags.count("B-A1") <= 1 for tags in names
    ]
    twice = [names.index(("B-A0", "O", "B-A0", "O")), names.index(("B-A1", "B-A0", "B-A1", "B-A0"))]
    torch.testing.assert_close(values[twice], torch.tensor([-2 * FALSE, -4 * FALSE], dtype=torch.float64))


def log(p: float) -> float:
    return math.log(min(max(p, 1e-6), 1))


def conjunction(values: list[float], logic: str) -> float:
    return min(values, default=0.0) if logic == "godel" else max(sum(values), FALSE)


def relaxed(*shape: int) -> Tensor:
    """Random outputs on the simplex, some of them nearly certain."""
    return torch.softmax(4 * torch.randn(*shape, dtype=torch.float64), -1)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize("length", [1, 2, 6])
def test_unique_roles_written_out(length, logic):
    y = relaxed(3, 2, length, len(TAGS))
    mask = torch.arange(length) < torch.tensor([[length], [max(length - 1, 1)], [1]])
    values = energy("unique_role", sp.TagSequence(TAGS), logic=logic).forward(mask, y)
    for b, s in itertools.product(range(3), range(2)):
        places = range(int(mask[b].sum()))
        wanted = 0.0
        for tag, i in itertools.product((TAGS.index("B-A0"), TAGS.index("B-A1")), places):
            others = [log(1 - float(y[b, s, j, tag])) for j in places if j != i]
            wanted += max(0.0, log(float(y[b, s, i, tag])) - conjunction(others, logic))
        assert float(values[b, s]) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def disjunction(values: list[float], logic: str) -> float:
    """The probability of "or", of probabilities."""
    return max(values) if logic == "godel" else 1 - math.prod(1 - value for value in values)


def written_out(kind: str, fields: dict, p: dict[str, tuple[float, float]], logic: str) -> float:
    """The violation, given for each name the probabilities that it is there and that it is absent."""

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
@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, fields, _ in NAMED])
def test_rules_about_labels_written_out(kind, fields, logic):
    y = torch.sigmoid(4 * torch.randn(3, 2, len(LABELS), dtype=torch.float64))
    values = energy(kind, sp.LabelSet(LABELS), logic=logic, **fields).forward(None, y)
    for b, s in itertools.product(range(3), range(2)):
        p = {name: (float(q), 1 - float(q)) for name, q in zip(LABELS, y[b, s], strict=True)}
        assert float(values[b, s]) == pytest.approx(written_out(kind, fields, p, logic), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, fields, _ in NAMED_TAGS])
def test_rules_about_tags_written_out(kind, fields, logic):
    y = relaxed(2, 2, 5, len(TAGS))
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    values = energy(kind, sp.TagSequence(TAGS), logic=logic, **fields).forward(mask, y)
    kinds = {name: [i for i, tag in enumerate(TAGS) if name in (tag, tag[2:])] for name in [*TAGS, "A0", "A1"]}
    for b, s in itertools.product(range(2), range(2)):
        p = {}
        for name, columns in kinds.items():
            there = disjunction([float(y[b, s, t, columns].sum()) for t in range(int(mask[b].sum()))], logic)
            p[name] = (there, 1 - there)
        assert float(values[b, s]) == pytest.approx(written_out(kind, fields, p, logic), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(("kind", "fields"), [("unique_role", {}), *((kind, fields) for kind, fields, _ in NAMED_TAGS)])
def test_what_stands_on_padding_counts_for_nothing(kind, fields, logic):
    y = relaxed(2, 3, 5, len(TAGS))
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    constraint = energy(kind, sp.TagSequence(TAGS), logic=logic, **fields)
    zeroed = constraint.forward(mask, y * mask[:, None, :, None])
    torch.testing.assert_close(constraint.forward(mask, y), zeroed, rtol=0, atol=0)
    torch.testing.assert_close(constraint.forward(None, y[1:, :, :2]), zeroed[1:], rtol=1e-12, atol=1e-12)


def test_the_gradient_lowers_the_less_probable_of_two_equal_roles():
    y = torch.zeros(1, 1, 3, len(TAGS), dtype=torch.float64)
    y[0, 0, :, TAGS.index("B-A0")] = torch.tensor([0.9, 0.6, 0.0])
    y[..., 0] = 1 - y[..., 1]
    gradient = energy("unique_role", sp.TagSequence(TAGS)).gradient(None, y)[0, 0, :, TAGS.index("B-A0")]
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
def test_rules_that_do_not_fit_the_task_are_refused(kind, fields, space, message):
    with pytest.raises(sp.ConfigError, match=message):
        energy(kind, space, **fields)
