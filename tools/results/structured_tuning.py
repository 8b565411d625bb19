"""Structured tuning of roles with few sentences: constraints in a CRF's last epochs, compared with other methods.

    SPEN_DATA=... python -m tools.results.structured_tuning runs/tuning --sizes 376 --csv docs/results/runs.csv

The first `--sizes` training sentences of EWT's roles have gold, the others are left out; seeds affect the training
alone. Each tuning begins with the CRF of its seed. `predicted` has senses that a run of `senses` predicts: the labelled
sentences are cut into five parts, and the senses of each are those of a run on the four others. `unique decoding` is
the CRF, decoded with each core role at most once.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import spen_plugins as sp
from spen_plugins.files import save_text, writing_folder
from spen_plugins.sentences import Sentence, read_roles
from tools.errors import end_with_message
from tools.results.rules import FROZEN
from tools.results.run_records import record, seed_lines
from tools.results.runs import finish, write_mean

TRAIN = "data:srl/ewt_propbank/ewt-propbank-train.gold_conll"
FOLDS = 5
TERMS = {
    "unique": {"type": "rules.unique_role"},
    "frames": {"type": "rules.frame_roles", "rolesets": "data:srl/frames/rolesets.jsonl"},
}
FRAMES = "energy=" + json.dumps({"type": "sum", "terms": TERMS, "weights": {"frames": 0.5}})
TUNED = {
    "λ = 0": ("trainer.energy_weight=0",),
    "unique roles, λ = 0.3": ("trainer.energy_weight=0.3",),
    "unique roles": (),
    "unique roles, λ = 3": ("trainer.energy_weight=3",),
    "unique roles, of marginals": ("energy_loss.of=marginals",),
    "unique roles and frames": (FRAMES,),
    "unique roles and frames, predicted senses": (FRAMES,),
    "all three": ("energy=constraints",),
}
DECODED = "CRF, unique decoding"
ROWS = ("CRF", DECODED, *TUNED, "SEAL-NCE")
SCORES = ("span_f1", "ucr")
RATE = 0.002
MINILM = (*FROZEN, f"trainer.net.lr={RATE}", "trainer.per_variable=false", "trainer.batch_size=32")
"""A net over a frozen MiniLM, with the settings of a net that is trained from scratch."""
NCE = ("trainer.energy.lr=0.001", "trainer.energy_weight=0.3", "energy_loss.samples=8")
"""The same for SEAL-NCE."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of runs")
    parser.add_argument("--sizes", nargs="+", type=int, default=[376], help="training sentences")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--minilm", action="store_true", help="over a frozen MiniLM")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="more arguments of all runs")
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date (docs/results/runs.csv)")
    options = parser.parse_args()
    for size in options.sizes:
        extra = [*(MINILM if options.minilm else ()), *options.set]
        folder = options.out / "-".join([str(size), *["minilm"] * options.minilm, *options.set])
        runs = {row: [train(row, size, seed, folder, extra) for seed in options.seeds] for row in options.rows}
        print(write_table(size, runs), flush=True)
        if options.csv:
            group = ", ".join([f"roles, ewt, {size}", *["MiniLM"] * options.minilm, *options.set])
            record(seed_lines(group, SCORES, options.seeds, runs, DECODED), options.csv)


def train(row: str, size: int, seed: int, folder: Path, extra: Sequence[str]) -> Path:
    """The run of a row."""
    run, has_minilm = folder / f"{row}-{seed}".replace(" ", "_"), set(MINILM) <= set(extra)
    words = ["roles", "data=ewt", f"task.labelled={size}", "task.rest=false", f"seed={seed}", *extra]
    if row == DECODED:
        return decode_unique(train("CRF", size, seed, folder, extra), run)
    if row in TUNED:
        words = [word for word in words if not word.startswith("trainer.epochs=")]
        words += ["method=structured_tuning", "trainer.epochs=0", *TUNED[row]]
        words.append(f"init.inference_net={train('CRF', size, seed, folder, extra)}")
        words += [f"trainer.tuning.lr={RATE / 3}"] if has_minilm else []
        words += [f"task.train={predict_senses(size, folder)}"] if "predicted" in row else []
    else:
        words += ["method=crf"] if row == "CRF" else ["method=nce", *(NCE if has_minilm else ())]
    return finish(run, words)


def decode_unique(run: Path, folder: Path) -> Path:
    """A copy of a run that predicts each core role at most once, with its scores."""
    if not (folder / "metrics.json").exists():
        with writing_folder(folder) as copy:
            # Without the examples' ratios, which are of the run's own decoding.
            shutil.copytree(run, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("examples.safetensors"))
            config = json.loads((run / "config.json").read_text(encoding="utf-8"))
            config["task"]["unique_roles"] = True
            save_text(json.dumps(config), copy / "config.json")
            scores = {part: sp.load(copy).evaluate_file(part=part)["scores"] for part in ("validation", "test")}
            save_text(json.dumps(scores), copy / "metrics.json")
    return folder


def predict_senses(size: int, folder: Path) -> Path:
    """The labelled sentences with predicted senses."""
    path = folder / "senses" / "predicted.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        sentences = read_roles(sp.locate(TRAIN), "auto").sentences[:size]
        items = [describe(sentence) for sentence in sentences]
        correct, count = 0, 0
        for fold in range(FOLDS):
            train_file = path.parent / f"{fold}.jsonl"
            save_text(dump(item for i, item in enumerate(items) if i % FOLDS != fold), train_file)
            run = sp.load(finish(path.parent / str(fold), ["senses", f"data={train_file}", "test=null"]))
            for item in items[fold::FOLDS]:
                queries = [
                    {"words": item["words"], "predicate": predicate["index"]} for predicate in item["predicates"]
                ]
                for predicate, prediction in zip(item["predicates"], run.predict(queries), strict=True):
                    correct, count = correct + (predicate["sense"] == prediction["sense"]), count + 1
                    predicate["sense"] = prediction["sense"]
        print(f"{correct} of {count} predicted senses are right")
        save_text(dump(items), path)
    return path


def describe(sentence: Sentence) -> dict:
    """A sentence as a line of JSON."""
    predicates = [{"index": p.predicate, "lemma": p.lemma, "sense": p.roleset} for p in sentence.propositions]
    return {"words": sentence.words, "predicates": predicates, "tags": [p.tags for p in sentence.propositions]}


def dump(items: Sequence[dict]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def write_table(size: int, runs: dict[str, list[Path]]) -> str:
    """The table of means over seeds, in per cent."""
    lines = [
        f"| roles, {size} | F1, validation | F1, test | UCR, validation | UCR, test | seeds |",
        "|---|" + "---:|" * 5,
    ]
    for row, folders in runs.items():
        cells = [write_mean(folders, part, score, 1) for score in SCORES for part in ("validation", "test")]
        lines.append(f"| {row} | {' | '.join(cells)} | {len(folders)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
