"""Task `citations`: rules, reward and search by hand and against brute force; labelled and unlabelled parts."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from spen_implicit.citations import reward as citation_reward
from spen_implicit.citations import search as citation_search
from spen_implicit.citations.reader import FIELDS, GAP, read_citation
from spen_implicit.citations.rules import NONE, RULES, find_rules
from spen_implicit.citations.samples import SIZES, sample_citations
from spen_implicit.citations.task import RULE, Citations
from spen_plugins.errors import ConfigError, DataError

SPEN_DATA = os.environ.get("SPEN_DATA")
real_data = pytest.mark.skipif(not SPEN_DATA, reason="$SPEN_DATA is not set")


def make_task(**config) -> Citations:
    task = Citations(Citations.Config(**config))
    task.load()
    return task


@pytest.fixture(scope="module")
def sample() -> Citations:
    return make_task(corpus="sample")


def apply_rules(text: str) -> str:
    """`word/rule` of each token under a rule."""
    example = read_citation(text)
    pairs = zip(example.words, find_rules(example.words, example.columns[GAP]), strict=True)
    return " ".join(f"{word}/{rule}" for word, rule in pairs if rule != NONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Logic, pages 3-12,", "pages/pages 3/pages -/pages 12/pages"),
        ("Logic, pp. 3--12.", "pp/pages ./pages 3/pages -/pages -/pages 12/pages ./pages"),
        ("Logic, 303-312,", "303/pages -/pages 312/pages"),
        ("no pages here, 1990-1995", "1990/year 1995/year"),
        ("Logic, May 1990a. It may", "May/month 1990a/year ./year"),
        ("Logic (1990). It", "(/year 1990/year )/year ./year"),
        ("Logic, 12(3), no 5", "12/volume (/volume 3/volume )/volume no/volume 5/volume"),
        ("Logic, vol. 4", "vol/volume ./volume 4/volume"),
        ("in A Bee, editors, Proc. of", "editors/editors Proc/venue"),
        ("the journal. Journal of", "Journal/journal"),
        ("univ. of Bonn, University", "University/institution"),
        ("ny. Reading, MA, in ma.", "Reading/place MA/place"),
        ("An essay. Unpublished", "Unpublished/state"),
        ('Logic. "A long title," in', '"/quoted A/quoted long/quoted title/quoted ,/quoted "/quoted'),
        ("``A long title'' in", "`/quoted `/quoted A/quoted long/quoted title/quoted '/quoted '/quoted"),
    ],
)  # fmt: skip
def test_rules_for_words(text: str, expected: str) -> None:
    assert apply_rules(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A. Cau, R. Kuiper, and W.-P. de Roever. Formalising Dijkstra's style.", 17),
        ("Hinton, G. E., & Nowlan, S. J. (1987). How", 14),
        ("R. Fletcher. Practical Methods of Optimization.", 4),
        ("P. Yang and J. H. Chern \"Design for", 9),
        ("Hughes Network Systems, Home Page", 0),
    ],
)  # fmt: skip
def test_the_names_at_the_beginning(text: str, names: int) -> None:
    example = read_citation(text)
    is_name = [rule == "names" for rule in find_rules(example.words, example.columns[GAP])]
    assert is_name == [True] * names + [False] * (len(is_name) - names)


def test_rules_name_known_fields() -> None:
    assert {field for fields in RULES.values() for field in fields} <= set(FIELDS)


# Three fields: 0 and 1 may come first; there should be one of (0, 1) and one of (2,).
SHAPE = citation_reward.Shape((0, 1), ((0, 1), (2,)))


def one_hot(*rows: str) -> torch.Tensor:
    """Outputs of one citation, `(1, sample, token, 3)`, from digits."""
    return torch.stack([F.one_hot(torch.tensor([int(c) for c in row]), 3) for row in rows])[None].double()


def compute_terms(
    y: torch.Tensor, votes: str = "0..2.", breaks: str = "10100", length: int = 5
) -> dict[str, list[float]]:
    """Terms of a citation of 5 tokens; `votes`: each token's field by its rule, or a dot."""
    rule_votes = torch.zeros(1, 5, 3, dtype=torch.double)
    for i, c in enumerate(votes):
        if c != ".":
            rule_votes[0, i, int(c)] = 1
    mask = (torch.arange(5) < length).double()[None]
    y = y * mask[:, None, :, None]
    values = citation_reward.terms(
        y, mask, rule_votes * mask[..., None], torch.tensor([[float(c) for c in breaks]], dtype=torch.double), SHAPE
    )
    values["reward"] = citation_reward.reward(
        y, mask, rule_votes * mask[..., None], torch.tensor([[float(c) for c in breaks]], dtype=torch.double), SHAPE
    )
    return {name: value[0].tolist() for name, value in values.items()}


