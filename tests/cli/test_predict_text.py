"""`spen predict`: raw text, output formats that are read back, and the number of listed labels."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_plugins.data.records import records
from spen_plugins.data.schemes import spans
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.runs.predict import tokenised
from spen_plugins.runs.predict.tokenised import TokenisedText, read_text
from tests.cli.conftest import POS, ROLES, train
from tests.loaded import loaded, spen, trained, written


@pytest.fixture(autouse=True)
def change_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)


def parse_words(result) -> list[list[str]]:
    return [json.loads(line)["words"] for line in result.stdout.splitlines()]


# Raw text

SENTENCES = [["Anna", "does", "n't", "know", "Mr.", "Smith", "."], ["He", "left", "!"]]
RAW = "Anna doesn't know Mr. Smith. He left!\n"


def test_raw_text_is_tokenised_by_spacys_rules(runs):
    assert parse_words(spen("predict", runs["ner"], "--text", RAW)) == SENTENCES
    assert parse_words(spen("predict", runs["ner"], "-", input=RAW)) == SENTENCES
    Path("notes.txt").write_text(f"Anna doesn't know Mr. Smith.\n\n{RAW.split('. ')[2]}")
    result = spen("predict", runs["ner"], "notes.txt")
    assert parse_words(result) == SENTENCES
    assert result.stderr == "notes.txt: read as raw text, tokenised by spaCy's rules for en\n"
    german = spen("predict", runs["ner"], "--language", "de", "--text", "Das ist z.B. gut.")
    assert parse_words(german) == [["Das", "ist", "z.B.", "gut", "."]]


def with_language(run: Path, language: str) -> Path:
    """A copy of a run, as if it was trained with `task.language`."""
    copy = Path(shutil.copytree(run, Path(f"in_{language}")))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "task": {**config["task"], "language": language}}))
    return copy


def test_raw_text_is_in_the_language_of_the_run(runs):
    german, text = with_language(runs["ner"], "de"), "Das ist z.B. gut."
    assert parse_words(spen("predict", german, "--text", text)) == [["Das", "ist", "z.B.", "gut", "."]]
    assert "B." in parse_words(spen("predict", german, "--text", text, "--language", "en"))[0]
    Path("one.txt").write_text(text)
    assert spen("predict", german, "one.txt").stderr == "one.txt: read as raw text, tokenised by spaCy's rules for de\n"
    chinese = spen("predict", with_language(runs["ner"], "zh"), "--text", UNSPACED[0])
    assert parse_words(chinese) == [list(UNSPACED[0])] and not chinese.stderr
    unknown = spen("predict", with_language(runs["ner"], "qq"), "--text", text, status=2)
    assert "task.language qq: spaCy has no tokeniser" in unknown.stderr


def test_a_file_in_the_tasks_format_is_no_raw_text(runs):
    Path("words").write_text("Anna\nleft\n.\n")
    result = spen("predict", runs["ner"], "words")
    assert parse_words(result) == [["Anna", "left", "."]]
    assert result.stderr == "words: read as columns: 1 sentence, 3 words\n"


def test_raw_text_without_predicates_is_reported(runs, monkeypatch):
    class Finder:
        task = sp.load(runs["predicates"]).task

        def predict(self, items):
            return [{"tags": ["B-V" if word == "sent" else "O" for word in item["words"]]} for item in items]

    monkeypatch.setattr(tokenised, "load", lambda *_: Finder())
    finder = ("--predicates", runs["predicates"])
    result = spen("predict", runs["srl"], "--text", "Anna left. Yes!", *finder)
    assert not result.stdout and result.stderr == "no predicate found in 2 sentences of raw text\n"
    Path("yes.txt").write_text("Yes, of course, said Anna, and went out.\n")
    result = spen("predict", runs["srl"], "yes.txt", *finder)
    assert not result.stdout and result.stderr.endswith("no predicate found in 1 sentence of raw text\n")
    result = spen("predict", runs["srl"], "--text", "Anna sent it. Yes!", *finder)
    assert result.stdout and not result.stderr
    monkeypatch.setattr(tokenised, "_find_installed_run", lambda: (runs["predicates"], "spen-en"))
    advice = "predicates are found by spen-en; --predicates RUN names a model of another language or domain\n"
    result = spen("predict", runs["srl"], "--text", "Anna left. Yes!")
    assert result.stderr == f"no predicate found in 2 sentences of raw text: {advice}"
    assert not spen("predict", runs["srl"], "--text", "Anna sent it.").stderr
    result = spen("predict", runs["srl"], "--text", "Anna sent it.", "--language", "de")
    assert result.stdout and result.stderr == f"warning: the text is in de, but {advice}"


UNSPACED = ("李四昨天去了上海。", "猫はソファで寝ています。", "แมวนอนอยู่บนโซฟา")

UNSPACED_WORDS = ("李四", "昨天", "去", "了", "上海", "。", "ソファ", "寝て", "います", "แมว", "นอน", "โซฟา")


@pytest.mark.parametrize("text", UNSPACED)
def test_a_text_without_spaces_causes_a_warning(runs, text):
    """The text is still tokenised by English rules."""
    warning = "warning: the text has no spaces between words but is tokenised as English; give its language"
    Path("lines.txt").write_text(f"{text}\n" * 3, encoding="utf-8")
    result = spen("predict", runs["ner"], "lines.txt")
    assert parse_words(result)[0][0] == text and "warning: the words of lines.txt have" in result.stderr
    Path("raw.txt").write_text(f"{text} Anna. {text} So.\n{text} OK.\n", encoding="utf-8")
    for words, stdin in ((["--text", text], None), (["-"], text), (["raw.txt"], None)):
        result = spen("predict", runs["ner"], *words, input=stdin)
        assert warning in result.stderr and len(parse_words(result)[0]) < len(text)
        assert "warning" not in spen("predict", runs["ner"], *words, "--language", "en", input=stdin).stderr
    assert "warning" not in spen("predict", runs["text"], "--text", text).stderr  # it splits characters itself
    assert "warning" not in spen("predict", runs["ner"], "--text", f"Anna wrote {text[:3]} on a wall.").stderr


def test_words_of_a_text_without_spaces_cause_no_warning(runs):
    Path("words.txt").write_text("".join(f"{word}\n" for word in UNSPACED_WORDS), encoding="utf-8")
    assert "warning" not in spen("predict", runs["ner"], "words.txt").stderr
    chinese = spen("predict", runs["ner"], "--text", UNSPACED[0], "--language", "zh")
    assert parse_words(chinese) == [list(UNSPACED[0])] and not chinese.stderr
    for more in ("", "她有 iPhone 15。\n"):  # with a named language, a file of one column is raw text
        Path("zh.txt").write_text(UNSPACED[0] + f"\n{more}", encoding="utf-8")
        chinese = spen("predict", runs["ner"], "zh.txt", "--language", "zh")
        assert parse_words(chinese)[0] == list(UNSPACED[0])
        assert chinese.stderr == "zh.txt: read as raw text, tokenised by spaCy's rules for zh\n"


def test_predicates_are_found_by_a_run(runs):
    sentences = [["Anna", "sent", "it", "."], ["Yes", "!"]]
    tagged = sp.load(runs["predicates"]).predict([{"words": words} for words in sentences])
    predicates = TokenisedText("", finder=runs["predicates"]).predicates(sentences)
    assert predicates == [[entity["start"] for entity in prediction["entities"]] for prediction in tagged]
    with pytest.raises(sp.ConfigError, match=r"--predicates .*: its tags have no predicates; `spen-run predicates`"):
        TokenisedText("", finder=runs["ner"]).predicates(sentences)


def test_predicates_are_found_by_an_installed_plugin(site, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenised, "Registry", lambda: sp.Registry([str(site.path)]))
    message = r"the input has no predicates marked; name a run that finds them.*--predicates RUN.*pip install spen-en"
    with pytest.raises(sp.ConfigError, match=message):
        TokenisedText("").predicates([["Go", "!"]])
    model = tmp_path / "model"
    model.mkdir()
    (model / "predicates").symlink_to(runs["predicates"])
    source = f"""
        from spen_plugins import hookimpl

        @hookimpl
        def spen_model():
            return {{"spen_srl": lambda: {str(model)!r}}}
        """
    site.install("acme", source)
    assert [len(indices) for indices in TokenisedText("").predicates([["Go", "!"], ["Yes"]])] in (
        [0, 0],
        [1, 0],
        [0, 1],
        [1, 1],
    )


def test_each_line_is_a_text_for_labels_of_texts(runs):
    """An empty line is a text, so that line numbers of answers and texts agree."""
    lines = "a match\n\nnothing\n"
    Path("t.txt").write_text(lines)
    calls = ((["t.txt"], None, 3), (["-"], lines, 3), (["--text", "a match"], None, 1))
    for words, stdin, count in calls:
        assert len(spen("predict", runs["text"], *words, input=stdin).stdout.splitlines()) == count


INSIDE = "\u2028\u2029\x85\x0b\x0c\x1c\x1e"
"""Other characters at which `str.splitlines` ends a line."""


def test_no_other_character_ends_a_line(runs):
    lines = [f"a{mark}match" for mark in INSIDE]
    text = "\r\n".join([*lines, "", "the band"]) + "\r\n"
    Path("t.txt").write_bytes(text.encode())
    for words, stdin in ((["t.txt"], None), (["-"], text), (["--text", text], None)):
        result = spen("predict", runs["text"], *words, input=stdin)
        assert result.stdout.count("\n") == len(lines) + 2, result.output
    examples = sp.load(runs["text"]).task.read_text(TokenisedText(text))
    assert [example.text for example in examples] == [*lines, "", "the band"]
    citation = "A. Writer. A\u2028Title. 1999."
    assert len(loaded("implicit.citations", corpus="sample").read_text(TokenisedText(f"{citation}\r\n{citation}"))) == 2
    with pytest.raises(sp.DataError, match="raw text; other formats are read from a file"):
        tokenised.read_standard_input(io.BytesIO("a\u2028match\tsport\n".encode()))


def test_tables_of_texts_are_predicted(runs):
    """Also with one column, and with labels unknown to the run, which evaluation rejects."""
    Path("only.csv").write_text('text\n"a match, at last"\n"two\nlines"\n')
    result = spen("predict", runs["text"], "only.csv", "--format", "csv")
    assert [row[0] for row in csv.reader(io.StringIO(result.stdout))] == ["text", "a match, at last", "two\nlines"]
    Path("other.csv").write_text('id,review\n1,"It was good, really."\n2,A bad film I would say.\n')
    assert "columns id, review" in spen("predict", runs["text"], "other.csv", status=2).stderr  # not raw text
    Path("gold.csv").write_text("text,labels\na match,unknown\n")
    assert len(spen("predict", runs["text"], "gold.csv").stdout.splitlines()) == 1
    assert "found label 'unknown'" in spen("evaluate", runs["text"], "gold.csv", status=2).stderr


def test_the_note_on_raw_text_names_spacy_where_it_tokenised(runs):
    for run, description in (("text", "one text per line"), ("ner", "tokenised by spaCy's rules for en")):
        raw = TokenisedText("We won the match.\n")
        sp.load(runs[run]).task.read_text(raw)
        assert raw.describe() == f"read as raw text, {description}"


def test_options_without_effect_are_rejected(runs):
    Path("words").write_text("Anna\nleft\n.\n")
    Path("tagged").write_text("Anna\tO\nleft\tO\n.\tO\n")
    for words, message in (
        (["tagged", "--language", "de"], "--language de: found no raw text for spaCy to tokenise here"),
        (["words", "--predicates", runs["predicates"]], "found no sentences here that need predicates; omit it"),
        (["--text", "x", "--predicates", "none"], "--predicates none: found no sentences here that need predicates"),
        (["words", "--energy", "--format", "conll"], "--format conll can't hold"),
    ):
        result = spen("predict", runs["ner"], *words, status=2)
        assert message in result.stderr and not result.stdout
    result = spen("predict", runs["text"], "--text", "x", "--language", "de", status=2)
    assert "--language de: found no raw text" in result.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        ([], None, "expected either a FILE (- for standard input) or --text TEXT"),
        (["f", "--text", "x"], None, "expected either a FILE"),
        (["--text", " "], None, "text: found no word"),
        (["--text", "x", "--language", "qq"], None, "--language qq: spaCy has no tokeniser"),
        (
            ["-"],
            "Anna\tO\n",
            "standard input:1: found 'Anna\\tO'; expected raw text; other formats",
        ),
        (["none"], None, "no such file"),
        (["cut"], None, "cut:1: found"),
        (["--text", "x", "--format", "csv"], None, "csv; expected jsonl, conll, docbin for this run's task 'tagging'"),
        (["--text", "x", "--format", "tsv"], None, "found --format tsv;"),
        (["--text", "x", "--format", "docbin"], None, "name a file: --out corpus.spacy"),
        (["--text", "x", "--all"], None, "--all requires label sets, which this run's task 'tagging' does not predict"),
    ],
)
def test_invalid_inputs_are_rejected(runs, words, stdin, message):
    Path("cut").write_text('{"words": ["Anna"\n')
    result = spen("predict", runs["ner"], *words, input=stdin, status=2)
    assert message in result.stderr and "Traceback" not in result.output


def test_raw_text_without_spacy_and_for_other_tasks_is_rejected(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(sp.ConfigError, match=r"requires spaCy's tokeniser: pip install 'spen-plugins\[spacy\]'"):
        TokenisedText("Anna left.").sentences()
    with pytest.raises(sp.ConfigError, match="which the run's task cannot read"):
        read_text(loaded("multilabel", corpus="sample"), TokenisedText("x"))


@pytest.mark.parametrize(("run", "rows"), [("srl", 16), ("ner", 8)])
def test_evaluation_on_the_training_file_or_a_part(runs, run, rows):
    """For tags and roles; `test_changed_data` tests vectors."""
    file = Path("copy.tsv")
    file.write_bytes(runs[run].with_suffix(".txt").read_bytes())
    file_result, part_result = spen("evaluate", runs[run], file), spen("evaluate", runs[run], "--part", "validation")
    assert "is the run's task.train" in file_result.stderr and not part_result.stderr
    assert json.loads(file_result.stdout)["scores"] == json.loads(part_result.stdout)["scores"]
    assert json.loads(part_result.stdout)["protocol"]["split"] == f"all {rows} examples of the run's validation part"


def test_a_file_may_have_its_words_and_tags_in_other_columns(tmp_path):
    """For each command on files, and with an encoding; the run's folder doesn't change."""
    settings = {"columns": '{"pos": 1}', "features": "plus", "method": "compound", "energy": "chain"}
    settings |= {"trainer.epochs": "1", "trainer.epoch_updates": "1"}
    file = written(tmp_path / "train", "Anna\tNNP\tB-PER\nlives\tVBZ\tO\n\n" * 8)
    run = trained("names", tmp_path / "run", data=file, validation=file, **settings)
    Path("usual").write_text("Zoë\tNNP\tB-PER\nlives\tVBZ\tO\n")
    Path("other").write_bytes("1\tB-PER\tZoë\tNNP\n2\tO\tlives\tVBZ\n".encode("cp1252"))
    config = (run / "config.json").read_bytes()
    keys = ["words=2", "task.tags=1", "columns.pos=3", "encoding=cp1252"]
    for command in ("predict", "evaluate", "score", "calibrate"):
        usual, other = spen(command, run, "usual").stdout, spen(command, run, "other", *keys).stdout
        assert other == usual.replace("usual", "other"), command
    conll = spen("predict", run, "other", *keys, "--format", "conll").stdout
    assert [line.split("\t")[2] for line in conll.splitlines() if line] == ["Zoë", "lives"]
    assert (run / "config.json").read_bytes() == config
    for words, message in (
        (["columns.ner=1"], "a run of task 'tagging', whose files take words=, tags=, columns.pos="),
        (["words=1.5"], "'task.words': found 1.5; expected int"),
        (["words=0", "tags=0", "--format", "conll"], "one column for several of words, tags, pos"),
    ):
        assert message in spen("predict", run, "usual", *words, status=2).stderr


def test_raw_text_is_rejected_by_evaluation(runs):
    Path("notes.txt").write_text(RAW)
    assert "expected one of these formats: JSONL" in spen("evaluate", runs["srl"], "notes.txt", status=2).stderr


# Formats


def make_prediction(words: list[str], predicate: int, tags: list[str]) -> dict:
    return {"words": words, "predicate": {"index": predicate, "word": words[predicate]}, "arguments": [], "tags": tags}


def test_roles_are_read_back_from_each_format(runs, tmp_path):
    """All sentences of the file, also without predicates; discontinuous arguments, and verbs of several words."""
    task = sp.load(runs["srl"]).task
    (tmp_path / "in.conll").write_text(ROLES * 2)
    examples = task.read(str(tmp_path / "in.conll"))
    first, other = ["Anna", "sent", "it", "burning", "."], [e.entry.words for e in examples]
    assert len(examples) == 4 and all(list(words) == first for words in other)
    outputs = [
        ["B-A0", "B-V", "B-A1", "B-C-A0", "O"],
        ["O", "B-A1", "I-A1", "B-V", "B-C-V"],
        ["B-A1", "B-V", "I-V", "B-A1", "I-A1"],
        ["B-A0", "B-A0", "O", "B-V", "O"],
    ]
    predictions = [make_prediction(first, e.predicate, tags) for e, tags in zip(examples, outputs, strict=True)]
    for name, writer in task.formats().items():
        (tmp_path / "out").write_text(writer(predictions, examples))
        if name == "props":
            with pytest.raises(sp.DataError, match="without words"):
                read_roles(tmp_path / "out")
            (tmp_path / "out.words").write_text(
                "".join(f"{w}\n" if w else "\n" for w in [*first, "", "Yes", "!", ""] * 2)
            )
            (tmp_path / "out").rename(tmp_path / "out.props")
        sentences = read_roles(tmp_path / ("out.props" if name == "props" else "out")).sentences
        assert [s.words for s in sentences] == [tuple(first), ("Yes", "!")] * 2
        assert [list(p.tags) for s in sentences for p in s.propositions] == outputs, name


def test_a_predicate_without_v_is_marked_and_its_argument_cut(runs):
    task = sp.load(runs["srl"]).task
    example = task.parse({"words": ["a", "b", "c", "d"], "predicate": 1})
    for tags, expected in (
        (["B-A0", "I-A0", "I-A0", "O"], "(A0*)|(V*)|(C-A0*)|*"),
        (["O", "B-A0", "I-A0", "I-A0"], "*|(V*)|(A0*|*)"),
        (["O", "O", "O", "O"], "*|(V*)|*|*"),
        (["B-V", "B-V", "I-V", "B-V"], "*|(V*|*)|*"),
        (["B-V", "I-V", "B-V", "I-V"], "(V*|*)|*|*"),
        (["B-V", "O", "B-C-V", "O"], "*|(V*)|(C-V*)|*"),
    ):
        text = task.formats()["props"]([make_prediction(["a", "b", "c", "d"], 1, tags)], [example])
        assert "|".join(line.split("\t")[1] for line in text.strip().splitlines()) == expected


def test_a_predicate_keeps_the_sense_of_its_file_in_conllu(runs):
    task = sp.load(runs["srl"]).task
    example = task.parse({"words": ["Anna", "gibt"], "predicate": 1, "sense": "geben.01"})
    text = task.formats()["conllu"]([make_prediction(["Anna", "gibt"], 1, ["O", "B-V"])], [example])
    assert "\n2\tgibt\tgeben.01\t_\n" in text


def test_predicates_of_a_sentence_come_together_from_items(runs):
    task = sp.load(runs["srl"]).task
    words = ["Anna", "sent", "it", "burning", "."]
    items = [{"words": words, "predicate": 3}, {"words": words, "predicate": 1}, {"words": words, "predicate": 1}]
    predictions = [make_prediction(words, item["predicate"], ["O"] * 5) for item in items]
    text = task.formats()["conllu"](predictions, [task.parse(item) for item in items])
    assert text.count("\n\n") == 2 and text.count("burning\tburning") == 1


def test_written_predictions_are_read_back_by_the_run(runs):
    """The outputs are read as gold, whatever the net predicts."""
    Path("in").write_text(ROLES)
    predictor = sp.load(runs["srl"])
    predictions = list(predictor.predict_file("in"))
    for form in ("jsonl", "conll", "conllu"):
        spen("predict", runs["srl"], "in", "--format", form, "--out", "out")
        examples = predictor.task.read("out")
        for example, prediction in zip(examples, predictions, strict=True):
            verbs = [(span.start, span.end) for span in spans(prediction["tags"], "bio") if span.type == "V"]
            is_marked = len(verbs) == 1 and verbs[0][0] <= example.predicate < verbs[0][1]
            assert list(example.names) == prediction["tags"] or (form != "jsonl" and not is_marked)


@pytest.mark.parametrize("scheme", ["bio", "iob1"])
@pytest.mark.parametrize("form", ["conll", "docbin", "jsonl"])
def test_spans_are_read_back(tmp_path, form, scheme):
    """A net that learns BIOES writes the files' scheme."""
    path = tmp_path / "in"
    path.write_text(
        "Ann NNP I-PER\nsaw VBD O\nBo NNP I-PER\nCy NNP B-PER\n" if scheme == "iob1" else "Ann NNP B-PER\nsaw VBD O\n"
    )
    columns = {} if form == "docbin" else {"columns": {"pos": 1}}
    task = loaded("tagging", train=str(path), validation=str(path), scheme=scheme, encoding="bioes", **columns)
    [example] = examples = task.read(str(path))
    spans = [{"type": s.type, "start": s.start, "end": s.end} for s in example.spans]
    predictions = [{"words": list(example.entry.words), "tags": list(example.names), "entities": spans}]
    write_predictions(task, form, predictions, examples, tmp_path / "out")
    [restored] = task.read(str(tmp_path / "out"))
    assert restored.names == example.names and restored.entry.words == example.entry.words
    if form == "conll":
        assert restored.columns["pos"].tolist() == example.columns["pos"].tolist()


