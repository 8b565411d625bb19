"""spaCy's rule-based tokenisers."""

from __future__ import annotations

from typing import Any

from spen_plugins.errors import ConfigError


def blank_tokeniser(language: str, setting: str) -> Any:
    """A pipeline of spaCy that only tokenises; `setting` is where the user named the language, for an error."""
    try:
        import spacy
    except ImportError as error:
        raise ConfigError(
            "raw text is tokenised by spaCy, which is not installed: pip install 'spen-plugins[spacy]'; or give a "
            "file of words"
        ) from error
    try:
        return spacy.blank(language)
    except (ImportError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{setting} {language}: spaCy has no tokeniser for it (en, de, …; xx for any): {reason}"
        ) from error
