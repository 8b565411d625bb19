"""ARFF files: reading them, and the errors of bad ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.table import Ragged, true_value
from spen_plugins.data.tables.arff import ancestry, class_sets, read_arff, split_cells
from spen_plugins.data.tables.label_columns import ColumnKeys, find_labels, read_names
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.data.text import read_lines
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import loaded

SPEN_DATA = os.environ.get("SPEN_DATA")

DENSE = """% a comment
@relation 'two words'

@attribute 'a name, quoted' numeric
@attribute colour {red, 'dark blue', green}
@ATTRIBUTE yes {YES, NO}
@attribute\t"say \\"l\\"" {0,1}

@DATA
% another
1.5, red, YES, 0
-2e3,'dark blue',NO,1

?, ?, ?, 0
"""

SPARSE = """@relation s
@attribute w0 {0,1}
@attribute w1 {0,1}
@attribute n numeric
@attribute l0 {0,1}
@attribute l1 {0,1}
@data
{0 1,3 1, 4 1}
{}
{ 4 1 , 2 2.5,1 1 }
"""

HMC = """@RELATION 'genes'
@ATTRIBUTE a numeric
@ATTRIBUTE class hierarchical 01,01/01,01/01/03,02,03/05
@DATA
1,01/01/03
2,02@01
?,03/05@01/01
4,?
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "x.arff") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_dense(write):
    table = read_arff(write(DENSE))
    assert [(a.name, a.kind, a.values) for a in table.attributes] == [
        ("a name, quoted", "numeric", ()),
        ("colour", "nominal", ("red", "dark blue", "green")),
        ("yes", "nominal", ("YES", "NO")),
        ('say "l"', "nominal", ("0", "1")),
    ]
    nan = np.nan
    np.testing.assert_array_equal(
        table.dense, np.array([[1.5, 0, 0, 0], [-2000, 1, 1, 1], [nan, nan, nan, 0]], np.float32)
    )
    assert table.line == [11, 12, 14]


def test_sparse_equals_dense(write):
    table = read_arff(write(SPARSE))
    expected = np.array([[1, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 2.5, 0, 1]], np.float32)
    np.testing.assert_array_equal(table.filled(), expected)
    rows = "\n".join(",".join(f"{v:g}" for v in row) for row in expected)
    dense = read_arff(write(SPARSE.partition("@data")[0] + "@data\n" + rows))
    a, b = (Columns.from_table(t, 2, ()).encode(t) for t in (table, dense))
    np.testing.assert_array_equal(a[0], b[0])
    assert [g.tolist() for g in a[1]] == [g.tolist() for g in b[1]] == [[0, 1], [], [1]]


def test_sparse_binary_features_stay_sparse(write):
    table = read_arff(write(SPARSE))
    columns = Columns.from_table(table, 2, ["n"])
    features, _ = columns.encode(table)
    assert isinstance(features, Ragged)
    assert [features[i].tolist() for i in range(3)] == [[0], [], [1]]
    np.testing.assert_array_equal(columns.real, [False, False])


def test_sparse_values_may_hold_blanks_and_quotes(write):
    text = SPARSE.replace("w0 {0,1}", "w0 {red,dark blue,'a, b'}").replace("{0 1,3 1, 4 1}", "{0 dark blue }")
    table = read_arff(write(text.replace("{}", "{3 1, 0 'a, b'}")))
    assert table.filled()[:, 0].tolist() == [1, 2, 0] and table.filled()[1, 3] == 1


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ("'a, b',\"c'd\", 'e\\'f'", ["a, b", "c'd", "e'f"]),
        ("it's, l'eau", ["it's", "l'eau"]),
        ("'a' b, 'c", ["'a' b", "'c"]),
        ("'', ,''", ["", "", ""]),
        ("0 'a, b', 3 1", ["0 'a, b'", "3 1"]),
    ],
)
def test_cells(text, cells):
    assert split_cells(text) == cells


def test_a_sparse_zero_is_the_first_nominal_value(write):
    text = SPARSE.replace("w0 {0,1}", "w0 {YES,NO}").replace("{0 1,3 1", "{0 NO,3 1")
    table = read_arff(write(text))
    features, _ = Columns.from_table(table, 2, ["n"]).encode(table)
    assert [features[i].tolist() for i in range(3)] == [[], [0], [0, 1]]


def test_features_of_every_kind(write):
    table = read_arff(write(DENSE))
    columns = Columns.from_table(table, 1, ())
    features, gold = columns.encode(table)
    assert columns.names == ["a name, quoted", "colour=red", "colour=dark blue", "colour=green", "yes"]
    np.testing.assert_array_equal(columns.real, [True, False, False, False, False])
    np.testing.assert_array_equal(
        features, np.array([[1.5, 1, 0, 0, 1], [-2000, 0, 1, 0, 0], [np.nan, 0, 0, 0, 0]], np.float32)
    )
    assert [g.tolist() for g in gold] == [[], [0], []]


