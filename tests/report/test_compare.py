"""Groups of runs, what a run keeps of each example, and `spen compare` against hand-worked cases."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp

import spen_plugins as sp
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.loop.evaluation import example_ratios
from spen_plugins.report.compare import compare
from spen_plugins.report.costs import read_costs
from spen_plugins.report.tables import comma_separated, latex, markdown, markdown_cell, terminal
from spen_plugins.runs.folder.environment import FORMAT, count_parameters
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.scores import bootstrap
from spen_plugins.scores.bootstrap import (
    compute_joint_interval,
    estimate,
    interval,
    resample_seeds,
    resampled_scores,
)
from spen_plugins.scores.spans import find_arguments
from spen_plugins.testing import ToyTags
from tests.loaded import ROOT, built, spen, trained

CONFIGS = ROOT / "configs"


def make_run(
    path: Path,
    seed: int,
    f1: float,
    ratios: tuple[list[float], list[float]] | None = None,
    *,
    data: dict[str, str] | None = None,
    threshold: str = "0.5, fixed",
    is_done: bool = True,
    task: str = "multilabel",
    unit: str = "",
) -> Path:
    """A run folder with two epochs of 1 and 3 seconds, with 0.25 and 0.75 as the energy's share of the gradient."""
    folder = RunFolder.create(path, {"seed": seed, "task": {"type": task}})
    files = {"a.arff": "12"} if data is None else data
    folder.write("environment.json", {"format": FORMAT, "seed": seed, "data_sha256": files})
    for epoch, (seconds, share) in enumerate([(1.0, 0.25), (3.0, 0.75)]):
        folder.append_history(
            {"stage": "train", "epoch": epoch, "gradient_share": {"inference_net.energy": share}}, seconds
        )
    if ratios is not None:
        numerator, denominator = (torch.tensor(values, dtype=torch.double) for values in ratios)
        folder.save_ratios({"numerator": numerator, "denominator": denominator}, "test")
    if is_done:
        scores = {"micro_f1": f1 / 2, "example_f1": f1, "span_f1": f1, "roles": {}}
        protocol = {"threshold": threshold, "split": "mine", **({"unit": unit} if unit else {})}
        folder.write("metrics.json", {"validation": scores, "test": scores, "protocol": protocol})
    return path


# Groups


def test_a_word_is_a_run_or_a_folder_of_runs_with_or_without_a_label(tmp_path):
    for seed in (10, 2):
        make_run(tmp_path / "x" / f"seed-{seed}", seed, 0.5)
    make_run(tmp_path / "y", 0, 0.5)
    make_run(tmp_path / "z, λ = 0" / "y", 0, 0.5)
    words = [tmp_path / "x", tmp_path / "y", f"λ = 1={tmp_path}/z, λ = 0", tmp_path / "z, λ = 0" / "y"]
    groups = read_groups([str(word) for word in words])
    assert [group.label for group in groups] == ["x", str(tmp_path / "y"), "λ = 1", str(tmp_path / "z, λ = 0" / "y")]
    assert [list(group.by_seed()) for group in groups] == [[2, 10], [0], [0], [0]]


def test_unfinished_runs_are_left_out_with_a_note(tmp_path):
    make_run(tmp_path / "x" / "seed-0", 0, 0.5)
    make_run(tmp_path / "x" / "seed-1", 1, 0.5, is_done=False)
    [group] = read_groups([str(tmp_path / "x")])
    assert [run.path.name for run in group.runs] == ["seed-0"]
    assert group.notes == (f"x: left out, not finished: {tmp_path}/x/seed-1",)
    [group] = read_groups([str(tmp_path / "x")], unfinished=True)
    assert len(group.runs) == 2 and group.notes == ()
    with pytest.raises(ConfigError, match=r"no run is finished.*--resume"):
        read_groups([str(tmp_path / "x" / "seed-1")])


