"""Arguments with gold predicates by corpus and genre: a row each, a column for each run of semantic roles.

    SPEN_DATA=... python -m tools.english.roles_by_corpus spen_en=pipeline/spen_srl/model md=runs/srl

The test part of EWT by genre; MASC (court, telephone, letters and others; verbs alone are annotated), and nouns and
adjectives of PB-Examples and Challenge-SRL, which no run is trained on. In per cent, F1 as in the runs' own scores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import spen_plugins as sp
from spen_plugins.data.catalogue import locate
from spen_plugins.runs.predict.evaluating import evaluate_file
from tools.errors import end_with_message

FILES = {
    "EWT": "data:srl/ewt_propbank/ewt-propbank-test.gold_conll",
    "MASC": "data:srl/masc_propbank/test.gold_conll",
    "PB-Examples": "data:srl/nonverbal/pbexamples-{}.gold_conll",
    "Challenge-SRL": "data:srl/nonverbal/challenge-{}.gold_conll",
}
KINDS = {"PB-Examples": ("nouns", "adjectives"), "Challenge-SRL": ("verbs", "nouns", "adjectives")}
NAME = "# sent_id = "


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN", help="run folders, and what to call them")
    folders = dict(word.split("=", 1) for word in parser.parse_args().runs)
    predictors = {name: sp.load(folder) for name, folder in folders.items()}
    print(f"| | predicates | {' | '.join(predictors)} |\n|---|---:|{'---:|' * len(predictors)}")
    for name, text in parts():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "part.conll")
            path.write_text(text, encoding="utf-8")
            scores = [evaluate_file(predictor, path)["scores"]["span_f1"] for predictor in predictors.values()]
            count = len(next(iter(predictors.values())).task.read(str(path)))
        print(f"| {name} | {count:,} | {' | '.join(f'{100 * score:.1f}' for score in scores)} |", flush=True)


def parts() -> Iterator[tuple[str, str]]:
    """Name and text of each row: a corpus, and then each genre in it, the largest first."""
    for name, file in FILES.items():
        if name in KINDS:
            for kind in KINDS[name]:
                yield f"{name}, {kind}", locate(file.format(kind)).read_text(encoding="utf-8")
            continue
        sentences = locate(file).read_text(encoding="utf-8").strip().split("\n\n")
        genres: dict[str, list[str]] = {}
        for sentence in sentences:
            genres.setdefault(genre_of(sentence), []).append(sentence)
        yield name, joined(sentences)
        for genre, group in sorted(genres.items(), key=lambda entry: -len(entry[1])):
            yield f"{name}, {genre}", joined(group)


def genre_of(sentence: str) -> str:
    """Genre: `reviews` of "reviews-001325-0001", `court-transcript` of "spoken/court-transcript/Day3PMSession-0001"."""
    name = sentence.removeprefix(NAME).split("\n", 1)[0]
    return name.split("/")[-2] if "/" in name else name.split("-", 1)[0]


def joined(sentences: list[str]) -> str:
    return "\n\n".join(sentences) + "\n\n"


if __name__ == "__main__":
    main()