@pytest.mark.parametrize(
    ("values", "index"),
    [
        (("0", "1"), 1),
        (("YES", "NO"), 0),
        (("no", "yes"), 1),
        (("False", "True"), 1),
        (("red", "blue"), None),
        (("0",), None),
    ],
)
def test_which_of_two_values_is_true(values, index):
    assert true_value(values) == index


def test_hierarchical_classes_imply_their_ancestors(write):
    assert ancestry("01/01/03") == ["01", "01/01", "01/01/03"]
    table = read_arff(write(HMC))
    # 03, which the header leaves out, stands before its child
    assert table.attributes[1].values == ("01", "01/01", "01/01/03", "02", "03", "03/05")
    assert [None if s is None else s.tolist() for s in class_sets(table)] == [[0, 1, 2], [0, 3], [0, 1, 4, 5], None]
    columns = Columns.from_table(table, None, ())
    features, gold = columns.encode(table)
    assert columns.labels == table.attributes[1].values
    np.testing.assert_array_equal(features, np.array([[1], [2], [np.nan], [4]], np.float32))
    assert gold[3] is None and gold[0].tolist() == [0, 1, 2]


def test_columns_of_another_file_are_matched_by_name(write):
    columns = Columns.from_table(read_arff(write(DENSE)), 1, ())
    text = """@relation r
@attribute yes {NO,YES}
@attribute colour {green,red,'dark blue'}
@attribute 'a name, quoted' real
@data
YES,red,3
NO,green,?
"""
    features, gold = columns.encode(read_arff(write(text)))
    np.testing.assert_array_equal(features, np.array([[3, 1, 0, 0, 1], [np.nan, 0, 0, 1, 0]], np.float32))
    assert gold == [None, None]  # no label column, no gold


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "yes {YES, NO}",
            "yess {YES, NO}",
            r"'yess'; expected attributes of the training file; .*\. Did you mean 'yes'",
        ),
        ("yes {YES, NO}", "yes {YES, NO, MAYBE}", "type YES, NO, MAYBE; expected YES, NO, as in training"),
        ("quoted' numeric", "quoted' {1.5,-2e3}", "expected numeric, as in training"),
    ],
)
def test_another_file_with_other_attributes(write, old, new, message):
    columns = Columns.from_table(read_arff(write(DENSE)), 1, ())
    with pytest.raises(DataError, match=message):
        columns.encode(read_arff(write(DENSE.replace(old, new))))


def test_labels_missing_in_another_file(write):
    columns = Columns.from_table(read_arff(write(SPARSE)), 2, ())
    text = SPARSE.replace("@attribute l1 {0,1}\n", "").replace(", 4 1", "").replace("{ 4 1 ,", "{")
    with pytest.raises(DataError, match="some labels, but not 'l1'"):
        columns.encode(read_arff(write(text)))


