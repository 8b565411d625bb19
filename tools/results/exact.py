"""Label sets: structures with an exact partition function, means of several nets, and nets that these teach.

    SPEN_DATA=... python -m tools.results.exact runs/exact --only bibtex expr_fun --seeds 0 1 2 3 4

Every row has its decoder chosen on the validation part: for example F1 a threshold or expected F1 with a temperature;
for exact match a threshold or the most probable set, with `--whole` never an empty one. The learning rate of each net
that no other net teaches is the best of `--rates` on validation at the first seed; it and epochs are chosen by example
F1, with `--whole` by exact match. Means are of a seed and the two that follow it, and teachers are these three nets and
a SEAL-NCE net. Scores are of the whole test part in per cent, `nll` in nats per example, seconds those of all training
that a row needs (teachers and members, not the search of the rate).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from spen_plugins.report.compare import compare
from spen_plugins.report.tables import markdown
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.train.averaging import average_runs
from spen_plugins.runs.train.decoding import decode
from spen_plugins.scores.bootstrap import estimate
from tools.errors import end_with_message
from tools.results.run_records import record, seed_lines
from tools.results.runs import QUIET, finish_here, read_scores, write_mean

DECODED, WHOLE = "-decoded", "-whole"
"""Suffixes of the folders in which another run is decoded again, for example F1 and for exact match."""
FAMILY = 3
"""Number of nets in a mean."""
CHOSEN = {"decode": "validation", "threshold": "validation", "decode_temperature": "validation"}
LATE = {"decode": "expected_f1", "threshold": "null", "task.decode_temperature": "1"}
"""Where choosing a decoder takes longer than an epoch: epochs are chosen by expected F1 at temperature 1."""
SEARCHED = ("cross_entropy", "counts", "mixture", "star", "hierarchy", "nce")
"""Methods whose net's learning rate is searched."""
MEANS = {
    "mean_3": ["cross_entropy"] * FAMILY,
    "mean_5": ["cross_entropy"] * 5,
    "mean_nce": ["nce"] * FAMILY,
    "mean_3_nce": [*["cross_entropy"] * FAMILY, "nce"],
    "mean_counts": ["counts"] * FAMILY,
}
"""Rows that are means, and the method of each member; the k-th of a method has the k-th seed from a row's own."""
TAUGHT = {"static_mean": "mean_3_nce", "distillation": "mean_3_nce", "distillation_3": "mean_3"}
"""Rows with teachers, and the mean whose members teach them."""
ROWS = (*SEARCHED, "nce_counts", "partition", *MEANS, *TAUGHT)
SETS = {
    "bibtex": ((0.00025, 0.0005, 0.001), "labels", {}),
    "bibtex_structures": ((0.00025, 0.0005, 0.001), "labels", {"data": "bibtex", **LATE}),
    "bibtex_tenth": (
        (0.0005, 0.001, 0.002),
        "labels",
        {"data": "bibtex", "task.labelled": "444", "task.rest": "false", **LATE},
    ),
    "expr_fun": ((0.001, 0.0025, 0.005), "labels", {}),
    "spo_fun": ((0.0005, 0.001, 0.0025, 0.005), "labels", LATE),
    "cal500": ((0.0005, 0.001, 0.002), "labels", {}),
    "genbase": ((0.001, 0.003, 0.01), "labels", {}),
    "delicious": ((0.00025, 0.0005, 0.001), "labels", LATE),
    "rcv1sub1": ((0.0005, 0.001, 0.002), "labels", {"data": "data:multilabel/rcv1sub1/rcv1sub1.svm.gz"}),
    "goemotions": ((0.0025, 0.005, 0.01), "texts", {}),
    "arxiv": ((0.0025, 0.005, 0.01), "texts", {}),
}
"""Data sets: the rates to try, the config, and arguments other than `data=NAME`."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the runs")
    parser.add_argument("--only", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=["cross_entropy", "counts", "mixture", "mean_3"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rates", nargs="+", type=float, help="learning rates; default: those of the data set")
    parser.add_argument("--whole", action="store_true", help="choose rates, epochs and decoders by exact match")
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    options = parser.parse_args()
    for data in options.only:
        table = Table(data, options)
        runs = {row: [table.run(row, seed) for seed in options.seeds] for row in options.rows}
        print(write_table(runs, table), flush=True)
        whole_runs = {row: [table.decode_whole(folder) for folder in folders] for row, folders in runs.items()}
        runs_by_score = {"accuracy": whole_runs} if options.whole else {"example_f1": runs, "accuracy": whole_runs}
        lines = []
        for score, row_runs in runs_by_score.items():
            groups = read_groups([table.gather(score, row, folders) for row, folders in row_runs.items()])
            if len(groups) > 1:
                print(markdown(compare(groups, scores=[score], baselines=options.rows[:1])), flush=True)
            lines += list_scores(f"exact, {table.name}", score, options.seeds, row_runs)
        if options.csv:
            record(lines, options.csv)


class Table:
    """The runs of one data set, trained where they are missing."""

    def __init__(self, data: str, options: argparse.Namespace) -> None:
        self.data, self.seeds = data, options.seeds
        rates, self.config, self.given = SETS[data]
        self.rates = options.rates or rates
        self.name = f"{data}_whole" if options.whole else data
        self.score = "accuracy" if options.whole else "example_f1"
        if options.whole:
            arguments = {name: value for name, value in self.given.items() if name not in LATE}
            self.given = {**arguments, "task.selection": self.score, "task.nonempty": "true"}
        self.out = options.out / self.name
        self.chosen: dict[str, float] = {}

    def run(self, row: str, seed: int) -> Path:
        """The folder of a row's run."""
        if row in SEARCHED:
            return self._train(row, seed, self._choose_rate(row))
        if row == "nce_counts":
            return self._train("nce", seed, self._choose_rate("nce"), **{"inference_net.type": "exact.counts"})
        if row in TAUGHT:
            teachers = json.dumps([str(path) for path in self.members(row, seed)])
            method, rate = row.partition("_3")[0], self._choose_rate("cross_entropy")
            return self._finish(self._name_folder(row, seed), method, seed, rate, {"init.energy": teachers})
        if row in MEANS:
            members = self.members(row, seed)
            folder = self.out / self._name_folder(row, seed)
            if not (folder / "metrics.json").exists():
                average_runs(members, folder, CHOSEN, options=QUIET)
            return folder
        return self._train(row, seed, None)

    def members(self, row: str, seed: int) -> list[Path]:
        """The runs that a row averages, or that teach it."""
        return [self.run(method, member_seed) for method, member_seed in self._list_members(row, seed)]

    def _list_members(self, row: str, seed: int) -> list[tuple[str, int]]:
        """The method and the seed of each of `members`."""
        methods, first = MEANS[TAUGHT.get(row, row)], self.seeds.index(seed)
        counts = [methods[:index].count(method) for index, method in enumerate(methods)]
        seeds = [self.seeds[(first + count) % len(self.seeds)] for count in counts]
        return list(zip(methods, seeds, strict=True))

    def _name_folder(self, row: str, seed: int) -> str:
        """The name of the folder of a row with members. It contains their rates and seeds, and changes with them."""
        members = self._list_members(row, seed)
        rates = dict.fromkeys(f"{self._choose_rate(method):g}" for method, _ in members)
        return "-".join([row, *rates, *(str(member_seed) for _, member_seed in members)])

    def seconds(self, row: str, seed: int) -> float:
        """Seconds of training behind a row's run."""
        duration = 0.0 if row in MEANS else _sum_seconds(self.run(row, seed))
        members = self.members(row, seed) if row in MEANS or row in TAUGHT else []
        return duration + sum(map(_sum_seconds, members))

    def gather(self, name: str, row: str, folders: Sequence[Path]) -> str:
        """Makes a folder with links to a row's runs, so that they are compared as a group."""
        group = self.out / name / row
        group.mkdir(parents=True, exist_ok=True)
        for seed, folder in zip(self.seeds, folders, strict=True):
            link = group / f"seed-{seed}"
            link.unlink(missing_ok=True)  # it may lead to a run of another rate
            link.symlink_to(folder.resolve())
        return f"{row}={group}"

    def decode_whole(self, run: Path) -> Path:
        """The run decoded for exact match."""
        if self.score == "accuracy":
            return run
        return _decode(run, run.name.removesuffix(DECODED) + WHOLE, {**CHOSEN, "selection": "accuracy"})

    def _choose_rate(self, method: str) -> float:
        if method not in self.chosen:
            first = self.seeds[0]
            runs = {rate: self._train(method, first, rate) for rate in self.rates}
            self.chosen[method] = max(runs, key=lambda rate: read_scores(runs[rate], "validation")[self.score])
        return self.chosen[method]

    def _train(self, method: str, seed: int, rate: float | None, **extra: str) -> Path:
        name = "-".join([method, *extra.values(), *([] if rate is None else [str(rate)])])
        return self._finish(f"{name}-{seed}", method, seed, rate, extra)

    def _finish(self, name: str, method: str, seed: int, rate: float | None, extra: Mapping[str, str]) -> Path:
        """Trains or resumes a run in this process, since starting another one takes longer than small data sets."""
        run = self._complete(self.out / name, method, seed, rate, extra)
        return _decode(run, run.name + DECODED, CHOSEN) if "decode" in self.given else run

    def _complete(self, folder: Path, method: str, seed: int, rate: float | None, extra: Mapping[str, str]) -> Path:
        arguments = {
            "data": self.data,
            **dict.fromkeys(("decode", "threshold"), "validation"),
            **self.given,
            "method": method,
            "seed": str(seed),
        }
        arguments |= {} if rate is None else {"trainer.net.lr": str(rate)}
        return finish_here(folder, self.config, {**arguments, **extra})


