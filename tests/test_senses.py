"""Senses of predicates: the lexicon, what files say, the candidates, the task and its net."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from spen_plugins.builtin.nets.choice import Choice
from spen_plugins.builtin.tasks.predicate_kinds import kind_of
from spen_plugins.builtin.tasks.sense_candidates import PLACES, Inventory, spelt
from spen_plugins.builtin.tasks.senses import Senses
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.role_items import sentence_of
from spen_plugins.readers.roles import read_roles
from spen_plugins.readers.rolesets import particles, rolesets
from spen_plugins.readers.srl import AUXILIARIES, Proposition, Sentence
from spen_plugins.testing import ToyFeatures, ToyTags, check_inference_net
from tests.loaded import loaded

COLUMNS = "0\tAnna\tNNP\t*\t-\t-\t(ARG0*)\n1\tgave\tVBD\t*\tgive\tgive.01\t(V*)\n2\tit\tPRP\t*\t-\t-\t(ARG1*)\n"
CONLL_2012 = (
    "#begin document (a); part 000\n"
    "a 0 0 Anna NNP (TOP(S(NP*) - - - - * (ARG0*) -\n"
    "a 0 1 gave VBD (VP* give 01 1 - * (V*) -\n"
    "a 0 2 it PRP (NP*)))) - - - - * (ARG1*) -\n"
    "#end document\n"
)
UP = (
    "# global.columns = ID FORM UPOS UP:PRED UP:ARGSPANS\n"
    "1\tAnna\tPROPN\t_\t_\n2\tgave\tVERB\tgive.01\tARG0:1-1|ARG1:3-3\n3\tit\tPRON\t_\t_\n"
)
JSON = json.dumps({"words": ["Anna", "gave", "it"], "predicates": [{"index": 1, "sense": "give.01", "lemma": "give"}]})


def test_the_lexicon_has_senses_and_what_their_roles_mean() -> None:
    give = rolesets()["give.01"]
    assert (give.lemma, give.gloss, give.describe("ARG1"), give.describe("C-ARG1")) == (
        *("give", "transfer", "thing given", "thing given"),
    )
    assert give.describe("ARGM-TMP") is None and ("give", "v") in give.aliases
    assert rolesets().senses("decision") == ("decide.01",) and rolesets().senses("florp") == ()
    assert "give_up.07" in rolesets().phrases("give") and particles("give_up.07") == ("up",)
    assert "florp.01" not in rolesets() and rolesets().get("florp.01") is None and len(rolesets()) == len([*rolesets()])


def test_every_roleset_can_be_read_and_found_by_its_aliases() -> None:
    known = rolesets()
    for name in known:
        assert known[name].id == name and all(name in known.senses(form) for form, _ in known[name].aliases)


@pytest.mark.parametrize(
    ("text", "pos"),
    [(COLUMNS, "VBD"), (CONLL_2012, "VBD"), (UP, "VERB"), (JSON, None)],
    ids=["cols", "2012", "up", "json"],
)
def test_rolesets_are_read(text: str, pos: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text + "\n")
    [sentence] = read_roles(tmp_path / "a.txt", gold=False).sentences
    [found] = sentence.propositions
    assert (found.roleset, found.pos, found.predicate) == ("give.01", pos, 1)


def test_a_sense_that_is_no_text_is_refused() -> None:
    with pytest.raises(DataError, match=r"sense 3.*give\.01"):
        sentence_of({"words": ["a"], "predicate": 0, "sense": 3})


def inventory() -> Inventory:
    def one(text: str, at: int, lemma: str, sense: str) -> Sentence:
        return Sentence(tuple(text.split()), (Proposition(at, lemma, None, sense),))

    return Inventory.of(
        [
            *[one("she found it", 1, "find", "find.01")] * 3,
            one("they found it", 1, "find", "find.02"),
            one("they florped it", 1, "florp", "florp.09"),
        ]
    )


def senses(text: str, at: int, lemma: str | None = None) -> list[str]:
    return [one.sense for one in inventory().candidates(text.split(), at, lemma)]


def test_candidates_are_the_lexicons_and_the_training_parts() -> None:
    assert senses("he found her", 1)[:2] == ["find.01", "find.02"]  # by frequency
    assert set(senses("he found her", 1)) == {*rolesets().senses("find"), "find.01", "find.02"}
    assert senses("it was founded here", 2)[0] == "found.01"  # by spelling: found, no lemma of training
    assert senses("he found her", 1, "found")[0] == "found.01"  # as the file says
    assert senses("they florped", 1) == ["florp.09"] and senses("they blarked", 1) == [""]
    assert senses("they blarked", 1, "blark") == ["blark.01"] and senses("they wrote", 1)[0] == "write.01"
    assert senses("the decision", 1) == ["decide.01"]


def test_senses_with_particles_are_candidates_where_the_particle_is_near() -> None:
    assert "give_up.07" in senses("they give it up", 1) and "give_up.07" not in senses("they give it", 1)
    assert "give_up.07" not in senses("up they give", 2)
    [with_up] = [c for c in inventory().candidates(["they", "give", "up"], 1) if c.sense == "give_up.07"]
    assert {"particle up next", "particle next"} <= {*with_up.attributes}
    many = inventory()
    near, absent = (many.candidates(["They", "GIVE", *rest], 1) for rest in (["it", "up"], ["it"]))
    assert near != absent and near == many.candidates(["they", "give", "them", "Up"], 1)  # found once
    assert len(inventory().candidates(["they", "make", *["up", "out", "do", "for", "of"]], 1)) <= PLACES


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
    assert lemma in spelt(word)


def net_of(task: Senses) -> Choice:
    return Choice(Choice.Config(dim=4), task, ToyFeatures(task))


def test_the_net_keeps_its_contract() -> None:
    task = loaded("senses", corpus="sample")
    check_inference_net(net_of(task), task)


def test_only_candidates_are_probable_and_padding_changes_nothing() -> None:
    task = loaded("senses", corpus="sample")
    net = net_of(task).double().eval()
    examples = list(task.part("test")[:12])
    many = net(task.collate(examples).x).mean[:, 0, 0]
    for example, row in zip(examples, many, strict=True):
        n = len(example.candidates)
        assert not row[n:].any() and row[:n].sum().item() == pytest.approx(1)
        alone = net(task.collate([example]).x).mean[0, 0, 0]
        torch.testing.assert_close(alone, row)


def test_the_net_is_for_candidates() -> None:
    with pytest.raises(ConfigError, match="takes candidates"):
        Choice(Choice.Config(), ToyTags(), ToyFeatures(ToyTags()))


def test_the_first_candidate_is_the_most_frequent_sense(tmp_path: Path) -> None:
    """Of gold that is the first candidate, a net that always chooses the first has all right; the rest by kind."""
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 3 + COLUMNS.replace("give.01", "give.02") + "\n")
    files = dict.fromkeys(("train", "validation", "test"), str(tmp_path / "a.conll"))
    task = loaded("senses", **files)
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


def test_lemmas_of_the_words_alone(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 2)
    (tmp_path / "b.conll").write_text(COLUMNS.replace("\tgive\t", "\tfind\t") + "\n")
    files = {"train": str(tmp_path / "a.conll"), "validation": str(tmp_path / "b.conll")}
    for lemmas, first in (("file", "find.01"), ("words", "give.01")):
        task = loaded("senses", **files, lemmas=lemmas)
        assert task.part("validation")[0].candidates[0].sense == first


def test_senses_that_neither_training_nor_the_lexicon_has_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text((COLUMNS + "\n") * 2)
    (tmp_path / "b.conll").write_text("\n".join(COLUMNS.replace("give.01", s) for s in ("give.14", "give.77")) + "\n")
    task = loaded("senses", train=str(tmp_path / "a.conll"), validation=str(tmp_path / "b.conll"))
    assert task.notes()[-1] == "warning: no training example has 1 of the 3 senses (give.77): they can't be learned"


def test_a_file_without_senses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Anna\t-\t(ARG0*)\nleft\tleave\t(V*)\n\n")
    files = dict.fromkeys(("train", "validation"), str(tmp_path / "a.conll"))
    with pytest.raises(DataError, match=r"no predicate with a sense.*CoNLL-2012"):
        loaded("senses", **files)


def test_a_prediction_reads_as_gold() -> None:
    task = loaded("senses", corpus="sample")
    example = task.part("test")[0]
    batch = task.collate([example])
    [found] = task.predictions(net_of(task).eval()(batch.x), batch, [example])
    assert found["sense"] in [one.sense for one in example.candidates] and 0 < found["score"] <= 1
    again = task.parse(found)
    assert again.sense == found["sense"] and again.predicate == example.predicate
    assert task.moved(again, again.predicate).candidates == again.candidates


WITH_AUXILIARY = (
    "0\tAnna\tNNP\t*\t-\t-\t*\t(ARG0*)\n1\thas\tVBZ\t*\thave\thave.01\t(V*)\t*\n2\tleft\tVBN\t*\tleave\tleave.01\t*\t(V*)\n"
    "3\tit\tPRP\t*\t-\t-\t*\t(ARG1*)\n4\tfor\tIN\t*\t-\t-\t*\t*\n\n"
)


def test_auxiliaries_are_left_out_where_asked(tmp_path: Path) -> None:
    assert all(name in rolesets() and not rolesets()[name].roles for name in AUXILIARIES)
    (tmp_path / "a.conll").write_text(WITH_AUXILIARY)
    files = dict.fromkeys(("train", "validation"), str(tmp_path / "a.conll"))
    for auxiliaries in (True, False):
        roles = loaded("srl", **files, auxiliaries=auxiliaries)
        assert [example.predicate for example in roles.part("train")] == [1, 2][not auxiliaries :]
        tags = loaded("tagging", **files, auxiliaries=auxiliaries, format="predicates", scheme="bio")
        assert tags.part("train")[0].names == ("O", "B-V" if auxiliaries else "O", "B-V", "O", "O")
    with pytest.raises(ConfigError, match=r"task\.auxiliaries: it is of predicates"):
        loaded("tagging", **files, auxiliaries=False)


def test_roles_are_scored_by_kind_of_predicate(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(WITH_AUXILIARY.replace("VBN", "NN"))
    task = loaded("srl", **dict.fromkeys(("train", "validation"), str(tmp_path / "a.conll")))
    batch = task.collate(task.part("train"))
    metric = task.metric()
    metric.update(task.space.independent(task.space.logits(batch.gold, batch.x.mask), batch.x.mask), batch)
    scores = metric.compute()
    assert scores["span_f1"] == scores["nouns_f1"] == 1 and scores["verbs_f1"] == 0 and "adjectives_f1" not in scores
    assert [kind_of(tag) for tag in ("VBD", "MD", "AUX", "NOUN", "JJ", "ADJ", "ADV", "IN", None)] == [
        *("verbs", "verbs", "verbs", "nouns", "adjectives", "adjectives", None, None, None)
    ]
