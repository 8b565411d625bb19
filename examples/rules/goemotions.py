"""Keyword rules for GoEmotions: 28 labels of Reddit comments, 27 emotions and `neutral`.

The rules come from general knowledge of English and from the first 50 training texts.
They were not tuned on any others.
"""

import re

from spen_rules import lexicon, pattern, rule

NEGATION = r"(?:(?<!\w)(?:not|never|no|cannot|cant|dont|isnt|wasnt)|n['’]t)"
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
emotional = []  # one regular expression per lexicon and pattern; the rules for `neutral` search them


def words(label, phrases, weight=1.0, negatable=True):
    """Registers a lexicon and, if `negatable`, a rule that cancels it where all its phrases are negated."""
    phrases = sorted({variant for phrase in phrases for variant in (phrase, phrase.replace("'", "’"))})
    expression = rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)"
    emotional.append(expression)
    lexicon(label, phrases, weight=weight, ignore_case=True)
    if not negatable:
        return
    phrase = re.compile(expression, re.IGNORECASE)
    negated_phrase = re.compile(rf"{NEGATION}\s+(?:[\w'’]+\s+)?{expression}", re.IGNORECASE)

    def negated(text):
        return bool(negated_phrase.search(text)) and not phrase.search(negated_phrase.sub(" ", text))

    negated.__name__ = f"negated_{label}_{phrases[0]}".replace(" ", "_")
    rule(against=label, weight=weight)(negated)


def regex(label, expression, weight=1.0):
    """Registers a pattern that ignores case."""
    emotional.append(expression)
    pattern(label, expression, weight=weight, ignore_case=True)


# fmt: off
# Positive emotions
words("admiration", ["amazing", "awesome", "beautiful", "beautifully", "brilliant", "excellent", "fantastic",
                     "gorgeous", "impressive", "incredible", "stunning", "talented", "wonderful", "well done",
                     "good job", "great job", "nice job", "good work", "great work", "congrats",
                     "congratulations"], weight=2.0)
words("admiration", ["great", "the best", "perfect", "nice", "cool", "cute", "adorable", "lovely", "legend", "hero",
                     "so good", "really good", "very good", "respect", "genius", "masterpiece", "underrated"])
words("amusement", ["lol", "lmao", "lmfao", "rofl", "hilarious", "funny", "funniest", "laughing", "laughed",
                    "made me laugh"], weight=2.0)
regex("amusement", r"\b(?:ha){2,}h?\b|\b(?:he){2,}\b|[😂🤣😆😹]", weight=2.0)
words("approval", ["agree", "agreed", "exactly", "absolutely", "definitely", "indeed", "makes sense", "good point",
                   "fair point", "fair enough", "good idea", "well said", "you're right", "you are right", "is right",
                   "so true", "it's true", "that's true", "i support"])
regex("approval", r"^\W*(?:yes|yep|yup|yeah|true|correct|right)\b")
words("caring", ["take care", "stay safe", "stay strong", "be careful", "hang in there", "here for you", "be safe",
                 "get well", "feel better", "hugs", "be kind", "not alone", "talk to someone", "get help"], weight=2.0)
regex("caring", r"\b(?:don['’]?t|no need to) worry\b|\b(?:right|best) for (?:you|your \w+)\b|\bhope (?:you|he|she|they)"
                r"(?:['’]re|['’]s| are| is) (?:ok|okay|all ?right|safe|fine|well)\b|\bsorry (?:you|to hear)\b")
words("desire", ["i wish", "we wish", "wish i", "i want", "i need", "we need", "i'd like", "i would like", "i crave",
                 "i'd love", "i would love", "dying to", "desire"])
words("excitement", ["excited", "exciting", "thrilled", "hyped", "stoked", "pumped", "woohoo", "can't wait",
                     "cant wait", "looking forward"], weight=2.0)
words("gratitude", ["thank you", "thanks", "thank u", "thankyou", "thx", "ty", "appreciate", "appreciated", "grateful",
                    "thankful"], weight=3.0, negatable=False)
