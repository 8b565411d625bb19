"""`spen rules`: its tables against hand-counted numbers, its hints, hits in context, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spen_plugins.settings.fields import fields
from tests.loaded import parsed, spen, written

NAMES = """\
from spen_rules import lexicon, pattern, rule

lexicon("PER", ["Ann", "in", "Paris Hilton"])
lexicon("LOC", ["Paris"], weight=2.0)
pattern("LOC", "zz|z{3}")


@rule(against="PER")
def lower(words):
    return [(i, i + 1) for i, word in enumerate(words) if word.islower()]


@rule("PER", "LOC", weight=0.5)
def long_capitals(words):
    for i, word in enumerate(words):
        if word.istitle() and len(word) > 3:
            yield i, i + 1
"""
SENTENCES = (
    "Ann B-PER|met O|Bob B-PER|in O|Paris B-LOC|. O",
    "Paris B-PER|Hilton I-PER|left O|Paris B-LOC",
    "Ann B-ORG|works I-ORG",
    "Ana B-PER|de I-PER",
)
TEXTS = """\
from spen_rules import lexicon, rule

lexicon("joy", ["good"])
lexicon("anger", ["bad"])


@rule(against="joy", weight=2)
def negated(text):
    return "not " in text
"""
COMMENTS = "good film\tjoy\nbad film\tanger\nnot good\tanger\ngood and bad\tjoy,anger\nfilm\t\n"


@pytest.fixture
def rules(tmp_path: Path) -> str:
    return written(tmp_path / "mine.py", NAMES)


@pytest.fixture
def names(tmp_path: Path) -> str:
    return write_sentences(tmp_path / "names.conll", SENTENCES)


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str]:
    """A file of rules for texts, and a file of texts."""
    return written(tmp_path / "moods.py", TEXTS), written(tmp_path / "texts.tsv", COMMENTS)


def write_sentences(path: Path, sentences: tuple[str, ...]) -> str:
    return written(path, "\n\n".join(s.replace("|", "\n").replace(" ", "\t") for s in sentences) + "\n")


def read_rows(output: str) -> list[list[str]]:
    """Returns the cells of a table's rows, without its head."""
    lines = output.replace(r"\|", "/").splitlines()
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_without_a_file_it_lists_the_rules(rules):
    assert spen("rules", rules).stdout.splitlines() == [
        "| line | rule | votes | weight |",
        "|---:|---|---|---:|",
        "| 3 | lexicon PER | PER | 1 |",
        "| 4 | lexicon LOC | LOC | 2 |",
        r"| 5 | pattern zz\|z{3} | LOC | 1 |",
        "| 8 | lower | not PER | 1 |",
        "| 13 | long_capitals | PER, LOC | 0.5 |",
    ]


def test_the_table_of_names_has_the_numbers_counted_by_hand(rules, names):
    output = spen("rules", rules, names, "--kind", "names").stdout
    assert "names.conll: 4 sentences, 14 words; all with gold." in output
    heads = "coverage % | hits | overlap % | conflict % | in gold % | exact %"
    assert f"| line | rule | votes | weight | {heads} |" in output
    rows = read_rows(output)
    assert [row[4:] for row in rows] == [
        ["35.71", "4", "60.0", "40.0", "60.0", "50.0"],
        ["21.43", "3", "100.0", "33.3", "66.7", "66.7"],
        ["0.00", "0", "–", "–", "–", "–"],
        ["35.71", "5", "20.0", "20.0", "80.0", "–"],
        ["28.57", "4", "100.0", "0.0", "100.0", "50.0"],
        ["78.57", "16", "45.5", "18.2", "–", "P 50.0, R 42.9, F1 46.2"],
    ]
    assert rows[-1][:4] == ["", "all 5, weighted vote", "", ""]
    assert [line for line in output.splitlines() if line.startswith("- ")] == [
        r"- Rules that never fire: pattern zz\|z{3} (line 5)."
    ]


