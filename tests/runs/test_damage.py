"""Damaged run folders and strange files: every command that reads them says what is wrong, in a line."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from spen_e2e.gbi_figures import read_trajectory
from spen_images.images import list_images, read_image
from spen_images.masks import read_arrays
from spen_plugins.builtin.tasks.labels.reuters_parts import read_reuters
from spen_plugins.cli.main import app
from spen_plugins.cli.run import app as run_app
from spen_plugins.config.evaluation import evaluate
from spen_plugins.data.parts.split import read_split
from spen_plugins.data.records import read_json_lines
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.data.sentences.tagged import TagPlaces, read_tagged
from spen_plugins.data.sentences.tagged_rows import tagged_rows
from spen_plugins.data.tables.table_files import read_table
from spen_plugins.data.text import read_lines, sha256
from spen_plugins.data.texts.labelled_texts import Layout, read_texts
from spen_plugins.data.words import read_clusters, read_vectors
from spen_plugins.errors import DataError
from spen_plugins.files import read_json, save_json
from spen_plugins.runs.predict.tokenised import argument, read_standard_input
from spen_plugins.runs.train import runner
from tests.loaded import spen_run

SMALL = {
    "features.hidden": "[4]",
    "energy.hidden": "2",
    "energy_loss.samples": "2",
    "trainer.epochs": "1",
    "trainer.epoch_updates": "2",
    "trainer.batch_size": "512",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return runner.run(evaluate("labels", SMALL), "labels", folder, runner.RunOptions("cpu", True, 0.0))


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def bytes_of(data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(data)

    return damage


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to(target: str | None) -> Callable[[Path], None]:
    """A link in place of the file; to None: to itself."""

    def damage(path: Path) -> None:
        path.unlink()
        path.symlink_to(target or path.name)

    return damage


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def put(**values: object) -> Callable[[Path], None]:
    """Other values in a JSON file, or in each line of a file of them."""

    def damage(path: Path) -> None:
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        path.write_text("\n".join(json.dumps(json.loads(line) | values) for line in lines))

    return damage


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        found = load_file(path)
        changed = {name: tensor.clone() for name, tensor in found.items()}
        change(changed)
        save_file(changed, path, {"part": "test"})

    return damage


def first(found: dict[str, torch.Tensor]) -> str:
    return sorted(name for name, tensor in found.items() if tensor.is_floating_point())[0]


FILES: dict[str, Callable[[Path], None]] = {
    "empty": bytes_of(b""),
    "cut": half,
    "a folder": folder,
    "a loop": link_to(None),
    "zeros without end": link_to("/dev/zero"),
    "a pipe": pipe,
}
TEXTS = FILES | {
    "UTF-16": bytes_of('{"seed": 1}'.encode("utf-16")),
    "a list": bytes_of(b"[1, 2]"),
    "deep": bytes_of(b'{"a":' * 100_000),
    "an infinite number": bytes_of(b'{"a": 1e999}'),
    "NaN": bytes_of(b'{"a": NaN}'),
    "half a character": bytes_of(b'{"a": "\\ud800"}'),
}


def nan(found: dict[str, torch.Tensor]) -> None:
    found[first(found)].view(-1)[0] = torch.nan


def infinite(found: dict[str, torch.Tensor]) -> None:
    found[first(found)].view(-1)[-1] = -torch.inf


def huge(found: dict[str, torch.Tensor]) -> None:
    """Finite weights whose outputs are not: ∞ − ∞."""
    found["inference_net.features.first.weight"].fill_(3e38)
    found["inference_net.output.weight"][:, ::2] = 1
    found["inference_net.output.weight"][:, 1::2] = -1


TENSORS = FILES | {
    "no tensors": bytes_of(b"hello"),
    "a header of terabytes": bytes_of((1 << 42).to_bytes(8, "little") + b"{}"),
    "data of terabytes": bytes_of(
        (91).to_bytes(8, "little")
        + b'{"energy.v":{"dtype":"F32","shape":[1099511627776,64],"data_offsets":[0,281474976710656]}}'.ljust(91)
    ),
    "NaN": tensors(nan),
    "infinite": tensors(infinite),
    "none": tensors(dict.clear),
}
WEIGHTS = TENSORS | {"outputs NaN": tensors(huge)}

PREDICT = ("predict", "RUN", "INPUT")
COMPARE = ("compare", "RUN")
REPORT = ("report", "RUN", "--examples", "0")
PLOT = ("plot", "training", "RUN")
RESUME = ("--resume", "RUN", "-q")
CALIBRATE = ("calibrate", "RUN")

FEW = {kind: TEXTS[kind] for kind in ("cut", "a folder", "a list")}
TABLE = [
    ("config.json", TEXTS, (COMPARE,)),
    ("config.json", FEW, (PREDICT, REPORT, PLOT, RESUME, CALIBRATE)),
    ("config.json", {"no task": put(task=5), "seed": put(seed="x")}, (PREDICT, COMPARE, RESUME)),
    ("environment.json", FEW, (PREDICT, COMPARE, RESUME)),
    ("environment.json", {"format": put(format=[]), "data": put(data_sha256=3)}, (COMPARE,)),
    ("vocabulary.json", FEW, (PREDICT, CALIBRATE)),
    ("vocabulary.json", {"labels": put(labels=5), "features": put(features=[[1, 2]])}, (PREDICT,)),
    ("metrics.json", FEW, (COMPARE, REPORT, RESUME)),
    ("metrics.json", {"test": put(test=5), "protocol": put(protocol="x")}, (COMPARE,)),
    ("calibration.json", FEW | {"none": put(temperature=None)}, (PREDICT,)),
    ("history.jsonl", TEXTS, (PLOT,)),
    ("history.jsonl", {"stage": put(stage=1), "losses": put(losses=[1]), "score": put(score="x")}, (COMPARE, PLOT)),
    ("times.jsonl", {"seconds": put(seconds=None)} | FEW, (COMPARE,)),
    ("weights.safetensors", WEIGHTS, (PREDICT,)),
    ("examples.safetensors", {kind: TENSORS[kind] for kind in TENSORS if kind != "none"}, (COMPARE,)),
]
CASES = [
    pytest.param(name, damage, command, id=f"{name}-{kind}-{command[0].strip('-')}")
    for name, kinds, commands in TABLE
    for kind, damage in kinds.items()
    for command in commands
]


@pytest.fixture(scope="module")
def given(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to predict."""
    names = [name for name, _ in json.loads((whole / "vocabulary.json").read_text())["features"]]
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    return path


