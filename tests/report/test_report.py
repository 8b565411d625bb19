"""`spen report`: the page shows what the run folders contain, loads nothing, and renders in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.report.report_errors import Pair, Piece, count_label_errors, count_tag_errors, mark_pieces
from spen_plugins.report.report_outputs import Output, Outputs
from spen_plugins.spaces import LabelSet, TagSequence
from spen_plugins.task import Shown, Task
from tests.loaded import spen, trained

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(HTMLParser):
    """Tables as lists of rows, by their heading; tags with attributes; text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.heading = self.text = ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)
        if tag in ("h2", "h3", "h4", "summary"):
            self.heading = ""
        if tag == "tr":
            self.tables.setdefault(self.heading, []).append([])
        if tag in ("td", "th"):
            self.tables[self.heading][-1].append("")

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if {"h2", "h3", "h4", "summary"} & set(self.open):
            self.heading += data
        if {"td", "th"} & set(self.open):
            self.tables[self.heading][-1][-1] += data


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for seed in ("0", "1"):
        small = {"trainer.epochs": "2", "features.hidden": "[16]", "seed": seed}
        trained("labels", folder / "seal" / seed, **small, **{"energy_loss.samples": "2", "energy.hidden": "4"})
        trained("labels", folder / "ce" / seed, **small, method="cross_entropy")
    trained("srl_seal", folder / "srl", **{"trainer.epochs": "1", "energy_loss.samples": "2"})
    return folder