@pytest.mark.parametrize("scheme", ["io", "iob1", "bioes"])
def test_names_of_other_schemes_have_the_same_shares(rules, tmp_path, scheme):
    tags = {"io": ("PER", "PER", "O", "LOC"), "iob1": ("I-PER", "I-PER", "O", "I-LOC")}
    words = ("Paris", "Hilton", "left", "Paris")
    pairs = zip(words, tags.get(scheme, ("B-PER", "E-PER", "O", "S-LOC")), strict=True)
    file = write_sentences(tmp_path / "some.conll", ("|".join(map(" ".join, pairs)),))
    rows = read_rows(spen("rules", rules, file, "--kind", "names", "--scheme", scheme).stdout)
    assert [row[-2:] for row in rows[:2]] == [["100.0", "100.0"], ["50.0", "50.0"]]
    assert rows[-1][-1] == "P 33.3, R 50.0, F1 40.0"  # by hand: LOC, Hilton separately, LOC


def test_the_table_of_tags_has_the_numbers_counted_by_hand(tmp_path):
    lines = [
        "from spen_rules import lexicon, otherwise, pattern",
        'lexicon("DT", ["the", "a"])',
        'lexicon("NN", ["dog", "barks"])',
        'pattern("VB", "barks|run", weight=2)',
        'otherwise("NN", weight=0.5)',
    ]
    rules = written(tmp_path / "mine.py", "\n".join(lines) + "\n")
    file = write_sentences(tmp_path / "tags.conll", ("the DT|dog NN|barks VB", "a DT|run NN|xyz NN"))
    output = spen("rules", rules, file, "--kind", "tags").stdout
    assert [row[4:] for row in read_rows(output)] == [
        ["33.33", "2", "0.0", "0.0", "100.0"],
        ["33.33", "2", "50.0", "50.0", "50.0"],
        ["33.33", "2", "50.0", "50.0", "50.0"],
        ["83.33", "6", "20.0", "20.0", "83.3"],
    ]
    assert "Where no rule votes for anything: NN, weight 0.5." in output


def test_the_table_of_texts_has_the_numbers_counted_by_hand(texts):
    output = spen("rules", *texts, "--kind", "texts", "separator=,").stdout
    assert "texts.tsv: 5 texts; all with gold." in output
    assert [row[4:] for row in read_rows(output)] == [
        ["60.00", "3", "66.7", "33.3", "66.7"],
        ["40.00", "2", "50.0", "0.0", "100.0"],
        ["20.00", "1", "100.0", "100.0", "100.0"],
        ["80.00", "6", "50.0", "25.0", "example F1 60.0"],
    ]


def test_rules_that_fire_everywhere_or_contradict_gold_are_pointed_out(tmp_path, names):
    source = """\
from spen_rules import lexicon, rule

@rule("ORG")
def everywhere(words):
    return [(i, i + 1) for i in range(len(words))]

lexicon("LOC", ["met", "in", "left", "works"])
lexicon("PER", ["met", "in", "left", "works", "de"])
rule(against="PER")(lambda words: [(0, 1)])
"""
    output = spen("rules", written(tmp_path / "mine.py", source), names, "--kind", "names").stdout
    assert [line for line in output.splitlines() if line.startswith("- ")] == [
        "- Rules that fire on nearly every word: everywhere (line 3).",
        "- Rules that contradict gold, less than half right: everywhere (line 3, 14.3 %); "
        "lexicon PER (line 8, 20.0 %).",  # line 7 has four hits; line 9 votes against
    ]


def test_hits_are_shown_in_context_beside_gold_that_disagrees(rules, names):
    output = spen("rules", rules, names, "--kind", "names", "--examples", "4").stdout
    lines = output[output.index("Line 3") :].splitlines()
    assert lines[:13] == [
        "Line 3, `lexicon PER`: PER",
        "",
        "    [Ann] met Bob in Paris .",
        "    Ann met Bob [in] Paris .    gold: O",
        "    [Paris Hilton] left Paris",
        "    [Ann] works    gold: ORG Ann works",
        "",
        "Line 4, `lexicon LOC`: LOC",
        "",
        "    Ann met Bob in [Paris] .",
        "    [Paris] Hilton left Paris    gold: PER Paris Hilton",
        "    Paris Hilton left [Paris]",
        "",
    ]
    assert "Line 5" not in output
    assert "    Ana [de]    gold: PER Ana de" in lines  # a hit of a rule against PER


