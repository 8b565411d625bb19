"""Votes of rules against brute force: all outputs of small spaces, and the written-out formula for relaxed outputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.spaces import allowed_transitions
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags, check_energy
from spen_rules.files import Rule, RuleFile
from spen_rules.finding import PhraseFinder
from spen_rules.vote_energy import Votes
from spen_rules.votes import NET_WEIGHTS, REST, VotingRules
from tests.loaded import loaded

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BIOES = ["O", *(f"{prefix}-{kind}" for kind in ("PER", "LOC") for prefix in "BIES")]
PLAIN = ["N", "V", "A"]
LABELS = ["sport", "politics", "weather", "art"]


def votes_for(names: str, *phrases: str, weight: float = 1.0, against: bool = False) -> Rule:
    """Returns a rule on phrases; several names are separated by spaces."""
    return Rule(names, tuple(names.split()), against, weight, PhraseFinder(phrases, False), 1)


def bound(space: sp.OutputSpace, *rules: Rule, rest: tuple[str, float] | None = None) -> VotingRules:
    voting = VotingRules(RuleFile(Path("mine.py"), [*rules], rest))
    assert not voting.bind(space)
    return voting


def collate(rules: VotingRules, *texts: str) -> sp.X:
    """Returns the inputs of texts, or of sentences whose words are separated by spaces, with votes in float64."""
    is_tagging = isinstance(rules.space, sp.TagSequence)
    words = [text.split() if is_tagging else [text] for text in texts]
    inputs = rules.collate([rules.index(sentence) for sentence in words])
    lengths = torch.tensor([[len(sentence)] for sentence in words])
    mask = torch.arange(int(lengths.max())) < lengths if is_tagging else None
    return sp.X({sp.VOTES: inputs[sp.VOTES].double(), sp.FIRED: inputs[sp.FIRED]}, mask, len(texts))


def compute_energies(rules: VotingRules, x: sp.X, y: Tensor) -> Tensor:
    task = ToyTags() if isinstance(rules.space, sp.TagSequence) else ToyLabels()
    task.space, task.indexers["rules"] = rules.space, rules
    return Votes(Votes.Config(), task).at(x)(y)


def list_outputs(space: sp.OutputSpace, length: int) -> Tensor:
    """Returns every discrete output of sentences of this length, `(1, output, *variables)`."""
    if isinstance(space, sp.LabelSet):
        return torch.tensor([*itertools.product((0.0, 1.0), repeat=len(space.labels))], dtype=torch.float64)[None]
    rows = torch.tensor([*itertools.product(range(len(space.tags)), repeat=length)])
    return torch.nn.functional.one_hot(rows, len(space.tags)).double()[None]


def obeys(space: sp.OutputSpace, y: Tensor) -> bool:
    """True if a discrete output without padding follows the space's scheme."""
    if isinstance(space, sp.LabelSet):
        return True
    (following, start, end), tags = allowed_transitions(space.tags, space.scheme), y.argmax(-1)
    return bool(start[tags[0]] and end[tags[-1]] and following[tags[:-1], tags[1:]].all())


NAMES = [
    votes_for("PER", "Ann Lee Roe", weight=2.0),
    votes_for("PER", "Ann"),
    votes_for("LOC", "Lee Roe", weight=1.5),
    votes_for("LOC PER", "Roe", weight=0.25),
    votes_for("PER", "Ann Lee", against=True, weight=0.5),
    votes_for("B-LOC", "Roe", weight=0.125),
]
WORDS = [
    votes_for("N", "Ann", "Lee", weight=0.7),
    votes_for("V A", "Lee", weight=0.3),
    votes_for("N", "Roe", against=True),
]
TOPICS = [
    votes_for("sport", "goal", weight=2.0),
    votes_for("sport politics", "vote"),
    votes_for("sport", "hall", against=True, weight=0.5),
    votes_for("weather", "rain", "goal", against=True),
]
SPACES = {
    "bio": (sp.TagSequence(BIO, "bio"), NAMES),
    "bioes": (sp.TagSequence(BIOES, "bioes"), NAMES),
    "plain": (sp.TagSequence(PLAIN), WORDS),
    "labels": (sp.LabelSet(LABELS), TOPICS),
}
SENTENCES = ("Ann Lee Roe", "Roe and Ann", "of Lee Roe", "a b c")
RAGGED = ("Ann Lee Roe", "Ann", "b Lee Roe Ann Ann Lee")
TEXTS = ("a goal in the hall", "vote on rain", "nothing", "goal vote hall rain")


