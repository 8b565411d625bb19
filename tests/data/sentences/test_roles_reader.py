"""Semantic roles in common formats; the files are written by hand from the formats' descriptions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.sentences.items import sentence_of
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.data.sentences.srl import kind_of
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import loaded

GAVE = ("B-ARG0", "B-V", "B-ARG2", "B-ARG1", "I-ARG1", "O")
WANTS = ("B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O")
LEAVE = ("B-ARG0", "O", "O", "B-V", "O")

CONLL_2012 = """\
#begin document (wb/a2e/00/a2e_0001); part 000
wb/a2e/00/a2e_0001 0 0 Anna NNP (TOP(S(NP*) - - - Reporter (PERSON) (ARG0*) (12)
wb/a2e/00/a2e_0001 0 1 gave VBD (VP* give 01 1 Reporter * (V*) -
wb/a2e/00/a2e_0001 0 2 Bob NNP (NP*) - - - Reporter (PERSON) (ARG2*) (3
wb/a2e/00/a2e_0001 0 3 a DT (NP* - - - Reporter * (ARG1* -
wb/a2e/00/a2e_0001 0 4 book NN *)) book - 2 Reporter * *) 3)|(4)
wb/a2e/00/a2e_0001 0 5 . . *)) - - - Reporter * * -

wb/a2e/00/a2e_0001 0 0 Yes UH (TOP(INTJ*)) - - - - * -

wb/a2e/00/a2e_0001 0 0 She PRP (TOP(S(NP*) - - - - * (ARG0*) (ARG0*) (12)
wb/a2e/00/a2e_0001 0 1 wants VBZ (VP* want 01 1 - * (V*) * -
wb/a2e/00/a2e_0001 0 2 to TO (S(VP* - - - - * (ARG1* * -
wb/a2e/00/a2e_0001 0 3 leave VB (VP*)))) leave 01 1 - * *) (V*) -
wb/a2e/00/a2e_0001 0 4 . . *)) - - - - * * * -
#end document
"""

WORDS = "Anna\ngave\nBob\na\nbook\n.\n\nYes\n\nShe\nwants\nto\nleave\n.\n"
PROPS = """\
-	(ARG0*)
give	(V*)
-	(ARG2*)
-	(ARG1*
-	*)
-	*

-

-	(ARG0*)	(ARG0*)
want	(V*)	*
-	(ARG1*	*
leave	*)	(V*)
-	*	*
"""

# Universal PropBank, release 1: eight fields of CoNLL-U, Y, the frame, and a column for each predicate.
UP_1 = """\
# sent_id = one
1	Anna	Anna	PROPN	NNP	_	2	nsubj	_	_	ARG0
2	gave	give	VERB	VBD	_	0	root	Y	give.01	_
3	Bob	Bob	PROPN	NNP	_	2	iobj	_	_	ARG2
4	a	a	DET	DT	_	5	det	_	_	_
5	book	book	NOUN	NN	_	2	obj	_	_	ARG1
6	.	.	PUNCT	.	_	2	punct	_	_	_

1	Yes	yes	INTJ	UH	_	0	root	_	_

