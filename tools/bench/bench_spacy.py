"""spaCy pipelines and runs of ours side by side: scores, words per second, load time, memory, size on disk.

    SPEN_DATA=... python -m tools.bench.bench_spacy spaCy=runs/spacy/btc/model-best ours=runs/ner/seed-0 \\
        --task ner --test data:ner/btc/btc.test
    SPEN_DATA=... python -m tools.bench.bench_spacy ours=runs/srl:runs/predicates spen_en=spen_en:spen_srl \\
        --task srl --test data:srl/ewt_propbank/ewt-propbank-test.gold_conll

A contestant is NAME=SOURCE: a folder for spacy.load, an installed pipeline, or a run folder, which is added to a blank
English pipeline by nlp.add_pipe. After a colon: for a pipeline, the components to load, separated by commas (default:
all); for a run of srl, the run that tags predicates. At the end, after @: the precision of our components, bf16 or
int8. `train_spacy.py` trains spaCy's own ner and tagger on the same files.

Each measurement is a fresh process with one thread; contestants take turns, --repeats times. Measurements:
  scores     on the corpus' own tokens (a word of white space is "_"). F1 and accuracy are those of spaCy's Scorer;
             strict F1 is seqeval's, as in `spen evaluate`. srl: F1 over the arguments of all predicates of the
             corpus or of the output: arguments of a missed predicate are missed, those of a spurious one wrong
  words/s    through nlp.pipe, over texts (words joined by blanks, split by spaCy's tokeniser) and over Docs made before
             of the corpus' own words; median of the repeats, the best in brackets, × the first contestant's median
  load       spacy.load or nlp.add_pipe, including imports that spaCy itself doesn't need
  memory     resident after loading, and after the corpus; spaCy and torch imported are in it (--json has them alone)
  disk       size of the folder written by nlp.to_disk
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from spen_plugins.data.catalogue import locate
from tools.errors import end_with_message

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
SCORES = {
    "ner": {"f1": "F1", "f1_strict": "strict F1"},
    "tag": {"accuracy": "accuracy"},
    "srl": {"f1": "F1", "f1_gold": "F1, gold predicates", "predicates_f1": "predicates' F1"},
}
MEASURES = ("load", "memory_before", "memory", "memory_after", "disk", "texts", "docs")


@end_with_message(ValueError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contestants", nargs="+", metavar="NAME=SOURCE[:MORE][@PRECISION]")
    parser.add_argument("--task", choices=tuple(SCORES), required=True)
    parser.add_argument("--test", required=True, help="file to annotate and score, or its data: path")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, help="use only the file's first sentences")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="clock; cpu: this process's own time, for a busy machine (default: wall)",
    )
    parser.add_argument("--json", action="store_true", help="print all figures as JSON instead of a table")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # the process of one measurement
    options = parser.parse_args()
    test = locate(options.test)
    if options.one:
        print(json.dumps(measure_here(options, test)))
        return
    rows = summary(compete(options))
    print(json.dumps(rows, indent=1) if options.json else table(rows, SCORES[options.task]))


def measure_here(options: argparse.Namespace, test: Path) -> dict[str, Any]:
    """One measurement, in this process."""
    from tools.bench.spacy_contestant import Contestant, measure

    return measure(Contestant.parse(options.contestants[0]), options.task, test, options.limit, options.clock)


def compete(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """The measurements of each contestant, in turns."""
    measurements: dict[str, list[dict[str, Any]]] = {word.partition("=")[0]: [] for word in options.contestants}
    if len(measurements) < len(options.contestants):
        raise ValueError(f"found contestants {', '.join(options.contestants)}; expected a name of its own for each")
    for _ in range(options.repeats):
        for word in options.contestants:
            measurements[word.partition("=")[0]].append(measure_apart(word, options))
    return measurements


def measure_apart(word: str, options: argparse.Namespace) -> dict[str, Any]:
    """One measurement, in a fresh process."""
    flags = ["--task", options.task, "--test", options.test, "--clock", options.clock]
    flags += ["--one"] if options.limit is None else ["--one", "--limit", str(options.limit)]
    command = [sys.executable, "-m", "tools.bench.bench_spacy", word, *flags]
    process = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True)
    if process.returncode:
        raise ValueError(f"{word}: {process.stderr.strip().removeprefix('error: ')}")
    return json.loads(process.stdout.splitlines()[-1])


def summary(measurements: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row per contestant: its scores, medians of the measurements, and the best rates."""
    rows = []
    for name, runs in measurements.items():
        scores = {key: value for key, value in runs[0].items() if key not in MEASURES}
        medians = {key: median(run[key] for run in runs) for key in MEASURES}
        best = {f"{key}_best": max(run[key] for run in runs) for key in ("texts", "docs")}
        rows.append({"name": name, **scores, **medians, **best})
    for row in rows:
        row |= {f"{key}_ratio": row[key] / rows[0][key] for key in ("texts", "docs")}
    return rows


def table(rows: Sequence[dict[str, Any]], scores: dict[str, str]) -> str:
    """The rows as Markdown."""
    heads = [*scores.values(), "words/s, texts", "×", "words/s, Docs", "×", "load, s", "memory, MB", "disk, MB"]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for row in rows:
        cells = [f"{100 * row[key]:.2f}" for key in scores]
        for key in ("texts", "docs"):
            cells += [f"{row[key]:,.0f} ({row[f'{key}_best']:,.0f})", f"{row[f'{key}_ratio']:.2f}"]
        cells += [f"{row['load']:.2f}", f"{row['memory']:.0f}, then {row['memory_after']:.0f}", f"{row['disk']:.1f}"]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
