"""Equal inputs stay in one part when rows are divided; a warning counts those that given parts share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spen_plugins.data.equal_inputs import number_inputs, shared_inputs
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.parts.stratification import carve, stratify
from spen_plugins.errors import DataError
from tests.loaded import in_memory, loaded

WORDS = [f"{a}{b}" for a in "bdfgklmnps" for b in "aeiou"]
"""Fifty words."""


def stratify_row_by_row(labels: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Algorithm 1 of Sechidis et al. (2011) for rows that all differ."""
    rng = np.random.default_rng(seed)
    fold, unassigned = np.full(len(labels), -1), np.ones(len(labels), dtype=bool)
    desired_rows = np.full(folds, len(labels) / folds)
    desired = np.tile(labels.sum(0) / folds, (folds, 1))
    while (counts := labels[unassigned].sum(0)).any():
        label = np.where(counts > 0, counts, len(labels) + 1).argmin()
        for row in rng.permutation(np.flatnonzero(labels[:, label] & unassigned)):
            best = np.flatnonzero(desired[:, label] == desired[:, label].max())
            best = best[desired_rows[best] == desired_rows[best].max()] if len(best) > 1 else best
            fold[row] = chosen = rng.choice(best)
            desired[chosen] -= labels[row]
            desired_rows[chosen] -= 1
            unassigned[row] = False
    for row in rng.permutation(np.flatnonzero(unassigned)):
        fold[row] = desired_rows.argmax()
        desired_rows[fold[row]] -= 1
    return fold


@pytest.mark.parametrize("rows", [7, 60, 500])
def test_distinct_rows_are_divided_by_the_published_algorithm(rows: int) -> None:
    labels = np.random.default_rng(rows).random((rows, 6)) < [0.02, 0.1, 0.3, 0.3, 0.5, 0.9]
    for seed in range(3):
        expected = stratify_row_by_row(labels, 10, seed).tolist()
        assert stratify(labels, 10, seed).tolist() == expected
        assert stratify(labels, 10, seed, np.arange(rows)).tolist() == expected


def test_labels_are_balanced_whatever_the_group_sizes() -> None:
    rng = np.random.default_rng(0)
    inputs = number_inputs(rng.integers(0, 300, 1000).tolist())
    labels = rng.random((1000, 5)) < 0.3
    fold = stratify(labels, 10, 0, inputs)
    assert len(np.unique(np.stack([inputs, fold]), axis=1).T) == inputs.max() + 1
    assert np.bincount(fold).tolist() == pytest.approx([100] * 10, abs=12)
    assert np.stack([labels[fold == i].sum(0) for i in range(10)]) == pytest.approx(30, abs=15)
    repeated = np.where(rng.random(1000) < 0.4, 0, inputs)  # one input is more than a fold
    fold = stratify(labels, 10, 0, number_inputs(repeated.tolist()))
    assert sorted(set(fold.tolist())) == list(range(10)) and len(set(fold[repeated == 0].tolist())) == 1


def format_conll(rows: Sequence[str]) -> str:
    return "".join(f"{word}\tN\tB-X\nruns\tV\tO\n\n" for word in rows)


def format_roles(rows: Sequence[str]) -> str:
    return "".join(f"{word}\t-\t(ARG0*)\nruns\trun\t(V*)\n\n" for word in rows)


def format_libsvm(rows: Sequence[str]) -> str:
    return "".join(f"{i % 2} {1 + WORDS.index(word)}:0.5 60:0.1 {61 + i % 7}:0\n" for i, word in enumerate(rows))


FILES: dict[str, tuple[Callable[[Sequence[str]], str], str, dict[str, Any]]] = {
    "table.csv": (
        lambda rows: ",n,word,a,b\n" + "".join(f"{i},1{'.0' * (i % 2)},{w},1,{i % 2}\n" for i, w in enumerate(rows)),
        "multilabel",
        {"labels": "a,b"},
    ),
    "table.arff": (
        lambda rows: (
            f"@relation r\n@attribute w {{{','.join(WORDS)}}}\n@attribute n numeric\n@attribute a {{0,1}}\n"
            "@data\n" + "".join(f"{w},0.5,{i % 2}\n" for i, w in enumerate(rows))
        ),
        "multilabel",
        {"label_count": 1},
    ),
    "vectors.svm": (format_libsvm, "multilabel", {}),
    "texts.csv": (
        lambda rows: "text,labels\n" + "".join(f"{['He ', 'he'][i % 2]} {w}!,x\n" for i, w in enumerate(rows)),
        "text",
        {},
    ),
    "words.conll": (format_conll, "tagging", {"scheme": "bio"}),
    "roles.conll": (format_roles, "srl", {}),
    "senses.jsonl": (
        lambda rows: "".join(f'{{"words": ["{w}", "ran"], "predicate": 1, "sense": "run.01"}}\n' for w in rows),
        "propbank.senses",
        {},
    ),
}


