"""Has computed again what a scrub found, by an ordinary run of each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagehold.errors import StageholdError
from stagehold.plan.scrub import StageScrub, after_healing, found_in, left_alone, to_heal
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.scrub.scrubbing import ScrubPlace, scrub


def heal(
    requests: Sequence[RunRequest], results: Sequence[StageScrub], place: ScrubPlace
) -> tuple[tuple[StageScrub, ...], tuple[str, ...]]:
    """The results after that, and what kept intervals from being healed.

    The run does whatever a run of its interval would do now, and computes missing partitions also if nothing reads
    them. What was found is then looked at again.
    """
    by_place = {(request.pipeline.name, request.interval): request for request in requests}
    wanted = to_heal(results)
    failures = [
        _not_healed(*key, f"{who}. Run this again when that has ended.") for key, who in left_alone(results).items()
    ]
    for key, partitions in wanted.items():
        place.progress(f"healing {key[0]} for {key[1]}")
        try:
            outcome = run_locally(replace(by_place[key], wanted=partitions), place.settings, place.progress)
            place.progress(f"{key[0]} for {key[1]}: {outcome}")
        except StageholdError as error:
            failures.append(_not_healed(*key, str(error)))
    again = scrub([by_place[key] for key in wanted], found_in(results), place)
    return after_healing(results, again), tuple(failures)


def _not_healed(pipeline: str, interval: str, why: str) -> str:
    return f"{pipeline} for {interval} was not healed: {why}"
