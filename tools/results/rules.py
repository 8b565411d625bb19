"""Rules that a user writes, few labelled examples and many without: the methods of spen-rules and their controls.

    SPEN_DATA=... python -m tools.results.rules runs/rules --only btc --sizes 50 --seeds 0 1 2
    SPEN_DATA=... python -m tools.results.rules runs/rules --only cora --sizes 5 10 50

Names and texts: the first 50 training examples, from which the rules in examples/rules were written, and as many as
`--sizes` says, drawn by the seed, have gold; all other training examples have none. The development part chooses the
epoch. Citations (`cora`): the first of the training part have fields, as in Shankar & Piratla's Table 4, and seeds are
of the training alone; the rules are those of task `citations`. Scores are of the whole test part, in per cent; the
reward by the rules of predictions, and of gold, stands beside them. `--set` gives all runs more arguments. `crf_mean`
is the mean of the CRF and `--members` − 1 more of the same draw with training seeds of their own; likewise of others.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spen_plugins.data.catalogue import locate
from spen_plugins.files import save_text
from spen_plugins.runs.train.averaging import average_runs
from tools.errors import end_with_message
from tools.results.few_labels import Tags, Texts
from tools.results.run_records import record, seed_lines
from tools.results.runs import finish, read_scores, write_mean

READ = 50
"""Number of the first training examples, which the authors of the rules saw."""
MEAN = "_mean"
"""Suffix of a method's name for the mean of several of its runs."""
WITHOUT_RULES = ("cross_entropy", "crf", "dvn")


class Case(NamedTuple):
    """A data set: the config, the score, its files, methods and arguments."""

    config: str
    score: str
    files: Tags | Texts | None
    arguments: Sequence[str]
    methods: Sequence[str]
    sizes: Sequence[int] = (50, 200)


READER = (
    '{"type": "bilstm", "layers": 1, "hidden": 128, "dropout": 0.4, '
    '"reader": {"type": "transformer", "model": "minilm"}}'
)
FROZEN = (f"encoder={READER}", "features.reader.frozen=all", "features.reader.store_gib=2")
"""A BiLSTM over a frozen MiniLM."""
PLATEAU = ('trainer.net.plateau={"factor": 0.5, "patience": 2}', "trainer.net.schedule=null", "trainer.patience=4")
MINILM = (*FROZEN, "trainer.net.lr=0.002", "trainer.epochs=10", *PLATEAU)
"""The same below the net of names, with the shorter training that few labelled sentences need."""
TAUGHT = ("votes", "rules_energy", "expectation")
RANKED = ("rules_cd", "r_spen", "sg_spen")
NAMES = ("majority", "cross_entropy", "crf", *TAUGHT, "rules_cd")
CASES = {
    "btc": Case("names", "f1", Tags("data:ner/btc/btc.{}"), ("data=btc",), NAMES),
    "wikigold": Case("names", "f1", Tags("data:ner/wikigold/{}.conll"), ("data=wikigold",), (*NAMES, *RANKED[1:])),
    "wnut17": Case("names", "f1", Tags("data:ner/wnut17/wnut17{}.conll"), ("data=wnut17",), NAMES),
    "goemotions": Case(
        "texts",
        "example_f1",
        Texts("data:text/goemotions/{}.tsv", "data:text/goemotions/labels.txt"),
        ("data=goemotions",),
        ("majority", "cross_entropy", *TAUGHT, "rules_cd"),
    ),
    "cora": Case(
        "citations", "accuracy", None, ("data=cora",),
        ("majority", "crf", "expectation", "votes", "rules_energy", "dvn", *RANKED), (5, 10, 50),
    ),
}  # fmt: skip


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of parts and runs")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, help="labelled examples; default: those of the data set")
    parser.add_argument("--methods", nargs="+", help="default: those of the data set")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--members", type=int, default=4, help="nets of a mean")
    parser.add_argument("--minilm", action="store_true", help="names over a frozen MiniLM")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="more arguments of all runs")
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    options = parser.parse_args()
    for name in options.only:
        for size in options.sizes or CASES[name].sizes:
            runs = {
                method: [train(name, method, size, seed, options) for seed in options.seeds]
                for method in options.methods or CASES[name].methods
            }
            print(write_table(name, size, runs), flush=True)
            if options.csv:
                suffix = ", ".join(["MiniLM"] * options.minilm + options.set)
                group, score = f"rules, {name}, {size}" + f", {suffix}" * bool(suffix), [CASES[name].score]
                means = [method for method in runs if method.endswith(MEAN)]
                record(seed_lines(group, score, options.seeds, runs, *means), options.csv)


def train(name: str, method: str, size: int, seed: int, options: argparse.Namespace, member: int = 0) -> Path:
    """The run of a method on a draw; member k of a mean is trained with the draw's seed plus 100 k."""
    case, folder = CASES[name], options.out / name / f"{size}-{seed}"
    if method.endswith(MEAN):
        runs = [train(name, method.removesuffix(MEAN), size, seed, options, i) for i in range(options.members)]
        mean = folder / f"{method}-{options.members}{'-minilm' * options.minilm}"
        return mean if (mean / "metrics.json").exists() else average_runs(runs, mean)
    words = [case.config, *case.arguments, f"seed={seed + 100 * member}", f"method={method}"]
    if case.files is None:
        words.append(f"labelled={size}")
    else:
        rows = READ + size
        words += [f"task.train={draw(case.files, size, seed, folder)}", f"task.labelled={rows}"]
        words += ["task.rest=false", "task.repeat=20"] if method in WITHOUT_RULES else []
        words += [] if method in WITHOUT_RULES else [f"task.rules=examples/rules/{name}.py"]
    extra, encoder = (
        ([], ()) if method == "majority" else (options.set, MINILM if options.minilm and case.config == "names" else ())
    )
    if encoder and method in RANKED:
        encoder = (*encoder, "trainer.energy.schedule=null")
    run = "-".join([method, *([str(member)] if member else []), *(["minilm"] if encoder else []), *extra])
    extra_keys = {argument.partition("=")[0] for argument in extra}
    encoder = [argument for argument in encoder if argument.partition("=")[0] not in extra_keys]
    return finish(folder / run, [*words, *encoder, *extra])


def draw(files: Tags | Texts, size: int, seed: int, folder: Path) -> Path:
    """Writes the training part, examples with gold first."""
    path = folder / f"train.{files.suffix}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        examples = files.read(locate(files.files.format("train")))
        others = examples[READ:]
        random.Random(seed).shuffle(others)
        save_text(files.write([*examples[:READ], *others]), path)
    return path


def write_table(name: str, size: int, runs: dict[str, list[Path]]) -> str:
    """Means over seeds of the scores and rewards, in per cent."""
    score = CASES[name].score
    lines = [
        f"| {name}, {size} | {score}, validation | test | reward | reward of gold | seeds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for method, folders in runs.items():
        columns = (("validation", score), ("test", score), ("test", "reward"), ("test", "reward_of_gold"))
        cells = [
            write_mean(folders, part, key, 1) if key in read_scores(folders[0], part) else "–" for part, key in columns
        ]
        lines.append(f"| {method} | {' | '.join(cells)} | {len(folders)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
