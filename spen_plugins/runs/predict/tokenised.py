"""Raw text as a task's examples, tokenised by spaCy's rules; and predicates of sentences, predicted by another run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from spen_plugins.batch import TextInputs
from spen_plugins.data.catalogue import locate
from spen_plugins.data.formats import JSON_LINES, Head, is_prose, read_head
from spen_plugins.data.records import read_json_lines
from spen_plugins.data.sentences.offset_items import blank_tokeniser
from spen_plugins.data.sentences.roles import FileExamples
from spen_plugins.data.sentences.tagged import has_no_columns
from spen_plugins.data.text import RawText, decoded, read_lines, recode_file, shorten, split_lines
from spen_plugins.data.texts.words import is_mostly_unspaced
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.predict.characters import Place, add_characters, split_paragraphs
from spen_plugins.runs.predict.predictor import Predictor, load
from spen_plugins.task import Task
from spen_plugins.task_parts import ReadsText, read_inputs

PREDICATE = "B-V"
ROLES = "spen_srl"
"""The spaCy component whose installed model has a run that finds predicates, in the folder `predicates`."""
_PREDICATES_ADVICE = (
    "name a run that finds them, --predicates RUN (spen-run predicates trains one), or install the plugin that "
    "provides one: pip install spen-en"
)
_EXAMPLE_LINE = '{"sentence": "Anna left."}'


class TokenisedText:
    """A `RawText`, or sentences that lack only predicates.

    Attributes:
        text: the text.
        lines: the texts of lines of JSON, in place of the text.
        words: the words of each sentence, in place of the text.
        named: code of the language that the user named, if any.

    Args:
        text: the text.
        language: code of the language whose spaCy tokeniser is used, if the user named one.
        finder: run folder of a tagger of predicates; None: that of an installed plugin.
        device: the tagger's device.
        default: code of the runs' own language, which is used if `language` is None.
    """

    def __init__(
        self,
        text: str,
        language: str | None = None,
        finder: Path | None = None,
        device: str = "cpu",
        default: str = "en",
    ) -> None:
        self.text = text
        self.lines: Sequence[str] | None = None
        self.words: Sequence[Sequence[str]] | None = None
        self._places: list[Place] = []
        self.named, self._language, self._finder, self._device = language, language or default, finder, device
        self._is_tokenised = self._was_asked = False
        self._installed: tuple[str, str] | None = None
        self._sentences_without_predicates = 0

    def describe(self) -> str:
        """A sentence on the form of the text."""
        form = "raw text" if self.lines is None else "JSONL of raw texts (sentence)"
        division = f"tokenised by spaCy's rules for {self._language}" if self._is_tokenised else "one text per line"
        return f"read as {form}, {division}"

    def notes(self) -> list[str]:
        """Notes for the user, after the task has read its input: on text without spaces, and on predicates."""
        count = self._sentences_without_predicates
        source = "raw text" if self.words is None else "the file"
        predicate_notes = [f"no predicate found in {count} sentence{'s' * (count > 1)} of {source}"] if count else []
        notes = note_unspaced(self.text, self.named) if self._is_tokenised and self._language == "en" else []
        if self._installed is not None:
            package, language = self._installed
            advice = f"predicates are found by {package}; --predicates RUN names a model of another language or domain"
            predicate_notes = [f"{note}: {advice}" for note in predicate_notes]
            if self._language != language:
                notes.append(f"warning: the text is in {self._language}, but {advice}")
        return [*notes, *predicate_notes]

    def check_used(self) -> None:
        """Raise a ConfigError, after the task has read its input, if the task did not need the language or finder."""
        if self.named is not None and not self._is_tokenised:
            raise ConfigError(f"--language {self.named}: found no raw text for spaCy to tokenise here; omit it")
        if self._finder is not None and not self._was_asked:
            raise ConfigError(f"--predicates {self._finder}: found no sentences here that need predicates; omit it")

    def sentences(self) -> list[list[str]]:
        """The words of each sentence; in raw text, a blank line also ends a sentence."""
        if self.words is not None:
            return [list(words) for words in self.words]
        self._is_tokenised = True
        texts = [self.text] if self.lines is None else self.lines
        parts = [(part, (start, i)) for i, text in enumerate(texts, 1) for part, start in split_paragraphs(text)]
        sentences: list[list[str]] = []
        self._places = []
        for doc, (start, line) in self._tokeniser.pipe(parts, as_tuples=True):
            for span in doc.sents:
                if tokens := [token for token in span if not token.is_space]:
                    sentences.append([token.text for token in tokens])
                    ends = [(start + token.idx, start + token.idx + len(token)) for token in tokens]
                    self._places.append(Place(ends, None if self.lines is None else line))
        if not sentences:
            raise DataError("text", None, "no word", "at least one")
        return sentences

    def located(self, predictions: Sequence[Any], examples: Sequence[Any]) -> Sequence[Any]:
        """Predictions with their characters, by `add_characters`; unchanged if no text was tokenised."""
        if not self._places:
            return predictions
        rows = examples.rows if isinstance(examples, FileExamples) else range(len(self._places))
        return [add_characters(answer, self._places[row]) for answer, row in zip(predictions, rows, strict=True)]

    def predicates(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The positions of each sentence's predicates, from 0."""
        self._was_asked = True
        run, package = _find_installed_run() if self._finder is None else (self._finder, None)
        finder = load(run, self._device)
        if PREDICATE not in getattr(finder.task.space, "tags", ()):
            raise ConfigError(
                f"--predicates {finder.folder.path}: its tags have no predicates; `spen-run predicates` trains a run"
            )
        self._installed = package and (package, getattr(finder.task.config, "language", "en"))
        predictions = finder.predict([{"words": list(words)} for words in sentences])
        predicates = [[i for i, tag in enumerate(prediction["tags"]) if tag == PREDICATE] for prediction in predictions]
        self._sentences_without_predicates = 0 if any(predicates) else len(predicates)
        return predicates

    @cached_property
    def _tokeniser(self) -> Any:
        nlp = blank_tokeniser(self._language, "task.language" if self.named is None else "--language")
        nlp.add_pipe("sentencizer")
        return nlp