ROWS = [*WORDS[:31], *WORDS[30::-1], *WORDS[:31]]
"""31 rows, each three times."""


def read_inputs(task: Any, part: str) -> set[tuple[str, ...]]:
    """A part's inputs, in readable form, without zeros and blanks."""
    inputs = [task.show(example).inputs for example in task.part(part)]
    return {
        tuple(sorted("".join(piece.lower().split()) for piece in pieces if not piece.endswith(" 0")))
        for pieces in inputs
    }


def check_apart(task: Any, parts: Sequence[str]) -> None:
    """No input is in two parts, and every input is in one."""
    inputs = [read_inputs(task, part) for part in parts]
    assert sum(map(len, inputs)) == len(set.union(*inputs)) == 31 and all(inputs)
    assert not [note for note in task.notes() if note.startswith("warning") and "inputs" in note]


@pytest.mark.parametrize("name", FILES)
def test_equal_inputs_of_a_file_stay_in_one_part(tmp_path: Path, name: str) -> None:
    write, task_type, fields = FILES[name]
    path = tmp_path / name
    path.write_text(write(ROWS))
    messages: list[str] = []
    split = split_file(path, say=messages.append, **{key: value for key, value in fields.items() if key != "scheme"})
    parts = json.loads(split.read_text())
    assert sorted(row for rows in parts.values() for row in rows) == list(range(93))
    assert "; 62 rows repeat an earlier row's input (as the task reads it) and stay in the same part" in messages[0]
    check_apart(loaded(task_type, file=str(path), split=str(split), **fields), ("train", "validation", "test"))

    test = tmp_path / f"test.{name}"
    test.write_text(write(WORDS[:3] + (WORDS[40:45] if name != "table.csv" else [])))
    task = loaded(task_type, train=str(path), test=str(test), **fields)
    assert any("; 62 rows repeat an earlier row's input" in note for note in task.notes())
    assert any(note.startswith("warning: the") and " test inputs:" in note for note in task.notes())
    train, validation = (read_inputs(task, part) for part in ("train", "validation"))
    assert len(train) + len(validation) == 31 and not train & validation and 4 <= len(validation) <= 9
    named_parts = loaded(task_type, train=str(path), validation=str(test), **fields)
    assert len(named_parts.part("train")) == 93 and not any("an earlier row" in note for note in named_parts.notes())
    count = len(test_inputs := read_inputs(named_parts, "validation"))
    note = f"warning: the train part also has 3 of the {count} validation inputs: scores on these do not measure"
    assert test_inputs and any(line.startswith(note) for line in named_parts.notes())


def test_a_sentence_with_several_predicates_in_several_rows_stays_in_one_part(tmp_path: Path) -> None:
    rows = [
        {"words": [word, "ran", "home"], "predicate": predicate, "arguments": [{"role": "A0", "start": 0, "end": 1}]}
        for predicate in (1, 2)
        for word in WORDS
    ]
    path, test = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    test.write_text(json.dumps({**rows[0], "words": ["no", "one", "ran"]}) + "\n")
    task = loaded("srl", train=str(path), test=str(test))
    train, validation = (read_inputs(task, part) for part in ("train", "validation"))
    assert len(task.part("validation")) == 2 * len(validation) and not train & validation