words("joy", ["happy", "happily", "happier", "happiness", "glad", "delighted", "joy", "joyful", "yay", "enjoy",
              "enjoyed", "enjoying", "made my day", "pleased", "fun", "merry christmas"], weight=1.5)
regex("joy", r"[😀😃😄😁😊☺]|[:=]-?\)|(?<!\w)[:=]-?D(?!\w)")
words("love", ["love", "loved", "loves", "loving", "adore", "in love", "my favorite", "my favourite"], weight=2.0)
regex("love", r"<3|[❤♥😍🥰😘💕💖💗]")
words("optimism", ["hope", "hopes", "hopefully", "hoping", "hopeful", "optimistic", "fingers crossed", "good luck",
                   "best of luck"], weight=2.0)
regex("optimism", r"(?:['’]ll|\bwill|\bgonna|\bgoing to) (?:all )?(?:be|get) (?:just )?"
                  r"(?:fine|ok|okay|good|great|better|all ?right|worth it)\b")
words("pride", ["proud", "proudly", "pride", "proudest"], weight=2.0)
words("relief", ["relieved", "relief", "phew", "thank god", "thank goodness", "thank heavens", "glad i didn't",
                 "at last", "dodged a bullet", "glad it's over", "glad that's over"], weight=2.0)

# Negative emotions
words("anger", ["fuck", "fucking", "fucked", "fuckers", "motherfucker", "asshole", "assholes", "bastard", "bastards",
                "angry", "furious", "rage", "outraged", "pissed", "hate", "hated", "hates", "shut up", "screw you"])
words("annoyance", ["annoying", "annoyed", "annoys", "irritating", "stupid", "stupidly", "idiot", "idiots", "idiotic",
                    "moron", "morons", "dumb", "dumbass", "bullshit", "shitty", "ridiculous", "ffs", "tired of",
                    "sick of", "fed up", "frustrating", "frustrated", "wankers", "crap", "damn it", "pathetic"])
words("disappointment", ["disappointed", "disappointing", "disappointment", "unfortunately", "let down",
                         "underwhelming", "what a shame", "too bad", "sucks", "sucked", "pity", "ruined", "overrated",
                         "mediocre"])
words("disapproval", ["disagree", "disagreed", "nope", "wrong", "unacceptable", "inappropriate", "bad idea",
                      "shouldn't be", "should not be", "that's not", "i don't like", "not okay", "not ok"])
regex("disapproval", r"^\W*no\b(?! (?:idea|one|problem|worries|way|clue))|\b(?:do|would)n['’]?t (?:agree|like|support"
                     r"|trust|recommend|think)\b")
words("disgust", ["disgusting", "disgusted", "disgust", "gross", "nasty", "ew", "eww", "ewww", "vile", "repulsive",
                  "revolting", "yuck", "yikes", "sickening", "makes me sick", "vomit", "puke", "filthy"], weight=1.5)
words("embarrassment", ["embarrassing", "embarrassed", "embarrassment", "awkward", "ashamed", "humiliating", "cringe",
                        "cringey", "cringy", "facepalm", "blushing"], weight=2.0)
regex("embarrassment", r"\bi (?:feel|felt) (?:so |really )?(?:dumb|stupid|silly|like an idiot)\b", weight=2.0)
words("fear", ["scared", "scares", "scary", "afraid", "terrified", "terrifying", "fear", "frightening", "frightened",
               "horrifying", "creepy", "nightmare", "nightmares", "threatened", "threatening", "spooky"], weight=1.5)
words("grief", ["rest in peace", "passed away", "condolences", "mourning", "grieving",
                "sorry for your loss"], weight=2.0)
regex("grief", r"(?-i:\bRIP\b)", weight=2.0)
regex("grief", r"\b(?:he|she|they|dad|mom|mother|father|brother|sister) died\b", weight=0.5)
words("nervousness", ["nervous", "anxious", "anxiously", "anxiety", "worried", "worries me", "worrying", "stressed",
                      "uneasy", "panicking", "panic attack", "on edge"], weight=1.5)
words("remorse", ["sorry", "apologize", "apologise", "apologies", "my bad", "regret", "regrets", "forgive me", "guilty",
                  "my fault"], weight=2.0)
