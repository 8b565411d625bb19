"""Constraints that require a predicate's sense, or the other predicates of its sentence."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.spaces import allowed_transitions
from spen_plugins.testing import ToyLabels, ToyTags, check_energy
from spen_plugins.testing.comparing import collate
from tests.loaded import loaded, trained
from tests.rules.test_constraints import conjunction, log, relaxed

FALSE = math.log(1e-6)
LOGICS = ("godel", "product")
FRAMES = {"kill.01": ["ARG0", "ARG1"], "rain.01": ["ARG1", "ARGM-LOC"], "be.03": []}
TAGS = ["O", "B-A0", "I-A0", "B-A1", "I-A1", "B-R-A0", "B-AM-LOC", "B-V"]


class Predicates(ToyTags, sp.NamesSenses, sp.SharesSentences):
    """Toy tags of predicates: a sentence's length determines the sense, and rows of equal length share a sentence."""

    TAGS = TAGS
    senses: Sequence[str] = ()

    def number_senses(self, senses: Sequence[str]) -> None:
        self.senses = senses

    def sentence_indexers(self) -> dict[str, sp.Indexer]:
        return {}

    def groups(self, examples: Sequence[object]) -> np.ndarray:
        return np.array([len(example[0]) for example in examples])

    def collate(self, examples, rows=None) -> sp.Batch:
        batch = super().collate(examples, rows)
        lengths = torch.tensor([len(words) for words, _, _ in examples])
        batch.x.inputs["sense"] = torch.where(lengths < 6, lengths % 4 - 1, -1)
        batch.x.inputs["sentence"] = lengths
        return batch


class SeparateSentences(Predicates):
    """The same task, but no two rows share a sentence."""

    def collate(self, examples, rows=None) -> sp.Batch:
        batch = super().collate(examples, rows)
        batch.x.inputs["sentence"] = torch.arange(len(batch))
        return batch


