"""Reads an analysed plan from its leaves up: which operators may mix rows of different keys, and where the key ends up.

Every rule here errs on one side. What is not understood mixes rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stagehold.plan.isolation.attributes import Attributes, Carriers, in_common
from stagehold.plan.isolation.joins import joined
from stagehold.plan.isolation.tree import (
    MARK,
    GivenInput,
    Named,
    Node,
    Unreadable,
    conjuncts,
    elements,
    equality,
    named,
    not_null,
    operands,
)

ATTRIBUTE_IDS = re.compile(r"#\d+L?")
VIEW_OF_CONNECT = "(`_pyspark_connect_temp_view_"  # by these, frames are handed to `spark.sql`
SHOWN = 100  # characters of an operator
INNER = ("Inner", "Cross")
KEEP_LEFT = ("LeftOuter", "LeftSemi", "LeftAnti")  # their left rows come out as they are, or not at all
GENERATORS = ("explode", "posexplode", "inline", "stack", "json_tuple")
GROUP_FUNCTIONS = ("FlatMapGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow")


@dataclass(frozen=True)
class Flow:
    """Rows of one relation: its attributes in order, if they are known, and who carries each column of the exchange
    key.

    ``key`` is None where the rows do not depend on which partitions are computed. ``blame`` are operators, here or
    below, which may make of several partitions' rows something else than of each partition's.
    """

    outputs: tuple[int, ...] | None
    key: tuple[Carriers, ...] | None
    blame: tuple[str, ...] = ()

    @property
    def depends(self) -> bool:
        return self.key is not None


class FlowReader:
    """Reads relations, and collects on the way what is known of their ``attributes`` and which ``texts`` were read."""

    def __init__(self, inputs: Sequence[GivenInput], width: int) -> None:
        self.attributes = Attributes()
        self.texts: list[str] = []
        self._inputs, self._nothing = inputs, (Carriers(),) * width
        self._shared: dict[str, Flow] = {}

    def read(self, node: Node, given: tuple[str, ...] = ()) -> Flow:
        """``given`` are conditions that hold for all rows which are left in the end:
        who drops the others may be a filter above.
        """
        self.texts.append(node.text)
        flow = self._read(node, given)
        mixing = [inner for inner in node.inner if self.read(inner).depends]
        return replace(flow, blame=(*flow.blame, f"a subquery in {_show(node)}")) if mixing else flow

    def _read(self, node: Node, given: tuple[str, ...]) -> Flow:
        if node.name == "Filter":
            return self._filter(node, given)
        if node.name == "Join":
            return self._join(node, given)
        rule = RULES.get(node.name, FlowReader._unknown)
        return rule(self, node)

    def _alias(self, node: Node) -> Flow:
        return self._input(node) if node.text.startswith(MARK) else self._only_child(node)

    def _view(self, node: Node) -> Flow:
        return self._only_child(node) if node.text.startswith(VIEW_OF_CONNECT) else self._unknown(node)

    def _row_by_row(self, node: Node) -> Flow:
        return self._only_child(node)

    def _cut(self, node: Node) -> Flow:
        child = self._only_child(node)
        return self._blamed(child, node) if child.depends else child

    def _constant(self, node: Node) -> Flow:
        if node.children:
            raise Unreadable
        return Flow(self._leaf_outputs(node), None)

    def _deduplicate(self, node: Node) -> Flow:
        child = self._only_child(node)
        return self._grouped(node, child, elements(node.text), child.outputs)

    def _distinct(self, node: Node) -> Flow:
        child = self._only_child(node)
        return (
            self._blamed(child, node) if child.key and not all(carriers.complete for carriers in child.key) else child
        )

    def _only_child(self, node: Node, given: tuple[str, ...] = ()) -> Flow:
        if len(node.children) != 1:
            raise Unreadable
        return self.read(node.children[0], given)

    def _unknown(self, node: Node) -> Flow:
        below = [self.read(child) for child in node.children]
        if below and not any(flow.depends for flow in below):
            return Flow(None, None)
        why = (
            f"{_show(node)}, whose Python function alone knows which key its rows have"
            if node.name in GROUP_FUNCTIONS
            else _show(node)
        )
        return Flow(None, self._nothing, (*(reason for flow in below for reason in flow.blame), why))

    def _blamed(self, flow: Flow, node: Node) -> Flow:
        return replace(flow, blame=(*flow.blame, _show(node)))

    def _input(self, node: Node) -> Flow:
        """The marked input: a projection that lists its columns, and below that what does not concern us."""
        given = self._inputs[int(node.text.removeprefix(MARK))]
        (project,) = node.children
        if project.name != "Project":
            raise Unreadable
        columns = [named(element) for element in elements(project.text)]
        by_name = {column.name.casefold(): column.id for column in columns}
        for column in columns:
            self.attributes.learn(
                column.id, column.name, kind=given.types.get(column.name, ""), shown=f"{given.stage}.{column.name}"
            )
        if given.key is None:
            return Flow(tuple(column.id for column in columns), None)
        key = tuple(Carriers.of(by_name[column.casefold()]) for column in given.key) if given.key else self._nothing
        return Flow(tuple(column.id for column in columns), key)

    def _leaf_outputs(self, node: Node) -> tuple[int, ...] | None:
        listed = node.text[: node.text.rfind("]") + 1]
        return (
            self.attributes.listed(elements(listed.replace(",", ", ") if node.name == "Relation" else listed))
            if listed
            else None
        )

    def _filter(self, node: Node, given: tuple[str, ...]) -> Flow:
        conditions = tuple(conjuncts(node.text))
        child = self._only_child(node, (*given, *conditions))
        if child.key is None:
            return child
        present = [found for condition in conditions for found in not_null(condition)]
        return replace(child, key=tuple(_never_null(carriers, present) for carriers in child.key))

    def _project(self, node: Node) -> Flow:
        child = self._only_child(node)
        return self._projected(child, [named(element) for element in elements(node.text)])

    def _projected(self, child: Flow, made: Sequence[Named]) -> Flow:
        sources = {element.id: self.attributes.made(element) for element in made}
        key = child.key and tuple(carriers.as_made(sources) for carriers in child.key)
        return Flow(tuple(element.id for element in made), key, child.blame)

    def _join(self, node: Node, given: tuple[str, ...]) -> Flow:
        if len(node.children) != 2:
            raise Unreadable
        kind, *condition = node.arguments
        own = tuple(conjunct for text in condition for conjunct in conjuncts(text))
        holding = (*given, *own) if kind in INNER else own
        left = self.read(node.children[0], holding if kind in INNER else given if kind in KEEP_LEFT else ())
        right = self.read(node.children[1], holding if kind in INNER else given if kind == "RightOuter" else ())
        equal = [found for conjunct in holding if (found := equality(conjunct))]
        pairs = [
            (self.attributes.sources(first), sign, self.attributes.sources(second)) for first, sign, second in equal
        ]
        key, mixes = joined(kind, left.key, right.key, tuple(pairs))
        outputs = left.outputs if kind in ("LeftSemi", "LeftAnti") else _both(left.outputs, right.outputs)
        if "Outer" in kind:
            for carriers in key or ():
                self.attributes.may_be_null(carriers)
        flow = Flow(outputs, key, (*left.blame, *right.blame))
        return self._blamed(flow, node) if mixes else flow

    def _aggregate(self, node: Node) -> Flow:
        lists = node.arguments
        if len(lists) not in (1, 2):
            raise Unreadable
        grouping = elements(lists[0]) if len(lists) == 2 else ()
        child = self._only_child(node)
        grouped = self._grouped(node, child, grouping, child.outputs)
        return self._projected(grouped, [named(element) for element in elements(lists[-1])])

    def _window(self, node: Node) -> Flow:
        made, *lists = node.arguments
        child = self._only_child(node)
        return self._grouped(
            node,
            child,
            elements(lists[0]) if lists else (),
            _both(child.outputs, self.attributes.listed(elements(made))),
        )

    def _grouped(self, node: Node, child: Flow, grouping: Iterable[str], outputs: tuple[int, ...] | None) -> Flow:
        """Rows that are brought together where they agree in ``grouping``."""
        flow = replace(child, outputs=outputs)
        if child.key is None:
            return flow
        groups = [self.attributes.sources(operands(expression)) for expression in grouping]
        alone = frozenset(next(iter(group)) for group in groups if len(group) == 1)
        fits = all(
            carriers.is_within(alone) or any(carriers.determined_by(group) for group in groups if group)
            for carriers in child.key
        )
        return flow if fits else self._blamed(flow, node)

    def _union(self, node: Node) -> Flow:
        branches = [self.read(child) for child in node.children]
        blame = tuple(reason for branch in branches for reason in branch.blame)
        if node.text != "false, false" or not branches:
            raise Unreadable
        keys = [branch.key for branch in branches if branch.key is not None]
        if not keys:
            return replace(branches[0], blame=blame)
        if len(keys) < len(branches):  # rows that are the same in every call come once for each
            return self._blamed(Flow(branches[0].outputs, self._nothing, blame), node)
        return Flow(branches[0].outputs, self._in_common(branches), blame)

    def _compared(self, node: Node) -> Flow:
        left, right = (self.read(child) for child in node.children)
        flow = replace(left, blame=(*left.blame, *right.blame))
        if not right.depends:
            return flow
        fits = left.depends and all(carriers.complete for carriers in self._in_common((left, right)))
        return flow if fits else self._blamed(replace(flow, key=flow.key or self._nothing), node)

    def _in_common(self, branches: Sequence[Flow]) -> tuple[Carriers, ...]:
        """Who carries the key in all branches, by the attributes of the first,
        since places make attributes the same.
        """
        first = branches[0].outputs
        if first is None or len(set(first)) < len(first):
            return self._nothing
        keys = []
        for branch in branches:
            if branch.outputs is None or branch.key is None or len(branch.outputs) != len(first):
                return self._nothing
            places = {new: frozenset({old}) for new, old in zip(first, branch.outputs, strict=True)}
            keys.append([carriers.as_made(places) for carriers in branch.key])
        return tuple(in_common(column) for column in zip(*keys, strict=True))

    def _generate(self, node: Node) -> Flow:
        generator, *_, made = node.arguments
        if generator.partition("(")[0] not in GENERATORS:
            return self._unknown(node)
        child = self._only_child(node)
        return replace(child, outputs=_both(child.outputs, self.attributes.listed(elements(made))))

    def _expand(self, node: Node) -> Flow:
        """Several rows of each: one for each list of expressions."""
        lists, made = node.arguments
        child, outputs = self._only_child(node), self.attributes.listed(elements(made))
        if child.key is None:
            return replace(child, outputs=outputs)
        rows = [[self.attributes.sources(operands(element)) for element in elements(row)] for row in elements(lists)]
        keys = [[carriers.as_made(dict(zip(outputs, row, strict=True))) for carriers in child.key] for row in rows]
        return Flow(outputs, tuple(in_common(column) for column in zip(*keys, strict=True)), child.blame)

    def _with_shared(self, node: Node) -> Flow:
        *shared, main = node.children
        for repeated in shared:
            self._shared[repeated.arguments[0]] = self._only_child(repeated)
        return self.read(main)

    def _shared_again(self, node: Node) -> Flow:
        name, *others = node.arguments
        flow = self._shared[name]
        outputs = self.attributes.listed(elements(next(other for other in others if other.startswith("["))))
        if flow.outputs is None or len(flow.outputs) != len(outputs):
            return Flow(outputs, flow.key and self._nothing, flow.blame)
        old = dict(zip(outputs, flow.outputs, strict=True))
        for new, attribute in old.items():
            self.attributes.again(new, attribute)
        key = flow.key and tuple(
            carriers.as_made({new: frozenset({attribute}) for new, attribute in old.items()}) for carriers in flow.key
        )
        return Flow(outputs, key, flow.blame)


def _never_null(carriers: Carriers, attributes: Iterable[int]) -> Carriers:
    for attribute in attributes:
        carriers = carriers.never_null(attribute)
    return carriers


def _both(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if first is None or second is None else first + second


def _show(node: Node) -> str:
    text = ATTRIBUTE_IDS.sub("", str(node))
    return f"{text[:SHOWN]}..." if len(text) > SHOWN else text


RULES: Mapping[str, Callable[[FlowReader, Node], Flow]] = {
    "SubqueryAlias": FlowReader._alias,
    "View": FlowReader._view,
    "Project": FlowReader._project,
    "Aggregate": FlowReader._aggregate,
    "Window": FlowReader._window,
    "Deduplicate": FlowReader._deduplicate,
    "Distinct": FlowReader._distinct,
    "Union": FlowReader._union,
    "Except": FlowReader._compared,
    "Intersect": FlowReader._compared,
    "Generate": FlowReader._generate,
    "Expand": FlowReader._expand,
    "WithCTE": FlowReader._with_shared,
    "CTERelationRef": FlowReader._shared_again,
    **dict.fromkeys(
        ("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"),
        FlowReader._row_by_row,
    ),
    "CollectMetrics": FlowReader._row_by_row,
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"), FlowReader._cut),
    **dict.fromkeys(("Relation", "LocalRelation", "Range", "OneRowRelation"), FlowReader._constant),
}
