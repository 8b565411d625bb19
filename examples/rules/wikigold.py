"""Rules for Wikigold: PER, LOC, ORG and MISC in Wikipedia. Nearly all capitals inside a sentence are names."""

import re

import lists

from spen_rules import lexicon, pattern, rule

OTHER_CORPORA = ("data:ner/gum/train.conll", "data:ner/btc/btc.train")
GROUPS = lists.TEAMS | lists.BANDS | lists.INSTITUTIONS | lists.MEDIA | lists.COMPANIES | lists.NETWORKS
WORK_NOUNS = lists.split_words("""
    album albums single singles song songs film films movie novel book series video track tracks game show episode play
""")
ORDINAL = r"\d+(st|nd|rd|th|d)"
BAND_NOUNS = lists.split_words("band bands group label company club team duo trio orchestra organization joined")
PERSON_NOUNS = lists.split_words("by with under brother son wife daughter actor singer writer guitarist member")


# ---- lists

lexicon("PER", lists.FAMOUS_PEOPLE, weight=1.5)
lexicon("LOC", lists.PLACES, weight=1.5)
lexicon("ORG", GROUPS - lists.PLACES, weight=1.2)
lexicon("ORG", {phrase for phrase in GROUPS if " " in phrase}, weight=2.0)
lexicon("MISC", lists.NATIONALITIES, weight=1.8)
lexicon("MISC", lists.WORKS | lists.PRODUCTS, weight=0.8)
lexicon("PER", lists.FIRST_NAMES - lists.PLACES, weight=0.8)
lexicon("PER", lists.read_all(OTHER_CORPORA, "PER"), weight=0.6)
lexicon("LOC", lists.read_all(OTHER_CORPORA, "LOC"), weight=0.6)
lexicon("ORG", lists.read_all(OTHER_CORPORA, "ORG"), weight=0.6)


# ---- the form of a name

rule("PER", weight=2.5)(lists.find_full_names)


@rule("PER", weight=2.5)
def titled(words):
    """A short title is part of the name ("Gen. Grant"); "President" and the like only before it."""
    for start, end, count in lists.find_titled(words):
        yield (start if words[start].endswith(".") else start + count), end


@rule("PER", weight=1.5)
def initials(words):
    """Capitalised words with an initial: "J. R. Hartley"."""
    for start, end in lists.find_runs(words):
        if any(len(word) == 2 and word[1] == "." for word in words[start : end - 1]) and len(words[end - 1]) > 2:
            yield start, end


@rule("ORG", weight=3.0)
def organisations(words):
    return lists.find_ending(words, lists.SCHOOL_HEADS | lists.GROUP_HEADS | lists.CORPORATION_HEADS)


@rule("LOC", weight=2.7)
def streets_and_rivers(words):
    return lists.find_ending(words, lists.PLACE_HEADS)


@rule("MISC", weight=3.0)
def events(words):
    """Events with their number: "Second Battle of Ypres", "2nd Battle of Ypres"."""
    for start, end in lists.find_ending(words, lists.EVENT_HEADS):
        yield (start - 1 if start and re.fullmatch(ORDINAL, words[start - 1]) else start), end


@rule("ORG", weight=0.8)
def numbered(words):
    """An ordinal before a name: "55th Illinois"."""
    for start, end in lists.find_runs(words):
        if start and re.fullmatch(ORDINAL, words[start - 1]):
            yield start - 1, end


pattern("LOC", r"(Lake|Mount|Mt\.|Fort|Camp|Cape|Port|North|South|East|West|Central) [A-Z][a-z]+", weight=1.2)
pattern("LOC", r"(Route|Highway|Interstate|Road) \d+|Washington , D\.? ?C\.?", weight=3.0)
pattern("ORG", ORDINAL + r" ([A-Z]\w* )*(Infantry|Cavalry|Regiment|Brigade|Division|Battalion|Army)", weight=3.0)
pattern("ORG", r"(?<=[Tt]he )\d+(st|nd|rd|th)(?= (was|were|had|has|fought|supported|joined|moved))", weight=0.8)
pattern("ORG", r"(Confederate|Union|Allied|Federal)(?= (army|armies|troops|forces|soldiers|cavalry))", weight=2.5)
pattern("MISC", r"World War (I|II|One|Two)|(First|Second) World War|Cold War|(American )?Civil War", weight=3.0)
pattern("MISC", r"(USS|HMS|RMS|SS) [A-Z][a-z]+", weight=2.5)