@pytest.mark.parametrize("form", ["conllu", "docbin", "jsonl"])
@pytest.mark.parametrize("tags", ["upos", "xpos", "upos+xpos"])
def test_tags_are_read_back(tmp_path, form, tags):
    path = tmp_path / "in.conllu"
    path.write_text(POS)
    task = loaded("tagging", train=str(path), validation=str(path), tags=tags)
    [example] = examples = task.read(str(path))
    predictions = [{"words": list(example.entry.words), "tags": list(example.names), "scores": [1, 1]}]
    write_predictions(task, form, predictions, examples, tmp_path / "out")
    [restored] = task.read(str(tmp_path / "out"))
    assert restored.names == example.names and restored.entry.words == example.entry.words


def test_conllu_keeps_the_other_lines_and_fields_of_its_file(tmp_path):
    path = tmp_path / "in.conllu"
    path.write_text(f"# sent_id = 1\n1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_\n{POS}")
    task = loaded("tagging", train=str(path), validation=str(path))
    [example] = examples = task.read_inputs(str(path))
    prediction = {"words": list(example.entry.words), "tags": list(task.read(str(path))[0].names)}
    assert task.formats()["conllu"]([prediction], examples) == path.read_text()


def write_predictions(task: sp.Task, form: str, predictions: list, examples: list, path: Path) -> None:
    if form == "jsonl":
        path.write_text("".join(json.dumps(prediction) + "\n" for prediction in predictions))
        return
    content = task.formats()[form](predictions, examples)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_spans_have_no_field_in_conllu(runs):
    result = spen("predict", runs["ner"], "--text", "x", "--format", "conllu", status=2)
    assert "expected jsonl, conll, docbin for this run's task 'tagging'" in result.stderr
    result = spen("predict", runs["text"], "--text", "x", "--format", "props", status=2)
    assert "found --format props; expected jsonl, csv for this run's task 'text'" in result.stderr


