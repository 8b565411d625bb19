"""Span SRL in columns: reading it, and the errors of bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spen_plugins.data.sentences import roles
from spen_plugins.data.sentences.srl import Layout, read_srl
from spen_plugins.errors import DataError
from spen_plugins.samples.srl import sample_corpus

GOOD = """# sent_id = one
0\tForces\tNNS\t*\t-\t-\t(ARG0*)\t(ARG1*
1\thave\tVBP\t*\t-\t-\t*\t*
2\tkilled\tVBD\t*\tkill\tkill.01\t(V*)\t*)
3\tand\tCC\t*\t-\t-\t*\t*
4\tfled\tVBD\t*\tflee\tflee.05\t*\t(V*)

# sent_id = two
0\tNothing\tNN\t*\t-\t-
"""
KILLED = ("B-ARG0", "O", "B-V", "O", "O")
FLED = ("B-ARG1", "I-ARG1", "I-ARG1", "O", "B-V")


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "x.gold_conll"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_one_proposition_per_predicate(write):
    one, two = read_srl(write(GOOD))
    assert one.name == "one" and one.words == ("Forces", "have", "killed", "and", "fled")
    assert [(p.predicate, p.lemma, p.tags) for p in one.propositions] == [(2, "kill", KILLED), (4, "flee", FLED)]
    assert two.words == ("Nothing",) and two.propositions == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\t", "   "),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n\n", "\n\n\n \n"),
    ],
    ids=["crlf", "spaces", "byte order mark", "no last line break", "blank lines"],
)
def test_harmless_differences(write, change):
    assert read_srl(write(change(GOOD))) == read_srl(write(GOOD))


def select_columns(*indices: int):
    """GOOD with only these fixed columns."""
    rows = [line.split("\t") if "\t" in line else line for line in GOOD.splitlines()]
    return "\n".join(row if isinstance(row, str) else "\t".join([*(row[i] for i in indices), *row[6:]]) for row in rows)


@pytest.mark.parametrize("indices", [(1, 4), (1, 2, 4), (1, 2, 5, 4), (0, 1, 4)])
def test_fewer_columns(write, indices):
    assert read_srl(write(select_columns(*indices) + "\n"))[0].propositions[1].tags == FLED
    explicit = Layout(indices.index(1), len(indices) - 1, len(indices))
    assert read_srl(write(select_columns(*indices)), explicit) == read_srl(write(select_columns(*indices)))


def test_files_to_predict_need_no_brackets(write):
    bare = "\n".join("\t".join(line.split("\t")[:6]) for line in GOOD.splitlines())
    one, _ = read_srl(write(bare), gold=False)
    assert [(p.predicate, p.tags) for p in one.propositions] == [(2, None), (4, None)]
    with pytest.raises(DataError, match="2 predicates marked in column 5 and 0 columns of brackets"):
        read_srl(write(bare))


def test_a_line_narrower_than_its_layout(write):
    with pytest.raises(DataError, match=r":1: found 2 columns; expected at least 6$"):
        read_srl(write("Forces\t-\nkilled\tkill\n"), "propbank", gold=False)


HASH = """# CD - (A1*)
won VBD win (V*)
7 CD - *
"""


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("", None),
        ("# sent_id = x\n", "x"),  # as many cells as a token's line
        ("# newdoc id = a b c\n#sent_id=y\n# a remark\n", "y"),
        ("# a file of ours\n# in two lines\n\n", None),
    ],
)
def test_a_number_sign_may_be_the_first_word(write, prefix, name):
    (sentence,) = read_srl(write(prefix + HASH))
    assert (sentence.words, sentence.name) == (("#", "won", "7"), name)
    (tabbed,) = read_srl(write(prefix + HASH.replace(" ", "\t")))
    assert tabbed == sentence


EMPTY_ROW = "CC\t*\t-\t-\t*\t*"
BAD = {
    "wrong column count": (
        GOOD.replace(EMPTY_ROW, EMPTY_ROW[:-2]),
        5,
        "7 columns",
        "8, as",
    ),
    "truncated last line": (GOOD[: GOOD.index("\t*\t(V*)\n\n")], 6, "6 columns", "8, as"),
    "cut within the last cell": (
        GOOD[: GOOD.index("V*)\n\n") + 1],
        6,
        "'(V' in column 8",
        "(ROLE*)",
    ),
    "cut before the last bracket": (
        GOOD[: GOOD.index(")\n\n")],
        6,
        "not closed by the end of the sentence",
        "*)",
    ),
    "not closed": (GOOD.replace("(V*)\t*)", "(V*)\t*"), 6, "'(V*)' in column 8 inside (ARG1* of line 2", "*) closing"),
    "never closed": (GOOD.replace("*\t(V*)", "*\t(V*"), 6, "(V* in column 8 not closed", "*) closing"),
    "closed twice": (
        GOOD.replace(EMPTY_ROW, EMPTY_ROW + ")"),
        5,
        "'*)' in column 8 with no",
        "* outside",
    ),
    "nested": (GOOD.replace("(ARG0*)", "(ARG0(ARG1*)"), 2, "'(ARG0(ARG1*)' in column 7", "don't nest"),
    "opened inside": (
        GOOD.replace("\t*\t*\n2", "\t*\t(ARG2*\n2"),
        3,
        "inside (ARG1* of line 2",
        "first",
    ),
    "no star": (GOOD.replace("(ARG0*)", "(ARG0)"), 2, "'(ARG0)' in column 7", "*, (ROLE*, *) or (ROLE*)"),
    "no V": (GOOD.replace("\t(V*)\t*)", "\t(ARG2*)\t*)"), 4, "'(ARG2*)' in column 7 at its predicate", "(V*)"),
    "too many predicates": (GOOD.replace("have\tVBP\t*\t-", "have\tVBP\t*\thave"), 2, "3 predicates", "for each"),
    "too few predicates": (GOOD.replace("killed\tVBD\t*\tkill", "killed\tVBD\t*\t-"), 2, "1 predicates", "for each"),
    "wrong encoding": (GOOD.replace("fled", "fléd").encode("latin-1"), 6, "byte 0xe9", "UTF-8"),
    "empty": ("", None, "an empty file", "data"),
    "only comments": ("# nothing\n", None, "comments or blank lines only", "sentences"),
    "no predicate column": ("Forces\nkilled\n", 1, "1 columns", "a column that marks predicates"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_in_bad_files_name_the_line(write, case):
    text, line, found, expected = BAD[case]
    path = write(text)
    with pytest.raises(DataError) as caught:
        read_srl(path)
    error = caught.value
    assert (error.path, error.line) == (str(path), line)
    assert found in error.found and expected in error.expected
    assert error.exit_status == 2


def test_written_files_read_back(tmp_path):
    sentences = sample_corpus()["test"]
    (tmp_path / "sample.conll").write_text(roles.columns(sentences))
    assert read_srl(tmp_path / "sample.conll") == sentences
    assert [path.name for path in tmp_path.iterdir()] == ["sample.conll"]