1	She	she	PRON	PRP	_	2	nsubj	_	_	ARG0	ARG0
2	wants	want	VERB	VBZ	_	0	root	Y	want.01	_	_
3-4	toleave	_	_	_	_	_	_	_	_
3	to	to	PART	TO	_	4	mark	_	_	_	_
4	leave	leave	VERB	VB	_	2	xcomp	Y	leave.01	ARG1	_
5	.	.	PUNCT	.	_	2	punct	_	_	_	_
"""


def make_up_misc() -> str:
    """English Universal PropBank, release 1: ten fields, roles in MISC."""
    lines = []
    for block in UP_1.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines()]
        for row in rows:
            if row[0].isdigit():
                roles = "/".join(row[10:])
                frame = row[9] if row[8] == "Y" else "-"
                lines.append("\t".join([*row[:8], "_", f"Framefile=-|Roleset={frame}|Args={roles}"]))
            else:
                lines.append("\t".join(row))
        lines.append("")
    return "\n".join(lines)


def make_conll_2009() -> str:
    """Predicted columns repeat the others; features as in the Spanish data."""
    lines = []
    for line in UP_1.splitlines():
        row = line.split("\t")
        if line and not line.startswith("#") and "-" not in row[0]:
            number, form, lemma, _, pos, _, head, label = row[:8]
            roles = [role.replace("ARG", "A") for role in row[10:]]
            mark = row[8:10] if row[8] == "Y" else ["_", "_"]
            feat = "num=s|gen=f"
            columns = [number, form, lemma, lemma, pos, pos, feat, feat, head, head, label, label, *mark, *roles]
            lines.append("\t".join(columns))
        elif not line:
            lines.append("")
    return "\n".join([*lines, ""])


# Release 2: CoNLL-U Plus, merged with the treebank.
UP_2 = """\
# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC UP:PRED UP:ARGHEADS UP:ARGSPANS
# sent_id = one
1	Anna	Anna	PROPN	NNP	_	2	nsubj	_	_	_	_	_
2	gave	give	VERB	VBD	_	0	root	_	_	give.01	ARG0:1|ARG2:3|ARG1:5	ARG0:1-1|ARG2:3-3|ARG1:4-5
3	Bob	Bob	PROPN	NNP	_	2	iobj	_	_	_	_	_
4	a	a	DET	DT	_	5	det	_	_	_	_	_
5	book	book	NOUN	NN	_	2	obj	_	_	_	_	_
6	.	.	PUNCT	.	_	2	punct	_	_	_	_	_

1	Yes	yes	INTJ	UH	_	0	root	_	_	_	_	_

