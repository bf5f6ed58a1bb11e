"""What somebody wants to be kept of an interval although something changed that it was made with, for a run of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance
from stagehold.model.keys.compute_key import ComputeKey, KeyPart
from stagehold.plan.grounds.content_verdicts import acceptance_of
from stagehold.plan.resume.judgement import shared_key
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.run.planning.current_plan import current_situation
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

OPTION = "--keep"
FORMS = f"PART of all stages, or STAGE=PART; a PART is one of {', '.join(KeyPart)}"
OF_SETTINGS = f"{FORMS}; not settings, which say how rows are cut into partitions, and where those are"


@dataclass(frozen=True)
class KeepWishes:
    """Parts of keys to be kept: of stages by their names, and of all stages."""

    of_stages: Mapping[str, frozenset[KeyPart]]
    of_all: frozenset[KeyPart]
    said_by: str
    reason: str

    @staticmethod
    def read(texts: Sequence[str], pipeline: Pipeline, said_by: str, reason: str) -> KeepWishes:
        """The wishes in texts such as `environment` and `clean=code,params`.

        :raises InvalidArgument: a text is anything else, or there is no reason.
        :raises UnknownName: the pipeline has no such stage.
        """
        found: dict[str, set[KeyPart]] = {}
        for text in texts:
            stage, _, words = text.rpartition("=")
            if stage and stage not in (known := [each.name for each in pipeline.stages]):
                raise UnknownName(f"stage of {pipeline.name}", stage, known)
            found.setdefault(stage, set()).update(_parts(text, words))
        if not reason:
            raise InvalidArgument("--reason", reason, "with --keep: a sentence that says why the data is as good")
        of_all = frozenset(found.pop("", ()))
        return KeepWishes({name: frozenset(parts) for name, parts in found.items()}, of_all, said_by, reason)

    def of(self, stage: str) -> frozenset[KeyPart]:
        return self.of_all | self.of_stages.get(stage, frozenset())


def _parts(text: str, words: str) -> Iterator[KeyPart]:
    for word in words.split(","):
        if word.strip() not in tuple(KeyPart):
            raise InvalidArgument(OPTION, text, OF_SETTINGS if word.strip() == "settings" else FORMS)
        yield KeyPart(word.strip())


def keeping(situation: Situation, wishes: KeepWishes, interval: str) -> tuple[Situation, tuple[Acceptance, ...]]:
    """The situation in which consumable data of the interval counts as wished, and the words by which it does."""
    words = tuple(dict.fromkeys(_words(situation, wishes, interval)))
    by_stage = {
        stage.name: tuple(word for word in words if word.stage == stage.id) for stage in situation.pipeline.stages
    }
    kept = situation.changed(
        lambda name, known: replace(
            known, words=replace(known.words, acceptances=(*known.words.acceptances, *by_stage[name]))
        )
    )
    return kept, words


def record_kept(request: RunRequest, wishes: KeepWishes, ledger: Ledger, settings: Settings) -> tuple[Acceptance, ...]:
    """Put on record what counts for the interval from now on, in this run and in later ones."""
    _, words = keeping(current_situation(request, settings), wishes, request.interval)
    if words:
        ledger.acceptances.record(words)
    return words


def _words(situation: Situation, wishes: KeepWishes, interval: str) -> Iterator[Acceptance]:
    now, name = datetime.now(UTC), situation.pipeline.name
    decisions = resume_plan(situation).by_stage
    for stage in situation.pipeline.stages:
        shared, said = shared_key(stage, situation), situation.of(stage.name).words.acceptances
        for decision in decisions[stage.name] if stage.output.stored else ():
            record = decision.record
            made = ComputeKey.parse(record.compute_key) if record and record.state.counts_as_done else None
            if made is None:
                continue
            for part in sorted(wishes.of(stage.name)):
                recorded, present = part.of(made), _present(part, stage, shared, decision.key)
                if present and recorded != present and acceptance_of(recorded, present, said, part) is None:
                    yield Acceptance(
                        name, interval, stage.id, recorded, present, wishes.said_by, wishes.reason, now, part.value
                    )


def _present(part: KeyPart, stage: Stage, shared: ComputeKey, wanted: ComputeKey | None) -> str:
    """What the part is now; nothing where that is not known, or is not the stage's own."""
    if part is not KeyPart.SOURCES:
        return part.of(shared)
    return part.of(wanted) if wanted and stage.source is not None else ""