def expected_votes(space: sp.OutputSpace, rules: Sequence[Rule], text: str) -> Tensor:
    """Returns the votes of a text, written out with the names of tags."""
    if isinstance(space, sp.LabelSet):
        rows = torch.zeros(len(LABELS), dtype=torch.float64)
        for rule in rules:
            for name in rule.names if rule.find(text) else ():
                rows[LABELS.index(name)] += -rule.weight if rule.is_against else rule.weight
        return torch.where(rows == 0, -REST, rows)
    words = text.split()
    rows = torch.zeros(len(words), len(space.tags), dtype=torch.float64)
    for rule in rules:
        for (start, end), name in itertools.product(rule.find(words), rule.names):
            for index in range(start, end):
                prefix = "S" if end - start == 1 else "B" if index == start else "E" if index == end - 1 else "I"
                if space.scheme == "bio":
                    prefix = {"S": "B", "E": "I"}.get(prefix, prefix)
                for i, tag in enumerate(space.tags):
                    if rule.is_against and name in (tag, tag[2:]):
                        rows[index, i] -= rule.weight
                    elif not rule.is_against and tag in (name, f"{prefix}-{name}"):
                        rows[index, i] += rule.weight
    if "O" in space.tags:
        rows[:, 0] += REST * (rows.amax(1) <= 0)
    return rows


@pytest.mark.parametrize("name", SPACES)
def test_votes_and_their_energy_on_all_outputs(name):
    space, rule_list = SPACES[name]
    rules = bound(space, *rule_list)
    for text in TEXTS if name == "labels" else SENTENCES:
        x, votes = collate(rules, text), expected_votes(space, rule_list, text)
        torch.testing.assert_close(x.inputs[sp.VOTES][0], votes, rtol=1e-6, atol=1e-6)  # 0.1 in float32
        y = list_outputs(space, 3)
        totals = (y * x.inputs[sp.VOTES]).flatten(2).sum(2)
        values = compute_energies(rules, x, y)
        torch.testing.assert_close(values, totals.max() - totals, rtol=0, atol=1e-12)
        assert torch.equal(values < 1e-9, totals > totals.max() - 1e-9)
        reward = rules.reward(x, y)
        torch.testing.assert_close(reward, 1 - values / (totals.max() - totals.min()).clamp(min=1e-300))
        allowed = totals[0, [obeys(space, output) for output in y[0]]].max()
        mode = space.independent(x.inputs[sp.VOTES].unsqueeze(1), x.mask).mode
        assert obeys(space, mode[0, 0]) and float((mode[0, 0] * votes).sum()) == pytest.approx(float(allowed))
        assert allowed < totals.max() or float(rules.reward(x, mode)) == pytest.approx(1)