def test_words_that_name_no_group(tmp_path):
    make_run(tmp_path / "x" / "a", 0, 0.5)
    make_run(tmp_path / "x" / "b", 0, 0.5)
    make_run(tmp_path / "y", 0, 0.5)
    for words, message in (
        ([f"{tmp_path}/yy"], r"found no run .*Did you mean 'y'"),
        ([str(tmp_path / "x")], "two runs with seed 0, a and b"),
        ([f"y={tmp_path}/y", f"y={tmp_path}/x/a"], "found two runs labelled 'y'"),
        ([str(tmp_path / "y" / "config.json")], "neither a run folder .*: it is a file; name its folder"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_groups(words)


def test_runs_of_a_group_that_differ_in_more_than_their_seed_are_noted(tmp_path):
    make_run(tmp_path / "x" / "0", 0, 0.5)
    make_run(tmp_path / "x" / "1", 1, 0.5, task="srl")
    [group] = read_groups([str(tmp_path / "x")])
    assert group.notes == ("x: its runs differ in more than their seed: task",)


# The statistics


def test_mean_and_standard_error():
    result = estimate([1.0, 2.0, 6.0])
    assert result.mean == 3 and result.count == 3
    assert result.error == pytest.approx((7 / 3) ** 0.5)  # sample variance (4 + 1 + 9) / 2 = 7
    assert estimate([2.0]).error is None


NUMERATORS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
DENOMINATORS = np.array([[2.0, 1.0, 2.0], [1.0, 1.0, 4.0]])


def enumerate_outcomes() -> Counter[tuple[float, float]]:
    """Both runs' scores in each of the 27 equally likely resamples of three examples, by hand."""
    counts: Counter[tuple[float, float]] = Counter()
    for rows in itertools.product(range(3), repeat=3):
        score = [
            sum(n[i] for i in rows) / sum(d[i] for i in rows) for n, d in zip(NUMERATORS, DENOMINATORS, strict=True)
        ]
        counts[round(score[0], 9), round(score[1], 9)] += 1
    return counts


@pytest.mark.parametrize("cells", [2**20, 7])
def test_resamples_match_the_enumeration(monkeypatch, cells):
    monkeypatch.setattr(bootstrap, "CELLS", cells)
    resamples, expected = 20_000, enumerate_outcomes()
    scores = resampled_scores(NUMERATORS, DENOMINATORS, resamples)
    assert scores.shape == (resamples, 2)
    counts = Counter(map(tuple, scores.round(9).tolist()))
    assert counts.keys() == expected.keys()  # in particular: both runs are scored on the same examples
    chi_square = sum((counts[key] - n * resamples / 27) ** 2 / (n * resamples / 27) for key, n in expected.items())
    assert chi_square < 30  # 9 degrees of freedom, 99.96th percentile
    assert len(expected) == 10


def test_percentiles_and_p_value():
    differences = np.arange(-1.0, 99.0)  # 2 of 100 at or below zero
    result = interval(differences)
    assert (result.low, result.high) == pytest.approx((-1 + 0.025 * 99, -1 + 0.975 * 99))
    assert result.p == pytest.approx(2 * 3 / 101)
    assert interval(-differences).p == result.p
    assert interval(np.zeros(50)).p == 1


def test_two_examples_by_hand():
    """One system is right on both, the other on one: the difference is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4."""
    scores = resampled_scores(np.array([[1.0, 1.0], [1.0, 0.0]]), np.ones((2, 2)))
    difference = scores[:, 0] - scores[:, 1]
    result = interval(difference)
    assert (result.low, result.high) == (0, 1)
    assert result.p == pytest.approx(0.5, abs=0.03)  # twice 1/4
    assert difference.mean() == pytest.approx(0.5, abs=0.015)


def test_a_resample_without_anything_to_count_scores_zero():
    scores = resampled_scores(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]), 50)
    assert set(scores.ravel()) == {0.0, 1.0}


# The comparison


@pytest.fixture
def pair(tmp_path) -> list[str]:
    """Two groups: seeds 0, 1, 2 and seeds 0, 1."""
    for seed, f1, numerators in ((0, 0.75, [1, 1, 0.5, 0.5]), (1, 0.5, [1, 0, 0.5, 0.5]), (2, 0.25, [1, 0, 0, 0])):
        make_run(tmp_path / "ours" / str(seed), seed, f1, (numerators, [1, 1, 1, 1]))
    for seed, f1, numerators in ((0, 0.25, [0.5, 0, 0.5, 0]), (1, 0.25, [1, 0, 0, 0])):
        make_run(tmp_path / "theirs" / str(seed), seed, f1, (numerators, [1, 1, 1, 1]))
    return [str(tmp_path / "ours"), str(tmp_path / "theirs")]


