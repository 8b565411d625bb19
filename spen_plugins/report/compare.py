"""Groups of runs side by side: scores over seeds, and differences paired by seed and by test example."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.registry import Registry
from spen_plugins.report.costs import Costs, average_costs, read_costs
from spen_plugins.report.group_scores import Difference, GroupScores, compare_resampled, find_score
from spen_plugins.runs.many.groups import Group, find_selection, find_unit
from spen_plugins.scores.bootstrap import Estimate, estimate


@dataclass(frozen=True)
class Row:
    """One group.

    Attributes:
        scores: scores by name; None if its runs lack the score.
        differences: differences by the baseline's label; None for the baseline itself or without a shared seed.
        costs: mean costs over seeds.
    """

    label: str
    seeds: int
    scores: Mapping[str, Estimate | None]
    differences: Mapping[str, Difference | None]
    costs: Costs


LIKELIHOODS = "nll."
"""Prefix of the names of negative log-likelihoods, which have their own table."""


@dataclass(frozen=True)
class Comparison:
    """A table of groups.

    Attributes:
        part: the part of the data that is scored.
        selection: name of the score whose differences are shown.
        baselines: labels of the baselines.
        notes: caveats on comparability.
        sizes: if true, parameters and speed are shown.
        unit: unit of the selection score; empty for fractions.
        lower_is_better: names of the task's scores for which low values are good.
    """

    part: str
    selection: str
    scores: tuple[str, ...]
    baselines: tuple[str, ...]
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
    baselines: Sequence[str] = (),
    sizes: bool = False,
) -> Comparison:
    """Compare groups.

    `scores` defaults to all scores but those in nested tables, whose names are dotted. The baseline defaults to the
    first group. Runs that were selected by different scores are compared by the first of `scores`.
    """
    group_scores = [GroupScores(group, part) for group in groups]
    registry = Registry()
    runs = {group.label: list(group.runs.values()) for group in group_scores}
    selection, is_own_score = find_selection(runs, registry, scores)
    names = _choose_names(group_scores, scores, selection)
    check_baselines(groups, baselines)
    baseline_labels = tuple(dict.fromkeys(baselines or [group.label for group in groups[:1] if len(groups) > 1]))
    notes = [note for group in groups for note in group.notes]
    mixed_labels = [group.label for group in group_scores if len(group.data) > 1]
    notes += [f"WARNING: runs of {label} did not read the same data files (environment.json)" for label in mixed_labels]
    notes += [note for other in group_scores[1:] for note in _list_differences(group_scores[0], other)]
    gains, gain_notes = (
        compare_resampled(group_scores, selection, baseline_labels, is_own_score) if baseline_labels else ({}, [])
    )
    notes += [] if is_own_score else ["no bootstrap over examples, as the runs were selected by different scores"]
    rows = [_make_row(group, names, gains.get(group.label, {})) for group in group_scores]
    notes += gain_notes
    lower_is_better = {
        name
        for group in group_scores
        for task in group.tasks
        for name in registry.resolve("task", task).lower_is_better
    }
    notes = list(dict.fromkeys(notes))
    return Comparison(
        part, selection, names, baseline_labels, tuple(rows), tuple(notes), sizes, find_unit(runs), lower_is_better
    )


def check_baselines(groups: Sequence[Group], baselines: Sequence[str]) -> None:
    """Check that every baseline is a group's label."""
    known_labels = [group.label for group in groups]
    for label in baselines:
        if label not in known_labels:
            raise ConfigError(
                f"unknown group {label!r}.{did_you_mean(label, known_labels)} Groups: {', '.join(known_labels)}"
            )


def _make_row(group: GroupScores, names: Sequence[str], differences: Mapping[str, Difference | None]) -> Row:
    values = {name: list(group.values(name).values()) for name in names}
    scores = {name: estimate(seeds) if seeds else None for name, seeds in values.items()}
    return Row(group.label, len(group.runs), scores, differences, average_costs(map(read_costs, group.runs.values())))


def _choose_names(groups: Sequence[GroupScores], requested: Sequence[str], selection: str) -> tuple[str, ...]:
    """The scores to show; by default all numbers, the selection score first."""
    tables = [table for group in groups for table in group.tables]
    score_names = dict.fromkeys(
        name for part in tables for name, value in part.items() if isinstance(value, (int, float))
    )
    for name in requested:
        if not any(isinstance(find_score(part, name), (int, float)) for part in tables):
            raise ConfigError(
                f"no run has a score {name!r}.{did_you_mean(name, score_names)} Scores: {', '.join(score_names)}"
            )
    return tuple(requested) or tuple(sorted(score_names, key=lambda name: name != selection))


def _list_differences(first: GroupScores, other: GroupScores) -> list[str]:
    """Reasons why scores of two groups may not be comparable."""
    notes = []
    same_files = first.data != other.data and first.undivided_data == other.undivided_data
    labels = [group.label for group in (other, first) if group.data != group.undivided_data]
    if one_divides := same_files and len(labels) == 1:
        notes.append(
            f"WARNING: {other.label} and {first.label} read the same data files, but only {labels[0]} has a split "
            "file. Run folders do not record rows, so their parts may or may not be the same. Train both with the same "
            "split=FILE"
        )
    elif first.data != other.data:
        notes.append(f"WARNING: {other.label} and {first.label} did not read the same data files (environment.json)")
    counts = [{len(numerator) for numerator, _ in group.ratios.values()} for group in (first, other)]
    if all(counts) and counts[0] != counts[1]:
        sizes = " and ".join("/".join(map(str, sorted(count))) for count in counts[::-1])
        notes.append(f"WARNING: {other.label} and {first.label} were scored on {sizes} examples")
    shared, union = first.protocols.keys() & other.protocols.keys(), first.protocols.keys() | other.protocols.keys()
    for key in sorted((shared | union & {"refined"}) - ({"split"} if one_divides else set())):
        other_values, first_values = (group.protocols.get(key, {"none"}) for group in (other, first))
        if other_values != first_values:
            values = f"{'; '.join(sorted(other_values))} against {'; '.join(sorted(first_values))}"
            notes.append(f"WARNING: {other.label} and {first.label} differ in protocol, {key}: {values}")
    return notes
