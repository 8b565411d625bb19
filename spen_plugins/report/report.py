"""One HTML page about finished runs, self-contained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from spen_plugins import __version__
from spen_plugins.errors import SpenError, explain_missing
from spen_plugins.figures.layout import shortened, visible
from spen_plugins.files import save_text
from spen_plugins.report import facts
from spen_plugins.report import report_data as data
from spen_plugins.report.report_errors import count_label_errors, count_tag_errors, mark_pieces
from spen_plugins.report.report_outputs import LONG, Output, Outputs, read_outputs
from spen_plugins.runs.devices import check_device
from spen_plugins.runs.folder.folder import RunFolder, read_methods
from spen_plugins.runs.many.groups import Group
from spen_plugins.scores.bootstrap import scale
from spen_plugins.spaces import LabelSet, TagSequence

OPEN = 15  # labels shown before the others are folded


NO_ERRORS = dict.fromkeys(
    ("run", "problem", "score", "energies", "labels", "more_labels", "pairs", "confusion", "examples")
)
"""Keys of the section on one group's first run; `problem` is the reason if the section is missing."""


def write_report(
    groups: Sequence[Group],
    out: Path,
    examples: int = 10,
    part: str | None = None,
    baselines: Sequence[str] = (),
    device: str = "cpu",
) -> None:
    """Write the page, with errors on `part` and differences to `baselines`.

    `part` defaults to test if there is one, and `baselines` to the first group.
    """
    check_device(device)
    part = data.check_part(part, groups)
    template = _load_template()
    page = _make_page(groups, part, baselines)
    text = template.render(**page, errors=[_read_errors(group, part, examples, device) for group in groups])
    save_text(text, out)


def default_path(groups: Sequence[Group]) -> Path:
    """The page's default path: next to the run, next to the seeds' folders of one group, in a folder of several
    methods, or otherwise `runs/report.html`."""
    if len(groups) > 1:
        [*parents] = {run.path.parent.parent for group in groups for run in group.runs}
        return (parents[0] if len(parents) == 1 and read_methods(parents[0]) else Path("runs")) / "report.html"
    runs = groups[0].runs
    return (runs[0].path if len(runs) == 1 else runs[0].path.parent) / "report.html"


def _load_template() -> Any:
    with explain_missing("reports need jinja2: pip install 'spen-plugins[research]'"):
        import jinja2
    source = resources.files("spen_plugins.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # markup is escaped already
    )
    return environment.from_string(source)


def _make_page(groups: Sequence[Group], part: str, baselines: Sequence[str]) -> dict[str, Any]:
    """All sections except the errors."""
    runs = [run for group in groups for run in group.runs]
    parts = data.list_parts(groups)
    nested_tables = {f"{name}, {p}": table for p in parts for name, table in data.make_nested_tables(groups, p).items()}
    differences, remarks = data.make_differences(groups, part, baselines)
    config, more_config = facts.find_config_differences(groups)
    run_count = f"{len(runs)} finished run{'s' if len(runs) > 1 else ''}"
    return {
        "title": " · ".join(map(_name_group, groups)) if len(groups) <= 3 else f"{len(groups)} experiments",
        "summary": run_count + (f" in {len(groups)} groups" if len(groups) > 1 else ""),
        "notes": [note for group in groups for note in group.notes],
        "several": any(len(group.runs) > 1 for group in groups),
        "singles": any(len(group.runs) == 1 for group in groups),
        "several_runs": len(runs) > 1,
        "several_groups": len(groups) > 1,
        "measured": data.describe_unit(groups),
        "choice": data.describe_choice(groups),
        "scores": {p: data.make_score_table(groups, p) for p in parts},
        "nested": nested_tables,
        "differences": differences,
        "remarks": remarks,
        "protocol": facts.read_protocols(groups),
        "curves": data.draw_training(groups),
        "calibration": data.draw_calibration(groups, parts),
        "config": config,
        "more_config": more_config,
        "configs": {group.label: json.dumps(group.runs[0].config(), indent=2, ensure_ascii=False) for group in groups},
        "environment": facts.read_environments(groups),
        "part": part,
        "version": __version__,
    }


