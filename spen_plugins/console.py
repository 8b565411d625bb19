"""Text for a terminal or a markdown table: names from data are shown as they are, and none of their characters is a
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

    In a file or pipe nothing is wrapped or cut, whatever `COLUMNS` is, and tables are aligned text without lines.
    """

    def __init__(self, told: set[str] | None = None, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)
        self._told = set[str]() if told is None else told
        self._is_drawn = self.is_terminal or self.is_jupyter
        if not self._is_drawn:
            self.width = UNBOUNDED

    def print(self, *objects: Any, **settings: Any) -> None:
        """rich's `print`."""
        if not self._is_drawn:
            objects = tuple(Text(plain(one)) if isinstance(one, Table) else one for one in objects)
        super().print(*objects, **settings)

    def print_once(self, text: str, **settings: Any) -> None:
        """Print a text unless this console, or one with the same set `told`, has."""
        if text not in self._told:
            self._told.add(text)
            self.print(text, soft_wrap=True, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """A text as rich draws it, in tables too."""
        return super().render_str(visible(text), **settings)


def plain(table: Table) -> str:
    """A table's title, its columns of text two blanks apart, each as wide as its longest cell, and its caption."""
    columns = [[visible(str(cell)) for cell in (column.header, *column.cells)] for column in table.columns]
    widths = [max(map(len, column)) for column in columns]
    right = [column.justify == "right" for column in table.columns]
    rows = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]
    around = [[visible(str(text))] if text else [] for text in (table.title, table.caption)]
    return "\n".join([*around[0], *rows, *around[1]])


def markdown_cell(text: str) -> str:
    """A text as it is, in a cell of a markdown table: on one line, no tag, link or formula."""
    return MARKDOWN.sub(r"\\\g<0>", one_line(text))


def one_line(text: str) -> str:
    """The text with a blank for each line break and other control character."""
    return CONTROL.sub(" ", text)
