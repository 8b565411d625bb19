"""The method that was chosen among several: their scores side by side, and the choice in words."""

from __future__ import annotations

from spen_plugins.console import Console
from spen_plugins.report.compare import compare
from spen_plugins.report.tables import terminal
from spen_plugins.runs.many.groups import read_group
from spen_plugins.runs.many.seeds import Outcome


def print_choice(outcome: Outcome, console: Console) -> None:
    """Print the scores of the methods that are done, on the test part if they have it, and the choice."""
    if outcome.choice is None:
        return
    groups = [read_group(method, outcome.folder / method) for method in outcome.done]
    tested = all("test" in (run.metrics() or {}) for group in groups for run in group.runs)
    table = compare(groups, "test" if tested else "validation", [outcome.choice.score])
    console.print(terminal(table, console.width))
    for line in (*(f"note: {note}" for note in table.notes), *outcome.choice.lines()):
        console.print(line, soft_wrap=True)
