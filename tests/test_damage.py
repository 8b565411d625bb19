"""Damaged run folders and strange files: every command that reads them says what is wrong, in a line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from spen_plugins.cli.main import app
from spen_plugins.cli.run import app as run_app
from spen_plugins.config.evaluation import evaluate
from spen_plugins.runs import runner

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
    return runner.run(evaluate("mlc_seal", SMALL), "mlc_seal", folder, "cpu", True, 0.0)


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
    "latin-1": bytes_of(b'{"se\xe9d": 1}'),
    "a list": bytes_of(b"[1, 2]"),
    "a number": bytes_of(b"7"),
    "deep": bytes_of(b'{"a":' * 100_000),
    "deep and whole": bytes_of(b"[" * 100_000 + b"]" * 100_000),
    "a long number": bytes_of(b'{"a": ' + b"9" * 5000 + b"}"),
    "an infinite number": bytes_of(b'{"a": 1e999}'),
    "NaN": bytes_of(b'{"a": NaN}'),
    "half a character": bytes_of(b'{"a": "\\ud800"}'),
}


def nan(found: dict[str, torch.Tensor]) -> None:
    found[first(found)].view(-1)[0] = torch.nan


def infinite(found: dict[str, torch.Tensor]) -> None:
    found[first(found)].view(-1)[-1] = -torch.inf


def whole_numbers(found: dict[str, torch.Tensor]) -> None:
    found[first(found)] = found[first(found)].int()


def too_large(found: dict[str, torch.Tensor]) -> None:
    found[first(found)] = torch.full_like(found[first(found)], 1e300, dtype=torch.double)


TENSORS = FILES | {
    "no tensors": bytes_of(b"hello"),
    "a header of terabytes": bytes_of((1 << 42).to_bytes(8, "little") + b"{}"),
    "data of terabytes": bytes_of(
        (91).to_bytes(8, "little")
        + b'{"energy.v":{"dtype":"F32","shape":[1099511627776,64],"data_offsets":[0,281474976710656]}}'.ljust(91)
    ),
    "NaN": tensors(nan),
    "infinite": tensors(infinite),
    "whole numbers": tensors(whole_numbers),
    "none": tensors(dict.clear),
}
WEIGHTS = TENSORS | {"too large for float32": tensors(too_large)}

PREDICT = ("predict", "RUN", "INPUT")
COMPARE = ("compare", "RUN")
REPORT = ("report", "RUN", "--examples", "0")
PLOT = ("plot", "training", "RUN")
RESUME = ("--resume", "RUN", "-q")
CALIBRATE = ("calibrate", "RUN")

FEW = {kind: TEXTS[kind] for kind in ("cut", "a folder", "a list", "deep")}
TABLE = [
    ("config.json", TEXTS, (COMPARE,)),
    ("config.json", FEW, (PREDICT, REPORT, PLOT, RESUME, CALIBRATE)),
    ("config.json", {"no task": put(task=5), "type": put(task={"type": 7})}, (PREDICT, COMPARE, RESUME)),
    ("config.json", {"seed": put(seed="x")}, (PREDICT, COMPARE, PLOT)),
    ("environment.json", FEW, (PREDICT, COMPARE, RESUME)),
    ("environment.json", {"format": put(format=[]), "later": put(format=10**50)}, (COMPARE,)),
    ("environment.json", {"data": put(data_sha256=3), "sizes": put(parameters={"trained": "x"})}, (COMPARE,)),
    ("vocabulary.json", FEW, (PREDICT, CALIBRATE)),
    ("vocabulary.json", {"labels": put(labels=5), "words": put(features=[[1, 2]])}, (PREDICT,)),
    ("metrics.json", FEW, (COMPARE, REPORT, RESUME)),
    (
        "metrics.json",
        {"test": put(test=5), "protocol": put(protocol="x"), "unit": put(protocol={"unit": []})},
        (COMPARE,),
    ),
    ("calibration.json", FEW, (PREDICT,)),
    ("calibration.json", {"none": put(temperature=None), "zero": put(temperature=0)}, (PREDICT,)),
    ("history.jsonl", TEXTS, (PLOT,)),
    ("history.jsonl", {"stage": put(stage=1), "losses": put(losses=[1]), "score": put(score="x")}, (COMPARE, PLOT)),
    ("times.jsonl", {"seconds": put(seconds=None)} | FEW, (COMPARE,)),
    ("weights.safetensors", WEIGHTS, (PREDICT,)),
    ("examples.safetensors", TENSORS, (COMPARE,)),
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