def test_a_comparison_by_hand(pair):
    comparison = compare(read_groups(pair), baselines=["theirs"])
    assert comparison.selection == "example_f1" and comparison.scores == ("example_f1", "micro_f1", "span_f1")
    ours, theirs = comparison.rows
    assert ours.scores["example_f1"].mean == 0.5 and ours.scores["example_f1"].error == pytest.approx(0.25 / 3**0.5)
    assert (ours.seeds, ours.costs.epochs, ours.costs.seconds, ours.costs.share) == (3, 2, 2, 0.5)
    assert theirs.differences == {"theirs": None}
    difference = ours.differences["theirs"]
    assert difference.seeds.mean == pytest.approx((0.5 + 0.25) / 2) and difference.seeds.count == 2
    assert difference.seeds.error == pytest.approx(0.125)
    # Averaged over the two shared seeds the examples' differences are 0.25, 0.5, 0.25 and 0.5: of 4**4 resamples the
    # lowest mean is 0.25 in 1/16, the highest 0.5 in 1/16, both beyond the 2.5 % tails, and none is at or below zero.
    assert (difference.examples.low, difference.examples.high) == (0.25, 0.5)
    assert difference.examples.p == pytest.approx(2 / (bootstrap.RESAMPLES + 1))
    assert any("over seeds 0, 1" in note for note in comparison.notes)


def test_the_first_group_is_the_baseline_and_signs_are_reversed(pair):
    difference = compare(read_groups(pair)).rows[1].differences["ours"]
    assert difference.seeds.mean == pytest.approx(-0.375)
    assert (difference.examples.low, difference.examples.high) == (-0.5, -0.25)


def test_a_mean_of_runs_is_compared_with_each_seed(pair, tmp_path):
    """A mean records only the seed of its first run."""
    folder = RunFolder(make_run(tmp_path / "mean", 0, 0.75, ([1, 1, 0.5, 0.5], [1, 1, 1, 1])))
    folder.write("environment.json", folder.environment() | {"mean": {"runs": {}, "candidates": []}})
    comparison = compare(read_groups([pair[0], str(folder.path)]))
    [difference] = comparison.rows[1].differences.values()
    assert difference.seeds.mean == pytest.approx((0 + 0.25 + 0.5) / 3) and difference.seeds.count == 3
    assert comparison.notes == () and difference.seeds_and_examples is not None
    reversed_difference = compare(read_groups([str(folder.path), pair[0]])).rows[1].differences["mean"]
    assert reversed_difference.seeds.mean == pytest.approx(-0.25)


def test_many_rows_without_a_shared_seed_are_one_note(tmp_path):
    words = [str(make_run(tmp_path / str(seed), seed, 0.5)) for seed in range(4)]
    assert compare(read_groups(words[:2])).notes == ("1 and 0 share no seed: no difference",)
    assert compare(read_groups(words)).notes == ("3 pairs of rows share no seed: no difference between them",)


def test_one_group_has_no_differences(pair):
    comparison = compare(read_groups(pair[:1]))
    assert comparison.baselines == () and comparison.rows[0].differences == {} and comparison.notes == ()


@pytest.mark.parametrize(
    ("other", "message", "resampled"),
    [
        ({"data": {"b.arff": "34"}}, "did not read the same data files", False),
        ({"data": {"elsewhere/a.arff": "12"}}, None, True),
        ({"data": {}}, "did not read the same data files", False),
        ({"threshold": "0.4, fixed"}, "differ in protocol, threshold: 0.4, fixed against 0.5, fixed", True),
        ({"ratios": ([1.0], [2.0])}, "were scored on 1 and 2 examples", False),
        ({"ratios": None}, "examples.safetensors of this part; missing in: b", False),
        ({"seed": 5}, "share no seed", False),
    ],
)
def test_groups_that_cannot_be_compared_are_reported(tmp_path, other, message, resampled):
    settings: dict[str, Any] = {"seed": 0, "ratios": ([1.0, 0.0], [1.0, 1.0])}
    make_run(tmp_path / "a", f1=0.5, **settings)
    make_run(tmp_path / "b", f1=0.5, **{**settings, **other})
    comparison = compare(read_groups([str(tmp_path / "a"), str(tmp_path / "b")]))
    other_notes = [note for note in comparison.notes if not message or message not in note]
    assert len(comparison.notes) - len(other_notes) == (message is not None)
    reason = "their examples may differ: they are from other files, another split, or another number"
    assert other_notes in ([], [f"b and a: no bootstrap, as {reason}"])
    difference = comparison.rows[1].differences["a"]
    assert (difference is not None and difference.examples is not None) == resampled


