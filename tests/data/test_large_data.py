"""Training examples on disk equal those in memory: same batches, same weights, whatever happens to their index."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

import spen_plugins as sp
from spen_plugins.builtin.features.pieces import PieceIndexer
from spen_plugins.config.evaluation import evaluate
from spen_plugins.data.disk import index_cache
from spen_plugins.data.disk.index_cache import FOLDER
from spen_plugins.data.disk.on_disk import OnDisk, chosen
from spen_plugins.data.disk.shards import checksum, pieces, shards
from spen_plugins.data.equal_inputs import hash_rows
from spen_plugins.data.parts import file_parts
from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.sentences.tagged import TagPlaces
from spen_plugins.data.sentences.tagged_rows import tagged_rows
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.errors import ConfigError, DataError, Interrupted
from spen_plugins.loop import progress
from spen_plugins.loop.order import MIXED, Epochs, batches_of_pass, plan_epochs
from spen_plugins.runs.train import runner, signals
from tests.builtin.features.test_encoders import save_model
from tests.loaded import QUIET, ROOT, loaded

pa = pytest.importorskip("pyarrow")
pytest.importorskip("datasets")
from pyarrow import parquet  # noqa: E402

CONFIGS = ROOT / "configs"
SMALL = {
    "tagging": ("tags", ["features.hidden=4", "features.word_dim=4", "features=words", "method=cross_entropy"]),
    "text": ("texts", ["features.buckets=64", "features.hidden=[4]", "method=cross_entropy", "threshold=0.5"]),
}


def make_tables(seed: int, count: int) -> dict[str, Any]:
    """Sentences with tags, and the same as texts with labels, as tables."""
    rng = np.random.default_rng(seed)
    sentences = [[f"W{n}" for n in rng.integers(0, 30, length)] for length in rng.integers(1, 9, count)]
    tags = [
        [f"{'BO'[int(word[1:]) % 2]}{'-X' * (1 - int(word[1:]) % 2)}" for word in sentence] for sentence in sentences
    ]
    kinds = [[f"k{int(word[1:]) % 3}" for word in sentence] for sentence in sentences]
    labels = [sorted(set(values)) if row % 7 else [] for row, values in enumerate(kinds)]
    return {
        "tagging": pa.table({"tokens": sentences, "tags": tags, "kind": kinds}),
        "text": pa.table({"text": [" ".join(values) for values in sentences], "labels": labels}),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For each task, a folder of shards, one without rows and one in Arrow's format, and a validation file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for task in SMALL:
        (tmp_path / task).mkdir()
        for number, count in enumerate((40, 0, 25)):
            table = make_tables(number, count)[task] if count else make_tables(0, 1)[task].slice(0, 0)
            parquet.write_table(table, tmp_path / task / f"{number}.parquet", row_group_size=16)
        with pa.OSFile(str(tmp_path / task / "3.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
            out.write_table(make_tables(3, 20)[task])
        parquet.write_table(make_tables(9, 12)[task], tmp_path / f"{task}.parquet")
    return tmp_path


def load_task(folder: Path, kind: str, on_disk: bool | None = True, **fields: Any) -> sp.Task:
    fields = {"tags": "tags", **fields} if kind == "tagging" else fields
    settings = {"train": str(folder / kind), "validation": str(folder / f"{kind}.parquet"), "on_disk": on_disk}
    return loaded(kind, **(settings | fields))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("tagging", {"class_weight": "balanced"}),
        ("tagging", {"scheme": "bio", "encoding": "bioes", "columns": {"kind": "kind"}, "lowercase": False}),
        ("text", {"min_count": 2, "class_weight": "balanced"}),
        ("text", {"keep_empty": False}),
    ],
)
def test_examples_on_disk_equal_those_in_memory(folder: Path, kind: str, fields: dict[str, Any]) -> None:
    disk, memory = (load_task(folder, kind, on_disk, **fields) for on_disk in (True, False))
    train = disk.part("train")
    assert isinstance(train, OnDisk) and len(train) == len(memory.part("train"))
    assert disk.facts() == memory.facts() and disk.checksums() == memory.checksums()
    assert any("stays on disk" in note for note in disk.notes())
    rows = [len(train) - 1, 0, 41, 7]
    batch, expected = (task.collate(chosen(task.part("train"), rows), rows) for task in (disk, memory))
    assert (batch.gold == expected.gold).all() and (batch.labelled == expected.labelled).all()
    assert (batch.class_weights is None) == ("class_weight" not in fields)
    assert batch.class_weights is None or torch.equal(batch.class_weights, expected.class_weights)
    assert batch.x.inputs.keys() == expected.x.inputs.keys()
    assert all((batch.x.inputs[name] == expected.x.inputs[name]).all() for name in batch.x.inputs)
    if kind == "tagging":
        assert train.lengths.tolist() == [memory.length(example) for example in memory.part("train")]
        for one, other in zip(train, memory.part("train"), strict=True):
            assert (one.entry.words, one.names, one.spans) == (other.entry.words, other.names, other.spans)


def test_texts_on_disk_are_split_and_labelled_like_those_in_memory(folder: Path) -> None:
    """Texts without blanks between words, and labels in text cells."""
    texts = ["我很好", "今天很热", "好"]
    parquet.write_table(pa.table({"text": texts, "labels": ["['a', 'b']", "a", "b;a"]}), folder / "text" / "0.parquet")
    parquet.write_table(pa.table({"text": texts, "labels": ["a", "b", "a"]}), folder / "text.parquet")
    for path in (folder / "text").glob("[1-9]*"):
        path.unlink()
    for on_disk in (True, False):
        with pytest.raises(DataError, match=r"0\.parquet:3: found label 'b;a' beside 'b' and 'a'"):
            load_task(folder, "text", on_disk)
        task = load_task(folder, "text", on_disk, separator=";")
        assert task.space.labels == ["a", "b"] and {*task.inputs.words} == {*"我很好今天热"}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("tagging", {}), ("tagging", {"columns": {"kind": "kind"}}), ("text", {}), ("text", {"digits": False})],
)
def test_inputs_shared_with_data_on_disk_are_counted(folder: Path, kind: str, fields: dict[str, Any]) -> None:
    parts = [make_tables(9, 12)[kind], make_tables(2, 25)[kind].slice(3, 9), make_tables(3, 20)[kind].slice(0, 5)]
    table = pa.concat_tables([part.cast(parts[0].schema) for part in parts])
    if kind == "tagging":  # the words of a training row with other values in a column
        row = make_tables(2, 25)[kind].slice(1, 1)
        table = pa.concat_tables([table, row.set_column(2, "kind", pa.array([["k9"] * len(row["kind"][0])]))])
        parquet.write_table(table.slice(0, len(table) - (1 if fields else 0)), folder / "tagging.parquet")
    else:
        parquet.write_table(table, folder / "text.parquet")
    disk, memory = (load_task(folder, kind, on_disk, **fields) for on_disk in (True, False))
    notes, expected = ([note for note in task.notes() if "part also has" in note] for task in (disk, memory))
    assert notes == expected and len(notes) == 1 and int(notes[0].split()[6]) >= 14


def test_hashes_distinguish_rows() -> None:
    lists = [[], [0], [0, 0], [0, 1], [1, 0], [1], [2], [2, 1, 0], [0, 1]]
    numbers = np.array([number for row in lists for number in row], dtype=np.int64)
    lengths = np.array([len(row) for row in lists], dtype=np.int64)
    hashes = hash_rows([(numbers, lengths)])
    assert hashes[-1] == hashes[3] and len(set(hashes.tolist())) == 8
    assert len(set(hash_rows([(numbers, lengths), (numbers[::-1], lengths[::-1])]).tolist())) == 9


def make_config(folder: Path, kind: str, on_disk: bool, *overrides: str) -> dict[str, Any]:
    name, small = SMALL[kind]
    data = [f"data={folder / kind}", f"validation={folder / f'{kind}.parquet'}", f"task.on_disk={json.dumps(on_disk)}"]
    data += ["tags=tags"] if kind == "tagging" else []
    words = [*data, *small, "trainer.epochs=2", "trainer.epoch_updates=1", "trainer.batch_size=8", *overrides]
    return evaluate(CONFIGS / f"{name}.jsonnet", dict(word.split("=", 1) for word in words))


def train(folder: Path, config: dict[str, Any], name: str, **options: Any) -> tuple[bytes, ...]:
    """The files of a run with this config."""
    run = runner.run(config, "test", folder / name, QUIET, **options)
    return tuple((run / file).read_bytes() for file in ("weights.safetensors", "history.jsonl", "vocabulary.json"))


@pytest.mark.parametrize("kind", SMALL)
def test_few_examples_on_disk_train_the_same_weights_as_in_memory(folder: Path, kind: str) -> None:
    from_disk, from_memory = (train(folder, make_config(folder, kind, disk), f"run{disk}") for disk in (True, False))
    assert from_disk == from_memory


def test_texts_on_disk_for_an_encoder_come_in_the_order_of_those_in_memory(folder: Path, tmp_path: Path) -> None:
    """Padded texts are sorted by their characters, blanks and punctuation included."""
    table = make_tables(0, 60)["text"]
    texts = [text.replace(" ", "  " if row % 3 else ", ") for row, text in enumerate(table["text"].to_pylist())]
    table = table.set_column(0, "text", pa.array(texts))
    parquet.write_table(table, folder / "text" / "0.parquet")
    (tmp_path / "model").mkdir()
    indexer = PieceIndexer("p", AutoTokenizer.from_pretrained(save_model(tmp_path / "model")), 40)
    config = sp.TrainerConfig(batch_size=4)
    for words in ("rule", "blanks"):
        disk, memory = (load_task(folder, "text", on_disk, words=words, keep_empty=False) for on_disk in (True, False))
        assert set(plan_epochs(disk, disk.part("train"), config, 0, 0).lengths) == {1}
        for task in (disk, memory):
            task.indexers["p"] = indexer
        epochs, expected = (plan_epochs(task, task.part("train"), config, 0, 0) for task in (disk, memory))
        assert epochs.lengths.tolist() == expected.lengths.tolist() == [len(e.text) for e in memory.part("train")]
        assert all((a == b).all() for a, b in zip(epochs.order(0), expected.order(0), strict=True))
        for one, other in zip(disk.part("train"), memory.part("train"), strict=True):
            assert one.items["p"].ids.tolist() == indexer.index(memory.words(other.text)).ids.tolist()


def test_a_run_stopped_in_mid_epoch_resumes_exactly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spen_plugins.loop.order.MIXED", 2)
    monkeypatch.setattr(OnDisk, "block", 8)  # many blocks, of which two are mixed
    monkeypatch.setattr("spen_plugins.data.disk.on_disk.MAPPED", 20)
    config = make_config(folder, "text", True, "trainer.epoch_updates_at_most=7")
    expected = train(folder, config, "whole")
    polls = []

    class Stopped:
        def is_set(self) -> bool:
            polls.append(None)
            return len(polls) == 10  # the third batch of the second epoch, which ends the first pass

    with monkeypatch.context() as patch:
        patch.setattr(signals, "interrupts", lambda: nullcontext(Stopped()))
        with pytest.raises(Interrupted):
            runner.run(config, "test", folder / "stopped", QUIET)
    run = runner.resume(folder / "stopped", QUIET)
    assert len(polls) == 10
    assert tuple((run / name).read_bytes() for name in ("weights.safetensors", "history.jsonl")) == expected[:2]


def test_an_epoch_of_many_examples_is_a_part_of_a_pass() -> None:
    lengths = np.arange(50) % 6 + 1
    epochs = Epochs(lengths, 8, 1, seed=3, stage=1, max_batches=5)
    assert (epochs.batches_of_a_pass, epochs.batches) == (7, 5)
    batches = [rows for epoch in range(7) for rows in epochs.order(epoch)]
    passes = [rows for number in range(5) for rows in batches_of_pass(Epochs(lengths, 8, 1, 3, 1), number)]
    assert all((a == b).all() for a, b in zip(batches, passes, strict=True))
    assert progress._describe_size(epochs) == "5 batches of 8; a pass over the 50 examples has 7"
    assert [epochs.find_pass(1, batch) for batch in range(5)] == [0, 0, 1, 1, 1]


def test_blocks_are_shuffled_and_each_stretch_of_an_epoch_mixes_few() -> None:
    block, size = 64, 64 * (3 * MIXED) - 3
    lengths = np.random.default_rng(0).integers(1, 9, size)
    for row_lengths in (lengths, np.ones(size, dtype=int)):
        batches = batches_of_pass(Epochs(row_lengths, 2, 1, 0, 0, block=block), 0)
        assert len(batches) == -(-size // 2) and sorted(np.concatenate(batches)) == list(range(size))
        window = MIXED * block // 2
        for start in range(0, len(batches), window):
            # The last block is a row short: where it stands, a batch may have rows of the next blocks.
            blocks = set(np.concatenate(batches[start : start + window]) // block)
            assert len(blocks) <= MIXED + 1
        first = np.concatenate(batches[:window]) // block
        assert len(set(first)) > MIXED // 2 and (np.diff(first) != 0).mean() > 0.5, "blocks and rows are mixed"
        same_epochs = Epochs(row_lengths, 2, 1, 0, 0, block=block)
        repeated = batches_of_pass(same_epochs, 0)
        assert all((a == b).all() for a, b in zip(batches, repeated, strict=True))
        assert (np.concatenate(batches_of_pass(same_epochs, 1)) != np.concatenate(batches)).any()


def record_indices(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders in which an index is written from now on."""
    folders: list[Path] = []
    write = index_cache.write_index
    monkeypatch.setattr(
        index_cache, "write_index", lambda folder, *rest: (folders.append(folder), write(folder, *rest))[1]
    )
    return folders


