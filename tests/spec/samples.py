"""A valid pipeline file, a project it belongs to, and the table of what can be wrong with it."""

# ruff: noqa: E501 - one mistake is one line of the table

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import load_pipeline
from stagehold.spec.pipeline import Pipeline

JOBS = """
def orders(ctx, source): ...
def joined(ctx, orders, lineitem): ...
def cleaned(ctx, *, joined, depth=3): ...
def top(ctx, cleaned): ...
def anything(ctx, **frames): ...
def swapped(orders, ctx): ...
def greedy(ctx, source, more): ...
def only_positional(ctx, source, /): ...
async def later(ctx, source): ...
class Holder:
    def inside(ctx, source): ...
try:
    import quick
except ImportError:
    if True:
        def lineitem(ctx, source): ...
"""

VALID = """\
pipeline: revenue
schedule: "0 2 * * *"
schedule_mode: eager
execution_mode: batch
wave: 30s
restart:
  strategy: exponential-delay
  initial: 500ms
  max: 1min
failover: full
early_cutoff: true
params: {segment: BUILDING}
stages:
  orders:
    job: work.jobs:orders
    source: {kind: parquet, path: "${lake}/raw/orders/*.parquet", splits: 16}
    params: {limits: [1, 2]}
  lineitem:
    job: work.jobs:lineitem
    source: {kind: parquet, path: "${lake}/raw/lineitem/*.parquet", splits: 4}
  joined:
    job: work.jobs:joined
    inputs:
      orders: {exchange: keyed, key: o_orderkey}
      lineitem: {exchange: keyed, key: [l_orderkey]}
    partitions: 8
    max_parallelism: 64
    gate: joined
  cleaned:
    job: work.jobs:cleaned
    inputs: {joined: forward}
    uid: cleaned_orders
    per_wave: true
  top:
    job: work.jobs:top
    inputs: {cleaned: gather}
    output: {type: blocking_persistent, table: marts.top}
"""


class Project:
    """A project folder with jobs and suites, for files made by editing the valid one."""

    def __init__(self, root: Path) -> None:
        self.root, self.suites = root, root / "suites"
        self.suites.mkdir()
        (root / "work").mkdir()
        (root / "work" / "jobs.py").write_text(JOBS)
        (root / "work" / "broken.py").write_text("def orders(:\n")
        (self.suites / "joined.yaml").write_text("suite: joined\nexpectations: []\n")
        (self.suites / "unreadable.yaml").write_text("suite: [\n")
        (self.suites / "empty.yaml").write_text("suite: empty\n")

    def load(self, text: str) -> Pipeline:
        path = self.root / "revenue.yaml"
        path.write_text(text)
        return load_pipeline(path, project=self.root, suites=self.suites)

    def problems(self, text: str) -> list[tuple[int, str, str]]:
        with pytest.raises(InvalidSpec) as caught:
            self.load(text)
        return [
            (problem.line, problem.field, f"{problem.given} | {problem.allowed}") for problem in caught.value.problems
        ]


def edited(*edits: str) -> str:
    """The valid file with each ``old => new`` done once; ``\\n`` starts a line."""
    text = VALID
    for edit in edits:
        old, new = (part.replace("\\n", "\n") for part in edit.split(" => "))
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


