"""The k best outputs against enumeration of all; the energy's choice among them; whole runs re-ranked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.nets.choosers import Rerank
from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.spaces.chain import Chain
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags, check_inference_net
from spen_plugins.testing.comparing import collate
from tests.loaded import loaded, parsed, spen, trained

TAGS = {
    "none": ["x", "y", "z"],
    "bio": ["O", "B-A", "I-A", "I-B"],
    "bioes": ["I-Y", "O", "B-X", "S-X", "E-X", "E-Y", "B-Y"],
}
"""Some tags belong to spans that can't begin, others to spans that are one or two words long."""
LENGTHS = [4, 1, 3, 2]
MASK = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


def list_sequences(tags: list[str], scheme: str, length: int) -> list[tuple[int, ...]]:
    """All sequences that the scheme allows, by the rules of the reader, which don't use tables of transitions."""

    def is_allowed(path: tuple[int, ...]) -> bool:
        try:
            spans([tags[i] for i in path], scheme)
        except BrokenTags:
            return False
        return True

    return [path for path in product(range(len(tags)), repeat=length) if scheme == "none" or is_allowed(path)]


def make_proposal(kind: str, scheme: str, constrained: bool = True) -> sp.Proposal:
    torch.manual_seed(len(scheme))
    tags = TAGS[scheme]
    logits = 2 * torch.randn(len(LENGTHS), 1, max(LENGTHS), len(tags), dtype=torch.double)
    space = sp.TagSequence(tags, scheme)
    if kind == "independent":
        return space.independent(logits, MASK)
    n = len(tags)
    chain = Chain(*(torch.randn(*shape, dtype=torch.double) for shape in [(n, n), (n,), (n,)]))
    return CrfProposal(space, logits, MASK, chain=chain, constrained=constrained)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize(
    ("kind", "scheme", "constrained"),
    [("independent", scheme, True) for scheme in TAGS] + [("crf", scheme, c) for scheme in TAGS for c in (True, False)],
)
def test_k_best_sequences(kind: str, scheme: str, constrained: bool, k: int) -> None:
    p = make_proposal(kind, scheme, constrained)
    y, log_q = p.k_best(k)
    assert y.shape == (len(LENGTHS), k, *p.logits.shape[2:]) and not y.requires_grad
    scheme_of_paths = scheme if kind == "independent" or constrained else "none"
    for row, length in enumerate(LENGTHS):
        paths = list_sequences(TAGS[scheme], scheme_of_paths, length)
        tags = torch.zeros(1, len(paths), 4, dtype=torch.long)
        tags[0, :, :length] = torch.tensor(paths)
        all_y = p.space.one_hot(tags.expand(len(LENGTHS), -1, -1), MASK).double()
        all_log_q = p.log_prob(all_y)[row]
        order = all_log_q.argsort(descending=True)[:k]
        n = len(order)
        torch.testing.assert_close(log_q[row, :n], all_log_q[order])
        torch.testing.assert_close(y[row, :n], all_y[row, order])
        assert (log_q[row, n:] == -torch.inf).all()
        torch.testing.assert_close(y[row, n:], y[row, :1].expand_as(y[row, n:]))
    torch.testing.assert_close(y[:, :1], p.mode)


@pytest.mark.parametrize("kind", ["independent", "crf"])
def test_padding_does_not_matter(kind: str) -> None:
    p = make_proposal(kind, "bio")
    junk = torch.full((len(LENGTHS), 1, 3, p.logits.shape[-1]), 9.0, dtype=torch.double)
    mask = torch.cat([MASK, torch.zeros(len(LENGTHS), 3, dtype=torch.bool)], 1)
    longer = replace(p, logits=torch.cat([p.logits, junk], 2), mask=mask, _kept={})
    (y, log_q), (long_y, long_log_q) = p.k_best(6), longer.k_best(6)
    assert torch.equal(y, long_y[:, :, :4]) and not long_y[:, :, 4:].any()
    torch.testing.assert_close(log_q, long_log_q)


def test_many_tags_and_ranks_have_the_same_paths_as_a_chain() -> None:
    """A chain of zero transitions is no chain: more tags than k, and more ranks than tags."""
    torch.manual_seed(0)
    logits = torch.randn(3, 1, 12, 40, dtype=torch.double)
    space = sp.TagSequence([str(i) for i in range(40)])
    chain = Chain(*(torch.zeros(*shape, dtype=torch.double) for shape in [(40, 40), (40,), (40,)]))
    for k in (7, 64):
        independent_best, chain_best = (
            p.k_best(k) for p in (space.independent(logits), CrfProposal(space, logits, chain=chain))
        )
        for values, chain_values in zip(independent_best, chain_best, strict=True):
            torch.testing.assert_close(values, chain_values)


