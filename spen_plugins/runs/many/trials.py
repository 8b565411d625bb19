"""The trials of a sweep as log lines and as a table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.data.records import written
from spen_plugins.files import save_text

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def list_scored(study: Study) -> list[FrozenTrial]:
    """Completed trials, the best first."""
    from optuna.trial import TrialState

    completed_trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(completed_trials, key=lambda trial: (-(trial.value or 0.0), trial.number))


def list_running(study: Study) -> list[FrozenTrial]:
    """Trials that are running in some process."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def describe(study: Study, number: int) -> str:
    """Log line of a trial: its result, the best trial so far, and the parameters."""
    trial, best_trials = study.get_trials(deepcopy=False)[number], list_scored(study)[:1]
    best = f"best {best_trials[0].value:.4f} (trial {best_trials[0].number})" if best_trials else "no best trial yet"
    parameters = "  ".join(f"{name}={_shorten(value)}" for name, value in trial.params.items())
    return f"trial {number:3d}  {_describe_outcome(trial)}  {best}  {parameters}  {_measure_seconds(trial):.1f} s"


def _describe_outcome(trial: FrozenTrial) -> str:
    if trial.value is not None:
        suffix = f" pruned after epoch {trial.last_step}" if trial.state.name == "PRUNED" else ""
        return f"{trial.value:.4f}{suffix}"
    return "failed: " + str(trial.user_attrs.get("error", "killed")).splitlines()[0]


def _shorten(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _measure_seconds(trial: FrozenTrial) -> float:
    return trial.duration.total_seconds() if trial.duration else math.nan


def write_table(study: Study, path: Path) -> None:
    """Write all trials, including killed ones, as CSV."""
    trials = study.get_trials(deepcopy=False)
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    rows: list[list[Any]] = [["trial", "state", "score", "epochs", "seconds", "folder", *names, "error"]]
    for trial in trials:
        attributes, values = trial.user_attrs, [trial.params.get(name) for name in names]
        facts = [trial.value, trial.last_step, None if math.isnan(s := _measure_seconds(trial)) else round(s, 1)]
        rows.append(
            [trial.number, trial.state.name.lower(), *facts, attributes.get("folder"), *values, attributes.get("error")]
        )
    save_text(written(rows), path)
