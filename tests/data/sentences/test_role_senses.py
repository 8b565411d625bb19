"""Senses, auxiliaries and kinds of predicates in files of roles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spen_plugins.data.sentences.predicate_kinds import kind_of
from spen_plugins.data.sentences.role_items import sentence_of
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.errors import ConfigError, DataError
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


WITH_AUXILIARY = (
    "0\tAnna\tNNP\t*\t-\t-\t*\t(ARG0*)\n1\thas\tVBZ\t*\thave\thave.01\t(V*)\t*\n2\tleft\tVBN\t*\tleave\tleave.01\t*\t(V*)\n"
    "3\tit\tPRP\t*\t-\t-\t*\t(ARG1*)\n4\tfor\tIN\t*\t-\t-\t*\t*\n\n"
)


def test_auxiliaries_are_left_out_where_asked(tmp_path: Path) -> None:
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
