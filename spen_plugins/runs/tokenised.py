"""Raw text as a task's examples: tokenised by spaCy's rules, predicates found by another run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from spen_plugins.builtin.tasks.text_words import is_mostly_unspaced
from spen_plugins.datasets import locate
from spen_plugins.errors import ConfigError, DataError, PluginError
from spen_plugins.readers.formats import head_of
from spen_plugins.readers.prose import is_prose
from spen_plugins.readers.text import LARGEST, decoded, read_lines, shorten, split_lines
from spen_plugins.registry import Registry
from spen_plugins.runs.predictor import Predictor, load
from spen_plugins.task import Task

PREDICATE = "B-V"
ROLES = "spen_srl"
"""The spaCy component whose installed model has a run that finds predicates, in the folder `predicates`."""
_HOW = (
    "name a run that finds them, --predicates RUN (spen-run predicates trains one), or install the plugin that "
    "has one, pip install spen-en"
)


class TokenisedText:
    """A `RawText`.

    Args:
        text: the text.
        language: code of the language whose spaCy tokeniser is used; None: English.
        finder: run folder of a tagger of predicates; None: that of an installed plugin.
        device: its device.
    """

    def __init__(self, text: str, language: str | None = None, finder: Path | None = None, device: str = "cpu") -> None:
        self.text = text
        self._language, self._finder, self._device = language, finder, device
        self._tokenised = self._asked = False
        self._without_predicates = 0

    def said(self) -> str:
        """How the text was read, for the user."""
        return "read as raw text, " + ("tokenised by spaCy's rules" if self._tokenised else "a text a line")

    def notes(self) -> list[str]:
        """Sentences for the user, after the task has read its input: a warning, and that no predicate was found."""
        count = self._without_predicates
        found = [f"no predicate found in {count} sentence{'s' * (count > 1)} of raw text"] if count else []
        return [*(note_unspaced(self.text, self._language) if self._tokenised else ()), *found]

    def check_used(self) -> None:
        """Check, after the task has read its input, that it needed what was given here.

        Raises:
            ConfigError: language or finder have no effect.
        """
        if self._language is not None and not self._tokenised:
            raise ConfigError(f"--language {self._language}: found no raw text for spaCy to tokenise here; omit it")
        if self._finder is not None and not self._asked:
            raise ConfigError(f"--predicates {self._finder}: found no raw text to label roles in here; omit it")

    def sentences(self) -> list[list[str]]:
        """The words of each sentence; a blank line ends one, too.

        Raises:
            ConfigError: spaCy is not installed, or does not know the language.
            DataError: there is no word.
        """
        self._tokenised = True
        parts = re.split(r"\n\s*\n", self.text)
        spans = (span for doc in self._tokeniser.pipe(parts) for span in doc.sents)
        found = [words for span in spans if (words := [token.text for token in span if not token.is_space])]
        if not found:
            raise DataError("text", None, "no word", "at least one")
        return found

    def predicates(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The words that are predicates, from 0, of each sentence.

        Raises:
            ConfigError: no run finds them.
        """
        self._asked = True
        finder = load(_installed() if self._finder is None else self._finder, self._device)
        if PREDICATE not in getattr(finder.task.space, "tags", ()):
            raise ConfigError(
                f"--predicates {finder.folder.path}: it tags no predicates; `spen-run predicates` trains one"
            )
        tagged = finder.predict([{"words": list(words)} for words in sentences])
        found = [[i for i, tag in enumerate(one["tags"]) if tag == PREDICATE] for one in tagged]
        self._without_predicates = 0 if any(found) else len(found)
        return found

    @cached_property
    def _tokeniser(self) -> Any:
        try:
            import spacy
        except ImportError as error:
            raise ConfigError(
                "raw text is tokenised by spaCy, which is not installed: pip install 'spen-plugins[spacy]'; or give a "
                "file of words"
            ) from error
        try:
            nlp = spacy.blank(self._language or "en")
        except (ImportError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(
                f"--language {self._language}: spaCy has no tokeniser for it (en, de, …; xx for any): {reason}"
            ) from error
        nlp.add_pipe("sentencizer")
        return nlp


def note_unspaced(text: str, language: str | None) -> list[str]:
    """A warning if a text has no blanks between words, and no language is named, so that it is tokenised as English."""
    if language is not None or not is_mostly_unspaced(text):
        return []
    return [
        "warning: the text has no blanks between words, and is tokenised as English; name its language (--language zh, "
        "ja, th, …)"
    ]


def standard_input(stream: BinaryIO) -> str:
    """Raw text from standard input.

    Raises:
        DataError: it is too large, not UTF-8, or no raw text but lines of cells or of JSON, which a file could hold.
    """
    where = "standard input"
    try:
        data = stream.read(LARGEST + 1)
    except OSError as error:  # it is closed, or a folder
        raise DataError(where, None, f"what can't be read ({error.strerror})", "raw text") from None
    if len(data) > LARGEST:
        raise DataError(where, None, f"more than {LARGEST / 1e9:.1f} GB", "less, as all of it is kept in memory")
    text = decoded(where, data)
    first = next((line for line in split_lines(text) if line.strip()), "")
    if "\t" in first or first.lstrip()[:1] in ("{", "["):
        raise DataError(where, 1, shorten(first), "raw text; other formats are read from a file")
    return text


def argument(text: str) -> str:
    """Raw text from a command line, in which Python keeps bytes that are not UTF-8 as surrogates; a DataError then."""
    return decoded("--text", text.encode("utf-8", "surrogateescape"))


def read(predictor: Predictor, file: Path, raw: TokenisedText) -> tuple[Sequence[Any], list[str]]:
    """Examples of a file in the task's format, or of raw text, if it looks so; and sentences about it for the user.

    Raises:
        DataError: neither.
    """
    task = predictor.task
    try:
        return task.read_inputs(str(file)), list(task.notes())
    except DataError:
        if not _is_raw(task, locate(str(file))):
            raise
    raw.text = "\n".join(read_lines(locate(str(file))))
    examples = task.read_text(raw)
    return examples, [f"{file}: {raw.said()}"]


def _is_raw(task: Task, path: Path) -> bool:
    if type(task).read_text is Task.read_text or not path.is_file() or path.suffix.lower() == ".csv":
        return False  # what a CSV file lacks is said
    return is_prose(head_of(path))


def _installed() -> Path:
    """The run of an installed plugin that finds predicates."""
    registry = Registry()
    plugins = registry.providers("model").get(ROLES, [])
    if not plugins:
        broken = "".join(f"\nnote: {plugin.error}" for plugin in registry.plugins() if plugin.error is not None)
        raise ConfigError(f"raw text has no predicates marked; {_HOW}{broken}")
    types = [f"{plugin}.{ROLES}" for plugin in plugins]
    if len(types) > 1:
        names = ", ".join(sorted(registry.plugin(found).distribution for found in types))
        raise ConfigError(f"several plugins find predicates ({names}); name a run: --predicates RUN")
    try:
        return Path(registry.resolve("model", types[0])()) / "predicates"
    except Exception as error:  # whatever a plugin raises
        raise PluginError(f"the model of {registry.plugin(types[0])} can't be found: {error}") from error
