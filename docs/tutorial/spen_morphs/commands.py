"""A language that never was: stems, and suffixes whose vowels are those of the stem."""

import json
import random
from pathlib import Path

STEMS = ("gul", "kapi", "deniz", "orman", "tasra", "elmas", "kuru", "sabin", "temel", "yol", "damla", "petek")
SUFFIXES = (("lar", "ler"), ("im", "um"), ("da", "de"), ("siz", "suz"), ("ci", "cu"), ("dan", "den"))


def make_morphs(folder: Path, seed: int = 0) -> None:
    """Write train.jsonl, validation.jsonl and test.jsonl, words with their morphs, to FOLDER."""
    draw = random.Random(seed)
    words = {}
    while len(words) < 360:
        kind = draw.randrange(2)
        suffixes = [pair[kind] for pair in draw.sample(SUFFIXES, draw.randrange(4))]
        morphs = [draw.choice(STEMS), *suffixes]
        words["".join(morphs)] = morphs
    lines = [json.dumps({"word": word, "morphs": morphs}) + "\n" for word, morphs in words.items()]
    folder.mkdir(parents=True, exist_ok=True)
    for part, start, end in (("train", 0, 240), ("validation", 240, 300), ("test", 300, 360)):
        (folder / f"{part}.jsonl").write_text("".join(lines[start:end]), encoding="utf-8")
