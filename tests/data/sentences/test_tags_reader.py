"""Tagged sentences in JSON lines and spaCy's DocBin, and the errors of unknown formats."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spen_plugins.builtin.tasks.tags.tagging import Tagging
from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.sentences.tagged import read_tagged, read_words
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import loaded

WORDS = [["Anna", "lives", "in", "New", "York", "."], ["Yes", "!"]]
POS = [["PROPN", "VERB", "ADP", "PROPN", "PROPN", "PUNCT"], ["INTJ", "PUNCT"]]
BIO = [("B-PER", "O", "O", "B-LOC", "I-LOC", "O"), ("O", "O")]
IOB1 = [("I-PER", "O", "O", "I-LOC", "I-LOC", "O"), ("O", "O")]
config = Tagging.Config


def load_tagger(path: Path, **fields) -> Tagging:
    return loaded("tagging", train=str(path), validation=str(path), **fields)


def write_doc_bin(path: Path, sentences: bool = True, **layers: bool) -> Path:
    """One doc with both sentences and a line break between them, as spaCy keeps it."""
    present = {"pos": True, "tag": False, "ents": True} | layers
    words = [*WORDS[0], "\n", *WORDS[1]]
    pos = [*POS[0], "SPACE", *POS[1]]
    settings: dict = {}
    if present["pos"]:
        settings["pos"] = pos
    if present["tag"]:
        settings["tags"] = [f"X{name}" for name in pos]
    if present["ents"]:
        settings["ents"] = [*BIO[0], "O", *BIO[1]]
    if sentences:
        settings["sent_starts"] = [i in (0, 7) for i in range(len(words))]
    doc = Doc(spacy.blank("en").vocab, words=words, **settings)
    DocBin([*DocBin().attrs, "LEMMA", "POS", "TAG", "DEP", "ENT_IOB", "ENT_TYPE", "SENT_START"], docs=[doc]).to_disk(
        path
    )
    return path


def test_entities_of_a_docbin_in_any_scheme(tmp_path):
    for name in ("corpus.spacy", "corpus"):
        path = write_doc_bin(tmp_path / name)
        tagged = read_tagged(config(scheme="bio"), path, gold=True)
        assert tagged.format == "DocBin" and [s.tags for s in tagged.sentences] == BIO
        assert [list(s.words) for s in tagged.sentences] == WORDS
    assert [s.tags for s in read_tagged(config(scheme="iob1"), path, gold=True).sentences] == IOB1
    bioes = read_tagged(config(scheme="bioes"), path, gold=True).sentences[0].tags
    assert bioes == ("S-PER", "O", "O", "B-LOC", "E-LOC", "O")
    task = load_tagger(path, scheme="bio")
    assert task.space.tags == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert task.notes()[0] == f"{path}: read as DocBin: 2 sentences, 8 words"


def test_tags_of_a_docbin(tmp_path):
    path = write_doc_bin(tmp_path / "a", tag=True)
    assert [list(s.tags) for s in read_tagged(config(), path, gold=True).sentences] == POS
    combined = read_tagged(config(tags="upos+xpos", columns={"coarse": "upos"}), path, gold=True).sentences[1]
    assert combined.tags == ("INTJ+XINTJ", "PUNCT+XPUNCT") and combined.columns == {"coarse": ("INTJ", "PUNCT")}
    fine = write_doc_bin(tmp_path / "b", pos=False, tag=True)
    assert read_tagged(config(), fine, gold=True).sentences[1].tags == ("XINTJ", "XPUNCT")


def test_docs_without_sentences_are_read_whole(tmp_path):
    [sentence] = read_tagged(config(scheme="bio"), write_doc_bin(tmp_path / "a", sentences=False), gold=True).sentences
    assert list(sentence.words) == [*WORDS[0], *WORDS[1]] and sentence.tags == (*BIO[0], *BIO[1])


def test_a_docbin_without_annotation_can_be_predicted(tmp_path):
    path = write_doc_bin(tmp_path / "a", pos=False, ents=False)
    assert [s.tags for s in read_tagged(config(scheme="bio"), path, gold=False).sentences] == [None, None]
    with pytest.raises(DataError, match=r"doc 1, 'Anna lives .*', without ents; .* set task\.tags to another field"):
        read_tagged(config(scheme="bio"), path, gold=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"without upos of 'here'; expected one for every token$"),
        ({"scheme": "bio"}, r"without ents of 'here'; .*outside"),
    ],
)
def test_a_word_without_annotation_has_no_tag(tmp_path, settings, message):
    """spaCy's missing values: "" as the part of speech; entities neither inside nor outside."""
    doc = Doc(spacy.blank("en").vocab, words=["Anna", "lives", "here", "Yes"], pos=["PROPN", "VERB", "", "INTJ"])
    doc.set_ents([doc[:1]], missing=[doc[2:3]], default="outside")
    for token, starts in zip(doc, (True, False, False, True), strict=True):
        token.is_sent_start = starts
    DocBin(["POS", "ENT_IOB", "ENT_TYPE", "SENT_START"], docs=[doc]).to_disk(tmp_path / "a")
    with pytest.raises(DataError, match=rf"found doc 1, …Anna lives here Yes…, {message}"):
        read_tagged(config(**settings), tmp_path / "a", gold=True)
    assert [s.tags is None for s in read_tagged(config(**settings), tmp_path / "a", gold=False).sentences] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tags": "pos"}, r"task\.tags: found 'pos'; expected a field of spaCy's docs: form, .* Did you mean 'upos'"),
        ({"tags": "ents"}, r"set task\.scheme=bio"),
        ({"tags": 1}, r"task\.tags: found 1, but .* is read as DocBin; expected the name of a field"),
    ],
)
def test_fields_of_a_docbin_are_checked(tmp_path, fields, message):
    with pytest.raises(ConfigError, match=message):
        read_tagged(config(**fields), write_doc_bin(tmp_path / "a"), gold=True)


