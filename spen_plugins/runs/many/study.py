"""optuna's part of a sweep: storage, sampling and pruning of trials, and recovery from killed processes."""

from __future__ import annotations

import errno
import fcntl
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spen_plugins.errors import ConfigError, RunError, SpenError, explain_missing
from spen_plugins.files.lock import locked
from spen_plugins.runs.many.plans import describe_difference
from spen_plugins.runs.many.trials import list_running

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.pruners import BasePruner
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

Pruner = Literal["median", "hyperband", "none"]

WORKER, RETRY_OF, UNCOUNTED = "worker", "retry_of", "uncounted"
"""A trial's attributes: the process that runs it, the killed trial that it repeats, the reason why it doesn't count."""
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
_STORAGE_MODULES = ("sqlalchemy.", "sqlite3", "optuna.exceptions", "json.decoder")
"""Prefixes of the modules of errors that a study's storage raises."""


def open_study(
    folder: Path,
    storage: str | None,
    name: str,
    pruner: Pruner,
    epochs: int,
    facts: Mapping[str, dict[str, Any]],
    say: Callable[[str], None] = print,
) -> Study:
    """The study of this name, created if it does not exist.

    Args:
        folder: the sweep's folder.
        storage: a URL of optuna's, or a journal file (`x.log`, `x.journal`); None for an SQLite file in `folder`.
        name: the study's name.
        pruner: pruner of trials with low scores.
        epochs: maximum number of epochs of a trial.
        facts: settings that all trials of a study share; a ConfigError is raised if the study has others.
        say: called with a sentence if another process holds the folder.
    """
    with explain_missing("a sweep needs optuna: pip install 'spen-plugins[research]'"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with locked(folder, say):  # two processes can't create an SQLite file's tables at the same time
        study = optuna.create_study(
            storage=_open_storage(storage or f"sqlite:///{(folder / 'study.db').resolve()}"),
            study_name=name,
            direction="maximize",
            pruner=_make_pruner(pruner, epochs),
            load_if_exists=True,
        )
        for key, value in facts.items():
            old_value = study.user_attrs.get(key, value)
            if old_value != value:
                difference = describe_difference(old_value, value)
                raise ConfigError(
                    f"the study {name!r} was started with another {key} ({difference}). New trials can't be compared "
                    "with its own; use another --out (or another --name in a shared --storage)"
                )
            study.set_user_attr(key, value)
    return study


@contextmanager
def explain_storage_errors(place: str) -> Iterator[None]:
    """Raises a `RunError` for errors of a study's storage: a full disk, a damaged file, a lock that is not released."""
    try:
        yield
    except Exception as error:
        causes = list(_list_causes(error))
        if isinstance(error, SpenError) or not any(
            type(cause).__module__.startswith(_STORAGE_MODULES) for cause in causes
        ):
            raise
        reason = str(causes[-1]).partition("\n")[0]
        raise RunError(
            f"the study in {place} can't be read or written: {reason}. If the disk is full, free some space and run "
            "the same command again; if the file is damaged, use another --out (or --storage)"
        ) from error


def is_disk_error(error: BaseException) -> bool:
    """True for an error of the disk, not of the trial: the disk is full, read-only or broken."""
    return any(isinstance(cause, OSError) and cause.errno in _DISK_ERRORS for cause in _list_causes(error))


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


def ask(study: Study, seed: int, worker: str) -> Trial:
    """The next trial; its values depend on the seed, its number and earlier trials, not on the process."""
    import numpy as np
    from optuna.samplers import TPESampler

    trial = study.ask()
    trial.set_user_attr(WORKER, worker)
    sampler_seed = int(np.random.SeedSequence([seed, trial.number]).generate_state(1)[0])
    # The liar keeps processes from drawing the same values.
    study.sampler = TPESampler(seed=sampler_seed, constant_liar=True)
    return trial


def list_counted(study: Study) -> list[FrozenTrial]:
    """Finished and running trials, except those that are repeated or don't count."""
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    repeated = {trial.user_attrs.get(RETRY_OF) for trial in trials}
    return [
        trial
        for trial in trials
        if trial.state != TrialState.WAITING and trial.number not in repeated and UNCOUNTED not in trial.user_attrs
    ]


def repeat(study: Study, number: int) -> None:
    """End a trial that was killed or stopped, and enqueue its parameters."""
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    # Enqueue first: if this process is killed, too, the next process finds the trial still running.
    if not any(trial.user_attrs.get(RETRY_OF) == number for trial in trials):
        study.enqueue_trial(trials[number].params, user_attrs={RETRY_OF: number})
    study.tell(number, state=TrialState.FAIL)


def reclaim(study: Study, workers: Path) -> list[int]:
    """Repeat the trials of killed processes; returns their numbers.

    A process holds a lock on its file below `workers`, and the lock ends with the process. If the file is on another
    machine's disk, the state of the process is unknown here, and its trials are left alone.
    """
    repeated_numbers: list[int] = []
    for path in sorted(workers.glob("*.lock")):
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # alive, or being reclaimed by another process
            numbers = [trial.number for trial in list_running(study) if trial.user_attrs.get(WORKER) == path.stem]
            for number in numbers:
                repeat(study, number)
            repeated_numbers += numbers
            path.unlink(missing_ok=True)
    return repeated_numbers


@contextmanager
def hold_worker(workers: Path) -> Iterator[str]:
    """The name of this process, which is marked as alive inside the context."""
    workers.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    with (workers / f"{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield name
        (workers / f"{name}.lock").unlink(missing_ok=True)


def _open_storage(place: str) -> BaseStorage:
    from optuna.exceptions import StorageInternalError
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
    from sqlalchemy.exc import DBAPIError

    try:
        if place.endswith((".log", ".journal")):
            lock = JournalFileSymlinkLock(place, grace_period=5)  # a killed process's lock expires after 5 s
            return JournalStorage(JournalFileBackend(place, lock))
        engine_settings = {"connect_args": {"timeout": 60}} if place.startswith("sqlite") else {}
        return RDBStorage(place, engine_kwargs=engine_settings)
    except (DBAPIError, StorageInternalError):  # the storage is valid, but damaged or not reachable
        raise
    except Exception as error:
        raise ConfigError(
            f"--storage {place}: {str(error).splitlines()[0]}. Expected sqlite:///file.db, a journal file (file.log), "
            "or a database's URL"
        ) from error


def _make_pruner(name: Pruner, epochs: int) -> BasePruner:
    from optuna import pruners

    if name == "median":
        return pruners.MedianPruner(n_warmup_steps=epochs // 10)
    return pruners.HyperbandPruner(max_resource=epochs) if name == "hyperband" else pruners.NopPruner()