def test_a_few_hits_are_spread_and_long_sentences_cut(tmp_path):
    rules = written(tmp_path / "mine.py", 'from spen_rules import pattern\npattern("X", r"x\\d+")\n')
    words = [f"x{i}" if i % 20 == 0 else f"w{i}" for i in range(41)]
    file = write_sentences(tmp_path / "tags.conll", ("|".join(f"{word} {word[0].upper()}" for word in words),))
    output = spen("rules", rules, file, "--kind", "tags", "--examples", "2").stdout
    assert [line.strip() for line in output.splitlines() if "[" in line] == [
        "[x0] w1 w2 w3 w4 w5 w6 w7 w8 …",
        "… w32 w33 w34 w35 w36 w37 w38 w39 [x40]",
    ]
    middle = spen("rules", rules, file, "--kind", "tags", "--examples", "3").stdout
    assert "    … w12 w13 w14 w15 w16 w17 w18 w19 [x20] w21 w22 w23 w24 w25 w26 w27 w28 …\n" in middle


def test_hits_in_texts_are_shown_beside_labels(texts):
    output = spen("rules", *texts, "--kind", "texts", "separator=,", "--examples", "9").stdout
    assert "    good film\n    not good    gold: anger\n    good and bad\n" in output
    assert "`negated`: not joy\n\n    not good\n" in output


def test_without_gold_there_is_no_accuracy(rules, texts, tmp_path):
    file = write_sentences(
        tmp_path / "words.conll", tuple("|".join(w.split()[0] for w in s.split("|")) for s in SENTENCES)
    )
    output = spen("rules", rules, file, "--kind", "names", "--examples", "1").stdout
    assert "4 sentences, 14 words; none with gold." in output
    assert [row[4:] for row in read_rows(output)][:2] == [
        ["35.71", "4", "60.0", "40.0", "–", "–"],
        ["21.43", "3", "100.0", "33.3", "–", "–"],
    ]
    assert "gold:" not in output
    source = written(tmp_path / "texts.txt", "good film\nnot good\n")
    assert read_rows(spen("rules", texts[0], source, "--kind", "texts").stdout)[0][4:] == [
        "100.00", "2", "50.0", "50.0", "–",
    ]  # fmt: skip


def test_the_help_says_which_examples_are_the_labelled_ones():
    """They are the first of FILE; a run that divides FILE takes the first of its training part."""
    help_text = " ".join(re.sub(r"[│|]", " ", spen("rules", "--help").output).split())
    assert "a run that divides FILE takes the first of its training part" in help_text
    [labelled] = [field for field in fields(parsed("task", "tagging")[0].Config) if field.name == "labelled"]
    assert "training part" in labelled.doc and "`spen rules`" in labelled.doc


