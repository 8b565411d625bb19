"""`spen predict`, `evaluate`, `score` and `calibrate`: commands for finished runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spen_plugins.cli.common import ColumnWords, Out, check_kept, read_columns, say_all, write_lines
from spen_plugins.errors import ConfigError

if TYPE_CHECKING:
    from spen_plugins.runs.predict.predictor import Predictor

Run = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
Gold = Annotated[
    Path | None, typer.Argument(help="A file in the format of the run's task, with gold.", show_default=False)
]
File = Annotated[Path, typer.Argument(help="A file in the format of the run's task.", show_default=False)]
Input = Annotated[
    Path | None,
    typer.Argument(
        help="A file (not a pipe) in the format of the run's task, or of raw text; - reads raw text from stdin.",
        show_default=False,
    ),
]
Text = Annotated[str | None, typer.Option(help="Raw text, instead of FILE.", show_default=False)]
Form = Annotated[
    str,
    typer.Option(
        "--format",
        help="jsonl; for roles also conll, props or conllu; for tags conll, conllu or docbin; for label sets csv; for "
        "constituents trees.",
    ),
]
Every = Annotated[
    bool,
    typer.Option("--all", help="List the probabilities of all labels, not only of the ten likeliest."),
]
Predicates = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="The run that finds the predicates of raw text, and of files without marked predicates (default: that of "
        "the plugin spen-en, if installed).",
        show_default=False,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        help="Language code of raw text, which selects spaCy's tokeniser (default: the run's task.language, or en).",
        show_default=False,
    ),
]
PartOption = Annotated[
    Literal["train", "validation", "test"] | None,
    typer.Option("--part", help="A part of the run's own data and split, instead of FILE.", show_default=False),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")]
Refine = Annotated[
    str | None,
    typer.Option(
        help="Lower the energy of the net's output: rerank (choose among the k best), gbi (gradient steps), "
        "reweight (weigh samples of the net), or the table of such an inference net, "
        '\'{"type": "rerank", "k": 8}\'.'
    ),
]
Trajectory = Annotated[
    bool,
    typer.Option(
        "--trajectory", help="Print energy and scores after each step of gradient-based inference, one line per step."
    ),
]
Precision = Annotated[
    Literal["no", "int8", "bf16"],
    typer.Option(
        help="no: float32; int8: pretrained encoders multiply in int8, and LSTMs in bfloat16 if the processor supports "
        "it, faster on processors with AVX512-VNNI; bf16: nets multiply in bfloat16, faster on processors with AMX or "
        "AVX512-BF16, and on GPUs."
    ),
]
Energy = Annotated[bool, typer.Option("--energy", help="Add the energy of each output to its JSON; lower is better.")]


@contextmanager
def showing_progress() -> Iterator[None]:
    """Shows the progress of predictions on standard error inside the context."""
    from spen_plugins.console import Console
    from spen_plugins.loop.progress import Tracker

    with Tracker(Console(stderr=True)):
        yield


@contextmanager
def loading(
    run: Path, keys: Sequence[str] | None, device: str, refine: str | None = None, precision: Precision = "no"
) -> Iterator[Predictor]:
    """Loads a run for prediction. Inside the context, it reads files by the columns and in the encoding that
    `key=value` words name, and standard error shows progress."""
    from spen_plugins.config.evaluation import parse_value
    from spen_plugins.runs.predict import predictor

    with showing_progress():
        run_predictor = predictor.load(run, device, None if refine is None else parse_value(refine), precision)
        with read_columns(keys) as columns:
            if columns:
                run_predictor.name_columns(columns)
            yield run_predictor


def predict(
    run: Run,
    file: Input = None,
    keys: ColumnWords = None,
    text: Text = None,
    out: Out = None,
    form: Form = "jsonl",
    every: Every = False,
    predicates: Predicates = None,
    language: Language = None,
    device: Device = "cpu",
    refine: Refine = None,
    energy: Energy = False,
    precision: Precision = "no",
) -> None:
    """Predict the outputs of a file or of raw text, in order: one JSON value per line, or another format.

    Example: spen predict runs/first --text "The girl gave the boy a book."
    """
    if (file is None) == (text is None):
        raise ConfigError("expected either a FILE (- for standard input) or --text TEXT")
    check_kept(out, file)
    from spen_plugins.runs.folder.folder import RunFolder
    from spen_plugins.runs.predict import tokenised, writing

    with loading(run, keys, device, refine, precision) as predictor:
        folders = [predictor.folder]
        if predicates is not None and (predicates / "config.json").is_file():
            folders.append(RunFolder.open(predicates))
        languages = [folder.config()["task"].get("language", "en") for folder in folders]
        run_language = next((code for code in languages if code != "en"), "en")
        source = tokenised.TokenisedText("", language, predicates, device, run_language)
        writer = writing.make_writer(predictor, form, out, energy)
        say_all(writing.choose_labels_shown(predictor, every, form))
        if text is not None or str(file) == "-":
            source.text = tokenised.read_standard_input(sys.stdin.buffer) if text is None else tokenised.argument(text)
            examples, notes = tokenised.read_text(predictor.task, source), []
        else:
            examples, notes = tokenised.read(predictor, file, source)
        source.check_used()
        say_all([*notes, *source.notes()])
        answers = predictor.predict_examples(examples, energy)
        writer(source.located(answers, examples) if form == writing.JSON_LINES else answers, examples)


def evaluate(
    run: Run,
    file: Gold = None,
    keys: ColumnWords = None,
    part: PartOption = None,
    out: Out = None,
    device: Device = "cpu",
    refine: Refine = None,
    trajectory: Trajectory = False,
    precision: Precision = "no",
) -> None:
    """Score predictions against the gold in a file, or in a part of the run's own data; prints JSON.

    Example: spen evaluate runs/first --part test
    """
    if (file is None) == (part is None):
        raise ConfigError("expected either a FILE or --part train, validation or test")
    check_kept(out, file)
    from spen_plugins.runs.folder import sources

    with loading(run, keys, device, refine, precision) as predictor:
        if trajectory:
            write_lines(predictor.trajectory_file(file, part), out)
        else:
            write_lines([predictor.evaluate_file(file, part)], out, indent=2)
        if file is not None:
            say_all([*predictor.task.notes(), *sources.warn_if_seen(predictor, file)])


def score(run: Run, file: File, keys: ColumnWords = None, out: Out = None, device: Device = "cpu") -> None:
    """Print the energy of a file's gold outputs and of the run's predictions, one JSON value per line; lower is better.

    Example: spen score runs/first dev.conll
    """
    check_kept(out, file)
    with loading(run, keys, device) as predictor:
        write_lines(predictor.score_file(file), out)


def calibrate(
    run: Run,
    file: Annotated[
        Path | None,
        typer.Argument(help="A file with gold (default: the run's validation data).", show_default=False),
    ] = None,
    keys: ColumnWords = None,
    device: Device = "cpu",
) -> None:
    """Fit the temperature of a run's probabilities and write it to its calibration.json; prints JSON.

    Example: spen calibrate runs/first dev.conll
    """
    with loading(run, keys, device) as predictor:
        write_lines([predictor.calibrate(file)], None, indent=2)