def write_table(runs: dict[str, list[Path]], table: Table) -> str:
    """The table of means over seeds."""
    lines = [
        f"| {table.name} | rate | {table.score}, validation | test | exact match | nll | incoherent | ECE | seconds "
        "| seeds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row, folders in runs.items():
        tests = [read_scores(folder, "test") for folder in folders]
        calibration = [json.loads((folder / "calibration.json").read_text())["test"]["ece"] for folder in folders]
        cells = [
            f"{table.chosen[row]:g}" if row in SEARCHED else "",
            write_mean(folders, "validation", table.score, 2),
            write_mean(folders, "test", table.score, 2),
            write_mean([table.decode_whole(folder) for folder in folders], "test", "accuracy", 2),
            _format_mean([test["nll"]["net"] for test in tests]),
            write_mean(folders, "test", "incoherent", 2) if "incoherent" in tests[0] else "",
            _format_mean([100 * error for error in calibration]),
            f"{sum(table.seconds(row, seed) for seed in table.seeds) / len(table.seeds):.0f}",
            str(len(folders)),
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def list_scores(group: str, score: str, seeds: Sequence[int], runs: Mapping[str, Sequence[Path]]) -> list[dict]:
    """Lines of the file of scores by run."""
    return [
        {**line, "score": "exact_match" if score == "accuracy" else score}
        for line in seed_lines(group, [score], seeds, runs, *MEANS)
    ]


def _decode(run: Path, name: str, settings: Mapping[str, str]) -> Path:
    folder = run.with_name(name)
    return folder if (folder / "metrics.json").exists() else decode(run, folder, settings, QUIET)


def _sum_seconds(run: Path) -> float:
    times = run.with_name(run.name.removesuffix(DECODED)) / "times.jsonl"
    return sum(json.loads(line)["seconds"] for line in times.read_text().splitlines())


def _format_mean(values: Sequence[float]) -> str:
    return estimate(values).text(1, 2)


if __name__ == "__main__":
    main()