def test_words_with_tabs_can_be_written_only_as_json(runs):
    task = sp.load(runs["ner"]).task
    item = {"words": ["a\tb"], "tags": ["O"], "entities": []}
    with pytest.raises(sp.DataError, match=r"the word 'a\\tb'; expected words without tabs"):
        task.formats()["conll"]([item], [task.parse(item)])


def parse_rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_labels_of_texts_as_csv(runs):
    task = sp.load(runs["text"]).task
    examples = [task.parse({"text": 'the "match", at last'}), task.parse({"text": "two\nlines"})]
    names = task.space.labels
    p = {name: i / 8 for i, name in enumerate(names)}
    predictions = [{"labels": names[:2], "probabilities": p}, {"labels": [], "probabilities": p}]
    assert parse_rows(task.formats()["csv"](predictions, examples)) == [
        ["text", "predicted", *(f"p_{name}" for name in names)],
        ['the "match", at last', ",".join(names[:2]), *(str(p[name]) for name in names)],
        ["two\nlines", "", *(str(p[name]) for name in names)],
    ]


def test_texts_that_a_spreadsheet_would_compute_are_escaped(runs, tmp_path):
    """They are written with an apostrophe and read back unchanged; numbers remain numbers."""
    task = sp.load(runs["text"]).task
    texts = ["=HYPERLINK(1)", "+x", "-x", "@x", "'=x", "'x", "-1.5", "+3", "x=1"]
    expected = ["'=HYPERLINK(1)", "'+x", "'-x", "'@x", "''=x", "'x", "-1.5", "+3", "x=1"]
    prediction = {"labels": [], "probabilities": dict.fromkeys(task.space.labels, 0)}
    content = task.formats()["csv"]([prediction] * len(texts), [task.parse({"text": text}) for text in texts])
    assert [row[0] for row in parse_rows(content)[1:]] == expected
    (tmp_path / "out.csv").write_text(content)
    assert [cells[0] for _, cells in records(tmp_path / "out.csv", ",")][1:] == texts