def test_examples_without_gold_count_only_for_coverage(rules, names, texts, tmp_path):
    """Such examples come after the labelled ones, or from files where only some have gold."""
    output = spen("rules", rules, names, "labelled=1", "--kind", "names", "--examples", "4").stdout
    assert "4 sentences, 14 words; 1 with gold." in output
    assert read_rows(output)[0][4:] == ["35.71", "4", "60.0", "40.0", "50.0", "50.0"]
    assert "    [Ann] works\n" in output
    items = [{"words": ["Ann", "met"], "tags": ["B-PER", "O"]}, {"words": ["Ann"]}]
    file = written(tmp_path / "some.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    result = spen("rules", rules, file, "--kind", "names")
    assert "2 sentences, 3 words; 1 with gold." in result.stdout
    assert read_rows(result.stdout)[0][4:] == ["66.67", "2", "0.0", "0.0", "100.0", "100.0"]
    items = [{"text": "good", "labels": ["joy", "awe"]}, {"text": "so good"}, {"text": "not good", "labels": ["awe"]}]
    file = written(tmp_path / "texts.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    result = spen("rules", texts[0], file, "--kind", "texts")
    assert "3 texts; 2 with gold." in result.stdout
    assert read_rows(result.stdout)[0][4:] == ["100.00", "3", "33.3", "33.3", "50.0"]
    assert "warning: rules for anger are ignored" in result.stderr


def test_labels_may_be_listed_in_a_file(texts, tmp_path):
    listing = written(tmp_path / "moods.txt", "anger\njoy\nawe\n")
    file = written(tmp_path / "numbers.tsv", "good film\t1\nbad film\t0\nnot good\t0\ngood and bad\t0,1\nfilm\t\n")
    output = spen("rules", texts[0], file, f"labels={listing}", "--kind", "texts").stdout
    assert [row[-1] for row in read_rows(output)] == ["66.7", "100.0", "100.0", "example F1 60.0"]
    source = written(tmp_path / "plain.txt", "good film\nnot good\n")
    assert "2 texts; none with gold." in spen("rules", texts[0], source, f"labels={listing}", "--kind", "texts").stdout


def test_settings_name_columns_and_the_encoding(rules, texts, tmp_path):
    rows = "\n".join("\t".join((word, tag, "x")) for word, tag in (("Ann", "B-PER"), ("Zoé", "B-PER")))
    file = tmp_path / "three.conll"
    file.write_text(rows + "\n", encoding="cp1252")
    output = spen("rules", rules, file, "--kind", "names", "tags=1", "file_encoding=cp1252").stdout
    assert read_rows(output)[0][4:] == ["50.00", "1", "0.0", "0.0", "100.0", "100.0"]
    table = written(tmp_path / "texts.csv", "id,tags,comment\n1,joy,good film\n2,anger,bad film\n")
    output = spen("rules", texts[0], table, "text=comment", "labels=tags", "--kind", "texts").stdout
    assert read_rows(output)[0][4:] == ["50.00", "1", "0.0", "0.0", "100.0"]


def test_rules_for_unknown_names_are_left_out_with_a_warning(tmp_path, names):
    rules = written(
        tmp_path / "mine.py", 'from spen_rules import lexicon\nlexicon("PER", ["Ann"])\nlexicon("PET", ["Ann"])\n'
    )
    result = spen("rules", rules, names, "--kind", "names")
    assert "warning: rules for PET are ignored" in result.stderr
    assert [row[4:] for row in read_rows(result.stdout)] == [
        ["14.29", "2", "0.0", "0.0", "50.0", "50.0"],
        ["14.29", "2", "–", "–", "–", "–"],
        ["14.29", "4", "0.0", "0.0", "–", "P 50.0, R 14.3, F1 22.2"],
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.py"], "no.py: found no such file"),
        (
            ["mine.py", "names.conll"],
            "found names.conll without --kind; expected --kind names, tags or texts (rules for",
        ),
        (["mine.py", "no.conll", "--kind", "names"], "no.conll: found no such file"),
        (["mine.py", "texts.tsv", "--kind", "texts"], "rules only for LOC, PER; "),
        (["broken.py", "names.conll", "--kind", "names"], "broken.py, line 3: rule 'f': AttributeError: 'tuple'"),
        (["mine.py", "pos.conll", "--kind", "names"], "found the tag 'DT'; expected O, B-X, I-X under bio"),
        (["mine.py", "pos.conll", "--kind", "tags"], "rules only for LOC, PER; "),
        (
            ["mine.py", "pos.conll", "--kind", "tags", "--scheme", "io"],
            "--scheme requires --kind names; found --kind tags",
        ),
        (["mine.py", "names.conll", "--kind", "names", "tag=1"], "Did you mean 'tags'?"),
        (["mine.py", "names.conll", "oops", "--kind", "names"], "found 'oops'; expected NAME=VALUE"),
        (["moods.py", "names.conll", "--kind", "names"], "rules only for anger, joy; "),
        (["empty.py", "names.conll", "--kind", "names"], "found no rule"),
        (["moods.py", "lists.jsonl", "--kind", "texts"], "lists.jsonl:1: found {'txt': 1} without a text under 'text'"),
        (["moods.py", "data:no.tsv", "labels=mine.py", "--kind", "texts"], "no.tsv"),
        (["mine.py", "names.conll", "--kind", "words"], "'words' is not one of"),
    ],
)
def test_errors_are_one_message(tmp_path, monkeypatch, rules, names, texts, words, message):
    written(tmp_path / "empty.py", "")
    written(tmp_path / "broken.py", NAMES.splitlines()[0] + '\n\n@rule("PER")\ndef f(words):\n    words.title()\n')
    written(tmp_path / "lists.jsonl", '{"txt": 1}\n')
    write_sentences(tmp_path / "pos.conll", ("the DT|dog NN",))
    monkeypatch.chdir(tmp_path)
    result = spen("rules", *words, status=2)
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not result.stdout