def test_only_the_file_of_the_scored_part_decides_if_examples_are_paired(tmp_path):
    """The whole of test.csv is not a test part that is cut from it."""
    separate = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}
    for label, training, tested, task in (
        ("a", "1", "9", separate),
        ("b", "2", "9", separate),
        ("c", "2", "8", separate),
        ("d", "2", "9", {"file": "test.csv"}),
        ("e", "2", "9", {**separate, "unseen": True}),  # without the test rows that repeat a training row
    ):
        data = {"train.csv": training, "dev.csv": "5", "test.csv": tested} if "test" in task else {"test.csv": tested}
        path = make_run(tmp_path / label, 0, 0.5, ([1.0, 0.0], [1.0, 1.0]), data=data)
        (path / "config.json").write_text(json.dumps({"seed": 0, "task": {"type": "multilabel", **task}}))
    groups = read_groups([str(tmp_path / label) for label in "abcde"])
    gains = [row.differences["a"].examples for row in compare(groups).rows[1:]]
    assert [gain is not None for gain in gains] == [True, False, False, False]


def test_a_split_file_of_one_run_may_or_may_not_make_a_difference(tmp_path):
    """Rows are not recorded, so a run with the file's own division may have the rows of the split file."""
    make_run(tmp_path / "a", 0, 0.5, ([1.0], [1.0]))
    for name, checksum in (("b", "34"), ("c", "56")):
        path = make_run(tmp_path / name, 0, 0.5, ([1.0], [1.0]), data={"a.arff": "12", "rows.json": checksum})
        task = {"type": "multilabel", "file": "a.arff", "split": "rows.json"}
        (path / "config.json").write_text(json.dumps({"seed": 0, "task": task}))
        metrics = json.loads((path / "metrics.json").read_text())
        metrics["protocol"]["split"] = "rows.json"
        (path / "metrics.json").write_text(json.dumps(metrics))
    b_alone = "only b has a split file"
    for words, message in (("ab", b_alone), ("ba", b_alone), ("bc", "did not read the same data files")):
        notes = compare(read_groups([str(tmp_path / word) for word in words])).notes
        [warning] = [note for note in notes if note.startswith("WARNING")]
        assert message in warning and ("may or may not be the same" in warning) == (words != "bc")


def test_thresholds_that_validation_picked_are_one_policy(tmp_path):
    for label, value in (("a", "0.3"), ("b", "0.6")):
        make_run(tmp_path / label, 0, 0.5, threshold=f"{value}, picked on validation from 0.05 to 0.95")
    notes = compare(read_groups([str(tmp_path / "a"), str(tmp_path / "b")])).notes
    assert not any("protocol" in note for note in notes)


def test_unknown_names_and_other_tasks_are_errors(tmp_path, pair):
    groups = read_groups(pair)
    for options, message in (
        ({"scores": ["example_f2"]}, r"no run has a score 'example_f2'\. Did you mean 'example_f1'"),
        ({"baselines": ["their"]}, r"unknown group 'their'\. Did you mean 'theirs'"),
        ({"part": "train"}, "no scores on train; it has: validation, test"),
    ):
        with pytest.raises(ConfigError, match=message):
            compare(groups, **options)
    spans = read_groups([str(make_run(tmp_path / "srl", 0, 0.5, task="srl"))])
    with pytest.raises(ConfigError, match="can't be compared in one table"):
        compare([*groups, *spans])


# What is written


def test_markdown_and_latex(pair):
    comparison = compare(read_groups([f"a|b_1={pair[0]}", pair[1]]), scores=["example_f1"], baselines=["theirs"])
    lines = markdown(comparison).splitlines()
    assert lines[2].startswith(
        "| a\\|b_1 | 50.00 ± 14.43 | 37.50 ± 12.50 [-242.76, 330.26] p = 0.339; "
        "examples alone [25.00, 50.00] p < 0.001 | 3 | 2 | 2.00 | 0.50"
    )
    assert lines[3].startswith("| theirs | 25.00 ± 0.00 |  | 2 |")
    assert {line.replace("\\|", "").count("|") for line in lines[:4]} == {8}
    assert any("paired bootstrap" in line for line in lines) and lines[-1].startswith("- ")