def check_error(path: Path, line: int | None, found: str, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_arff(path)
    error = caught.value
    assert error.exit_status == 2 and error.path == str(path) and error.line == line, str(error)
    assert re.search(found, error.found) and re.search(expected, error.expected), str(error)


BAD_DENSE = [
    ("1.5, red, YES, 0", "1.5, red, YES", 11, "3 cells", "4, one for each"),
    ("1.5, red, YES, 0", "1.5, red, YES, 0, 1", 11, "5 cells", "4"),
    ("?, ?, ?, 0\n", "?, ?", 14, "2 cells", "4, one for each"),
    ("?, ?, ?, 0\n", "?, ?, ?, ", 14, "'' for attribute", "one of 0, 1, or"),
    ("{0,1}\n\n@DATA", "numeric\n\n@DATA\n1,red,NO,", 10, "'' for attribute", "for missing$"),
    ("1.5, red", "1.5, rad", 11, "'rad' for attribute 'colour'", "red, dark blue, green"),
    ("1.5, red", "NaN, red", 11, "'NaN' for attribute 'a name, quoted'", "finite number"),
    ("1.5, red", "-inf, red", 11, "'-inf'", "finite number"),
    ("-2e3", "1e60", 12, "'1e60'", "finite number"),
    ("-2e3", "1_000", 12, "'1_000'", "finite number"),
    ("-2e3", "abc", 12, "'abc'", "finite number"),
    ("NO,1", "NO,2", 12, "'2' for attribute 'say \"l\"'", "0, 1"),
    ("-2e3,'dark blue',NO,1", "{0 1}", 12, "1 cell", "4, one for each"),
    ("-2e3,'dark blue',NO,1", "-2e3,'dark' blue,NO,1", 12, ".", "."),
    ("@DATA", "", 11, r"1\.5", "@attribute"),
    ("@DATA\n% another\n1.5, red, YES, 0\n-2e3,'dark blue',NO,1\n\n?, ?, ?, 0\n", "", 8, "the end", "@data"),
    ("1.5, red, YES, 0\n-2e3,'dark blue',NO,1\n\n?, ?, ?, 0\n", "", 10, "no rows", "rows"),
    ("{YES, NO}", "{YES, NO", 6, "YES", "in braces"),
    ("{YES, NO}", "{YES, YES}", 6, "YES", "different values"),
    ("{YES, NO}", "boolean", 6, "'boolean'", "hierarchical"),
    ("{YES, NO}", "", 6, "''", "numeric"),
    ("@relation", "@relatoin", 2, "relatoin", "@relation"),
]
BAD_SPARSE = [
    ("{0 1,3 1, 4 1}", "{0 1,3 1, 5 1}", 8, "'5 1'", "index from 0 to 4"),
    ("{0 1,3 1, 4 1}", "{-1 1}", 8, "'-1 1'", "index from 0 to 4"),
    ("{0 1,3 1, 4 1}", "{0 1,3 1, 0 1}", 8, "'0 1'", "at most once"),
    ("{0 1,3 1, 4 1}", "{0 1,3 7}", 8, "'3 7'", "a valid value"),
    ("{0 1,3 1, 4 1}", "{0 1 2 1}", 8, "'0 1 2 1'", "a valid value"),
    ("{0 1,3 1, 4 1}", "{0 1,,3 1}", 8, "''", "INDEX VALUE"),
    ("{0 1,3 1, 4 1}", "{0 1,x 1}", 8, "'x 1'", "INDEX VALUE"),
    ("{0 1,3 1, 4 1}", "{0 1,2 nan}", 8, "'2 nan'", "a valid value"),
    ("{ 4 1 , 2 2.5,1 1 }\n", "{ 4 1 , 2 2.5,1", 10, "2.5,1", "a sparse row {"),
    ("{}", "1,1,1,1,1", 9, "1,1,1", "a sparse row {"),
    ("n numeric", "n string", 8, "sparse", "dense rows, as one attribute is text"),
]


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "found", "expected"),
    [*((DENSE, *row) for row in BAD_DENSE), *((SPARSE, *row) for row in BAD_SPARSE)],
)
def test_bad_files(write, text, old, new, line, found, expected):
    assert old in text
    check_error(write(text.replace(old, new)), line, found, expected)


def test_a_file_cut_in_its_last_cell(write):
    for cell, message in (("", "no class.* was the file cut off"), ("01/0", "class '01/0'")):
        with pytest.raises(DataError, match=rf"x\.arff:7: found {message}"):
            class_sets(read_arff(write(HMC.partition("?,")[0] + "3," + cell)))
    complete = HMC.partition("?,")[0] + "3,\n"
    assert class_sets(read_arff(write(complete)))[-1].tolist() == []


def test_bad_labels(write):
    with pytest.raises(DataError, match=r"x\.arff:6: found class '01/01/04'; .*Did you mean '01/01/03'"):
        class_sets(read_arff(write(HMC.replace("02@01", "02@01/01/04"))))
    text = DENSE.replace("-2e3,'dark blue',NO,1", "-2e3,'dark blue',NO,?")
    table = read_arff(write(text.replace("yes {YES, NO}", "yes {1, 0}").replace("YES", "1").replace("NO", "0")))
    with pytest.raises(DataError, match=r"x\.arff:12: found \? for label 'say \"l\"'"):
        Columns.from_table(table, 2, ()).encode(table)
    with pytest.raises(DataError, match=r"x\.arff:5: found \{red, dark blue, green\} for label 'colour'"):
        Columns.from_table(table, ["colour"], ()).encode(table)


def test_label_list(write):
    table = read_arff(write(SPARSE))
    good = '<?xml version="1.0"?>\n<labels xmlns="http://x">\n<label name="l1"/><label name="l0"></label></labels>'
    names = read_names(write(good, "x.xml"))
    assert names == ["l1", "l0"]
    assert Columns.from_table(table, names, ()).labels == ("l0", "l1")  # in the file's order
    with pytest.raises(ConfigError, match=r"^x\.xml: .*x\.arff has no column 'l7'\. Its columns are w0"):
        find_labels(table, ["l7"], source="x.xml")
    for bad, message in [
        (good.replace("</labels>", ""), r"x\.xml:3: found"),
        (good.replace("l1", "l0"), "label 'l0' twice"),
        ("<labels></labels>", "no label"),
    ]:
        with pytest.raises(DataError, match=message):
            read_names(write(bad, "x.xml"))


