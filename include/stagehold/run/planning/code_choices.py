"""What a user wants to be done with data in a checkpoint that was made by other code than stages have now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stagehold.code.stage_code import CodeFingerprint, code_fingerprint
from stagehold.errors import InvalidArgument, NothingToAccept, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, CodeChoice, CodeHandling
from stagehold.plan.grounds.content_verdicts import acceptance_of
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

OPTION = "--on-code-change"
WORDS = ", ".join(CodeHandling)
FORMS = f"STAGE=WORD, or a WORD for every other stage whose code changed; a WORD is one of {WORDS}"


@dataclass(frozen=True)
class CodeWishes:
    """The wishes ``of_stages`` by their names, and for ``others`` whose code changed, if any."""

    of_stages: Mapping[str, CodeHandling]
    others: CodeHandling | None
    said_by: str
    reason: str = ""

    @staticmethod
    def read(texts: Sequence[str], said_by: str, reason: str) -> CodeWishes:
        """The wishes in texts such as `clean=keep`, or `keep` for every other stage.

        :raises InvalidArgument: a text is anything else.
        """
        of_stages: dict[str, CodeHandling] = {}
        others = None
        for text in texts:
            stage, separator, word = text.rpartition("=")
            if word not in list(CodeHandling) or bool(separator) != bool(stage):
                raise InvalidArgument(OPTION, text, FORMS)
            if stage:
                of_stages[stage] = CodeHandling(word)
            else:
                others = CodeHandling(word)
        return CodeWishes(of_stages, others, said_by, reason)


def choose_code(
    wishes: CodeWishes, begins_with: BeginsWith, pipeline: Pipeline, settings: Settings
) -> tuple[CodeChoice, ...]:
    """The choices for stages whose code differs from the code that made the data which the run begins with. A wish for
    any other stage changes nothing.

    :raises UnknownName: the pipeline has no such stage.
    :raises InvalidArgument: the output of a named stage is not stored.
    :raises NothingToAccept: code that cannot be compared can be kept, and not accepted.
    """
    _check_names(wishes, pipeline)
    choices = (_choice(stage, wishes, begins_with, settings) for stage in pipeline.stages if stage.output.stored)
    return tuple(choice for choice in choices if choice)


def _check_names(wishes: CodeWishes, pipeline: Pipeline) -> None:
    stored = [stage.name for stage in pipeline.stages if stage.output.stored]
    known = [stage.name for stage in pipeline.stages]
    for name, handling in wishes.of_stages.items():
        if name not in known:
            raise UnknownName(f"stage of {pipeline.name}", name, stored)
        if name not in stored:
            allowed = f"{', '.join(stored)}; {name} is not stored, so its code is a part of what its readers read"
            raise InvalidArgument(OPTION, f"{name}={handling}", allowed)


def _choice(stage: Stage, wishes: CodeWishes, begins_with: BeginsWith, settings: Settings) -> CodeChoice | None:
    handling = wishes.of_stages.get(stage.name, wishes.others)
    if handling is None:
        return None
    present = _present_code(stage, settings)
    made_by = tuple(sorted(begins_with.made_by(stage) - {present.value}))
    if not made_by:
        return None
    if handling is CodeHandling.ACCEPT and present.value is None:
        raise NothingToAccept(stage.name, f"its present code cannot be compared: {present.reason}")
    reason = wishes.reason or (f"restored from {begins_with.name}" if handling is CodeHandling.ACCEPT else "")
    return CodeChoice(stage.id, handling, made_by, wishes.said_by, reason)


def record_acceptances(request: RunRequest, ledger: Ledger, settings: Settings) -> tuple[Acceptance, ...]:
    """Put what the request accepts on record for every interval, unless it is accepted already."""
    words = tuple(_words(request, ledger, settings))
    if words:
        ledger.acceptances.record(words)
    return words


def _words(request: RunRequest, ledger: Ledger, settings: Settings) -> Iterator[Acceptance]:
    choices = request.restore.code_choices if request.restore else ()
    stages, pipeline = {stage.id: stage for stage in request.pipeline.stages}, request.pipeline.name
    for choice in choices:
        if choice.handling is not CodeHandling.ACCEPT or choice.stage not in stages:
            continue
        present = _present_code(stages[choice.stage], settings).value
        general = [
            acceptance
            for acceptance in ledger.acceptances.of(pipeline)
            if acceptance.stage == choice.stage and not acceptance.interval
        ]
        for code in choice.made_by:
            if present and code and acceptance_of(code, present, general) is None:
                now = datetime.now(UTC)
                yield Acceptance(pipeline, None, choice.stage, code, present, choice.said_by, choice.reason, now)


def _present_code(stage: Stage, settings: Settings) -> CodeFingerprint:
    return code_fingerprint(stage.entries, Path(settings.project))