def test_latex_has_the_best_of_each_column_in_bold(pair):
    comparison = compare(read_groups([f"a|b_1={pair[0]}", pair[1]]), scores=["example_f1"], baselines=["theirs"])
    text = latex(comparison)
    assert r"a$|$b\_1 & $\mathbf{50.00} \pm 14.43$ \\" in text and r"theirs & $25.00 \pm 0.00$ \\" in text
    assert r" & example\_f1 \\" in text and "% Seeds: a|b_1 3, theirs 2." in text
    assert text.count(r"\\") == 3 and text.count("{") == text.count("}")
    assert all(line.startswith("%") or "%" not in line for line in text.splitlines())
    low = latex(replace(comparison, lower_is_better={"example_f1"}))
    assert r"\mathbf{25.00}" in low and r"\mathbf{50.00}" not in low
    assert latex(replace(comparison, rows=(comparison.rows[1],) * 2)).count("mathbf") == 2  # equal as printed
    assert "mathbf" not in latex(replace(comparison, rows=comparison.rows[:1]))


def test_latex_has_intervals_on_request(pair):
    comparison = compare(read_groups([f"x-1={pair[0]}", f"y={pair[1]}"]), scores=["example_f1"])
    assert "[" not in latex(comparison).partition("tabular")[2]
    text = latex(comparison, intervals=True)
    assert r"x-1 & $\mathbf{50.00} \pm 14.43$ &  \\" in text
    assert r"y & $25.00 \pm 0.00$ & $-37.50$ $[-330.26, 242.76]$ \\" in text
    assert len({line.count("&") for line in text.splitlines() if line.endswith(r"\\")}) == 1


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        ("a|b", r"a\|b"),
        ("<b onclick=x>", r"\<b onclick=x>"),
        ("p < 0.001", "p < 0.001"),
        ("two\nlines\x07", "two lines "),
        ("[x](javascript:y)", r"[x\](javascript:y)"),
        ("[0.1, 0.2] p", "[0.1, 0.2] p"),
        ("&lt; R&D", r"\&lt; R&D"),
        ("snake_case _loud_ *x*", r"snake_case \_loud\_ \*x\*"),
        ("B\\| `x`", r"B\\\| \`x\`"),
    ],
)
def test_labels_in_a_markdown_table_are_escaped(label, cell):
    assert markdown_cell(label) == cell


def test_labels_of_runs_do_not_break_tables(pair):
    comparison = compare(read_groups([f"=a\n<i>|$x={pair[0]}", pair[1]]), scores=["example_f1"], baselines=["theirs"])
    lines = markdown(comparison).splitlines()
    assert lines[2].startswith(r"| =a \<i>\|\$x | 50.00")
    assert latex(comparison).count("\\\\\n") == 3
    [ours, _] = csv.DictReader(io.StringIO(comma_separated(comparison)))
    assert ours["label"] == "'=a\n<i>|$x"
    assert float(ours["example_f1"]) == 0.5


def test_on_a_narrow_terminal_a_group_is_a_column(pair):
    comparison = compare(read_groups(pair))
    wide, narrow = terminal(comparison, 200), terminal(comparison, 80)
    assert [column.header for column in wide.columns][:2] == ["", "example_f1"] and wide.row_count == 2
    assert [column.header for column in narrow.columns] == ["", "ours", "theirs"]
    assert list(narrow.columns[0].cells)[:4] == ["example_f1", "micro_f1", "span_f1", "example_f1 − ours"]
    assert next(iter(narrow.columns[2].cells)) == "25.00 ± 0.00"


def test_corpora_of_the_package_are_the_same_data_for_one_task_only(tmp_path):
    """They have no files and so no checksums."""
    for label, task in (("a", "multilabel"), ("b", "multilabel"), ("c", "text")):
        make_run(tmp_path / label, 0, 0.5, ([1.0], [1.0]), data={}, task=task)
    comparison = compare(read_groups([str(tmp_path / label) for label in "abc"]), baselines=["a", "a"])
    assert comparison.baselines == ("a",) and [bool(row.differences["a"]) for row in comparison.rows] == [
        False,
        True,
        True,
    ]
    assert [comparison.rows[i].differences["a"].examples is not None for i in (1, 2)] == [True, False]
    assert any("c and a did not read the same data" in note for note in comparison.notes)


def test_a_damaged_history_is_reported(pair, tmp_path):
    with (tmp_path / "ours" / "0" / "history.jsonl").open("a") as file:
        file.write('{"a"\n')
    assert re.search(r"history\.jsonl:\d+ is damaged", spen("compare", *pair, status=1).stderr)


def test_csv_has_every_number_in_full(pair):
    comparison = compare(read_groups(pair), scores=["example_f1"], baselines=["theirs"])
    ours, theirs = csv.DictReader(io.StringIO(comma_separated(comparison)))
    assert float(ours["example_f1 standard error"]) == 0.25 / 3**0.5
    assert float(ours["example_f1 - theirs high"]) == 0.5 and ours["example_f1 - theirs seeds"] == "2"
    assert theirs["label"] == "theirs" and theirs["example_f1 - theirs p"] == ""