def note_unspaced(text: str, language: str | None) -> list[str]:
    """A warning if a text without spaces between words is tokenised as English because no language is given."""
    if language is not None or not is_mostly_unspaced(text):
        return []
    return [
        "warning: the text has no spaces between words but is tokenised as English; give its language (--language zh, "
        "ja, th, …)"
    ]


def read_standard_input(stream: BinaryIO) -> str:
    """Raw text from standard input."""
    source = "standard input"
    text = decoded(source, recode_file(source, stream.read()))
    first = next((line for line in split_lines(text) if line.strip()), "")
    if "\t" in first or first.lstrip()[:1] in ("{", "["):
        raise DataError(source, 1, shorten(first), "raw text; other formats are read from a file")
    return text


def argument(text: str) -> str:
    """Raw text from a command line; raises a DataError for surrogates, Python's form of bytes that are not UTF-8."""
    return decoded("--text", text.encode("utf-8", "surrogateescape"))


def read_text(task: Task, raw: RawText) -> Sequence[Any]:
    """Examples of raw text; raises a ConfigError if the task reads no raw text."""
    if not isinstance(task, ReadsText):
        raise ConfigError("found raw text, which the run's task cannot read; pass a file")
    return task.read_text(raw)


def read(predictor: Predictor, file: Path, raw: TokenisedText) -> tuple[Sequence[Any], list[str]]:
    """Examples of a file in the task's format, or of raw text if it looks like that; and notes for the user.

    If the task has one example per predicate and the file marks no predicates, they are predicted as for raw text.
    If the text can't be read either, the error names the line.
    """
    task, path = predictor.task, locate(str(file))
    error: DataError | None = None
    if (lines := _read_texts(task, path)) is not None:
        raw.lines, raw.text = lines, "\n".join(lines)
    elif raw.named and _is_raw(task, path, has_no_columns) and not isinstance(task.inputs, TextInputs):
        raw.text = "\n".join(read_lines(path))
    else:
        try:
            examples = read_inputs(task, str(file))
        except DataError as read_error:
            if not _is_raw(task, path):
                raise
            error, raw.text = read_error, "\n".join(read_lines(path))
        else:
            notes = list(task.notes())
            if not isinstance(examples, FileExamples) or examples or not examples.words:
                return examples, notes
            raw.words = examples.words
            notes.append(f"{file}: found no marked predicates; they are predicted as for raw text")
            return read_text(task, raw), notes
    try:
        examples = read_text(task, raw)
    except DataError as text_error:
        if error is not None and text_error.line is None:
            raise error from None
        raise DataError(file, text_error.line, text_error.found, text_error.expected) from None
    return examples, [f"{file}: {raw.describe()}"]


def _read_texts(task: Task, path: Path) -> list[str] | None:
    """The texts of JSON lines such as `{"sentence": "Anna left."}`, AllenNLP's inputs, for a task that reads words;
    None for other files and tasks."""
    reads_words = isinstance(task, ReadsText) and not isinstance(task.inputs, TextInputs)
    if not reads_words or not path.is_file() or not JSON_LINES.fits(read_head(path)):
        return None
    try:
        _, first = next(read_json_lines(path, _EXAMPLE_LINE, lambda value: value))
    except DataError:  # the task's reader reports the error
        return None
    if not isinstance(first, Mapping) or "sentence" not in first or {"words", "tokens"} & first.keys():
        return None
    return [text for _, text in read_json_lines(path, _EXAMPLE_LINE, _extract_text)]


def _extract_text(item: Any) -> str:
    text = item.get("sentence") if isinstance(item, Mapping) else None
    if not isinstance(text, str):
        raise DataError("input", None, f"{item!r:.80}", f"{_EXAMPLE_LINE}, as in the file's first line")
    return text


def _is_raw(task: Task, path: Path, fits: Callable[[Head], bool] = is_prose) -> bool:
    if not isinstance(task, ReadsText) or not path.is_file() or path.suffix.lower() == ".csv":
        return False  # the task's reader reports errors of CSV files
    return fits(read_head(path))


def _find_installed_run() -> tuple[Path, str]:
    """The run of an installed plugin that finds predicates, and the name of the plugin's package."""
    registry = Registry()
    plugins = registry.providers("model").get(ROLES, [])
    if not plugins:
        notes = "".join(f"\nnote: {plugin.error}" for plugin in registry.plugins() if plugin.error is not None)
        raise ConfigError(f"the input has no predicates marked; {_PREDICATES_ADVICE}{notes}")
    if len(plugins) > 1:
        raise ConfigError(f"several plugins find predicates ({', '.join(plugins)}); name a run: --predicates RUN")
    type_ = f"{plugins[0]}.{ROLES}"
    return Path(registry.resolve("model", type_)()) / "predicates", registry.plugin(type_).distribution
