"""Made-up sentences with senses: a few verbs and nouns of PropBank's lexicon, in contexts that tell their senses."""

from __future__ import annotations

import random
from functools import cache

from spen_plugins.sentences import Proposition, Sentence

SIZES = {"train": 300, "validation": 60, "test": 60}
PEOPLE = ("Anna", "Bob", "the farmer", "the teacher", "a child", "my sister", "the old clerk", "they")
TIMES = ("", "yesterday", "last week", "again", "on Monday")
# Sense, lemma and tag of each predicate, a template with the predicate in brackets, and the words for its braces.
PLACES = (
    ("run.01", "run", "VBD", "{who} [ran] the {shop}", {"shop": ("bakery", "company", "hotel", "office")}),
    ("run.02", "run", "VBD", "{who} [ran] to the {place}", {"place": ("station", "river", "door", "bus")}),
    ("run_out.05", "run", "VBD", "{who} [ran] out of {thing}", {"thing": ("milk", "paper", "money", "time")}),
    ("charge.01", "charge", "VBD", "{who} [charged] ten {coins}", {"coins": ("dollars", "euros", "pounds")}),
    ("charge.05", "charge", "VBD", "{who} was [charged] with {crime}", {"crime": ("theft", "fraud", "murder")}),
    ("take.01", "take", "VBD", "{who} [took] the {thing}", {"thing": ("book", "keys", "bag", "money")}),
    ("take_off.19", "take", "VBD", "the {plane} [took] off", {"plane": ("plane", "helicopter", "rocket")}),
    ("decide.01", "decide", "NN", "the [decision] of {who} was {good}", {"good": ("good", "late", "wise")}),
    ("late.02", "late", "JJ", "{who} came [late]", {}),
)


@cache
def sample_senses(seed: int = 2023) -> dict[str, list[Sentence]]:
    """Sentences of `train`, `validation` and `test`; the same at every call."""
    source = random.Random(seed)
    return {part: [_make_sentence(source, f"{part}-{i + 1}") for i in range(size)] for part, size in SIZES.items()}


def _make_sentence(source: random.Random, name: str) -> Sentence:
    sense, lemma, pos, template, lists = source.choice(PLACES)
    text = template.format(who=source.choice(PEOPLE), **{key: source.choice(options) for key, options in lists.items()})
    words = f"{text} {source.choice(TIMES)} .".split()
    index = next(i for i, word in enumerate(words) if word.startswith("["))
    words[index] = words[index][1:-1]
    words[0] = words[0][0].upper() + words[0][1:]
    return Sentence(tuple(words), (Proposition(index, lemma, None, sense, pos),), f"sample-{name}")