@pytest.mark.parametrize("kind", ["dense", "sparse", "binary", "texts", "sentences"])
def test_equal_inputs_given_in_python_stay_in_one_part(kind: str) -> None:
    indices = np.array([WORDS.index(word) for word in ROWS])
    rows: Any = np.eye(50)[indices]
    labels: Any = [["x", "y"][: 1 + i % 2] for i in range(93)]
    task_type = "multilabel"
    if kind == "dense":
        rows = np.where(rows > 0, rows * 0.5, np.where(np.arange(93)[:, None] % 2, -0.0, 0.0))
    elif kind == "sparse":
        rows = sparse.csr_array(rows * 0.5)
    elif kind == "texts":
        rows, task_type = [f"It is  {word}." if i % 2 else f"it is {word} ." for i, word in enumerate(ROWS)], "text"
    elif kind == "sentences":
        rows, task_type, labels = [[word, "runs"] for word in ROWS], "tagging", [["N", "V"]] * 93

    task = in_memory(task_type, {"train": (rows, labels)})
    train, validation = (read_inputs(task, part) for part in ("train", "validation"))
    assert len(train) + len(validation) == 31 and not train & validation
    sizes = len(task.part("train")), len(task.part("validation"))
    assert sum(sizes) == 93 and all(size % 3 == 0 for size in sizes)
    message = "62 rows repeat an earlier row's input (as the task reads it) and stay in the same part"
    assert message in str(task.protocol()["split"]) and any(message in note for note in task.notes())
    task = in_memory(task_type, {"train": (rows, labels), "validation": (rows[:5], labels[:5])})
    assert len(task.part("train")) == 93
    assert task.notes()[0].startswith("warning: the train part also has 5 of the 5 validation inputs")


def test_columns_that_a_tagger_reads_are_part_of_the_input(tmp_path: Path) -> None:
    path, test = tmp_path / "x.conll", tmp_path / "y.conll"
    path.write_text("".join(f"well\tC{i % 15}\tO\n\n" for i in range(30)))
    test.write_text("ill\tC0\tO\n\n")
    task = loaded("tagging", train=str(path), test=str(test), columns={"case": 1})
    assert any("; 15 rows repeat" in note for note in task.notes())
    with pytest.raises(DataError, match=r"found 30 equal inputs with tags; expected at least two different"):
        loaded("tagging", train=str(path), test=str(test))


def test_frequent_short_sentences_are_trained_on(tmp_path: Path) -> None:
    path = tmp_path / "talk.conll"
    path.write_text(format_conll([*WORDS[:15], *["yes"] * 60]))
    parts = json.loads(split_file(path).read_text())
    assert all(parts.values()) and {*range(15, 75)} <= {*parts["train"]}


def test_data_that_cannot_be_divided_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text(format_conll(["yes", "no"] * 20))
    with pytest.raises(DataError, match="found 40 rows with 2 different inputs; expected more rows"):
        split_file(path)
    path.write_text("Anna B-PER\nleft\tO\n")
    with pytest.raises(DataError, match=r"x\.conll: found 1 sentence; expected more sentences"):
        loaded("tagging", file=str(path), scheme="bio")
    table = tmp_path / "empty.csv"
    table.write_text("x,codes\n" + "0.5,\n" * 20)
    with pytest.raises(DataError, match=r"empty\.csv: found no label in any row"):
        loaded("multilabel", file=str(table), labels="codes")
    texts = tmp_path / "x.csv"
    texts.write_text("text,label\n" + "".join(f"no {n},{n % 2}\n" for n in range(40)))
    message = r"found 40 rows with 2 different inputs; .* differ only in digits .* task\.digits=false"
    with pytest.raises(DataError, match=message):
        loaded("text", file=str(texts))


@pytest.mark.parametrize("sizes", [(3, 1), (9, 8, 3), (5, 5), (60, 1, 1, 1, 1)])
def test_inputs_too_frequent_to_validate_on_are_trained_on(sizes: tuple[int, ...]) -> None:
    inputs = np.repeat(np.arange(len(sizes)), sizes).tolist()
    for seed in range(5):
        for labels in ([{"x"}] * len(inputs), [{i} for i in inputs]):
            carved = carve(labels, "x", inputs=inputs, seed=seed)
            assert carved.validation and len(carved.train) >= len(carved.validation)
            assert not {inputs[i] for i in carved.train} & {inputs[i] for i in carved.validation}


def test_copies_of_rows_without_labels_are_trained_on() -> None:
    labels = [{"x"} if i % 2 else None for i in range(40)]
    carved = carve([*labels, {"x"}, {"x"}], "x", inputs=[*(i // 2 for i in range(40)), "a", "b"])
    assert len(carved.validation) == 1 and carved.validation[0] >= 40


def test_parts_that_share_no_input_raise_no_warning() -> None:
    assert shared_inputs({"test": [3], "train": [1, 2], "validation": []}) == []
    [note] = shared_inputs({"test": [1, 3], "validation": [1], "train": [1, 2]})
    assert note.count(" part also has 1 of the ") == 3
