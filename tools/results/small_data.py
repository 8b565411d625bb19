"""Our defaults on few examples, beside what most people would try: spaCy for names and tags, scikit-learn for labels.

    python -m tools.results.small_data runs/small                       # everything: hours
    python -m tools.results.small_data runs/small --only names --sizes 50 200 --seeds 0 1 2
    python -m tools.results.small_data runs/small --only names --methods compound cross_entropy crf

`cross_entropy_twice` is the control of a method that pretrains the net: cross entropy once more, with a new optimiser,
from the net of `cross_entropy`. The run that is better on validation counts.

From each corpus, a training part of N examples and a validation part of N / 4 (at least 20) are drawn by a seed; the
test part is the corpus's own. No default was chosen on wikigold and gum. Ours is `spen-run CONFIG` on these files as on
a user's own, with no further argument (but for labels threshold=validation); roles are compared with our cross entropy.
Finished runs are kept, and printed again.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.schemes import Scheme, convert
from spen_plugins.files import save_json, save_text
from spen_plugins.runs.folder.folder import RunFolder
from tools.errors import end_with_message
from tools.results.differences import differences
from tools.results.run_records import record, run_lines
from tools.results.runs import finish, read_scores

TWICE = "_twice"
PARTS = ("numerator", "denominator")
BIBTEX, BIBTEX_SPLIT = "data:multilabel/bibtex/bibtex.arff", "data:multilabel/splits/bibtex.json"


def corpus(pattern: str) -> tuple[str, ...]:
    """Train, validation and test file."""
    return tuple(map(pattern.format, ("train", "dev", "test")))


@dataclass(frozen=True)
class Case:
    """A corpus: our config and the score that both sides are compared by.

    Args:
        config, score: ours.
        files: train, validation and test of the corpus; none for bibtex, whose rows a split chooses.
        other: the other's name, and the function that trains and scores it.
        arguments: of our config, besides the files.
        sizes: numbers of training examples.
        scheme: the scheme of its tags, if they are spans in a scheme other than BIO; the parts are written in BIO.
    """

    config: str
    score: str
    files: tuple[str, ...]
    other: tuple[str, Callable[[Case, Path, int], float]]
    arguments: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (50, 200, 1000)
    scheme: Scheme = "bio"

    def file(self, folder: Path, part: str) -> Path:
        """A part that `draw` wrote, or the corpus's test part."""
        if part == "test" and self.scheme == "bio":
            return locate(self.files[2])
        return folder / f"{part}{locate(self.files[0]).suffix}"


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of parts, runs and scores")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of training examples (default: each corpus's)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--methods", nargs="+", help="methods of the config, in place of its default and the other side"
    )
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    parser.add_argument("--tables", action="store_true", help="print what is done, train nothing")
    options = parser.parse_args()
    for name in options.only:
        for size in options.sizes or CASES[name].sizes:
            if options.methods:
                lines = by_method(name, size, options.seeds, options.out, options.methods, options.tables)
                print(*lines, sep="\n", flush=True)
            else:
                results = [scores(name, size, seed, options.out, options.tables) for seed in options.seeds]
                print(row(name, size, [pair for pair in results if pair is not None]), flush=True)
            if options.csv:
                record(lines_of(name, size, options.seeds, options.out), options.csv)


def lines_of(name: str, size: int, seeds: Sequence[int], out: Path) -> list[dict[str, Any]]:
    """Lines of the finished runs for `docs/results/runs.csv`."""
    folders = {seed: out / name / f"{size}-{seed}" for seed in seeds}
    runs = [
        (seed, metrics.parent) for seed, folder in folders.items() for metrics in sorted(folder.glob("*/metrics.json"))
    ]
    group, score = f"small_data, {name}, {size}", [CASES[name].score]
    return [line for seed, run in runs for line in run_lines(group, run.name, seed, score, run)]


def row(name: str, size: int, pairs: Sequence[tuple[float, float]]) -> str:
    """A line of the table, in per cent: ours, the other, and their difference with its standard error over seeds."""
    if not pairs:
        return f"| {name} | {size} | not run |"
    ours, others = zip(*pairs, strict=True)
    gaps = [a - b for a, b in pairs]
    error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else float("nan")
    means = f"{100 * statistics.fmean(ours):.1f} | {CASES[name].other[0]} {100 * statistics.fmean(others):.1f}"
    return (
        f"| {name} | {size} | {means} | {100 * statistics.fmean(gaps):+.1f} ± {100 * error:.1f} | {len(pairs)} seeds |"
    )


