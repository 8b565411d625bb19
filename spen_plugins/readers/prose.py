"""Raw text, which is no format of sentences."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

from spen_plugins.readers.formats import Head

_ENDS_A_SENTENCE = re.compile(r"\w[.!?…][\"'”’)]*$")


def is_prose(head: Head) -> bool:
    """True for raw text: sentences or paragraphs a line, not a token a line.

    No line has a tab, most have several words, and one of these holds: most lines end a sentence, with a mark at the
    last word; no two lines follow without a blank one between them; or they differ in their numbers of words.
    """
    lines = [line.strip() for line in head.lines if not line.startswith("#")]
    rows = [len(line.split()) for line in lines if line]
    if sum(n > 1 for n in rows) * 2 <= len(rows) or any("\t" in line for line in lines) or head.filled[0][0] == "{":
        return False
    ends = sum(bool(_ENDS_A_SENTENCE.search(line)) for line in lines)
    runs = [len(list(some)) for filled, some in groupby(lines, bool) if filled]
    (_, usual), *_ = Counter(rows).most_common(1)
    return ends * 2 > len(rows) or max(runs) == 1 or (len(rows) > 2 and usual * 2 < len(rows))