def make_report(*words: object) -> Page:
    return Page(Path(spen("report", *words).stdout.strip()).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(runs) -> Page:
    return make_report(runs / "seal", f"<b>ce</b>={runs / 'ce'}", "--out", runs / "page.html", "--examples", 3)


@pytest.fixture(scope="module")
def roles(runs) -> Page:
    return make_report(runs / "srl", "--examples", 4)


def read_metrics(run: Path) -> dict:
    return sp.RunFolder(run).metrics()


def test_scores_match_the_run_folders(page, roles, runs):
    for part in ("validation", "test"):
        head, *rows = page.tables[part.capitalize()]
        assert rows[-1][0] == "constant predictor"
        for row, group in zip(rows[:-1], ("seal", "ce"), strict=True):
            cells = dict(zip(head, row, strict=True))
            a, b = (read_metrics(runs / group / seed)[part] for seed in "01")
            assert cells["seeds"] == "2" and set(head[2:]) == set(a) - {"ranking", "nll"}
            assert page.tables[f"{row[0]}: nll, {part}, each (1)"][1][0] == "nats"
            for name in head[2:]:  # of two values the standard error is half their distance
                mean, error = 50 * (a[name] + b[name]), 50 * abs(a[name] - b[name])
                assert cells[name] == f"{mean:.2f} ± {error:.2f}"
    head, row, constant = roles.tables["Test"]
    assert constant == ["constant predictor", "", *("0.00" if name == "span_f1" else "–" for name in head[2:])]
    test = read_metrics(runs / "srl")["test"]
    assert dict(zip(head, row, strict=True))["span_f1"] == f"{100 * test['span_f1']:.2f}"
    head, *rows = roles.tables[f"srl: roles, test, each ({len(test['roles'])})"]
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    for role, values in test["roles"].items():
        assert cells[role]["gold"] == str(values["gold"]) and cells[role]["f1"] == f"{100 * values['f1']:.2f}"


def test_the_best_scores_are_bold_and_the_selection_score_comes_first(page, roles, runs):
    source = (runs / "page.html").read_text(encoding="utf-8")
    assert page.tables["Test"][0][2] == "example_f1" and roles.tables["Test"][0][2] == "span_f1"
    for part in ("Validation", "Test"):
        head, *rows, _ = page.tables[part]
        bold = re.findall(r"<td><b>(.*?) ±.*?</b></td>", source.split(f"<h3>{part}</h3>")[1].split("</table>")[0])
        means = {name: [row[head.index(name)].split()[0] for row in rows] for name in head[2:]}
        best = {name: (min if name == "hamming" else max)(map(float, m)) for name, m in means.items()}
        assert sorted(map(float, bold)) == sorted(
            float(m) for name in means for m in means[name] if float(m) == best[name]
        )
    assert "<td><b>" not in (runs / "srl" / "report.html").read_text(encoding="utf-8"), "one group"


def test_the_chosen_method_is_named(runs, tmp_path):
    folder = tmp_path / "both"
    for method in ("ce", "seal"):
        shutil.copytree(runs / method, folder / method)
    methods = {"methods": ["ce", "seal"], "chosen": "ce", "reason": "ce (50.00), which scores best"}
    for extra, sentence in (
        ({}, ""),
        ({"mean": {"runs": ["ce/0", "ce/1"]}}, " The folder predicts with the mean of ce/0, ce/1."),
    ):
        (folder / "methods.json").write_text(json.dumps(methods | extra))
        text = make_report(folder, "--examples", 0).text
        assert f"Validation chooses ce (50.00), which scores best.{sentence}" in text and (
            "predicts with" in text
        ) == bool(sentence)
    assert "Validation chooses" not in make_report(runs / "ce", "--examples", 0).text


def test_curves_and_calibration_have_separate_pictures(page, roles, runs):
    for document, run in ((page, runs / "seal" / "0"), (roles, runs / "srl")):
        terms = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
        curves = 1 + sum(
            len({name for line in terms for name in line[table]}) for table in ("losses", "gradient_norms")
        )
        bins = [part for part in ("validation", "test") if sp.RunFolder(run).calibration()[part]["bins"]]
        assert [tag for tag, _ in document.tags].count("svg") >= curves + len(bins)
        assert ("Calibration" in document.text) == bool(bins), "a net may predict nothing"
    old_run = shutil.copytree(runs / "srl", runs / "old")
    fit = json.loads((old_run / "calibration.json").read_text())
    (old_run / "calibration.json").write_text(json.dumps({"temperature": fit["temperature"]}))
    assert "Calibration" not in make_report(old_run, "--examples", 0).text, "a run of 0.1"


def test_scores_with_a_unit_are_shown_as_they_are(runs, tmp_path, monkeypatch):
    """A run stores its metric's unit; the page needs the metric itself only for its examples."""
    monkeypatch.setattr(LabelMetric, "unit", "dB")
    small = {"trainer.epochs": "1", "features.hidden": "[8]", "method": "cross_entropy"}
    run = trained("labels", tmp_path / "run", **small)
    assert read_metrics(run)["protocol"]["unit"] == "dB" and "unit" not in read_metrics(runs / "ce" / "0")["protocol"]
    page = make_report(run, "--examples", 2)
    head, row, _ = page.tables["Test"]
    assert dict(zip(head, row, strict=True))["example_f1"] == f"{read_metrics(run)['test']['example_f1']:.2f}"
    assert "As they are (dB): the mean over seeds" in page.text
    worst = [float(score) for score in re.findall(r"row \d+example_f1 ([\d.]+)", page.text)]
    assert len(worst) == 2 and max(worst) <= 1
    monkeypatch.undo()
    page = make_report(run, runs / "ce")
    [_, decibels, fractions, *_] = page.tables["Test"]
    assert decibels[2:] == row[2:] and float(fractions[2].split()[0]) > 1
    assert "In per cent, or as they are (dB): the mean over seeds" in page.text
    assert "their scores are in dB (run) and fractions (ce)" in page.text


def test_paired_differences_match_the_seeds(page, runs):
    [gain] = {row[1] for row in page.tables["Paired differences"] if row[0] == "<b>ce</b>"}
    a, b = (
        100
        * (
            read_metrics(runs / "ce" / seed)["test"]["example_f1"]
            - read_metrics(runs / "seal" / seed)["test"]["example_f1"]
        )
        for seed in "01"
    )
    assert gain.startswith(f"{(a + b) / 2:.2f} ± {abs(a - b) / 2:.2f} [") and " p" in gain


def test_protocol_config_and_environment_are_there(page, roles, runs):
    for text in read_metrics(runs / "seal" / "0")["protocol"].values():
        assert text in page.text if isinstance(text, str) else all(str(value) in page.text for value in text.values())
    config = {row[0]: row[1:] for row in page.tables["Config"]}
    assert config["trainer.type"] == ["seal.dynamic", "cross_entropy"]
    assert config["energy.type"] == ["seal.labels", "–"]
    assert "seed" not in config and "task.type" not in config
    assert json.dumps(json.loads((runs / "srl/config.json").read_text()), indent=2) in roles.text
    environment = json.loads((runs / "srl/environment.json").read_text())
    for text in (environment["python"], f"torch {environment['packages']['torch']}", environment["platform"]):
        assert text in roles.text
    assert {"svg", "path"} <= {tag for tag, _ in page.tags} & {tag for tag, _ in roles.tags}


def test_labels_are_escaped(page):
    assert "<b>ce</b>" in page.text


def test_a_page_loads_nothing(page, roles, runs):
    for document in (page, roles):
        assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in document.tags}
        for _, attributes in document.tags:
            for name in ("src", "href", "xlink:href"):
                assert attributes.get(name, "#").startswith("#")
    style = (runs / "page.html").read_text()
    assert "@import" not in style and not re.search(r"url\((?!#)", style)


