"""`python -m spen_en_md TEXT`: shows the annotations of a text."""

from importlib import import_module

if __name__ == "__main__":
    import_module("spen_spacy.__main__").main("spen_en_md")