def test_an_index_is_kept_until_data_or_settings_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index_folders = record_indices(monkeypatch)
    facts = load_task(folder, "text").facts()
    [index] = (folder / FOLDER).glob("text-*")
    assert load_task(folder, "text").facts() == facts and len(index_folders) == 1
    load_task(folder, "text", lowercase=False)
    assert len(index_folders) == 2 and len(list((folder / FOLDER).glob("text-*"))) == 2
    parquet.write_table(make_tables(5, 3)["text"], folder / "text" / "4.parquet")
    changed = load_task(folder, "text")
    assert len(index_folders) == 3 and len(changed.part("train")) == 88
    for name in ("rows.arrow", "lexicons.arrow", "index.json"):
        data = (index / name).read_bytes()
        for damaged in (data[: len(data) // 2], data[:-9] + b"x" + data[-8:], b"", None):
            (index / name).unlink()
            if damaged is not None:
                (index / name).write_bytes(damaged)
            index_folders.clear()
            assert load_task(folder, "text").facts() == changed.facts() and len(index_folders) == 1, (name, damaged)
    assert not list((folder / FOLDER).glob("*.partial"))


@pytest.mark.parametrize("kind", SMALL)
def test_an_index_of_other_data_is_not_trained_on(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it claims to belong to these data."""
    index_folders = record_indices(monkeypatch)
    other = folder / "elsewhere" / kind
    other.mkdir(parents=True)
    parquet.write_table(make_tables(8, 30)[kind], other / "0.parquet")
    load_task(folder, kind, train=str(other))
    path, facts = str(folder / kind), load_task(folder, kind).facts()
    [index], [foreign] = (parent.glob(f"{FOLDER}/{kind}-*") for parent in (folder, other.parent))
    contents = json.loads((foreign / "index.json").read_text())
    contents["data"] = checksum(folder / kind)
    (foreign / "index.json").write_text(json.dumps(contents))
    for is_recorded in (True, False):  # whether an index of these data was made here before
        shutil.rmtree(index)
        shutil.copytree(foreign, index)
        if not is_recorded:
            shutil.rmtree(folder / "cache")
        index_folders.clear()
        assert load_task(folder, kind, train=path).facts() == facts and len(index_folders) == 1
        assert load_task(folder, kind, train=path).facts() == facts and len(index_folders) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / f"{kind}.parquet"))  # nothing can be recorded there
    assert load_task(folder, kind, train=path).facts() == facts and len(index_folders) == 2


@pytest.mark.parametrize("kind", SMALL)
def test_a_checksum_is_computed_once(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_task(folder, kind)
    names: list[str] = []
    monkeypatch.setattr(
        "spen_plugins.data.disk.shards.sha256", lambda path: (names.append(path.name), sp.sha256(path))[1]
    )
    load_task(folder, kind)
    assert sorted(names) == ["0.parquet", "1.parquet", "2.parquet", "3.arrow", f"{kind}.parquet"]


def test_an_index_that_is_replaced_while_it_is_read_does_not_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spen_plugins.data.disk.on_disk.MAPPED", 3)
    train = load_task(folder, "text").part("train")
    texts = [example.text for example in train]
    for change in (lambda path: parquet.write_table(make_tables(5, 70)["text"], path), Path.unlink):
        change(folder / "text" / "0.parquet")
        load_task(folder, "text")
        assert [example.text for example in train] == texts
    shutil.rmtree(folder / FOLDER)
    assert [train[row].text for row in range(len(train))] == texts


def test_an_index_that_cannot_be_next_to_the_data_is_in_the_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (folder / FOLDER).write_text("no folder")
    index_folders = record_indices(monkeypatch)
    for _ in range(2):
        task = load_task(folder, "tagging")
        assert len(task.part("train")) == 85 and str(tmp_path / "cache" / "spen_plugins" / "indexed") in task.notes()[0]
    assert len(index_folders) == 1


def test_large_files_stay_on_disk_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(load_task(folder, "text", None).part("train"), OnDisk)
    monkeypatch.setattr(file_parts, "LARGE", 100)
    assert isinstance(load_task(folder, "text", None).part("train"), OnDisk)
    assert isinstance(load_task(folder, "text", None, train=f"{folder}/text/*.parquet").part("train"), OnDisk)
    semi = load_task(folder, "tagging", None, labelled=5)
    assert not isinstance(semi.part("train"), OnDisk) and len(semi.part("train")) == 85


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("text", {"validation": None, "test": "t.parquet"}, "no task.validation, and data on disk cannot be divided"),
        ("text", {"train": "t.tsv"}, "t.tsv is not a Parquet or Arrow file, nor a folder or pattern of such files"),
        ("text", {"train": None, "validation": None, "corpus": "sample"}, "found true, which has no effect"),
        ("tagging", {"labelled": 5, "repeat": 2}, "must be in memory for task.labelled and task.repeat"),
    ],
)
def test_data_that_cannot_stay_on_disk_are_rejected(
    folder: Path, kind: str, fields: dict[str, Any], message: str
) -> None:
    (folder / "t.tsv").write_text("a\tb\n")
    parquet.write_table(make_tables(0, 5)["text"], folder / "t.parquet")
    fields = {key: str(folder / value) if str(value)[:2] == "t." else value for key, value in fields.items()}
    with pytest.raises(ConfigError, match=message):
        load_task(folder, kind, **fields)


STRINGS = pa.list_(pa.string())


@pytest.mark.parametrize(
    ("kind", "columns", "message"),
    [
        ("tagging", {"words": [["a"]], "x": [["b"]], "y": [["c"]]}, ": found columns words, x, y; expected a column n"),
        ("tagging", {"tags": [["a"]], "x": [["b"]], "y": [["c"]]}, "named 'tokens' or 'words', or the name of a colu"),
        ("tagging", {"tokens": ["a b"], "tags": [["c"]]}, ": found column 'tokens' of type string; expected lists of"),
        ("tagging", {"tokens": [["a"]], "tags": [[0.5]]}, "column 'tags' of type list<.*double>; expected lists of te"),
        ("tagging", {"tokens": [["a"], None], "tags": [["c"], ["d"]]}, ":2: found null in column 'tokens'; expected a"),
        (
            "tagging",
            {"tokens": [["a"], ["b"]], "tags": [["c"], [None]]},
            ":2: found null among the values in column",
        ),
        ("tagging", {"tokens": [["a"], ["b"]], "tags": [["c"], ["d", "e"]]}, ":2: found 2 values in .* for 1 words; e"),
        ("tagging", {"tokens": [["a"], []], "tags": [["c"], []]}, ":2: found a sentence without words; expected at l"),
        ("text", {"text": ["a", None], "labels": [["x"], ["y"]]}, ":2: found null in column 'text'; expected a text"),
        ("text", {"text": [["a"]], "labels": [["x"]]}, r":1: found the list \['a'\] in column 'text'; expected a text"),
        ("text", {"text": ["a"], "labels": [["x", None]]}, ":1: found null among the labels; expected label names"),
        (
            "text",
            {"text": ["a", "b"], "labels": [["x"], None]},
            ":2: found null in column 'labels'; expected labels; for none, an",
        ),
        ("text", {"text": ["a"], "x": ["b"], "y": ["c"]}, "a label column named 'labels' or 'label'; or"),
    ],
)
@pytest.mark.parametrize("on_disk", [True, False])
def test_errors_name_the_file_and_row_of_bad_rows(
    folder: Path, kind: str, columns: dict[str, Sequence[Any]], message: str, on_disk: bool
) -> None:
    parquet.write_table(pa.table(columns), folder / kind / "2.parquet")
    with pytest.raises(DataError, match=f"{kind}/2.parquet{message}" if message[0] == ":" else message):
        load_task(folder, kind, on_disk, **({"tags": None} if kind == "tagging" else {}))
    assert not list((folder / FOLDER).glob("*-*"))


@pytest.mark.parametrize("on_disk", [True, False])
def test_damaged_files_and_missing_rows_are_reported(folder: Path, on_disk: bool) -> None:
    (folder / "tagging" / "2.parquet").write_bytes((folder / "tagging" / "2.parquet").read_bytes()[:300])
    with pytest.raises(DataError, match=r"2\.parquet"):
        load_task(folder, "tagging", on_disk)
    shutil.rmtree(folder / "tagging")
    (folder / "tagging").mkdir()
    parquet.write_table(make_tables(0, 1)["tagging"].slice(0, 0), folder / "tagging" / "0.parquet")
    with pytest.raises(DataError, match="tagging: found no row; expected at least one"):
        load_task(folder, "tagging", on_disk)
    with pytest.raises(DataError, match=r"none\*: found no matching file"):
        load_task(folder, "tagging", on_disk, train=str(folder / "none*"))
    (folder / "a.tsv").write_text("a\tb\n")
    with pytest.raises(DataError, match=r"a\.tsv: found another format; expected a Parquet or Arrow file"):
        load_task(folder, "tagging", on_disk, train=str(folder / "*.tsv"))


def test_an_arrow_file_with_any_byte_changed_is_read_or_rejected(folder: Path) -> None:
    path = folder / "tagging" / "3.arrow"
    data, rng = path.read_bytes(), np.random.default_rng(0)
    rejections = 0
    for _ in range(150):
        index = int(rng.integers(len(data)))
        path.write_bytes(data[:index] + bytes([data[index] ^ int(rng.integers(1, 256))]) + data[index + 1 :])
        try:
            for rows in tagged_rows(TagPlaces(tags="tags"), path, True):
                list(rows.sentences())
        except DataError:
            rejections += 1
    assert 10 < rejections < 150


def test_labels_are_those_of_a_file_or_of_all_parts(folder: Path) -> None:
    parquet.write_table(pa.table({"text": ["W1 W2"], "labels": [["new"]]}), folder / "text.parquet")
    task = load_task(folder, "text")
    assert task.space.labels == ["k0", "k1", "k2", "new"]
    assert any("no training example has 1 of the 4 labels (new)" in note for note in task.notes())
    parquet.write_table(pa.table({"tokens": [["W1"]], "tags": [["new"]]}), folder / "tagging.parquet")
    tagged = load_task(folder, "tagging")
    assert "new" not in tagged.space.tags and tagged.part("validation")[0].tags.tolist() == [-1]
    (folder / "names.txt").write_text("k0\nk2\nnew\n")
    path = str(folder / "names.txt")
    with pytest.raises(DataError, match=r"text/0\.parquet:\d+: found label 'k1'; expected one of the 3 known labels"):
        load_task(folder, "text", labels=path)


def test_a_file_of_tags_is_split_and_trained_on_in_memory(folder: Path) -> None:
    path = folder / "tagging.parquet"
    matrix, description, _ = read_strata(path, ColumnKeys(tags="tags"))
    assert matrix.shape == (12, 2) and description == "read as Parquet or Arrow, stratified by 2 tags"
    (folder / "split.json").write_text(json.dumps({"train": [0, 3], "validation": [1], "test": [2]}))
    task = loaded("tagging", file=str(path), split=str(folder / "split.json"), tags="tags")
    assert len(task.part("train")) == 2 and task.part("test")[0].names == tuple(
        make_tables(9, 12)["tagging"]["tags"][2].as_py()
    )


def test_numbers_of_hugging_face_are_names(folder: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, List, Value

    features = Features({"tokens": List(Value("string")), "tags": List(ClassLabel(names=["NOUN", "VERB"]))})
    data = Dataset.from_dict({"tokens": [["dogs", "bark"], ["cats"]], "tags": [[0, 1], [0]]}, features=features)
    shutil.rmtree(folder / "tagging")
    data.save_to_disk(str(folder / "tagging"))
    for on_disk in (True, False):
        task = load_task(folder, "tagging", on_disk)
        assert [example.names for example in task.part("train")] == [("NOUN", "VERB"), ("NOUN",)]
    texts = Features({"text": Value("string"), "label": ClassLabel(names=["bad", "good"])})
    Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=texts).to_parquet(str(folder / "t.parquet"))
    text_task = load_task(folder, "text", train=str(folder / "t.parquet"))
    assert [text_task.space.labels[i] for example in text_task.part("train") for i in example.gold] == ["good", "bad"]


def test_cached_tables_of_datasets_are_not_data(folder: Path) -> None:
    from datasets import Dataset, load_from_disk

    Dataset.from_dict({"text": ["a", "b"], "label": ["x", "y"]}).save_to_disk(str(folder / "saved"))
    computed = load_from_disk(str(folder / "saved")).map(lambda row: {"text": row["text"].upper()})
    assert [Path(file["filename"]).name[:6] for file in computed.cache_files] == ["cache-"]
    assert [file.name for file in shards(folder / "saved")] == ["data-00000-of-00001.arrow"]


def test_minus_one_of_hugging_face_is_not_a_label(folder: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, Value

    texts = Features({"text": Value("string"), "label": ClassLabel(names=["bad", "good"])})
    Dataset.from_dict({"text": ["a", "b"], "label": [1, -1]}, features=texts).to_parquet(str(folder / "t.parquet"))
    assert [rows.column("label").to_pylist() for _, rows in pieces(folder / "t.parquet")] == [["good", None]]


def test_without_datasets_an_error_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ConfigError, match=re.escape("pip install 'spen-plugins[arrow]'; task.on_disk=false keeps")):
        load_task(folder, "text")
