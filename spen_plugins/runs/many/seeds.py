"""One experiment with several seeds, by one method or by several, of which the validation part chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

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
    plan,
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


def run_many(
    configs: Configs,
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
) -> Outcome:
    """Train and evaluate a config with the same seeds by each method, and choose one by the validation part.

    Finished runs are skipped, interrupted ones resumed; the seeds that the folder holds are run by all methods, too.
    The choice is that of `choose`, by the mean validation scores over seeds; `methods.json` names it.

    Args:
        methods: `[""]` for a config's own: nothing is chosen, and `out` holds the runs themselves.
        out: the folder, new, empty, or one of this config; by default a dated one below `runs/`.
    """
    out = out or runner.choose_folder(source)
    if not any(methods):
        read_seeds(out)  # nothing is written to a folder of something else
    elif not read_methods(out) and not is_free(out):
        raise ConfigError(f"the folder {out} is not empty and holds no methods; nothing was overwritten")
    registry = Registry()
    for method in filter(None, methods):
        check(configs(method, seeds[0]), f"{source}, method={method}", registry)
    with begin(out):
        plan(out, configs, methods, seeds, source)
        return _run(out, options, seeds)


def resume_many(out: Path, options: RunOptions = DEFAULTS) -> Outcome:
    """Resume all unfinished runs of a folder; see `run_many`."""
    with locked(out):
        return _run(out, options)


def _run(out: Path, options: RunOptions, seeds: Sequence[int] | None = None) -> Outcome:
    """Run what is left, and write the choice among the methods that are done."""
    methods, plans, failures = read_methods(out).get("methods"), {}, {}
    if methods is None:
        for message in run_all(out, {out: read_seeds(out) if seeds is None else seeds}, options).values():
            raise RunError(message)
        return Outcome(out, [], None, {})
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
        runs = {name: [RunFolder(locate_run(out / name, s)) for s in plans[out / name]] for name in done}
        choice = choose_among(runs, out)
        with explain_unwritable(out):
            save_json({"methods": methods, **choice.record}, out / METHODS)
    return Outcome(out, done, choice, {folder.name: error for folder, error in failures.items()})
