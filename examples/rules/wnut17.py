"""Rules for WNUT-17: rare names of six types in tweets, many of them in lower case. Handles are no names.

Their author saw about 110 training sentences besides the first 50.
"""

import lists

from spen_rules import lexicon, pattern, rule

OTHER_CORPORA = ("data:ner/gum/train.conll", "data:ner/wikigold/train.conll", "data:ner/btc/btc.train")
CORPORATIONS = lists.COMPANIES | lists.NETWORKS | lists.MEDIA
GROUPS = lists.TEAMS | lists.BANDS | lists.INSTITUTIONS


def read_clear(kind):
    return lists.pick_clear(lists.read_all(OTHER_CORPORA, kind))


def join_hashtags(phrases):
    """Returns hashtags of phrases: "#StarWars"."""
    return {"#" + phrase.replace(" ", "") for phrase in phrases if len(phrase) > 4}


# ---- lists: names that are clear in any case first

lexicon("person", lists.pick_clear(lists.FAMOUS_PEOPLE), weight=2.0, ignore_case=True)
lexicon("location", lists.pick_clear(lists.PLACES), weight=1.5, ignore_case=True)
lexicon("corporation", lists.pick_clear(CORPORATIONS), weight=1.5, ignore_case=True)
lexicon("group", lists.pick_clear(GROUPS), weight=1.5, ignore_case=True)
lexicon("product", lists.pick_clear(lists.PRODUCTS), weight=1.5, ignore_case=True)
lexicon("creative-work", lists.pick_clear(lists.WORKS), weight=1.5, ignore_case=True)
lexicon("person", lists.pick_clear(lists.FIRST_NAMES), ignore_case=True)
lexicon("person", {name + "s" for name in lists.pick_clear(lists.FAMOUS_PEOPLE)}, weight=0.8)  # "Obamas speech"
lexicon("location", lists.PLACES - lists.pick_clear(lists.PLACES), weight=0.8)
lexicon("person", read_clear("PER"), weight=0.7)
lexicon("location", read_clear("LOC"), weight=0.7)
lexicon("group", read_clear("ORG") - CORPORATIONS, weight=0.4)
lexicon("location", join_hashtags(lists.PLACES), weight=1.5, ignore_case=True)
lexicon("group", join_hashtags(lists.TEAMS | lists.BANDS), weight=1.5, ignore_case=True)
lexicon("creative-work", join_hashtags(lists.WORKS), weight=1.5, ignore_case=True)
rule("person", weight=0.6)(lists.find_common_first_names)


# ---- the form of a name

rule("person", weight=2.5)(lists.find_full_names)


@rule("person", weight=1.5)
def titled(words):
    for start, end, count in lists.find_titled(words):
        yield start + count, end


@rule("person", weight=1.5)
def lower_case_names(words):
    """A first name and a word that isn't common, both in lower case."""
    for at, word in enumerate(words[:-1]):
        after = words[at + 1]
        is_plain = after.isalpha() and len(after) > 3 and (word + after).islower()
        if word.title() in lists.FIRST_NAMES and is_plain and not lists.is_common(word) and not lists.is_common(after):
            yield at, at + 2


@rule("corporation", weight=2.5)
def companies(words):
    return lists.find_ending(words, lists.CORPORATION_HEADS)


@rule("group", weight=2.5)
def groups(words):
    return lists.find_ending(words, lists.GROUP_HEADS)


@rule("location", weight=2.5)
def places(words):
    """Buildings and schools are locations here."""
    return lists.find_ending(words, lists.PLACE_HEADS | lists.SCHOOL_HEADS)


pattern("location", r"(?<=[a-z] )[A-Z][a-z]+ , [A-Z]{2}\b", weight=1.5)  # Austin , TX
pattern("product", r"(iPhone|iPad|iPod|Galaxy|Xbox|Windows|Android) ?\d+\w?", weight=2.5, ignore_case=True)


# ---- what stands beside a name: weak evidence for words that are on no list


@rule("location", weight=0.9)
def inside_places(words):
    return set(lists.find_after(words, {"in", "near", "visiting", "across"})) & set(lists.find_unknown(words))


@rule("location", weight=0.4)
def after_prepositions(words):
    return set(lists.find_after(words, {"at", "from", "to"})) & set(lists.find_unknown(words))


@rule("creative-work", weight=0.9)
def after_works(words):
    cues = {"watching", "watched", "movie", "film", "album", "song"}
    return () if lists.has_free_case(words) else lists.find_after(words, cues)


pattern("corporation", r"[A-Z][a-z]+[A-Z]\w+", weight=0.4)  # two words in one: FedEx


@rule("person", weight=0.7)
def before_verbs(words):
    cues = lists.PERSON_VERBS | {"'s", "is", "was", "has"}
    return set(lists.find_before(words, cues)) & set(lists.find_unknown(words, at_start=True))


@rule("group", weight=0.8)
def before_company_verbs(words):
    return () if lists.has_free_case(words) else lists.find_before(words, lists.ORGANISATION_VERBS)


rule("person", weight=0.2)(lists.find_unknown)
rule("location", weight=0.7)(lists.find_destinations)


# ---- no names

lexicon("O", lists.CALENDAR | {"Happy New Year", "New Year", "Merry Christmas", "Good Morning"}, weight=2.0)
pattern("O", r"(https?://\S+|www\.\S+|@\S*|RT)", weight=3.0)
