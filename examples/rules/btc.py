"""Rules for the Broad Twitter Corpus: PER, LOC and ORG in tweets. Handles and most hashtags are no names."""

import re

import lists

from spen_rules import lexicon, pattern, rule

OTHER_CORPORA = ("data:ner/gum/train.conll", "data:ner/wikigold/train.conll")
ORGANISATIONS = lists.COMPANIES | lists.MEDIA | lists.INSTITUTIONS | lists.TEAMS | lists.BANDS


def read_clear(kind):
    return lists.pick_clear(lists.read_all(OTHER_CORPORA, kind))


# ---- lists: names that are clear in any case first

lexicon("PER", lists.pick_clear(lists.FAMOUS_PEOPLE), weight=2.0, ignore_case=True)
lexicon("LOC", lists.pick_clear(lists.PLACES), weight=1.5, ignore_case=True)
lexicon("ORG", lists.pick_clear(ORGANISATIONS), weight=1.5, ignore_case=True)
lexicon("LOC", lists.PLACES - lists.pick_clear(lists.PLACES), weight=0.8)
lexicon("ORG", ORGANISATIONS - lists.pick_clear(ORGANISATIONS), weight=0.5)
lexicon("PER", lists.pick_clear(lists.FIRST_NAMES), ignore_case=True)
lexicon("PER", {name + "s" for name in lists.pick_clear(lists.FAMOUS_PEOPLE)}, weight=0.8)  # "Obamas speech"
lexicon("PER", read_clear("PER"), weight=0.7)
lexicon("LOC", read_clear("LOC"), weight=0.7)
lexicon("ORG", read_clear("ORG"), weight=0.7)
lexicon("O", lists.WORKS | lists.PRODUCTS, weight=1.5)
rule("PER", weight=0.6)(lists.find_common_first_names)


@rule("ORG", weight=1.5)
def stretched_teams(words):
    """Teams with letters repeated: "Arsenaaaal"."""
    for at, word in enumerate(words):
        short = re.sub(r"(.)\1{2,}", r"\1", word)
        if short != word and short.title() in lists.TEAMS:
            yield at, at + 1


# ---- the form of a name

rule("PER", weight=2.5)(lists.find_full_names)


@rule("PER", weight=1.5)
def titled(words):
    for start, end, count in lists.find_titled(words):
        yield start + count, end


@rule("PER")
def surnames(words):
    for start, end in lists.find_unknown(words):
        if words[end - 1] in lists.SURNAMES:
            yield start, end


@rule("ORG", weight=2.5)
def schools_and_companies(words):
    return lists.find_ending(words, lists.SCHOOL_HEADS | lists.CORPORATION_HEADS | lists.GROUP_HEADS)


@rule("LOC", weight=2.0)
def streets_and_rivers(words):
    return lists.find_ending(words, lists.PLACE_HEADS)


pattern("LOC", r"(North|South|East|West|Central|Downtown|Upper|Lower) [A-Z][a-z]{3,}", weight=0.8)
pattern("LOC", r"(?<=[a-z] )[A-Z][a-z]+ , [A-Z]{2}\b", weight=1.5)  # Austin , TX


# ---- what stands beside a name: weak evidence for words that are on no list


@rule("LOC", weight=0.9)
def inside_places(words):
    return set(lists.find_after(words, {"in", "near", "visiting", "across"})) & set(lists.find_unknown(words))


@rule("LOC", weight=0.4)
def after_prepositions(words):
    return set(lists.find_after(words, {"at", "from", "to"})) & set(lists.find_unknown(words))


@rule("PER", weight=0.7)
def before_verbs(words):
    cues = lists.PERSON_VERBS | {"'s", "is", "was", "has"}
    return set(lists.find_before(words, cues)) & set(lists.find_unknown(words, at_start=True))


@rule("PER", weight=0.5)
def after_people(words):
    cues = {"with", "by", "ask", "tell", "met", "love", "hi", "thanks"}
    return set(lists.find_after(words, cues)) & set(lists.find_unknown(words))


@rule("ORG", weight=0.8)
def before_company_verbs(words):
    return () if lists.has_free_case(words) else lists.find_before(words, lists.ORGANISATION_VERBS)


rule("PER", weight=0.3)(lists.find_unknown)
rule("LOC", weight=0.7)(lists.find_destinations)


@rule("ORG", weight=0.6)
def opponents(words):
    """Teams in results: "Villa 2-1 Fulham", "Bulls vs Heat"."""
    for at, word in enumerate(words[1:-1], 1):
        if word.lower() in {"vs", "v", "vs."} or re.fullmatch(r"\d\d?-\d\d?", word):
            yield from ((i, i + 1) for i in (at - 1, at + 1) if lists.is_capitalised(words[i]))


# ---- no names

lexicon("O", lists.CALENDAR | {"Happy New Year", "New Year", "Merry Christmas", "Good Morning"}, weight=2.0)
pattern("O", r"(https?://\S+|www\.\S+|@ ?\w+|RT)", weight=3.0)
pattern("O", r"[A-Z]\w*[a-z][A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*", weight=0.5)  # handles and phrases: JoeOfficial
