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
"""Maximum length of a word between blanks: it fits into an encoder's window, and BERT reads no longer words."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Myanmar, Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Characters of scripts without blanks between words, for a set in a pattern."""
_RARE_SHARE = 0.01


def words_of(text: str, config: Any, unspaced: bool = False) -> list[str]:
    """The words of a text; `config` is the task's, of which `words`, `lowercase`, `digits` and `punctuation` are used.

    By the rule a word is a run of letters and digits, with the combining marks on them and inner apostrophes; if
    `unspaced`, each character of a script without blanks between words is a word of its own.

    Between blanks, a word of more than `LONGEST` characters, as in Chinese and Thai, is cut after a punctuation mark,
    or where it becomes too long.
    """
    text = text.replace("’", "'") if config.words == "rule" else text
    text = text.lower() if config.lowercase else text
    text = text.translate(DIGITS) if config.digits else text
    if config.words == "rule":
        return _compile_rule(config.punctuation, unspaced).findall(text)
    return [
        part for word in text.split() for part in ([word] if len(word) <= LONGEST else _compile_parts().findall(word))
    ]


def is_unspaced(texts: Iterable[str]) -> bool:
    """True if more than a few of the texts have characters of a script without blanks between words."""
    script = re.compile(f"[{_UNSPACED}]")
    has_script = [script.search(text) is not None for text in texts]
    return sum(has_script) > _RARE_SHARE * len(has_script)


def is_mostly_unspaced(text: str) -> bool:
    """True if more than half of the letters and digits of a text are of a script without blanks between words."""
    return 2 * len(re.findall(f"[{_UNSPACED}]", text)) > sum(character.isalnum() for character in text)


@cache
def _compile_rule(punctuation: bool, unspaced: bool) -> re.Pattern[str]:
    """The rule; marks that follow no letter, such as an emoji's, are punctuation."""
    # ASCII and Latin letters precede the first mark and are ruled out at once. Indic scripts join letters invisibly.
    letter, marks = rf"[^\W{_UNSPACED}]" if unspaced else r"\w", rf"[{_list_marks()}]+[\u200c\u200d]*"
    run = rf"{letter}+(?:(?![\0-\u02ff]){marks}{letter}*)*"
    single = rf"|(?=\w)[{_UNSPACED}](?:{marks})*" * unspaced
    return re.compile(rf"{run}(?:'{run})*{single}" + r"|[^\w\s]" * punctuation)


@cache
def _compile_parts() -> re.Pattern[str]:
    longest, marks = LONGEST, _list_marks()
    return re.compile(rf".{{1,{longest}}}$|.{{,{longest - 1}}}[^\w{marks}]|.{{1,{longest}}}[{marks}]*", re.DOTALL)


@cache
def _list_marks() -> str:
    """All combining marks, which Python's `\\w` lacks, for a set of characters in a pattern."""
    planes = chain(range(0x300, 0x20000), range(0xE0100, 0xE01F0))
    return "".join(mark for mark in map(chr, planes) if category(mark).startswith("M"))
