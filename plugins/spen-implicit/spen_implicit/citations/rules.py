"""Rules for words of citations: each names the fields that a token under it may have.

They come from general knowledge and the first 50 citations of Cora only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from spen_implicit.citations.reader import BREAK, GLUED

NONE = "none"
RULES: dict[str, tuple[str, ...]] = {
    "pages": ("pages",),
    "year": ("date",),
    "month": ("date",),
    "editors": ("editor",),
    "quoted": ("title",),
    "names": ("author", "editor"),
    "volume": ("volume",),
    "venue": ("booktitle",),
    "journal": ("journal",),
    "report": ("tech",),
    "institution": ("institution",),
    "publisher": ("publisher",),
    "place": ("location",),
    "state": ("note",),
}
"""The rules, in order of precedence, and the fields of each."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONTHS = _split_words(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec spring summer autumn fall winter"
)
_LISTS = {
    "venue": _split_words("proceedings proc conference conf workshop symposium symp congress colloquium advances"),
    "journal": _split_words("journal transactions trans letters magazine bulletin communications comm quarterly"),
    "report": _split_words("technical report tech thesis dissertation phd memo memorandum"),
    "institution": _split_words(
        "university univ department dept institute laboratory laboratories lab school faculty center centre college"
    ),
    "publisher": _split_words(
        "press springer verlag wiley addison wesley elsevier kluwer kaufmann publishers publishing publisher prentice "
        "mcgraw holland birkhauser sons publ benjamin academic freeman macmillan plenum"
    ),
    "place": _split_words(
        "usa u.s.a uk california massachusetts germany france canada italy japan australia netherlands england spain "
        "sweden switzerland austria israel scotland berlin london paris boston amsterdam tokyo sydney vienna zurich "
        "york francisco diego jose angeles washington chicago seattle portland austin pittsburgh philadelphia atlanta "
        "cambridge oxford edinburgh montreal toronto vancouver heidelberg reading dordrecht "
        "ca ma ny pa il wa tx nj md az fl ga mi mn nc oh va dc"
    ),
    "state": _split_words("submitted unpublished forthcoming manuscript preprint draft available"),
}
_CAPITALS_ONLY = _split_words("ca ma ny pa il wa tx nj md az fl ga mi mn nc oh va dc usa uk")
_YEAR = re.compile(r"(?:18|19|20)\d\d[a-z]?")
_PARTICLES = _split_words("and de van der von den la le di da del el al ten ter & , . - ' ; et jr")
_OPENING = {'"': '"', "“": "”", "`": "'", "‘": "’", "«": "»"}


def find_rules(words: Sequence[str], gaps: Sequence[str]) -> tuple[str, ...]:
    """The rule of each token, or `NONE`, given the gaps before them; if several match, the first of `RULES`."""
    words = list(words)
    lower = [word.lower() for word in words]
    places: dict[str, set[int]] = {name: set() for name in RULES}
    for i in range(len(words)):
        for name, tokens in (*_match_number(words, lower, gaps, i), *_match_word(words, lower, gaps, i)):
            places[name].update(tokens)
    places["names"].update(_find_names(words, gaps))
    places["quoted"].update(_find_quotation(words))
    rules = [NONE] * len(words)
    for name in reversed(RULES):
        for i in places[name]:
            rules[i] = name
    return tuple(rules)


def _match_number(
    words: Sequence[str], lower: Sequence[str], gaps: Sequence[str], i: int
) -> Iterator[tuple[str, Iterable[int]]]:
    """The rule of pages, years and volumes that matches from a token on, and its tokens."""
    word, number = lower[i], _find_number(lower, i)
    if word in ("pp", "pages", "page", "p") and number is not None:
        yield "pages", range(i, _find_pages_end(words, i + 1))
    elif word.isdigit() and _is_range(words, i) and not _YEAR.fullmatch(word):
        yield "pages", range(i, _find_pages_end(words, i))
    elif _YEAR.fullmatch(word):
        yield "year", _extend(words, gaps, i)
    elif word in ("vol", "volume", "no", "number") and number is not None:
        yield "volume", range(i, 1 + number)
    elif word.isdigit() and len(word) < 4 and lower[i + 1 : i + 2] == ["("] and lower[i + 3 : i + 4] == [")"]:
        yield "volume", range(i, i + 4)


