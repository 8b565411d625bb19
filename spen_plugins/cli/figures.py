"""`spen plot`: figures of finished runs, the core's and those of plugins, as PNG and SVG."""

from __future__ import annotations

from spen_plugins.cli.commands import Figures
from spen_plugins.cli.common import app as make_app

app = make_app("Figures of finished runs, as PNG and SVG.", Figures)


@app.callback(no_args_is_help=True)
def plot() -> None:
    """Figures of finished runs, as PNG and SVG."""