1	She	she	PRON	PRP	_	2	nsubj	_	_	_	_	_
2	wants	want	VERB	VBZ	_	0	root	_	_	want.01	ARG0:1|ARG1:4	ARG0:1-1|ARG1:3-4
3	to	to	PART	TO	_	4	mark	_	_	_	_	_
4	leave	leave	VERB	VB	_	2	xcomp	_	_	leave.01	ARG0:1	ARG0:1-1
5	.	.	PUNCT	.	_	2	punct	_	_	_	_	_
"""

JSON = "\n".join(
    json.dumps(item)
    for item in (
        {"words": ["Anna", "gave", "Bob", "a", "book", "."], "predicate": 1, "tags": GAVE},
        {"words": ["Yes"]},
        {
            "words": ["She", "wants", "to", "leave", "."],
            "predicate": {"index": 1, "word": "wants"},
            "arguments": [{"role": "ARG0", "start": 0, "end": 1}, {"role": "ARG1", "start": 2, "end": 4, "score": 1}],
        },
        {"words": ["She", "wants", "to", "leave", "."], "predicate": 3, "tags": LEAVE},
    )
)
PASTED = zip(WORDS.split("\n"), PROPS.split("\n"), strict=True)
FILES = {
    "a.gold_conll": (CONLL_2012, "CoNLL-2012"),
    "a.conllu": (UP_1, "CoNLL-U with a column of roles per predicate (Universal PropBank 1)"),
    "b.conllu": (make_up_misc(), "CoNLL-U with Args= in MISC"),
    "a.conllup": (UP_2, "CoNLL-U Plus with UP fields"),
    "a.jsonl": (JSON, "JSONL"),
    "pasted.txt": (
        "\n".join("\t".join(pair) if any(pair) else "" for pair in PASTED),
        "columns as in CoNLL-2005",
    ),
}


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "a.txt") -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def check(corpus) -> None:
    one, two, three = corpus.sentences
    assert [" ".join(s.words) for s in corpus.sentences] == ["Anna gave Bob a book .", "Yes", "She wants to leave ."]
    assert [(p.predicate, p.tags) for p in one.propositions] == [(1, GAVE)]
    assert two.propositions == ()
    assert [(p.predicate, p.tags) for p in three.propositions] == [(1, WANTS), (3, LEAVE)]


@pytest.mark.parametrize("name", FILES)
def test_a_format_is_recognised_by_its_content(write, name):
    text, format_ = FILES[name]
    for path in (write(text, name), write(text, "plain")):
        corpus = read_roles(path)
        check(corpus)
        assert corpus.format.startswith(format_)
        assert corpus.description == f"read as {corpus.format}: 3 sentences, 3 predicates"


GIVE = json.dumps({"words": ["Anna", "gave"], "predicates": [{"index": 1, "sense": "give.01", "lemma": "give"}]})
GAVE_COLUMNS = "0\tAnna\tNNP\t*\t-\t-\t(ARG0*)\n1\tgave\tVBD\t*\tgive\tgive.01\t(V*)\n"


@pytest.mark.parametrize(
    ("text", "pos"),
    [(GAVE_COLUMNS, "VBD"), (CONLL_2012, "VBD"), (UP_2.replace("XPOS", "ROOT"), "VERB"), (GIVE, None)],
    ids=["cols", "2012", "up", "json"],
)
def test_rolesets_are_read(write, text, pos):
    sentences = read_roles(write(text + "\n"), gold=False).sentences
    proposition, *others = [p for sentence in sentences for p in sentence.propositions]
    assert (proposition.roleset, proposition.pos, proposition.predicate) == ("give.01", pos, 1)
    assert [(p.roleset, p.predicate) for p in others] == [("want.01", 1), ("leave.01", 3)][: len(others)]


def test_conll_2009(write):
    text = make_conll_2009()
    corpus = read_roles(write(text))
    assert corpus.format == "CoNLL-2009, one argument per head's subtree"
    assert [" ".join(s.words) for s in corpus.sentences] == ["Anna gave Bob a book .", "Yes", "She wants to leave ."]
    propositions = [
        (p.predicate, p.lemma, tuple(tag.replace("-A", "-ARG") for tag in p.tags))
        for sentence in corpus.sentences
        for p in sentence.propositions
    ]
    assert propositions == [(1, "give.01", GAVE), (1, "want.01", WANTS), (3, "leave.01", LEAVE)]
    assert read_strata(write(text), ColumnKeys())[0].shape[0] == 3
    truncated = text.replace("give.01\t_", "give.01")
    with pytest.raises(DataError, match=r":2: found 14 columns in a sentence with 1 predicates .*; expected 15, one"):
        read_roles(write(truncated))


def test_words_and_props_are_found_next_to_each_other(write, tmp_path):
    words, props = write(WORDS, "train.words"), write(PROPS, "train.props")
    for path in (words, props):
        corpus = read_roles(path)
        check(corpus)
        assert corpus.format == "CoNLL-2005: words of train.words, props of train.props"
    for kind, text in (("words", WORDS), ("props", PROPS)):  # the shared task's own folders
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f"test.wsj.{kind}").write_text(text)
    check(read_roles(tmp_path / "words" / "test.wsj.words"))
    check(read_roles(tmp_path / "props" / "test.wsj.props"))


def test_a_word_may_be_a_dash(write, tmp_path):
    write("-\n-\nAnna\nleft\n.\n", "a.words")
    write("-\t*\n-\t*\n-\t(A0*)\nleave\t(V*)\n-\t*\n", "a.props")
    for name in ("a.words", "a.props"):
        [sentence] = read_roles(tmp_path / name).sentences
        assert sentence.words == ("-", "-", "Anna", "left", ".")


def test_props_need_the_same_words(write):
    write(WORDS.replace("a\nbook", "book"), "train.words")
    with pytest.raises(DataError, match=r"train.props:6: found - \*, but no token in this line of train.words"):
        read_roles(write(PROPS, "train.props"))
    with pytest.raises(DataError, match=r"without words .*expected the words in other.words beside it"):
        read_roles(write(PROPS, "other.props"))


def test_conll_2012_with_fewer_columns(write):
    """As in the releases of PropBank itself; or without coreference; or without arguments."""

    def select_columns(select) -> str:
        rows = [line.split() for line in CONLL_2012.splitlines() if not line.startswith("#")]
        return "\n".join(" ".join(select(row)) if row else "" for row in rows)

    check(read_roles(write(select_columns(lambda row: [*row[:8], *row[11:-1]]))))
    check(read_roles(write(select_columns(lambda row: [*row[:8], *row[11:]]))))
    check(read_roles(write(select_columns(lambda row: row[:-1]))))
    bare = read_roles(write(select_columns(lambda row: [*row[:11], row[-1]])), gold=False)
    assert [[(p.predicate, p.lemma, p.tags) for p in s.propositions] for s in bare.sentences] == [
        [(1, "give", None)],
        [],
        [(1, "want", None), (3, "leave", None)],
    ]
    with pytest.raises(DataError, match=r"no \(V\*\) in any line; expected a column of brackets"):
        read_roles(write(select_columns(lambda row: [*row[:11], row[-1]])))


def test_an_argument_of_a_head_is_its_subtree(write):
    """Without the predicate's subtree and words nearer to another argument's head; later pieces are C-."""
    heads = [  # the book that Ann said Bob wrote
        ("the", 2, "_"),
        ("book", 0, "A1"),
        ("that", 7, "R-A1"),
        ("Ann", 5, "_"),
        ("said", 7, "AM-DIS"),
        ("Bob", 7, "A0"),
        ("wrote", 2, "_"),
        ("in", 9, "_"),
        ("ink", 2, "_"),
    ]
    rows = [
        f"{i}\t{w}\t_\t_\t_\t_\t{h}\tdep\t{'Y' if w == 'wrote' else '_'}\t{'write.01' if w == 'wrote' else '_'}\t{r}"
        for i, (w, h, r) in enumerate(heads, 1)
    ]
    [sentence] = read_roles(write("\n".join(rows) + "\n")).sentences
    [proposition] = sentence.propositions
    assert proposition.tags == (*("B-A1", "I-A1", "B-R-A1", "B-AM-DIS", "I-AM-DIS", "B-A0", "B-V", "B-C-A1", "I-C-A1"),)


def test_words_in_overlapping_spans_belong_to_the_shorter(write):
    spans = "ARG1:1-6|ARG0:3-3"
    text = UP_2.split("\n\n")[0].replace("ARG0:1-1|ARG2:3-3|ARG1:4-5", spans)
    [sentence] = read_roles(write(text)).sentences
    assert sentence.propositions[0].tags == ("B-ARG1", "B-V", "B-ARG0", "B-C-ARG1", "I-C-ARG1", "I-C-ARG1")


NO_ROLES = "\n".join("\t".join([*line.split("\t")[:8], "_", "_"]) for line in UP_1.split("\n")[1:6])


def test_nested_brackets_of_conll_2012(write):
    """OntoNotes has a few."""
    nested = CONLL_2012.replace("(ARG0*) (12)", "(ARG1(ARG0*) (12)", 1).replace("(ARG2*) (3", "* (3", 1)
    nested = nested.replace("(ARG1* -", "(ARGM-MNR* -", 1).replace("* * -\n\nwb", "* *) -\n\nwb", 1)
    proposition = read_roles(write(nested)).sentences[0].propositions[0]
    assert proposition.tags == ("B-ARG0", "B-V", "B-ARG1", "B-ARGM-MNR", "I-ARGM-MNR", "B-C-ARG1")


@pytest.mark.parametrize("number", ["3-4", "3.1"])
def test_predicates_at_ranges_and_empty_nodes_are_counted(write, number):
    lost = f"{number}\tx" + "\t_" * 8 + "\tgo.01\tARG0:1\tARG0:1-1\n"
    file = read_roles(write(UP_2.replace("4\ta\ta", f"{lost}4\ta\ta")))
    assert (
        "(Universal PropBank 2), without 1 predicate at multiword ranges or empty nodes (first in line 6): 3"
        in file.description
    )
    assert [s.propositions for s in file.sentences] == [s.propositions for s in read_roles(write(UP_2)).sentences]


LINES = {
    "2012 closed twice": (CONLL_2012.replace("(ARG2*)", "*)"), 4, "with no bracket open"),
    "2012 no star": (CONLL_2012.replace("(ARG2*)", "(ARG2)"), 4, r"'\(ARG2\)' in column 12"),
    "ragged 2012": (CONLL_2012.replace(" (V*) -\nwb/a2e/00/a2e_0001 0 2 Bob", "\nwb/a2e/00/a2e_0001 0 2 Bob"), 3, "11"),
    "2012 without a verb": (CONLL_2012.replace("* *) (V*) -", "* *) * -"), 11, r"no \(V\*\) in column 13"),
    "2012 not closed": (CONLL_2012.replace("*) 3)|(4)", "* 3)|(4)"), 5, r"\(ARG1\* in column 12 not closed"),
    "head": (UP_1.replace("_\t2\tnsubj", "_\t9\tnsubj", 1), 2, "'9' as a word's head"),
    "loop": (UP_1.replace("_\t5\tdet", "_\t4\tdet", 1), 5, "a cycle of heads"),
    "cut": (re.sub(r"\t[^\t\n]*(?=\n3\t)", "", make_up_misc(), count=1), 3, "9 fields without 'misc'"),
    "span": (UP_2.replace("ARG1:4-5", "ARG1:4-9"), 4, "the argument 'ARG1:4-9'"),
    "empty node": (UP_2.replace("ARG1:4-5", "ARG1:3.1"), 4, "the argument 'ARG1:3.1' at an empty node; expected ROLE"),
    "no roles": (NO_ROLES, 1, "without"),
    "no words": ("# global.columns = ID UP:PRED UP:ARGSPANS\n1\t_\t_\n", None, "no words; expected a field FORM"),
    "no JSON": (JSON.replace('"Bob", ', '"Bob" ', 1), 1, "not JSON"),
    "NaN": ('{"words": ["a"], "predicate": NaN}', 1, "NaN is not a JSON number"),
    "no gold": ('{"words": ["a"], "predicate": 0}', None, "a predicate without arguments"),
    "outside": ('{"words": ["a"]}\n{"words": ["a"], "predicate": 1}', 2, "predicate 1; expected a word number"),
    "raw": ("Anna gave Bob a book.\nShe left.\n", 1, "one of these formats: JSONL .*CoNLL-U.*2012.*2005.*columns"),
    "one raw line": ("Anna gave Bob a book\n", 1, "one of these formats"),
    "CSV": ("text,labels\nAnna gave it,a\n", 1, "one of these formats|brackets"),
}


@pytest.mark.parametrize("case", LINES)
def test_errors_in_bad_files_name_the_line(write, case):
    text, line, message = LINES[case]
    with pytest.raises(DataError, match=message) as caught:
        read_roles(write(text))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"words": ["a", "b"], "predicate": 0, "arguments": [{"role": "A", "start": 0, "end": 2}]}, "share word 0"),
        (
            {"words": ["a", "b"], "predicate": 0, "arguments": [{"role": "A", "start": 1, "end": 3}]},
            "an exclusive end",
        ),
        ({"words": ["a", "b"], "predicate": 0, "arguments": "A0"}, "a list of"),
        ({"words": ["a", "b"], "predicates": {"index": 0}}, "different word numbers"),
        ({"words": ["a", "b"], "predicates": [0], "tags": "OO"}, "lists of one tag per word"),
    ],
)
def test_wrong_items(item, message):
    with pytest.raises(DataError, match=message):
        sentence_of(item)


def test_several_predicates_in_one_item():
    words = ["She", "wants", "to", "leave", "."]
    item = {
        "words": words,
        "predicates": [
            {"index": 3, "tags": list(LEAVE)},
            {"index": 1, "arguments": [{"role": "ARG1", "start": 2, "end": 4}, {"role": "ARG0", "start": 0, "end": 1}]},
        ],
    }
    assert [(p.predicate, p.tags) for p in sentence_of(item).propositions] == [(1, WANTS), (3, LEAVE)]
    plain = sentence_of({"words": words, "predicates": [3, 1], "tags": [LEAVE, WANTS]})
    assert plain == sentence_of(item)
    item["predicates"][1]["arguments"].append({"role": "V", "start": 1, "end": 2})  # the predicate itself
    assert plain == sentence_of(item)
    item["predicates"][1]["arguments"].append({"role": "V", "start": 1, "end": 3})
    with pytest.raises(DataError, match="found V and V, which share word 1"):
        sentence_of(item)


def test_ten_thousand_columns(write):
    """Each column requires a predicate."""
    row = ["w", "x", *["*"] * 9998]
    with pytest.raises(DataError, match=r"a.txt:1: found 1 predicates marked in column 2 and 9998 columns of brackets"):
        read_roles(write("\t".join(row) + "\n" + "\t".join(["w", "-", *row[2:]]) + "\n"))
    with pytest.raises(DataError, match=r"a.txt:2: found 2 columns"):
        read_roles(write("\t".join(row) + "\nw\t-\n" + "\t".join(["w", "-", *row[2:]]) + "\n"))


@pytest.mark.parametrize("text", ["", " \n", "# only a comment\n"])
def test_empty_files(write, text):
    with pytest.raises(DataError, match=r"an empty file|comments or blank lines only"):
        read_roles(write(text))


@pytest.mark.parametrize("placeholder", ["[WORD]", "_"])
def test_words_that_are_left_out(write, placeholder):
    """As in PropBank's skeletons: nothing could be learned or predicted from them."""
    rows = [line.split() for line in CONLL_2012.splitlines()]
    text = "\n".join(" ".join([*r[:3], placeholder, *r[4:]] if len(r) > 7 else r) for r in rows) + "\n"
    for gold in (True, False):
        with pytest.raises(DataError) as error:
            read_roles(write(text, "train.gold_skel"), gold=gold)
        assert f"found {placeholder} in place of 12 of 12 words; expected words" in str(error.value)
        assert "train.gold_skel" in str(error.value)
    with pytest.raises(DataError, match="in place of"):
        read_roles(write(f"{placeholder} - *\n{placeholder} see (V*)\n"), layout="word-predicate")
    read_roles(write(CONLL_2012.replace("Anna", placeholder).replace("Bob", placeholder)))


