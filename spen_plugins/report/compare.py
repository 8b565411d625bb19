"""Groups of runs side by side: scores over seeds, and differences paired by seed and by test example."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.registry import Registry
from spen_plugins.report.group_scores import (
    Costs,
    Difference,
    GroupScores,
    average_costs,
    compare_resampled,
    find_score,
    read_costs,
)
from spen_plugins.runs.many.groups import Group, find_selection, find_unit
from spen_plugins.scores.bootstrap import Estimate, estimate


@dataclass(frozen=True)
class Row:
    """One group.

    Attributes:
        scores: by name; None if its runs lack the score.
        differences: by the baseline's label; None for the baseline itself or without a shared seed.
        costs: mean over seeds.
    """

    label: str
    seeds: int
    scores: Mapping[str, Estimate | None]
    differences: Mapping[str, Difference | None]
    costs: Costs


LIKELIHOODS = "nll."
"""Beginning of the names of negative log-likelihoods, in a table of their own."""


@dataclass(frozen=True)
class Comparison:
    """A table of groups.

    Attributes:
        part: the part of the data that is scored.
        selection: name of the score whose differences are shown.
        against: labels of the baselines.
        notes: caveats on comparability.
        sizes: if true, parameters and speed are shown.
        unit: unit of the selection score; empty for fractions.
        lower_is_better: names of the task's scores of which low values are good.
    """

    part: str
    selection: str
    scores: tuple[str, ...]
    against: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    sizes: bool = False
    unit: str = ""
    lower_is_better: Collection[str] = ()

    def unit_of(self, name: str) -> str:
        """The unit of a score; empty for fractions."""
        return "" if name.endswith("_impossible") else "nats" if name.startswith(LIKELIHOODS) else self.unit

    def is_low_better(self, name: str) -> bool:
        """True if low values of a score are good."""
        is_likelihood = name.startswith(LIKELIHOODS) and not name.endswith("_ess")  # a number of samples
        return name in self.lower_is_better or is_likelihood


def compare(
    groups: Sequence[Group],
    part: str = "test",
    scores: Sequence[str] = (),
    against: Sequence[str] = (),
    sizes: bool = False,
) -> Comparison:
    """Compare groups.

    Without names, `scores` are all but those in nested tables, whose names are dotted; the baseline is the first group.
    Runs that were selected by different scores are compared by the first of `scores`.
    """
    read = [GroupScores(group, part) for group in groups]
    registry = Registry()
    runs = {group.label: list(group.runs.values()) for group in read}
    selection, is_own = find_selection(runs, registry, scores)
    names = _names(read, scores, selection)
    check_baselines(groups, against)
    baselines = tuple(dict.fromkeys(against or [group.label for group in groups[:1] if len(groups) > 1]))
    notes = [note for group in groups for note in group.notes]
    mixed = [group.label for group in read if len(group.data) > 1]
    notes += [f"WARNING: runs of {label} did not read the same data files (environment.json)" for label in mixed]
    notes += [note for other in read[1:] for note in _list_differences(read[0], other)]
    gains, more = compare_resampled(read, selection, baselines, is_own) if baselines else ({}, [])
    notes += [] if is_own else ["no bootstrap over examples, as the runs were selected by different scores"]
    rows = [_row(group, names, gains.get(group.label, {})) for group in read]
    notes += more
    low = {name for group in read for task in group.tasks for name in registry.resolve("task", task).lower_is_better}
    notes = list(dict.fromkeys(notes))
    return Comparison(part, selection, names, baselines, tuple(rows), tuple(notes), sizes, find_unit(runs), low)


def check_baselines(groups: Sequence[Group], against: Sequence[str]) -> None:
    """Check that every baseline is a group's label."""
    labels = [group.label for group in groups]
    for label in against:
        if label not in labels:
            raise ConfigError(f"unknown group {label!r}.{did_you_mean(label, labels)} Groups: {', '.join(labels)}")


def _row(group: GroupScores, names: Sequence[str], differences: Mapping[str, Difference | None]) -> Row:
    values = {name: list(group.values(name).values()) for name in names}
    scores = {name: estimate(seeds) if seeds else None for name, seeds in values.items()}
    return Row(group.label, len(group.runs), scores, differences, average_costs(map(read_costs, group.runs.values())))


def _names(groups: Sequence[GroupScores], wanted: Sequence[str], selection: str) -> tuple[str, ...]:
    """The scores to show; by default all numbers, the selection score first."""
    parts = [table for group in groups for table in group.tables]
    known = dict.fromkeys(name for part in parts for name, value in part.items() if isinstance(value, (int, float)))
    for name in wanted:
        if not any(isinstance(find_score(part, name), (int, float)) for part in parts):
            raise ConfigError(f"no run has a score {name!r}.{did_you_mean(name, known)} Scores: {', '.join(known)}")
    return tuple(wanted) or tuple(sorted(known, key=lambda name: name != selection))


def _list_differences(first: GroupScores, other: GroupScores) -> list[str]:
    """Reasons why scores of two groups may not be comparable."""
    notes = []
    same_files = first.data != other.data and first.undivided_data == other.undivided_data
    divided = [group.label for group in (other, first) if group.data != group.undivided_data]
    if one_divides := same_files and len(divided) == 1:
        notes.append(
            f"WARNING: {other.label} and {first.label} read the same data files, but only {divided[0]} has a split "
            "file. Run folders do not record rows, so their parts may or may not be the same. Train both with the same "
            "split=FILE"
        )
    elif first.data != other.data:
        notes.append(f"WARNING: {other.label} and {first.label} did not read the same data files (environment.json)")
    counts = [{len(numerator) for numerator, _ in group.ratios.values()} for group in (first, other)]
    if all(counts) and counts[0] != counts[1]:
        sizes = " and ".join("/".join(map(str, sorted(count))) for count in counts[::-1])
        notes.append(f"WARNING: {other.label} and {first.label} were scored on {sizes} examples")
    shared, known = first.protocols.keys() & other.protocols.keys(), first.protocols.keys() | other.protocols.keys()
    for key in sorted((shared | known & {"refined"}) - ({"split"} if one_divides else set())):
        theirs, ours = (group.protocols.get(key, {"none"}) for group in (other, first))
        if theirs != ours:
            both = f"{'; '.join(sorted(theirs))} against {'; '.join(sorted(ours))}"
            notes.append(f"WARNING: {other.label} and {first.label} differ in protocol, {key}: {both}")
    return notes
