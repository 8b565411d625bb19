"""Commands of `spen`: `rules`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

import spen_plugins as sp

File = Annotated[str, typer.Argument(metavar="RULES", show_default=False, help="A Python file of rules.")]
Data = Annotated[
    str | None,
    typer.Argument(metavar="FILE", show_default=False, help="Examples, with or without gold; requires --kind."),
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE",
        show_default=False,
        help="Settings of the task that reads FILE, such as tags=-1 labelled=50 (gold of the first 50 examples of "
        "FILE; a run that divides FILE takes the first of its training part), or text=comment labels=tags.",
    ),
]
Kind = Annotated[
    Literal["names", "tags", "texts"] | None,
    typer.Option(
        show_default=False,
        help="names: spans such as names and chunks; tags: one tag per word; texts: labels of texts.",
    ),
]
Scheme = Annotated[
    Literal["bio", "iob1", "bioes", "io"] | None,
    typer.Option(show_default=False, help="Tagging scheme of FILE, for --kind names (default: bio)."),
]
Examples = Annotated[int, typer.Option(min=0, help="Number of hits to show for each rule.")]


def rules(
    file: File,
    data: Data = None,
    settings: Settings = None,
    kind: Kind = None,
    scheme: Scheme = None,
    examples: Examples = 0,
) -> None:
    """Show where each rule of a file votes on examples, and how often it is right; prints markdown.

    Coverage: share of all words, or texts, on which the rule fires.
    Overlap: share of these on which another rule fires too.
    Conflict: share of these on which another rule votes for another tag or
    type, or votes for a name that this one votes against, or the reverse.
    In gold: share of its words inside a gold span of its type.
    Exact: share of its spans that are gold spans of its type.
    Accuracy: share of its words, or texts, whose gold has its tag or label.
    A rule against a name is right wherever gold lacks the name.
    The last row scores the weighted vote of all rules (method=majority).

    Example: spen rules mine.py dev.conll --kind names --examples 3
    """
    from spen_rules.rule_data import RuleData
    from spen_rules.rule_report import write_listing, write_report
    from spen_rules.votes import read_rules

    voting = read_rules(sp.locate(file))
    if data is None:
        typer.echo(write_listing(voting), nl=False)
        return
    if kind is None:
        raise sp.ConfigError(
            f"found {data} without --kind; expected --kind names, tags or texts (rules for roles and citations can "
            "only be listed, without FILE)"
        )
    if scheme is not None and kind != "names":
        raise sp.ConfigError(f"--scheme requires --kind names; found --kind {kind}")
    names = [name for rule in voting.rules for name in rule.names] + [*(voting.file.default_vote or ())[:1]]
    source = RuleData(kind, data, names, scheme, settings or ())
    source.load()
    for note in [*source.notes, *voting.bind(source.task.space)]:
        typer.echo(note, err=True)
    typer.echo(write_report(source, voting, examples), nl=False)