def _name_group(group: Group) -> str:
    """The group's label, prefixed with its folder's name if the label is only a number."""
    path = group.runs[0].path.resolve()
    return f"{path.parent.name}/{group.label}" if group.label == path.name and group.label.isdigit() else group.label


def _read_errors(group: Group, part: str, count: int, device: str) -> dict[str, Any]:
    """Worst examples and confusions, or the reason why there are none; errors don't stop the page."""
    run = group.runs[0]
    errors = NO_ERRORS | {"label": group.label}
    try:
        outputs = read_outputs(run, part, device)
    except SpenError as error:
        return errors | {"problem": _describe_problem(run, part, error)}
    if not outputs.examples:
        return errors | {"problem": f"The {part} part has no examples with gold."}
    errors |= {"run": str(run.path), "score": outputs.score, "energies": _describe_verdicts(outputs)}
    if isinstance(outputs.space, LabelSet):
        errors |= _describe_labels(outputs)
    elif isinstance(outputs.space, TagSequence):
        errors["confusion"] = count_tag_errors(outputs)
    errors["examples"] = [_describe_example(output, outputs) for output in outputs.worst(count)]
    return errors


def _describe_problem(run: RunFolder, part: str, error: SpenError) -> str:
    folder = run.environment().get("working_folder")
    hint = f" The run was trained in {folder}; paths of its config are relative to that folder." if folder else ""
    return (
        f"Worst examples and confusions need the run's weights and its {part} data: {error}.{hint} "
        "Write the report again when they are there."
    )


def _describe_labels(outputs: Outputs) -> dict[str, Any]:
    rows, pairs = count_label_errors(outputs)
    head = ["", "gold", "predicted", "wrong", "missed", "F1"]
    cells = [[row.label, *map(str, row[1:5]), f"{100 * row.f1:.1f}"] for row in rows]
    more_labels = data.Table(head, cells[OPEN:]) if len(cells) > OPEN else None
    pair_rows = [[pair.predicted, pair.gold, f"{pair.count} ({pair.count / pair.missed:.0%})"] for pair in pairs]
    table = data.Table(["predicted", "instead of", "examples"], pair_rows)
    return {"labels": data.Table(head, cells[:OPEN]), "more_labels": more_labels, "pairs": table}


def _describe_verdicts(outputs: Outputs) -> str:
    """A sentence on how often the energy prefers gold."""
    pairs = [(o.energy, o.gold_energy) for o in outputs.examples if o.energy is not None and o.gold_energy is not None]
    if not pairs:
        return ""
    lower = sum(gold < predicted for predicted, gold in pairs)
    higher = sum(gold > predicted for predicted, gold in pairs)
    return (
        f"Of {len(pairs)} examples, gold has a lower energy than the prediction in {lower}, a higher one in {higher}, "
        f"the same in {len(pairs) - lower - higher}."
    )


def _describe_example(output: Output, outputs: Outputs) -> dict[str, Any]:
    energies, space = (output.energy, output.gold_energy), outputs.space
    return {
        "row": output.row,
        "score": f"{scale(outputs.unit) * output.score:.1f}",
        "inputs": "" if isinstance(space, TagSequence) else shortened(", ".join(output.display.inputs), LONG),
        "gold": mark_pieces(output, True, space),
        "predicted": mark_pieces(output, False, space),
        "energy": None if None in energies else f"{output.energy:.3f}",
        "gold_energy": None if None in energies else f"{output.gold_energy:.3f}",
        "verdict": _compare_energies(*energies),
    }


def _compare_energies(energy: float | None, gold: float | None) -> str:
    if energy is None or gold is None or energy == gold:
        return "the same"
    return "prefers gold" if gold < energy else "prefers the prediction"