TABLES = {
    "table.csv": 'id;text;labels;note\n7;"one\nline; more";news;=1+x\n8;second;;\n',
    "table.tsv": "id\ttext\tlabels\tnote\n7\tone line\tnews\t=1+x\n8\tsecond\t\t\n",
    "table.jsonl": '{"id": 7, "text": "one", "labels": ["news"], "note": "=1+x"}\n{"text": "second", "id": 8}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_a_users_columns_are_kept_beside_predictions(runs, name):
    """In their order, with gold labels, with a probability for every label, and without a note on the likeliest."""
    Path(name).write_text(TABLES[name])
    result = spen("predict", runs["text"], name, "--format", "csv", "--all")
    labels = sp.load(runs["text"]).task.space.labels
    head, *rows = parse_rows(result.stdout)
    assert head == ["id", "text", "labels", "note", "predicted", *(f"p_{label}" for label in labels)]
    assert [(row[0], row[3]) for row in rows] == [("7", "'=1+x"), ("8", "")]
    predictions = [json.loads(line) for line in spen("predict", runs["text"], name, "--all").stdout.splitlines()]
    assert [[float(cell) for cell in row[5:]] for row in rows] == [
        [prediction["probabilities"][label] for label in labels] for prediction in predictions
    ]
    assert [row[4] for row in rows] == [",".join(prediction["labels"]) for prediction in predictions]
    Path("again.csv").write_text(result.stdout)
    second_output = parse_rows(spen("predict", runs["text"], "again.csv", "--format", "csv").stdout)
    assert second_output[0] == [*head, "predicted_", *(f"p_{label}_" for label in labels)]
    assert [row[: len(head)] for row in second_output[1:]] == rows


def test_parquet_keeps_its_columns_and_pandas_reads_them(runs):
    pandas, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = pa.table({"text": ["one\nline", "two"], "tags": [["a", "b"], []], "id": [7, None]})
    pytest.importorskip("pyarrow.parquet").write_table(table, "x.parquet")
    Path("x.csv").write_text(spen("predict", runs["text"], "x.parquet", "--format", "csv").stdout)
    frame = pandas.read_csv("x.csv")
    assert list(frame.columns[:4]) == ["text", "tags", "id", "predicted"] and len(frame) == 2
    assert (
        frame.text[0] == "one\nline"
        and frame.tags[0] == '["a", "b"]'
        and frame.filter(regex="^p_").dtypes.eq("f8").all()
    )


def test_texts_without_columns_are_written_beside_predictions(runs):
    Path("lines.txt").write_text("a match, at last\n\nthe end\n")
    rows = parse_rows(spen("predict", runs["text"], "lines.txt", "--format", "csv").stdout)
    assert [row[0] for row in rows] == ["text", "a match, at last", "", "the end"]
    rows = parse_rows(spen("predict", runs["text"], "--text", "x", "--format", "csv").stdout)
    assert rows[0][:2] == ["text", "predicted"] and rows[1][0] == "x"


def test_columns_without_a_header_are_kept_beside_predictions(runs):
    Path("x.csv").write_text("7,one line\n8,second\n")
    rows = parse_rows(spen("predict", runs["text"], "x.csv", "text=2", "--format", "csv").stdout)
    assert rows[0][:3] == ["column_1", "text", "predicted"]
    assert [row[:2] for row in rows[1:]] == [["7", "one line"], ["8", "second"]]


def test_labels_with_the_separator_are_found_before_prediction(runs):
    """For all labels, even if none is predicted; JSON lines can contain them."""
    label = sp.load(runs["text"]).task.space.labels[-1]
    Path("x.csv").write_text("text\none\n")
    words = ("predict", runs["text"], "x.csv", f"separator={label[1:]}")
    message = f'found label {label!r}; expected labels without the separator {label[1:]!r}; pass "separator=;", or use'
    assert message in spen(*words, "--format", "csv", status=2).stderr
    assert json.loads(spen(*words).stdout)["probabilities"]


def test_label_sets_as_csv():
    task = loaded("multilabel", corpus="sample")
    names = task.space.labels
    p = dict.fromkeys(names, 0.5)
    predictions = [{"labels": [names[1]], "probabilities": p}, {"labels": [], "probabilities": p}]
    rows = parse_rows(task.formats()["csv"](predictions, [None, None]))
    zeros, halves = ["0"] * len(names), ["0.5"] * len(names)
    assert rows[0] == [*(f"predicted_{name}" for name in names), *(f"p_{name}" for name in names)]
    assert rows[1:] == [["0", "1", *zeros[2:], *halves], [*zeros, *halves]]


def test_features_are_kept_beside_predicted_label_sets(tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("colour,size,l_a,l_b,p_l_a\n" + "red,1.50,1,0,3\n" * 6 + "blue,2,0,1,4\n" * 6)
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"train": [0, 1, 6, 7], "validation": [2, 8], "test": [3, 9]}))
    task = loaded("multilabel", file=str(table), split=str(split), labels=["l_a", "l_b"])
    examples = task.read(str(table))
    predictions = [{"labels": ["l_b"], "probabilities": {"l_b": 0.75, "l_a": 0.125}}] * 12
    head, *rows = parse_rows(task.formats()["csv"](predictions, examples))
    assert head == ["colour", "size", "l_a", "l_b", "p_l_a", "predicted_l_a", "predicted_l_b", "p_l_a_", "p_l_b_"]
    assert rows[0] == ["red", "1.50", "1", "0", "3", "0", "1", "0.125", "0.75"] and len(rows) == 12


# Labels that are listed


def test_ten_labels_are_listed_or_all(tmp_path):
    labels = [f"l{i:02}" for i in range(14)]
    text = "".join(f"text {i}\t{name}\n" for i, name in enumerate(labels))
    run = train("texts", tmp_path, text, **{"features.buckets": "16", "features.hidden": "[8]"})
    result = spen("predict", run, "--text", "x")
    assert len(json.loads(result.stdout)["probabilities"]) >= 10
    assert result.stderr == "probabilities of the 10 likeliest of 14 labels, and of those predicted; --all lists all\n"
    result = spen("predict", run, "--text", "x", "--all")
    assert sorted(json.loads(result.stdout)["probabilities"]) == labels and result.stderr == ""


def test_completion_of_a_shell(monkeypatch):
    environment = {"COMP_WORDS": "spen predict --pred", "COMP_CWORD": "2", "_SPEN_COMPLETE": "complete_bash"}
    result = spen(prog_name="spen", env=environment)
    assert result.stdout.split() == ["--predicates"]
    assert "--install-completion" in spen("--help").stdout
