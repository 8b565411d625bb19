"""`spen predict` of roles: sentences without marked predicates, and the characters that answers cover."""

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
    """Changes to an empty folder; other runs predict the words of `MARKED` as predicates."""
    monkeypatch.chdir(tmp_path)

    def predicates(self: TokenisedText, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        self._was_asked = True
        return [[i for i, word in enumerate(words) if word in MARKED] for words in sentences]

    monkeypatch.setattr(TokenisedText, "predicates", predicates)


def write(*items: Any) -> Path:
    Path("in.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    return Path("in.jsonl")


def parse(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("key", ["words", "tokens"])
def test_sentences_without_predicates_get_them_from_another_run(runs: dict[str, Path], key: str) -> None:
    result = spen("predict", runs["srl"], write(*({key: words} for words in WORDS)), "--predicates", "p")
    assert [(a["words"], a["predicate"]) for a in parse(result)] == [
        (WORDS[0], {"index": 1, "word": "sent"}),
        (WORDS[2], {"index": 1, "word": "saw"}),
    ]
    assert "3 sentences, 0 predicates\n" in result.stderr
    assert result.stderr.endswith("in.jsonl: found no marked predicates; they are predicted as for raw text\n")
    assert "_char" not in result.stdout


@pytest.mark.parametrize("form", ["conll", "props", "conllu"])
def test_formats_hold_all_sentences_of_a_file_without_predicates(runs: dict[str, Path], form: str) -> None:
    for file in (write(*({"words": words} for words in WORDS)), write(*({"sentence": " ".join(w)} for w in WORDS))):
        result = spen("predict", runs["srl"], file, "--format", form)
        assert len(result.stdout.strip().split("\n\n")) == 3, result.output


def test_one_marked_predicate_is_enough_for_a_file(runs: dict[str, Path]) -> None:
    file = write({"words": WORDS[0]}, {"words": WORDS[2], "predicate": 0})
    assert [a["predicate"]["word"] for a in parse(spen("predict", runs["srl"], file))] == ["Bob"]


@pytest.mark.parametrize("kind", ["srl", "e2e.arcs", "propbank.senses"])
def test_tasks_of_predicates(kind: str) -> None:
    """Each task has one example per predicate, or per sentence with a predicate."""
    task = loaded(kind, corpus="sample")
    raw = TokenisedText("")
    examples = task.read(str(write(*({"words": words} for words in WORDS))))
    assert not examples and [list(words) for words in examples.words] == WORDS
    raw.words = examples.words
    assert [list(e.entry.words) for e in task.read_text(raw)] == [WORDS[0], WORDS[2]] and task.read_text(raw).rows == [
        0,
        2,
    ]


def test_texts_in_json_lines_are_raw_text(runs: dict[str, Path]) -> None:
    texts = ["Anna  sent it. Yes!", "", "Bob\nsaw her"]
    result = spen("predict", runs["srl"], write(*({"sentence": text} for text in texts)))
    assert result.stderr == "in.jsonl: read as JSONL of raw texts (sentence), tokenised by spaCy's rules for en\n"
    predictions = parse(result)
    assert [(a["line"], texts[a["line"] - 1][a["start_char"] : a["end_char"]]) for a in predictions] == [
        (1, "Anna  sent it."),
        (3, "Bob\nsaw her"),
    ]
    assert [a["words"] for a in parse(spen("predict", runs["ner"], write({"sentence": texts[0]})))] == WORDS[:2]
    broken = spen("predict", runs["srl"], write({"sentence": "Yes"}, {"words": ["Yes"]}), status=2)
    assert "in.jsonl:2: found {'words': ['Yes']}; expected" in broken.stderr


def test_keys_that_are_not_read_are_named(runs: dict[str, Path]) -> None:
    verbs = [{"verb": "sent", "tags": ["B-ARG0", "B-V", "B-ARG1", "O"]}]
    result = spen("predict", runs["srl"], write({"words": WORDS[0], "verbs": verbs, "id": 3}, {"words": WORDS[1]}))
    assert len(parse(result)) == 1
    assert "; ignored keys: verbs, id (known: words, tokens, predicate, predicates, tags," in result.stderr
    Path("out.jsonl").write_text(result.stdout)
    assert not read_roles(Path("out.jsonl")).ignored


def test_evaluation_finds_no_predicates(runs: dict[str, Path]) -> None:
    assert "predicted as for raw text" not in spen("evaluate", runs["srl"], write({"words": WORDS[0]}), status=2).stderr


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
def test_every_span_covers_its_characters(text: str) -> None:
    """Between words there is only white space, so each word has only one possible position."""
    raw = TokenisedText(text)
    sentences = raw.sentences()
    spans = [list(combinations(range(len(words) + 1), 2)) for words in sentences]
    tables = [[{"start": first, "end": end} for first, end in sentence_spans] for sentence_spans in spans]
    located = raw.located([{"words": w, "entities": t} for w, t in zip(sentences, tables, strict=True)], sentences)
    end = 0
    for words, answer, expected in zip(sentences, located, tables, strict=True):
        assert (
            answer["words"] == words and [{k: e[k] for k in ("start", "end")} for e in answer["entities"]] == expected
        )
        for table in (*answer["entities"], {"start": 0, "end": len(words), **answer}):
            span_words = words[table["start"] : table["end"]]
            covered = text[table["start_char"] : table["end_char"]]
            assert re.fullmatch(r"\s*".join(map(re.escape, span_words)), covered)
        assert not text[end : answer["start_char"]].strip()
        end = answer["end_char"]
    assert not text[end:].strip()


def test_every_part_of_an_answer_has_characters() -> None:
    raw = TokenisedText("So: Anna sent it. Yes! Bob saw her.")
    sentences = raw.sentences()
    argument = {"role": "ARG0", "start": 0, "end": 1, "score": 0.5}

    single = {"words": sentences[0], "predicate": {"index": 3, "word": "sent"}, "arguments": [argument], "sense": None}
    several = {"words": sentences[2], "predicates": [{"index": 1, "word": "saw", "arguments": [argument]}]}
    first, second = raw.located([single, several], FileExamples([1, 2], sentences, [0, 2]))
    assert first == {
        **single,
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
    for words, stdin in ((["--text", text], None), (["-"], text), (["notes.txt"], None)):
        predictions = parse(spen("predict", runs[run], *words, input=stdin))
        assert len(predictions) == (2 if run == "srl" else 3)
        for answer in predictions:
            covered = text[answer["start_char"] : answer["end_char"]]
            assert re.fullmatch(r"\s*".join(map(re.escape, answer["words"])), covered)
            if run == "srl":
                predicate = answer["predicate"]
                assert text[predicate["start_char"] : predicate["end_char"]] == predicate["word"]
            for span in answer.get("arguments", answer.get("entities")):
                covered = text[span["start_char"] : span["end_char"]]
                assert covered.split() and covered.split()[0].startswith(span["text"].split()[0])
    tokens = spen("predict", runs["ner"], write({"words": ["Anna", "left"]}))
    assert "_char" not in tokens.stdout and "line" not in json.loads(tokens.stdout)
    spen("predict", runs[run], "--text", text, "--format", "conll")


def test_labels_of_texts_have_no_characters() -> None:
    raw = TokenisedText("a match\nthe band\n")
    answer = {"text": "a match", "labels": []}
    assert raw.located([answer, answer], [1, 2]) == [answer, answer]
