"""Attack the project with damaged input, kills and full disks, and report what failed.

    python tools/attack                          # a tenth of all tries, drawn by the seed
    python tools/attack --share 1 --jobs 2       # all of them
    python tools/attack --only data --number 417 # one again; its folder is kept if it fails

Each try is a command in a process forked from a warm one, in a folder of its own. It fails if it ends in a traceback,
by a signal, after more than a minute, with an empty error message, or with success although the result can't be right.
"""

from __future__ import annotations

import gc
import json
import random
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

PROMISES = {
    "configs": "configs with hostile values or a damaged source",
    "data": "damaged data files, trained on, predicted or split",
    "folders": "damaged run folders, in every command that reads one",
    "encoders": "damaged and hostile encoder folders",
    "kills": "commands killed at a random time, then given again: the same result",
    "operations": "commands killed before a file operation, then given again: the same result",
    "disks": "full, read-only and failing disks; then given again: the same result",
    "kept": "damaged plans, studies, shards and indexes that a command goes on from",
    "annotate": "corpora of any format and damage through spen annotate",
    "sklearn": "strange arrays and sentences through scikit-learn's interface",
    "bytes": "damaged bytes for spaCy's components, and links where they are saved",
    "plugins": "plugins with a mistake anywhere",
}


def main(
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the tries.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Another seed makes other tries.")] = 0,
    only: Annotated[list[str] | None, typer.Option(help=f"Kinds: {', '.join(PROMISES)} (default: all).")] = None,
    number: Annotated[list[int] | None, typer.Option(help="Only the tries of these numbers.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Tries side by side.")] = 2,
    folder: Annotated[Path | None, typer.Option(help="Where tries work (default: a temporary folder).")] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a try counts as a hang.")] = 60.0,
    out: Annotated[Path | None, typer.Option(help="Write the table here, as markdown.")] = None,
) -> None:
    if unknown := set(only or ()) - set(PROMISES):
        raise typer.BadParameter(f"found {', '.join(sorted(unknown))}; expected {', '.join(PROMISES)}")
    from tries import Tally, Try, numbered, run

    folder = folder or Path(tempfile.mkdtemp(prefix="attack-"))
    typer.echo(f"warming up in {folder}")
    kinds = _make_kinds(folder, only or list(PROMISES))
    gc.freeze()  # so that a fork's collector doesn't touch the pages of earlier objects
    tallies: dict[str, Tally] = {}
    with Progress() as progress:
        for name, (total, make_try) in kinds.items():
            numbers = list(numbered(total, share, number))
            bar = progress.add_task(name, total=len(numbers))

            def report(attempt: Try, fault: str | None, bar=bar) -> None:
                progress.advance(bar)
                if fault:
                    progress.console.print(f"{attempt.name}: {fault}", markup=False, highlight=False)

            draws = ((f"{name}-{seed}-{number}", random.Random(f"{name} {seed} {number}")) for number in numbers)
            tallies[name] = run(starmap(make_try, draws), folder / name, jobs, report, limit)
    table = markdown(tallies)
    typer.echo(table)
    if out:
        out.write_text(table + "\n", encoding="utf-8")
    failures = [failure for tally in tallies.values() for failure in tally.failed]
    (folder / "failed.json").write_text(json.dumps(failures, indent=1), encoding="utf-8")
    if failures:
        typer.echo(f"{len(failures)} failed; their folders are below {folder}")
        raise typer.Exit(1)


def _make_kinds(folder: Path, names: list[str]) -> dict[str, tuple[int, Callable[[str, random.Random], Any]]]:
    """Returns the number of tries of each kind, and the function that makes one from a name and random numbers."""
    import commands
    import components
    import corpora
    import data_files
    import encoders
    import estimators
    import kept
    import mistakes
    import run_folders
    from interrupted import Interrupted
    from warm import warm

    import configs

    inputs = warm(folder)
    modules = {"configs": configs, "data": data_files, "folders": run_folders, "annotate": corpora, "bytes": components}
    modules |= {"plugins": mistakes}
    kinds = {name: (module.TOTAL, partial(module.make_try, inputs)) for name, module in modules.items()}
    kinds["sklearn"] = (estimators.TOTAL, estimators.make_try)
    if "encoders" in names:
        encoder = encoders.make(folder / "encoder")
        kinds["encoders"] = (encoders.TOTAL, partial(encoders.make_try, inputs, encoder))
    if set(names) & {"kills", "operations", "disks", "kept"}:
        runs = Interrupted(commands.make(inputs, folder), folder / "whole")
        kinds["kept"] = (kept.TOTAL, partial(kept.make_try, runs))
        kinds |= {name: (total, partial(runs.make_try, choose)) for name, (total, choose) in runs.kinds().items()}
    return {name: kinds[name] for name in PROMISES if name in names}


def markdown(tallies: dict) -> str:
    """The table of the tries, as markdown."""
    lines = ["| | tried | of them refused or stopped with a message | failed | seconds |", "|---|---:|---:|---:|---:|"]
    for name, tally in tallies.items():
        cells = f"{tally.tried:,} | {tally.refused:,} | {len(tally.failed)} | {tally.seconds:,.0f}"
        lines.append(f"| {PROMISES[name]} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