def test_the_reward_by_hand() -> None:
    values = compute_terms(one_hot("00222", "00000", "01022", "21201", "11111"))
    assert values["words"] == [1, 0.5, 1, 0, 0]
    # Changes: one, at a break; none; 3, of which the one at token 2 is at a break; 4, one at a break.
    assert values["breaks"] == pytest.approx([1, 1, 1 / 3, 1 / 4, 1])
    # Pieces minus fields, over fields: 0; 0; 4 pieces of 3 fields; 5 of 3; 0.
    assert values["once"] == pytest.approx([1, 1, 2 / 3, 1 / 3, 1])
    assert values["whole"] == [1, 0.5, 1, 1, 0.5] and values["begins"] == [1, 1, 1, 0, 1]
    assert values["reward"] == pytest.approx([1, 0.5 * 0.9, 0.4 / 3 + 0.2 + 0.2 + 0.1, 0, 0])
    assert compute_terms(one_hot("00222"), votes=".....")["words"] == [1]


def test_padding_changes_no_reward(sample: Citations) -> None:
    short, long = sorted(sample.part("train"), key=sample.length)[:: len(sample.part("train")) - 1]
    single, padded = sample.collate([short]), sample.collate([short, long])
    size = single.x.mask.shape[1]
    y = sample.space.independent(torch.randn(1, 1, size, 13)).sample(3)
    wide = torch.zeros(2, 3, padded.x.mask.shape[1], 13)
    wide[:1, :, :size] = y
    assert torch.allclose(sample.reward(padded.x, wide)[0], sample.reward(single.x, y)[0])
    assert sample.collate([long]).x.mask.all() and padded.x.mask[1].all()


def test_fields_without_rules(tmp_path: Path) -> None:
    (path := tmp_path / "own.txt").write_text("<name> A. Bee. </name> <year> 1990. </year>\n<name> C. Dee </name>\n")
    task = make_task(train=str(path), validation=str(path), fields=["name", "year"])
    batch = task.collate(task.part("train"))
    assert torch.allclose(task.reward(batch.x, batch.gold), torch.ones(2, 1))
    outputs = task.search(batch.x, task.space.independent(torch.randn_like(batch.gold), batch.x.mask))
    assert torch.equal(outputs.sum(-1)[:, 0].bool(), batch.x.mask)


def test_gold_has_a_high_reward_and_noise_a_low_one(sample: Citations) -> None:
    batch = sample.collate(sample.part("train"))
    gold = sample.reward(batch.x, batch.gold)
    noise = sample.reward(batch.x, sample.space.independent(torch.zeros_like(batch.gold), batch.x.mask).sample(4))
    assert gold.shape == (120, 1) and noise.shape == (120, 4)
    assert gold.mean() > 0.95 and gold.min() > 0.5 and gold.max() <= 1
    assert noise.mean() < 0.1 and noise.min() >= 0


def test_the_reward_of_a_relaxed_output_approximates_the_expected_reward() -> None:
    """The two are equal for words, and for the pieces that the other terms count."""
    p = torch.softmax(torch.randn(5, 3, dtype=torch.double), -1)
    outputs = torch.tensor(list(product(range(3), repeat=5)))
    weight = p[torch.arange(5), outputs].prod(-1)
    words = torch.tensor(compute_terms(one_hot(*["".join(map(str, row)) for row in outputs.tolist()]))["words"])
    assert compute_terms(p[None, None])["words"][0] == pytest.approx(float((weight * words).sum()))
    y = p[None, None].clone().requires_grad_()
    reward = citation_reward.reward(
        y, torch.ones(1, 5).double(), one_hot("00222")[:, 0], torch.ones(1, 5).double(), SHAPE
    )
    (gradient,) = torch.autograd.grad(reward.sum(), y)
    assert gradient.abs().min() > 0 or gradient.abs().max() > 0
    assert torch.autograd.gradcheck(
        lambda z: citation_reward.reward(
            z, torch.ones(1, 5).double(), one_hot("00222")[:, 0], torch.ones(1, 5).double(), SHAPE
        ),
        (y,),
    )