def scores(name: str, size: int, seed: int, out: Path, kept_only: bool) -> tuple[float, float] | None:
    """Ours and the other's test score, computed unless kept in `out`; None if `kept_only` and there is none."""
    case, folder = CASES[name], out / name / f"{size}-{seed}"
    path = folder / "scores.json"
    if not path.exists():
        if kept_only:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        draw(case, folder, size, seed)
        other = case.other[1](case, folder, seed)
        save_json({"ours": ours(case, folder / "ours", folder, seed), "other": other}, path)
    values = json.loads(path.read_text(encoding="utf-8"))
    return values["ours"], values["other"]


def by_method(
    name: str, size: int, seeds: Sequence[int], out: Path, methods: Sequence[str], finished_only: bool
) -> list[str]:
    """A line for each method: validation and test, in per cent, means over seeds, its difference on test to the first
    method with an interval over draws and test examples together, and each draw's test score; with `finished_only`,
    only of finished runs."""
    case, folders = CASES[name], {seed: out / name / f"{size}-{seed}" for seed in seeds}
    runs: dict[str, dict[int, RunFolder]] = {}
    for method in methods:
        for seed, folder in folders.items():
            if not finished_only and not (folder / method / "metrics.json").exists():
                folder.mkdir(parents=True, exist_ok=True)
                draw(case, folder, size, seed)
                trained(case, folder, seed, method)
        finished = {seed: folder for seed, folder in folders.items() if (folder / method / "metrics.json").exists()}
        runs[method] = {seed: better(case, folder, method) for seed, folder in finished.items()}
    return [
        line(case, f"| {name} | {size} | {method} |", method_runs, runs[methods[0]])
        for method, method_runs in runs.items()
    ]


def line(case: Case, label: str, method_runs: dict[int, RunFolder], first: dict[int, RunFolder]) -> str:
    """One method's line; its difference to the first method's runs is over the draws that both have."""
    scores = [
        [100 * run.metrics()[part][case.score] for part in ("validation", "test")] for run in method_runs.values()
    ]
    if not scores:
        return f"{label} not run | | | |"
    gap, shared = "", method_runs.keys() & first.keys()
    if shared and method_runs != first:
        ratios = [[runs[seed].ratios("test") for seed in sorted(shared)] for runs in (first, method_runs)]
        _, (mean, interval) = differences(
            *(np.array([[run_ratios[part].numpy() for run_ratios in runs] for runs in ratios]) for part in PARTS), 0
        )
        gap = f"{100 * mean:+.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    means = " | ".join(f"{statistics.fmean(values):.1f}" for values in zip(*scores, strict=True))
    return f"{label} {means} | {gap} | {', '.join(f'{test:.1f}' for _, test in scores)} |"


def trained(case: Case, folder: Path, seed: int, method: str) -> None:
    """Train a method, or once more the net of `METHOD_twice`'s first training."""
    first = method.removesuffix(TWICE)
    ours(case, folder / first, folder, seed, f"method={first}")
    if first != method:
        ours(case, folder / method, folder, seed, f"method={first}", f"init.inference_net={folder / first}")


def better(case: Case, folder: Path, method: str) -> RunFolder:
    """A method's run; if it has two successive trainings, the run with the better validation score."""
    runs = [RunFolder.open(folder / name) for name in dict.fromkeys((method.removesuffix(TWICE), method))]
    return max(runs, key=lambda run: run.metrics()["validation"][case.score])


