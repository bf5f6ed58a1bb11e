"""Makes up cases from a seed: legal for both engines, but for a few that are wrong on purpose, as `case.Trap` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random

from fuzz.metamorphic.algebra import Distinct, Explode, Extend, Filter, Given, Limit, Operator, Rename, Replace
from fuzz.metamorphic.case import SOURCES, Case, Flow, Second, Trap
from fuzz.metamorphic.expressions import condition, python_function, shifted, value
from fuzz.metamorphic.grouping import Aggregate, Grouping, Measure, Ranking, Window
from fuzz.metamorphic.habits.drawing import Habits
from fuzz.metamorphic.habits.habit import Way, habits_of
from fuzz.metamorphic.habits.views import NAMES, AggregateByName, JoinByName
from fuzz.metamorphic.joins import LEFT_ONLY, Join, JoinForm, JoinKind, SetKind, SetOperation
from fuzz.metamorphic.kinds import SAFE_IN_PANDAS, STORED, UNLIKE, Kind
from fuzz.metamorphic.pandas_functions import ApplyInPandas, CoGroupInPandas, MapInPandas
from fuzz.metamorphic.source_data import SMALL, Column

WILD = 0.25  # of the cases may have operators that let unlike keys meet
TRAPPED = 0.1
SETTING = 0.15  # of the functions leave a setting in force
MOST_COLUMNS = 9
SUMMED = (Kind.INT, Kind.DEC1, Kind.DEC2)
Step = Callable[[Operator], Operator | None]


def generate(seed: int, number: int) -> Case:
    """The case with this number, the same each time."""
    return Generator(Random(f"{seed}/{number}")).case(f"case_{seed}_{number}")


def generate_runnable(seed: int, number: int) -> Case:
    """A case that has a right answer and is not refused: its keys are honest and of like types.
    Its name says the number.
    """
    return next(_runnable(seed, number))


def generate_with(seed: int, number: int, family: str) -> Case:
    """The first runnable case for the number that has a habit of this family."""
    return next(case for case in _runnable(seed, number) if any(habit.family == family for _, habit in case.habits))


def _runnable(seed: int, number: int) -> Iterator[Case]:
    tries = (
        Generator(Random(f"{seed}/{number}/{place}"), alike=True).case(f"made_up_{seed}_{number}") for place in count()
    )
    return (case for case in tries if case.comparable and case.trap is None)


@dataclass
class Generator:
    """``alike`` has keys of like types only."""

    random: Random
    alike: bool = False
    wild: bool = False
    made: int = 0
    shown: dict[str, set[str]] = field(default_factory=dict)  # columns of a side that its source or `before` makes anew
    escaping: str | None = None  # a column that looks like the key and is not, since a join supplies nulls to it

    def case(self, name: str) -> Case:
        self.wild = self.random.random() < WILD
        keys = self._keys()
        sources = {side: self._by_file(side) for side in ("left", "right") if self._chance(0.25)}
        before = self._before(keys) if self._chance(0.3) else None
        first, trap, key = self._finished(self._last(self._steps(self._combined(keys), 0, 3)))
        second = self._second(first, key) if trap is None and self._chance(0.5) else None
        return Case(name, keys, first, key, before, second, trap, sources, self._flow())

    def _before(self, keys: Mapping[str, tuple[str, ...]]) -> Operator:
        """What stands between the left source and the keyed stage."""
        given = self._given("left", keys)
        return self._by_file("left") if self._chance(0.6) else Filter(given, self._condition(given))

    def _flow(self) -> Flow:
        before = self.random.choice(("pipelined", "pipelined", "pipelined_bounded", "blocking"))
        first = self.random.choice((None, None, "pipelined", "pipelined_bounded", "blocking"))
        return Flow(before, first, self.random.choice((1, 1, 1, 2, 3)))

    def _by_file(self, side: str) -> Operator:
        """Habits of a function that is given one file, all of it in one call, and gives the same columns."""
        tree: Operator = Given(side, SOURCES[side].columns, ())
        for _ in range(self.random.randint(1, 2)):
            tree = self._habits.draw(tree) or tree
        return self._as_given(side, self._last(tree))

    def _as_given(self, side: str, tree: Operator) -> Operator:
        """With what is new in the place of values of its type, or as a condition where there is none."""
        given = SOURCES[side]
        if tree.names == given.names:
            return tree
        places = {}
        for column in tree.columns[len(given.columns) :]:
            place = f"{side[0]}_{column.kind.slug}"
            if place in given.names and place not in places:
                places[place] = column.name
            else:
                tree = Filter(tree, condition(self.random, column))
        self.shown.setdefault(side, set()).update(places)
        return Rename(tree, tuple((places.get(name, name), name) for name in given.names))

    def _last(self, tree: Operator) -> Operator:
        """Now and then what a function sets is in force when it returns."""
        return (self._habits.last(tree) if self._chance(SETTING) else None) or tree

    @property
    def _habits(self) -> Habits:
        return Habits(self.random, self._name, self.wild)

    def _keys(self) -> dict[str, tuple[str, ...]]:
        """The columns by which both sides are exchanged, of like types or not."""
        pairs = [self._pair() for _ in range(1 if self._chance(0.85) else 2)]
        pairs = list({left: (left, right) for left, right in pairs}.values())
        pairs = list({right: (left, right) for left, right in pairs}.values())
        kinds = {"left": [left for left, _ in pairs], "right": [right for _, right in pairs]}
        return {side: tuple(f"{side[0]}_key_{kind.slug}" for kind in some) for side, some in kinds.items()}

    def _pair(self) -> tuple[Kind, Kind]:
        if self.alike or self._chance(0.6):
            kind = self.random.choice(STORED)
            return kind, kind
        pair = sorted(self.random.choice(list(UNLIKE)))
        self.random.shuffle(pair)
        return pair[0], pair[1]

    def _given(self, side: str, keys: Mapping[str, tuple[str, ...]]) -> Given:
        return Given(side, SOURCES[side].columns, tuple(frozenset({name}) for name in keys[side]))

    def _side(self, side: str, keys: Mapping[str, tuple[str, ...]]) -> Operator:
        """A few columns of one side, of which the first are the key, under short names."""
        values = [f"{side[0]}_{kind.slug}" for kind in self.random.sample(STORED, self.random.randint(2, 4))]
        renamed = [(name, f"{side[0]}k{place}") for place, name in enumerate(keys[side])]
        renamed += [(name, name) for name in dict.fromkeys((*sorted(self.shown.get(side, ())), *values))]
        return Rename(self._given(side, keys), tuple(renamed))

    def _combined(self, keys: Mapping[str, tuple[str, ...]]) -> Operator:
        left = self._steps(self._side("left", keys), 0, 1)
        ways: dict[Callable[[Operator, Operator], Operator | None], int] = {
            self._join: 6,
            self._set_operation: 2,
            self._cogroup: 1,
        }
        if self._chance(0.15):
            return left
        right = self._steps(self._side("right", keys), 0, 1)
        way = self.random.choices(list(ways), weights=list(ways.values()))[0]
        return way(left, right) or self._join(left, right)

    def _join(self, left: Operator, right: Operator) -> Operator:
        on = self._key_pairs(left, right)
        kind = self.random.choice([one for one in JoinKind if one is not JoinKind.CROSS])
        if on is None:
            return left
        if self.wild and self._chance(0.15):
            return Join(left, right, JoinKind.CROSS)
        if self._chance(TRAPPED):
            self.escaping = on[0][1]
            return Join(left, right, self.random.choice((JoinKind.LEFT, JoinKind.FULL)), on)
        if self._chance(0.15) and all(left.column(a).kind is right.column(b).kind for a, b in on):
            names = (NAMES[0], NAMES[1]) if self._chance(0.5) else (NAMES[3], NAMES[0])
            return JoinByName(left, right, kind, on, names_given=names, way=self.random.choice(list(Way)))
        forms = [JoinForm.CONDITION, JoinForm.NULL_SAFE, JoinForm.USING]
        if kind is JoinKind.FULL:
            forms = [JoinForm.USING, JoinForm.COALESCED, JoinForm.COALESCED]
        elif kind not in LEFT_ONLY and self._chance(0.2):
            forms = [JoinForm.COALESCED]
        return Join(left, right, kind, on, self.random.choice(forms))

    def _key_pairs(self, left: Operator, right: Operator) -> tuple[tuple[str, str], ...] | None:
        """Names by which both sides hold the key; None if one has lost it."""
        if not left.key or not right.key:
            return None
        return tuple((min(one), min(other)) for one, other in zip(left.key, right.key, strict=True))

    def _set_operation(self, left: Operator, right: Operator) -> Operator | None:
        """Of the key and of one more column where both have one of a type."""
        pairs = self._key_pairs(left, right)
        if pairs is None:
            return None
        right_kinds = {right.column(name).kind: name for name in right.names if name not in dict(pairs).values()}
        shared = [
            (name, right_kinds[left.column(name).kind]) for name in left.names if left.column(name).kind in right_kinds
        ]
        columns = (*pairs, *[pair for pair in shared if pair[0] not in dict(pairs)][:1])
        left = Rename(left, tuple((name, name) for name, _ in columns))
        return SetOperation(left, Rename(right, tuple((b, a) for a, b in columns)), self.random.choice(list(SetKind)))

    def _cogroup(self, left: Operator, right: Operator) -> Operator | None:
        pairs = self._key_pairs(left, right)
        if pairs is None:
            return None
        left, right = self._for_pandas(left), self._for_pandas(right)
        kinds = [(left.column(a).kind, right.column(b).kind) for a, b in pairs if a in left.names and b in right.names]
        if len(kinds) < len(pairs) or any(a is not b for a, b in kinds):
            return None
        return CoGroupInPandas(left, right, pairs, self._name(), self._name())

    def _steps(self, tree: Operator, fewest: int, most: int) -> Operator:
        """Some operators on top of ``tree``."""
        for _ in range(self.random.randint(fewest, most)):
            steps = self._possible(tree)
            tree = self.random.choices(list(steps), weights=list(steps.values()))[0](tree) or tree
        return tree

    def _possible(self, tree: Operator) -> dict[Step, int]:
        """With how likely they are; each session starts Python workers of its own, so Python takes seconds."""
        steps: dict[Step, int] = dict.fromkeys((self._filter, self._aggregate, self._window, self._distinct), 4)
        steps |= {self._map_in_pandas: 1, self._apply_in_pandas: 1, self._aggregate_by_name: 2}
        steps[self._habits.draw if len(tree.columns) < MOST_COLUMNS else self._habits.view] = 14
        if len(tree.columns) < MOST_COLUMNS:
            steps |= {self._extend: 3, self._python: 1, self._explode: 3, self._join_small: 3}
        if self.wild:
            steps |= dict.fromkeys(
                (self._limit, self._grouped_by_other, self._beside_all, self._rolled_up, self._asked), 4
            )
        return steps

    def _filter(self, tree: Operator) -> Operator:
        return Filter(tree, self._condition(tree))

    def _condition(self, tree: Operator):
        return condition(self.random, self.random.choice(tree.columns))

    def _extend(self, tree: Operator) -> Operator:
        return Extend(tree, self._name(), value(self.random, self.random.choice(tree.columns)))

    def _python(self, tree: Operator) -> Operator | None:
        numbers = [column for column in tree.columns if column.kind is Kind.INT]
        if not numbers:
            return None
        name = self._name()
        made, lines = python_function(self.random, self.random.choice(numbers), name)
        extended = Extend(tree, name, made, lines)
        return Filter(extended, condition(self.random, Column(name, Kind.BIG))) if self._chance(0.3) else extended

    def _explode(self, tree: Operator) -> Operator:
        kind = self.random.choice(tree.columns).kind
        alike = [column.name for column in tree.columns if column.kind is kind]
        return Explode(tree, self._name(), tuple(alike[:2]))

    def _distinct(self, tree: Operator) -> Operator | None:
        by = self._by(tree)
        return by and Distinct(tree, by)

    def _aggregate(self, tree: Operator) -> Operator | None:
        by = self._by(tree)
        return by and Aggregate(tree, by, self._measures(tree))

    def _aggregate_by_name(self, tree: Operator) -> Operator | None:
        by, name, way = self._by(tree), self.random.choice(NAMES), self.random.choice(list(Way))
        return by and AggregateByName(tree, by, self._measures(tree), name=name, way=way)

    def _window(self, tree: Operator) -> Operator | None:
        if tree.key is None:
            return None
        by = self._by(tree) or ()
        if self.wild and self._chance(0.4):
            by = self.random.choice(((), (self.random.choice(tree.names),)))
        ranking = self.random.choice((None, *Ranking))
        if ranking is None:
            order = tuple(self.random.sample(tree.names, 1)) if self._chance(0.4) else ()
            return Window(tree, by, order, self._name(), self._measure(tree, ("count", "sum", "min", "max")))
        order = tree.names if ranking is Ranking.ROW_NUMBER else tuple(self.random.sample(tree.names, 1))
        return Window(tree, by, order, self._name(), ranking)

    def _map_in_pandas(self, tree: Operator) -> Operator | None:
        safe = self._for_pandas(tree)
        texts = [column.name for column in safe.columns if column.kind is Kind.STRING]
        if not texts or (tree.key and safe.key is None):
            return None
        return MapInPandas(safe, self.random.choice(texts), self._name())

    def _apply_in_pandas(self, tree: Operator) -> Operator | None:
        safe = self._for_pandas(tree)
        by = self._by(safe) if safe.columns else None
        if not by or (tree.key and safe.key is None):
            return None
        if self.wild and self._chance(0.4):
            by = (self.random.choice(safe.names),)
        return ApplyInPandas(safe, by, self.random.choice(safe.names), self._name(), self._name())

    def _for_pandas(self, tree: Operator) -> Operator:
        return Rename(
            tree, tuple((column.name, column.name) for column in tree.columns if column.kind in SAFE_IN_PANDAS)
        )

    def _join_small(self, tree: Operator) -> Operator | None:
        """With a table that everybody is given whole."""
        if not _reads_sides(tree):
            return None
        small = Rename(
            Given("small", SMALL.columns, None, whole=True), tuple((name, self._name()) for name in SMALL.names)
        )
        alike = [
            (column.name, other.name) for column in tree.columns for other in small.columns if column.kind is other.kind
        ]
        if not alike or self._chance(0.3):
            return Join(tree, small, JoinKind.CROSS)
        kinds = [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]
        kind = self.random.choice([*kinds, JoinKind.RIGHT] if self.wild else kinds)
        return Join(tree, small, kind, (self.random.choice(alike),))

    def _limit(self, tree: Operator) -> Operator:
        return Limit(tree, self.random.randint(1, 20))

    def _asked(self, tree: Operator) -> Operator | None:
        return self._habits.asked(tree) if len(tree.columns) < MOST_COLUMNS else self._habits.compared(tree)

    def _grouped_by_other(self, tree: Operator) -> Operator | None:
        """Beside its key each row has something of the whole group of another column."""
        if not tree.key or len(tree.columns) >= MOST_COLUMNS:
            return None
        other, name = self.random.choice(tree.columns), self._name()
        grouped = Aggregate(tree, (other.name,), ((self._name(), self._measure(tree)),))
        renamed = Rename(grouped, ((other.name, name), (grouped.names[1], grouped.names[1])))
        return Join(tree, renamed, JoinKind.LEFT, ((other.name, name),))

    def _beside_all(self, tree: Operator) -> Operator | None:
        if tree.key is None or len(tree.columns) >= MOST_COLUMNS:
            return None
        return Join(tree, Aggregate(tree, (), ((self._name(), self._measure(tree)),)), JoinKind.CROSS)

    def _rolled_up(self, tree: Operator) -> Operator | None:
        by = self._by(tree)
        return by and Aggregate(tree, by, self._measures(tree), self.random.choice((Grouping.ROLLUP, Grouping.CUBE)))

    def _by(self, tree: Operator) -> tuple[str, ...] | None:
        """The whole key, and perhaps more; any columns where everything is given at once."""
        if tree.key is None:
            return None
        key = [self.random.choice(sorted(names)) for names in tree.key]
        others = [name for name in tree.names if name not in key]
        more = self.random.sample(others, min(len(others), self.random.randint(0 if key else 1, 2)))
        return tuple(dict.fromkeys((*key, *more))) or None

    def _measures(self, tree: Operator) -> tuple[tuple[str, Measure], ...]:
        return tuple((self._name(), self._measure(tree)) for _ in range(self.random.randint(1, 2)))

    def _measure(
        self, tree: Operator, functions: tuple[str, ...] = ("count", "count_distinct", "sum", "min", "max")
    ) -> Measure:
        column = self.random.choice(tree.columns)
        possible = [one for one in functions if one != "sum" or column.kind in SUMMED]
        return Measure(self.random.choice(possible), column.name)

    def _finished(self, tree: Operator) -> tuple[Operator, Trap | None, tuple[str, ...]]:
        """With the output's declared key, which now and then is not the one that the rows were computed under."""
        if self.escaping in tree.names:
            return tree, Trap.NULL_SIDE, (self.escaping,)
        if tree.key is None:
            return tree, Trap.OTHER, (self.random.choice(tree.names),)
        key = tuple(self.random.choice(sorted(names)) for names in tree.key)
        others = [name for name in tree.names if not any(name in names for names in tree.key)]
        if not self._chance(TRAPPED):
            return tree, None, key
        trap = self.random.choice((Trap.SHIFTED, Trap.OTHER, Trap.FINER) if others else (Trap.SHIFTED,))
        match trap:
            case Trap.SHIFTED:
                column = tree.column(key[0])
                return Replace(tree, key[0], shifted(column)), trap, key
            case Trap.OTHER:
                return tree, trap, (self.random.choice(others),)
            case _:
                return tree, trap, (*key, self.random.choice(others))

    def _second(self, first: Operator, key: tuple[str, ...]) -> Second:
        match self.random.choice(("keyed", "gather", "forward")):
            case "keyed":
                by = (self.random.choice(first.names),)
                tree = self._after(first, (frozenset(by),))
                kept = tree.key and tuple(min(names) for names in tree.key)
                return Second("keyed", tree, by, kept) if kept else Second("gather", self._after(first, ()))
            case "forward":
                return Second("forward", self._after(first, tuple(frozenset({name}) for name in key)))
            case _:
                return Second("gather", self._after(first, ()))

    def _after(self, first: Operator, key: tuple[frozenset[str], ...]) -> Operator:
        tree: Operator = Given("first", first.columns, key)
        if self._chance(0.6):
            tree = self._habits.draw(tree) or tree
        return self._last(self._steps(tree, 0 if any(habits_of(tree)) else 1, 2))

    def _name(self) -> str:
        self.made += 1
        return f"c{self.made}"

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability


def _reads_sides(tree: Operator) -> bool:
    """Whether the tree is the first stage's, which alone is given the small table."""
    if isinstance(tree, Given):
        return tree.name in ("left", "right")
    return any(_reads_sides(one) for one in tree.inputs)