STAGE = "stages.joined"
MISTAKES: list[tuple[str, int, str, str]] = [
    # edit => line, field, part of "given | allowed"
    ("pipeline: revenue\\n => ", 1, "pipeline", "nothing | lower-case"),
    ("pipeline: revenue => pipeline: Revenue!", 1, "pipeline", "'Revenue!' | lower-case"),
    ("failover: full => secrets: [api_token, API]", 10, "secrets", "'API' | names of small letters"),
    ("pipeline: revenue => pipeline: 7", 1, "pipeline", "7 | text"),
    ("failover: full => failover: fully", 10, "failover", "'fully' | region, full (did you mean full?)"),
    ("failover: full => failovr: full", 10, "failovr", "'full' | pipeline, schedule, stages"),
    ("failover: full => failovr: full", 10, "failovr", "(did you mean failover?)"),
    ("failover: full => <<: {failover: full}", 10, "<<", "a mapping | pipeline"),
    ("schedule_mode: eager => schedule_mode: lazy", 3, "schedule_mode", "'lazy' | eager, lazy_from_sources, " "lazy_from_sources_with_batch"),
    ("execution_mode: batch => execution_mode: stream", 4, "execution_mode", "'stream' | pipelined, "),
    ('schedule: "0 2 * * *" => schedule: "0 25 * * *"', 2, "schedule", "'0 25 * * *' | a cron expression or @once"),
    ('schedule: "0 2 * * *" => schedule: "@dayly"', 2, "schedule", "'@dayly' | a cron expression or @once"),
    ("wave: 30s => wave: 30", 5, "wave", "30 | a whole number with a unit: 500ms, 30s, 10min, 1h, 1d; or auto"),
    ("wave: 30s => wave: 30 sec", 5, "wave", "'30 sec' | a whole number with a unit: 500ms, 30s, 10min, 1h, 1d; or auto"),
    ("wave: 30s => wave: soon", 5, "wave", "'soon' | a whole number with a unit: 500ms, 30s, 10min, 1h, 1d; or auto"),
    ("wave: 30s => wave: atuo", 5, "wave", "'atuo' | a whole number with a unit: 500ms, 30s, 10min, 1h, 1d; or auto"),
    ("wave: 30s => wave: 0s", 5, "wave", "'0s' | more than 0s; or auto"),
    ("wave: 30s => wave: {interval: 30s}", 5, "wave", "a mapping | a whole number with a unit"),
    ("wave: 30s => wave: 999999999d\\nwvae: 1s", 6, "wvae", "(did you mean wave?)"),
    ("wave: 30s => checkpoint: {interval: 9ms}", 5, "checkpoint.interval", "'9ms' | 10ms or more"),
    ("wave: 30s => checkpoint: {interval: often}", 5, "checkpoint.interval", "'often' | a whole number with a unit"),
    ("wave: 30s => checkpoint: {timeout: 5ms}", 5, "checkpoint.timeout", "'5ms' | 10ms or more"),
    ("wave: 30s => checkpoint: {min_pause: -1s}", 5, "checkpoint.min_pause", "'-1s' | a whole number with a unit"),
    ("wave: 30s => checkpoint: {max_concurrent: 0}", 5, "checkpoint.max_concurrent", "0 | 1 or more"),
    ("wave: 30s => checkpoint: {tolerable_failures: -1}", 5, "checkpoint.tolerable_failures", "-1 | a whole number, 0 or more, or unlimited"),
    ("wave: 30s => checkpoint: {on_cancel: keep}", 5, "checkpoint.on_cancel", "'keep' | retain, delete"),
    ("wave: 30s => checkpoint: {retained: 0}", 5, "checkpoint.retained", "0 | 1 or more"),
    ("wave: 30s => checkpoint: {retained: few}", 5, "checkpoint.retained", "'few' | a whole number"),
    ("wave: 30s => checkpoint: 30s", 5, "checkpoint", "'30s' | a mapping of fields"),
    ("early_cutoff: true => early_cutoff: 1", 11, "early_cutoff", "1 | true or false"),
    ("segment: BUILDING => since: 1995-03-15", 12, "params.since", "datetime.date(1995, 3, 15) | text, number, true, " "false, " "list " "or " "mapping; " "a date"),
    ("strategy: exponential-delay => strategy: exponential", 7, "restart.strategy", "(did you mean exponential-delay?)"),
    ("  max: 1min => \\n  attempts: 3\\n  delay: 1s", 11, "restart.delay", "'delay' | with exponential-delay: " "initial, max"),
    ("  max: 1min =>   max: 100ms", 8, "restart.initial", "500ms | at most max, 100ms"),
    ("  initial: 500ms\\n  max: 1min =>   max: 500ms", 8, "restart.max", "500ms | at least initial, 1s"),
    ("  initial: 500ms\\n  max: 1min =>   initial: 61s", 8, "restart.initial", "61s | at most max, 1min"),
    ("  max: 1min =>   multiplier: 1.0", 9, "restart.multiplier", "1.0 | more than 1"),
    ("  max: 1min =>   attempts: 0", 9, "restart.attempts", "0 | 1 or more; `strategy: none`"),
    ("  max: 1min =>   jitter: 2", 9, "restart.jitter", "2 | 1 or less"),
    ("  max: 1min =>   jitter: much", 9, "restart.jitter", "'much' | a number"),
    ("  top: =>   Top:", 34, "stages.Top", "'Top' | lower-case"),
    ("  top: =>   class:", 34, "stages.class", "'class' | a name that can be a parameter, other than ctx and source"),
    ("  top: =>   source:", 34, "stages.source", "'source' | a name that can be a parameter"),
    ("  top: =>   to__p:", 34, "stages.to__p", "'to__p' | lower-case letters, digits and single underscores"),
    ("  top: =>   lineitem:", 18, "stages.lineitem", "'lineitem' again on line 34 | each name once"),
    ("inputs: {cleaned: gather} => inputs: {cleand: gather}", 36, "stages.top.inputs.cleand", "'cleand' | a stage: " "orders, " "lineitem, " "joined, " "cleaned"),
    ("inputs: {cleaned: gather} => inputs: [cleaned]", 36, "stages.top.inputs", "['cleaned'] | a mapping of fields"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: gathr}", 36, "stages.top.inputs.cleaned.exchange", "'gathr' | " "forward, " "keyed, " "broadcast, " "gather " "(did " "you " "mean " "gather?)"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: [gather]}", 36, "stages.top.inputs.cleaned", "['gather'] | a " "mapping of " "fields"),
    ("{exchange: keyed, key: o_orderkey} => {exchange: keyd, key: o_orderkey}", 24, f"{STAGE}.inputs.orders.exchange", "(did " "you " "mean " "keyed?)"),
    ("{exchange: keyed, key: o_orderkey} => {exchange: keyed}", 24, f"{STAGE}.inputs.orders.key", "nothing | " "columns of " "the " "producer"),
    ("{exchange: keyed, key: o_orderkey} => {exchange: keyed, key: 7}", 24, f"{STAGE}.inputs.orders.key", "7 | a name " "or a " "list " "of " "names"),
    ("{exchange: keyed, key: o_orderkey} => {exchange: keyed, key: [7]}", 24, f"{STAGE}.inputs.orders.key", "7 | text"),
    ("{exchange: keyed, key: o_orderkey} => {exchange: broadcast, key: a}", 24, f"{STAGE}.inputs.orders.key", "['a'] | " "columns " "of the " "producer " "for " "a keyed " "exchange, and " "only " "there"),
    ("key: [l_orderkey] => key: [a, b]", 25, f"{STAGE}.inputs.lineitem.key", "2 column(s) | 1 column(s), as in the " "key " "of " "joined"),
    ("inputs: {joined: forward} => inputs: {joined: forward}\\n    partitions: 4", 31, "stages.cleaned.inputs.joined", "forward " "from " "8 " "partition(s) to " "4 | " "equal " "counts"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: gather}\\n    partitions: 2", 36, "stages.top.inputs.cleaned", "gather " "into " "2 " "partitions " "| one " "partition; " "broadcast"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: gather}\\n    key: a", 37, "stages.top.key", "['a'] | a key only " "where " "an " "input " "is " "keyed"),
    ("    partitions: 8\\n => ", 21, f"{STAGE}.partitions", "nothing | a whole number, 1 or more, because orders is " "read " "keyed"),
    ("partitions: 8 => partitions: 65", 26, f"{STAGE}.partitions", "65 | at most max_parallelism, 64"),
    ("partitions: 8 => partitions: eight", 26, f"{STAGE}.partitions", "'eight' | a whole number"),
    ("partitions: 8 => partitions: 1.5", 26, f"{STAGE}.partitions", "1.5 | a whole number"),
    ("partitions: 8 => partitions: atuo", 26, f"{STAGE}.partitions", "'atuo' | a whole number, 1 or more, or auto"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: gather}\\n    partitions: auto", 37, "stages.top.partitions", "auto " "| " "nothing: " "the " "gather " "input " "cleaned " "settles " "the " "number"),
    ("params: {limits: [1, 2]} => partitions: auto", 17, "stages.orders.partitions", "auto | a whole number, 1 or " "more; " "auto " "only " "where"),
    ("inputs: {joined: forward} => inputs: {joined: forward}\\n    partitions: auto", 32, "stages.cleaned.partitions", "auto " "| " "nothing: " "the " "forward " "input " "joined " "settles " "the " "number"),
    ("max_parallelism: 64 => max_parallelism: 40000", 27, f"{STAGE}.max_parallelism", "40000 | 32768 or less"),
    ("params: {limits: [1, 2]} => partitions: 15", 17, "stages.orders.partitions", "15 | source.splits, 16; or leave " "it out"),
    ("params: {limits: [1, 2]} => params: [1]", 17, "stages.orders.params", "[1] | a mapping of fields"),
    ("gate: joined => gate: joind", 28, f"{STAGE}.gate", "(did you mean joined?)"),
    ("gate: joined => gate: ../joined", 28, f"{STAGE}.gate", "'../joined' | a file"),
    ("gate: joined => gate: unreadable", 28, f"{STAGE}.gate", "unreadable.yaml, which cannot be read (while parsing"),
    ("gate: joined => gate: empty", 28, f"{STAGE}.gate", "empty.yaml without expectations | a suite"),
    ("gate: joined => per_wave: true", 28, f"{STAGE}.per_wave", "true with keyed | true only where partition i is " "made " "from " "partition i"),
    ("early_cutoff: true => run_timeout: 0s", 11, "run_timeout", "'0s' | more than 0s"),
    ("early_cutoff: true => run_timeout: soon", 11, "run_timeout", "'soon' | a whole number with a unit"),
    ("early_cutoff: true => determinism: strict", 11, "determinism", "'strict' | warn, error, off"),
    ("gate: joined => determinism: on", 28, f"{STAGE}.determinism", "True | warn, error, off"),
    ("gate: joined => on_code_change: ignore", 28, f"{STAGE}.on_code_change", "'ignore' | recompute, keep"),
    ("    gate: joined =>     on_code_change: keep\\n    output: {type: pipelined}", 28, f"{STAGE}.on_code_change", "'keep' | " "recompute, " "for " "an " "output " "that " "is " "not " "stored"),
    ("gate: joined => per_wave: yep", 28, f"{STAGE}.per_wave", "'yep' | true or false"),
    ("early_cutoff: true => speculation: {}", 11, "speculation", "a mapping | only with max_parallel_tasks on a stage"),
    ("early_cutoff: true => speculation: {multiplyer: 2}", 11, "speculation.multiplyer", "2 | finished_share, " "multiplier, " "least_seconds, " "attempts_at_a_time " "(did " "you " "mean " "multiplier?)"),
    ("early_cutoff: true => speculation: {attempts_at_a_time: 1}", 11, "speculation.attempts_at_a_time", "1 | 2 or more"),
    ("gate: joined => max_parallel_tasks: 9", 28, f"{STAGE}.max_parallel_tasks", "9 | at most the stage's partitions, 8"),
    ("gate: joined => max_parallel_tasks: 0", 28, f"{STAGE}.max_parallel_tasks", "0 | 1 or more"),
    ("inputs: {cleaned: gather} => inputs: {cleaned: gather}\\n    max_parallel_tasks: 2", 37, "stages.top.max_parallel_tasks", "2 | at " "most " "the " "stage's " "partitions, 1, " "since " "it " "gathers " "its " "input"),
    ("gate: joined => co_location: a", 28, f"{STAGE}.co_location", "'a' | the name that another stage has, too"),
    ("gate: joined => co_location: [a]", 28, f"{STAGE}.co_location", "['a'] | text"),
    ("uid: cleaned_orders => uid: orders", 32, "stages.cleaned.uid", "'orders' | a uid of its own; this one is that " "of the " "stage " "orders"),
    ("uid: cleaned_orders => uid: A-1", 32, "stages.cleaned.uid", "'A-1' | lower-case"),
    ("job: work.jobs:top => job: work.jobs:tip", 35, "stages.top.job", "a function defined in work.jobs: orders, joined"),
    ("job: work.jobs:top => job: work.jbs:top", 35, "stages.top.job", "but there is no work/jbs.py | a module under"),
    ("job: work.jobs:top => job: work.jobs.top", 35, "stages.top.job", "'work.jobs.top' | module:function"),
    ("job: work.jobs:top => job: work.broken:orders", 35, "stages.top.job", "whose module cannot be parsed (invalid " "syntax"),
    ("    job: work.jobs:top\\n => ", 34, "stages.top.job", "'' | module:function"),
    ("job: work.jobs:top => job: [work]", 35, "stages.top.job", "['work'] | text"),
    ("job: work.jobs:top => job: work.jobs:joined", 35, "stages.top.job", "def joined(ctx, orders, lineitem) | def " "joined(ctx, " "cleaned)"),
    ("work.jobs:lineitem => work.jobs:swapped", 19, "stages.lineitem.job", "def swapped(orders, ctx) | def " "swapped(ctx, " "source)"),
    ("work.jobs:lineitem => work.jobs:inside", 19, "stages.lineitem.job", "'work.jobs:inside' | a function defined " "in work.jobs"),
    ("work.jobs:lineitem => work.jobs:greedy", 19, "stages.lineitem.job", "def greedy(ctx, source, more) | def " "greedy(ctx, " "source)"),
    ("work.jobs:lineitem => work.jobs:only_positional", 19, "stages.lineitem.job", "def only_positional(ctx, source, " "/) | " "def"),
    ("work.jobs:lineitem => work.jobs:later", 19, "stages.lineitem.job", "async def later(ctx, source) | def " "later(ctx, " "source)"),
    ("    params: {limits: [1, 2]} =>     inputs: {lineitem: broadcast}", 14, "stages.orders", "both source and " "inputs | " "either " "a source or " "inputs"),
    ("    inputs: {cleaned: gather}\\n => ", 34, "stages.top", "neither source nor inputs | either"),
    ("splits: 4} => splits: 0}", 20, "stages.lineitem.source.splits", "0 | a whole number, 1 or more, {bytes: " "128mb}, or " "a list"),
    ("splits: 4} => split: 4, splits: 4}", 20, "stages.lineitem.source.split", "4 | kind, splits, schema, path"),
    (", splits: 4} => }", 20, "stages.lineitem.source.splits", "nothing | a whole number, 1 or more"),
    ("raw/lineitem => raw/${table}", 20, "stages.lineitem.source.path", "${table} | ${lake}, ${interval}, or "),
    ("marts.top => marts.top, catalog: totals", 37, "stages.top.output.catalog", "'totals' | schema.table or catalog.schema.table"),
    ("uid: cleaned_orders => output: {type: blocking, catalog: a.b}", 32, "stages.cleaned.output.catalog", "a.b | only where the type is blocking_persistent"),
    ("marts.top => marts.top, tables: x", 37, "stages.top.output.tables", "'x' | type, table, catalog, committer, " "on_foreign_change, " "schema, " "on_waiver_end, " "file_bytes, " "columns " "(did " "you " "mean " "table?)"),
    ("marts.top => marts.top, committer: delta", 37, "stages.top.output.committer", "'delta' | staged, delta_spark " "(did " "you " "mean"),
    ("marts.top => marts.top, file_bytes: 128", 37, "stages.top.output.file_bytes", "128 | a whole number with a unit, more than 0: 512kb"),
    ("marts.top => marts.top, file_bytes: 0mb", 37, "stages.top.output.file_bytes", "'0mb' | a whole number with a unit"),
    ("marts.top => marts.top, file_bytes: 1023b", 37, "stages.top.output.file_bytes", "1023b' | 1024 or more"),
    ("marts.top => marts.top, columns: {id: int, x: {null: false}}", 37, "stages.top.output.columns.x", "a column without `type` | `type`: one of boolean"),
    ("marts.top => marts.top, columns: {id: integer}", 37, "stages.top.output.columns.id.type", "'integer' | one of boolean, tinyint, smallint, int, bigint"),
    ("marts.top => marts.top, columns: {id: {type: int, nul: false}}", 37, "stages.top.output.columns.id.nul", "False | type, null, description (did you mean null?)"),
    ("marts.top => marts.top, columns: {id: {type: int, null: 'no'}}", 37, "stages.top.output.columns.id.null", "'no' | true or false"),
    ("marts.top => marts.top, columns: {id: 'array<struct<a:long>>'}", 37, "stages.top.output.columns.id.type", "array<struct<a:long>>' | one of boolean"),
    ("marts.top => marts.top, columns: {sum(v): int}", 37, "stages.top.output.columns.sum(v)", "'sum(v)' | space and any of"),
    ("marts.top => marts.top, columns: [id]", 37, "stages.top.output.columns", "['id'] | a mapping"),
    ("    gate: joined =>     output: {columns: {x: int}}", 28, f"{STAGE}.output.columns", "no o_orderkey, which is in the stage's key | o_orderkey among the columns"),
    ("    gate: joined =>     output: {type: pipelined, columns: {o_orderkey: int}}", 28, f"{STAGE}.output.columns", "a mapping | only where the type is blocking"),
    ("marts.top => checkpoints.top", 37, "stages.top.output.table", "'checkpoints.top' | a name that begins with none of stages, checkpoints, ledger, savepoints"),
    ("marts.top => savepoints.top", 37, "stages.top.output.table", "'savepoints.top' | a name that begins with none of stages, checkpoints, ledger, savepoints"),
    ("marts.top => marts/top", 37, "stages.top.output.table", "'marts/top' | schema.table or table, in lower case"),
    (", table: marts.top => ", 37, "stages.top.output.table", "nothing | schema.table for an output of type " "blocking_persistent, " "and " "only " "there"),
    ("type: blocking_persistent,  => ", 37, "stages.top.output.table", "'marts.top' | schema.table for an output of " "type " "blocking_persistent"),
    ("type: blocking_persistent => type: persistent", 37, "stages.top.output.type", "(did you mean " "blocking_persistent?)"),
    ("{type: blocking_persistent, table: marts.top} => {type: pipelined}", 37, "stages.top.output.type", "pipelined, " "read " "by no " "stage | " "blocking or"),
    ("    gate: joined =>     gate: joined\\n    output: {type: pipelined_bounded}", 28, f"{STAGE}.gate", "'joined' " "| no " "gate " "on a " "pipelined " "output"),
    ("    params: {limits: [1, 2]} =>     output: {type: blocking_persistent, table: marts.top}", 37, "stages.top.output.table", "orders " "publishes " "this " "one"),
    ("  orders:\\n =>   [1, 2]: x\\n  orders:\\n", 13, "stages", "a key on line 14 that is no text | text as key"),
    ("segment: BUILDING => restore: yes", 12, "params.restore", "'restore' | another name: Airflow's forms have a field"),
    ("segment: BUILDING => interval: 1", 12, "params.interval", "'interval' | another name"),
    ("segment: BUILDING => segment: !!int x", 12, "params.segment", "| a plain value, in quotes if it is text"),
    ("segment: BUILDING => segment: !!timestamp 2024-13-45", 12, "params.segment", "| a plain value"),
    ("segment: BUILDING => segment: !!python/name:os.system x", 12, "params.segment", "could not determine a " "constructor"),
    ("params: {segment: BUILDING} => params: &me {segment: *me}", 12, "params.segment", "an alias of what it stands " "in | " "a " "value " "that"),
    ("failover: full => failover: @full", 10, "file", "cannot start any token | YAML"),
]  # fmt: skip
