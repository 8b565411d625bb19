"""Files of rules: their rules, phrases and patterns, modules in the same folder, and errors."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_rules import lexicon, otherwise, pattern, rule
from spen_rules.files import Rule, RuleFile, load_rules
from spen_rules.finding import PhraseFinder
from spen_rules.votes import VotingRules
from tests.loaded import written

IMPORTS = "from spen_rules import lexicon, otherwise, pattern, rule\n"


def load(folder: Path, text: str) -> RuleFile:
    folder.mkdir(exist_ok=True)
    return load_rules(Path(written(folder / "mine.py", IMPORTS + text)))


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_rules_are_collected_in_the_files_order(tmp_path):
    written(tmp_path / "cities.txt", "Oslo\n\n  New   York \n")
    text = """
@rule("PER", "LOC", weight=2)
def names(words):
    return [(0, 1)]

lexicon("LOC", "cities.txt", weight=0.5)
pattern("ORG", r"[A-Z]+ Ltd")
@rule(against=["PER", "ORG"])
def numbers(words): ...
rule(against="LOC")(names)
for name in ("PER", "ORG"):
    lexicon(name, [name.title()])
otherwise("O", weight=0.2)
"""
    file = load(tmp_path, text)
    assert load(tmp_path / "none", 'lexicon("A", ["a"])\notherwise("A", weight=0)').default_vote == ("A", 0)
    assert [(r.title, r.names, r.is_against, r.weight, r.line) for r in file.rules] == [
        ("names", ("PER", "LOC"), False, 2.0, 3),
        ("lexicon cities.txt", ("LOC",), False, 0.5, 7),
        ("pattern [A-Z]+ Ltd", ("ORG",), False, 1.0, 8),
        ("numbers", ("PER", "ORG"), True, 1.0, 9),
        ("names", ("LOC",), True, 1.0, 11),
        ("lexicon PER", ("PER",), False, 1.0, 13),
        ("lexicon ORG", ("ORG",), False, 1.0, 13),
    ]
    assert file.default_vote == ("O", 0.2)
    assert file.rules[0].find(("a",)) == [(0, 1)]
    assert file.rules[1].find(["in", "New", "York", "and", "Oslo", "or", "oslo"]) == [(1, 3), (4, 5)]
    assert file.checksums == {
        str(tmp_path / "mine.py"): hash_file(tmp_path / "mine.py"),
        str(tmp_path / "cities.txt"): hash_file(tmp_path / "cities.txt"),
    }


def test_outside_of_loading_functions_are_unchanged_and_nothing_is_collected(tmp_path):
    def find_nothing(words): ...

    with pytest.raises(sp.ConfigError):
        load(tmp_path / "b", "1 / 0")
    first = load(tmp_path / "a", 'lexicon("A", ["a"])')
    assert rule("A")(find_nothing) is find_nothing
    lexicon("A", ["b"]), pattern("A", "b"), otherwise("A", weight=1)
    assert (
        len(first.rules) == 1
        and first.default_vote is None
        and load(tmp_path / "a", 'lexicon("A", ["a"])').default_vote is None
    )


@pytest.mark.parametrize(
    ("phrases", "ignore_case", "words", "spans"),
    [
        (["New York", "New York City", "York"], False, "New York City near New York or York", [(0, 3), (4, 6), (7, 8)]),
        (["a b", "a b c d"], False, "a b c a b c d", [(0, 2), (3, 7)]),
        (["a"], False, "a A a", [(0, 1), (2, 3)]),
        (["Straße 1"], True, "in STRASSE 1", [(1, 3)]),
        (["U.S. Army", "don't"], False, "U.S. Army don't", [(0, 2), (2, 3)]),
        (["a  b", ""], False, "a b", [(0, 2)]),
        (["a b"], False, "a", []),
    ],
)
def test_phrases_in_words(phrases, ignore_case, words, spans):
    assert PhraseFinder(phrases, ignore_case)(words.split()) == spans


@pytest.mark.parametrize(
    ("phrase", "text", "holds"),
    [
        ("U.S. Army", "The U.S. Army won.", True),
        ("wow!", "wow! Great", True),
        ("wow!", "wow", False),
        ("<3", "I <3 you", True),
        ("cat", "cats", False),
        ("cat", "a cat, a dog", True),
        ("don't", "I don't know", True),
        ("don", "I don't know", False),
        ("good  job", "good\njob", True),
        ("Cat", "cat", False),
        ("cat", "", False),
    ],
)
def test_phrases_in_texts_are_whole_words(phrase, text, holds):
    assert PhraseFinder([phrase], False)(text) is holds
    assert PhraseFinder([phrase.upper()], True)(text.lower()) is (holds or phrase == "Cat")


@pytest.mark.parametrize(
    ("regex", "words", "spans"),
    [
        (r"[A-Z]\w+ College", "Nairobi College and Eton College", [(0, 2), (3, 5)]),
        (r"York", "New Yorker York", [(2, 3)]),
        (r"New York", "Anew York", []),
        (r"ew York", "New York", []),
        (r"\d+ ", "10 men", []),
        (r"\d+", "10 a1 b", [(0, 1)]),
        (r"x*", "a b", []),
        (r"(?<=in )[A-Z]\w+(?= ,)", "in Oslo , in Rome .", [(1, 2)]),
        (r".+", "a b c", [(0, 3)]),
    ],
)
def test_patterns_that_cut_a_word_are_dropped(tmp_path, regex, words, spans):
    assert load(tmp_path, f"pattern('A', {regex!r})").rules[0].find(words.split()) == spans


def test_patterns_in_texts_and_their_flags(tmp_path):
    file = load(tmp_path, 'import re\npattern("A", "ha{2}")\npattern("A", "ha{2}", ignore_case=True)')
    matches = [[r.find(text) for r in file.rules] for text in ("ahaab", "HAA", "ha")]
    assert matches == [[True, True], [False, True], [False, False]]


def test_modules_beside_two_files_do_not_mix(tmp_path):
    text = "import shared_lists\nfrom shared_lists import NAMES\nlexicon('A', NAMES)\nrule('A')(shared_lists.first)"
    files = []
    path, modules = [*sys.path], {*sys.modules}
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        module = f"NAMES = [{name!r}]\ndef first(words):\n    return [(0, len(NAMES[0]))]\n"
        written(tmp_path / name / "shared_lists.py", module)
        files.append(load(tmp_path / name, text))
    assert sys.path == path and {*sys.modules} == modules
    for index, (name, file) in enumerate(zip(("one", "other"), files, strict=True)):
        assert file.rules[0].find(["one", "other"]) == [(index, index + 1)]
        assert file.rules[1].find(()) == [(0, len(name))]
        paths = [tmp_path / name / part for part in ("mine.py", "shared_lists.py")]
        assert file.checksums == {str(part): hash_file(part) for part in paths}
        assert file.rules[1].line == 5  # in the file of rules, not in the module


def test_a_file_that_fails_leaves_no_module_behind(tmp_path):
    path, modules = [*sys.path], {*sys.modules}
    written(tmp_path / "failing_lists.py", "x = 1\n")
    with pytest.raises(sp.ConfigError, match="line 3: NameError"):
        load(tmp_path, "import failing_lists\nlexicon('A', y)")
    assert sys.path == path and {*sys.modules} == modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nx = (", "line 3: SyntaxError"),
        ("\n1 / 0", "line 3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('a')\n\nf()", "line 3: KeyError: 'a'"),
        ("import no_such_module", "line 2: ModuleNotFoundError"),
        ("import broken_lists", r"line 2: SyntaxError: .*broken_lists\.py, line 4"),
        ("raise SystemExit('stop')", "line 2: SystemExit: stop"),
        ("x = 1", "found no rule"),
        ("\nlexicon('A', ['a'], weight=0)", "line 3: found weight 0; expected a number above 0"),
        ("pattern('A', 'a', weight=float('nan'))", "line 2: found weight nan"),
        ("@rule('A', weight='2')\ndef f(words): ...", "line 2: found weight '2'"),
        ("\npattern('A', '(')", r"line 3: pattern '\('"),
        ("lexicon('A', [])", "line 2: .*no phrase"),
        ("\nrule()(print)", "line 3: expected labels or types"),
        ("@rule\ndef f(words): ...", "line 2: expected labels or types"),
        ("@rule('A', against='B')\ndef f(words): ...", "line 2: expected labels or types"),
        ("@rule(against=[1])\ndef f(words): ...", "line 2: expected labels or types"),
        ("\notherwise('O', weight='high')", "line 3: found weight 'high'; expected 0 or a number above 0"),
        ("otherwise('O', weight=-1)", "line 2: found weight -1"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    written(tmp_path / "broken_lists.py", "\n\n\nx = (")
    with pytest.raises(sp.ConfigError, match=r"mine\.py(, |: )" + message):
        load(tmp_path, text)


def test_a_missing_or_empty_list_of_phrases_is_named(tmp_path):
    written(tmp_path / "empty.txt", "\n \n")
    for name in ("empty.txt", "nothing.txt"):
        with pytest.raises(sp.SpenError, match=name):
            load(tmp_path, f"lexicon('A', {name!r})")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("[(0, 0)]", r"found span \(0, 0\); expected 0 <= start < end <= 2"),
        ("[(0, 1), (1, 3)]", r"found span \(1, 3\)"),
        ("[(-1, 1)]", r"found span \(-1, 1\)"),
        ("[3]", "TypeError"),
        ("5", "TypeError"),
        ("True", "TypeError"),
        ("[('a', 'b')]", "ValueError"),
        ("words[7]", "IndexError"),
        ("words.noError", "AttributeError"),  # for a text
    ],
)
def test_a_rule_that_fails_is_named_with_its_line(tmp_path, result, message):
    rules = VotingRules(load(tmp_path, f"\n@rule('A')\ndef wrong(words):\n    return {result}"))
    reads_text = "Error" in result
    rules.bind(sp.LabelSet(["A", "B"]) if reads_text else sp.TagSequence(["A", "B"]))
    with pytest.raises(sp.ConfigError, match=rf"mine\.py, line 3: rule 'wrong': {message}.*on 'Ann Lee'"):
        rules.index(["Ann Lee"] if reads_text else ["Ann", "Lee"])


@pytest.mark.parametrize("result", [None, [], iter([(0, 1)]), {(0, 1)}, [(0, 1), (0, 1)]])
def test_rules_may_return_nothing_or_the_same_span_twice(result):
    rules = VotingRules(RuleFile(Path("mine.py"), [Rule("r", ("A",), False, 1.0, lambda words: result, 1)]))
    rules.bind(sp.TagSequence(["A", "B"]))
    length, hits = rules.index(["Ann", "Lee"])
    assert length == 2 and hits.tolist() == ([[0, 0, 1]] if result else [])