def test_the_best_pieces_are_those_of_an_enumeration() -> None:
    scores, costs = torch.randn(4, 5, 3).double(), torch.rand(4, 5).double() * 2
    mask = torch.arange(5) < torch.tensor([5, 4, 2, 1])[:, None]
    best = citation_search.find_pieces(scores, mask, costs)
    for row in range(4):
        length = int(mask[row].sum())
        values = {}
        for fields in product(range(3), repeat=length):
            total = sum(scores[row, t, fields[t]] for t in range(length))
            values[fields] = total - sum(costs[row, t] for t in range(1, length) if fields[t] != fields[t - 1])
        assert tuple(best[row, :length].tolist()) == max(values, key=values.get)
        assert not best[row, length:].any()


def test_pieces_that_repeat_a_field_yield_to_the_most_certain() -> None:
    fields = torch.tensor([[0, 0, 1, 0, 0, 0]])
    mask = torch.tensor([[True] * 5 + [False]])
    scores = F.one_hot(fields, 3).double() * torch.tensor([1.0, 1, 1, 3, 1, 9]).double()[None, :, None]
    outputs = citation_search.find_repeats(scores, fields, mask)
    expected = torch.zeros(1, 6, 3)
    expected[0, :2, 0] = 1
    assert torch.equal(outputs.float(), expected)


def test_search_raises_the_reward_and_the_share_of_right_fields(sample: Citations) -> None:
    batch = sample.collate(sample.part("train")[:30])
    # Right at most tokens, by a little.
    noise = 4.5 * torch.rand(30, 1, batch.gold.shape[2], 13, generator=torch.Generator().manual_seed(1))
    net = sample.space.independent(2.5 * batch.gold + noise, batch.x.mask)
    outputs = sample.search(batch.x, net)
    assert outputs.shape == (30, len(citation_search.NET), *batch.gold.shape[2:])
    assert torch.equal(outputs, sample.space.round(outputs, batch.x.mask)) and not outputs.requires_grad
    assert (sample.reward(batch.x, outputs) > sample.reward(batch.x, net.mode) - 1e-6).float().mean() > 0.9

    def compute_accuracy(y: torch.Tensor) -> float:
        return float((y * batch.gold).sum() / batch.gold.sum() / y.shape[1])

    assert compute_accuracy(outputs) > compute_accuracy(net.mode) + 0.05


def test_search_ignores_padding(sample: Citations) -> None:
    short, long = sorted(sample.part("train"), key=sample.length)[:: len(sample.part("train")) - 1]
    single, padded = sample.collate([short]), sample.collate([short, long])
    logits = torch.randn(2, 1, padded.x.mask.shape[1], 13)
    size = single.x.mask.shape[1]
    outputs = sample.search(padded.x, sample.space.independent(logits, padded.x.mask))
    expected = sample.search(single.x, sample.space.independent(logits[:1, :, :size]))
    assert torch.equal(outputs[:1, :, :size], expected) and not outputs[0, :, size:].any()


def test_the_sample_has_its_sizes_and_restores_its_rewards(sample: Citations) -> None:
    assert {part: len(sample.part(part)) for part in SIZES} == SIZES
    assert sample.space.tags == list(FIELDS) and sample.inputs.columns == {GAP: 5, RULE: len(RULES) + 3}
    restored = make_task(corpus="sample", labelled=5)
    restored.restore(sample.facts())
    batch = sample.collate(sample.part("test")[:4])
    assert torch.equal(restored.reward(batch.x, batch.gold), sample.reward(batch.x, batch.gold))


def test_the_sample_is_the_same_at_every_call() -> None:
    parts = sample_citations.__wrapped__()
    assert parts == sample_citations()
    assert len({citation.words for citations in parts.values() for citation in citations}) == sum(SIZES.values())
    assert {tag for citations in parts.values() for citation in citations for tag in citation.tags} == set(FIELDS)


def test_labelled_and_unlabelled_citations(tmp_path: Path) -> None:
    (tmp_path / "pool.txt").write_text("<author> A. </author>\nB. C. Dee. Xyzzy.\n")
    task = make_task(corpus="sample", labelled=5, repeat=3, unlabelled=str(tmp_path / "pool.txt"))
    train = task.part("train")
    assert [e.tags is not None for e in train] == [True] * 5 + [False] * 117 + [True] * 10
    assert train[-5:] == train[:5] and "xyzzy" in task.facts()["words"]
    assert list(task.checksums()) == [str(tmp_path / "pool.txt")]
    batch = task.collate(train[4:7])
    assert batch.labelled.tolist() == [True, False, False] and not batch.gold[1:].any() and batch.gold[0].any()
    assert task.collate(train[5:7]).gold is None
    labelled_only = make_task(corpus="sample", labelled=5, rest=False)
    assert (
        len(labelled_only.part("train")) == 5 and len(labelled_only.facts()["words"]) < len(task.facts()["words"]) / 2
    )
    assert "first 5" in task.protocol()["labelled"] and "validation" in task.protocol()["selection"]
    assert (
        task.protocol()["split"] == "sample (synthetic)" and make_task(corpus="sample").protocol()["labelled"] == "all"
    )


