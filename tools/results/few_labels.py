"""Few labelled examples and many without labels: an energy's training beside self-training, on names, tags, roles and
labels.

    SPEN_DATA=... python -m tools.results.few_labels runs/few --only names --shares 0.05 --seeds 0 1 2
    SPEN_DATA=... python -m tools.results.few_labels runs/few --only labels --methods nce --set trainer.energy_share=0.2
    SPEN_DATA=... python -m tools.results.few_labels runs/few --only roles --methods static_crf --as rest --at-most 2500

A share of the training part, drawn by a seed, keeps its tags or labels. The rest, at most `--at-most` examples, is text
or features alone; for roles, text with predicates marked. The whole development part chooses epochs and how label sets
are decoded, and nothing else; scores are of the test part. All are our nets with the defaults of a user's own files:

- `cross entropy`, and for tags `CRF`, learn from the labelled examples alone;
- `self-training`: cross entropy learns from these and from the rest with what the net of `cross entropy` predicts
  there; `of the CRF`: with the tags that the CRF predicts, so that the CRF teaches a net that decides word by word;
- a method of the config with an energy, say `--methods nce`, with the rows of `--as`: `alone`, `nce` learns from the
  labelled examples; `teacher`, `self-training, of nce` is as above; `rest`, `nce, with the rest`, whose energy also
  judges what the net predicts for the rest (`task.unlabelled`); `self`, `nce, self-trained`, the method in cross
  entropy's place on what the net of `cross entropy` predicts. The first two are the default.

The net of every row but `CRF` is the same: it decides on tokens and labels independently. Finished runs are kept, and
printed again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spen_plugins as sp
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.data.sentences.roles import columns, predicted, read_roles
from spen_plugins.data.texts.labelled_texts import read_texts
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.files import save_text
from spen_plugins.runs.folder.folder import RunFolder
from tools.errors import end_with_message
from tools.results.differences import differences
from tools.results.run_records import record, seed_lines
from tools.results.runs import finish, write_mean

CONTROL = "self-training"
PARTS = ("train", "dev", "test")
USES = ("alone", "teacher", "rest", "self")
Examples = list[tuple[Any, Any]]
"""Inputs and gold: words and tags, a text and its labels, features and labels; a sentence with roles has both."""


class Tags:
    """Sentences in columns."""

    suffix = "conll"
    teachers = ("cross_entropy", "crf")
    arguments = ("tags=-1",)

    def __init__(self, files: str) -> None:
        self.files = files

    def corpus(self) -> dict[str, Examples]:
        return {part: self.read(locate(self.files.format(part))) for part in PARTS}

    def read(self, path: Path) -> Examples:
        sentences = read_conllu(path, tags="upos") if path.suffix == ".conllu" else read_columns(path, 0, -1)
        return [(list(s.words), list(s.tags or ())) for s in sentences]

    def write(self, examples: Examples) -> str:
        """Words and tags in columns; a word of white space is "_"."""
        rows = (zip(words, tags, strict=True) for words, tags in examples)
        return "\n".join("".join(f"{word.strip() or '_'}\t{tag}\n" for word, tag in row) for row in rows)

    def predicted(self, run: sp.Predictor, path: Path) -> Examples:
        examples = []
        for prediction in run.predict([words for words, _ in self.read(path)]):
            # The net's own tags are BIOES.
            tags = prediction["tags"] if "entities" not in prediction else ["O"] * len(prediction["words"])
            for span in prediction.get("entities", ()):
                tags[span["start"] : span["end"]] = [f"I-{span['type']}"] * (span["end"] - span["start"])
                tags[span["start"]] = f"B-{span['type']}"
            examples.append((prediction["words"], tags))
        return examples


class Roles:
    """Sentences with the roles of their predicates, in PropBank's columns."""

    suffix = "conll"
    teachers = ("cross_entropy", "crf")
    arguments = ()

    def __init__(self, files: str) -> None:
        self.files = files

    def corpus(self) -> dict[str, Examples]:
        return {part: self.read(locate(self.files.format(part))) for part in PARTS}

    def read(self, path: Path) -> Examples:
        return [(s, None) for s in read_roles(path, "auto").sentences if s.propositions]

    def write(self, examples: Examples) -> str:
        return columns(sentence for sentence, _ in examples)

    def predicted(self, run: sp.Predictor, path: Path) -> Examples:
        return [(s, None) for s in predicted(run.predict_file(path), run.task.read(str(path)))]


