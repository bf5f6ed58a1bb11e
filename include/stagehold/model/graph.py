"""Components and order of a directed graph whose nodes are numbered from 0.

All of this is iterative and linear in nodes plus edges (the order adds a logarithm), because a graph of partitions
is deeper than Python's recursion limit and larger than what may be walked twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

Successors = Sequence[Sequence[int]]


class UnionFind:
    """Connected components: join nodes, then ask for the groups."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, node: int) -> int:
        """The representative of the node's component; it changes when components are joined."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def join(self, nodes: Iterable[int]) -> None:
        """Put all of ``nodes`` into one component, represented by its smallest node."""
        roots = {self.find(node) for node in nodes}
        smallest = min(roots, default=0)
        for root in roots:
            self._parent[root] = smallest

    def components(self) -> tuple[tuple[int, ...], ...]:
        """Every component in ascending order, ordered by its smallest node."""
        members: dict[int, list[int]] = {}
        for node in range(len(self._parent)):
            members.setdefault(self.find(node), []).append(node)
        return tuple(tuple(component) for component in members.values())


def fused(glued: Iterable[Iterable[int]], locations: Sequence[str | None]) -> tuple[tuple[int, ...], ...]:
    """Every node in one component: nodes ``glued`` together are in one, and so are nodes of one location.

    This is what makes a region, of stages as of single partitions. ``locations`` has one for each node, None for none.
    """
    joined = UnionFind(len(locations))
    for together in glued:
        joined.join(together)
    located: dict[str, list[int]] = {}
    for node, location in enumerate(locations):
        if location is not None:
            located.setdefault(location, []).append(node)
    for together in located.values():
        joined.join(together)
    return joined.components()


def strong_components(successors: Successors) -> tuple[tuple[int, ...], ...]:
    """Strongly connected components (Tarjan): nodes of one component reach each other."""
    search = _Tarjan(successors)
    for node in range(len(successors)):
        if search.index[node] < 0:
            search.visit(node)
    return tuple(search.components)


class _Tarjan:
    """State of one search; ``index`` is the visiting number, -1 before the visit."""

    def __init__(self, successors: Successors) -> None:
        self._successors = successors
        self._low = [0] * len(successors)
        self._open = [False] * len(successors)
        self._stack: list[int] = []
        self._visited = 0
        self.index = [-1] * len(successors)
        self.components: list[tuple[int, ...]] = []

    def visit(self, root: int) -> None:
        path = [(root, self._enter(root))]
        while path:
            node, rest = path[-1]
            for successor in rest:
                if self.index[successor] < 0:
                    path.append((successor, self._enter(successor)))
                    break
                if self._open[successor]:
                    self._low[node] = min(self._low[node], self.index[successor])
            else:
                path.pop()
                self._leave(node)
                if path:
                    self._low[path[-1][0]] = min(self._low[path[-1][0]], self._low[node])

    def _enter(self, node: int) -> Iterator[int]:
        self.index[node] = self._low[node] = self._visited
        self._visited += 1
        self._open[node] = True
        self._stack.append(node)
        return iter(self._successors[node])

    def _leave(self, node: int) -> None:
        if self._low[node] != self.index[node]:
            return
        start = len(self._stack) - 1
        while self._stack[start] != node:
            start -= 1
        component = self._stack[start:]
        del self._stack[start:]
        for member in component:
            self._open[member] = False
        self.components.append(tuple(sorted(component)))


def topological_order(successors: Successors) -> tuple[int, ...]:
    """Nodes after all their predecessors, the smallest possible node first.

    Nodes on a cycle and those behind it are left out, so a shorter answer than there are nodes means a cycle.
    """
    missing = [0] * len(successors)
    for targets in successors:
        for target in targets:
            missing[target] += 1
    ready = [node for node, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for target in successors[node]:
            missing[target] -= 1
            if missing[target] == 0:
                heapq.heappush(ready, target)
    return tuple(order)