def test_a_damaged_docbin_and_one_without_spacy(tmp_path, monkeypatch):
    path = write_doc_bin(tmp_path / "a")
    (tmp_path / "cut").write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=r"cut: found a damaged file .* expected a DocBin"):
        read_tagged(config(), tmp_path / "cut", gold=True)
    stored = DocBin().from_disk(write_doc_bin(tmp_path / "b", tag=True))
    stored.strings.discard(f"X{POS[0][0]}")
    stored.to_disk(tmp_path / "lacks")
    with pytest.raises(DataError, match=r"lacks: found doc 1 with a string that the file lacks"):
        read_tagged(config(tags="xpos"), tmp_path / "lacks", gold=True)
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    with pytest.raises(ConfigError, match=r"which requires spaCy: pip install 'spen-plugins\[spacy\]'"):
        read_tagged(config(), path, gold=True)


def lines(*items) -> str:
    return "\n".join(json.dumps(item) for item in items) + "\n"


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines({"words": WORDS[0], "tags": BIO[0]}, {"words": WORDS[1], "tags": BIO[1]}))
    tagged = read_tagged(config(scheme="bio"), path, gold=True)
    assert tagged.format == "JSONL" and [s.tags for s in tagged.sentences] == BIO
    entities = [{"type": "LOC", "start": 3, "end": 5, "score": 0.9}, {"type": "PER", "start": 0, "end": 1}]
    item = {"words": WORDS[0], "tags": ["S-PER", "O", "O", "B-LOC", "E-LOC", "O"], "entities": entities}
    path.write_text(lines(item, {"words": WORDS[1], "tags": ["O", "O"], "entities": []}))
    for scheme, tags in (("bio", BIO), ("iob1", IOB1)):
        assert [s.tags for s in read_tagged(config(scheme=scheme), path, gold=True).sentences] == tags
    path.write_text(lines({"words": WORDS[1], "tags": POS[1], "columns": {"x": ["1", "2"]}}))
    assert read_tagged(config(columns={"x": 0}), path, gold=True).sentences[0].columns == {"x": ("1", "2")}


