"""Words of a text: by a rule, or as blanks divide them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any
from unicodedata import category

from spen_plugins.data.text import DIGITS

LONGEST = 100
"""Most characters of a word between blanks: a window of an encoder holds it whole, and BERT reads no longer ones."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Myanmar, Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Characters of scripts without blanks between words, for a set in a pattern."""
_RARE = 0.01


def words_of(text: str, config: Any, unspaced: bool = False) -> list[str]:
    """The words of a text; of the task's config, `words`, `lowercase`, `digits` and `punctuation` count.

    By the rule a word is a run of letters and digits, with the combining marks on them and inner apostrophes; if
    `unspaced`, each character of a script without blanks between words is a word of its own.

    Between blanks, a word of more than `LONGEST` characters, as Chinese and Thai have them, is cut after a mark of
    punctuation, or where it becomes too long.
    """
    text = text.replace("’", "'") if config.words == "rule" else text
    text = text.lower() if config.lowercase else text
    text = text.translate(DIGITS) if config.digits else text
    if config.words == "rule":
        return _rule(config.punctuation, unspaced).findall(text)
    return [part for word in text.split() for part in ([word] if len(word) <= LONGEST else _parts().findall(word))]


def is_unspaced(texts: Iterable[str]) -> bool:
    """True if more than a few of the texts have characters of a script without blanks between words."""
    script = re.compile(f"[{_UNSPACED}]")
    has_script = [script.search(text) is not None for text in texts]
    return sum(has_script) > _RARE * len(has_script)


def is_mostly_unspaced(text: str) -> bool:
    """True if more than half of the letters and digits of a text are of a script without blanks between words."""
    return 2 * len(re.findall(f"[{_UNSPACED}]", text)) > sum(character.isalnum() for character in text)


@cache
def _rule(punctuation: bool, unspaced: bool) -> re.Pattern[str]:
    """The rule; marks that follow no letter, as an emoji's, are punctuation."""
    # Before the first mark are ASCII and Latin letters, which are seen at once. Indic scripts join letters invisibly.
    letter, marks = rf"[^\W{_UNSPACED}]" if unspaced else r"\w", rf"[{_marks()}]+[\u200c\u200d]*"
    run = rf"{letter}+(?:(?![\0-\u02ff]){marks}{letter}*)*"
    alone = rf"|(?=\w)[{_UNSPACED}](?:{marks})*" * unspaced
    return re.compile(rf"{run}(?:'{run})*{alone}" + r"|[^\w\s]" * punctuation)


@cache
def _parts() -> re.Pattern[str]:
    most, marks = LONGEST, _marks()
    return re.compile(rf".{{1,{most}}}$|.{{,{most - 1}}}[^\w{marks}]|.{{1,{most}}}[{marks}]*", re.DOTALL)


@cache
def _marks() -> str:
    """All combining marks, which Python's `\\w` lacks, for a set of characters in a pattern."""
    planes = chain(range(0x300, 0x20000), range(0xE0100, 0xE01F0))
    return "".join(mark for mark in map(chr, planes) if category(mark).startswith("M"))
