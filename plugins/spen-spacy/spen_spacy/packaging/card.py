"""The model card of a package: its README.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spen_plugins import RunFolder
from spen_spacy.packaging.meta import tag_attributes
from spen_spacy.packaging.runs import PREDICATES, SENSES, Part

DOES = {
    "spen_ner": "named entities: `doc.ents`, and with scores `doc.spans[{name!r}]`",
    "spen_pos": "{tags} of every token",
    "spen_parser": "constituents: `doc._.tree`, `doc._.noun_phrases`, `doc.spans[{name!r}]`",
    "spen_srl": "predicates and the arguments of each: `doc._.srl`, `doc.spans[{name!r}]`",
    "spen_multilabel": "labels of the text: `doc.cats`",
    "spen_task": "predictions of its run: `doc._.spen_predictions[{name!r}]`",
}
TAGS = {
    "pos": "parts of speech, `token.pos_`,",
    "tag": "tags, `token.tag_`,",
    "pos_tag": "parts of speech and tags, `token.pos_` and `token.tag_`,",
}
SHOWS = {
    "spen_pos": "[(token.text, token.{attribute}) for token in doc]",
    "spen_ner": "[(entity.text, entity.label_) for entity in doc.ents]",
    "spen_parser": "doc._.tree",
    "spen_srl": "doc._.srl",
    "spen_multilabel": "doc.cats",
    "spen_task": "doc._.spen_predictions",
}
GOLD_PREDICATES = "Scores are with gold predicates."
NOT_DEFINITIONS = ("split", "threshold")


def write_card(meta: Mapping[str, Any], full_name: str, components: Sequence[Part]) -> str:
    """The card, in Markdown; `full_name` is the name for `spacy.load`, language included."""
    description = meta["description"] or f"A spaCy pipeline: {', '.join(component.name for component in components)}."
    lines = [
        f"# {full_name} {meta['version']}",
        "",
        description,
        "",
        *_write_use(full_name, components, meta.get("lang", "en")),
        "",
        "## Components",
        "",
    ]
    lines += ["| component | factory | gives |", "|---|---|---|"]
    lines += [
        f"| `{component.name}` | `{component.factory}` | {_describe_component(component)} |" for component in components
    ]
    for component in components:
        for part, run in component.runs.items():
            title = component.name + (f", its {part}" if part in (PREDICATES, SENSES) else "")
            remark = GOLD_PREDICATES if component.factory == "spen_srl" and part != PREDICATES else ""
            lines += ["", f"## {title}", "", *_write_run(f"{component.name}-{part}", run, remark)]
    lines += ["", "## Licences", "", *_write_licences(meta)]
    lines += ["", "## Needs", "", f"spaCy {meta['spacy_version']}, {', '.join(meta['requirements'])}."]
    return "\n".join(lines) + "\n"


def _write_use(full_name: str, components: Sequence[Part], lang: str) -> list[str]:
    last = components[-1]
    attribute = "tag_" if last.factory == "spen_pos" and tag_attributes(last.run) == "tag" else "pos_"
    expression = SHOWS[last.factory].replace("{attribute}", attribute)
    text = "Anna sent the old farmer in Boston a letter." if lang == "en" else "…"
    code = ["import spacy", "", f'doc = spacy.load("{full_name}")("{text}")']
    return ["```python", *code, f"print({expression})", "```"]


def _describe_component(component: Part) -> str:
    tags = TAGS[tag_attributes(component.run)] if component.factory == "spen_pos" else ""
    text = DOES[component.factory].format(name=component.name, tags=tags)
    if component.factory == "spen_srl":
        text += "; predicates by " + ("a trained tagger" if component.predicates_run else "spaCy's parts of speech")
        if component.senses_run:
            text += "; the sense of each predicate and what its roles mean: `frame.sense`, `argument.description`"
    return text


def _write_run(stem: str, run: RunFolder, remark: str) -> list[str]:
    """Scores, their definitions, calibration, data and origin of one run."""
    metrics = run.metrics()
    if metrics is None:
        lines = ["No scores: the run had not finished."]
    else:
        protocol = metrics.get("protocol", {})
        lines = [*_write_scores(metrics), "", *([remark, ""] if remark else []), *_write_definitions(protocol)]
        lines += ["", *_write_split(protocol.get("split"), run.own_files())]
    if (calibration := run.calibration()) is not None:
        lines += ["", *_write_calibration(calibration)]
    return [*lines, "", _write_data(run), "", _write_origin(stem, run)]


def _write_scores(metrics: Mapping[str, Any]) -> Iterator[str]:
    parts = [part for part in ("validation", "test") if metrics.get(part)]
    names = [name for name, value in metrics[parts[0]].items() if isinstance(value, (int, float))] if parts else []
    yield f"| score | {' | '.join(parts)} |"
    yield "|---" * (len(parts) + 1) + "|"
    for name in names:
        yield f"| {name} | {' | '.join(f'{metrics[part][name]:.4f}' for part in parts)} |"


def _write_definitions(protocol: Mapping[str, Any]) -> Iterator[str]:
    for name, text in protocol.items():
        if name not in NOT_DEFINITIONS and isinstance(text, str):
            yield f"- {name}: {text}"
    if protocol.get("threshold") is not None:
        yield f"- threshold: {protocol['threshold']}"


def _write_split(split: Any, own_files: Sequence[str]) -> list[str]:
    """The files of the split; a user's own file without its folder, which is private."""
    if isinstance(split, Mapping):
        files = {part: Path(path).name if path in own_files else path for part, path in split.items() if path}
        split = ", ".join(f"{part} `{path}`" for part, path in files.items())
    return [f"Split: {split}."] if split else []


def _write_calibration(calibration: Mapping[str, Any]) -> Iterator[str]:
    """Expected calibration errors; lower is better."""
    temperature = f"{calibration['temperature']:.3f}"
    yield (
        f"Probabilities of {calibration['decisions']} are calibrated by a temperature, {temperature}, fitted on the "
        "validation part. Expected calibration error, lower is better:"
    )
    yield ""
    yield "| part | calibrated | before | decisions |"
    yield "|---|---|---|---|"
    for part in ("validation", "test"):
        if errors := calibration.get(part):
            yield f"| {part} | {errors['ece']:.4f} | {errors['ece_uncalibrated']:.4f} | {errors.get('decisions', '')} |"


def _write_data(run: RunFolder) -> str:
    names = [f"{entry.name} ({entry.about}; licence: {entry.licence})" for entry in run.data_sets()]
    if run.config()["task"].get("corpus") is not None:
        names.append("the synthetic corpus of spen-plugins, whose scores say nothing about real text")
    names += [f"`{Path(path).name}`" for path in run.own_files()]
    return f"Data: {'; '.join(names) or 'not known'}."


def _write_origin(stem: str, run: RunFolder) -> str:
    """Config, seed and code version of the run, as far as recorded."""
    environment, config = run.environment(), run.config()
    source = f" from `{environment['source']}`" if environment.get("source") else ""
    commit = f" at commit {environment['git_commit'][:12]}" if environment.get("git_commit") else ""
    return (
        f"Trained{source}, seed {config.get('seed', 0)}{commit}. The whole config is in this package: "
        f"`spen-run training/{stem}.json` repeats the run where the data are."
    )


def _write_licences(meta: Mapping[str, Any]) -> Iterator[str]:
    yield f"This package: {meta['license'] or 'not stated by its maker'}. The data it was trained on:"
    yield ""
    for source in meta["sources"]:
        address = f", {source['url']}" if "url" in source else ""
        yield f"- {source['name']}{address}. Licence: {source['license']}."