def test_bad_text(write, tmp_path):
    check_error(write(b""), None, "an empty file", "data")
    check_error(write(b" \r\n\n"), None, "an empty file", "data")
    check_error(write(DENSE.encode().replace(b"red, YES", b"r\xe9d, YES")), 11, "byte 0xe9", "UTF-8")
    check_error(write(b"\xef\xbb\xbf\n\xff"), 2, "byte 0xff", "UTF-8")
    check_error(write(DENSE.encode("utf-16-le")), 1, "zero byte", "encoding=")
    check_error(write(DENSE.encode().replace(b"red", b"\0")), 5, "zero byte", "UTF-8")
    check_error(tmp_path / "nothing.arff", None, "no such file", "exists")
    check_error(tmp_path, None, "a folder", "a file")
    assert read_lines(write("a\r\nb\n\nc")) == ["a", "b", "", "c"]


def test_equal_names_are_made_unique(write):
    table = read_arff(write(SPARSE.replace("attribute w1", "attribute w0")))
    assert [a.name for a in table.attributes[:2]] == ["w0", "w0 (2)"]


@pytest.mark.skipif(not SPEN_DATA, reason="$SPEN_DATA is not set")
@pytest.mark.parametrize(
    ("name", "rows", "features", "labels", "per_row"),
    [
        ("bibtex/bibtex", 7395, 1836, 159, 2.402),
        ("delicious/delicious", 16105, 500, 983, 19.020),
        ("genbase/genbase", 662, 1186, 27, 1.252),
        ("cal500/cal500", 502, 68, 174, 26.044),
        ("spo_FUN/spo_FUN.train", 1600, 80, 499, None),
        ("expr_FUN/expr_FUN.valid", 849, 551, 499, None),
    ],
)
def test_real_files(name, rows, features, labels, per_row):
    path = Path(SPEN_DATA) / "multilabel" / f"{name}.arff"
    table = read_arff(path)
    xml = path.with_suffix(".xml")
    columns = Columns.from_table(table, read_names(xml) if xml.exists() else None, ())
    gold = columns.gold(table)
    assert (len(table), len(columns.features), len(columns.labels)) == (rows, features, labels)
    if per_row:
        assert np.mean([len(g) for g in gold]) == pytest.approx(per_row, abs=5e-4)


def write_meka(folder: Path, option: str) -> str:
    """A file with four attributes, two of which are 1 in every second row."""
    head = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    path = folder / "x.arff"
    path.write_text(f"@relation {option}\n\n{head}@data\n" + "1,0,1,0\n0,0,0,1\n" * 10)
    return str(path)


@pytest.mark.parametrize(
    ("option", "labels"),
    [
        ("'demo: -C 2'", ("a", "b")),
        ("'demo: -C -1'", ("d",)),
        ('"demo set: -split-percentage 60 -C 3"', ("a", "b", "c")),
        ("'demo-weka.filters.unsupervised.attribute.Remove -C 2'", None),
        ("demo", None),
    ],
)
def test_the_relation_says_which_attributes_are_labels(tmp_path: Path, option: str, labels: tuple | None) -> None:
    path = write_meka(tmp_path, option)
    assert read_arff(path).own_labels == labels
    if labels is None:
        return
    for settings in ({}, {"label_count": len(labels)}, {"labels": ",".join(labels)}):
        task = loaded("multilabel", train=path, validation=path, **settings)
        assert task.columns.labels == labels and [*task.columns.features] == [c for c in "abcd" if c not in labels]
        matrix, description, _ = read_strata(Path(path), ColumnKeys.from_settings(settings))
        assert matrix[:2].tolist() == [[c in "ac" for c in labels], [c == "d" for c in labels]]
        assert f"{len(labels)} label{'s' * (len(labels) > 1)}" in description


@pytest.mark.parametrize(
    ("option", "settings", "message"),
    [
        ("'demo: -C 2'", {"label_count": 3}, "label_count=: found 3; expected 2, as in @relation"),
        ("'demo: -C -2'", {"labels": "a,b"}, "labels=: found a, b; @relation of .* has c, d"),
        ("'demo: -C 4'", {}, "found -C 4 in @relation; expected a number of labels from 1 to 3"),
        ("'demo: -C 0'", {}, "found -C 0 in @relation"),
    ],
)
def test_labels_that_contradict_the_relation_are_rejected(
    tmp_path: Path, option: str, settings: dict, message: str
) -> None:
    path = write_meka(tmp_path, option)
    with pytest.raises((ConfigError, DataError), match=message):
        loaded("multilabel", train=path, validation=path, **settings)
    with pytest.raises((ConfigError, DataError), match=message):
        read_strata(Path(path), ColumnKeys.from_settings(settings))
