"""Text for a terminal: names from data are shown as they are, and none of their characters commands the terminal."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.text import Text

from spen_plugins.errors import visible


class Console(rich.console.Console):
    """rich's console, on which brackets are no markup, colons no emoji, and control characters are visible."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """A text as rich draws it, in tables too."""
        return super().render_str(visible(text), **settings)
