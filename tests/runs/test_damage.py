"""Damaged run folders and strange files: every command that reads them reports the fault in one line."""

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
def complete_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return runner.run(evaluate("labels", SMALL), "labels", folder, runner.RunOptions("cpu", True, 0.0))


@pytest.fixture
def run(complete_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(complete_run, tmp_path / "run")


def overwrite(data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(data)

    return damage


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to(target: str | None) -> Callable[[Path], None]:
    """A link in place of the file; None: a link to itself."""

    def damage(path: Path) -> None:
        path.unlink()
        path.symlink_to(target or path.name)

    return damage


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def put_values(**values: object) -> Callable[[Path], None]:
    """Other values in a JSON file, or in each line of a file of them."""

    def damage(path: Path) -> None:
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        path.write_text("\n".join(json.dumps(json.loads(line) | values) for line in lines))

    return damage


def change_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        loaded = load_file(path)
        changed = {name: tensor.clone() for name, tensor in loaded.items()}
        change(changed)
        save_file(changed, path, {"part": "test"})

    return damage


def find_float_tensor(tensors: dict[str, torch.Tensor]) -> str:
    return sorted(name for name, tensor in tensors.items() if tensor.is_floating_point())[0]


FILES: dict[str, Callable[[Path], None]] = {
    "empty": overwrite(b""),
    "cut": cut_in_half,
    "a folder": make_folder,
    "a loop": link_to(None),
    "zeros without end": link_to("/dev/zero"),
    "a pipe": make_pipe,
}
TEXTS = FILES | {
    "UTF-16": overwrite('{"seed": 1}'.encode("utf-16")),
    "a list": overwrite(b"[1, 2]"),
    "deep": overwrite(b'{"a":' * 100_000),
    "an infinite number": overwrite(b'{"a": 1e999}'),
    "NaN": overwrite(b'{"a": NaN}'),
    "half a character": overwrite(b'{"a": "\\ud800"}'),
}


def set_nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors[find_float_tensor(tensors)].view(-1)[0] = torch.nan


def set_infinite(tensors: dict[str, torch.Tensor]) -> None:
    tensors[find_float_tensor(tensors)].view(-1)[-1] = -torch.inf


def set_huge(tensors: dict[str, torch.Tensor]) -> None:
    """Finite weights with NaN as outputs: ∞ − ∞."""
    tensors["inference_net.features.first.weight"].fill_(3e38)
    tensors["inference_net.output.weight"][:, ::2] = 1
    tensors["inference_net.output.weight"][:, 1::2] = -1


TENSORS = FILES | {
    "no tensors": overwrite(b"hello"),
    "a header of terabytes": overwrite((1 << 42).to_bytes(8, "little") + b"{}"),
    "data of terabytes": overwrite(
        (91).to_bytes(8, "little")
        + b'{"energy.v":{"dtype":"F32","shape":[1099511627776,64],"data_offsets":[0,281474976710656]}}'.ljust(91)
    ),
    "NaN": change_tensors(set_nan),
    "infinite": change_tensors(set_infinite),
    "none": change_tensors(dict.clear),
}
WEIGHTS = TENSORS | {"outputs NaN": change_tensors(set_huge)}

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
    ("config.json", {"no task": put_values(task=5), "seed": put_values(seed="x")}, (PREDICT, COMPARE, RESUME)),
    ("environment.json", FEW, (PREDICT, COMPARE, RESUME)),
    ("environment.json", {"format": put_values(format=[]), "data": put_values(data_sha256=3)}, (COMPARE,)),
    ("vocabulary.json", FEW, (PREDICT, CALIBRATE)),
    ("vocabulary.json", {"labels": put_values(labels=5), "features": put_values(features=[[1, 2]])}, (PREDICT,)),
    ("metrics.json", FEW, (COMPARE, REPORT, RESUME)),
    ("metrics.json", {"test": put_values(test=5), "protocol": put_values(protocol="x")}, (COMPARE,)),
    ("calibration.json", FEW | {"none": put_values(temperature=None)}, (PREDICT,)),
    ("history.jsonl", TEXTS, (PLOT,)),
    (
        "history.jsonl",
        {"stage": put_values(stage=1), "losses": put_values(losses=[1]), "score": put_values(score="x")},
        (COMPARE, PLOT),
    ),
    ("times.jsonl", {"seconds": put_values(seconds=None)} | FEW, (COMPARE,)),
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
def input_file(complete_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to predict."""
    names = [name for name, _ in json.loads((complete_run / "vocabulary.json").read_text())["features"]]
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    return path


def get_error(words: tuple[str, ...], run: Path, input_file: Path) -> str:
    """The error of a command, which is one line."""
    line = [{"RUN": str(run), "INPUT": str(input_file)}.get(word, word) for word in words]
    result = CliRunner().invoke(run_app if words[0] == "--resume" else app, line)
    assert isinstance(result.exception, SystemExit), result.exception
    lines = result.stderr.strip().splitlines()
    assert result.exit_code in (1, 2), lines
    assert lines and lines[-1].startswith("error: "), lines
    assert not any("Traceback" in line for line in lines)
    return lines[-1]


@pytest.mark.parametrize(("name", "damage", "command"), CASES)
def test_a_damaged_run_is_reported_in_one_line(
    name: str, damage: Callable[[Path], None], command: tuple[str, ...], run: Path, input_file: Path
) -> None:
    if command is COMPARE and name == "examples.safetensors":
        other = shutil.copytree(run, run.with_name("other"))
        command = ("compare", str(other), "RUN")
    damage(run / name)
    if command is RESUME and name != "metrics.json":
        (run / "metrics.json").unlink()
    message = get_error(command, run, input_file)
    assert str(run) in message or "nothing to plot" in message  # for an empty history


def test_a_warm_start_takes_no_damaged_weights(run: Path, tmp_path: Path) -> None:
    change_tensors(set_nan)(run / "weights.safetensors")
    words = ["labels", *(f"{name}={value}" for name, value in SMALL.items()), f"init.energy={run}"]
    result = spen_run(*words, "--out", tmp_path / "new", status=2)
    assert f"error: init.energy: {run}/weights.safetensors is damaged" in result.stderr
    assert not (tmp_path / "new").exists()


CHECKPOINT = {
    "cut": cut_in_half,
    "a folder": make_folder,
    "deep": TEXTS["deep"],
    "no state": overwrite(b"{}"),
    "another state": put_values(state={"$table": [["position", {"$table": [["stage", "x"]]}]]}),
    "a key less": put_values(state={"$table": [["model", {"$table": []}]]}),
    "no table": put_values(state=5),
}


@pytest.mark.parametrize("damage", CHECKPOINT.values(), ids=CHECKPOINT)
def test_a_damaged_checkpoint_is_reported_in_one_line(
    damage: Callable[[Path], None], run: Path, input_file: Path
) -> None:
    (run / "metrics.json").unlink()
    [path] = (run / "checkpoint").glob("state*.json")
    damage(path)
    assert "checkpoint" in get_error(RESUME, run, input_file)


def test_a_checkpoints_weights_are_checked(run: Path, input_file: Path) -> None:
    (run / "metrics.json").unlink()
    [path] = (run / "checkpoint").glob("*.safetensors")

    def change(checkpoint: dict[str, torch.Tensor]) -> None:
        weights = {name: tensor for name, tensor in checkpoint.items() if ".model." in name}
        set_nan(weights)
        checkpoint.update(weights)

    change_tensors(change)(path)
    [index] = (run / "checkpoint").glob("state*.json")
    put_values(sha256=sha256(path))(index)
    assert "NaN or infinite" in get_error(RESUME, run, input_file)


def test_json_has_null_for_nan_and_infinity(tmp_path: Path) -> None:
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
    ("make", "message"),
    [
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path.name), "a file that can't be opened"),
        (lambda path: None, "no such file"),
    ],
    ids=["pipe", "device", "loop", "missing"],
)
def test_data_are_read_from_files_alone(
    read: Callable[[Path], object], make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    make(path)
    with pytest.raises(DataError, match=f"data: found ({message}|no such file)"):
        read(path)


def test_a_message_shortens_long_values() -> None:
    message = str(DataError("data", 4, "<date> closed by </" + "x" * 100_000 + ">", "</date>"))
    assert message.startswith("data:4: found <date> closed by </xxx") and message.endswith("xxx…; expected </date>")
    assert len(message) < 600


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a\nb\n")
    (tmp_path / "link").symlink_to("file")
    assert read_lines(tmp_path / "link") == ["a", "b"]


def test_the_output_of_a_process_is_not_a_file(run: Path) -> None:
    """As in `spen predict RUN <(zcat rows.csv.gz)`."""
    read_end, write_end = os.pipe()
    try:
        message = get_error(PREDICT, run, Path(f"/dev/fd/{read_end}"))
    finally:
        os.close(read_end)
        os.close(write_end)
    assert "found a pipe; expected a file" in message


def test_errors_for_files_larger_than_memory_say_their_size(tmp_path: Path) -> None:
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
    ("data", "message"),
    [
        (b"caf\xe9", "line|:1: found byte 0xe9"),
        (b"\n\n\xff", ":3: found byte"),
        (b"a\tb", "expected raw text"),
        (b"a\0b\0", ":1: found a zero byte"),
    ],
)
def test_standard_input_is_text(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_standard_input(io.BytesIO(data))
    assert read_standard_input(io.BytesIO(b"\xef\xbb\xbfcaf\xc3\xa9\n")) == "café\n"


def test_words_of_a_command_line_are_utf_8() -> None:
    assert argument("café") == argument(b"caf\xc3\xa9".decode("ascii", "surrogateescape")) == "café"
    word = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(DataError, match="--text:1: found byte 0xe9, which is not UTF-8"):
        argument(word)


def test_memory_that_runs_out_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    (tmp_path / "x.json").write_text("{}")
    monkeypatch.setattr("spen_plugins.files.reading.from_json", fail)
    with pytest.raises(MemoryError):
        read_json(tmp_path / "x.json")