def test_worst_examples_of_labels(runs):
    """The worst example by hand: F1 of sets, from the run's predictions and the sample's gold."""
    page = make_report(runs / "seal" / "0", "--examples", 1, "--part", "validation", "--out", runs / "worst.html")
    predictor = sp.load(runs / "seal" / "0")
    fresh: Task = type(predictor.task)(predictor.task.config)
    fresh.load()
    examples = fresh.part("validation")
    names = fresh.space.labels
    f1, errors = [], []
    for example, answer in zip(examples, predictor.predict_examples(examples), strict=True):
        gold, predicted = {names[i] for i in example.gold}, set(answer["labels"])
        f1.append(2 * len(gold & predicted) / (len(gold) + len(predicted)) if gold & predicted else 0.0)
        errors.append((len(gold ^ predicted), gold, predicted))
    row = min(range(len(f1)), key=lambda i: (f1[i], -errors[i][0], i))
    _, gold, predicted = errors[row]
    section = page.text[page.text.index("Worst examples") :]
    assert f"row {row}" in section and f"example_f1 {100 * f1[row]:.1f}" in section
    match = re.search(r"gold\s*((?:.|\n)*?)predicted\s*((?:.|\n)*?)Written", section[section.index("input") :])
    assert all(name in match[1] for name in gold) and all(name in match[2] for name in predicted)
    assert f"energy of gold {_compute_energy(runs / 'seal' / '0', predictor, examples[row]):.3f}" in section
    features = [predictor.task.columns.names[i] for i in examples[row].features]
    assert ", ".join(features) in section


def _compute_energy(run: Path, predictor, example) -> float:
    batch = predictor.task.collate([example])
    return float(predictor.model.energy.at(batch.x)(batch.gold)[0, 0].detach())


def test_worst_examples_of_roles(roles, runs):
    assert "ARG0" in roles.text and "row " in roles.text and "energy of gold" in roles.text
    [heat] = [table for heading, table in roles.tables.items() if heading.startswith("Gold (rows)")]
    place = {name: i for i, name in enumerate(heat[0])}
    counts = {row[0]: row[1:] for row in heat[1:]}
    gold = read_metrics(runs / "srl")["test"]["roles"]
    number = [int(count) for count in counts["ARG0"] if count != "·"]
    assert sum(number) == gold["ARG0"]["gold"]  # ARG0 is never continued in the sample
    predicted = [int(row[place["ARG0"]]) for row in heat[1:] if row[place["ARG0"]] != "·"]
    assert sum(predicted) == gold["ARG0"]["predicted"]


def copy_changed_run(runs: Path, folder: Path, name: str, **values: object) -> Path:
    shutil.copytree(runs / "seal" / "0", folder)
    table = json.loads((folder / name).read_text())
    table.update(values)
    (folder / name).write_text(json.dumps(table))
    return folder


def test_without_its_data_the_page_says_so(runs, tmp_path):
    task = {"type": "multilabel", "file": "data:none/none.arff", "split": "data:none/none.json"}
    page = make_report(copy_changed_run(runs, tmp_path / "run", "config.json", task=task))
    assert "no none/none.arff below" in page.text and "spen data" not in page.tables
    assert page.tables["Test"] and "Worst examples and confusions need" in page.text


def test_changed_data_are_not_taken_for_the_data_of_the_run(runs, tmp_path):
    page = make_report(copy_changed_run(runs, tmp_path / "run", "environment.json", data_sha256={"a.arff": "0" * 64}))
    assert "a.arff changed since" in page.text and "row 0" not in page.text


def test_mistakes_are_reported(runs):
    for words, message in (
        (["--part", "test", "nowhere"], "found no run nowhere"),
        ([str(runs / "srl"), "--against", "nothing"], "unknown group 'nothing'"),
        ([str(runs / "srl"), "--device", "nowhere"], "device 'nowhere': no such device"),
        ([str(runs / "srl"), "--device", "maia"], "device 'maia': torch can't use it on this machine"),
    ):
        assert message in spen("report", *words, status=2).stderr


def test_tasks_that_cannot_be_compared_share_a_page(runs):
    page = make_report(runs / "srl", runs / "seal", "--out", runs / "both.html", "--examples", 0)
    assert "No paired differences" in page.text and "row 0" not in page.text


def make_output(gold: list[str], predicted: list[str], words: list[str] | None = None, score: float = 0.0) -> Output:
    return Output(0, Shown(words or []), gold, predicted, score, 0.0, None, None)