class Texts:
    """Texts and their labels in TSV."""

    suffix = "tsv"
    teachers = ("cross_entropy",)

    def __init__(self, files: str, labels: str) -> None:
        self.files, self.arguments = files, (f"labels={labels}",)

    def corpus(self) -> dict[str, Examples]:
        return {part: self.read(locate(self.files.format(part))) for part in PARTS}

    def read(self, path: Path) -> Examples:
        return [(row.text, row.labels or ()) for row in read_texts(path, Layout(1, 2, ",", False)).rows]

    def write(self, examples: Examples) -> str:
        return "".join(f"{text}\t{','.join(labels)}\n" for text, labels in examples)

    def predicted(self, run: sp.Predictor, path: Path) -> Examples:
        texts = [text for text, _ in self.read(path)]
        return list(zip(texts, (prediction["labels"] for prediction in run.predict(texts)), strict=True))


class Vectors:
    """Binary features and labels by their numbers, in libsvm's format."""

    suffix = "svm"
    teachers = ("cross_entropy",)
    arguments = ()

    def __init__(self, file: str, split: str) -> None:
        self.config = MultiLabel.Config(file=file, split=split)

    def corpus(self) -> dict[str, Examples]:
        task = MultiLabel(self.config)
        task.load()
        return {
            part: [(e.features.tolist(), e.gold.tolist()) for e in task.part(name)]
            for part, name in zip(PARTS, ("train", "validation", "test"), strict=True)
        }

    def read(self, path: Path) -> Examples:
        pairs = (line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
        return [
            ([word.split(":")[0] for word in features.split()], [i for i in gold.split(",") if i])
            for gold, features in pairs
        ]

    def write(self, examples: Examples) -> str:
        return "".join(f"{','.join(map(str, y))} {' '.join(f'{i}:1' for i in x)}\n" for x, y in examples)

    def predicted(self, run: sp.Predictor, path: Path) -> Examples:
        features = [features for features, _ in self.read(path)]
        return list(zip(features, (prediction["labels"] for prediction in run.predict_file(path)), strict=True))


class Case(NamedTuple):
    """A corpus, our config for it, and the score."""

    config: str
    score: str
    files: Tags | Roles | Texts | Vectors


CASES = {
    "names": Case("names", "f1", Tags("data:ner/btc/btc.{}")),
    "gum": Case("names", "f1", Tags("data:ner/gum/{}.conll")),
    "tags": Case("tags", "accuracy", Tags("data:pos/ewt/en_ewt-ud-{}.conllu")),
    "roles": Case("roles", "span_f1", Roles("data:srl/ewt_propbank/ewt-propbank-{}.gold_conll")),
    "labels": Case(
        "labels", "example_f1", Vectors("data:multilabel/bibtex/bibtex.arff", "data:multilabel/splits/bibtex.json")
    ),
    "emotions": Case("texts", "example_f1", Texts("data:text/goemotions/{}.tsv", "data:text/goemotions/labels.txt")),
}


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of parts and runs")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.05, 0.1], help="labelled part of training")
    parser.add_argument("--methods", nargs="+", default=[], help="methods of the config with an energy")
    parser.add_argument("--as", dest="uses", nargs="+", choices=USES, default=USES[:2], help="rows of these methods")
    parser.add_argument("--at-most", type=int, help="examples without labels, drawn like the others; default: all")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="more arguments of these methods")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    options = parser.parse_args()
    for name in options.only:
        for share in options.shares:
            suffix = "" if options.at_most is None else f"-{options.at_most}"
            folders = {seed: options.out / name / f"{share}-{seed}{suffix}" for seed in options.seeds}
            draws = [draw(CASES[name], share, seed, options, folder) for seed, folder in folders.items()]
            print(table(name, share, draws), flush=True)
            if options.csv:
                runs = {row: [rows[row] for rows in draws] for row in draws[0]}
                group = f"few_labels, {name}, {share}{suffix}"
                record(seed_lines(group, [CASES[name].score], [*folders], runs), options.csv)


