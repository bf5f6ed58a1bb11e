"""Attempts of one pipeline that meet, freeze, die and wake up in every order:
what can be read is right after each of their steps.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.made_up import machine
from tests.run.protocol.stepper import Stepper
from tests.run.protocol.world import CUTS, MOST, PARTITIONS, STAGES, World

from stagehold.run.faults import Point

MEMORY = Path("/dev/shm")  # flushing to a disk is most of the time otherwise, and tells nothing here
MOST_AT_ONCE = 4
PLACES = (
    *(f"{when} its {what}" for when in ("before", "after") for what in ("lease", "fence", "commit", "records")),
    *(str(point) for point in Point if point is not Point.MID_WRITE),
    "a file is written",
    "its end",
)
AMOUNTS = {"some": (7, 8), "others": (20, 21), "a debt": (-5, 3), "too much": (600,), "none": ()}

places, stages, cuts, parts = (
    st.sampled_from(PLACES),
    st.sampled_from(STAGES),
    st.sampled_from([1, *CUTS]),
    st.integers(0, 2),
)
standing = st.sampled_from(["before its commit"] * 3 + ["after its commit", "before its records", "before its fence"])
overtaking = st.sampled_from(["its end", "before its fence", "after its fence", "before its commit"])
soon = st.sampled_from(["its end", "its end", "after its commit", "before its records"])
partitions = st.integers(0, PARTITIONS - 1)
changes = st.dictionaries(partitions, st.sampled_from(sorted(AMOUNTS)), max_size=PARTITIONS)
others = st.dictionaries(partitions, st.sampled_from(["some", "others", "too much"]), min_size=1, max_size=2)
limits = st.sampled_from([9, 30, MOST, 5000])
mending = st.sampled_from([True, True, False])
attempts = st.tuples(stages, cuts, parts)
one_of_several = st.integers(0, MOST_AT_ONCE - 1)


def upstream(stage):
    return STAGES[: STAGES.index(stage)]


class Protocol(RuleBasedStateMachine):
    """Its rules say who goes on and how far, who dies, and what changes in the world meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.world = World(Path(self.folder.name))

    def teardown(self) -> None:
        try:
            self.world.bring_to_an_end()
        finally:
            self.folder.cleanup()

    @property
    def alive(self) -> list[Stepper]:
        return [attempt for attempt in self.world.attempts if not attempt.ended]

    @initialize(computed=st.sampled_from([(), STAGES[:1], STAGES]))
    def begin_after_earlier_runs(self, computed):
        self.run(*computed)

    @precondition(lambda self: len(self.alive) < MOST_AT_ONCE)
    @rule(stage=stages, cut=cuts, part=parts, place=places, changes=changes, silence=st.booleans())
    def begin(self, stage, cut, part, place, changes, silence):
        self.change_sources(changes)
        if silence:
            self.world.end_leases()
        self.world.begin(stage, cut, part).go_to(place)

    @rule(stage=stages, cut=cuts, part=parts, place=places, changes=changes)
    def begin_and_die(self, stage, cut, part, place, changes):
        self.change_sources(changes)
        self.world.end_leases()
        attempt = self.world.begin(stage, cut, part)
        attempt.go_to(place)
        attempt.kill()

    @rule(
        older=attempts,
        place=standing,
        changes=others,
        mended=mending,
        newer=attempts,
        newer_place=overtaking,
        then=soon,
    )
    def begin_and_be_overtaken(self, older, place, changes, mended, newer, newer_place, then):
        """A zombie wakes up while its successor, for whom sources may be again what they were,
        stands somewhere or has ended.
        """
        stage = older[0]
        before = {partition: self.world.sources[partition] for partition in changes}
        self.run(*upstream(stage), stage)
        self.change_sources(changes)
        self.run(*upstream(stage))
        zombie = self.world.begin(*older)
        zombie.go_to(place)
        if mended:
            self.restore_sources(before)
            self.run(*upstream(stage))
        self.world.end_leases()
        successor = self.world.begin(stage, *newer[1:])
        successor.go_to(newer_place)
        zombie.go_to("its end")
        self.world.check()
        successor.go_to(then)

    def run(self, *names):
        """Let attempts of whole stages go to their ends, whoever is at work on them."""
        self.world.end_leases()
        for stage in names:
            self.world.begin(stage).go_to("its end")

    def change_sources(self, changes):
        self.restore_sources({partition: AMOUNTS[amounts] for partition, amounts in changes.items()})

    def restore_sources(self, sources):
        for partition, amounts in sources.items():
            self.world.write_source(partition, amounts)

    @precondition(lambda self: self.alive)
    @rule(which=one_of_several, place=places, steps=st.integers(0, 3), dies=st.booleans())
    def go_on(self, which, place, steps, dies):
        attempt = self.alive[which % len(self.alive)]
        attempt.go_to(place)
        for _ in range(steps):
            attempt.step()
        if dies:
            attempt.kill()

    @rule(most=limits)
    def change_the_gate(self, most):
        self.world.write_suite(most)

    @rule(ends=st.booleans(), again=stages, place=places, steps=st.integers(0, 3))
    def waive_and_die_publishing(self, ends, again, place, steps):
        """What is refused is let through, or that is taken back, and whoever does it may die."""
        self.world.waive(ends=ends)
        self.world.end_leases()
        attempt = self.world.begin(again)
        attempt.go_to(place)
        for _ in range(steps):
            attempt.step()
        attempt.kill()
        self.world.check()
        self.run(*STAGES)

    @rule(most=limits, again=stages, place=places, steps=st.integers(0, 3))
    def change_the_gate_and_die_judging(self, most, again, place, steps):
        """What had passed or been refused is judged again by an attempt that dies, and by whoever comes next."""
        self.run(*STAGES)
        self.world.write_suite(most)
        self.world.end_leases()
        attempt = self.world.begin(again)
        attempt.go_to(place)
        for _ in range(steps):
            attempt.step()
        attempt.kill()
        self.world.check()
        self.run(*STAGES)

    @rule(changes=changes, lost=st.sets(st.tuples(stages, partitions), max_size=2))
    def disturb(self, changes, lost):
        self.change_sources(changes)
        for stage, partition in lost:
            self.world.lose(stage, partition)

    @rule()
    def copy_the_ledger(self):
        self.run(*STAGES[:1])
        for attempt in self.alive:
            attempt.kill()
        self.world.copy_ledger()

    @rule(again=stages, place=places)
    def lose_the_ledger(self, again, place):
        """Or go back to its copy; the next attempt may die at once, having taken over a part of what the lake knows."""
        self.world.lose_ledger()
        self.world.check()
        attempt = self.world.begin(again)
        attempt.go_to(place)

    @invariant()
    def what_can_be_read_is_right(self):
        self.world.check()


TestProtocol = pytest.mark.slow(Protocol.TestCase)
TestProtocol.settings = machine(examples=4, steps=30)
