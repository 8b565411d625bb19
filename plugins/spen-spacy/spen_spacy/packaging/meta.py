"""Entries of a package's meta.json besides spaCy's own: scores, requirements, data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from spacy.attrs import POS, TAG

from spen_plugins import DataSet, Registry, RunFolder
from spen_spacy.packaging.runs import Part
from spen_spacy.pos import choose_attributes

SCORES = {
    "spen_ner": {"precision": "ents_p", "recall": "ents_r", "f1": "ents_f", "types": "ents_per_type"},
    "spen_parser": {"bracket_f1": "brackets_f", "precision": "brackets_p", "recall": "brackets_r"},
    "spen_srl": {
        "span_precision": "srl_gold_predicates_p",
        "span_recall": "srl_gold_predicates_r",
        "span_f1": "srl_gold_predicates_f",
        "roles": "srl_gold_predicates_per_type",
    },
    "spen_multilabel": {"micro_f1": "cats_micro_f", "macro_f1": "cats_macro_f", "example_f1": "cats_example_f"},
    "predicates": {"precision": "predicates_p", "recall": "predicates_r", "f1": "predicates_f"},
    "senses": {"accuracy": "senses_acc"},
}
"""Component -> score of a run -> its name in meta.json: spaCy's where the meaning is the same. `srl_f` of
`spacy evaluate` is for predicted predicates, a run's score for gold ones."""
FRAMES = {
    "name": "PropBank frames: senses of predicates and descriptions of their roles, part of spen-propbank",
    "license": "CC BY-SA 4.0",
    "url": "https://github.com/propbank/propbank-frames",
}
"""The lexicon of a run of senses."""
SAMPLE = {"name": "synthetic corpus of spen-plugins", "license": "Apache-2.0"}


def list_scores(components: Sequence[Part]) -> dict[str, Any]:
    """The scores of the runs' test parts, under spaCy's names where they exist; runs without a test part add none.

    A name that is taken, by a second component of a kind, is prefixed with the component's name.
    """
    performance: dict[str, Any] = {}
    for component in components:
        for part, run in component.runs.items():
            scores = (run.metrics() or {}).get("test") or {}
            names = _name_scores(component, scores) if part == "model" else SCORES[part]
            for score, name in names.items():
                if score in scores:
                    performance[name if name not in performance else f"{component.name}_{name}"] = _convert_table(
                        scores[score]
                    )
    return performance


def _name_scores(component: Part, scores: Mapping[str, Any]) -> Mapping[str, str]:
    """Score of the component's model -> its name in meta.json."""
    if component.factory == "spen_task":
        return {name: name for name, value in scores.items() if isinstance(value, float)}
    if component.factory == "spen_pos":
        return {"accuracy": f"{tag_attributes(component.run)}_acc"}
    return SCORES[component.factory]


def tag_attributes(run: RunFolder) -> str:
    """Token attributes that a tagger sets: "pos", "tag", or "pos_tag" for both, with tags such as NOUN+NNS."""
    columns = choose_attributes(run.facts()["tags"], "auto")
    return "_".join(["pos"] * (POS in columns) + ["tag"] * (TAG in columns))


def _convert_table(score: Any) -> Any:
    """A score; a table of scores as spaCy's `{type: {p, r, f}}`."""
    if not isinstance(score, Mapping):
        return score
    return {name: {"p": row["precision"], "r": row["recall"], "f": row["f1"]} for name, row in score.items()}


def list_requirements(configs: Sequence[Mapping[str, Any]], registry: Registry) -> list[str]:
    """Distributions that the pipeline needs besides spaCy, `name>=version`, by the configs of its runs."""
    types = sorted({name for config in configs for name in _list_types(config)})
    distributions = ["spen-spacy", "spen-plugins", *(registry.plugin(name).distribution for name in types)]
    return [f"{name}>={metadata.version(name)}" for name in dict.fromkeys(distributions)]


def _list_types(value: Any) -> Iterator[str]:
    """All types of plugins, `plugin.name`, in a config."""
    if isinstance(value, Mapping):
        if isinstance(name := value.get("type"), str) and "." in name and not name.startswith("core."):
            yield name
        for inner in value.values():
            yield from _list_types(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_types(inner)


def list_sources(components: Sequence[Part]) -> list[dict[str, str]]:
    """The data sets of all runs with their licences, as listed in meta.json; each once."""
    runs = [run for component in components for run in component.runs.values()]
    entries = {entry.name: entry for run in runs for entry in run.data_sets()}
    records = [describe_source(entry) for entry in entries.values()]
    if any(component.senses_run is not None for component in components):
        records.append(FRAMES)
    if any(run.config()["task"].get("corpus") is not None for run in runs):
        records.append(SAMPLE)
    files = dict.fromkeys(Path(path).name for run in runs for path in run.own_files())
    return records + [{"name": name, "license": "not known to this package"} for name in files]


def describe_source(entry: DataSet) -> dict[str, str]:
    """A data set as listed in meta.json."""
    record = {"name": f"{entry.name}: {entry.about}", "license": entry.licence}
    if entry.files:
        owner, repository, commit, *_ = entry.files[0].origin.split("/")
        record["url"] = f"https://github.com/{owner}/{repository}/tree/{commit}"
    return record
