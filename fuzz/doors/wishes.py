"""What people wish for, as data: how the dates stand before, what is asked, and what is to come of it, whichever door
it comes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

STAGES = ("drafts", "edits", "totals")
PARTITIONS = {"drafts": 2, "edits": 2, "totals": 1}

Computed = Mapping[str, int]  # partitions of a stage that got a new epoch, each once
ALL: Computed = PARTITIONS
NOTHING: Computed = {}
FROM_EDITS: Computed = {"edits": 2, "totals": 1}


class Standing(StrEnum):
    """How a date stands before somebody asks for it."""

    NEVER = "never ran"
    WHOLE = "whole"
    FAILED = "failed in edits"
    RELEASED = "whole, drafts released"
    BLOCKED = "blocked by the gate of edits"
    GOES_ON = "a run of it goes on"
    HALF_RESTORED = "a restore from edits failed in totals"


class End(StrEnum):
    GREEN = "green"  # it was done, or there was nothing to do
    RED = "red"
    REFUSED = "refused"  # before a run existed


class Door(StrEnum):
    TAB = "tab"
    RESUME = "Resume"
    COMMAND = "stagehold backfill"
    LOCAL = "without Airflow"
    TRIGGER = "trigger form"
    BACKFILL = "backfill form"
    CLEAR = "clear"
    DAGS_TRIGGER = "airflow dags trigger"
    DAGS_TEST = "airflow dags test"
    TAB_CLICKED = "tab, clicked"
    RESUME_CLICKED = "Resume, clicked"
    TRIGGER_CLICKED = "trigger form, clicked"

    @property
    def asked_alike(self) -> Door:
        """The door that asks the same by routes."""
        return Door[self.name.removesuffix("_CLICKED")]


CLICKED = {  # wishes that somebody puts by hand
    Door.TAB_CLICKED: ("never", "whole", "everything", "from_stage", "from_stage_never", "three"),
    Door.RESUME_CLICKED: ("whole", "failed", "half_restored"),
    Door.TRIGGER_CLICKED: ("never", "whole", "from_stage", "no_date"),
}

GOING_ON = (Door.RESUME, Door.CLEAR)  # with a run that there is
RANGES = (Door.TAB, Door.COMMAND, Door.BACKFILL)
SINGLE = (Door.TRIGGER, Door.DAGS_TRIGGER, Door.DAGS_TEST)  # Airflow's ways to one run


@dataclass(frozen=True)
class Ask:
    """What is asked of the dates.

    ``everything`` is computed again though nothing changed. ``same_run`` goes on with the run that there is. Of
    ``written``, which stands for the date, and of the values of ``conf``, `{date}` is the wish's first date and
    `{other}` its second. ``beside`` says that the interval is typed beside a date of the run's own.
    """

    stage: str | None = None
    everything: bool = False
    only_failed: bool = False
    same_run: bool = False
    written: str = "{date}"
    beside: bool = False
    conf: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Expected:
    """``said`` is a regular expression that is found in what the door answers, in the run's note or its first log
    lines.
    """

    computed: tuple[Computed, ...]
    ends: frozenset[End] = frozenset({End.GREEN})
    said: str = ""


REFUSAL = frozenset({End.REFUSED})


@dataclass(frozen=True)
class Wish:
    """``unlike`` has doors of which something else is expected by intent, with the reason; ``cannot`` has doors that
    have no way to say it.
    """

    key: str
    text: str
    dates: tuple[Standing, ...]
    ask: Ask
    expected: Expected
    unlike: Mapping[Door, tuple[Expected, str]] = field(default_factory=dict)
    cannot: Mapping[Door, str] = field(default_factory=dict)


NO_RUN = dict.fromkeys(GOING_ON, "There is no run of the date to go on with.")
NO_FIELD = "It has no such field."
OF_ONE_RUN = "It goes on with what its run was asked for, and asks nothing anew."
NOT_ONLY_FAILED = "It has no choice of failed dates alone."
OWN_REQUEST = "What a run was asked for goes on in that run alone; here another one begins."
NO_OTHER = "Its only date is the run's own."


def refused(said: str, count: int = 1) -> Expected:
    return Expected((NOTHING,) * count, REFUSAL, said)


WISHES = (
    Wish(
        "never",
        "Compute a date that never ran",
        (Standing.NEVER,),
        Ask(),
        Expected((ALL,)),
        cannot=NO_RUN,
    ),
    Wish(
        "whole",
        "Compute a date that is whole",
        (Standing.WHOLE,),
        Ask(),
        Expected((NOTHING,)),
    ),
    Wish(
        "elsewhere",
        "The same, the date written as a moment of another time zone",
        (Standing.WHOLE,),
        Ask(written="{date}T04:00:00+02:00"),
        Expected((NOTHING,)),
        cannot=dict.fromkeys(GOING_ON, NO_OTHER),
    ),
    Wish(
        "everything",
        "Compute all of a date again, though nothing changed",
        (Standing.WHOLE,),
        Ask(everything=True),
        Expected((ALL,)),
        cannot={Door.CLEAR: OF_ONE_RUN},
    ),
    Wish(
        "failed",
        "Go on after a failure",
        (Standing.FAILED,),
        Ask(same_run=True),
        Expected((FROM_EDITS,)),
    ),
    Wish(
        "from_stage",
        "Restore from a stage, with all before it there",
        (Standing.WHOLE,),
        Ask(stage="edits"),
        Expected((FROM_EDITS,)),
        cannot={Door.CLEAR: OF_ONE_RUN},
    ),
    Wish(
        "released",
        "Restore from a stage, with what it reads released",
        (Standing.RELEASED,),
        Ask(stage="edits"),
        Expected((ALL,), said="drafts of {date} was released: 2 partitions"),
        cannot={Door.CLEAR: OF_ONE_RUN},
    ),
    Wish(
        "from_stage_never",
        "Restore two dates that never ran from a stage",
        (Standing.NEVER, Standing.NEVER),
        Ask(stage="edits"),
        Expected((ALL, ALL), said="Nothing is on record of {date}, so all of it is computed"),
        cannot=NO_RUN,
    ),
    Wish(
        "half_restored",
        "Go on with a restore that failed half-way",
        (Standing.HALF_RESTORED,),
        Ask(same_run=True),
        Expected(({"totals": 1},)),
        cannot=dict.fromkeys(set(Door) - {*GOING_ON, Door.COMMAND}, OWN_REQUEST),
    ),
    Wish(
        "three",
        "Compute three dates, of which the middle one is whole",
        (Standing.NEVER, Standing.WHOLE, Standing.NEVER),
        Ask(),
        Expected((ALL, NOTHING, ALL)),
        cannot=NO_RUN,
    ),
    Wish(
        "only_failed",
        "Of three dates compute the one that failed, and not the one that never ran",
        (Standing.WHOLE, Standing.FAILED, Standing.NEVER),
        Ask(only_failed=True),
        Expected((NOTHING, FROM_EDITS, NOTHING)),
        cannot=dict.fromkeys((*SINGLE, *GOING_ON, Door.BACKFILL), NOT_ONLY_FAILED),
    ),
    Wish(
        "going_on",
        "Compute a date while another run of it goes on",
        (Standing.GOES_ON,),
        Ask(),
        Expected((ALL,)),
        unlike=dict.fromkeys(
            (Door.TAB, Door.COMMAND, Door.RESUME),
            (
                Expected((ALL,), REFUSAL, "is (running|queued)|still (running|queued)|not ended"),
                "It says so before, as Airflow would leave the date out.",
            ),
        ),
    ),
    Wish(
        "blocked",
        "Compute a date again that its gate blocked, with nothing changed",
        (Standing.BLOCKED,),
        Ask(),
        Expected((NOTHING,), frozenset({End.RED, End.REFUSED}), "(?i)gate|blocked"),
    ),
    Wish(
        "interval",
        "An interval in the form, beside a date of the run's own",
        (Standing.NEVER, Standing.NEVER),
        Ask(beside=True),
        Expected((NOTHING, ALL)),
        unlike={
            Door.BACKFILL: (
                Expected((ALL, NOTHING), said="The interval {other} was left aside"),
                "The dates of a backfill are its own: all of them would be for that interval.",
            )
        },
        cannot=dict.fromkeys((*GOING_ON, Door.TAB, Door.COMMAND, Door.LOCAL), NO_OTHER),
    ),
    Wish(
        "unknown",
        "A field that the pipeline has not",
        (Standing.NEVER,),
        Ask(conf={"restore_form": "edits"}),
        Expected((ALL,), said="restore_form is no field of this pipeline and does nothing"),
        unlike=dict.fromkeys(
            (Door.TAB, Door.COMMAND, Door.LOCAL),
            (refused("restore_form|restore-form"), "It can say so before there is a run."),
        ),
        cannot=NO_RUN,
    ),
    Wish(
        "no_stage",
        "Restore from a stage that there is not",
        (Standing.WHOLE,),
        Ask(stage="edit"),
        refused("edit"),
        cannot={Door.CLEAR: OF_ONE_RUN},
    ),
    Wish(
        "no_date",
        "A date that there is not",
        (Standing.NEVER,),
        Ask(written="2023-02-30"),
        refused("2023-02-30|date"),
        cannot=NO_RUN,
    ),
    Wish(
        "no_number",
        "A value of another type than the pipeline's parameter",
        (Standing.NEVER,),
        Ask(conf={"most": "many"}),
        refused("most"),
        cannot=NO_RUN,
    ),
    Wish(
        "both",
        "Restore from a stage and from a savepoint at once",
        (Standing.WHOLE,),
        Ask(stage="edits", conf={"restore": "latest"}),
        Expected((NOTHING,), said="restore and restore_from_stage"),
        unlike={Door.LOCAL: (refused("--restore-from-stage"), "It can say so before there is a run.")},
        cannot=dict.fromkeys((*GOING_ON, Door.TAB, Door.COMMAND), "It has no field for a savepoint."),
    ),
)
