"""Attack the project with damaged input, kills and full disks, and say what failed.

    python tools/attack                          # a tenth of all tries, drawn by the seed
    python tools/attack --share 1 --jobs 2       # all of them
    python tools/attack --only data --number 417 # one again; its folder is kept if it fails

Each try is a command in a process forked from a warm one, in a folder of its own. It fails if it ends in a traceback or
by a signal, not within a minute, with an error that says nothing, or well where the result can't be right.
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
    kinds = _kinds(folder, only or list(PROMISES))
    gc.freeze()  # a fork's collector leaves the pages of what was there before alone
    tallies: dict[str, Tally] = {}
    with Progress() as progress:
        for name, (total, make_try) in kinds.items():
            numbers = list(numbered(total, share, number))
            bar = progress.add_task(name, total=len(numbers))

            def told(made: Try, wrong: str | None, bar=bar) -> None:
                progress.advance(bar)
                if wrong:
                    progress.console.print(f"{made.name}: {wrong}", markup=False, highlight=False)

            draws = ((f"{name}-{seed}-{number}", random.Random(f"{name} {seed} {number}")) for number in numbers)
            tallies[name] = run(starmap(make_try, draws), folder / name, jobs, told, limit)
    table = markdown(tallies)
    typer.echo(table)
    if out:
        out.write_text(table + "\n", encoding="utf-8")
    failed = [found for tally in tallies.values() for found in tally.failed]
    (folder / "failed.json").write_text(json.dumps(failed, indent=1), encoding="utf-8")
    if failed:
        typer.echo(f"{len(failed)} failed; their folders are below {folder}")
        raise typer.Exit(1)


def _kinds(folder: Path, names: list[str]) -> dict[str, tuple[int, Callable[[str, random.Random], Any]]]:
    """For each kind the number of its tries, and the function that makes one from its name and random numbers."""
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
    simple = {"configs": configs, "data": data_files, "folders": run_folders, "annotate": corpora, "bytes": components}
    simple |= {"plugins": mistakes}
    found = {name: (module.TOTAL, partial(module.make_try, inputs)) for name, module in simple.items()}
    found["sklearn"] = (estimators.TOTAL, estimators.make_try)
    if "encoders" in names:
        encoder = encoders.make(folder / "encoder")
        found["encoders"] = (encoders.TOTAL, partial(encoders.make_try, inputs, encoder))
    if set(names) & {"kills", "operations", "disks", "kept"}:
        runs = Interrupted(commands.make(inputs, folder), folder / "whole")
        found["kept"] = (kept.TOTAL, partial(kept.make_try, runs))
        found |= {name: (total, partial(runs.make_try, choose)) for name, (total, choose) in runs.kinds().items()}
    return {name: found[name] for name in PROMISES if name in names}


def markdown(tallies: dict) -> str:
    """The table of what was tried."""
    lines = ["| | tried | of them refused or stopped with a message | failed | seconds |", "|---|---:|---:|---:|---:|"]
    for name, tally in tallies.items():
        cells = f"{tally.tried:,} | {tally.refused:,} | {len(tally.failed)} | {tally.seconds:,.0f}"
        lines.append(f"| {PROMISES[name]} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
