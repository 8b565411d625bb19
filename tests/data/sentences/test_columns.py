"""Column files, CoNLL-U and tag schemes: reading them, and the errors of broken ones."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from spen_plugins.data.schemes import BrokenTags, Span, convert, spans, write_tags
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.data.sentences.conllu import fill_conllu, read_conllu, write_conllu
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import written

# Columns


def test_words_and_tags_by_tabs(tmp_path):
    first, second = read_columns(written(tmp_path / "x", "\nNew York\tB-LOC\n#1\tO\n\n \n\nso\tO\n"))
    assert first.words == ("New York", "#1") and first.tags == ("B-LOC", "O") and first.line == 2
    assert second.words == ("so",) and second.line == 7 and second.line_of(0) == 7


def test_an_empty_word_is_a_word_but_an_empty_line_is_not(tmp_path):
    """As in the Broad Twitter Corpus; WNUT-17 ends sentences with a lone tab."""
    first, second = read_columns(written(tmp_path / "x", "a\tO\n\tO\n \tB-X\n\xa0\tO\n\t\nb\tO\n"))
    assert first.words == ("a", "", " ", "\xa0") and first.tags == ("O", "O", "B-X", "O")
    assert second.words == ("b",) and second.line == 6


def test_words_of_headers_are_words(tmp_path):
    (sentence,) = read_columns(written(tmp_path / "x", "Word NN\nform NN\n's POS\n"))
    assert sentence.words == ("Word", "form", "'s")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("the O\nLee B-X\n", {}),
        ("the O O\nLee B-NP B-X\n", {}),
        ("the O D\nLee B-X N\n", {}),
        ("the D O\nLee N B-X\n", {"columns": {"pos": 1}}),
    ],
)
def test_span_tags_may_be_learned_as_plain_tags_if_no_other_column_has_tags(tmp_path, text, options):
    path = written(tmp_path / "x", text)
    assert read_columns(path, **options, plain=True) == read_columns(path, **options)


def test_bare_carriage_returns_end_lines(tmp_path):
    (tmp_path / "old").write_bytes(b"a\tO\rb\tO\r\rc\tO\r")
    assert read_columns(tmp_path / "old") == read_columns(written(tmp_path / "x", "a\tO\nb\tO\n\nc\tO\n"))


def test_columns_by_blanks_and_documents(tmp_path):
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects  VBZ B-VP O\n-DOCSTART- -X- O O\nPeter NNP B-NP B-PER\n"
    first, second = read_columns(written(tmp_path / "x", text), columns={"pos": 1, "chunk": -2})
    assert first.words == ("EU", "rejects") and first.tags == ("B-ORG", "O") and first.line == 3
    assert first.columns == {"pos": ("NNP", "VBZ"), "chunk": ("B-NP", "B-VP")}
    assert second.words == ("Peter",) and second.line == 6
    (first, _) = read_columns(written(tmp_path / "x", text), words=1, tags=0)
    assert first.words == ("NNP", "VBZ") and first.tags == ("EU", "rejects")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# a comment\n#1\tO\nb\tO\n", ["#1 b"]),
        ("# id = 3\n#tag O\n# O\n\n#so O\n", ["#tag #", "#so"]),  # separated by blanks, # may be a word
        ("# text = O\n# newdoc as it is\na O\n", ["a"]),
        ("a\tO\n#b\tO\n", ["a #b"]),
        ("# doc 7\tlang=en\na _ _ O\n\n# doc 8\tlang=en\n# _ _ O\n", ["a", "#"]),  # a tab in comments alone
        ("#\thttp://x.org\t[2020]\n1\ta\tO\tO\n\n#\tb\tO\tO\n", ["1", "#"]),  # tabs in both
        ("# doc 7\tlang=en\na O\nb O\n", ["a b"]),  # as many cells as rows, by another separator
    ],
)
def test_comments(tmp_path, text, words):
    assert [" ".join(s.words) for s in read_columns(written(tmp_path / "x", text))] == words


def test_without_gold_the_tags_may_be_absent(tmp_path):
    (sentence,) = read_columns(written(tmp_path / "x", "a\nb\n"), gold=False)
    assert sentence.words == ("a", "b") and sentence.tags is None
    (sentence,) = read_columns(written(tmp_path / "x", "a\tNN\nb\tVB\n"), columns={"pos": 1}, gold=False)
    assert sentence.columns == {"pos": ("NN", "VB")} and sentence.tags is None
    (sentence,) = read_columns(written(tmp_path / "x", "a\t\nb\t\n"), gold=False)
    assert sentence.tags is None
    (sentence,) = read_columns(written(tmp_path / "x", "a\tO\nb\tO\n"), gold=False)
    assert sentence.tags == ("O", "O")


@pytest.mark.parametrize(
    ("text", "options", "line", "message"),
    [
        ("a\tO\n\nb\tO\nc\td\tO\n", {}, 4, r"found 3 columns; expected 2"),
        ("a\tO\nb\tO\nc", {}, 3, "found 1 column; expected 2"),
        ("# a = b\n\n-DOCSTART- O\n", {}, None, r"comments or blank lines only"),
        ("a\n", {}, 1, r"1 column, so column -1 for tags is also the column of words; expected .*task\.tags"),
        ("a\tO\n", {"columns": {"pos": 1}}, 1, r"column -1 for tags is also the column of pos"),
        (
            "a\tO\n",
            {"columns": {"pos": 2}},
            1,
            r"so no column 2 for pos; expected task\.columns\.pos from -2 to 1",
        ),
        ("a\tO\n", {"tags": -3}, 1, r"no column -3 for tags; expected task\.tags from -2 to 1"),
        ("a\tO\nb\t\n", {}, 2, r"an empty tag; expected a tag for every token in column 1"),
        ("a\tO\nb\t\n", {"gold": False}, 2, r"an empty tag"),
        ("word pos\nthe D\n", {}, 1, r"the header 'word pos'; expected a token; remove that line"),
        ("Sentence #\tWord\tPOS\tTag\n\tthe\tD\tO\n", {"words": 1, "tags": 2}, 1, r"the header 'Sentence #"),
        ("\nToken\tNER\nthe\t\n", {"gold": False}, 2, r"the header"),
        ("the D O\nLee N B-X\n", {"plain": True}, 1, r"tags of spans in column 2 \(B-X, O\); .*task\.tags=1 \(D, N\)"),
    ],
)
def test_broken_columns(tmp_path, text, options, line, message):
    path = written(tmp_path / "x", text)
    with pytest.raises(DataError, match=message) as error:
        read_columns(path, **options)
    assert error.value.line == line and error.value.path == path


# CoNLL-U

CONLLU = """# sent_id = 1
# text = I don't = sleep
1\tI\tI\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\tPolarity=Neg\t2\tadvmod\t_\t_
3.1\tsleep\tsleep\tVERB\tVB\t_\t_\t_\t_\t_

