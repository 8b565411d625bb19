"""Few labelled sentences and many without labels: an energy's training beside self-training, on names and tags.

    SPEN_DATA=... python tools/few_labels.py runs/few --only names --shares 0.05 --seeds 0 1 2

Of the training part a share is drawn by a seed and keeps its tags; the rest is text alone. The development part, whole,
chooses epochs, and nothing else; scores are of the test part. All are our nets with the defaults of a user's own files:

- `cross entropy` and `CRF` learn from the labelled sentences alone;
- `self-training`: cross entropy learns from these and from the rest with the tags that the net of `cross entropy`
  predicts; `of the CRF`: with the tags that the CRF predicts, so that the CRF teaches a net that decides word by word;
- any method of the config with an energy, `--methods contrastive compound`: the rest has no tags (`task.unlabelled`),
  and the energy judges what the net says of it.

The net of every row but `CRF` is the same, tokens decided independently. What is done is kept, and printed again.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import spen_plugins as sp
from spen_plugins.datasets import locate
from spen_plugins.errors import SpenError
from spen_plugins.files import writing
from spen_plugins.readers.columns import read_columns
from spen_plugins.readers.conllu import read_conllu

CASES = {
    "names": ("ner_infnet", "f1", "data:ner/btc/btc.{}"),
    "gum": ("ner_infnet", "f1", "data:ner/gum/{}.conll"),
    "tags": ("pos_infnet", "accuracy", "data:pos/ewt/en_ewt-ud-{}.conllu"),
}
"""Corpus -> our config, the score, and its files."""
CONTROL = "self-training"
Pairs = list[tuple[str, str]]
"""A sentence: words with their tags."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of parts and runs")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.05, 0.1], help="labelled part of training")
    parser.add_argument("--methods", nargs="+", default=["contrastive"], help="methods of the config with an energy")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    given = parser.parse_args()
    try:
        for name in given.only:
            for share in given.shares:
                found = [
                    scores(name, share, seed, given.methods, given.out / name / f"{share}-{seed}")
                    for seed in given.seeds
                ]
                print("\n".join(rows(name, share, found)), flush=True)
    except SpenError as error:
        raise SystemExit(f"error: {error}") from None


def rows(name: str, share: float, found: Sequence[dict[str, float]]) -> list[str]:
    """Lines of a table: mean test score in per cent, its difference to self-training's with a standard error, seeds."""
    lines = []
    for method in found[0]:
        gaps = [100 * (scores[method] - scores[CONTROL]) for scores in found]
        error = f" ± {statistics.stdev(gaps) / len(gaps) ** 0.5:.1f}" if len(gaps) > 1 else ""
        mean = 100 * statistics.fmean(scores[method] for scores in found)
        gap = "" if method == CONTROL else f"{statistics.fmean(gaps):+.1f}{error}"
        lines.append(f"| {name} | {100 * share:g} % | {method} | {mean:.1f} | {gap} | {len(found)} |")
    return lines


def scores(name: str, share: float, seed: int, methods: Sequence[str], folder: Path) -> dict[str, float]:
    """Test scores of all methods, of one draw."""
    config, score, files = CASES[name]
    parts = {part: folder / f"{part}.conll" for part in ("labelled", "rest", "dev", "test")}
    if not all(path.exists() for path in parts.values()):
        folder.mkdir(parents=True, exist_ok=True)
        sentences = {part: read(files.format(part)) for part in ("train", "dev", "test")}
        random.Random(seed).shuffle(sentences["train"])
        count = round(share * len(sentences["train"]))
        found = {"labelled": sentences["train"][:count], "rest": sentences["train"][count:], **sentences}
        for part, path in parts.items():
            write(found[part], path)

    def trained(method: str, train: Path, *more: str) -> Path:
        words = [f"data={train}", f"validation={parts['dev']}", f"test={parts['test']}", "tags=-1", f"seed={seed}"]
        return finished(folder / "-".join((method, train.stem)), [config, *words, f"method={method}", *more])

    def taught(teacher: Path) -> Path:
        joined = folder / f"{teacher.name}-taught.conll"
        if not joined.exists():
            write([*read_pairs(parts["labelled"]), *predicted(teacher, parts["rest"])], joined)
        return trained("cross_entropy", joined)

    runs = {
        name: trained(method, parts["labelled"])
        for name, method in (("cross entropy", "cross_entropy"), ("CRF", "crf"))
    }
    runs |= {CONTROL: taught(runs["cross entropy"]), f"{CONTROL}, of the CRF": taught(runs["CRF"])}
    for method in methods:
        runs[method] = trained(method, parts["labelled"], f"task.unlabelled={parts['rest']}")
    return {method: json.loads((run / "metrics.json").read_text())["test"][score] for method, run in runs.items()}


def finished(run: Path, words: Sequence[str]) -> Path:
    """A run that goes on with what it began."""
    if not (run / "metrics.json").exists():
        command = ["--resume", str(run)] if (run / "config.json").exists() else [*words, "--out", str(run)]
        subprocess.run([sys.executable, "-m", "spen_plugins.cli.run", *command, "--quiet"], check=True)
    return run


def read(name: str) -> list[Pairs]:
    """The sentences of a data set's file, with Universal POS tags of CoNLL-U."""
    path = locate(name)
    if path.suffix == ".conllu":
        return [list(zip(s.words, s.tags or (), strict=True)) for s in read_conllu(path, tags="upos")]
    return read_pairs(path)


def read_pairs(path: Path) -> list[Pairs]:
    """The sentences of a file in columns, its tags in the last."""
    return [list(zip(s.words, s.tags or (), strict=True)) for s in read_columns(path, 0, -1)]


def write(sentences: Sequence[Pairs], path: Path) -> None:
    """Words and tags in columns; a word of white space is "_"."""
    with writing(path) as part:
        lines = ("".join(f"{word.strip() or '_'}\t{tag}\n" for word, tag in sentence) for sentence in sentences)
        part.write_text("\n".join(lines), encoding="utf-8")


def predicted(run: Path, path: Path) -> list[Pairs]:
    """The sentences of a file with the tags that a run predicts."""
    words = [[word for word, _ in sentence] for sentence in read_pairs(path)]
    found = []
    for one in sp.load(run).predict(words):
        tags = one["tags"] if "entities" not in one else ["O"] * len(one["words"])  # the net's own are BIOES
        for span in one.get("entities", ()):
            tags[span["start"] : span["end"]] = [f"I-{span['type']}"] * (span["end"] - span["start"])
            tags[span["start"]] = f"B-{span['type']}"
        found.append(list(zip(one["words"], tags, strict=True)))
    return found


if __name__ == "__main__":
    main()
