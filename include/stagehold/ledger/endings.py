"""Which recorded states an ending may replace, read from the state machines."""

from __future__ import annotations

from stagehold.errors import IllegalTransition
from stagehold.model.states import Machine, State


def may_end_as(machine: Machine[State], ending: State) -> tuple[State, ...]:
    """Every state from which legal transitions lead to ``ending``.

    In several steps too: the ledger is told how things ended, not each step on the way (a run that fails was `failing` first).
    """
    if not machine.is_terminal(ending):
        allowed = tuple(state for state in machine.transitions if machine.is_terminal(state))
        raise IllegalTransition(machine=machine.name, state="ending", wanted=ending, allowed=allowed)
    found = {ending}
    while before := {state for state, following in machine.transitions.items() if found.intersection(following)} - found:
        found |= before
    return tuple(found - {ending})