def table(name: str, share: float, draws: Sequence[dict[str, Path]]) -> str:
    """Mean test scores in per cent, and differences to self-training's with intervals over draws and test examples
    together, as in `spen compare`."""
    rows = list(draws[0])
    row_ratios = [[RunFolder(runs[row]).ratios("test") for runs in draws] for row in rows]
    ratios = (
        np.array([[run_ratios[part].numpy() for run_ratios in runs] for runs in row_ratios])
        for part in ("numerator", "denominator")
    )
    gaps = differences(*ratios, rows.index(CONTROL))
    lines = [f"| {name}, {100 * share:g} % | {CASES[name].score} | − {CONTROL} | draws |", "|---|---:|---:|---:|"]
    for row, (mean, interval) in zip(rows, gaps, strict=True):
        scores = write_mean([runs[row] for runs in draws], "test", CASES[name].score, 1)
        gap = "" if row == CONTROL else f"{100 * mean:+.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        lines.append(f"| {row} | {scores} | {gap} | {len(draws)} |")
    return "\n".join(lines)


def draw(case: Case, share: float, seed: int, options: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """The runs of all rows on one draw."""
    files = case.files
    parts = {part: folder / f"{part}.{files.suffix}" for part in ("labelled", "rest", "dev", "test")}
    if not all(path.exists() for path in parts.values()):
        folder.mkdir(parents=True, exist_ok=True)
        examples = files.corpus()
        random.Random(seed).shuffle(examples["train"])
        count = round(share * len(examples["train"]))
        contents = {
            "labelled": examples["train"][:count],
            "rest": examples["train"][count:][: options.at_most],
            **examples,
        }
        for part, path in parts.items():
            save_text(files.write(contents[part]), path)

    def train_run(name: str, method: str, train: Path, *arguments: str) -> Path:
        words = [f"data={train}", f"validation={parts['dev']}", f"test={parts['test']}", *files.arguments]
        return finish(folder / name, [case.config, *words, f"seed={seed}", f"method={method}", *arguments])

    def write_taught(teacher: Path) -> Path:
        taught_file = folder / f"{teacher.name}-taught.{files.suffix}"
        if not taught_file.exists():
            unlabelled = files.predicted(sp.load(teacher), parts["rest"])
            save_text(files.write([*files.read(parts["labelled"]), *unlabelled]), taught_file)
        return taught_file

    runs = {method.replace("_", " "): train_run(method, method, parts["labelled"]) for method in files.teachers}
    for name, run in list(runs.items()):
        control = CONTROL if name == "cross entropy" else f"{CONTROL}, of {name}"
        runs[control] = train_run(f"{run.name}-taught", "cross_entropy", write_taught(run))
    for method in options.methods:
        key = "-".join([method, *options.set]).replace("/", "_")
        if {"alone", "teacher"} & set(options.uses):
            run = runs[method] = train_run(key, method, parts["labelled"], *options.set)
        if "teacher" in options.uses:
            runs[f"{CONTROL}, of {method}"] = train_run(f"{key}-taught", "cross_entropy", write_taught(run))
        if "rest" in options.uses:
            unlabelled = f"task.unlabelled={parts['rest']}"
            runs[f"{method}, with the rest"] = train_run(
                f"{key}-rest", method, parts["labelled"], unlabelled, *options.set
            )
        if "self" in options.uses:
            taught_file = write_taught(runs["cross entropy"])
            runs[f"{method}, self-trained"] = train_run(f"{key}-self", method, taught_file, *options.set)
    return runs


if __name__ == "__main__":
    main()