def test_a_sense_that_is_not_text_is_rejected():
    with pytest.raises(DataError, match=r"sense 3.*give\.01"):
        sentence_of({"words": ["a"], "predicate": 0, "sense": 3})


WITH_AUXILIARY = (
    "0\tAnna\tNNP\t*\t-\t-\t*\t(ARG0*)\n1\thas\tVBZ\t*\thave\thave.01\t(V*)\t*\n2\tleft\tVBN\t*\tleave\tleave.01\t*\t(V*)\n"
    "3\tit\tPRP\t*\t-\t-\t*\t(ARG1*)\n4\tfor\tIN\t*\t-\t-\t*\t*\n\n"
)


def test_auxiliaries_are_left_out_on_request(tmp_path):
    (tmp_path / "a.conll").write_text(WITH_AUXILIARY)
    files = dict.fromkeys(("train", "validation"), str(tmp_path / "a.conll"))
    for auxiliaries in (True, False):
        roles = loaded("srl", **files, auxiliaries=auxiliaries)
        assert [example.predicate for example in roles.part("train")] == [1, 2][not auxiliaries :]
        tags = loaded("tagging", **files, auxiliaries=auxiliaries, format="predicates", scheme="bio")
        assert tags.part("train")[0].names == ("O", "B-V" if auxiliaries else "O", "B-V", "O", "O")
    with pytest.raises(ConfigError, match=r"task\.auxiliaries=false requires task\.format=predicates"):
        loaded("tagging", **files, auxiliaries=False)


def test_roles_are_scored_by_kind_of_predicate(tmp_path):
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
