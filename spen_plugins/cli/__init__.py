"""The command lines: `spen-run` trains and evaluates, `spen` has the rest.

Modules here import nothing heavy at their top, so that help comes at once.
"""