def _match_word(
    words: Sequence[str], lower: Sequence[str], gaps: Sequence[str], i: int
) -> Iterator[tuple[str, Iterable[int]]]:
    """The rules of months, editors and listed words that match a token, and their tokens."""
    word, is_capital = lower[i], words[i][0].isupper()
    if word in _MONTHS and is_capital and (word != "may" or _is_year(lower, i + 1)):
        yield "month", _extend(words, gaps, i)
    elif word in ("editor", "editors", "eds", "edited") or (word == "ed" and "".join(lower[i + 1 : i + 2]) in ".)"):
        yield "editors", (i,)
    for name, listed in _LISTS.items():
        if word in listed and (words[i].isupper() if word in _CAPITALS_ONLY else is_capital or name == "state"):
            yield name, (i,)


def _find_number(lower: Sequence[str], i: int) -> int | None:
    """The index of the next token, after an optional full stop, if it is a number."""
    index = i + 2 if lower[i + 1 : i + 2] == ["."] else i + 1
    return index if index < len(lower) and lower[index][0].isdigit() else None


def _is_range(words: Sequence[str], i: int) -> bool:
    """True if two numbers with a dash between them begin here."""
    index = i + 1
    while index < len(words) and words[index] in "-–—":
        index += 1
    return i + 1 < index < len(words) and words[index].isdigit() and len(words[index]) <= 5


def _find_pages_end(words: Sequence[str], start: int) -> int:
    index = start
    while index < len(words) and (words[index].isdigit() or words[index] in ".-–—"):
        index += 1
    return index


def _is_year(lower: Sequence[str], i: int) -> bool:
    return i < len(lower) and _YEAR.fullmatch(lower[i]) is not None


def _extend(words: Sequence[str], gaps: Sequence[str], i: int) -> range:
    """The range of a token and the brackets and full stops that touch it."""
    first = i - 1 if i and words[i - 1] == "(" and gaps[i] == GLUED else i
    last = i + 1
    while last < len(words) and gaps[last] == GLUED and words[last] in ").,":
        last += 1
    return range(first, last)


def _find_names(words: Sequence[str], gaps: Sequence[str]) -> range:
    """The names that a citation begins with: capitalised words and particles, up to a break, if one is an initial."""
    end, last = 0, 0
    while end < len(words) and (words[end][0].isupper() or words[end] in _PARTICLES):
        if gaps[end] == BREAK and not _is_initial(words, end - 2):
            last = end
        end += 1
    initials = [i for i in range(end) if _is_initial(words, i)]
    if not initials:
        return range(0)
    if end < len(words) and gaps[end] != BREAK and words[end] not in (*_OPENING, "("):
        end = max(last, initials[-1] + 2)
    return range(end)


def _is_initial(words: Sequence[str], i: int) -> bool:
    return i >= 0 and len(words[i]) == 1 and words[i].isupper() and words[i + 1 : i + 2] == ["."]


def _find_quotation(words: Sequence[str]) -> range:
    """The first quotation of at least three words, its marks included."""
    for i, word in enumerate(words):
        if word in _OPENING:
            closing = _OPENING[word]
            start = i + 2 if word == "`" and words[i + 1 : i + 2] == ["`"] else i + 1
            for end in range(start + 3, len(words)):
                if words[end] in (closing, '"'):
                    is_double = words[end] == "'" and words[end + 1 : end + 2] == ["'"]
                    return range(i, end + 1 + is_double)
            return range(0)
    return range(0)
