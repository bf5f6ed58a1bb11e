from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.graph import UnionFind, fused, strong_components, topological_order

GRAPHS = st.integers(1, 8).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=3), min_size=size, max_size=size)
)


def reaches(successors, start):
    seen, rest = set(), list(successors[start])
    while rest:
        node = rest.pop()
        if node not in seen:
            seen.add(node)
            rest.extend(successors[node])
    return seen


@pytest.mark.parametrize(
    ("joins", "components"),
    [
        ([], ((0,), (1,), (2,), (3,))),
        ([()], ((0,), (1,), (2,), (3,))),
        ([(0, 2), (3, 1)], ((0, 2), (1, 3))),
        ([(2, 3), (1, 2), (0, 3)], ((0, 1, 2, 3),)),
    ],
)
def test_joined_nodes_are_in_one_component(joins, components):
    union = UnionFind(4)
    for nodes in joins:
        union.join(nodes)
    assert union.components() == components


@given(GRAPHS)
def test_strong_components_are_the_nodes_that_reach_each_other(successors):
    reach = [reaches(successors, node) for node in range(len(successors))]
    expected = {
        frozenset({node} | {other for other in reach[node] if node in reach[other]}) for node in range(len(successors))
    }
    assert {frozenset(component) for component in strong_components(successors)} == expected


@given(GRAPHS)
def test_the_order_holds_every_node_that_no_cycle_reaches_after_its_predecessors(successors):
    reach = [reaches(successors, node) for node in range(len(successors))]
    cyclic = {node for node in range(len(successors)) if node in reach[node]}
    behind = cyclic.union(*(reach[node] for node in cyclic))
    order = topological_order(successors)
    assert set(order) == set(range(len(successors))) - behind
    place = {node: index for index, node in enumerate(order)}
    assert all(place[node] < place[target] for node in order for target in successors[node] if target in place)


def test_the_smallest_ready_node_comes_first():
    assert topological_order([[3], [0], [], [2], []]) == (1, 0, 3, 2, 4)


def test_a_chain_deeper_than_the_recursion_limit_is_walked():
    chain = [[node + 1] for node in range(50_000)] + [[]]
    assert len(strong_components(chain)) == 50_001
    assert all(a < b for a, b in pairwise(topological_order(chain)))


@pytest.mark.parametrize(
    ("glued", "locations", "components"),
    [
        ([], [None] * 3, [(0,), (1,), (2,)]),
        ([(0, 2)], [None] * 3, [(0, 2), (1,)]),
        ([(0, 1), (2, 3), (1, 3)], [None] * 4, [(0, 1, 2, 3)]),
        ([], ["x", None, "x"], [(0, 2), (1,)]),
        ([(1, 2)], ["x", None, "x", "y"], [(0, 1, 2), (3,)]),
        ([], [], []),
    ],
)
def test_what_is_glued_or_located_together_is_fused(glued, locations, components):
    assert list(fused(glued, locations)) == components
