"""Text for a terminal or a markdown table: names from data are shown unchanged, and none of their characters acts as a
command or markup."""

from __future__ import annotations

import re
from typing import Any

import rich.console
from rich.table import Table
from rich.text import Text

from spen_plugins.errors import visible

MARKDOWN = re.compile(r"[\\`*~|$]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[:])|(?<!\w)_|_(?!\w)")
CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
UNBOUNDED = 1 << 20
"""Characters in a line of a file or pipe, which has no width."""


class Console(rich.console.Console):
    """rich's console, on which brackets are no markup, colons no emoji, and control characters are visible.

    In a file or pipe, nothing is wrapped or cut, whatever `COLUMNS` is; tables are aligned text without lines.
    """

    def __init__(self, printed_texts: set[str] | None = None, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)
        self._printed = set[str]() if printed_texts is None else printed_texts
        self._is_drawn = self.is_terminal or self.is_jupyter
        if not self._is_drawn:
            self.width = UNBOUNDED

    def print(self, *objects: Any, **settings: Any) -> None:
        """rich's `print`."""
        if not self._is_drawn:
            objects = tuple(Text(plain(item)) if isinstance(item, Table) else item for item in objects)
        super().print(*objects, **settings)

    def print_once(self, text: str, **settings: Any) -> None:
        """Print a text, unless this console, or another with the same set `printed_texts`, has printed it before."""
        if text not in self._printed:
            self._printed.add(text)
            self.print(text, soft_wrap=True, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """A text as rich draws it, also in tables."""
        return super().render_str(visible(text), **settings)


def plain(table: Table) -> str:
    """A table as text: its title, its columns two blanks apart, each as wide as its longest cell, and its caption."""
    columns = [[visible(str(cell)) for cell in (column.header, *column.cells)] for column in table.columns]
    widths = [max(map(len, column)) for column in columns]
    is_right = [column.justify == "right" for column in table.columns]
    rows = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, is_right, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    captions = [[visible(str(text))] if text else [] for text in (table.title, table.caption)]
    return "\n".join([*captions[0], *rows, *captions[1]])


def markdown_cell(text: str) -> str:
    """The text, escaped for a cell of a markdown table: one line, without tags, links or formulas."""
    return MARKDOWN.sub(r"\\\g<0>", one_line(text))


def one_line(text: str) -> str:
    """The text with a blank for each line break and other control character."""
    return CONTROL.sub(" ", text)