words("sadness", ["sad", "sadly", "sadder", "saddest", "saddens", "sadness", "crying", "cried", "cry", "tears",
                  "depressed", "depressing", "heartbroken", "heartbreaking", "miserable", "lonely", "tragic", "painful",
                  "died", "sorry for your loss", "sorry to hear"], weight=1.5)
regex("sadness", r"\bi(?:['’]ll| will| really)? miss (?:you|him|her|it|them|my|the|those|this|when)\b|[😢😞😔💔]"
                 r"|(?<!\w):'?-?\((?!\w)")

# Emotions that are neither positive nor negative
words("confusion", ["confused", "confusing", "confuses", "confusion", "puzzled", "baffled", "no idea", "not sure",
                    "huh", "no clue", "no sense"], weight=1.5, negatable=False)
regex("confusion", r"\b(?:do|did|does|can|could)(?:n['’]?t|not| not) (?:\w+ )?(?:understand|get it|get why|get how"
                   r"|see how|know (?:what|why|how|if)\b)", weight=1.5)
words("curiosity", ["curious", "wonder", "wondering", "curiosity", "intrigued", "anyone know"], weight=1.5)
words("realization", ["realize", "realized", "realise", "realised", "realizing", "realization", "just noticed",
                      "turns out", "now i see", "now i know", "never thought",
                      "didn't know"], weight=1.5, negatable=False)
regex("realization", r"(?-i:\bTIL\b)", weight=1.5)
words("surprise", ["wow", "woah", "whoa", "omg", "surprised", "surprising", "surprisingly", "surprise", "shocked",
                   "shocking", "astonished", "unbelievable", "unexpected", "can't believe", "cant believe", "no way",
                   "holy shit", "holy crap", "holy cow", "mind blown"], weight=1.5, negatable=False)
regex("surprise", r"\?!|!\?|[😮😱😲🤯]", weight=0.5)

# fmt: on
# Rules that combine words
EMOTION = re.compile("|".join(emotional), re.IGNORECASE)
PRAISE = re.compile(r"\b(?:good|great|awesome|amazing|love|loved|beautiful|best|hilarious|funny|nice)\b", re.IGNORECASE)
LOVE = re.compile(r"\b(?:love[ds]?|loving)\b", re.IGNORECASE)
QUESTION = re.compile(r"\b(?:what|why|how|who|where|when|which|you|your|anyone|is it)\b[^.?!]*\?", re.IGNORECASE)


@rule("curiosity")
def asks(text):
    return bool(QUESTION.search(text))


pattern("confusion", r"^\W*(?:what|why|how come)\b[^.?!]*\?", weight=0.5, ignore_case=True)
pattern(
    "disapproval",
    rf"{NEGATION}\s+(?:\w+\s+)?(?:good|great|funny|cool|fair|true|worth)\b",
    weight=0.5,
    ignore_case=True,
)
pattern(
    "disappointment",
    rf"{NEGATION}\s+(?:\w+\s+)?(?:happy|excited|fun|enjoy|enjoying|impressed)\b",
    weight=0.5,
    ignore_case=True,
)


@rule(against="anger", weight=1.5)
def swears_in_praise(text):
    """A swear word next to praise, as in "fucking awesome"."""
    return bool(re.search(r"\bfuck", text, re.IGNORECASE) and PRAISE.search(text))


@rule(against="remorse", weight=3.0)
def consoles(text):
    """The "sorry" of sympathy: not for something that the writer did."""
    return bool(re.search(r"\bsorry (?:for your|to hear|you|that (?:you|happened)|about your)", text, re.IGNORECASE))


@rule(against="love", weight=2.0)
def would_love(text):
    """The "love" of a wish, where it is the only one."""
    return bool(re.search(r"(?:['’]d|\bwould) love\b", text, re.IGNORECASE)) and len(LOVE.findall(text)) == 1


@rule("neutral")
def shows_no_emotion(text):
    return not (EMOTION.search(text) or QUESTION.search(text) or EMOJI.search(text) or "!!" in text)


@rule(against="neutral")
def shows_emotion(text):
    return bool(EMOTION.search(text) or EMOJI.search(text))
