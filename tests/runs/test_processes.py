"""Training in two processes: the updates of one process, a killed process, and launchers' environments."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from spen_plugins import RunFolder
from spen_plugins.batch import Batch, X
from spen_plugins.cli.run import main
from spen_plugins.errors import ConfigError
from spen_plugins.loop import processes
from spen_plugins.runs.devices import count_processes, is_main_process, make_accelerator
from spen_plugins.runs.train import preparing
from spen_plugins.samples import tagged
from tests.loaded import ROOT, small_bert
from tests.runs.test_resume import FORK

CONFIGS = ROOT / "configs"


def find_free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def start(work: Callable[..., None], *arguments: Any, number: int = 2) -> list[Any]:
    """Processes as torchrun would start them, each with its rank as the first argument."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": find_free_port(), "WORLD_SIZE": str(number)}
    workers = []
    for rank in range(number):
        environment = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(number)}
        process = FORK.Process(target=_begin, args=(environment if number > 1 else {}, work, rank, *arguments))
        process.start()
        workers.append(process)
    return workers


def _begin(environment: dict[str, str], work: Callable[..., None], rank: int, *arguments: Any) -> None:
    os.environ.update({"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **environment})
    torch.set_num_threads(1)
    work(rank, *arguments)


def collect_statuses(workers: Sequence[Any], seconds: float = 300) -> list[int | None]:
    """Exit statuses; None: still running."""
    end = time.monotonic() + seconds
    for process in workers:
        process.join(max(0.0, end - time.monotonic()))
    codes = [process.exitcode for process in workers]
    for process in workers:
        process.kill()
    return codes


# Gradients.


def make_gradients(rank: int) -> list[torch.Tensor | None]:
    """A matrix with few rows that aren't 0, one with many, small ones in two precisions, one that a process misses,
    and one that all miss."""
    few, many = torch.zeros(40, 3), torch.zeros(40, 3)
    few[rank : rank + 2] = 1 + rank
    few[7 + rank, 1] = -1e-30
    many[: 30 + rank] = 0.5
    missed = None if rank else torch.ones(2)
    return [
        few,
        many,
        torch.full((2, 2), 2.0 + rank),
        torch.full((3,), 1 / 3 + rank, dtype=torch.float64),
        missed,
        None,
    ]


def add_gradients(rank: int, folder: Path) -> None:
    processes.TABLE = (40, 100)
    make_accelerator("no", None)
    sizes = []
    all_reduce = processes.distributed.all_reduce
    processes.distributed.all_reduce = lambda tensor, *rest: (sizes.append(tensor.numel()), all_reduce(tensor, *rest))
    gradients = make_gradients(rank)
    parameters = [
        torch.nn.Parameter(torch.zeros(2) if gradient is None else torch.zeros_like(gradient)) for gradient in gradients
    ]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    numbers = processes.GradientSum(parameters).add_up([rank, True])
    torch.save([numbers, sizes, [parameter.grad for parameter in parameters]], folder / f"{rank}.pt")


def test_gradients_are_the_sums_of_all_processes(tmp_path: Path) -> None:
    """Of the matrix with few rows, 5 are sent: 0, 1, 7 of rank 0 and 1, 2, 8 of rank 1; zeros are not sent."""
    assert collect_statuses(start(add_gradients, tmp_path)) == [0, 0]
    sums = [
        sum(gradient for gradient in pair if gradient is not None)
        for pair in zip(make_gradients(0), make_gradients(1), strict=True)
    ]
    for rank in range(2):
        numbers, sizes, results = torch.load(tmp_path / f"{rank}.pt")
        assert numbers == [1, 2]
        assert sizes == [80, 5 * 3 + 40 * 3 + 4 + 3 + 2 + 2 + 6 + 2]
        assert results[-1] is None
        for actual, expected in zip(results[:-1], sums[:-1], strict=True):
            assert actual.dtype == expected.dtype and torch.equal(actual, expected)


# Runs.


def run_lines(rank: int, lines: Sequence[Sequence[str]], log: Path) -> None:
    """`spen-run` with each line's words in turn, in float64, on few sentences."""
    tagged.SIZES = {"train": 61, "validation": 15, "test": 15}
    move, build = Batch.to, preparing.build
    Batch.to = lambda self, device: replace(move(self, device), gold=self.gold.double(), x=convert_to_double(self.x))
    preparing.build = lambda *arguments: (built := build(*arguments), built.model.double())[0]
    for words in lines:
        run_command(rank, words, log)


def convert_to_double(x: X) -> X:
    return replace(x, inputs={name: v.double() if v.is_floating_point() else v for name, v in x.inputs.items()})


def run_command(
    rank: int, words: Sequence[str], log: Path, sender: int = -1, update: int = 0, signal_number: int = 0
) -> None:
    """`spen-run`; the process of rank `sender` sends itself a signal before this update."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if rank == sender:
        turns = count(1)
        register_optimizer_step_pre_hook(
            lambda *_: os.kill(os.getpid(), signal_number) if next(turns) == update else None
        )
    sys.argv = ["spen-run", *words]
    file = (log.parent / f"{log.name}-{rank}").open("a", buffering=1)
    with file, redirect_stdout(file), redirect_stderr(file), pytest.raises(SystemExit) as end:
        main()
    if end.value.code:
        sys.exit(end.value.code)


def make_encoder(folder: Path) -> str:
    """A small encoder without dropout whose pieces are the sample corpus's words."""
    words = sorted({word.lower() for sentence in tagged.sample_corpus("ner")["train"] for word in sentence.words})
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return small_bert(folder, words, num_hidden_layers=2, **off)


SMALL = ("features.hidden=[16]", "features.dropout=0", "energy.hidden=8", "trainer.batch_size=255", "trainer.epochs=1")
FEW = ("features.dropout=0", "trainer.batch_size=9", "trainer.epochs=1")
STATIC = ("method=static_margin", "trainer.net_epochs=1", "trainer.energy_epochs=1")
DETERMINISTIC = {
    "dynamic": ("labels", "method=margin", *SMALL),
    "static": ("labels", *STATIC, *SMALL),
    "game": ("names", *FEW, "features.hidden=8", "features.word_dropout=0", "trainer.pretrain_epochs=1"),
    "encoder": ("names", *FEW, "method=cross_entropy", "encoder={encoder}"),
}
"""Without dropout and samples, which differ between processes. Batches of odd sizes, sentences of several lengths."""


@pytest.mark.slow
def test_two_processes_make_the_updates_of_one(tmp_path: Path) -> None:
    """SEAL, dynamic and static, the inference-net game and an encoder, in float64."""
    folder = make_encoder(tmp_path / "encoder")
    lines = {
        number: [
            [str(CONFIGS / f"{config}.jsonnet"), *words, "--out", str(tmp_path / f"{name}-{number}")]
            for name, (config, *words) in DETERMINISTIC.items()
        ]
        for number in (1, 2)
    }
    for number, words in lines.items():
        filled = [[word.format(encoder=folder) for word in line] for line in words]
        assert collect_statuses(start(run_lines, filled, tmp_path / f"said-{number}", number=number)) == [0] * number
    assert "2 processes" in (tmp_path / "said-2-0").read_text() and not (tmp_path / "said-2-1").read_text()
    for name in DETERMINISTIC:
        one, two = (RunFolder(tmp_path / f"{name}-{number}") for number in (1, 2))
        torch.testing.assert_close(two.weights(), one.weights(), atol=1e-6, rtol=1e-6)
        for record, other in zip(one.history(), two.history(), strict=True):
            assert other["updates"] == record["updates"]
            assert other["losses"] == pytest.approx(record["losses"], rel=1e-6)


SEAL = (str(CONFIGS / "labels.jsonnet"), "features.hidden=[24]", "energy.hidden=8", "energy_loss.samples=4")
SEAL += ("trainer.epochs=3", "trainer.epoch_updates=12", "trainer.batch_size=256", "seed=3")


@pytest.mark.slow
def test_a_run_resumes_exactly_after_one_of_its_processes_is_killed(tmp_path: Path) -> None:
    """The second process is killed in the second epoch; later it is asked to stop, and both stop."""
    resumed = ("--resume", str(tmp_path / "cut"), "--checkpoint-every", "0")
    assert collect_statuses(start(run_command, (*SEAL, "--out", str(tmp_path / "whole")), tmp_path / "whole-said")) == [
        0,
        0,
    ]
    words = (*SEAL, "--out", str(tmp_path / "cut"), "--checkpoint-every", "0")
    assert collect_statuses(start(run_command, words, tmp_path / "killed", 1, 35, signal.SIGKILL)) == [
        1,
        -signal.SIGKILL,
    ]
    message = " ".join((tmp_path / "killed-0").read_text().split())
    assert "another process of this run ended" in message and "Traceback" not in message
    assert f"Resume with: spen-run --resume {tmp_path / 'cut'}, started as this run was" in message
    assert collect_statuses(start(run_command, resumed, tmp_path / "stopped", 1, 20, signal.SIGTERM)) == [130, 130]
    assert "stopped by the user; everything is saved" in (tmp_path / "stopped-0").read_text()
    assert collect_statuses(start(run_command, resumed, tmp_path / "resumed")) == [0, 0]
    killed, complete = (RunFolder(tmp_path / name) for name in ("cut", "whole"))
    assert killed.history() == complete.history()
    torch.testing.assert_close(killed.weights(), complete.weights(), rtol=0, atol=0)


# Launchers.

ENVIRONMENT = {"RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def test_an_incomplete_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"WORLD_SIZE=2 .*without RANK, LOCAL_RANK"):
        count_processes()


@pytest.mark.parametrize(
    ("environment", "number"), [({}, 1), ({"WORLD_SIZE": "1"}, 1), ({"WORLD_SIZE": "3", **ENVIRONMENT}, 3)]
)
def test_the_number_of_processes_is_the_launchers(
    environment: dict[str, str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert count_processes() == number


def test_a_rank_without_a_world_size_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert is_main_process()


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        (None, 1, "2 processes and 1 GPUs on this machine"),
        ("cuda:1", 2, "'cuda:1' is one GPU, but there are 2 processes"),
    ],
)
def test_processes_that_do_not_fit_the_gpus(
    device: str | None, gpus: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", **ENVIRONMENT}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("spen_plugins.runs.devices.check_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ConfigError, match=message):
        make_accelerator("no", device)