def draw(case: Case, folder: Path, size: int, seed: int) -> None:
    """Write the parts: files of whole sentences, or for labels the split of rows."""
    rng = random.Random(seed)
    if not case.files:
        split = json.loads(locate(BIBTEX_SPLIT).read_text(encoding="utf-8"))
        counts = {"train": size, "valid": max(20, size // 4)}
        parts = {part: sorted(rng.sample(split[part], count)) for part, count in counts.items()}
        save_json({**parts, "test": split["test"]}, folder / "split.json")
        return
    for part, source in zip(("train", "validation", "test"), case.files, strict=True):
        if part == "test" and case.scheme == "bio":
            continue
        sentences = sentences_of(locate(source), case.scheme)
        count = {"train": size, "validation": max(20, size // 4), "test": len(sentences)}[part]
        save_text("\n\n".join(rng.sample(sentences, count)) + "\n\n", case.file(folder, part))


def sentences_of(path: Path, scheme: Scheme) -> list[str]:
    """The sentences of a file in columns, without marks of a document's start; tags of spans in BIO."""
    blocks = [block for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    blocks = [block for block in blocks if "-DOCSTART-" not in block]
    if scheme == "bio":
        return blocks
    sentences = []
    for block in blocks:
        rows = [line.rsplit(maxsplit=1) for line in block.splitlines() if line.strip()]
        tags = convert([tag for _, tag in rows], scheme, "bio")
        sentences.append("\n".join(f"{cells}\t{tag}" for (cells, _), tag in zip(rows, tags, strict=True)))
    return sentences


def ours(case: Case, run: Path, folder: Path, seed: int, *extra: str) -> float:
    """Test score of a run, which `spen-run` trains or resumes."""
    return read_scores(finish(run, _list_words(case, folder, seed, extra)), "test")[case.score]


def _list_words(case: Case, folder: Path, seed: int, extra: Sequence[str]) -> list[str]:
    if not case.files:
        files = [f"data={locate(BIBTEX)}", f"split={folder / 'split.json'}"]
    else:
        names = {"data": "train", "validation": "validation", "test": "test"}
        files = [f"{key}={case.file(folder, part)}" for key, part in names.items()]
    return [case.config, *files, *case.arguments, *extra, f"seed={seed}"]


def our_cross_entropy(case: Case, folder: Path, seed: int) -> float:
    """Our own config without an energy."""
    return ours(case, folder / "cross_entropy", folder, seed, "method=cross_entropy")


def spacy(kind: str) -> Callable[[Case, Path, int], float]:
    """spaCy's own component, with its efficiency config."""

    def train_and_score(case: Case, folder: Path, seed: int) -> float:
        import spacy

        from tools.bench.spacy_docs import plain, read
        from tools.bench.spacy_scores import score
        from tools.bench.train_spacy import train

        tags = "upos"
        files = {"train": case.file(folder, "train"), "dev": case.file(folder, "validation")}
        train(kind, files, folder / "spacy", tags)
        nlp = spacy.load(folder / "spacy" / "model-best")
        sentences = read(kind, case.file(folder, "test"), tags)
        docs = list(nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences))
        return score(kind, docs, sentences)["accuracy" if kind == "tag" else "f1_strict"]

    return train_and_score


def logistic_regression(case: Case, folder: Path, seed: int) -> float:
    """scikit-learn's regressions, one per label, with the threshold of best example F1 on the validation part."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    from spen_plugins.config.evaluation import evaluate, parse_arguments
    from spen_plugins.config.experiment import make_task, parse_experiment
    from spen_plugins.registry import Registry

    words = _list_words(case, folder, seed, ())[1:]
    task = make_task(parse_experiment(evaluate(case.config, parse_arguments(words)), case.config, Registry()))
    task.load()
    x, y = {}, {}
    for part in ("train", "validation", "test"):
        batch = task.collate(task.part(part))
        y[part] = batch.gold[:, 0].numpy().astype(int)
        x[part] = np.zeros((len(batch), task.inputs.size), dtype=np.float32)
        rows = np.repeat(np.arange(len(batch)), np.diff([*batch.x.inputs["offsets"], len(batch.x.inputs["indices"])]))
        x[part][rows, batch.x.inputs["indices"].numpy()] = 1
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(x["train"], y["train"])

    def example_f1(part: str, threshold: float) -> float:
        return float(f1_score(y[part], model.predict_proba(x[part]) > threshold, average="samples", zero_division=0))

    return example_f1("test", max(np.arange(0.05, 0.96, 0.05), key=lambda t: example_f1("validation", t)))


def names(files: str, scheme: Scheme = "bio", **settings: Any) -> Case:
    """Names of a corpus, compared with spaCy's."""
    return Case("names", "f1", corpus(files), ("spaCy", spacy("ner")), scheme=scheme, **settings)


CASES = {
    "names": names("data:ner/btc/btc.{}"),
    "wikigold": names("data:ner/wikigold/{}.conll", "iob1", sizes=(50, 200)),
    "gum": names("data:ner/gum/{}.conll"),
    "tags": Case(
        "tags", "accuracy", corpus("data:pos/ewt/en_ewt-ud-{}.conllu"), ("spaCy", spacy("tag")), ("tags=upos",)
    ),
    "roles": Case(
        "roles", "span_f1", corpus("data:srl/ewt_propbank/ewt-propbank-{}.gold_conll"), ("CE", our_cross_entropy)
    ),
    "labels": Case(
        "labels",
        "example_f1",
        (),
        ("logistic regression", logistic_regression),
        ("threshold=validation",),
        (200, 1000),
    ),
}


if __name__ == "__main__":
    main()