@pytest.fixture
def rolesets(tmp_path: Path) -> Path:
    lines = ({"id": sense, "roles": [{"role": role} for role in roles]} for sense, roles in FRAMES.items())
    (tmp_path / "rolesets.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "rolesets.jsonl"


def make_constraint(kind: str, task: sp.Task, **fields: object) -> sp.Energy:
    cls, config = Registry().parse("energy", {"type": f"rules.{kind}", **fields}, "energy", "test")
    return cls(config, task)


@pytest.mark.parametrize("logic", LOGICS)
def test_the_constraints_keep_the_contract(logic, rolesets):
    task = SeparateSentences()
    check_energy(make_constraint("frame_roles", task, rolesets=str(rolesets), logic=logic), task)
    check_energy(make_constraint("overlap", task, logic=logic), task)


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize(
    ("sense", "forbidden"),
    [(0, set()), (1, {"B-A0", "I-A0"}), (2, {"B-A0", "I-A0", "B-A1", "I-A1"}), (-1, set())],
)
def test_frames_allow_the_roles_of_the_sense_and_all_that_have_no_number(sense, forbidden, logic, rolesets):
    task = Predicates()
    constraint = make_constraint("frame_roles", task, rolesets=str(rolesets), logic=logic)
    assert [*task.senses] == [*FRAMES]
    rows = list(itertools.product(range(len(TAGS)), repeat=3))
    y = torch.nn.functional.one_hot(torch.tensor(rows), len(TAGS)).double().unsqueeze(0)
    values = constraint.at(sp.X({"sense": torch.tensor([sense])}, None, 1))(y)[0]
    assert [float(value) == 0 for value in values] == [not forbidden & {TAGS[i] for i in row} for row in rows]
    assert all(value >= 13.8 for value in values[values > 0])


@pytest.mark.parametrize("logic", LOGICS)
def test_frame_roles_equal_their_formula(logic, rolesets):
    constraint = make_constraint("frame_roles", Predicates(), rolesets=str(rolesets), logic=logic)
    y, mask = relaxed(4, 2, 5, len(TAGS)), torch.arange(5) < torch.tensor([[5], [3], [5], [1]])
    senses = [0, 1, -1, 2]
    values = constraint.at(sp.X({"sense": torch.tensor(senses)}, mask, 4))(y)
    allowed = [*[{role[3:4] for role in roles} for roles in FRAMES.values()], {"0", "1"}]
    for b, s in itertools.product(range(4), range(2)):
        forbidden = [i for i, tag in enumerate(TAGS) if tag[2:] in ("A0", "A1") and tag[3:] not in allowed[senses[b]]]
        positions = range(int(mask[b].sum()))
        expected = -conjunction([log(1 - float(y[b, s, t, i])) for t in positions for i in forbidden], logic)
        assert float(values[b, s]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def find_spans(row: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the first and the last word of each argument of valid BIO tags, without V."""
    names = [TAGS[i] for i in row]
    places = []
    for i, name in enumerate(names):
        if name[0] == "B" and name != "B-V":
            end = i
            while end + 1 < len(names) and names[end + 1][0] == "I":
                end += 1
            places.append((i, end))
    return places


def crosses(one: Sequence[int], other: Sequence[int]) -> bool:
    return any(i < k <= j < m or k < i <= m < j for i, j in find_spans(one) for k, m in find_spans(other))


@pytest.mark.parametrize("logic", LOGICS)
def test_predicates_whose_arguments_do_not_cross_have_no_violation(logic):
    """All pairs of outputs of four words."""
    step, start, _ = allowed_transitions(TAGS, "bio")
    tags = [TAGS.index(tag) for tag in ("O", "B-A0", "I-A0", "B-A1", "I-A1", "B-V")]
    rows = [
        row
        for row in itertools.product(tags, repeat=4)
        if start[row[0]] and all(step[a, b] for a, b in itertools.pairwise(row))
    ]
    one_hot = torch.nn.functional.one_hot(torch.tensor(rows), len(TAGS)).double()
    first, second = (index.flatten() for index in torch.meshgrid(*[torch.arange(len(rows))] * 2, indexing="ij"))
    y = torch.stack([one_hot[first], one_hot[second]])
    x = sp.X({"sentence": torch.tensor([7, 7])}, None, 2)
    values = make_constraint("overlap", Predicates(), logic=logic).at(x)(y)
    expected = torch.tensor([crosses(rows[a], rows[b]) for a, b in zip(first, second, strict=True)])
    assert expected.any() and not expected.all()
    assert torch.equal(values.sum(0) > 0, expected) and (values >= 0).all()
    assert (values.sum(0)[expected] > 13.8).all()


def disjoin(a: float, b: float, logic: str) -> float:
    return max(a, b) if logic == "godel" else log(1 - (1 - math.exp(a)) * (1 - math.exp(b)))


def compute_crossing(v: Tensor, u: Tensor, logic: str) -> float:
    """Sums the clauses about the arguments of v, given those of u; `(token, tag)` each."""
    begins, inside = (
        [[float(sum(t[i] for i, tag in enumerate(TAGS) if tag[0] == kind and tag != "B-V")) for t in y] for y in (v, u)]
        for kind in "BI"
    )
    n, total = len(v), 0.0
    ends = [[*(log(1 - p) for p in row[1:]), 0.0] for row in inside]
    for i, j in itertools.combinations(range(n), 2):
        inner = range(i + 1, j + 1)

        def through(values: Sequence[float], inner: range = inner) -> float:
            return conjunction([log(values[t]) for t in inner], logic)

        premise = conjunction([log(begins[0][i]), through(inside[0]), ends[0][j]], logic)
        none_begins = through([1 - p for p in begins[1]])
        left, right = disjoin(log(1 - inside[1][i]), through(inside[1]), logic), disjoin(ends[1][j], none_begins, logic)
        total += max(0.0, premise - conjunction([left, right], logic))
    return total


@pytest.mark.parametrize("logic", LOGICS)
def test_crossing_arguments_equal_their_formula(logic):
    lengths = torch.tensor([5, 5, 4, 5, 4])
    y, mask = relaxed(5, 2, 5, len(TAGS)), torch.arange(5) < lengths[:, None]
    numbers = [3, 1, 2, 3, 2]
    constraint = make_constraint("overlap", Predicates(), logic=logic)
    x = sp.X({"sentence": torch.tensor(numbers)}, mask, 5)
    values = constraint.at(x)(y)
    for b, s in itertools.product(range(5), range(2)):
        others = [c for c in range(5) if c != b and numbers[c] == numbers[b]]
        n = int(lengths[b])
        expected = sum(compute_crossing(y[b, s, :n], y[c, s, :n], logic) for c in others)
        assert float(values[b, s]) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert (values[[0, 2, 3, 4]] > 0).any() and not values[1].any()
    dirty = torch.where(mask[:, None, :, None], y, 7.0)
    torch.testing.assert_close(constraint.at(x)(dirty), values, rtol=0, atol=0)
    order = torch.tensor([4, 2, 0, 1, 3])
    reordered = sp.X({"sentence": torch.tensor(numbers)[order]}, mask[order], 5)
    torch.testing.assert_close(constraint.at(reordered)(y[order]), values[order])
    relaxed_y = y.requires_grad_()
    assert torch.autograd.gradcheck(lambda relaxed_y: constraint.at(x)(relaxed_y), (relaxed_y,), fast_mode=True)


def test_unsuitable_tasks_and_files_are_rejected(rolesets, tmp_path):
    with pytest.raises(sp.ConfigError, match="the task has none"):
        make_constraint("frame_roles", ToyTags(), rolesets=str(rolesets))
    with pytest.raises(sp.ConfigError, match="the task has one per sentence"):
        make_constraint("overlap", ToyTags())
    with pytest.raises(sp.ConfigError, match="requires tags of arguments"):
        make_constraint("overlap", loaded("propbank.senses", corpus="sample"))
    for kind, fields in (("frame_roles", {"rolesets": str(rolesets)}), ("overlap", {})):
        with pytest.raises(sp.ConfigError, match="tag sequences"):
            make_constraint(kind, ToyLabels(), **fields)
    (tmp_path / "other.jsonl").write_text('{"id": "kill.01"}\n')
    with pytest.raises(sp.DataError, match=r"other\.jsonl:1: found .*kill\.01.*; expected .*roles"):
        make_constraint("frame_roles", Predicates(), rolesets=str(tmp_path / "other.jsonl"))
    with pytest.raises(sp.ConfigError, match=r"task\.train: found no senses"):
        make_constraint("frame_roles", loaded("srl", corpus="sample"), rolesets=str(rolesets))


SENTENCE = """0\tForces\tNNS\t*\t-\t-\t{}\t{}
1\tkilled\tVBD\t*\tkill\tkill.01\t(V*)\t*
2\thim\tPRP\t*\t-\t-\t(ARG1*)\t(ARG1*)
3\training\tVBG\t*\train\t{}\t*\t(V*)

"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    sentences = [SENTENCE.format("(ARG0*)", "*", "rain.01"), SENTENCE.format("(ARG0*)", "(ARG0*)", "snow.01")]
    (tmp_path / "roles.conll").write_text("".join(sentences * 6))
    return tmp_path / "roles.conll"


def test_roles_number_the_senses_of_their_file(corpus, rolesets):
    task = loaded("srl", train=str(corpus), validation=str(corpus))
    examples = task.part("train")[:4]
    assert "sense" not in task.collate(examples).x.inputs
    constraint = make_constraint("frame_roles", task, rolesets=str(rolesets))
    make_constraint("overlap", task)
    batch = collate(task, examples)
    assert batch.x.inputs["sense"].tolist() == [0, 1, 0, -1]
    assert not constraint.at(batch.x)(batch.gold).any()
    assert constraint.checksums() == {str(rolesets): sp.sha256(rolesets)}
    rolled = batch.gold.roll(1, 0)  # rain.01 with the arguments of kill.01
    assert (constraint.at(batch.x)(rolled)[:, 0] > 0).tolist() == [False, True, False, False]
    assert task.groups(examples).tolist() == [0, 0, 0, 0] and batch.x.inputs["sentence"].tolist() == [0, 0, 0, 0]
    with pytest.raises(sp.ConfigError, match=r"found other senses, such as 'kill\.01'; expected some of a\.01, …"):
        task.number_senses(["a.01"])


def test_a_run_tunes_with_all_three_and_predicts_without_senses_and_frames(corpus, rolesets, tmp_path):
    terms = {
        "unique": {"type": "rules.unique_role"},
        "frames": {"type": "rules.frame_roles", "rolesets": str(rolesets)},
        "overlap": {"type": "rules.overlap"},
    }
    weights = {"frames": 0.5, "overlap": 0.1}
    settings = {
        "data": str(corpus),
        "validation": str(corpus),
        "method": "structured_tuning",
        "energy": json.dumps({"type": "sum", "terms": terms, "weights": weights}),
        **{"trainer.epochs": "1", "trainer.tuning_epochs": "1", "features.hidden": "8", "features.word_dim": "8"},
    }
    run = trained("roles", tmp_path / "run", **settings)
    assert str(rolesets) in json.loads((run / "environment.json").read_text())["files_sha256"]
    rolesets.unlink()
    [prediction] = sp.load(run).predict([{"words": ["Forces", "killed", "him"], "predicate": 1}])
    assert {"arguments", "tags"} <= prediction.keys()