def test_k_best_sets_of_many_labels_are_all_different() -> None:
    torch.manual_seed(0)
    p = sp.LabelSet([str(i) for i in range(300)]).independent(4 * torch.randn(5, 1, 300, dtype=torch.double))
    y, log_q = p.k_best(50)
    assert all(len(row.unique(dim=0)) == 50 for row in y) and torch.equal(y[:, :1], p.mode)
    torch.testing.assert_close(p.log_prob(y), log_q)
    assert (log_q[:, 1:] <= log_q[:, :-1]).all()


# The net


def make_independent(task: sp.Task) -> Independent:
    torch.manual_seed(0)
    return Independent(Independent.Config(), task, ToyFeatures(task))


def list_outputs(space: sp.LabelSet | sp.TagSequence, length: int) -> torch.Tensor:
    """`(1, output, *variables)`, for examples without padding."""
    if isinstance(space, sp.LabelSet):
        return torch.tensor(list(product([0.0, 1.0], repeat=len(space.labels)))).unsqueeze(0)
    return space.one_hot(torch.tensor(list_sequences(space.tags, space.scheme, length)).unsqueeze(0), None).float()


@pytest.mark.parametrize(("toy", "energy"), [(ToyLabels, Local), (ToyTags, LinearChain)])
def test_the_lowest_energy_of_the_k_best_wins(toy: type, energy: type) -> None:
    task = toy()
    lengths = [task.length(example) for example in task.part("train")]
    batch = task.collate([e for e in task.part("train") if task.length(e) == max(set(lengths), key=lengths.count)][:3])
    net, bound = make_independent(task), energy(energy.Config(), task, ToyFeatures(task)).at(batch.x)
    plain = net(batch.x)
    all_outputs = list_outputs(task.space, batch.gold.shape[2]).expand(3, -1, *batch.gold.shape[2:])
    order = plain.log_prob(all_outputs).argsort(descending=True)
    changed = 0
    for k in (1, 2, 4, all_outputs.shape[1] + 3):
        net_of_k = Rerank(Rerank.Config(k=k), task, net=net).eval()
        output = net_of_k(batch.x, bound)
        decoded = task.decode(output)
        for row in range(3):
            candidates = all_outputs[row, order[row, :k]]
            expected = candidates[bound(candidates.expand(3, *candidates.shape))[row].argmin()]
            torch.testing.assert_close(decoded[row, 0], expected)
        changed += int((decoded != plain.mode).any())
        torch.testing.assert_close(output.mean, plain.mean)
        torch.testing.assert_close(output.mode, plain.mode)
        torch.testing.assert_close(output.log_prob(all_outputs), plain.log_prob(all_outputs))
        torch.testing.assert_close(net_of_k.training_proposal(batch.x, bound).logits, plain.logits)
    assert changed, "the energy never disagreed: nothing was seen"


@pytest.mark.parametrize("inner", ["independent", "crf"])
def test_rerank_works_with_any_net(inner: str) -> None:
    task = ToyTags()
    cls, config = parsed("inference_net", inner)
    net = Rerank(Rerank.Config(k=3), task, net=cls(config, task, ToyFeatures(task)))
    check_inference_net(net, task, LinearChain(LinearChain.Config(), task, ToyFeatures(task)))


@pytest.mark.parametrize("k", [2, 100])
def test_the_lowest_energy_of_the_prefixes_wins(k: int) -> None:
    torch.manual_seed(0)
    task = ToyLabels()
    net = make_independent(task)
    rerank = Rerank(Rerank.Config(k=k, candidates="prefixes"), task, net=net)
    net = net.double()
    x = collate(task, task.part("train")[:6]).x
    weights = torch.randn(len(task.space.labels), dtype=torch.float64)

    def energy(y: torch.Tensor) -> torch.Tensor:
        return y.double() @ weights + (y.sum(-1) - 1.5) ** 2

    chosen = rerank(x, energy).chosen[:, 0]
    for logits, y in zip(net(x).logits[:, 0], chosen, strict=True):
        ranked = sorted(range(len(logits)), key=lambda label: -logits[label])
        sets = [ranked[:size] for size in range(min(k, len(ranked)) + 1)]
        candidates = torch.stack([torch.tensor([float(i in labels) for i in range(len(ranked))]) for labels in sets])
        best = candidates[energy(candidates).argmin()]
        assert torch.equal(y, best.to(y.dtype))


def test_only_label_sets_have_a_ranking() -> None:
    task = ToyTags()
    with pytest.raises(sp.ConfigError, match="candidates: found 'prefixes', which requires label sets"):
        Rerank(Rerank.Config(candidates="prefixes"), task, net=make_independent(task))


def test_rerank_requires_a_net() -> None:
    with pytest.raises(sp.ConfigError, match=r"inference_net\.net"):
        Rerank(Rerank.Config(), ToyLabels())


def test_detaching_keeps_the_chosen_outputs() -> None:
    p = make_proposal("crf", "bio")
    y = p.k_best(2)[0][:, 1:]
    assert torch.equal(ToyTags().decode(replace(p, chosen=y).detach()), y)
    assert torch.equal(replace(p, chosen=y).mode, p.mode)


