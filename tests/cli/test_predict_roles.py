"""`spen predict` of roles: sentences in which no predicate is marked, and the characters that answers are of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from spen_plugins.data.sentences.items import sentence_of
from spen_plugins.data.sentences.roles import FileExamples, read_roles
from spen_plugins.errors import DataError
from spen_plugins.runs.predict.tokenised import TokenisedText
from spen_plugins.task_parts import parse_all
from tests.loaded import loaded, spen

pytest.importorskip("spacy")

WORDS = [["Anna", "sent", "it", "."], ["Yes", "!"], ["Bob", "saw", "her"]]
MARKED = {"sent", "saw"}


@pytest.fixture(autouse=True)
def finder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a folder of its own; predicates of other runs are the words of `MARKED`."""
    monkeypatch.chdir(tmp_path)

    def predicates(self: TokenisedText, some: Sequence[Sequence[str]]) -> list[list[int]]:
        self._was_asked = True
        return [[i for i, word in enumerate(words) if word in MARKED] for words in some]

    monkeypatch.setattr(TokenisedText, "predicates", predicates)


def lines(*items: Any) -> Path:
    Path("in.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    return Path("in.jsonl")


def answers(done: Result) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("key", ["words", "tokens"])
def test_sentences_without_predicates_get_them_from_another_run(runs: dict[str, Path], key: str) -> None:
    done = spen("predict", runs["srl"], lines(*({key: words} for words in WORDS)), "--predicates", "p")
    assert [(a["words"], a["predicate"]) for a in answers(done)] == [
        (WORDS[0], {"index": 1, "word": "sent"}),
        (WORDS[2], {"index": 1, "word": "saw"}),
    ]
    assert "3 sentences, 0 predicates\n" in done.stderr
    assert done.stderr.endswith("in.jsonl: found no marked predicates; they are predicted as for raw text\n")
    assert "_char" not in done.stdout


@pytest.mark.parametrize("form", ["conll", "props", "conllu"])
def test_formats_hold_all_sentences_of_such_a_file(runs: dict[str, Path], form: str) -> None:
    for file in (lines(*({"words": words} for words in WORDS)), lines(*({"sentence": " ".join(w)} for w in WORDS))):
        done = spen("predict", runs["srl"], file, "--format", form)
        assert len(done.stdout.strip().split("\n\n")) == 3, done.output


def test_one_marked_predicate_speaks_for_the_file(runs: dict[str, Path]) -> None:
    file = lines({"words": WORDS[0]}, {"words": WORDS[2], "predicate": 0})
    assert [a["predicate"]["word"] for a in answers(spen("predict", runs["srl"], file))] == ["Bob"]


@pytest.mark.parametrize("task", ["srl", "e2e.arcs", "propbank.senses"])
def test_tasks_of_predicates(task: str) -> None:
    """Each has an example for each predicate, or for each sentence with one."""
    made = loaded(task, corpus="sample")
    raw = TokenisedText("")
    examples = made.read(str(lines(*({"words": words} for words in WORDS))))
    assert not examples and [list(words) for words in examples.words] == WORDS
    raw.words = examples.words
    assert [list(e.entry.words) for e in made.read_text(raw)] == [WORDS[0], WORDS[2]] and made.read_text(raw).rows == [
        0,
        2,
    ]


def test_texts_of_lines_are_raw(runs: dict[str, Path]) -> None:
    texts = ["Anna  sent it. Yes!", "", "Bob\nsaw her"]
    done = spen("predict", runs["srl"], lines(*({"sentence": text} for text in texts)))
    assert done.stderr == "in.jsonl: read as JSONL of raw texts (sentence), tokenised by spaCy's rules for en\n"
    found = answers(done)
    assert [(a["line"], texts[a["line"] - 1][a["start_char"] : a["end_char"]]) for a in found] == [
        (1, "Anna  sent it."),
        (3, "Bob\nsaw her"),
    ]
    assert [a["words"] for a in answers(spen("predict", runs["ner"], lines({"sentence": texts[0]})))] == WORDS[:2]
    broken = spen("predict", runs["srl"], lines({"sentence": "Yes"}, {"words": ["Yes"]}), status=2)
    assert "in.jsonl:2: found {'words': ['Yes']}; expected" in broken.stderr


def test_keys_that_are_not_read_are_named(runs: dict[str, Path]) -> None:
    verbs = [{"verb": "sent", "tags": ["B-ARG0", "B-V", "B-ARG1", "O"]}]
    done = spen("predict", runs["srl"], lines({"words": WORDS[0], "verbs": verbs, "id": 3}, {"words": WORDS[1]}))
    assert len(answers(done)) == 1
    assert "; ignored keys: verbs, id (known: words, tokens, predicate, predicates, tags," in done.stderr
    Path("out.jsonl").write_text(done.stdout)
    assert not read_roles(Path("out.jsonl")).ignored


def test_evaluation_finds_no_predicates(runs: dict[str, Path]) -> None:
    assert "predicted as for raw text" not in spen("evaluate", runs["srl"], lines({"words": WORDS[0]}), status=2).stderr


def test_python_values_need_a_predicate() -> None:
    for task in ("srl", "propbank.senses"):
        with pytest.raises(DataError) as error:
            parse_all(loaded(task, corpus="sample"), [{"words": WORDS[0], "verbs": []}])
        assert "input 0: found no predicate among the keys words, verbs; expected one" in str(error.value)
        assert "`spen predict RUN FILE`" in str(error.value)
    assert sentence_of({"tokens": WORDS[0], "predicate": 1}) == sentence_of({"words": WORDS[0], "predicate": 1})


# Characters

TEXTS = [
    "Anna left.",
    "  Anna \t left .  Bob   didn't\tsee her!  ",
    "Anna left.\n\n\nBob stayed; he hadn't gone.\nAnna left.\n",
    "\n \n“I can't,” said 👩‍🚀 Zoë’s friend — to 'them'.\r\n\r\nOK 👍🏽? e\u0301lan\u00a0vital.\n\n ",
    "One\u2028two. Three\u3000four.\x85Five",
    "Mr. Smith paid $3.50 (U.S.). I'm in!\n\tThey'd've gone...",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_span_is_of_its_characters(text: str) -> None:
    """Nothing but white space lies between words; so each word's place is the only one possible."""
    raw = TokenisedText(text)
    sentences = raw.sentences()
    spans = [list(combinations(range(len(words) + 1), 2)) for words in sentences]
    tables = [[{"start": first, "end": end} for first, end in some] for some in spans]
    found = raw.located([{"words": w, "entities": t} for w, t in zip(sentences, tables, strict=True)], sentences)
    end = 0
    for words, answer, given in zip(sentences, found, tables, strict=True):
        assert answer["words"] == words and [{k: e[k] for k in ("start", "end")} for e in answer["entities"]] == given
        for table in (*answer["entities"], {"start": 0, "end": len(words), **answer}):
            inside = words[table["start"] : table["end"]]
            covered = text[table["start_char"] : table["end_char"]]
            assert re.fullmatch(r"\s*".join(map(re.escape, inside)), covered)
        assert not text[end : answer["start_char"]].strip()
        end = answer["end_char"]
    assert not text[end:].strip()


def test_every_part_of_an_answer_has_characters() -> None:
    raw = TokenisedText("So: Anna sent it. Yes! Bob saw her.")
    sentences = raw.sentences()
    argument = {"role": "ARG0", "start": 0, "end": 1, "score": 0.5}

    one = {"words": sentences[0], "predicate": {"index": 3, "word": "sent"}, "arguments": [argument], "sense": None}
    several = {"words": sentences[2], "predicates": [{"index": 1, "word": "saw", "arguments": [argument]}]}
    first, second = raw.located([one, several], FileExamples([1, 2], sentences, [0, 2]))
    assert first == {
        **one,
        "predicate": {"index": 3, "word": "sent", "start_char": 9, "end_char": 13},
        "arguments": [{**argument, "start_char": 0, "end_char": 2}],
        "start_char": 0,
        "end_char": 17,
    }
    [predicate] = second["predicates"]
    assert (second["start_char"], second["end_char"]) == (23, 35)
    assert (predicate["start_char"], predicate["end_char"]) == (27, 30)
    assert predicate["arguments"] == [{**argument, "start_char": 23, "end_char": 26}]


@pytest.mark.parametrize("run", ["srl", "ner"])
def test_raw_text_has_characters_wherever_it_comes_from(runs: dict[str, Path], run: str) -> None:
    text = "Anna 👍 sent it, and\nBob doesn't know. Yes!\n\nBob saw her.\n"
    Path("notes.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    for words, given in ((["--text", text], None), (["-"], text), (["notes.txt"], None)):
        found = answers(spen("predict", runs[run], *words, input=given))
        assert len(found) == (2 if run == "srl" else 3)
        for answer in found:
            covered = text[answer["start_char"] : answer["end_char"]]
            assert re.fullmatch(r"\s*".join(map(re.escape, answer["words"])), covered)
            if run == "srl":
                predicate = answer["predicate"]
                assert text[predicate["start_char"] : predicate["end_char"]] == predicate["word"]
            for span in answer.get("arguments", answer.get("entities")):
                covered = text[span["start_char"] : span["end_char"]]
                assert covered.split() and covered.split()[0].startswith(span["text"].split()[0])
    tokens = spen("predict", runs["ner"], lines({"words": ["Anna", "left"]}))
    assert "_char" not in tokens.stdout and "line" not in json.loads(tokens.stdout)
    spen("predict", runs[run], "--text", text, "--format", "conll")


def test_labels_of_texts_have_no_characters() -> None:
    raw = TokenisedText("a match\nthe band\n")
    answer = {"text": "a match", "labels": []}
    assert raw.located([answer, answer], [1, 2]) == [answer, answer]
