"""Senses of predicates: the lexicon, senses in files, the candidates, the task and its net."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spen_plugins.builtin.nets.basic import Choice
from spen_plugins.data.sentences.srl import AUXILIARIES, Proposition, Sentence
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.testing import ToyFeatures, ToyTags, check_inference_net
from spen_propbank import rolesets
from spen_propbank.candidates import PLACES, Inventory, list_spellings
from spen_propbank.lexicon import particles
from spen_propbank.senses import Senses
from tests.loaded import loaded

COLUMNS = "0\tAnna\tNNP\t*\t-\t-\t(ARG0*)\n1\tgave\tVBD\t*\tgive\tgive.01\t(V*)\n2\tit\tPRP\t*\t-\t-\t(ARG1*)\n"


def test_the_lexicon_has_senses_and_what_their_roles_mean() -> None:
    give = rolesets()["give.01"]
    assert (give.lemma, give.gloss, give.describe("ARG1"), give.describe("C-ARG1")) == (
        *("give", "transfer", "thing given", "thing given"),
    )
    assert give.describe("ARGM-TMP") is None and ("give", "v") in give.aliases
    assert rolesets().senses("decision") == ("decide.01",) and rolesets().senses("florp") == ()
    assert "give_up.07" in rolesets().phrases("give") and particles("give_up.07") == ("up",)
    assert "florp.01" not in rolesets() and rolesets().get("florp.01") is None and len(rolesets()) == len([*rolesets()])


def test_rolesets_of_auxiliaries_have_no_roles() -> None:
    assert all(name in rolesets() and not rolesets()[name].roles for name in AUXILIARIES)


def test_every_roleset_can_be_read_and_found_by_its_aliases() -> None:
    lexicon = rolesets()
    for name in lexicon:
        assert lexicon[name].id == name and all(name in lexicon.senses(form) for form, _ in lexicon[name].aliases)


def make_inventory() -> Inventory:
    def make_sentence(text: str, index: int, lemma: str, sense: str) -> Sentence:
        return Sentence(tuple(text.split()), (Proposition(index, lemma, None, sense),))

    return Inventory.from_sentences(
        [
            *[make_sentence("she found it", 1, "find", "find.01")] * 3,
            make_sentence("they found it", 1, "find", "find.02"),
            make_sentence("they florped it", 1, "florp", "florp.09"),
        ]
    )


def list_senses(text: str, index: int, lemma: str | None = None) -> list[str]:
    return [candidate.sense for candidate in make_inventory().candidates(text.split(), index, lemma)]


def test_candidates_come_from_the_lexicon_and_the_training_part() -> None:
    assert list_senses("he found her", 1)[:2] == ["find.01", "find.02"]  # by frequency
    assert set(list_senses("he found her", 1)) == {*rolesets().senses("find"), "find.01", "find.02"}
    assert list_senses("it was founded here", 2)[0] == "found.01"  # by spelling: "found", which is no training lemma
    assert list_senses("he found her", 1, "found")[0] == "found.01"  # as the file says
    assert list_senses("they florped", 1) == ["florp.09"] and list_senses("they blarked", 1) == [""]
    assert list_senses("they blarked", 1, "blark") == ["blark.01"] and list_senses("they wrote", 1)[0] == "write.01"
    assert list_senses("the decision", 1) == ["decide.01"]


def test_senses_with_particles_are_candidates_where_the_particle_is_near() -> None:
    assert "give_up.07" in list_senses("they give it up", 1) and "give_up.07" not in list_senses("they give it", 1)
    assert "give_up.07" not in list_senses("up they give", 2)
    [with_up] = [c for c in make_inventory().candidates(["they", "give", "up"], 1) if c.sense == "give_up.07"]
    assert {"particle up next", "particle next"} <= {*with_up.attributes}
    inventory = make_inventory()
    with_particle, without_particle = (
        inventory.candidates(["They", "GIVE", *rest], 1) for rest in (["it", "up"], ["it"])
    )
    assert with_particle != without_particle and with_particle == inventory.candidates(
        ["they", "give", "them", "Up"], 1
    )  # candidates are cached
    assert len(make_inventory().candidates(["they", "make", *["up", "out", "do", "for", "of"]], 1)) <= PLACES


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("tries", "try"),
        ("stopped", "stop"),
        ("hoping", "hope"),
        ("lying", "lie"),
        ("watches", "watch"),
        ("given", "give"),
    ],
)
def test_spelling(word: str, lemma: str) -> None:
    assert lemma in list_spellings(word)


def make_net(task: Senses) -> Choice:
    return Choice(Choice.Config(dim=4), task, ToyFeatures(task))


def test_the_net_fulfils_its_contract() -> None:
    task = loaded("propbank.senses", corpus="sample")
    check_inference_net(make_net(task), task)


def test_only_candidates_are_probable_and_padding_changes_nothing() -> None:
    task = loaded("propbank.senses", corpus="sample")
    net = make_net(task).double().eval()
    examples = list(task.part("test")[:12])
    batched = net(task.collate(examples).x).mean[:, 0, 0]
    for example, row in zip(examples, batched, strict=True):
        n = len(example.candidates)
        assert not row[n:].any() and row[:n].sum().item() == pytest.approx(1)
        single = net(task.collate([example]).x).mean[0, 0, 0]
        torch.testing.assert_close(single, row)


def test_the_net_requires_candidates() -> None:
    with pytest.raises(ConfigError, match="requires candidates"):
        Choice(Choice.Config(), ToyTags(), ToyFeatures(ToyTags()))


def test_the_first_candidate_is_the_most_frequent_sense(tmp_path: Path) -> None:
    """A net that always chooses the first candidate is right where that is gold; scores are reported by kind, too."""
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 3 + COLUMNS.replace("give.01", "give.02") + "\n")
    files = dict.fromkeys(("train", "validation", "test"), str(tmp_path / "a.conll"))
    task = loaded("propbank.senses", **files)
    batch = task.collate(task.part("test"))
    logits = torch.zeros(4, 1, 1, PLACES)
    logits[..., 0] = 9
    metric = task.metric()
    metric.update(task.space.independent(logits, batch.x.mask), batch)
    scores = metric.compute()
    assert scores["accuracy"] == scores["most_frequent"] == scores["verbs"] == 0.75 and scores["reach"] == 1
    assert "nouns" not in scores and "unseen" not in scores
    numerator, denominator = metric.ratios()
    assert (numerator.sum() / denominator.sum()).item() == 0.75


def test_lemmas_may_come_from_the_words_alone(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 2)
    (tmp_path / "b.conll").write_text(COLUMNS.replace("\tgive\t", "\tfind\t") + "\n")
    files = {"train": str(tmp_path / "a.conll"), "validation": str(tmp_path / "b.conll")}
    for lemmas, first in (("file", "find.01"), ("words", "give.01")):
        task = loaded("propbank.senses", **files, lemmas=lemmas)
        assert task.part("validation")[0].candidates[0].sense == first


def test_senses_that_neither_training_nor_the_lexicon_has_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 2)
    (tmp_path / "b.conll").write_text("\n".join(COLUMNS.replace("give.01", s) for s in ("give.14", "give.77")) + "\n")
    task = loaded("propbank.senses", train=str(tmp_path / "a.conll"), validation=str(tmp_path / "b.conll"))
    assert task.notes()[-1] == "warning: no training example has 1 of the 3 senses (give.77): they can't be learned"


def test_a_file_without_senses_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Anna\t-\t(ARG0*)\nleft\tleave\t(V*)\n\n")
    files = dict.fromkeys(("train", "validation"), str(tmp_path / "a.conll"))
    with pytest.raises(DataError, match=r"no predicate with a sense.*CoNLL-2012"):
        loaded("propbank.senses", **files)


def test_a_prediction_can_be_parsed_as_gold() -> None:
    task = loaded("propbank.senses", corpus="sample")
    example = task.part("test")[0]
    batch = task.collate([example])
    [answer] = task.predictions(make_net(task).eval()(batch.x), batch, [example])
    assert answer["sense"] in [candidate.sense for candidate in example.candidates] and 0 < answer["score"] <= 1
    parsed = task.parse(answer)
    assert parsed.sense == answer["sense"] and parsed.predicate == example.predicate
    assert task.moved(parsed, parsed.predicate).candidates == parsed.candidates