# newdoc

# sent_id = 2
1\t_\t_\tPUNCT\t_\t_\t0\troot\t_\t_
"""


def test_conllu(tmp_path):
    path = written(tmp_path / "x", CONLLU)
    first, second = read_conllu(path, columns={"ptb": "xpos", "feats": "feats"})
    assert first.words == ("I", "do", "n't") and first.tags == ("PRON", "AUX", "PART")
    assert first.columns == {"ptb": ("PRP", "VBP", "RB"), "feats": ("_", "_", "Polarity=Neg")}
    assert [first.line_of(i) for i in range(3)] == [3, 5, 6]
    assert second.words == ("_",) and second.line == second.line_of(0) == 12
    assert read_conllu(path, words="lemma", tags="xpos")[0].tags == ("PRP", "VBP", "RB")
    assert read_conllu(path, tags="upos+xpos")[0].tags == tuple(
        "+".join(pair) for pair in zip(first.tags, ("PRP", "VBP", "RB"), strict=True)
    )
    with pytest.raises(
        ConfigError, match=r"task\.tags: found 'xops'; expected a field of CoNLL-U: .* Did you mean 'xpos'"
    ):
        read_conllu(path, tags="upos+xops")


@pytest.mark.parametrize("tags", ["xpos", "upos+xpos", "misc"])
def test_a_conllu_file_keeps_all_but_its_tags(tmp_path, tags):
    path = Path(written(tmp_path / "x", CONLLU))
    gold = read_conllu(path, tags=tags, gold=False)
    assert fill_conllu(path, read_conllu(path, tags="upos+xpos"), "upos+xpos") == CONLLU
    other = [replace(s, tags=("A+B",) * len(s.words)) for s in gold]
    filled = fill_conllu(path, other, tags)
    assert [s.tags for s in read_conllu(written(tmp_path / "y", filled), tags=tags)] == [s.tags for s in other]
    others = [[line for line in text.splitlines() if not re.match(r"\d+\t", line)] for text in (filled, CONLLU)]
    assert others[0] == others[1]
    text = "# global.columns = ID UPOS FORM\n1\tX\tso\n"
    path.write_text(text)
    one = read_conllu(path)
    assert fill_conllu(path, [replace(one[0], tags=("ADV",))]) == text.replace("X", "ADV")
    assert fill_conllu(path, one, "xpos") == write_conllu(one, "xpos")


def test_conllu_without_gold(tmp_path):
    path = written(tmp_path / "x", "1\tso\t_\t_\t_\t_\t_\t_\t_\t_\n")
    assert read_conllu(path, gold=False)[0].tags is None
    with pytest.raises(DataError, match=r"'_' as 'upos' of every word; expected .*task\.tags"):
        read_conllu(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (CONLLU.replace("3\tn't", "x\tn't"), 6, r"found \"x\\tn't.*; expected the 10 fields .* a number"),
        ("# a\n1\tso\n", 2, r"2 fields without 'upos'"),
        ("# a\n1 so ADV\n", 2, r"found '1 so ADV'; expected the 10 fields of CoNLL-U, separated by tabs"),
        ("_\tso\t_\tADV\t_\t_\t_\t_\t_\t_\n", 1, r"found '_\\tso.*a number \(1, 2, … or a range 1-2\)"),
        ("# a\n\n", None, r"comments or blank lines only"),
    ],
)
def test_broken_conllu(tmp_path, text, line, message):
    with pytest.raises(DataError, match=message) as error:
        read_conllu(written(tmp_path / "x", text))
    assert error.value.line == line


def test_unknown_fields_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"task\.columns\.pos: found 'upso'.*Did you mean 'upos'"):
        read_conllu(written(tmp_path / "x", CONLLU), columns={"pos": "upso"})


# Schemes

SAME = [
    ("O B-X I-X I-X B-X", "O I-X I-X I-X B-X", "O B-X I-X E-X S-X"),
    ("B-X B-Y I-Y", "I-X I-Y I-Y", "S-X B-Y E-Y"),
    ("B-X O B-X", "I-X O I-X", "S-X O S-X"),
    ("O", "O", "O"),
]


@pytest.mark.parametrize("row", SAME)
@pytest.mark.parametrize(("source", "target"), list(product(range(3), repeat=2)))
def test_conversion_by_hand(row, source, target):
    names = ("bio", "iob1", "bioes")
    assert convert(row[source].split(), names[source], names[target]) == row[target].split()


def test_biolu_is_read_as_bioes():
    assert convert(["B-X", "I-X", "L-X", "U-Y"], "bioes", "bioes") == ["B-X", "I-X", "E-X", "S-Y"]


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_spans_survive_every_scheme(scheme):
    """Every way to place spans of two types on four words."""
    for tags in product(["O", "B-X", "I-X", "B-Y", "I-Y"], repeat=4):
        try:
            expected = spans(tags, "bio")
        except BrokenTags:
            continue
        assert spans(write_tags(expected, 4, scheme), scheme) == expected


def test_spans_by_hand():
    assert spans(["B-PER", "I-PER", "O", "B-A-M"], "bio") == [Span("PER", 0, 2), Span("A-M", 3, 4)]


def test_valid_sequences_of_bioes_are_counted():
    """Sequences of length n over O, B, I, E, S of one type: a(n) = 2a(n−1) + Σ_{k≥2} a(n−k); 2, 5, 13, 34, ..."""
    for length, count in ((1, 2), (2, 5), (3, 13), (4, 34)):
        valid = 0
        for tags in product(["O", "B-X", "I-X", "E-X", "S-X"], repeat=length):
            try:
                spans(tags, "bioes")
                valid += 1
            except BrokenTags:
                pass
        assert valid == count


@pytest.mark.parametrize(
    ("tags", "scheme", "index", "message"),
    [
        ("O I-X", "bio", 1, r"I-X after O; expected B-X before it \(task\.scheme=iob1 reads"),
        ("I-X", "bio", 0, r"I-X as the first tag; expected B-X"),
        ("B-X I-Y", "bio", 1, r"I-Y after B-X"),
        ("O S-X", "bio", 1, r"the tag 'S-X'; expected O, B-X, I-X under bio \(.*task\.scheme=bioes reads"),
        (
            "O NN",
            "iob1",
            1,
            r"the tag 'NN'; .*a tag is B-TYPE.*task\.scheme=io types without prefixes; the config `tags`",
        ),
        ("O B_NP", "bio", 1, r"the tag 'B_NP'; expected O, B-X, I-X under bio \(a tag is B-TYPE, such as B-PER"),
        ("O NP-I", "bio", 1, r"the tag 'NP-I'; .*a tag is B-TYPE, such as B-PER"),
        ("b-NP O", "bioes", 0, r"the tag 'b-NP'; expected O, B-X, I-X, E-X, S-X under bioes \(a tag is B-TYPE"),
        ("O B", "bio", 1, r"the tag 'B'; .*such as B-PER; tags= and task\.words= choose other columns"),
        ("O 3", "bio", 1, r"the tag '3'; .*a tag is B-TYPE, such as B-PER"),
        ("O B-NP", "io", 1, r"O or a type under io \(task\.scheme=bio"),
        ("B-", "bio", 0, r"the tag 'B-'"),
        ("B-X O", "bioes", 1, r"O after B-X; expected I-X or E-X there \(S-X is a span of one word"),
        ("B-X I-X B-X", "bioes", 2, r"B-X after I-X; expected I-X or E-X"),
        ("B-X S-X", "bioes", 1, r"S-X after B-X"),
        ("O B-X", "bioes", 1, r"the sentence's end after B-X"),
        ("O E-X", "bioes", 1, r"E-X after O; expected B-X before it"),
        ("S-X I-X", "bioes", 1, r"I-X after S-X"),
        ("B-X E-Y", "bioes", 1, r"E-Y after B-X"),
    ],
)
def test_broken_tags(tags, scheme, index, message):
    with pytest.raises(BrokenTags, match=message) as error:
        spans(tags.split(), scheme)
    assert error.value.index == index


def test_types_without_prefixes_are_spans_that_touch_only_in_different_types():
    tags = ["X", "X", "Y", "O", "X"]
    assert spans(tags, "io") == [Span("X", 0, 2), Span("Y", 2, 3), Span("X", 4, 5)]
    assert write_tags(spans(tags, "io"), 5, "io") == tags
    assert convert(["B-X", "B-X", "O"], "bio", "io") == ["X", "X", "O"]
