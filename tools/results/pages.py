"""Write the scores of the pages in docs/results from docs/results/runs.csv: `make results`.

A comment above a table says what its cells are:

    <!-- runs.csv; exact, bibtex; cross_entropy @ 0 1 2 | mean_3 | ; | example_f1 validation | example_f1 test -->

that is, the group, the row of the CSV for each row of the table (for some seeds alone, after `@`), and the score and
part of each column but the first. What follows the part is appended to the row's name (`example_f1 test, at 0.5`).
Where one of them is empty, the cell stays as it is. A cell is a mean over seeds, with ± its standard error if it had
one, to as many digits as before; what follows the number stays, and so does what the CSV's two digits do not decide.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Mapping
from pathlib import Path

from spen_plugins.files import save_text
from spen_plugins.scores.bootstrap import estimate

PAGES = Path("docs/results")
MARK = re.compile(r"^<!-- runs\.csv; (.*) -->\n\n?((?:\|.*\n)+)", re.MULTILINE)
SCORE = re.compile(r"(?P<mean>\d+(?:\.(?P<digits>\d+))?)(?P<bold>\**)(?: ± (?P<error>[\d.]+))?")
Runs = Mapping[tuple[str, str, str, str], Mapping[str, float]]
"""Group, row, score and part -> seed -> score."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    runs = read_runs(PAGES / "runs.csv")
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := fill(text, runs)) != text:
            save_text(new, path)
            print(f"{path}: changed")


def read_runs(path: Path) -> Runs:
    """The scores of all runs."""
    runs: dict[tuple[str, str, str, str], dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            for part in ("validation", "test"):
                if line[part]:
                    key = line["group"], line["row"], line["score"], part
                    runs.setdefault(key, {})[line["seed"]] = float(line[part])
    return runs


def fill(text: str, runs: Runs) -> str:
    """A page with the scores of its marked tables.

    Raises:
        SystemExit: a mark names a run that is not in the CSV, or does not fit its table.
    """
    return MARK.sub(lambda match: match[0].removesuffix(match[2]) + _fill_table(match[1], match[2], runs), text)


def _fill_table(mark: str, table: str, runs: Runs) -> str:
    group, rows, columns = ([part.strip() for part in field.split("|")] for field in mark.split("; "))
    head, rule, *lines = table.splitlines()
    if len(rows) != len(lines) or len(columns) > head.count("|") - 2:
        raise SystemExit(f"error: the mark of {group[0]} has {len(rows)} rows for {len(lines)}, or too many columns")
    new_lines = []
    for row, line in zip(rows, lines, strict=True):
        cells = line.split("|")  # the first is empty, the second is the row's name
        for index, column in enumerate(columns, 2):
            if row and column and (old := SCORE.search(cells[index])):
                new = _write(group[0], row, column, old, runs)
                cells[index] = cells[index][: old.start()] + new + cells[index][old.end() :]
        new_lines.append("|".join(cells))
    return "\n".join([head, rule, *new_lines, ""])


def _write(group: str, row: str, column: str, old: re.Match[str], runs: Runs) -> str:
    """Returns the score that replaces a cell's."""
    name, _, seeds = row.partition(" @ ")
    score, _, rest = column.partition(" ")
    part = re.split(r"\W", rest)[0]
    key = group, name + rest.removeprefix(part), score, part
    values = [value for seed, value in runs.get(key, {}).items() if not seeds or seed in seeds.split()]
    if not values:
        raise SystemExit(f"error: runs.csv lacks {' / '.join(key)}")
    result, digits = estimate(values), len(old["digits"] or "")
    pairs = [(old["mean"], result.mean)] + [(old["error"], result.error or 0.0)] * bool(old["error"])
    if all(abs(float(text) - value) <= 0.5 * 10.0**-digits + 0.005001 for text, value in pairs):
        return old[0]
    return old["bold"].join([f"{result.mean:.{digits}f}", f" ± {result.error or 0:.{digits}f}" if old["error"] else ""])


if __name__ == "__main__":
    main()