@pytest.mark.parametrize("name", SPACES)
def test_the_energy_of_relaxed_outputs_equals_its_formula(name):
    space, rule_list = SPACES[name]
    rules = bound(space, *rule_list)
    x = collate(rules, *(TEXTS if name == "labels" else RAGGED))
    votes, batch = x.inputs[sp.VOTES], x.size
    y = space.relax(4 * torch.randn(batch, 3, *votes.shape[1:], dtype=torch.float64), x.mask)
    values = compute_energies(rules, x, y)
    for b, s in itertools.product(range(batch), range(3)):
        if name == "labels":
            expected = sum(max(0.0, float(v)) - float(v * p) for v, p in zip(votes[b], y[b, s], strict=True))
        else:
            words = range(int(x.mask[b].sum()))
            expected = sum(float(votes[b, t].max() - (votes[b, t] * y[b, s, t]).sum()) for t in words)
        assert float(values[b, s]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", SPACES)
def test_padding_and_the_rest_of_the_batch_change_nothing(name):
    space, rule_list = SPACES[name]
    rules = bound(space, *rule_list)
    texts = TEXTS if name == "labels" else RAGGED
    x = collate(rules, *texts)
    y = space.relax(torch.randn(x.size, 2, *x.inputs[sp.VOTES].shape[1:], dtype=torch.float64), x.mask)
    for b, text in enumerate(texts):
        single = collate(rules, text)
        part = y[b : b + 1] if x.mask is None else y[b : b + 1, :, : int(x.mask[b].sum())]
        for judge in (compute_energies, lambda rules, x, y: rules.reward(x, y)):
            torch.testing.assert_close(judge(rules, x, y)[b], judge(rules, single, part)[0], rtol=1e-12, atol=1e-12)
        if x.mask is not None:
            for tensor in x.inputs.values():
                assert not tensor[b, int(x.mask[b].sum()) :].any()


def test_rewards_of_many_words_stay_between_0_and_1():
    weights = [0.1, 0.3, 0.7, 1.1, 2.3]
    rules = bound(sp.TagSequence(BIO), *(votes_for("PER LOC", f"w{i}", weight=w) for i, w in enumerate(weights)))
    for length in range(1, 60):
        x = collate(rules, " ".join(f"w{i % 5}" for i in range(length)))
        x = sp.X({name: value.float() if name == sp.VOTES else value for name, value in x.inputs.items()}, x.mask, 1)
        best = rules.space.independent(x.inputs[sp.VOTES].unsqueeze(1), x.mask).mode
        worst = rules.space.independent(-x.inputs[sp.VOTES].unsqueeze(1), x.mask).mode
        rewards = rules.reward(x, torch.cat([best, worst], 1))
        assert ((rewards >= 0) & (rewards <= 1)).all()


@pytest.mark.parametrize(
    ("tags", "rest", "text", "votes"),
    [
        (BIO, None, "Roe x", {"B-PER": -1, "I-PER": -1, "O": REST}),
        (BIO, ("O", 0.5), "Roe x", {"B-PER": -1, "I-PER": -1, "O": 0.5}),
        (BIO, None, "Ann x", {"B-PER": 1}),
        (BIO, ("B-LOC", 0.5), "x", {"B-LOC": 0.5}),
        (PLAIN, None, "x", {}),
        (PLAIN, ("V", 0.3), "x", {"V": 0.3}),
        (PLAIN, ("V", 0.3), "Ann", {"N": 1}),
    ],
)
def test_the_first_word_votes_for_the_rest_only_where_no_rule_does(tags, rest, text, votes):
    name = "N" if tags == PLAIN else "PER"
    rules = bound(sp.TagSequence(tags), votes_for(name, "Ann"), votes_for(name, "Roe", against=True), rest=rest)
    row = collate(rules, text).inputs[sp.VOTES][0, 0]
    assert {tag: round(float(v), 6) for tag, v in zip(tags, row, strict=True) if v} == votes


def test_labels_without_votes_are_slightly_off_and_the_rest_is_one_of_them():
    rules = bound(sp.LabelSet(LABELS), votes_for("sport", "goal"), rest=("art", 0.4))
    votes = collate(rules, "goal", "x").inputs[sp.VOTES]
    expected = torch.tensor([[1, -REST, -REST, -REST], [-REST, -REST, -REST, 0.4]], dtype=torch.float64)
    torch.testing.assert_close(votes, expected, rtol=1e-6, atol=1e-6)


def test_sides_and_hits_of_rules():
    rules = bound(sp.TagSequence(BIO), votes_for("PER", "Ann Lee"), votes_for("LOC O", "Lee", against=True))
    assert rules.rule_votes().tolist() == [[0, 1, 1, 0, 0], [-1, 0, 0, -1, -1]]
    fired = collate(rules, "Ann Lee x", "Lee").inputs[sp.FIRED]
    assert fired.tolist() == [[[True, False], [True, True], [False, False]], [[False, True], *[[False, False]] * 2]]


def test_rules_for_unknown_names_are_left_out_with_a_warning():
    known_rule, unknown_rule = votes_for("PER ORG", "Ann", weight=2), votes_for("MISC", "Ann")
    rules = VotingRules(RuleFile(Path("mine.py"), [known_rule, unknown_rule]))
    [note] = rules.bind(sp.TagSequence(BIO))
    assert note == "warning: rules for MISC, ORG are ignored: the task's outputs have LOC, O, PER."
    assert collate(rules, "Ann").inputs[sp.VOTES][0, 0].tolist() == [0, 2, 0, 0, 0]
    assert rules.rule_votes().tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("space", "rules", "rest", "message"),
    [
        (sp.TagSequence(BIO), [votes_for("ORG MISC", "a")], None, "mine.py: found rules only for MISC, ORG; .*LOC, O"),
        (sp.LabelSet(LABELS), [votes_for("sprot", "a")], None, "mine.py: found rules only for sprot; .*sport"),
        (sp.TagSequence(PLAIN), [votes_for("N", "a")], ("X", 1.0), r"mine.py: otherwise\('X'\)"),
        (sp.BinaryGrid(), [votes_for("N", "a")], None, "found BinaryGrid"),
    ],
)
def test_rules_that_do_not_fit_the_outputs_are_rejected(space, rules, rest, message):
    with pytest.raises(sp.ConfigError, match=message):
        VotingRules(RuleFile(Path("mine.py"), rules, rest)).bind(space)


