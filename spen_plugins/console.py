"""Text for a terminal: names from data are shown as they are, and none of their characters commands the terminal."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.table import Table
from rich.text import Text

from spen_plugins.errors import visible

UNBOUNDED = 1 << 20
"""Characters in a line of a file or pipe, which has no width."""


class Console(rich.console.Console):
    """rich's console, on which brackets are no markup, colons no emoji, and control characters are visible.

    In a file or pipe nothing is wrapped or cut, whatever `COLUMNS` is, and tables are aligned text without lines.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)
        self._is_drawn = self.is_terminal or self.is_jupyter
        if not self._is_drawn:
            self.width = UNBOUNDED

    def print(self, *objects: Any, **settings: Any) -> None:
        """rich's `print`."""
        if not self._is_drawn:
            objects = tuple(Text(plain(one)) if isinstance(one, Table) else one for one in objects)
        super().print(*objects, **settings)

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