def call(words: tuple[str, ...], run: Path, given: Path) -> str:
    """The error of a command, which is a line."""
    line = [{"RUN": str(run), "INPUT": str(given)}.get(word, word) for word in words]
    found = CliRunner().invoke(run_app if words[0] == "--resume" else app, line)
    assert isinstance(found.exception, SystemExit), found.exception
    said = found.stderr.strip().splitlines()
    assert found.exit_code in (1, 2), said
    assert said and said[-1].startswith("error: "), said
    assert not any("Traceback" in line for line in said)
    return said[-1]


@pytest.mark.parametrize(("name", "damage", "command"), CASES)
def test_a_damaged_run_is_a_sentence(
    name: str, damage: Callable[[Path], None], command: tuple[str, ...], run: Path, given: Path
) -> None:
    if command is COMPARE and name == "examples.safetensors":
        other = shutil.copytree(run, run.with_name("other"))
        command = ("compare", str(other), "RUN")
    damage(run / name)
    if command is RESUME and name != "metrics.json":
        (run / "metrics.json").unlink()
    said = call(command, run, given)
    assert str(run) in said or "nothing to plot" in said  # of an empty history


def test_a_warm_start_takes_no_damaged_weights(run: Path, tmp_path: Path) -> None:
    tensors(nan)(run / "weights.safetensors")
    words = ["labels", *(f"{name}={value}" for name, value in SMALL.items()), f"init.energy={run}"]
    refused = spen_run(*words, "--out", tmp_path / "new", status=2)
    assert f"error: init.energy: {run}/weights.safetensors is damaged" in refused.stderr
    assert not (tmp_path / "new").exists()


CHECKPOINT = {
    "cut": half,
    "a folder": folder,
    "deep": TEXTS["deep"],
    "no state": bytes_of(b"{}"),
    "another state": put(state={"$table": [["position", {"$table": [["stage", "x"]]}]]}),
    "a key less": put(state={"$table": [["model", {"$table": []}]]}),
    "no table": put(state=5),
}


@pytest.mark.parametrize("damage", CHECKPOINT.values(), ids=CHECKPOINT)
def test_a_damaged_checkpoint_is_a_sentence(damage: Callable[[Path], None], run: Path, given: Path) -> None:
    (run / "metrics.json").unlink()
    [path] = (run / "checkpoint").glob("state*.json")
    damage(path)
    assert "checkpoint" in call(RESUME, run, given)


