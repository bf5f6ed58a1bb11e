"""Which operations of a frame's plan may give other data from the same input, and what to write instead.

Two levels. Some operations give other data in the next run, or as soon as rows arrive in another order: these are
certain. Others do so only where rows tie, or where Spark cuts the work into other tasks: these are worth a look.

Of a text of SQL the operations are found by its words: enough to say what to look at, not a parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stagehold.code.stage_code import CodeCall


class Kind(StrEnum):
    """Why data differs."""

    RANDOM = "random"
    CLOCK = "clock"
    PLACE = "place"  # where a row is computed
    ORDER = "order"  # in which order rows arrive
    FLOATING = "floating"  # in which order numbers are added
    CODE = "code"  # the function itself


class Order(StrEnum):
    """Whether rows are in a given order where an operation sees them."""

    NONE = "none"
    GIVEN = "given"


@dataclass(frozen=True)
class Use:
    """An operation of a plan. ``literals`` are its constant arguments, ``inside`` is the function directly around it.

    ``floating`` is None while the type of what it adds is not known.
    """

    name: str
    literals: tuple[str, ...] = ()
    inside: str = ""
    order: Order = Order.NONE
    floating: bool | None = None


@dataclass(frozen=True)
class PlanFacts:
    """What matters of one frame as a function built it: operations in order, and every constant in it."""

    uses: tuple[Use, ...]
    constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """An operation that may give other data.
    ``places`` are the calls it can come from, none when they are not in the project.
    """

    kind: Kind
    name: str
    certain: bool
    problem: str
    remedy: str
    aliases: tuple[str, ...] = ()
    places: tuple[CodeCall, ...] = ()

    def __str__(self) -> str:
        where = f"{' or '.join(call.place for call in self.places)}: " if self.places else ""
        return f"{where}{self.name} {self.problem}; {self.remedy}"


@dataclass(frozen=True)
class Rule:
    """``aliases`` are other names by which code calls the same operation."""

    kind: Kind
    problem: str
    remedy: str
    certain: bool = True
    aliases: tuple[str, ...] = ()


_RANDOM = "has no seed, so every run draws anew"
_SEEDED = "draws by the order of rows, which another number of tasks changes"
_HASH = "derive it from the row, as in F.xxhash64(key, F.lit(ctx.seed))"
_CLOCK = Rule(Kind.CLOCK, "reads the clock", "take ctx.logical_date or a parameter")
_IDS = Rule(Kind.PLACE, "numbers rows by the task that computes them", "hash a key, or rank the rows by a unique one")
_FILE = Rule(
    Kind.PLACE,
    "names a file, and files are written anew",
    "keep what it tells in a column of the source",
    certain=False,
)
_ANY = Rule(Kind.ORDER, "takes any row of its group", "take min, max, or max_by with a unique key")
_COLLECT = Rule(Kind.ORDER, "collects rows in the order in which they arrive", "sort what it gives: F.sort_array(...)")
_JOINED = Rule(
    Kind.ORDER,
    "joins texts in the order in which they arrive",
    "collect, sort and join: F.array_join(F.sort_array(...), ',')",
)
_TIES = Rule(Kind.ORDER, "treats ties in any order", "end its order with a unique column", certain=False)
_APPROXIMATE = Rule(Kind.ORDER, "approximates by the order of rows", "use the exact function", certain=False)
_ADDS = Rule(
    Kind.FLOATING,
    "adds floating-point numbers, and the order changes the sum",
    "cast to decimal first, or round the result",
)

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("rand", "random"), Rule(Kind.RANDOM, _RANDOM, _HASH, aliases=("rand", "random"))),
    **dict.fromkeys(("randn", "randstr", "uniform", "shuffle", "uuid"), Rule(Kind.RANDOM, _RANDOM, _HASH)),
    "count_min_sketch": Rule(Kind.RANDOM, _RANDOM, "give it a seed: ctx.seed"),
    "sample": Rule(
        Kind.RANDOM, _RANDOM, "keep rows by a hash: F.pmod(F.xxhash64(key), F.lit(100)) < 10", aliases=("randomSplit",)
    ),
    "sampleBy": Rule(Kind.RANDOM, _RANDOM, "keep rows by a hash: F.pmod(F.xxhash64(key), F.lit(100)) < 10"),
    **dict.fromkeys(
        ("current_timestamp", "now", "localtimestamp", "current_date", "curdate", "current_time", "unix_timestamp"),
        _CLOCK,
    ),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _IDS),
    **dict.fromkeys(("input_file_name", "input_file_block_start", "input_file_block_length"), _FILE),
    "limit": Rule(
        Kind.ORDER,
        "takes any rows, since nothing orders them",
        "call orderBy with a unique key before it",
        aliases=("head", "take"),
    ),
    "offset": Rule(Kind.ORDER, "skips any rows, since nothing orders them", "call orderBy with a unique key before it"),
    "dropDuplicates": Rule(
        Kind.ORDER,
        "keeps any of the rows that share these columns",
        "rank them by a unique key and keep the first",
        aliases=("drop_duplicates",),
    ),
    **dict.fromkeys(("first", "last", "any_value", "first_value", "last_value"), _ANY),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), _COLLECT),
    **dict.fromkeys(("listagg", "string_agg", "listagg_distinct", "string_agg_distinct"), _JOINED),
    **dict.fromkeys(("row_number", "ntile", "lag", "lead", "nth_value", "min_by", "max_by", "mode"), _TIES),
    **dict.fromkeys(("percentile_approx", "approx_percentile", "histogram_numeric"), _APPROXIMATE),
    **dict.fromkeys(("sum", "try_sum", "try_avg", "product"), _ADDS),
    "sum_distinct": replace(_ADDS, aliases=("sumDistinct",)),
    **dict.fromkeys(("avg", "mean"), replace(_ADDS, aliases=("avg", "mean"))),
    **dict.fromkeys(("std", "stddev"), replace(_ADDS, aliases=("std", "stddev"))),
    **dict.fromkeys(("variance", "var_samp"), replace(_ADDS, aliases=("variance", "var_samp"))),
    **dict.fromkeys(
        ("stddev_samp", "stddev_pop", "var_pop", "corr", "covar_samp", "covar_pop", "skewness", "kurtosis"), _ADDS
    ),
    **dict.fromkeys(("regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy"), _ADDS),
    "udf": Rule(
        Kind.CODE, "is a Python function that says it is not deterministic", "make it follow from its arguments alone"
    ),
}
# These are exact for whole numbers and decimals; the others of their kind always work with doubles.
ADDS = frozenset({"sum", "try_sum", "sum_distinct", "avg", "mean", "try_avg", "product"})
# which argument; else the first
SEED_AT: Mapping[str, int] = {"shuffle": 1, "randstr": 1, "uniform": 2, "count_min_sketch": 3}
HARMLESS_INSIDE: Mapping[Kind, frozenset[str]] = {
    Kind.ORDER: frozenset(
        {"sort_array", "array_sort", "size", "array_size", "cardinality", "array_max", "array_min", "array_contains"}
    ),
    Kind.FLOATING: frozenset({"round", "bround", "ceil", "ceiling", "floor"}),
}
OF_PYTHON = (
    "now",
    "today",
    "utcnow",
    "time",
    "uuid1",
    "uuid4",
    "random",
    "randint",
    "randrange",
    "choice",
    "gauss",
    "token_hex",
)
_BUILDS_ANEW = Rule(
    Kind.CODE,
    "builds another plan each time it is called",
    "take times, ids and random numbers from ctx.logical_date, ctx.seed and ctx.params",
    aliases=OF_PYTHON,
)


def findings(first: PlanFacts, second: PlanFacts, calls: Sequence[CodeCall]) -> tuple[Finding, ...]:
    """What may differ in a frame that the same function built twice from the same input; ``calls`` are those in its
    code.

    An operation whose every possible call carries the comment of `code_calls.SILENT` is left out.
    """
    alike = [use.name for use in first.uses] == [use.name for use in second.uses]
    again = second.uses if alike else first.uses
    found = [_judge(use, other) for use, other in zip(first.uses, again, strict=True)]
    if not alike or first.constants != second.constants:
        found.append(_finding("the stage function", _BUILDS_ANEW))
    return tuple(_placed(dict.fromkeys(finding for finding in found if finding), calls))


def _judge(use: Use, again: Use) -> Finding | None:
    rule = RULES.get(use.name)
    if rule is None or use.inside in HARMLESS_INSIDE.get(rule.kind, ()):
        return None
    match rule.kind:
        case Kind.RANDOM if _seed(use) and _seed(use) == _seed(again):
            return _finding(use.name, replace(rule, problem=_SEEDED, remedy=_HASH, certain=False))
        case Kind.CLOCK if use.name == "unix_timestamp" and use.literals:
            return None
        case Kind.ORDER if use.order is Order.GIVEN:
            return (
                _finding(use.name, replace(_TIES, aliases=rule.aliases))
                if rule in (_ANY, _COLLECT, _JOINED, _TIES)
                else None
            )
        case Kind.FLOATING if use.name in ADDS and use.floating is not True:
            return (
                None
                if use.floating is False
                else _finding(use.name, replace(rule, problem=f"may be one that {rule.problem}", certain=False))
            )
    return _finding(use.name, rule)


def _seed(use: Use) -> str:
    """The seed in text; empty where none was given."""
    at = SEED_AT.get(use.name, 0)
    return use.literals[at] if at < len(use.literals) else ""


def _finding(name: str, rule: Rule) -> Finding:
    return Finding(rule.kind, name, rule.certain, rule.problem, rule.remedy, aliases=(name, *rule.aliases))


def _placed(found: Iterable[Finding], calls: Sequence[CodeCall]) -> Iterator[Finding]:
    for finding in found:
        possible = [call for call in calls if call.name in finding.aliases]
        places = tuple(call for call in possible if not call.silenced)
        if places or not possible:
            yield replace(finding, places=places)


TOKEN = re.compile(
    r"'(?:[^'\\]|\\.)*'|--[^\n]*|`[^`]*`|(?P<name>[a-z_]\w*)\s*\(|(?P<word>[a-z_]\w*)|(?P<mark>[(),])", re.IGNORECASE
)
OVER = re.compile(r"\s*over\s*\(([^()]*)", re.IGNORECASE)
LIMIT = re.compile(r"\blimit\s+\d", re.IGNORECASE)
ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "current_time", "localtimestamp")


def uses_in_sql(text: str, inside: str = "") -> Iterator[Use]:
    """Every function called in ``text``, innermost first, with its arguments as they are written."""
    # Of each parenthesis that is not closed yet, the function before it, if any, and where its arguments start.
    stack: list[tuple[str, list[int]]] = []
    for token in TOKEN.finditer(text):
        mark, name, word = token["mark"], token["name"], token["word"]
        if name or mark == "(":
            stack.append(((name or "").lower(), [token.end()]))
        elif mark == "," and stack:
            stack[-1][1].append(token.end())
        elif mark == ")" and stack:
            function, starts = stack.pop()
            if function:
                around = next((outer for outer, _ in reversed(stack) if outer), inside)
                yield Use(function, _arguments(text, starts, token.start()), around, _order(text, token.end()))
        elif word and word.lower() in WITHOUT_PARENTHESES:
            yield Use(word.lower())
    if LIMIT.search(text):
        yield Use("limit", order=Order.GIVEN if ORDERED.search(text) else Order.NONE)


def _arguments(text: str, starts: list[int], end: int) -> tuple[str, ...]:
    ends = [*(start - 1 for start in starts[1:]), end]
    return tuple(argument for start, stop in zip(starts, ends, strict=True) if (argument := text[start:stop].strip()))


def _order(text: str, end: int) -> Order:
    window = OVER.match(text, end)
    return Order.GIVEN if window and ORDERED.search(window[1]) else Order.NONE
