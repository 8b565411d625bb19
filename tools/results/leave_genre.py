"""Write EWT PropBank with one genre left out of training, as a test of another domain.

    python -m tools.results.leave_genre answers runs/ewt_answers

Genres: answers, email, newsgroup, reviews, weblog. Writes train.conll and dev.conll without the genre's sentences, and
test.conll with those of the test part. The trees (data:pos/ewt) are found by a sentence's words and need no copy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from spen_plugins.data.catalogue import locate
from spen_plugins.errors import SpenError
from spen_plugins.files import save_text
from tools.errors import end_with_message

SOURCE = "data:srl/ewt_propbank/ewt-propbank-{}.gold_conll"
NAME = "# sent_id = "


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("genre", help="what is left out")
    parser.add_argument("out", type=Path, help="folder to write to")
    options = parser.parse_args()
    write_parts(options.genre, options.out)


def write_parts(genre: str, out: Path) -> None:
    """Write the three files to `out`.

    Raises:
        SpenError: no sentence is of the genre.
    """
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        sentences = locate(SOURCE.format(part)).read_text(encoding="utf-8").strip().split("\n\n")
        genres = [sentence.removeprefix(NAME).split("-", 1)[0] for sentence in sentences]
        if genre not in genres:
            raise SpenError(f"genre {genre!r} is unknown; {part} has {', '.join(sorted(set(genres)))}")
        chosen = [s for s, label in zip(sentences, genres, strict=True) if (label == genre) == (part == "test")]
        save_text("\n\n".join(chosen) + "\n\n", out / f"{part}.conll")


if __name__ == "__main__":
    main()
