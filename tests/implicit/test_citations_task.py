"""Task `citations`: rules, reward and search by hand and against brute force; which citations have fields."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from spen_implicit.citations import reward as citation_reward
from spen_implicit.citations import search as citation_search
from spen_implicit.citations.reader import FIELDS, GAP, citation
from spen_implicit.citations.rules import NONE, RULES, find_rules
from spen_implicit.citations.samples import SIZES, sample_citations
from spen_implicit.citations.task import RULE, Citations
from spen_plugins.errors import ConfigError, DataError

SPEN_DATA = os.environ.get("SPEN_DATA")
real_data = pytest.mark.skipif(not SPEN_DATA, reason="$SPEN_DATA is not set")


def made(**config) -> Citations:
    task = Citations(Citations.Config(**config))
    task.load()
    return task


@pytest.fixture(scope="module")
def sample() -> Citations:
    return made(corpus="sample")


def rules(text: str) -> str:
    """`word/rule` of each token under a rule."""
    found = citation(text)
    pairs = zip(found.words, find_rules(found.words, found.columns[GAP]), strict=True)
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
    assert rules(text) == expected


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
    found = citation(text)
    named = [rule == "names" for rule in find_rules(found.words, found.columns[GAP])]
    assert named == [True] * names + [False] * (len(named) - names)


def test_rules_name_known_fields() -> None:
    assert {field for fields in RULES.values() for field in fields} <= set(FIELDS)


# Three fields: 0 and 1 may come first, of each of (0, 1) and (2,) there should be one.
SHAPE = citation_reward.Shape((0, 1), ((0, 1), (2,)))


def one_hot(*rows: str) -> torch.Tensor:
    """Outputs of one citation, `(1, sample, token, 3)`, from digits."""
    return torch.stack([F.one_hot(torch.tensor([int(c) for c in row]), 3) for row in rows])[None].double()


def terms(y: torch.Tensor, votes: str = "0..2.", breaks: str = "10100", inside: int = 5) -> dict[str, list[float]]:
    """Terms of a citation of 5 tokens; `votes`: each token's field by its rule, or a dot."""
    says = torch.zeros(1, 5, 3, dtype=torch.double)
    for i, c in enumerate(votes):
        if c != ".":
            says[0, i, int(c)] = 1
    mask = (torch.arange(5) < inside).double()[None]
    y = y * mask[:, None, :, None]
    found = citation_reward.terms(
        y, mask, says * mask[..., None], torch.tensor([[float(c) for c in breaks]], dtype=torch.double), SHAPE
    )
    found["reward"] = citation_reward.reward(
        y, mask, says * mask[..., None], torch.tensor([[float(c) for c in breaks]], dtype=torch.double), SHAPE
    )
    return {name: value[0].tolist() for name, value in found.items()}


def test_the_reward_by_hand() -> None:
    found = terms(one_hot("00222", "00000", "01022", "21201", "11111"))
    assert found["words"] == [1, 0.5, 1, 0, 0]
    # Changes: one, at a break; none; 3 changes, of which that at token 2 is at a break; 4, one at a break.
    assert found["breaks"] == pytest.approx([1, 1, 1 / 3, 1 / 4, 1])
    # Pieces less fields, by fields: 0; 0; 4 pieces of 3 fields; 5 of 3; 0.
    assert found["once"] == pytest.approx([1, 1, 2 / 3, 1 / 3, 1])
    assert found["whole"] == [1, 0.5, 1, 1, 0.5] and found["begins"] == [1, 1, 1, 0, 1]
    assert found["reward"] == pytest.approx([1, 0.5 * 0.9, 0.4 / 3 + 0.2 + 0.2 + 0.1, 0, 0])
    assert terms(one_hot("00222"), votes=".....")["words"] == [1]


def test_padding_changes_no_reward(sample: Citations) -> None:
    short, long = sorted(sample.part("train"), key=sample.length)[:: len(sample.part("train")) - 1]
    alone, padded = sample.collate([short]), sample.collate([short, long])
    size = alone.x.mask.shape[1]
    y = sample.space.independent(torch.randn(1, 1, size, 13)).sample(3)
    wide = torch.zeros(2, 3, padded.x.mask.shape[1], 13)
    wide[:1, :, :size] = y
    assert torch.allclose(sample.reward(padded.x, wide)[0], sample.reward(alone.x, y)[0])
    assert sample.collate([long]).x.mask.all() and padded.x.mask[1].all()