def test_a_checkpoints_weights_are_checked(run: Path, given: Path) -> None:
    (run / "metrics.json").unlink()
    [path] = (run / "checkpoint").glob("*.safetensors")

    def change(found: dict[str, torch.Tensor]) -> None:
        weights = {name: tensor for name, tensor in found.items() if ".model." in name}
        nan(weights)
        found.update(weights)

    tensors(change)(path)
    [index] = (run / "checkpoint").glob("state*.json")
    put(sha256=sha256(path))(index)
    assert "NaN or infinite" in call(RESUME, run, given)


def test_json_has_no_number_that_is_none(tmp_path: Path) -> None:
    value = {"a": [1.5, math.nan, (math.inf, {"b": -math.inf})], "c": "NaN", math.nan: 1}
    save_json(value, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail) == {
        "a": [1.5, None, [None, {"b": None}]],
        "c": "NaN",
        "null": 1,
    }


READERS: dict[str, Callable[[Path], object]] = {
    "tables": read_table,
    "tags": lambda path: read_tagged(TagPlaces(), path, True),
    "roles": read_roles,
    "texts": lambda path: read_texts(path, Layout()),
    "shards": lambda path: list(tagged_rows(TagPlaces(), path, True)),
    "vectors": read_vectors,
    "clusters": read_clusters,
    "splits": lambda path: read_split(path, 3),
    "arrays": read_arrays,
    "an image": read_image,
    "images": list_images,
    "news": read_reuters,
    "trajectories": read_trajectory,
    "checksums": sha256,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path.name), "a file that can't be opened"),
        (lambda path: None, "no such file"),
    ],
    ids=["pipe", "device", "loop", "missing"],
)
def test_data_are_read_from_files_alone(
    read: Callable[[Path], object], make: Callable[[Path], None], found: str, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    make(path)
    with pytest.raises(DataError, match=f"data: found ({found}|no such file)"):
        read(path)


def test_a_message_shows_the_beginning_of_what_is_long() -> None:
    said = str(DataError("data", 4, "<date> closed by </" + "x" * 100_000 + ">", "</date>"))
    assert said.startswith("data:4: found <date> closed by </xxx") and said.endswith("xxx…; expected </date>")
    assert len(said) < 600


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a\nb\n")
    (tmp_path / "link").symlink_to("file")
    assert read_lines(tmp_path / "link") == ["a", "b"]


def test_what_a_process_writes_is_no_file(run: Path) -> None:
    """As in `spen predict RUN <(zcat rows.csv.gz)`."""
    out, into = os.pipe()
    try:
        said = call(PREDICT, run, Path(f"/dev/fd/{out}"))
    finally:
        os.close(out)
        os.close(into)
    assert "found a pipe; expected a file" in said


def test_files_larger_than_memory_are_refused_with_their_size(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"a\n" * 1000)
    (tmp_path / "bomb").write_bytes(gzip.compress(b"a\n" * 1_000_000))
    (tmp_path / "deep").write_bytes(b"[" * 100_000)
    with pytest.raises(DataError, match=r"plain: found a file of 0.0 GB; expected at most 0.0 GB"):
        read_lines(tmp_path / "plain", 1999)
    assert len(read_lines(tmp_path / "plain", 2000)) == 1000
    with pytest.raises(DataError, match=r"bomb: found a gzip file of more than .* when decompressed"):
        read_lines(tmp_path / "bomb", 100_000)
    with pytest.raises(DataError, match=r"deep:1: found .*too deep"):
        list(read_json_lines(tmp_path / "deep", "{}", lambda value: value))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"caf\xe9", "line|:1: found byte 0xe9"),
        (b"\n\n\xff", ":3: found byte"),
        (b"a\tb", "expected raw text"),
        (b"a\0b\0", ":1: found a zero byte"),
    ],
)
def test_standard_input_is_text(data: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        read_standard_input(io.BytesIO(data))
    assert read_standard_input(io.BytesIO(b"\xef\xbb\xbfcaf\xc3\xa9\n")) == "café\n"


def test_words_of_a_command_line_are_utf_8() -> None:
    assert argument("café") == argument(b"caf\xc3\xa9".decode("ascii", "surrogateescape")) == "café"
    word = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(DataError, match="--text:1: found byte 0xe9, which is not UTF-8"):
        argument(word)


def test_memory_that_runs_out_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    (tmp_path / "x.json").write_text("{}")
    monkeypatch.setattr("spen_plugins.files.reading.from_json", fails)
    with pytest.raises(MemoryError):
        read_json(tmp_path / "x.json")