def test_label_errors_by_hand():
    outputs = Outputs(LabelSet(["a", "b", "c"]), "f1")
    outputs.examples = [
        make_output(["a", "b"], ["a", "c"]),
        make_output(["b"], ["c"]),
        make_output(["b"], ["b"]),
        make_output(["a"], ["a"]),
    ]
    rows, pairs = count_label_errors(outputs)
    assert [tuple(row)[:5] for row in rows] == [("b", 3, 1, 0, 2), ("c", 0, 2, 2, 0), ("a", 2, 2, 0, 0)]
    assert [row.f1 for row in rows] == [0.5, 0.0, 1.0]
    assert pairs == [Pair("c", "b", 2, 2)]


def test_tag_errors_by_hand():
    outputs = Outputs(TagSequence(["O", "B-A", "I-A", "B-B", "I-B", "B-V"], "bio"), "f1")
    outputs.examples = [
        make_output(["B-A", "I-A", "B-V", "B-B"], ["B-B", "I-B", "B-V", "B-B"]),  # A taken for B, B right
        make_output(["B-A", "O", "B-V", "O"], ["O", "O", "B-V", "B-A"]),  # A missed, A spurious
    ]
    confusion = count_tag_errors(outputs)
    assert confusion.names == ["A", "B", "nothing"]
    assert confusion.counts == [[0, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert confusion.share(0, 1) == 0.5


def test_confusions_of_plain_tags_are_counted_by_word():
    outputs = Outputs(TagSequence(["N", "V"]), "accuracy")
    outputs.examples = [make_output(["N", "V", "N"], ["N", "N", "N"])]
    assert count_tag_errors(outputs).counts == [[2, 0], [1, 0]] and count_tag_errors(outputs).unit == "words"


def test_pieces_of_a_sentence():
    words = ["She", "gave", "him", "old", "books"]
    output = make_output(["B-X", "B-V", "B-Y", "B-Z", "I-Z"], ["B-X", "B-V", "O", "B-Y", "I-Y"], words)
    space = TagSequence(["O", "B-V", "B-X", "B-Y", "I-Y", "B-Z", "I-Z"], "bio")
    assert mark_pieces(output, gold=False, space=space) == [
        Piece("She", "X", "right"),
        Piece("gave", "V", "right"),
        Piece("him", "", "plain"),
        Piece("old books", "Y", "extra"),
    ]
    assert [piece.kind for piece in mark_pieces(output, gold=True, space=space)] == [
        "right",
        "right",
        "missed",
        "missed",
    ]


def test_spans_of_bioes_are_spans():
    space = TagSequence(["O", "B-A", "I-A", "E-A", "S-A", "S-B"], "bioes")
    words = ["Anna", "F.", "Marsh", "left", "Kyoto"]
    output = make_output(["B-A", "I-A", "E-A", "O", "S-B"], ["B-A", "I-A", "E-A", "O", "S-A"], words)
    assert mark_pieces(output, gold=True, space=space) == [
        Piece("Anna F. Marsh", "A", "right"),
        Piece("left", "", "plain"),
        Piece("Kyoto", "B", "missed"),
    ]
    outputs = Outputs(space, "f1")
    outputs.examples = [output]
    confusion = count_tag_errors(outputs)
    assert confusion.names == ["A", "B", "nothing"] and confusion.unit == "spans at the same words"
    assert confusion.counts == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_a_part_of_speech_may_be_called_o():
    output = make_output(["O"], ["V"], ["they"])
    space = TagSequence(["N", "O", "V"])
    assert mark_pieces(output, gold=True, space=space) == [Piece("they", "O", "missed")]
    assert mark_pieces(output, gold=False, space=space) == [Piece("they", "V", "extra")]


def test_the_worst_come_first():
    outputs = Outputs(LabelSet(["a"]), "f1", [make_output([], [], score=s) for s in (0.5, 0.0, 0.2)])
    assert [output.score for output in outputs.worst(2)] == [0.0, 0.2]


@pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on PATH; `make browser`")
def test_a_browser_shows_the_page(page, runs, tmp_path):
    picture, address = tmp_path / "page.png", (runs / "page.html").as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]

    def browse(*words: str) -> str:
        command = [BROWSER, *flags, *words, address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    shown = Page(browse("--dump-dom"))
    assert shown.tables["Test"] == page.tables["Test"]
    browse("--window-size=1200,1600", f"--screenshot={picture}")
    from PIL import Image

    image = Image.open(picture).convert("L")
    assert image.size == (1200, 1600)
    shares = image.histogram()
    dark = sum(shares[:100]) / (1200 * 1600)
    assert 0.005 < dark < 0.5, "a page is mostly paper, with something on it"
