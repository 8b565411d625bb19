"""`spen-run`: train and evaluate one config."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spen_plugins.cli.common import Version, columns, make_app, report_errors, run_program
from spen_plugins.errors import ConfigError, PluginError, say
from spen_plugins.runs.options import RunOptions

if TYPE_CHECKING:
    from spen_plugins.runs.many.seeds import Outcome

app = make_app(completion=True)

Config = Annotated[
    Path | None, typer.Argument(metavar="CONFIG", show_default=False, help="A .jsonnet, .json or .yaml config.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE",
        show_default=False,
        help="Arguments of the config (data=ewt) and keys of the evaluated config (trainer.epochs=3). seeds=0..4 or "
        "seeds=0,3,7 trains one run per seed, methods=cross_entropy,nce one per method, in folders below OUT; the same "
        "command resumes them, and the method is chosen on the validation part. "
        "Values that are valid JSON are parsed, others are strings.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="The run folder, new or empty (default: a dated one below runs/).")]
Resume = Annotated[Path | None, typer.Option(help="Resume the run or runs in this folder; omit CONFIG.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps (default: the best available).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table; print only the run folder.")]
Every = Annotated[
    float,
    typer.Option("--checkpoint-every", min=0, metavar="SECONDS", help="Minimum time between two checkpoints."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of runs (seeds, methods) in parallel, one thread each.")]
Best = Annotated[
    bool,
    typer.Option(
        "--best",
        help="With methods=… and seeds=…: predict with the best run of the folder, not with a mean of its runs.",
    ),
]
Listing = Annotated[
    bool,
    typer.Option(
        "--arguments",
        help="List the config's arguments, and every key of the evaluated config; train nothing.",
    ),
]


@app.command()
@report_errors
def run(
    config: Config = None,
    arguments: Arguments = None,
    out: Out = None,
    resume: Resume = None,
    device: Device = None,
    quiet: Quiet = False,
    checkpoint_every: Every = 60.0,
    jobs: Jobs = 1,
    best: Best = False,
    listing: Listing = False,
    version: Version = False,
) -> None:
    """Train and evaluate the experiment that a config describes.

    Exit status: 0 done, 1 the run failed, 2 the config, the data or a plugin is wrong, 130 interrupted.

    Example: spen-run labels data=mine.csv method=nce --out runs/mine
    """
    options = RunOptions(device, quiet, checkpoint_every, jobs, best)
    if resume is not None:
        if config is not None or out is not None:
            raise ConfigError(f"--resume {resume} reads everything from the run; omit CONFIG, NAME=VALUE and --out")
        folder = _resume(resume, options)
    elif config is None:
        raise ConfigError("found no CONFIG; expected a file or the name of a shipped config, as in: spen-run srl_seal")
    elif listing:
        _list_arguments(config, arguments or [])
        return
    else:
        folder = _run(config, arguments or [], out, options)
    if quiet:
        from spen_plugins.runs.devices import is_main_process

        if is_main_process():
            typer.echo(str(folder))


def _run(config: Path, words: list[str], out: Path | None, options: RunOptions) -> Path:
    """Start one run or several; torch is imported after the config is checked, for fast errors."""
    from spen_plugins.config.evaluation import evaluate, parameters, parse_arguments

    arguments = parse_arguments(words)
    list_names = [name for name in ("methods", "seeds") if name in arguments]
    parameter_names = [parameter.name for parameter in parameters(config)] if list_names else []
    lists = {name: arguments.pop(name) for name in list_names if name not in parameter_names}
    if duplicates := [name for name in lists if name.removesuffix("s") in arguments]:
        raise ConfigError(f"found both {duplicates[0].removesuffix('s')}= and {duplicates[0]}=; omit one of them")
    if "methods" in lists and "method" not in parameter_names:
        raise ConfigError(f"methods=…: {config} has no argument 'method'; omit methods=")
    methods = parse_methods(lists["methods"]) if "methods" in lists else [""]

    def evaluate_run(method: str, seed: int | None) -> dict[str, Any]:
        method_arguments = {"method": method} if method else {}
        return evaluate(config, {**arguments, **method_arguments, **({} if seed is None else {"seed": str(seed)})})

    if lists:
        seeds = parse_seeds(lists["seeds"]) if "seeds" in lists else None
        first_config = evaluate_run(methods[0], seeds and seeds[0])  # torch is imported after the config is checked
        from spen_plugins.runs.many.seeds import run_many

        seeds = [first_config.get("seed", 0)] if seeds is None else seeds
        return _print_choice(run_many(evaluate_run, methods, seeds, str(config), out, options), options)
    if options.best:
        raise ConfigError("--best requires several methods and seeds: give methods=… and seeds=…, or omit it")
    if options.jobs > 1:
        raise ConfigError(f"--jobs {options.jobs} requires several seeds or methods; give them, as in seeds=0..4")
    evaluated = evaluate(config, arguments)
    from spen_plugins.runs.train import runner

    return runner.run(evaluated, str(config), out, options)


def _resume(path: Path, options: RunOptions) -> Path:
    """Resume a run, or a folder of seeds or methods."""
    from spen_plugins.runs.folder.folder import read_methods
    from spen_plugins.runs.many.plans import has_seeds
    from spen_plugins.runs.many.seeds import resume_many
    from spen_plugins.runs.train import runner

    if read_methods(path) or has_seeds(path):
        return _print_choice(resume_many(path, options), options)
    return runner.resume(path, options)


def _print_choice(outcome: Outcome, options: RunOptions) -> Path:
    """Print the scores of several methods, on the test part if all have them, and return the folder of the runs."""
    if outcome.choice is not None and not options.quiet:
        from spen_plugins.console import Console
        from spen_plugins.report.compare import compare
        from spen_plugins.report.tables import terminal
        from spen_plugins.runs.many.groups import read_group

        console, choice = Console(), outcome.choice
        groups = [read_group(method, outcome.folder / method) for method in outcome.finished_methods]
        are_tested = all("test" in (run.metrics() or {}) for group in groups for run in group.runs)
        table = compare(groups, "test" if are_tested else "validation", [choice.record["score"]])
        console.print(terminal(table, console.width))
        for line in (*(f"note: {note}" for note in table.notes), *choice.lines):
            console.print(line, soft_wrap=True)
    outcome.check()
    return outcome.folder


def parse_seeds(text: str) -> list[int]:
    """`0..4` (both ends) or `0,3,7` -> the seeds."""
    if ends := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text.strip()):
        seeds = list(range(int(ends[1]), int(ends[2]) + 1))
    else:
        seeds = [int(word) if word.strip().isdecimal() else -1 for word in text.split(",")]
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds={text}: expected different whole numbers, as in seeds=0..4 or seeds=0,3,7")
    return seeds


def parse_methods(text: str) -> list[str]:
    """`cross_entropy,nce` -> the methods."""
    methods = [method.strip() for method in text.split(",")]
    has_names = all(re.fullmatch(r"[A-Za-z]\w*", method) for method in methods)  # which name folders
    if not has_names or len(set(methods)) < max(len(methods), 2):
        raise ConfigError(f"methods={text}: expected two or more different methods, as in methods=cross_entropy,nce")
    return methods


def _list_arguments(config: Path, words: list[str]) -> None:
    """Print the config's arguments, then each dotted key of the evaluated config with type, value and one-line doc."""
    from spen_plugins.config.evaluation import evaluate, parameters, parse_arguments

    choices = parameters(config)
    rows = [[p.name, "required" if p.default is None else p.default, p.doc] for p in choices]
    typer.echo("\n".join(["arguments:" if rows else "arguments: none in this file", *columns(rows, "  "), ""]))
    evaluated = evaluate(config, parse_arguments(words))
    from spen_plugins.config.experiment import keys, parse_experiment
    from spen_plugins.registry import Registry

    try:
        experiment = parse_experiment(evaluated, str(config), Registry())
    except PluginError as error:  # another method may need no such plugin
        say(f"note: the keys of this method are not listed. {error}")
        return
    rows = [[f.name, f"= {f.default}", f"({f.type})", first_sentence(f.doc)] for f in keys(experiment)]
    typer.echo("\n".join(["keys, each set by its name (trainer.epochs=3):", *columns(rows, "  ")]))


def first_sentence(text: str) -> str:
    """The first sentence of a docstring; abbreviations of citations don't end one."""
    return re.split(
        r"(?<=\.)(?<!\bal\.)(?<!Sec\.)(?<!Eq\.)(?<!Figs\.)(?<!Fig\.)\s", " ".join(text.split()), maxsplit=1
    )[0]


def main() -> None:
    """Entry point of `spen-run`."""
    run_program(app)


if __name__ == "__main__":
    main()
