"""Words of a text: by a rule, or as blanks divide them."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Any
from unicodedata import category

LONGEST = 100
"""Most characters of a word between blanks: a window of an encoder holds it whole, and BERT reads no longer ones."""

_DIGITS = str.maketrans("123456789", "000000000")


def words_of(text: str, config: Any) -> list[str]:
    """The words of a text.

    By the rule a word is a run of letters and digits, with the combining marks on them and inner apostrophes. Of a text
    without combining marks the words are those of earlier versions, from which runs have their vocabularies; İ in lower
    case has such a mark.

    Between blanks, a word of more than `LONGEST` characters, as Chinese and Thai have them, is cut after a mark of
    punctuation, or where it becomes too long.

    Args:
        text: the text.
        config: the task's, of which `words`, `lowercase`, `digits` and `punctuation` count.
    """
    text = text.replace("’", "'") if config.words == "rule" else text
    text = text.lower() if config.lowercase else text
    text = text.translate(_DIGITS) if config.digits else text
    if config.words == "rule":
        return _rule(config.punctuation).findall(text)
    return [part for word in text.split() for part in ([word] if len(word) <= LONGEST else _parts().findall(word))]


@cache
def _rule(punctuation: bool) -> re.Pattern[str]:
    """The rule; marks that follow no letter, as an emoji's, are punctuation."""
    # Before the first mark are ASCII and Latin letters, which are seen at once. Indic scripts join letters invisibly.
    run = rf"\w+(?:(?![\0-\u02ff])[{_marks()}]+[\u200c\u200d]*\w*)*"
    return re.compile(rf"{run}(?:'{run})*" + r"|[^\w\s]" * punctuation)


@cache
def _parts() -> re.Pattern[str]:
    """The parts of a long word without blanks."""
    most, marks = LONGEST, _marks()
    return re.compile(rf".{{1,{most}}}$|.{{,{most - 1}}}[^\w{marks}]|.{{1,{most}}}[{marks}]*", re.DOTALL)


@cache
def _marks() -> str:
    """All combining marks, which Python's `\\w` lacks, for a set of characters in a pattern."""
    planes = chain(range(0x300, 0x20000), range(0xE0100, 0xE01F0))
    return "".join(mark for mark in map(chr, planes) if category(mark).startswith("M"))