def test_a_file_is_split_in_order(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    path.write_text("".join(f"<author> A. </author> <date> {year} </date>\n" for year in range(1990, 1996)))
    task = make_task(train=str(path), parts=(3, 2, 1))
    years = [[e.entry.words[-1] for e in task.part(part)] for part in ("train", "validation", "test")]
    assert years == [["1990", "1991", "1992"], ["1993", "1994"], ["1995"]]
    assert task.protocol()["split"] == f"{path}, cut in its order: 3 / 2 / 1" and list(task.checksums()) == [str(path)]
    with pytest.raises(DataError, match=r"all\.txt: found 6 citations; expected at least 7, the sum of task\.parts"):
        make_task(train=str(path), parts=(3, 2, 2))
    with pytest.raises(DataError, match=r"all\.txt: found 3 training sentences; expected at least task\.labelled=5"):
        make_task(train=str(path), parts=(3, 2, 1), labelled=5)
    with pytest.raises(ConfigError, match=r"task.validation: found no file; .*or a single task.file"):
        make_task(train=str(path))
    with pytest.raises(ConfigError, match=r"requires task.train and nothing else; found task.train, task.validation"):
        make_task(train=str(path), validation=str(path), parts=(3, 2, 1))
    with pytest.raises(ConfigError, match=r"found task.corpus"):
        make_task(corpus="sample", parts=(3, 2, 1))
    with pytest.raises(ConfigError, match="neither corpus nor train"):
        make_task()
    with pytest.raises(ConfigError, match="each field once"):
        make_task(corpus="sample", fields=["author", "author"])


def test_plain_texts_are_predicted_and_written_back(sample: Citations, tmp_path: Path) -> None:
    text = "A. Cau. Logic, 4(2), 1990."
    (tmp_path / "some.txt").write_text(f"{text}\n<title> Logic. </title>\n")
    plain, tagged = sample.read(str(tmp_path / "some.txt"))
    assert plain.tags is None and tagged.names == ("title", "title")
    assert sample.parse(text).entry.words == plain.entry.words == sample.parse({"text": text}).entry.words
    assert sample.parse("<title> Logic. </title>").names == tagged.names
    batch = sample.collate([plain])
    fields = ["author"] * 4 + ["title"] * 2 + ["volume"] * 5 + ["date"] * 2
    logits = 9 * F.one_hot(torch.tensor([FIELDS.index(f) for f in fields]), 13).float()[None, None]
    (prediction,) = sample.predictions(sample.space.independent(logits, batch.x.mask), batch, [plain])
    assert prediction["fields"] == [
        {"field": "author", "text": "A. Cau."},
        {"field": "title", "text": "Logic,"},
        {"field": "volume", "text": "4(2),"},
        {"field": "date", "text": "1990."},
    ]
    assert prediction["tags"] == fields and len(prediction["scores"]) == 13
    for item in ("", " <br> ", {"words": ["A"]}, 7):
        with pytest.raises(DataError, match="a citation as text, or"):
            sample.parse(item)
    with pytest.raises(DataError, match="found <title> in"):
        sample.parse("<title> Logic")


@real_data
def test_cora() -> None:
    task = make_task(train="data:citations/cora/cora.tagged.txt", parts=(300, 100, 100), labelled=5)
    examples = [*task.part("train"), *task.part("validation"), *task.part("test")]
    assert len(examples) == 500 and sum(map(task.length, examples)) == 19182
    assert max(map(task.length, examples)) == 118  # as the paper counts them
    batch = task.collate(task.part("validation"))
    assert task.reward(batch.x, batch.gold).mean() > 0.9
    rule = batch.x.inputs[RULE]
    votes = task._votes[rule]
    covered = votes.any(-1) & batch.x.mask
    assert covered.sum() > 0.3 * batch.x.mask.sum()
    assert (votes * batch.gold[:, 0]).sum() > 0.94 * covered.sum()


@real_data
def test_anystyle_is_a_pool() -> None:
    task = make_task(corpus="sample", labelled=5, unlabelled="data:citations/anystyle/core.xml")
    assert len(task.part("train")) == 120 + 1514