# Label sets decided by a threshold


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 0.5, 0.9, 1.0])
def test_the_first_of_the_k_best_is_the_set_above_the_threshold(threshold: float) -> None:
    torch.manual_seed(0)
    task = loaded("multilabel", corpus="sample", threshold=threshold)
    output = task.space.independent(2 * torch.randn(20, 1, len(task.space.labels)))
    best = task.k_best(output, 4)
    assert torch.equal(best[:, :1], task.decode(output))
    if 0 < threshold < 1:  # the second set flips the label nearest to the threshold, in logits
        nearest = (output.logits - torch.logit(torch.tensor(threshold))).abs()[:, 0].argmin(1)
        differs = (best[:, 1] != best[:, 0]).nonzero()
        assert differs.tolist() == [[row, label] for row, label in enumerate(nearest.tolist())]


def test_scores_and_predictions_use_the_chosen_sets() -> None:
    task = loaded("multilabel", corpus="sample", threshold="validation")
    examples = task.part("test")[:3]
    batch = task.collate(examples)
    p = torch.full_like(batch.gold, 0.01)
    p[:, 0, :2] = 0.9
    output = replace(task.space.independent(torch.logit(p)), chosen=batch.gold)
    metric = task.metric()
    metric.update(output, batch)
    task.fit_threshold(metric)
    assert task.threshold == 0.5, "no threshold can be fitted to what no threshold decides"
    assert metric.compute()["example_f1"] == 1.0 and metric.ratios()[0].tolist() == [1.0] * 3
    for answer, gold in zip(task.predictions(output, batch, examples), batch.gold[:, 0], strict=True):
        names = [task.space.labels[i] for i in gold.nonzero()[:, 0].tolist()]
        assert sorted(answer["labels"]) == sorted(names) and set(names) <= answer["probabilities"].keys()


# Runs


RUNS = {
    "tags": {"trainer.epochs": "5"},
    "labels": {"method": "nce", "features.hidden": "[16]", "energy.hidden": "8", "energy_loss.samples": "3"},
    "srl_seal": {"trainer.epochs": "5", "energy_loss.samples": "2"},
}


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Trains on the embedded corpus of a config, once."""

    @cache
    def train_once(name: str) -> Path:
        return trained(name, tmp_path_factory.mktemp("r") / "run", **({"trainer.epochs": "1"} | RUNS[name]))

    return train_once


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, train: Callable[[str], Path]) -> Path:
    return train(request.param)


def test_a_reranked_run(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())["task"]
    examples, plain = list(loaded(config.pop("type"), **config).part("test"))[:60], sp.load(run)
    answers = plain.predict_examples(examples)
    assert sp.load(run, refine={"type": "rerank", "k": 1}).predict_examples(examples) == answers
    plain_answers = plain.predict_examples(examples, energy=True)
    assert [{k: v for k, v in answer.items() if k != "energy"} for answer in plain_answers] == answers
    reranked_answers = sp.load(run, refine={"type": "rerank", "k": 8}).predict_examples(examples, energy=True)
    differences = [b["energy"] - a["energy"] for b, a in zip(plain_answers, reranked_answers, strict=True)]
    assert min(differences) >= -1e-4 and max(differences) > 1e-3
    for key in ("tags", "labels"):
        if key in answers[0]:
            has_changed = [
                b["energy"] != a["energy"]
                for b, a in zip(plain_answers, reranked_answers, strict=True)
                if b[key] != a[key]
            ]
            assert has_changed and all(has_changed)
    plain.task.predictions = lambda proposal, batch, examples: [[] for _ in examples]
    with pytest.raises(sp.ConfigError, match="predicts a list, but only a table can hold its energy"):
        plain.predict_examples(examples, energy=True)


def test_commands(train: Callable[[str], Path], tmp_path: Path) -> None:
    run, file = train("tags"), tmp_path / "some.txt"
    file.write_text("the\tX\nmeeting\tX\n\nhello\tX\n")
    result = spen("predict", run, file, "--refine", '{"type": "rerank", "k": 4}', "--energy")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(answer["tags"]) for answer in answers] == [2, 1]
    assert all(isinstance(answer["energy"], float) for answer in answers)
    assert "--refine gbi" in spen("evaluate", run, file, "--refine", "rerank", "--trajectory", status=2).output


def test_rerank_can_be_trained_as_the_net_of_a_run(tmp_path: Path) -> None:
    arguments = {
        "trainer.epochs": "1",
        "inference_net": '{"type": "rerank", "k": 2, "net": {"type": "independent"}}',
        "features.hidden": "8",
        "features.word_dim": "8",
    }
    run = trained("tags", tmp_path / "run", **arguments)
    assert sp.load(run).predict(["a b"])[0]["words"] == ["a", "b"]