def test_fields_that_no_rule_knows(tmp_path: Path) -> None:
    (path := tmp_path / "own.txt").write_text("<name> A. Bee. </name> <year> 1990. </year>\n<name> C. Dee </name>\n")
    task = made(train=str(path), validation=str(path), fields=["name", "year"])
    batch = task.collate(task.part("train"))
    assert torch.allclose(task.reward(batch.x, batch.gold), torch.ones(2, 1))
    found = task.search(batch.x, task.space.independent(torch.randn_like(batch.gold), batch.x.mask))
    assert torch.equal(found.sum(-1)[:, 0].bool(), batch.x.mask)


def test_gold_has_a_high_reward_and_noise_a_low_one(sample: Citations) -> None:
    batch = sample.collate(sample.part("train"))
    gold = sample.reward(batch.x, batch.gold)
    noise = sample.reward(batch.x, sample.space.independent(torch.zeros_like(batch.gold), batch.x.mask).sample(4))
    assert gold.shape == (120, 1) and noise.shape == (120, 4)
    assert gold.mean() > 0.95 and gold.min() > 0.5 and gold.max() <= 1
    assert noise.mean() < 0.1 and noise.min() >= 0


def test_the_reward_of_a_relaxed_output_is_about_the_expected_one() -> None:
    """Exactly so for words, and for the pieces that the other terms count."""
    p = torch.softmax(torch.randn(5, 3, dtype=torch.double), -1)
    every = torch.tensor(list(product(range(3), repeat=5)))
    weight = p[torch.arange(5), every].prod(-1)
    words = torch.tensor(terms(one_hot(*["".join(map(str, row)) for row in every.tolist()]))["words"])
    assert terms(p[None, None])["words"][0] == pytest.approx(float((weight * words).sum()))
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
    found = citation_search.pieces(scores, mask, costs)
    for row in range(4):
        length = int(mask[row].sum())
        worth = {}
        for fields in product(range(3), repeat=length):
            total = sum(scores[row, t, fields[t]] for t in range(length))
            worth[fields] = total - sum(costs[row, t] for t in range(1, length) if fields[t] != fields[t - 1])
        assert tuple(found[row, :length].tolist()) == max(worth, key=worth.get)
        assert not found[row, length:].any()


def test_pieces_that_repeat_a_field_give_way_to_the_surest() -> None:
    fields = torch.tensor([[0, 0, 1, 0, 0, 0]])
    mask = torch.tensor([[True] * 5 + [False]])
    scores = F.one_hot(fields, 3).double() * torch.tensor([1.0, 1, 1, 3, 1, 9]).double()[None, :, None]
    found = citation_search.repeated(scores, fields, mask)
    expected = torch.zeros(1, 6, 3)
    expected[0, :2, 0] = 1
    assert torch.equal(found.float(), expected)


def test_search_raises_the_reward_and_the_share_of_right_fields(sample: Citations) -> None:
    batch = sample.collate(sample.part("train")[:30])
    # Right at most tokens, by a little.
    noise = 4.5 * torch.rand(30, 1, batch.gold.shape[2], 13, generator=torch.Generator().manual_seed(1))
    net = sample.space.independent(2.5 * batch.gold + noise, batch.x.mask)
    found = sample.search(batch.x, net)
    assert found.shape == (30, len(citation_search.NET), *batch.gold.shape[2:])
    assert torch.equal(found, sample.space.round(found, batch.x.mask)) and not found.requires_grad
    assert (sample.reward(batch.x, found) > sample.reward(batch.x, net.mode) - 1e-6).float().mean() > 0.9

    def right(y: torch.Tensor) -> float:
        return float((y * batch.gold).sum() / batch.gold.sum() / y.shape[1])

    assert right(found) > right(net.mode) + 0.05


def test_search_takes_no_notice_of_padding(sample: Citations) -> None:
    short, long = sorted(sample.part("train"), key=sample.length)[:: len(sample.part("train")) - 1]
    alone, both = sample.collate([short]), sample.collate([short, long])
    logits = torch.randn(2, 1, both.x.mask.shape[1], 13)
    size = alone.x.mask.shape[1]
    found = sample.search(both.x, sample.space.independent(logits, both.x.mask))
    expected = sample.search(alone.x, sample.space.independent(logits[:1, :, :size]))
    assert torch.equal(found[:1, :, :size], expected) and not found[0, :, size:].any()


def test_the_sample_has_its_sizes_and_its_rewards_again(sample: Citations) -> None:
    assert {part: len(sample.part(part)) for part in SIZES} == SIZES
    assert sample.space.tags == list(FIELDS) and sample.inputs.columns == {GAP: 5, RULE: len(RULES) + 3}
    again = made(corpus="sample", labelled=5)
    again.restore(sample.facts())
    batch = sample.collate(sample.part("test")[:4])
    assert torch.equal(again.reward(batch.x, batch.gold), sample.reward(batch.x, batch.gold))


