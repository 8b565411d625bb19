"""Raw text, which is no format of sentences."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

from spen_plugins.data.formats import Head

_ENDS_A_SENTENCE = re.compile(r"\w[.!?…][\"'”’)]*$")


def is_prose(head: Head) -> bool:
    """True for raw text: sentences or paragraphs a line, not a token a line.

    No line has a tab, some have several words, and one of these holds: most lines end a sentence, with a mark at the
    last word; or most have several words, and either a blank line is between any two or their numbers of words differ.
    """
    lines = [line.strip() for line in head.lines if not line.startswith("#")]
    rows = [len(line.split()) for line in lines if line]
    if not any(n > 1 for n in rows) or any("\t" in line for line in lines) or head.filled[0][0] in "{[":
        return False
    if sum(bool(_ENDS_A_SENTENCE.search(line)) for line in lines) * 2 > len(rows):
        return True
    runs = [len(list(block)) for filled, block in groupby(lines, bool) if filled]
    (usual, count), *_ = Counter(rows).most_common(1)
    several = sum(n > 1 for n in rows) * 2 > len(rows)
    return several and ((max(runs) == 1 and usual > 2) or (len(rows) > 2 and count * 2 < len(rows)))
