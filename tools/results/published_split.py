"""bibtex on the split of published tables and on ours: the systems that the papers compare with, and their controls.

    SPEN_DATA=... python -m tools.results.published_split runs/bibtex --seeds 0 1 2
    SPEN_DATA=... python -m tools.results.published_split runs/bibtex --rows cross_entropy alen gspen --splits ours

Mulan's split is the order of the file, 4880 rows to train and 2515 to test; a quarter of the former, drawn by seed 0,
validates, as in the released code of GSPEN. Ours is data:multilabel/splits/bibtex.json. Each run is trained and
validated with a threshold that validation chooses, and decoded anew by expected F1. `mean_3` is the mean of three nets
of cross entropy, of the first three seeds, the next three, and so on. Scores are example F1 of the whole test part, in
per cent.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from spen_plugins.files import save_json
from spen_plugins.report.compare import compare
from spen_plugins.report.tables import markdown
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.train.averaging import average_runs
from spen_plugins.runs.train.decoding import decode
from tools.errors import end_with_message
from tools.results.run_records import record, run_lines
from tools.results.runs import QUIET, finish_here, write_mean

TRAINED, TOTAL = 4880, 7395
"""Rows of Mulan's training part, which come first, and of the file."""
MEAN, MEMBERS = "mean_3", 3
ROWS = ("cross_entropy", MEAN, "nce", "dvn", "spen", "alen", "ialen", "gspen")
SPLITS = ("mulan", "ours")
DECODERS = {"threshold": {"decode": "threshold", "threshold": "validation"}}
DECODERS["expected_f1"] = {"decode": "expected_f1", "decode_temperature": "validation"}


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the runs")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    options = parser.parse_args()
    if MEAN in options.rows and len(options.seeds) < MEMBERS:
        parser.error(
            f"{MEAN} requires {MEMBERS} seeds; found {len(options.seeds)}. Add seeds, or leave it out of --rows"
        )
    for split in options.splits:
        table = Table(split, options.out, options.seeds)
        print(table.write(options.rows), flush=True)
        if len(options.rows) > 1:
            for decoder in DECODERS:
                groups = read_groups([f"{row}={table.out / decoder / row}" for row in options.rows])
                print(markdown(compare(groups, scores=["example_f1"], baselines=options.rows[:1])), flush=True)
        if options.csv:
            record(table.lines(options.rows), options.csv)


def divide(path: Path, seed: int = 0) -> Path:
    """Writes Mulan's split, a quarter of whose training part validates."""
    rows = list(range(TRAINED))
    random.Random(seed).shuffle(rows)
    count = TRAINED // 4
    parts = {"train": sorted(rows[count:]), "validation": sorted(rows[:count]), "test": [*range(TRAINED, TOTAL)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_json(parts, path)
    return path


class Table:
    """The runs on one split, trained where they are missing: `out / decoder / row / seed-N`."""

    def __init__(self, split: str, out: Path, seeds: Sequence[int]) -> None:
        self.split, self.out, self.seeds = split, out / split, seeds

    def run(self, row: str, seed: int, by: str) -> Path:
        """The folder of a finished run."""
        folder = self.out / by / row / f"seed-{seed}"
        if (folder / "metrics.json").exists():
            return folder
        if row == MEAN:
            members = [self.run("cross_entropy", member_seed, by) for member_seed in self._find_members(seed)]
            return average_runs(members, folder, DECODERS[by], options=QUIET)
        if by != "threshold":
            return decode(self.run(row, seed, "threshold"), folder, DECODERS[by], QUIET)
        return finish_here(folder, "labels", self._name_arguments(row, seed))

    def find_seeds(self, row: str) -> Sequence[int]:
        """The seeds of a row's runs. A mean has the seed of the first of its nets, and shares none with another."""
        return self.seeds[: len(self.seeds) - MEMBERS + 1 : MEMBERS] if row == MEAN else self.seeds

    def _find_members(self, seed: int) -> Sequence[int]:
        start = self.seeds.index(seed)
        return self.seeds[start : start + MEMBERS]

    def write(self, rows: Sequence[str]) -> str:
        """The table of means over seeds."""
        lines = [
            f"| bibtex, {self.split} | validation, threshold | test, threshold | test, expected F1 | seconds | seeds |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for row in rows:
            seeds = self.find_seeds(row)
            folders = {decoder: [self.run(row, seed, decoder) for seed in seeds] for decoder in DECODERS}
            cells = [
                write_mean(folders["threshold"], "validation", "example_f1", 2),
                *(write_mean(folders[decoder], "test", "example_f1", 2) for decoder in DECODERS),
                f"{sum(self._sum_seconds(row, seed) for seed in seeds) / len(seeds):.0f}",
                str(len(seeds)),
            ]
            lines.append(f"| {row} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def lines(self, rows: Sequence[str]) -> list[dict]:
        """Lines of the file of scores by run."""
        return [
            line
            for decoder in DECODERS
            for row in rows
            for seed in self.find_seeds(row)
            for line in run_lines(
                f"bibtex, {self.split}, {decoder}",
                row,
                seed,
                ["example_f1"],
                self.run(row, seed, decoder),
                decoder == "threshold" and row != MEAN,
            )
        ]

    def _name_arguments(self, row: str, seed: int) -> dict[str, str]:
        arguments = {"data": "bibtex", "method": row, "seed": str(seed), **DECODERS["threshold"]}
        if self.split == "mulan":
            arguments["task.split"] = str(divide(self.out.resolve() / "split.json"))
        return arguments

    def _sum_seconds(self, row: str, seed: int) -> float:
        """Seconds of training behind a row's run."""
        if row == MEAN:
            return sum(self._sum_seconds("cross_entropy", member_seed) for member_seed in self._find_members(seed))
        times = (self.run(row, seed, "threshold") / "times.jsonl").read_text(encoding="utf-8")
        return sum(json.loads(line)["seconds"] for line in times.splitlines())


if __name__ == "__main__":
    main()
