"""A comparison as text: markdown, CSV, LaTeX, or a table for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.table import Table

from spen_plugins.console import markdown_cell, one_line
from spen_plugins.data.records import written
from spen_plugins.report.compare import LIKELIHOODS, Comparison
from spen_plugins.report.costs import SIZES
from spen_plugins.report.group_scores import Difference
from spen_plugins.scores.bootstrap import Interval, scale

LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {character: "\\" + character for character in "&%$#_{}"} | {"±": r"$\pm$", "−": "$-$", "λ": r"$\lambda$"}
LATEX |= {character: f"${character}$" for character in "<>|"}  # other characters in LaTeX's default encoding
BOTH = "seeds and examples"
GAINS = ("standard error", "seeds", f"{BOTH} low", f"{BOTH} high", f"{BOTH} p", "low", "high", "p")
"""Columns of a difference in CSV after its value; the last three are over examples alone."""
MINUS = re.compile(r"(?<![\w.-])-(?=\d)")


def heads(comparison: Comparison) -> list[str]:
    """Column titles, the label's first."""
    gains = [f"{comparison.selection} − {label}" for label in comparison.baselines]
    sizes = SIZES if comparison.sizes else ()
    return ["", *comparison.scores, *gains, "seeds", "epochs", "s / epoch", "energy's share", *sizes]


def cells(comparison: Comparison) -> list[list[str]]:
    """Rows of text under `heads`; scores are in per cent or in their unit."""
    return [
        [
            row.label,
            *(
                score.format(comparison.unit_of(name)) if (score := row.scores[name]) else ""
                for name in comparison.scores
            ),
            *(_write_gain(row.differences[label], comparison.unit) for label in comparison.baselines),
            str(row.seeds),
            "" if row.costs.epochs is None else f"{row.costs.epochs:.0f}",
            "" if row.costs.seconds is None else f"{row.costs.seconds:.2f}",
            "" if row.costs.share is None else f"{row.costs.share:.2f}",
            *(map(_write_count, row.costs.sizes) if comparison.sizes else ()),
        ]
        for row in comparison.rows
    ]


def caption(comparison: Comparison) -> str:
    """Explanation of the table's figures."""
    units = f"as they are, {comparison.selection} in {comparison.unit}" if comparison.unit else "in per cent"
    if any(name.startswith(LIKELIHOODS) for name in comparison.scores):
        units += ", nll in nats"
    text = f"Scores on {comparison.part} {units}; ± is the standard error over seeds."
    differences = [gain for row in comparison.rows for gain in row.differences.values() if gain]
    if differences:
        text += " Differences are paired by seed (a mean of runs: with each seed)"
        text += (
            "; [95 % interval] and p: paired bootstrap over seeds and examples together, with Student's t; 10,000 "
            "resamples. p over examples alone is for these runs only and ignores the variance between seeds; with one "
            "seed, it is the only one."
            if any(gain.examples for gain in differences)
            else "."
        )
    if comparison.sizes:
        text += (
            " Inference parameters are those that prediction uses; speed is that of training, each example counted "
            "once per epoch."
        )
    return text


def markdown(comparison: Comparison) -> str:
    """A table, its caption and the notes."""
    titles = [markdown_cell(title) for title in heads(comparison)]
    lines = ["| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1)]
    lines += ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in cells(comparison)]
    lines += ["", one_line(caption(comparison))]
    if comparison.notes:
        lines += ["", *(f"- {markdown_cell(note)}" for note in comparison.notes)]
    return "\n".join(lines) + "\n"


def latex(comparison: Comparison, intervals: bool = False) -> str:
    """A `tabular` of scores for the package booktabs, with the best of each column in bold; explanations are comments.

    With `intervals`, a column for each baseline has the difference of the selection score and its interval.
    """
    baselines = comparison.baselines if intervals else ()
    gains = [f"{comparison.selection} − {label}" for label in baselines]
    titles = ["", *comparison.scores, *gains, *(SIZES if comparison.sizes else ())]
    columns = [_write_tex_scores(comparison, name) for name in comparison.scores]
    columns += [
        [_write_tex_gain(row.differences[label], comparison.unit) for row in comparison.rows] for label in baselines
    ]
    lines = [" & ".join(map(_escape, titles))]
    for i, row in enumerate(comparison.rows):
        sizes = map(_write_count, row.costs.sizes) if comparison.sizes else ()
        lines.append(" & ".join([_escape(row.label), *(column[i] for column in columns), *map(_escape, sizes)]))
    seeds = "Seeds: " + ", ".join(f"{row.label} {row.seeds}" for row in comparison.rows) + "."
    comments = [f"% {one_line(text)}" for text in (caption(comparison), seeds, *comparison.notes)]
    start = rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}"
    head, *body = [rf"{line} \\" for line in lines]
    rules = [start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*comments, *rules]) + "\n"


