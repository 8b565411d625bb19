"""Shared by tries: commands imported once, inputs, and finished runs to damage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import inputs
import torch
import torch._dynamo
from tries import Try, command, run

import spen_en  # noqa: F401 - imported before tries are forked, as all below
import spen_plugins.runs.many.seeds
import spen_plugins.runs.train.runner  # noqa: F401
from spen_plugins.cli.main import main as spen
from spen_plugins.cli.run import main as spen_run

__all__ = ["Warm", "first", "spen", "spen_run", "warm"]


@dataclass(frozen=True)
class Warm:
    """Inputs and runs that tries share.

    Attributes:
        arguments: the arguments of a short run of each config.
        runs: a finished run of each config.
    """

    arguments: dict[str, list[str]]
    runs: dict[str, Path]

    def words(self, name: str, out: str = "run") -> list[str]:
        """The arguments of a short run of a config."""
        return [name, *self.arguments[name], "--out", out, "--quiet", "--device", "cpu"]


def warm(folder: Path) -> Warm:
    """Makes inputs and finished runs below `folder`, and imports the modules of the runs here, once for all tries."""
    torch.set_num_threads(1)
    arguments = inputs.files(folder / "inputs")
    shared = Warm(arguments, {name: folder / "runs" / name for name in arguments})
    acts = {name: partial(command, spen_run, *shared.words(name, str(out))) for name, out in shared.runs.items()}
    first(acts, folder / "first")
    return shared


def first(acts: dict[str, Callable[[], None]], folder: Path) -> None:
    """Run the acts that tries start from, each in a process, and import their modules here, once for all tries."""

    def run_and_record(act: Callable[[], None], try_folder: Path) -> None:
        try:
            act()
        finally:
            (folder / f"{try_folder.name}.imported").write_text("\n".join(sorted(sys.modules)), encoding="utf-8")

    def report(attempt: Try, fault: str | None) -> None:
        if fault:
            raise SystemExit(f"the {attempt.name} that tries begin from: {fault}; see {folder}")

    run(
        [Try(name, partial(run_and_record, act), status=(0,)) for name, act in acts.items()],
        folder,
        2,
        report,
        limit=600,
    )
    imported = {line for file in folder.glob("*.imported") for line in file.read_text("utf-8").splitlines()}
    for name in sorted(imported - sys.modules.keys()):
        with suppress(ImportError):
            import_module(name)
