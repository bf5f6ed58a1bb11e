"""Draws habits on top of a tree: each kind where the tree has columns for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from random import Random
from typing import TypeVar

from fuzz.metamorphic.algebra import Expression, Operator
from fuzz.metamorphic.expressions import condition
from fuzz.metamorphic.habits.caches import Keeping, Kept
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.habits.pandas_on_spark import Computing, PandasOnSpark
from fuzz.metamorphic.habits.questions import (
    COLLECTABLE,
    Asked,
    Converged,
    EachTurn,
    KeysCollected,
    KeysUsed,
    Look,
    Looked,
    Question,
    Still,
    Use,
)
from fuzz.metamorphic.habits.registered import FUNCTIONS, Calling, Registered, Registering, TableFunction
from fuzz.metamorphic.habits.session_settings import (
    NEUTRAL,
    ZONES,
    CasesApart,
    Setting,
    Told,
    Tolerated,
    Tuned,
    Undoing,
    Zoned,
)
from fuzz.metamorphic.habits.side_data import PAIRS, Joining, LookedUp, Origin, Rebuilding, Rebuilt
from fuzz.metamorphic.habits.views import (
    NAMES,
    Afterwards,
    AggregateByName,
    Compared,
    JoinByName,
    NameInLoop,
    Naming,
    OneNameForTwo,
    Reading,
    View,
    ViewOfView,
)
from fuzz.metamorphic.joins import Join, SetOperation
from fuzz.metamorphic.kinds import SAFE_IN_PANDAS, Kind

Drawn = Callable[[Operator], Operator | None]
Choice = TypeVar("Choice", bound=StrEnum)
ZONE_TEXTS = re.compile(r"TIMESTAMP '|timestamptz|INTERVAL|hour\(")  # what a time zone changes

OF_NAMES = (View, OneNameForTwo, NameInLoop, ViewOfView, Compared, AggregateByName, JoinByName)
OF_SETTINGS = (Zoned, Tolerated, CasesApart, Tuned)
OF_ANSWERS = (Asked, Looked, Converged, KeysCollected)
OF_OTHERS = (Registered, TableFunction, Kept, LookedUp, Rebuilt, PandasOnSpark)
FAMILIES: Mapping[str, type[Habit]] = {one.__name__: one for one in (*OF_NAMES, *OF_SETTINGS, *OF_ANSWERS, *OF_OTHERS)}


@dataclass
class Habits:
    """``name`` gives a column a name of its own; ``wild`` lets rows of unlike keys meet."""

    random: Random
    name: Callable[[], str]
    wild: bool = False

    @property
    def anywhere(self) -> dict[Drawn, int]:
        """Those of which each row's key stays what it was, with how likely they are. Python's workers take seconds."""
        found: dict[Drawn, int] = {self.view: 5, self.one_name_for_two: 2, self.name_in_loop: 2, self.view_of_view: 2}
        found |= {self.registered: 4, self.table_function: 1, self.looked: 3, self.converged: 2, self.keys: 3}
        return found | {
            self.kept: 3,
            self.tuned: 2,
            self.undone_zone: 1,
            self.looked_up: 4,
            self.rebuilt: 2,
            self.pandas: 2,
        }

    @property
    def mixing(self) -> dict[Drawn, int]:
        """Those that make of a row something that hangs on all rows of the call."""
        return {self.asked: 8, self.compared: 2}

    def draw(self, tree: Operator) -> Operator | None:
        """Some habit on top of the tree; None if it has no column for the one that was drawn."""
        possible = self.anywhere | (self.mixing if self.wild or tree.key == () else {})
        return self.random.choices(list(possible), weights=list(possible.values()))[0](tree)

    def last(self, tree: Operator) -> Operator | None:
        """A setting left in force; None where something else in the function would be otherwise by it."""
        if not is_neutral(tree):
            return None
        settings = (self.zoned, self.tolerated, self.cases_apart)
        possible = [made for setting in settings if (made := setting(tree))]
        return self.random.choice(possible)

    def view(self, tree: Operator) -> Operator:
        choices = (self._one(Naming), self._one(Reading), self._one(Afterwards))
        return View(tree, self.random.choice(NAMES), *choices, self._condition(tree), self._one(Way))

    def one_name_for_two(self, tree: Operator) -> Operator:
        return OneNameForTwo(tree, self._view_name, self._condition(tree), self._condition(tree), self._one(Way))

    def name_in_loop(self, tree: Operator) -> Operator:
        conditions = tuple(self._condition(tree) for _ in range(self.random.randint(2, 3)))
        return NameInLoop(tree, self._view_name, conditions, self._one(Way))

    def view_of_view(self, tree: Operator) -> Operator:
        conditions = self._condition(tree), self._condition(tree)
        return ViewOfView(tree, self._view_name, *conditions, self._even, self._one(Way))

    def compared(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        return number and Compared(tree, self._view_name, number, self._one(Way))

    def registered(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        if number is None:
            return None
        body = self.random.choice(FUNCTIONS), self.random.randint(2, 4), self.random.randint(1, 3)
        how = self._one(Registering), self._one(Calling), self._even, self._one(Way)
        return Registered(tree, number, self.name(), *body, *how)

    def table_function(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        body = self.random.choice(FUNCTIONS), self.random.randint(1, 5)
        return number and TableFunction(tree, number, self.name(), *body, self._one(Way))

    def asked(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        how = self._one(Question), self._one(Use), self.random.randint(1, 9), self._one(Way)
        return number and Asked(tree, number, self.name(), *how)

    def looked(self, tree: Operator) -> Operator:
        return Looked(tree, self._one(Look), self._condition(tree))

    def converged(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        return number and Converged(tree, number, self.name(), self._one(Still), self._one(EachTurn))

    def keys(self, tree: Operator) -> Operator | None:
        """Of the column that is the whole key, if one is; of any where all rows are given at once."""
        names = [
            column.name for column in tree.columns if column.kind in COLLECTABLE and self._may_group(tree, column.name)
        ]
        if not names:
            return None
        return KeysCollected(
            tree, self.random.choice(names), self._condition(tree), self._one(KeysUsed), self._one(Way)
        )

    def _may_group(self, tree: Operator, name: str) -> bool:
        return self.wild or (tree.key is not None and all(name in names for names in tree.key))

    def kept(self, tree: Operator) -> Operator:
        return Kept(tree, self._view_name, self._one(Keeping), self._even, self._even, self._one(Way))

    def tuned(self, tree: Operator) -> Operator:
        undone = self._one(Undoing) if self.random.random() < 0.3 else None
        return Tuned(tree, *self.random.choice(NEUTRAL), self._one(Setting), undone, self._one(Way))

    def undone_zone(self, tree: Operator) -> Operator | None:
        return self._zoned(tree, self._one(Undoing))

    def zoned(self, tree: Operator) -> Operator | None:
        return self._zoned(tree, None)

    def _zoned(self, tree: Operator, undone: Undoing | None) -> Operator | None:
        moment = self._of_kinds(tree, (Kind.TIMESTAMP,))
        how = self.random.choice(ZONES), self._one(Told), self._one(Setting), undone, self._one(Way)
        return moment and Zoned(tree, moment, self.name(), *how)

    def tolerated(self, tree: Operator) -> Operator | None:
        text = self._of_kinds(tree, (Kind.STRING,))
        return text and Tolerated(tree, text, self.name(), self._one(Setting), self._one(Way))

    def cases_apart(self, tree: Operator) -> Operator:
        column = self.random.choice(tree.columns)
        return CasesApart(tree, column.name, condition(self.random, column), self._one(Setting), self._one(Way))

    def looked_up(self, tree: Operator) -> Operator | None:
        by = self._of_kinds(tree, tuple(PAIRS))
        how = self._one(Origin), self._one(Joining), self._even, self._one(Way)
        return by and LookedUp(tree, by, self.name(), *how)

    def rebuilt(self, tree: Operator) -> Operator:
        safe = all(column.kind in SAFE_IN_PANDAS and column.kind is not Kind.INT for column in tree.columns)
        possible = [one for one in Rebuilding if safe or one is not Rebuilding.PANDAS]
        return Rebuilt(tree, self.random.choice(possible), self._one(Way))

    def pandas(self, tree: Operator) -> Operator | None:
        number = self._of_kinds(tree, (Kind.INT,))
        return number and PandasOnSpark(tree, number, self.name(), self._one(Computing), self.random.randint(-2, 2))

    @property
    def _view_name(self) -> str:
        return self.random.choice(NAMES)

    @property
    def _even(self) -> bool:
        return self.random.random() < 0.5

    def _one(self, choices: type[Choice]) -> Choice:
        return self.random.choice(list(choices))

    def _condition(self, tree: Operator) -> Expression:
        return condition(self.random, self.random.choice(tree.columns))

    def _of_kinds(self, tree: Operator, kinds: tuple[Kind, ...]) -> str | None:
        names = [column.name for column in tree.columns if column.kind in kinds]
        return self.random.choice(names) if names else None


def is_neutral(tree: Operator) -> bool:
    """Whether a time zone, or how texts become numbers, changes nothing in it."""
    if any(isinstance(one, Zoned) for one in _all(tree)):
        return False
    return not any(ZONE_TEXTS.search(one.sql) for one in _expressions(tree)) and not any(map(_casts, _all(tree)))


def _all(tree: Operator) -> Iterator[Operator]:
    yield tree
    for one in tree.inputs:
        yield from _all(one)


def _expressions(tree: Operator) -> Iterator[Expression]:
    for one in _all(tree):
        values = [getattr(one, field.name) for field in fields(one)]
        several = [part for value in values if isinstance(value, tuple) for part in value]
        yield from (value for value in (*values, *several) if isinstance(value, Expression))


def _casts(tree: Operator) -> bool:
    """Whether it compares values of unlike types."""
    if isinstance(tree, Join):
        pairs = [(tree.left.column(a).kind, tree.right.column(b).kind) for a, b in tree.on]
    elif isinstance(tree, SetOperation):
        pairs = [(column.kind, tree.right.column(column.name).kind) for column in tree.left.columns]
    else:
        return False
    return any(one is not other for one, other in pairs)
