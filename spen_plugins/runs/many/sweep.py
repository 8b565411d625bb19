"""Search for hyperparameters: a thin layer on optuna around `runner.run`, which never looks at the test part."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.errors import ConfigError, DataError, Interrupted, RunError
from spen_plugins.files import save_json
from spen_plugins.files.lock import locked
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many import study as studies
from spen_plugins.runs.many import trials
from spen_plugins.runs.many.plans import check_same_data
from spen_plugins.runs.many.space import Space, read
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.train import runner

if TYPE_CHECKING:
    from optuna import Study, Trial

Say = Callable[[str], None]


class Pruned(RunError):
    """The pruner stopped a trial. This is no error, but ends the run like one."""


@dataclass(frozen=True)
class Sweep:
    """A hyperparameter search.

    Attributes:
        config: the config file.
        space: the search space's file.
        arguments: arguments of the config, the same in all trials.
        trials: total number of trials, including those of earlier calls and other processes.
        folder: folder of the trials' run folders `trial-<number>`.
        storage: see `study.open_study`.
        name: the study's name in its storage; the folder's name by default.
        pruner: pruner of trials with low scores.
        seed: seed of the search; the config sets the seed of the trials.
        device: as in `RunOptions`.
    """

    config: Path
    space: Path
    arguments: Mapping[str, str]
    trials: int
    folder: Path
    storage: str | None = None
    name: str | None = None
    pruner: studies.Pruner = "median"
    seed: int = 0
    device: str | None = None

    def evaluate(self, values: Mapping[str, str]) -> dict[str, Any]:
        """The evaluated config with a trial's values."""
        return evaluate(self.config, {**self.arguments, **values})

    def command(self, values: Mapping[str, str]) -> str:
        """The command that trains with a trial's values."""
        words = [f"{name}={value}" for name, value in {**self.arguments, **values}.items()]
        return shlex.join(["spen-run", str(self.config), *words])


def sweep(search: Sweep, say: Say = print) -> Path:
    """Run trials up to the total number, then write `trials.csv` and `best.json`; returns the path of `best.json`."""
    space = read(search.space)
    epochs = check_space(search, space)
    try:
        search.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder {search.folder} can't be created: {error.strerror}") from error
    facts = {
        "config": search.evaluate(pick_first(space)),
        "space": {name: d.model_dump() for name, d in space.items()},
    }
    check_same_data(file.parent for file in sorted(search.folder.glob("trial-*/environment.json")))
    name = search.name or search.folder.resolve().name
    with studies.explain_storage_errors(search.storage or str(search.folder / "study.db")):
        study = studies.open_study(search.folder, search.storage, name, search.pruner, epochs, facts, say)
        with studies.hold_worker(search.folder / "workers") as worker:
            _run_trials(study, search, space, worker, say)
        with locked(search.folder, say):  # two processes that end at the same time would write the same files
            return _conclude(study, search, say)


def pick_first(space: Space) -> dict[str, str]:
    """One point of the space."""
    return {name: dimension.ends()[0] for name, dimension in space.items()}


def check_space(search: Sweep, space: Space) -> int:
    """Check that the config accepts both ends of every range and every choice, one at a time.

    Returns the maximum number of epochs of a trial.
    """
    if duplicates := sorted(space.keys() & search.arguments.keys()):
        raise ConfigError(f"found {', '.join(duplicates)} both as an argument and in {search.space}; omit one of them")
    registry, first_point, epochs = Registry(), pick_first(space), 1
    points = [first_point, *({**first_point, name: end} for name, d in space.items() for end in d.ends()[1:])]
    for point in points:
        trainer = parse_experiment(search.evaluate(point), search.config, registry).trainer
        epochs = max(epochs, trainer.config.epochs)
    return epochs


def _run_trials(study: Study, search: Sweep, space: Space, worker: str, say: Say) -> None:
    from optuna.trial import TrialState

    while True:
        for number in studies.reclaim(study, search.folder / "workers"):
            say(f"trial {number} was killed; retrying its parameters")
        if len(studies.list_counted(study)) >= search.trials:
            return
        trial = studies.ask(study, search.seed, worker)
        if sum(other.number < trial.number for other in studies.list_counted(study)) >= search.trials:
            trial.set_user_attr(studies.UNCOUNTED, "another process asked for the last one at the same time")
            study.tell(trial, state=TrialState.FAIL)
            return
        _run_trial(study, trial, search, space)
        say(trials.describe(study, trial.number))


def _run_trial(study: Study, trial: Trial, search: Sweep, space: Space) -> None:
    """Train one trial and report the result to the study."""
    from optuna.trial import TrialState

    values = {name: dimension.suggest(trial, name) for name, dimension in space.items()}
    folder = search.folder / f"trial-{trial.number}"
    epochs = count(1)

    def report(record: Mapping[str, Any]) -> None:
        """Report validation scores to the pruner, but not those of a stage with another selection score."""
        epoch = next(epochs)
        if record["score"] in record["validation"].values():
            trial.report(record["score"], epoch)
            if trial.should_prune():
                raise Pruned(f"pruned after epoch {epoch}")

    trial.set_user_attr("arguments", values)
    trial.set_user_attr("folder", str(folder))
    try:
        runner.run(
            search.evaluate(values),
            str(search.config),
            folder,
            RunOptions(search.device, quiet=True),
            test=False,
            after_epoch=report,
        )
        study.tell(trial, read_best_score(folder))
    except Pruned:
        study.tell(trial, state=TrialState.PRUNED)
    except Interrupted as error:
        studies.repeat(study, trial.number)
        raise Interrupted("stopped by the user; the same command resumes with the remaining trials") from error
    except (ConfigError, DataError, RunError) as error:
        if studies.is_disk_error(error):  # the trial stays unfinished, so that the next call repeats it
            raise RunError(f"{error}. The same command resumes and repeats trial {trial.number}") from error
        trial.set_user_attr("error", str(error))
        is_hopeless = not isinstance(error, RunError) and not trials.list_scored(study)
        if is_hopeless:
            trial.set_user_attr(studies.UNCOUNTED, "the config or its data are wrong")
        study.tell(trial, state=TrialState.FAIL)
        if is_hopeless:
            raise
    finally:
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)  # trials are restarted, not resumed


def read_best_score(folder: Path) -> float:
    """The validation score of a run's kept weights."""
    best_scores = [record["score"] for record in RunFolder.open(folder).history() if record["best"]]
    if not best_scores or best_scores[-1] is None:
        raise RunError(f"{folder} has no validation score: no epoch improved the net, or the score was infinite")
    return best_scores[-1]


def _conclude(study: Study, search: Sweep, say: Say) -> Path:
    trials.write_table(study, search.folder / "trials.csv")
    scored_trials, running_trials = trials.list_scored(study), trials.list_running(study)
    if running_trials:
        say(
            f"other processes are still running {len(running_trials)} trials; the last one to finish updates the best "
            "trial"
        )
    if not scored_trials:
        errors = {trial.user_attrs.get("error") for trial in studies.list_counted(study)} - {None}
        raise RunError("no trial reached a score. " + "; ".join(sorted(errors)))
    best = scored_trials[0]
    values = best.user_attrs["arguments"]
    path = search.folder / "best.json"
    save_json(search.evaluate(values), path)
    say(f"best: trial {best.number}, {best.value:.4f} on the validation part, in {best.user_attrs['folder']}")
    say(f"its config is {path}; to score it on the test part:\n{search.command(values)}")
    return path