def test_the_sample_is_the_same_at_every_call() -> None:
    again = sample_citations.__wrapped__()
    assert again == sample_citations()
    assert len({s.words for some in again.values() for s in some}) == sum(SIZES.values())
    assert {tag for some in again.values() for s in some for tag in s.tags} == set(FIELDS)


def test_which_citations_have_fields(tmp_path: Path) -> None:
    (tmp_path / "pool.txt").write_text("<author> A. </author>\nB. C. Dee. Xyzzy.\n")
    few = made(corpus="sample", labelled=5, repeat=3, unlabelled=str(tmp_path / "pool.txt"))
    train = few.part("train")
    assert [e.tags is not None for e in train] == [True] * 5 + [False] * 117 + [True] * 10
    assert train[-5:] == train[:5] and "xyzzy" in few.facts()["words"]
    assert list(few.checksums()) == [str(tmp_path / "pool.txt")]
    batch = few.collate(train[4:7])
    assert batch.labelled.tolist() == [True, False, False] and not batch.gold[1:].any() and batch.gold[0].any()
    assert few.collate(train[5:7]).gold is None
    alone = made(corpus="sample", labelled=5, rest=False)
    assert len(alone.part("train")) == 5 and len(alone.facts()["words"]) < len(few.facts()["words"]) / 2
    assert "first 5" in few.protocol()["labelled"] and "validation" in few.protocol()["selection"]
    assert few.protocol()["split"] == "sample (synthetic)" and made(corpus="sample").protocol()["labelled"] == "all"


def test_a_file_is_cut_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    path.write_text("".join(f"<author> A. </author> <date> {year} </date>\n" for year in range(1990, 1996)))
    task = made(train=str(path), parts=(3, 2, 1))
    years = [[e.entry.words[-1] for e in task.part(part)] for part in ("train", "validation", "test")]
    assert years == [["1990", "1991", "1992"], ["1993", "1994"], ["1995"]]
    assert task.protocol()["split"] == f"{path}, cut in its order: 3 / 2 / 1" and list(task.checksums()) == [str(path)]
    with pytest.raises(DataError, match=r"all\.txt: found 6 citations; expected at least 7, the sum of task\.parts"):
        made(train=str(path), parts=(3, 2, 2))
    with pytest.raises(DataError, match=r"all\.txt: found 3 training sentences; expected at least task\.labelled=5"):
        made(train=str(path), parts=(3, 2, 1), labelled=5)
    with pytest.raises(ConfigError, match=r"task.validation: found no file; .*or a single task.file"):
        made(train=str(path))
    with pytest.raises(ConfigError, match=r"requires task.train and nothing else; found task.train, task.validation"):
        made(train=str(path), validation=str(path), parts=(3, 2, 1))
    with pytest.raises(ConfigError, match=r"found task.corpus"):
        made(corpus="sample", parts=(3, 2, 1))
    with pytest.raises(ConfigError, match="neither corpus nor train"):
        made()
    with pytest.raises(ConfigError, match="each field once"):
        made(corpus="sample", fields=["author", "author"])


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
    (found,) = sample.predictions(sample.space.independent(logits, batch.x.mask), batch, [plain])
    assert found["fields"] == [
        {"field": "author", "text": "A. Cau."},
        {"field": "title", "text": "Logic,"},
        {"field": "volume", "text": "4(2),"},
        {"field": "date", "text": "1990."},
    ]
    assert found["tags"] == fields and len(found["scores"]) == 13
    for wrong in ("", " <br> ", {"words": ["A"]}, 7):
        with pytest.raises(DataError, match="a citation as text, or"):
            sample.parse(wrong)
    with pytest.raises(DataError, match="found <title> in"):
        sample.parse("<title> Logic")


@real_data
def test_cora() -> None:
    task = made(train="data:citations/cora/cora.tagged.txt", parts=(300, 100, 100), labelled=5)
    every = [*task.part("train"), *task.part("validation"), *task.part("test")]
    assert len(every) == 500 and sum(map(task.length, every)) == 19182
    assert max(map(task.length, every)) == 118  # as the paper counts them
    batch = task.collate(task.part("validation"))
    assert task.reward(batch.x, batch.gold).mean() > 0.9
    rule = batch.x.inputs[RULE]
    votes = task._votes[rule]
    covered = votes.any(-1) & batch.x.mask
    assert covered.sum() > 0.3 * batch.x.mask.sum()
    assert (votes * batch.gold[:, 0]).sum() > 0.94 * covered.sum()


@real_data
def test_anystyle_is_a_pool() -> None:
    task = made(corpus="sample", labelled=5, unlabelled="data:citations/anystyle/core.xml")
    assert len(task.part("train")) == 120 + 1514
