"""Run the experiments behind docs/results, two at a time, and print their tables.

    python -m tools.results.results tools/results/results.yaml  # runs what is missing, resumes what was interrupted
    python -m tools.results.results tools/results/results.yaml --only bibtex --tables   # only print finished runs
    python -m tools.results.results tools/results/results.yaml --tables --csv docs/results/runs.csv --write docs/results

Each row of the YAML file is one `spen-run` command per seed; its run folder is `runs/results/<group>/<row>/<seed>`. A
row `of` another row of its group decodes that row's runs again: `spen decode` with the options in `decode`.
The tables are those of `spen compare`; a group with `costs: true` has the columns of `--costs`. `--csv` brings a file
with the scores of each run up to date; other runs stay in it. `--write` puts tables in their places, below the heading
with the group's name, in the pages of a folder; rows whose runs are gone or unfinished stay there as they are. If a
run fails, the command names it at its end and exits with status 1; the others are run nevertheless.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from spen_plugins.console import markdown_cell
from spen_plugins.files import save_text
from spen_plugins.report.compare import compare
from spen_plugins.report.tables import markdown
from spen_plugins.runs.many.groups import read_group
from tools.results.run_records import record, run_lines

ROOT = Path("runs/results")


def command(config: str, arguments: dict[str, Any], seed: int) -> list[str]:
    """The command for one run, without its folder; `{seed}` in an argument is the seed."""
    words = [f"{name}={_format_value(value)}".replace("{seed}", str(seed)) for name, value in arguments.items()]
    return ["spen-run", config, *words, f"seed={seed}"]


def decoding(name: str, row: str, spec: dict[str, Any], seed: int) -> list[str]:
    """The command for one run of a row `of` another."""
    options = [word for key, value in spec["decode"].items() for word in (f"--{key}", _format_value(value))]
    return ["spen", "decode", *(str(ROOT / name / row_name / str(seed)) for row_name in (spec["of"], row)), *options]


def make_line(name: str, group: dict[str, Any], row: str, seed: int) -> list[str]:
    """The command for one run of any row."""
    spec = group["rows"][row]
    return (
        decoding(name, row, spec, seed)
        if "of" in spec
        else command(group["config"], _merge_arguments(group, spec), seed)
    )


def finish(folder: Path, line: list[str]) -> bool:
    """Run or resume until there are scores; false if that failed."""
    if (folder / "metrics.json").exists():
        return True
    folder.parent.mkdir(parents=True, exist_ok=True)
    if line[0] == "spen-run" and any((folder / "checkpoint").glob("state*.json")):
        line = ["spen-run", "--resume", str(folder), "--quiet"]
    else:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        line = line if line[0] == "spen" else [*line, "--out", str(folder), "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    binary = Path(sys.executable).with_name(line[0])
    process = subprocess.run([str(binary), *line[1:]], env=environment, capture_output=True, text=True, check=False)
    print(f"{'done' if process.returncode == 0 else 'FAILED'} {folder} {process.stderr[-500:]}", flush=True)
    return process.returncode == 0


def table(name: str, group: dict[str, Any]) -> str:
    """Markdown: the heading, the table of rows that have runs, and the commands of all."""
    rows = [row for row in group["rows"] if any((ROOT / name / row).glob("*/metrics.json"))]
    return f"### {name}\n\n{compared(name, group, rows)}\n{commands(name, group)}\n"


def compared(name: str, group: dict[str, Any], rows: list[str]) -> str:
    """Markdown: the table of these rows, its caption and notes; empty without any."""
    if not rows:
        return ""
    against = [row for row in group.get("against", []) if row in rows]
    groups = [read_group(row, ROOT / name / row) for row in rows]
    return markdown(compare(groups, scores=group["scores"], baselines=against, sizes=group.get("costs", False)))


def commands(name: str, group: dict[str, Any]) -> str:
    """Markdown: a command for each row."""
    lines = []
    for row, spec in group["rows"].items():
        lines.append(f"{shlex.join(make_line(name, group, row, 0))}   # {row}, seeds {_list_seeds(group, spec)}")
    return "\n".join(["```", *lines, "```"])


def write(name: str, group: dict[str, Any], pages: Path) -> None:
    """Replace the group's table and commands below its heading; rows whose runs are gone stay as they are."""
    finished = [
        row
        for row, spec in group["rows"].items()
        if all((ROOT / name / row / str(seed) / "metrics.json").exists() for seed in _list_seeds(group, spec))
    ]
    if not finished:
        return
    for page in sorted(pages.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if heading := re.search(rf"^#+ {re.escape(name)}\n", text, re.MULTILINE):
            head, section = text[: heading.end()], text[heading.end() :]
            end = re.search(r"^#+ ", section, re.MULTILINE)
            section, tail = (section[: end.start()], section[end.start() :]) if end else (section, "")
            old = re.search(r"^\|.*?^```\n.*?^```$", section, re.MULTILINE | re.DOTALL)
            if (old and not old[0].startswith("|  |")) or (not old and len(finished) < len(group["rows"])):
                continue  # a table of another form, or none to take other rows from
            rows = merged(old[0] if old else "", compared(name, group, finished), list(group["rows"]))
            new = f"{rows}\n{commands(name, group)}"
            section = section[: old.start()] + new + section[old.end() :] if old else f"\n{new}\n{section}"
            save_text(head + section + tail, page)


def merged(old: str, new: str, order: list[str]) -> str:
    """A new table with the rows of an old one that it lacks, which keep those of their differences that still hold."""
    old_cells, new_cells, order = _read_cells(old), _read_cells(new), list(map(markdown_cell, order))
    kept_rows = {row: cells for row, cells in old_cells.items() if row in order and row not in new_cells}
    if not kept_rows:
        return new
    titles, old_titles = (list(next(iter(table.values()))) for table in (new_cells, old_cells))
    score = titles[1]
    titles = (
        old_titles
        if set(titles) <= set(old_titles)
        else [*titles, *(title for title in old_titles if title not in titles)]
    )
    for cells in kept_rows.values():
        for title in old_titles:
            against = title.partition(" − ")[2]
            if against in new_cells and new_cells[against][score] != old_cells.get(against, {}).get(score):
                cells[title] = ""
    rows = [table[row] for row in order for table in (new_cells, kept_rows) if row in table]
    lines = ["| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1)]
    lines += ["| " + " | ".join(cells.get(title, "") for title in titles) + " |" for cells in rows]
    caption, gap = new[new.rindex("|\n") + 2 :].rstrip(), "\n" if "\n- " in new else "\n\n"
    note = (
        f"no runs are left of {'; '.join(kept_rows)}: their figures stay, without differences from what was run again"
    )
    return "\n".join([*lines, f"{caption}{gap}- {note}"]) + "\n"


def _read_cells(text: str) -> dict[str, dict[str, str]]:
    """The cells of a markdown table by row and column."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    stripped = [[cell.strip() for cell in row] for row in rows]
    return {row[0]: dict(zip(stripped[0], row, strict=True)) for row in stripped[2:]} if stripped else {}


def record_groups(groups: dict[str, dict[str, Any]], path: Path) -> None:
    """Bring the CSV of runs up to date with the groups' finished runs."""
    lines = [
        line
        for name, group in groups.items()
        for row, spec in group["rows"].items()
        for metrics in (ROOT / name / row).glob("*/metrics.json")
        for line in run_lines(name, row, metrics.parent.name, group["scores"], metrics.parent, "of" not in spec)
    ]
    record(lines, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path, help="YAML file of groups")
    parser.add_argument("--only", action="append", help="a group's name; may be given more than once")
    parser.add_argument("--row", action="append", help="a row's name; may be given more than once")
    parser.add_argument("--tables", action="store_true", help="print tables, run nothing")
    parser.add_argument("--csv", type=Path, help="file of scores by run to bring up to date")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="folder of pages to put the tables into")
    parser.add_argument("--jobs", type=int, default=2, help="parallel runs, one thread each")
    options = parser.parse_args()
    groups = {
        k: v for k, v in yaml.safe_load(options.spec.read_text()).items() if not options.only or k in options.only
    }
    failed: list[str] = []
    if not options.tables:
        jobs = [
            (ROOT / name / row / str(seed), make_line(name, group, row, seed))
            for name, group in groups.items()
            for row, spec in group["rows"].items()
            if not options.row or row in options.row
            for seed in _list_seeds(group, spec)
        ]
        with ThreadPoolExecutor(options.jobs) as pool:
            for program in ("spen-run", "spen"):  # runs are decoded when all are trained
                batch = [job for job in jobs if job[1][0] == program]
                results = pool.map(lambda job: finish(*job), batch)
                failed += [
                    shlex.join(line) for (_, line), is_finished in zip(batch, results, strict=True) if not is_finished
                ]
    for name, group in groups.items():
        print(table(name, group))
        if options.write:
            write(name, group, options.write)
    if options.csv:
        record_groups(groups, options.csv)
    if failed:
        sys.exit("\n".join([f"{len(failed)} runs failed; their rows lack them:", *failed]))


def _merge_arguments(group: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {**group.get("arguments", {}), **(spec.get("arguments") or {})}


def _list_seeds(group: dict[str, Any], spec: dict[str, Any]) -> list[int]:
    return spec.get("seeds", group["seeds"])


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