def test_scores_with_a_unit_are_shown_as_they_are(tmp_path):
    """Two seeds at 28 and 29 dB against 27.5 and 27.5: one image of each seed is better by 1 and by 3 dB."""
    for label, scores, images in (("ours", (28.0, 29.0), ([27.0, 29.0], [28.0, 30.0])), ("theirs", (27.5, 27.5), None)):
        for seed, score in enumerate(scores):
            numerators = images[seed] if images else [26.0, 29.0]
            make_run(tmp_path / label / str(seed), seed, score, (numerators, [1.0, 1.0]), unit="dB")
    groups = read_groups([f"{tmp_path}/ours", f"{tmp_path}/theirs"])
    table = compare(groups, scores=["example_f1"], baselines=["theirs"])
    assert table.unit == "dB"
    head, _, ours, theirs, _, footer = markdown(table).splitlines()
    assert head.startswith("|  | example_f1 | example_f1 − theirs |")
    # By image the means over seeds are better by 1.5 and 0.5 dB: those are the lowest and highest resamples.
    assert ours.startswith(
        "| ours | 28.50 ± 0.50 | 1.00 ± 0.50 [-4.08, 6.08] p = 0.242; examples alone [0.50, 1.50] p < 0.001 |"
    )
    assert theirs.startswith("| theirs | 27.50 ± 0.00 |")
    assert footer.startswith("Scores on test as they are, example_f1 in dB; ±")
    [row, _] = csv.DictReader(io.StringIO(comma_separated(table)))
    assert row["example_f1"] == "28.5" and row["example_f1 - theirs low"] == "0.5"
    make_run(tmp_path / "fraction", 0, 0.5)
    with pytest.raises(ConfigError, match=r"their scores are in dB \(ours\) and fractions \(fraction\)"):
        compare(read_groups([f"{tmp_path}/ours", f"{tmp_path}/fraction"]))


def test_unequal_seeds_of_several_rows_are_one_note(pair, tmp_path):
    make_run(tmp_path / "third", 0, 0.5)
    [note] = [note for note in compare(read_groups([*pair, f"{tmp_path}/third"])).notes if "the seeds" in note]
    assert note.startswith("differences between rows with different seeds")


def test_the_command(pair, tmp_path):
    result = spen("compare", *pair, "--scores", "example_f1,micro_f1", "--against", "theirs")
    assert result.stdout.startswith("|  | example_f1 | micro_f1 | example_f1 − theirs | seeds")
    note = "ours and theirs don't have the same seeds"
    assert f"- {note}" in result.stdout and note not in result.stderr
    file_result = spen("compare", *pair, "--out", tmp_path / "new" / "t.csv")
    assert "note: theirs and ours don't have" in file_result.stderr
    assert (tmp_path / "new" / "t.csv").read_text().startswith("label,part,seeds,example_f1")
    table = spen("compare", *pair, "--format", "table", "--part", "validation")
    assert "ours" in table.stdout and "validation" in table.stdout
    assert ".md, .csv or .tex" in spen("compare", *pair, "--out", tmp_path / "t.doc", status=2).stderr
    spen("compare", tmp_path / "nothing", status=2)


# Costs


