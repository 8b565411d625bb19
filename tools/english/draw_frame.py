"""Draw spen_en's frames of a sentence, for docs/spacy.md.

    python -m tools.english.draw_frame

Writes docs/figures/srl_frame.svg and, if Chromium is installed (make browser), srl_displacy.png: displaCy's page in
Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import spacy
from spacy import displacy

from spen_plugins.files import save_text, writing
from spen_spacy import draw

TEXT = "Anna told Bob that the farmer sent a letter to Boston."
FIGURES = Path("docs/figures")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    doc = spacy.load("spen_en")(TEXT)
    save_text(draw(doc), FIGURES / "srl_frame.svg")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        photograph(browser, displacy.render(doc, style="span", options={"spans_key": "spen_srl"}, jupyter=False))


def photograph(browser: str, page: str) -> None:
    """Save a screenshot of a page."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(f'<body style="font: 16px sans-serif; margin: 0 12px">{page}', encoding="utf-8")
        picture = Path(folder) / "page.png"
        size = ("--window-size=560,80", "--hide-scrollbars", "--force-device-scale-factor=2")
        options = ("--headless", "--no-sandbox", *size, f"--screenshot={picture}")
        subprocess.run([browser, *options, source.as_uri()], check=True, capture_output=True)
        with writing(FIGURES / "srl_displacy.png") as part:
            shutil.copyfile(picture, part)


if __name__ == "__main__":
    main()
