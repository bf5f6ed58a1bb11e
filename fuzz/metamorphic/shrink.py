"""Makes a case that fails smaller, by leaving operators out for as long as it fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import count
from random import Random

from fuzz.metamorphic.algebra import Given, Operator
from fuzz.metamorphic.case import Case, Flow
from fuzz.metamorphic.judge import Verdict, judge
from fuzz.metamorphic.laboratory import Laboratory

MOST_TRIES = 25


def shrunk(lab: Laboratory, case: Case, verdict: Verdict, random: Random) -> tuple[Case, Verdict]:
    """The smallest case that was found to fail, with how it does."""
    tries = count(1)
    while True:
        for smaller in legal(case):
            number = next(tries)
            if number > MOST_TRIES:
                return case, verdict
            named = replace(smaller, name=f"{case.name.partition('_small')[0]}_small{number}")
            found, _ = judge(lab, named, Random(random.random()))
            if found.violation:
                case, verdict = named, found
                break
        else:
            return case, verdict


def legal(case: Case) -> Iterator[Case]:
    """Cases with one thing less, of those that say something."""
    for smaller in _smaller(case):
        try:
            smaller.check()
        except (AssertionError, KeyError):
            continue
        yield smaller


def _smaller(case: Case) -> Iterator[Case]:
    if case.second:
        yield replace(case, second=None)
        for tree in without_one(case.second.tree):
            yield replace(case, second=replace(case.second, tree=tree))
    if case.before:
        yield replace(case, before=None)
        for tree in without_one(case.before):
            yield replace(case, before=tree)
    for side, made in case.sources.items():
        yield replace(case, sources={name: tree for name, tree in case.sources.items() if name != side})
        for tree in without_one(made):
            yield replace(case, sources={**case.sources, side: tree})
    if case.flow != Flow():
        yield replace(case, flow=Flow())
    for tree in without_one(case.first):
        yield replace(case, first=tree)


def without_one(tree: Operator) -> Iterator[Operator]:
    """The tree without one of its operators: what it was made of stands in its place."""
    if isinstance(tree, Given):
        return
    yield from tree.inputs
    for name in [field.name for field in fields(tree) if isinstance(getattr(tree, field.name), Operator)]:
        for smaller in without_one(getattr(tree, name)):
            yield replace(tree, **{name: smaller})
