"""The coordinator told anything in any order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.checkpoints.scenes import (
    coordinator,
)

from stagehold.checkpoints import coordinator_events as events
from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.coordinator import Phase
from stagehold.model.checkpoint_records import CheckpointFailure
from stagehold.model.records import AttemptState, RunState

TASKS = ("a", "b", "c")
IDS = st.integers(1, 12)


class Machine(RuleBasedStateMachine):
    """Anything may happen at any time; what the rules promise holds all the same."""

    @initialize(
        concurrent=st.integers(1, 3), pause=st.sampled_from([0, 3, 12]), tolerable=st.sampled_from([0, 2, None])
    )
    def start(self, concurrent, pause, tolerable):
        self.now = 0
        self.machine = coordinator(
            tasks=TASKS, max_concurrent=concurrent, min_pause=pause, tolerable_failures=tolerable, timeout=25
        )
        self.concurrent = concurrent
        self.prepared_ids, self.completed, self.aborted = [], [], {}
        self.answered = set()
        self.tell(events.RunChanged(0, RunState.RUNNING))

    def tell(self, told):
        unforced_before = self.unforced()
        for command in self.machine.handle(told):
            match command:
                case events.Prepare(checkpoint, request):
                    assert request.forced or unforced_before <= self.concurrent
                    self.prepared_ids.append(checkpoint)
                case events.Completed(checkpoint, request):
                    assert checkpoint not in self.aborted
                    self.completed.append((checkpoint, request.kind))
                    self.answer(request)
                case events.Aborted(checkpoint, request, reason, _):
                    assert (
                        reason is not CheckpointFailure.CHECKPOINT_SUBSUMED or request.kind is SnapshotKind.CHECKPOINT
                    )
                    self.aborted[checkpoint] = reason
                    self.answer(request)
                case events.Refused(request, _):
                    self.answer(request)

    def answer(self, request):
        assert request.number not in self.answered
        self.answered.add(request.number)

    def unforced(self):
        return sum(not pending.request.forced for pending in self.machine.pending.values())

    @rule(seconds=st.sampled_from([0, 1, 5, 30]))
    def time_passes(self, seconds):
        self.now += seconds
        self.tell(events.Tick(self.now))

    @rule(kind=st.sampled_from(SnapshotKind))
    def user_asks(self, kind):
        self.tell(events.SnapshotRequested(self.now, kind))

    @rule(checkpoint=IDS, ready=st.booleans())
    def preparation_ends(self, checkpoint, ready):
        self.tell((events.Prepared if ready else events.PreparationFailed)(self.now, checkpoint))

    @rule(checkpoint=IDS, task=st.sampled_from((*TASKS, "z")))
    def task_acknowledges(self, checkpoint, task):
        self.tell(events.Acknowledged(self.now, checkpoint, task))

    @rule()
    def everything_goes_well(self):
        for checkpoint, pending in list(self.machine.pending.items()):
            self.tell(events.Prepared(self.now, checkpoint))
            for task in sorted(pending.waiting):
                self.tell(events.Acknowledged(self.now, checkpoint, task))
            self.tell(events.Written(self.now, checkpoint))

    @rule(checkpoint=IDS, task=st.sampled_from((*TASKS, "z")))
    def task_declines(self, checkpoint, task):
        self.tell(events.Declined(self.now, checkpoint, task))

    @rule(checkpoint=IDS, well=st.booleans())
    def writing_ends(self, checkpoint, well):
        self.tell((events.Written if well else events.WritingFailed)(self.now, checkpoint))

    @rule(checkpoint=IDS)
    def deleted(self, checkpoint):
        self.tell(events.Discarded(self.now, checkpoint))

    @rule(
        task=st.sampled_from(TASKS),
        state=st.sampled_from([AttemptState.CREATED, AttemptState.RUNNING, AttemptState.FINISHED]),
    )
    def task_changes(self, task, state):
        self.tell(events.TaskChanged(self.now, task, state))

    @rule(state=st.sampled_from([RunState.RUNNING, RunState.RESTARTING]))
    def run_changes(self, state):
        self.tell(events.RunChanged(self.now, state))
        if state is not RunState.RUNNING:
            assert not self.machine.pending
            assert len(self.machine.queue) == 0
            assert self.machine.next_wake() is None

    @rule()
    @precondition(lambda self: self.machine.pending)
    def regions_restart(self):
        before = set(self.machine.pending)
        self.tell(events.RegionFailover(self.now))
        assert before <= set(self.aborted)

    @invariant()
    def never_more_than_allowed_at_a_time(self):
        assert self.unforced() <= self.concurrent
        assert len(self.machine.queue) <= 1000

    @invariant()
    def ids_are_drawn_in_order_and_checkpoints_complete_in_order(self):
        assert self.prepared_ids == list(range(1, len(self.prepared_ids) + 1))
        ids = [checkpoint for checkpoint, kind in self.completed if kind is SnapshotKind.CHECKPOINT]
        assert ids == sorted(ids)
        assert [entry.id for entry in self.machine.store.entries] == ids[-1:]

    @invariant()
    def everything_drawn_is_pending_or_ended_once(self):
        ended = [checkpoint for checkpoint, _ in self.completed] + list(self.aborted)
        assert sorted([*ended, *self.machine.pending]) == self.prepared_ids

    @invariant()
    def only_who_was_asked_is_waited_for(self):
        for pending in self.machine.pending.values():
            assert pending.waiting <= pending.tasks
            assert pending.phase is not Phase.WRITING or not pending.waiting


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestMachine = Machine.TestCase
