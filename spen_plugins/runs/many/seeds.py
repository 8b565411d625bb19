"""One experiment with several seeds, by one method or by several, of which the validation part chooses one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spen_plugins.config.experiment import check
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import is_free, save_json
from spen_plugins.files.lock import locked
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import METHODS, RunFolder, read_methods
from spen_plugins.runs.many.choice import Choice, choose_among
from spen_plugins.runs.many.jobs import run_all
from spen_plugins.runs.many.plans import (
    Configs,
    begin,
    explain_unwritable,
    locate_run,
    plan_methods,
    plan_seeds,
    read_seeds,
)
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.runs.train import runner


@dataclass(frozen=True)
class Outcome:
    """The end of runs by several methods."""

    folder: Path
    done: list[str]
    choice: Choice | None
    failures: dict[str, str]

    def check(self) -> None:
        """Raise a RunError if a method failed."""
        if self.failures:
            head = f"chosen among {', '.join(self.done)}, without {', '.join(self.failures)}."
            lines = [f"{method}: {error}" for method, error in self.failures.items()]
            raise RunError("\n".join([head if self.done else "no method was chosen.", *lines]))


def run_seeds(
    configs: Configs, seeds: Sequence[int], source: str, out: Path | None = None, options: RunOptions = DEFAULTS
) -> Path:
    """Train and evaluate a config with several seeds; finished ones are skipped, interrupted ones resumed."""
    out = out or runner.choose_folder(source)
    read_seeds(out)  # nothing is written to a folder of something else
    with begin(out):
        plan_seeds(out, configs, seeds, source)
        _check(run_all(out, {out: seeds}, options))
    return out


def resume_seeds(out: Path, options: RunOptions = DEFAULTS) -> Path:
    """Resume all unfinished seeds of a folder; see `run_seeds`."""
    with locked(out):
        _check(run_all(out, {out: read_seeds(out)}, options))
    return out


def _check(failures: Mapping[Path, str]) -> None:
    for message in failures.values():
        raise RunError(message)


def run_methods(
    configs: Callable[[str, int], Mapping[str, Any]],
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
) -> Outcome:
    """Train and evaluate a config by several methods with the same seeds, and choose one by the validation part.

    The choice is that of `choose`, by the mean validation scores over seeds; `methods.json` names it. Arguments are
    those of `run_seeds`. The seeds of the folder are run by all methods, too.
    """
    out = out or runner.choose_folder(source)
    if not read_methods(out) and not is_free(out):
        raise ConfigError(f"the folder {out} is not empty and holds no methods; nothing was overwritten")
    registry = Registry()
    for method in methods:
        check(configs(method, seeds[0]), f"{source}, method={method}", registry)
    with begin(out):
        plan_methods(out, configs, methods, seeds, source)
        return _run_methods(out, options)


def resume_methods(out: Path, options: RunOptions = DEFAULTS) -> Outcome:
    """Resume all unfinished runs of a folder; see `run_methods`."""
    with locked(out):
        return _run_methods(out, options)


def _run_methods(out: Path, options: RunOptions) -> Outcome:
    """Run what is left, and write the choice among the methods that are done."""
    methods, plans, failures = read_methods(out)["methods"], {}, {}
    with ExitStack() as locks:
        for folder in (out / method for method in methods):
            locks.enter_context(locked(folder))
            try:
                plans[folder] = read_seeds(folder)
            except RunError as error:  # its plan is damaged
                failures[folder] = str(error)
        failures |= run_all(out, plans, options)
    done = [method for method in methods if out / method not in failures]
    choice = None
    if done:
        choice = choose_among(
            {name: [RunFolder(locate_run(out / name, s)) for s in plans[out / name]] for name in done}
        )
        with explain_unwritable(out):
            save_json({"methods": methods, **choice.record(out)}, out / METHODS)
    return Outcome(out, done, choice, {folder.name: error for folder, error in failures.items()})