# ---- what stands beside a name


@rule("MISC", weight=1.6)
def works(words):
    """Titles after "album" or "songs like", and those that "and" or a comma adds."""
    last = -1
    for start, end in lists.find_runs(words, links=("of", "the")):
        at = start - 1
        while at > 0 and words[at] in {"the", "like", "such", "as", "called", "titled", "entitled", '"'}:
            at -= 1
        if (start and words[at].lower() in WORK_NOUNS) or (start - 1 == last and words[last] in {"and", ","}):
            last = end + words[end].isdigit() if end < len(words) else end
            yield start, last


@rule("MISC", weight=0.8)
def before_works(words):
    return lists.find_before(words, WORK_NOUNS)


@rule("MISC", weight=1.2)
def before_years(words):
    """A title with its year: "Blade Runner ( 1982 )"."""
    for start, end in lists.find_before(words, {"("}, longest=6):
        if words[end + 1 : end + 2] and re.fullmatch("(19|20)[0-9][0-9]", words[end + 1]):
            yield start, end


@rule("ORG", weight=1.6)
def bands(words):
    """A name after "band", with its article."""
    for start, end in lists.find_after(words, BAND_NOUNS):
        yield (start - 1 if words[start - 1] == "The" else start), end


pattern("MISC", r'(?<=" )[A-Z][^"]{0,50}(?= ")', weight=1.4)  # a title in quotation marks


@rule("LOC", weight=0.7)
def after_prepositions(words):
    for start, end in lists.find_after(words, {"in", "at", "near", "from", "of", "to", "through", "toward", "between"}):
        if lists.NATIONALITIES.isdisjoint(words[start:end]):
            yield start, end


@rule("LOC", weight=1.0)
def before_regions(words):
    """The first name of "Albany , New York"."""
    for start, end in lists.find_runs(words):
        if words[end : end + 1] == (",",) and any(" ".join(words[end + 1 : end + n]) in lists.PLACES for n in (2, 3)):
            yield start, end


@rule("PER", weight=0.9)
def before_verbs(words):
    return lists.find_before(words, lists.PERSON_VERBS | {"who", "'s"})


@rule("PER", weight=0.7)
def after_people(words):
    return lists.find_after(words, PERSON_NOUNS)


# ---- the weakest evidence: the number and the shape of capitalised words


@rule("PER", weight=0.5)
def two_or_three_words(words):
    return [(start, end) for start, end in lists.find_runs(words) if 1 < end - start < 4]


@rule("ORG", weight=0.7)
def acronyms(words):
    for at, word in enumerate(words):
        if re.fullmatch("[A-Z]{3,5}", word) and word not in lists.NO_NAMES:
            yield at, at + 1


@rule("PER", weight=0.3)
def single_words(words):
    for start, end in lists.find_runs(words):
        is_inside = not lists.is_start(words, start) and words[start - 1] != "the"
        if is_inside and end - start == 1 and words[start][1:].islower():
            yield start, end


@rule("MISC", weight=0.5)
def odd_words(words):
    """Words with capitals inside, which are more often titles than people: "WALL-E"."""
    for start, end in lists.find_runs(words):
        if end - start == 1 and not lists.is_start(words, start) and not words[start][1:].islower():
            yield start, end


@rule("ORG", weight=0.3)
def single_words_with_article(words):
    for start, end in lists.find_runs(words):
        if end - start == 1 and words[start - 1 : start] == ("the",):
            yield start, end


# ---- no names

lexicon("O", lists.NO_NAMES | lists.TITLES, weight=0.5)


@rule("O", weight=1.0)
def first_words(words):
    """A common word at the start of a sentence."""
    for at, word in enumerate(words):
        if lists.is_start(words, at) and lists.is_common(word):
            yield at, at + 1
