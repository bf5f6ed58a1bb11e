"""Which files a choice of marks leaves out as a whole. They are not imported: to import all takes ten seconds of each
process.
"""

from __future__ import annotations

import re
from itertools import product

MARKS_OF_FILE = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)$", re.MULTILINE)
MARK = re.compile(r"pytest\.mark\.(\w+)")
SIMPLE = re.compile(r"(\b[a-z]\w*\b(?!\()|[\s()])+")  # names, and, or, not: what `-m` of the Makefile is made of
KINDS = {"spark", "slow", "airflow", "e2e", "browser"}
WORDS = {"and", "or", "not"}


def leaves_out(expression: str, text: str) -> bool:
    """Whether no test of a file can be chosen: each has the marks of the file, and may have any that the file names."""
    names = {*re.findall(r"\w+", expression)} - WORDS
    if not SIMPLE.fullmatch(expression) or not names <= KINDS:
        return False
    marks = {mark for given in MARKS_OF_FILE.findall(text) for mark in MARK.findall(given)}
    free = sorted((names - marks).intersection(MARK.findall(text)))
    certain = dict.fromkeys(names, False) | dict.fromkeys(marks, True)
    return not any(
        eval(expression, {}, certain | dict(zip(free, values, strict=True)))
        for values in product((False, True), repeat=len(free))
    )


def unnamed(marks: set[str], text: str) -> set[str]:
    """Marks of a test that its file does not name, so that the file would be left out wrongly."""
    return (marks & KINDS).difference(MARK.findall(text))