def test_parameters_and_speed_are_shown_on_request(pair, tmp_path):
    """40 examples in a median of 2 s and of 4 s: 15 per second as the mean of two seeds."""
    for seed, number, seconds in ((0, 1000, 2.0), (1, 3000, 4.0)):
        folder = RunFolder(make_run(tmp_path / "sized" / str(seed), seed, 0.5))
        folder.truncate_history(0)
        counts = {"parameters": {"trained": number, "inference": number // 10}, "training_examples": 40}
        folder.write("environment.json", folder.environment() | counts)
        for duration in (seconds - 1, seconds, 50.0):
            folder.append_history(
                {"stage": "joint", "epoch": 0, "updates": {"energy": 1, "inference_net": 1}}, duration
            )
        folder.append_history({"stage": "finetune", "epoch": 0, "updates": {"inference_net": 1}}, 0.001)
    groups = read_groups([str(tmp_path / "sized"), pair[0]])
    comparison = compare(groups, scores=["example_f1"], sizes=True)
    assert comparison.rows[0].costs.sizes == (2000, 200, 15)
    assert comparison.rows[1].costs.sizes == (None, None, None), "of a version that did not count"
    head, _, sized, _ = markdown(comparison).splitlines()[:4]
    assert head.endswith("| energy's share | trained parameters | inference parameters | examples / s |")
    assert sized.endswith("| 2,000 | 200 | 15 |")
    [row, _] = csv.DictReader(io.StringIO(comma_separated(comparison)))
    assert (row["trained parameters"], row["examples / s"]) == ("2000", "15.0")
    assert "trained parameters" not in markdown(compare(groups, sizes=False))
    result = spen("compare", f"a={tmp_path}/sized", "--costs")
    assert "| 2,000 | 200 | 15 |" in result.stdout


def test_a_mean_of_runs_has_no_epochs_and_times_of_its_own(tmp_path):
    folder = RunFolder(make_run(tmp_path / "mean", 0, 0.5))
    counts = {"parameters": {"trained": 30, "inference": 20}, "training_examples": 40}
    folder.write("environment.json", folder.environment() | counts | {"mean": {"runs": {}, "candidates": []}})
    comparison = compare(read_groups([str(folder.path)]), scores=["example_f1"], sizes=True)
    assert markdown(comparison).splitlines()[2].startswith("| mean | 50.00 | 1 |  |  | 0.50 | 30 | 20 |  |")


def test_the_energys_share_is_that_of_its_term_for_the_predicting_net(tmp_path):
    folder = RunFolder(make_run(tmp_path / "compound", 0, 0.5))
    folder.truncate_history(0)
    shares = {"inference_net.cost_augmented": 0.5, "inference_net.test_time": 0.2, "energy.margin": 0.9}
    folder.append_history({"stage": "joint", "epoch": 0, "gradient_share": shares}, 1.0)
    assert read_costs(folder).share == 0.2


class OverY(sp.InferenceNet):
    """Predicts with the energy."""

    uses_energy = True


def test_parameters_are_counted_once_and_only_those_that_train():
    task = ToyTags()
    net, energy, loss = (cls(cls.Config(), task) for cls in (OverY, sp.Energy, sp.EnergyLoss))
    net.a = torch.nn.Linear(3, 2)  # 8
    net.fixed = torch.nn.Embedding(100, 7).requires_grad_(False)
    energy.a, energy.b = net.a, torch.nn.Linear(4, 1)  # 5
    loss.c = torch.nn.Linear(1, 1)  # 2
    counts = count_parameters(sp.Model(net, energy, loss))
    assert counts == {"inference_net": 8, "energy": 5, "energy_loss": 2, "trained": 15, "inference": 13}
    net = sp.InferenceNet(sp.Config(), task)
    net.a = torch.nn.Linear(3, 2)
    assert count_parameters(sp.Model(net, None, None)) == {"inference_net": 8, "trained": 8, "inference": 8}


# What a run keeps of each example


@pytest.mark.parametrize(
    ("config", "score", "words"),
    [
        ("labels", "example_f1", {"features.hidden": "[8]", "threshold": "validation"}),
        ("srl_seal", "span_f1", {"trainer.epochs": "8"}),
    ],
)
def test_the_ratio_of_the_sums_is_the_score(tmp_path, config, score, words):
    settings = {"method": "cross_entropy", "trainer.epochs": "2"}
    run = RunFolder.open(trained(config, tmp_path / "run", **(settings | words)))
    ratios = run.ratios("test")
    sums = [ratios[name].sum().item() for name in ("numerator", "denominator")]
    assert run.environment()["parameters"]["trained"] > 0 < run.environment()["training_examples"]
    assert 0 < sums[0] / sums[1] == pytest.approx(run.metrics()["test"][score], abs=1e-12)
    assert run.ratios("validation") is None

    predictor = sp.load(run.path)
    if score == "span_f1":  # in the file's order: each example's own prediction and gold
        task = predictor.task
        task.load()
        examples = list(task.part("test"))
        assert len({task.length(example) for example in examples}) > 1
        for i, (example, answer) in enumerate(zip(examples, predictor.predict_examples(examples), strict=True)):
            predicted, gold = set(find_arguments(answer["tags"])), set(example.arguments)
            assert ratios["numerator"][i] == 2 * len(predicted & gold)
            assert ratios["denominator"][i] == len(predicted) + len(gold)


@pytest.mark.parametrize("config", ["labels", "srl_seal"])
def test_examples_without_gold_add_nothing(config):
    task = built(config).task
    examples = task.part("test")[:6]
    batch = task.collate(examples)
    batch.labelled[1:3] = False
    metric = task.metric()
    for variant in (batch, replace(batch, gold=None)):
        metric.update(task.space.independent(batch.gold * 20 - 10, batch.x.mask), variant)
    numerator, denominator = metric.ratios()
    assert len(numerator) == len(denominator) == 12
    silent = torch.tensor([1, 2, *range(6, 12)])
    assert not numerator[silent].any() and not denominator[silent].any()
    assert numerator.sum() / denominator.sum() == pytest.approx(metric.compute()[task.selection])


def test_a_metric_with_a_wrong_count_is_named():
    class Task:
        def length(self, example: object) -> int:
            return 1

    class Short:
        def ratios(self):
            return torch.ones(2), torch.ones(2)

    class Silent:
        def ratios(self):
            return None

    with pytest.raises(PluginError, match=r"Short\.ratios: found \[2, 2\] numbers; expected two for each of 3"):
        example_ratios(Short(), Task(), [0, 1, 2])
    assert example_ratios(Silent(), Task(), [0, 1, 2]) == {}


# Seeds and examples together


def simulate(rng: np.random.Generator, seeds: int, examples: int, effect: float) -> np.ndarray:
    """Differences of two systems on each example, `(seed, example)`: seeds differ, in both systems, by about 1."""
    noise = rng.normal(size=(2, seeds, examples))
    return rng.normal(effect, 2**0.5, size=(seeds, 1)) + noise[0] - noise[1]


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_over_seeds_and_examples_covers_the_truth_and_that_over_examples_alone_does_not(seeds):
    rng, repeats, resamples = np.random.default_rng(seeds), 150, 400
    missed, significant = Counter(), Counter()
    for effect in (0.0, 2.0):
        for _ in range(repeats):
            values = simulate(rng, seeds, 60, effect)
            scores = resampled_scores(values, np.ones_like(values), resamples, seed=int(rng.integers(2**31)))
            joint = compute_joint_interval(scores, int(rng.integers(2**31)))
            for name, result in (("both", joint), ("examples", interval(scores.mean(1)))):
                missed[name] += not result.low <= effect <= result.high
                significant[name] += effect == 0 and result.p < 0.05  # there is no difference
    assert 0.01 < missed["both"] / (2 * repeats) < 0.09 and significant["both"] / repeats < 0.09
    assert missed["examples"] / (2 * repeats) > 0.4 and significant["examples"] / repeats > 0.4


def test_seeds_that_agree_give_the_interval_of_examples_alone():
    scores = np.random.default_rng(0).normal(0.5, 1, size=(4000, 1))
    assert interval(resample_seeds(np.repeat(scores, 4, 1))) == interval(scores[:, 0])


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_p_over_few_seeds_is_about_that_of_a_t_test_and_agrees_with_the_interval(seeds):
    """There is no difference, and examples don't vary, so a share of about α of the p is below α."""
    rng, repeats = np.random.default_rng(seeds), 1500
    values = rng.normal(size=(repeats, seeds))
    results = [compute_joint_interval(np.tile(row, (400, 1)), n) for n, row in enumerate(values)]
    p = np.array([result.p for result in results])
    assert [result.p < 0.05 for result in results] == [result.low > 0 or result.high < 0 for result in results]
    assert (p < 0.05).mean() < 0.09 and (p < 0.01).mean() < 0.02 and (p < 0.001).mean() < 0.005
    assert np.corrcoef(np.log(p), np.log(ttest_1samp(values, 0, axis=1).pvalue))[0, 1] > 0.9


def test_p_without_variance():
    assert compute_joint_interval(np.zeros((50, 3))).p == 1
    assert compute_joint_interval(np.ones((50, 3))).p == 0


def test_both_intervals_are_kept_and_one_seed_has_one(pair):
    several = compare(read_groups(pair), baselines=["theirs"]).rows[0].differences["theirs"]
    assert (
        several.seeds_and_examples.low < several.examples.low
        and several.seeds_and_examples.high > several.examples.high
    )
    single = compare(read_groups([f"a={pair[0]}/0", f"b={pair[1]}/0"]))
    assert single.rows[1].differences["a"].seeds_and_examples is None
    [cell] = re.findall(r"\| b \|.*?\| (-\S+ examples alone \[.*?\] p .*?) \|", markdown(single))
    assert "±" not in cell and "with one seed, it is the only one" in markdown(single)