BAD = {
    "no tags": (lines({"words": ["a"]}), {}, 1, "a sentence without tags"),
    "no column": (lines({"words": ["a"], "tags": ["X"]}), {"columns": {"pos": 1}}, 1, "a sentence without pos"),
    "shared": (
        lines(
            {
                "words": ["a", "b"],
                "entities": [{"type": "X", "start": 0, "end": 2}, {"type": "Y", "start": 1, "end": 2}],
            }
        ),
        {"scheme": "bio"},
        1,
        "X and Y, which share word 1",
    ),
    "outside": (
        lines({"words": ["a"], "entities": [{"type": "X", "start": 0, "end": 2}]}),
        {"scheme": "bio"},
        1,
        "an exclusive end",
    ),
    "infinity": ('{"words": ["a"], "tags": [Infinity]}\n', {}, 1, "Infinity is not a JSON number"),
    "cut": (lines({"words": ["a"], "tags": ["X"]}) + '{"words": ["a"', {}, 2, "not JSON"),
    "raw": ("Anna lives here.\nYes!\nNo.\n", {}, 1, r"formats: JSONL .*DocBin.*CoNLL-U.*columns"),
    "array": ('[{"words": ["a"]}]\n', {}, None, "item 1 with a sentence without tags in the keys words"),
    "keys": (lines({"sentence": ["a"], "ner": ["O"]}), {}, 1, "the keys sentence, ner; expected words or tokens"),
    "pretty": ('{\n  "words": [\n', {}, 1, "a JSON object over several lines; expected one object per line"),
    "numbers": (lines({"tokens": ["a"], "ner_tags": ["a", 1]}), {"scheme": "bio"}, 1, "tags"),
    "past the end": (
        lines({"text": "a b", "spans": [[2, 9, "X"]]}),
        {"scheme": "bio"},
        1,
        r"the span \[2, 9, 'X'\] in",
    ),
    "blank": (lines({"text": "a  b", "spans": [[1, 2, "X"]]}), {"scheme": "bio"}, 1, "contains no word"),
    "rejected": (lines({"text": "a", "spans": [], "answer": "reject"}), {"scheme": "bio"}, 1, "select"),
    "no such column": ("sentence,word,x\n1,a,b\n", {}, 1, "columns sentence, word, x; expected one of pos"),
    "no tag": ("sentence,word,tag\n1,a,O\n1,b,\n", {}, 3, "an empty tag"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case):
    text, fields, line, message = BAD[case]
    (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_tagged(config(**fields), tmp_path / "a", gold=True)
    assert caught.value.line == line


def test_conllu_is_recognised_by_its_content(tmp_path):
    path = tmp_path / "plain"
    path.write_text("1\tAnna\t_\tPROPN\tNNP\t_\t0\troot\t_\t_\n")
    assert read_tagged(config(), path, gold=True).sentences[0].tags == ("PROPN",)
    assert read_tagged(config(words=1, tags=4), path, gold=True).sentences[0].tags == ("NNP",)


def test_learning_span_tags_as_plain_tags_raises_a_warning(tmp_path):
    path = tmp_path / "names.conll"
    path.write_text("Anna B-PER\nWeber E-PER\nsleeps O\n\nBob S-PER\n", encoding="utf-8")
    [warning] = [note for note in load_tagger(path).notes() if "of spans" in note]
    assert "those of spans (B-PER, E-PER, O, S-PER)" in warning and "`spen-run names`" in warning
    assert not any("of spans" in note for note in load_tagger(path, scheme="bioes").notes())
    path.write_text("she O\nsaw V\nit O\n", encoding="utf-8")  # Twitter's pronouns
    assert not any("of spans" in note for note in load_tagger(path).notes())


def test_mostly_blank_tags_raise_a_warning(tmp_path):
    path = tmp_path / "a"
    path.write_text("Anna\tNNP\nlives\t_\nhere\t_\n")
    warning = next(note for note in load_tagger(path).notes() if "'_'" in note)
    assert warning.startswith(f"warning: 2 of 3 tags in {path} have '_', CoNLL's sign for no value")
    path.write_text("Anna\tNNP\nlives\t_\n")
    assert not any("warning" in note and "'_'" in note for note in load_tagger(path).notes())


def test_a_part_of_speech_without_a_value_is_warned_of(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("1\tAnna\t_\tPROPN\t_\tCase=Nom\t0\t_\t_\t_\n2\tlebt\t_\t_\tVVFIN\t_\t1\t_\t_\t_\n")
    for field, count in ((None, 1), ("xpos", 1), ("upos+xpos", 2), ("upos+feats", 1)):
        warnings = [note for note in load_tagger(path, tags=field).notes() if "'_', CoNLL's sign for no value" in note]
        assert warnings[0].startswith(f"warning: {count} of 2 tags in {path} have '_'")
    assert not any("'_'" in note for note in load_tagger(path, tags="feats").notes())


def test_a_file_whose_tags_are_all_unknown_is_rejected(tmp_path):
    path = tmp_path / "a"
    path.write_text("Anna\tNNP\nlives\tVBZ\n")
    task = load_tagger(path)
    (tmp_path / "raw").write_text("She left\n")
    with pytest.raises(
        DataError, match="tags such as left, which the run does not know; expected tags such as NNP, VBZ"
    ):
        task.read(str(tmp_path / "raw"))


@pytest.mark.parametrize("rows", [1, 3])
def test_ten_thousand_columns(tmp_path, rows):
    """They are read if every line has them; the error names a line with fewer."""
    path = tmp_path / "a"
    line = "\t".join(["w", *["x"] * 9998, "T"]) + "\n"
    path.write_text(line * rows)
    [sentence] = read_tagged(config(), path, gold=True).sentences
    assert sentence.tags == ("T",) * rows
    path.write_text(line * 2 + "w\tT\n")
    with pytest.raises(DataError, match=r"a:3: found 2 columns; expected 10000"):
        read_tagged(config(), path, gold=True)


@pytest.mark.parametrize("text", ["", "\n\n", "word,tag\nAnna,NNP\n", "word;tag\nAnna;NNP\n"])
def test_empty_files_and_other_separators(tmp_path, text):
    (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match=r"a: found an empty file|a:1: found 1 column, so column -1 for tags is also"):
        read_tagged(config(), tmp_path / "a", gold=True)


CONLLU = "1\tAnna\t_\tPROPN\tNNP\t_\t0\troot\t_\t_\n2\tleft\t_\tVERB\tVBD\t_\t1\tx\t_\t_\n"
TRAINED = {
    "fields": {"tags": "upos"},
    "two fields": {"tags": "upos+xpos", "words": "form"},
    "entities of a DocBin": {"tags": "ents", "scheme": "bio"},
    "numbers": {"tags": 1},
    "numbers of wider files": {"tags": 3, "words": 1},
    "the last column": {"scheme": "bio"},
}


@pytest.mark.parametrize("case", TRAINED)
def test_words_to_predict_are_read_from_any_format(tmp_path, case):
    """Whatever format the tags were learned from."""
    places = config(**TRAINED[case])
    texts = {"a.conllu": CONLLU, "a.jsonl": lines({"words": ["Anna", "left"]})}
    if places.words != 1:
        texts |= {"a": CONLLU, "b": "Anna\nleft\n", "c": "Anna\tB-PER\nleft\tO\n", "d": "Anna\tNNP\nleft\tVBD\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert [s.words for s in read_words(places, tmp_path / name).sentences] == [("Anna", "left")], name
    assert [list(s.words) for s in read_words(places, write_doc_bin(tmp_path / "b.spacy")).sentences] == WORDS


def test_columns_that_a_run_uses_have_to_be_in_a_file_to_predict(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    (tmp_path / "a.conll").write_text("Anna\tNNP\nleft\tVBD\n")
    with pytest.raises(ConfigError, match=r"task\.columns\.pos: found 1, but .* is read as CoNLL-U; expected the name"):
        read_words(config(columns={"pos": 1}), tmp_path / "a.conllu")
    with pytest.raises(
        ConfigError,
        match=r"task\.columns\.pos: found 'xpos', but .* is read as columns; expected the number of a column",
    ):
        read_words(config(columns={"pos": "xpos"}), tmp_path / "a.conll")
    with pytest.raises(
        ConfigError, match=r"task\.words: found 'lemma', but .* is read as columns; expected the number of a column"
    ):
        read_words(config(words="lemma"), tmp_path / "a.conll")
    [sentence] = read_words(config(tags="upos", columns={"pos": "xpos"}), tmp_path / "a.conllu").sentences
    assert sentence.columns == {"pos": ("NNP", "VBD")}


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_unknown_types_are_named_by_the_tags_of_the_file(tmp_path, scheme):
    """Not by the tags of the training encoding."""
    prefix = "S" if scheme == "bioes" else "I" if scheme == "iob1" else "B"
    (tmp_path / "a").write_text(f"Anna\t{prefix}-PER\nleft\tO\n")
    task = load_tagger(tmp_path / "a", scheme=scheme, encoding="bioes")
    tags = "B-PER, E-PER, I-PER, O, S-PER" if scheme == "bioes" else "B-PER, I-PER, O"
    (tmp_path / "b").write_text(f"Acme\t{prefix}-ORG\n")
    with pytest.raises(
        DataError, match=f"tags such as {prefix}-ORG, which the run does not know; expected tags such as {tags};"
    ):
        task.read(str(tmp_path / "b"))
    (tmp_path / "b").write_text(f"Acme\t{prefix}-ORG\n\nAcme\t{prefix}-ORG\nAcme\t{prefix}-LOC\n")
    warning = f"has tags such as {prefix}-LOC, {prefix}-ORG, but none of the run's tags ({tags}). If"
    for read in (task.read, task.read_inputs):
        read(str(tmp_path / "b"))
        assert warning in task.notes()[1]


def test_a_tagger_predicts_but_does_not_evaluate_files_with_other_tags(tmp_path):
    (tmp_path / "a.conll").write_text("Anna\tB-PER\nleft\tO\n")
    (tmp_path / "a.conllu").write_text(CONLLU)
    names, pos = load_tagger(tmp_path / "a.conll", scheme="bio"), load_tagger(tmp_path / "a.conllu", tags="upos")
    for task, other in ((names, tmp_path / "a.conllu"), (pos, tmp_path / "a.conll")):
        [example] = task.read_inputs(str(other))
        assert example.entry.words == ("Anna", "left") and example.names is None
    assert names.notes() and not any("warning" in note for note in names.notes())
    with pytest.raises(DataError, match="found the tag 'PROPN'; expected O, B-X"):
        names.read(str(tmp_path / "a.conllu"))
    with pytest.raises(ConfigError, match=r"task\.tags: found 'upos', but .* is read as columns"):
        pos.read(str(tmp_path / "a.conll"))
    (tmp_path / "raw").write_text("She left\n")
    with pytest.raises(
        DataError, match="tags such as left, which the run does not know; expected tags such as B-PER, I-PER, O"
    ):
        names.read_inputs(str(tmp_path / "raw"))
    (tmp_path / "a").write_text("Anna\tB-PER\nleft\tO\nYork\tI-PER\n")
    plain, raw = load_tagger(tmp_path / "a"), tmp_path / "raw"
    message = "none of the run's tags (B-PER, I-PER, O). If it is raw text, pass it by --text or on standard input"
    message += "; words= and tags= name other columns than the run's"
    for text, is_warned in (("She left\nBob sleeps\n", True), ("She left\nBob B-PER\n", False), ("Bob _\n", False)):
        raw.write_text(text)
        for task, read in ((names, names.read_inputs), (plain, plain.read), (plain, plain.read_inputs)):
            read(str(raw))
            warnings = [note for note in task.notes() if "If it is raw text" in note]
            assert warnings == [f"warning: {raw} has tags such as left, sleeps, but {message}"] * is_warned


def test_sentences_without_gold_may_have_any_format(tmp_path):
    (tmp_path / "a.conll").write_text("Anna\n\nBo\n")
    (tmp_path / "a.conllu").write_text(CONLLU)
    task = load_tagger(tmp_path / "a.conllu", tags="upos", unlabelled=str(tmp_path / "a.conll"))
    assert [example.names for example in task.part("train")] == [("PROPN", "VERB"), None, None]


OFFSETS = {
    "doccano": {"id": 4, "text": "Anna lives in New York.", "label": [[0, 4, "PER"], [14, 22, "LOC"]]},
    "doccano's entities": {
        "text": "Anna lives in New York.",
        "entities": [
            {"label": "LOC", "start_offset": 14, "end_offset": 22},
            {"label": "PER", "start_offset": 0, "end_offset": 4},
        ],
    },
    "prodigy": {
        "text": "Anna lives in New York.",
        "tokens": [{"text": word, "id": i} for i, word in enumerate(WORDS[0])],
        "spans": [{"start": 0, "end": 4, "label": "PER"}, {"start": 14, "end": 22, "label": "LOC"}],
        "answer": "accept",
    },
    "spacy": ["Anna lives in New York.", {"entities": [[0, 4, "PER"], [14, 22, "LOC"]]}],
    "label studio": {
        "data": {"text": "Anna lives in New York."},
        "annotations": [
            {
                "result": [
                    {"value": {"start": 0, "end": 4, "text": "Anna ", "labels": ["PER"]}},
                    {"value": {"start": 14, "end": 22, "labels": ["LOC"]}},
                ]
            }
        ],
    },
    "datasets": {"tokens": WORDS[0], "ner_tags": BIO[0]},
}


@pytest.mark.parametrize("shape", ["lines", "list"])
@pytest.mark.parametrize("tool", OFFSETS)
def test_json_as_other_tools_write_it(tmp_path, tool, shape):
    path = tmp_path / "a.json"
    path.write_text(lines(OFFSETS[tool]) * 2 if shape == "lines" else json.dumps([OFFSETS[tool]] * 2, indent=1))
    tagged = read_tagged(config(scheme="bio"), path, gold=True)
    assert [(list(s.words), s.tags) for s in tagged.sentences] == [(WORDS[0], BIO[0])] * 2
    assert read_words(config(scheme="bio"), path).sentences[0].words == tuple(WORDS[0])
    assert read_strata(path, ColumnKeys()).labels.tolist() == [[True] * 4] * 2


def test_spans_inside_words_are_widened_with_a_warning(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines({"text": "Anna's in New York ", "label": [[0, 6, "PER"], [10, 17, "LOC"]]}))
    tagged = read_tagged(config(scheme="bio"), path, gold=True)
    assert tagged.sentences[0].tags == ("B-PER", "I-PER", "O", "B-LOC", "I-LOC")
    assert tagged.description.endswith(
        "warning: 1 span was widened to word boundaries, such as 'New Yor' to 'New York'"
    )


def test_spans_in_text_without_blanks_are_told_of_the_language(tmp_path):
    path, text = tmp_path / "a.jsonl", "李雷昨天去了广州。"
    path.write_text(lines({"text": text, "label": [[0, 2, "PER"]]}))
    hint = r"; the text is tokenised as English: set task\.language=ja \(or zh, th, …\)$"
    english = read_tagged(config(scheme="bio"), path, gold=True)
    assert re.search(f"such as '李雷' to '{text[:-1]}'{hint}", english.description)
    path.write_text(lines({"text": text, "label": [[0, 2, "PER"], [6, 8, "LOC"]]}))
    with pytest.raises(DataError, match=f"PER and LOC, which share word 0; expected separate entities{hint}"):
        read_tagged(config(scheme="bio"), path, gold=True)
    chinese = read_tagged(config(scheme="bio", language="zh"), path, gold=True)
    assert "warning" not in chinese.description and chinese.sentences[0].tags[:2] == ("B-PER", "I-PER")
    path.write_text(lines({"text": "Anna left", "label": [[0, 4, "PER"], [0, 6, "PER"]]}))
    with pytest.raises(DataError, match=r"separate entities$"):
        read_tagged(config(scheme="bio"), path, gold=True)


def test_offsets_that_contradict_the_text_of_their_span_are_refused(tmp_path):
    value = {"start": 3, "end": 7, "text": "Anna", "labels": ["PER"]}  # counted in UTF-16
    item = {"data": {"text": "👍 Anna fährt."}, "annotations": [{"result": [{"value": value}]}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([item]))
    with pytest.raises(
        DataError, match=r"item 1 with the span 'Anna' from 3 to 7, where the text has 'nna '; expected"
    ):
        read_tagged(config(scheme="bio"), path, gold=True)
    assert read_words(config(), path).sentences[0].words == ("👍", "Anna", "fährt", ".")


def test_lists_under_the_users_own_keys(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines({"forms": WORDS[0], "types": BIO[0], "pos": POS[0]}))
    tagged = read_tagged(config(scheme="bio", words="forms", tags="types", columns={"p": "pos"}), path, gold=True)
    assert tagged.sentences[0].tags == BIO[0] and tagged.sentences[0].columns == {"p": tuple(POS[0])}
    path.write_text(lines({"tokens": ["a"], "ner_tags": [1]}))
    with pytest.raises(DataError, match=r"a\.jsonl:1: found the tag '1'; expected O, B-X, I-X under bio"):
        load_tagger(path, scheme="bio")


@pytest.mark.parametrize("second", ["", "Sentence: 1"])
def test_csv_with_one_token_per_row(tmp_path, second):
    path = tmp_path / "a.csv"
    path.write_text(
        f'Sentence #,Word,POS,Tag\nSentence: 1,Anna,NNP,B-PER\n{second},",",PU,O\nSentence: 2,Bern,NNP,B-LOC\n'
    )
    tagged = read_tagged(config(scheme="bio", columns={"p": "pos"}), path, gold=True)
    assert tagged.format == "CSV of tokens"
    assert [(s.words, s.tags) for s in tagged.sentences] == [(("Anna", ","), ("B-PER", "O")), (("Bern",), ("B-LOC",))]
    assert tagged.sentences[0].columns == {"p": ("NNP", "PU")} and tagged.sentences[1].line_of(0) == 4
    assert read_tagged(config(), path, gold=True).sentences[0].tags == ("NNP", "PU")
    assert len(read_strata(path, ColumnKeys()).labels) == 2