@pytest.mark.parametrize(
    ("name", "net"), [*((name, "independent") for name in SPACES), ("bio", "crf"), ("bioes", "crf")]
)
def test_a_search_finds_the_best_by_net_and_votes_and_no_lower_reward_than_the_net(name, net):
    space, rule_list = SPACES[name]
    rules = bound(space, *rule_list)
    if name == "labels":
        x, task = collate(rules, *TEXTS), ToyLabels()
        inputs = x.inputs | {"vector": torch.randn(x.size, 5).double()}
    else:
        x, task = collate(rules, *RAGGED, "Roe Ann Lee Roe"), ToyTags()
        inputs = x.inputs | {"words": torch.randint(2, 8, x.mask.shape) * x.mask}
    task.space, x = space, sp.X(inputs, x.mask, x.size)
    cls, config = Registry().parse("inference_net", {"type": net}, "inference_net", "test")
    for scale in (0.3, 3.0, 30.0):
        model = cls(config, task, ToyFeatures(task)).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, scale)
        proposal = model(x)
        outputs = rules.search(x, proposal)
        assert outputs.shape == (x.size, 3, *proposal.mode.shape[2:]) and not outputs.requires_grad
        assert torch.equal(space.round(outputs, x.mask), outputs)
        assert (rules.reward(x, outputs) >= rules.reward(x, proposal.mode)).all()
        inside = slice(None) if x.mask is None else slice(3)  # only the first text, against all outputs
        first = sp.X({key: value[:1, inside] for key, value in x.inputs.items()}, None, 1)
        y = list_outputs(space, 3)
        y = y[:, [obeys(space, output) for output in y[0]]]
        net, votes = model(first).log_prob(y), (y * first.inputs[sp.VOTES]).flatten(2).sum(2)
        best = torch.stack([y[0, (c * net + votes).argmax()] for c in NET_WEIGHTS])
        assert torch.equal(rules.search(first, model(first))[0], best)
        for b, s in itertools.product(range(x.size), range(3)):
            assert obeys(space, outputs[b, s] if x.mask is None else outputs[b, s, : int(x.mask[b].sum())])


def test_the_energy_keeps_the_contract():
    task = ToyTags()
    task.indexers["rules"] = bound(task.space, votes_for("A0", "dogs", "cats and"), votes_for("A1", "flee"))
    check_energy(Votes(Votes.Config(), task), task)


def test_without_rules_there_is_a_clear_error():
    with pytest.raises(sp.ConfigError, match="can't predict or score other files: train a net"):
        Votes(Votes.Config(), loaded("text", corpus="sample")).encode(sp.X({}, None, 1))
    with pytest.raises(sp.ConfigError, match="this task does not support them"):
        Votes(Votes.Config(), ToyTags())