def _write_tex_scores(comparison: Comparison, name: str) -> list[str]:
    """Cells of one score, `$50.00 \\pm 1.25$`; the best printed values are bold if there are several rows."""
    texts = [score.format(comparison.unit_of(name)) if (score := row.scores[name]) else "" for row in comparison.rows]
    best = find_best(texts, comparison.is_low_better(name)) if len(texts) > 1 else ()
    cells = []
    for row, text in enumerate(texts):
        mean, _, error = text.partition(" ± ")
        number = rf"\mathbf{{{mean}}}" if row in best else mean
        spread = rf" \pm {error}" if error else ""
        cells.append(f"${number}{spread}$" if mean else "")
    return cells


def find_best(texts: Sequence[str], low: bool) -> list[int]:
    """Indices of the rows with the best printed mean in a column of scores; texts without a number are skipped."""
    means = {row: float(text.partition(" ")[0]) for row, text in enumerate(texts) if text[-1:].isdigit()}
    best = (min if low else max)(means.values(), default=None)
    return [row for row, mean in means.items() if mean == best]


def _write_tex_gain(difference: Difference | None, unit: str) -> str:
    """A difference and its interval over seeds and examples, else over examples, else its standard error."""
    if difference is None:
        return ""
    mean, _, error = difference.seeds.format(unit).partition(" ± ")
    interval, factor = difference.seeds_and_examples or difference.examples, scale(unit)
    if interval is not None:
        return rf"${mean}$ $[{factor * interval.low:.2f}, {factor * interval.high:.2f}]$"
    return rf"${mean} \pm {error}$" if error else f"${mean}$"


def comma_separated(comparison: Comparison) -> str:
    """CSV with every number in full; scores are as in the run folders, and missing ones are empty."""
    titles = ["label", "part", "seeds"]
    for name in comparison.scores:
        titles += [name, f"{name} standard error"]
    for label in comparison.baselines:
        gain = f"{comparison.selection} - {label}"
        titles += [gain, *(f"{gain} {column}" for column in GAINS)]
    sizes = SIZES if comparison.sizes else ()
    lines: list[list[object]] = [[*titles, "epochs", "seconds per epoch", "energy's share", *sizes]]
    for row in comparison.rows:
        line: list[object] = [row.label, comparison.part, row.seeds]
        for name in comparison.scores:
            score = row.scores[name]
            line += [score.mean, score.error] if score else [None, None]
        for label in comparison.baselines:
            line += _list_numbers(row.differences[label])
        costs = row.costs
        line += [costs.epochs, costs.seconds, costs.share, *(costs.sizes if comparison.sizes else ())]
        lines.append(line)
    return written(lines)


def terminal(comparison: Comparison, width: int) -> Table:
    """A table for rich's console: one row per group, or one column per group if that exceeds `width` characters."""
    rows = [heads(comparison), *cells(comparison)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 3 * len(widths) + 1 > width:
        rows = [list(column) for column in zip(*rows, strict=True)]
    table = Table(caption=caption(comparison), caption_justify="left")
    for i, title in enumerate(rows[0]):
        table.add_column(title, justify="right" if i else "left", overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _write_gain(difference: Difference | None, unit: str) -> str:
    if difference is None:
        return ""
    text, factor = difference.seeds.format(unit), scale(unit)
    if difference.seeds_and_examples:
        text += f" {_write_interval(difference.seeds_and_examples, factor)}"
    if difference.examples:
        separator = "; " if difference.seeds_and_examples else " "
        text += f"{separator}examples alone {_write_interval(difference.examples, factor)}"
    return text


def _write_interval(interval: Interval, factor: float) -> str:
    p = f"p = {interval.p:.3f}" if interval.p >= 0.001 else "p < 0.001"
    return f"[{factor * interval.low:.2f}, {factor * interval.high:.2f}] {p}"


def _write_count(value: float | None) -> str:
    """A count with at least three digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _list_numbers(difference: Difference | None) -> Sequence[float | int | None]:
    if difference is None:
        return [None] * (1 + len(GAINS))
    seeds = difference.seeds
    intervals = [
        (i.low, i.high, i.p) if i else (None,) * 3 for i in (difference.seeds_and_examples, difference.examples)
    ]
    return [seeds.mean, seeds.error, seeds.count, *intervals[0], *intervals[1]]


def _escape(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in MINUS.sub("−", one_line(text)))
