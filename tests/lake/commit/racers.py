"""What the processes of a race do. They start together, and answer with "published <version>" or "fenced"."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from tests.lake.paper_table import PaperTable

from stagehold.errors import Fenced
from stagehold.lake.commit.staged_committer import StagedCommitter

WAVES = 6


def race(*attempts: PaperTable, waves: int = WAVES) -> dict[PaperTable, list[str]]:
    """Let every attempt publish its waves in a process of its own, all at once; answers by attempt."""
    context = get_context("spawn")
    barrier, answers = context.Barrier(len(attempts)), context.Queue()
    processes = [
        context.Process(target=_attempt, args=(index, one, waves, barrier, answers))
        for index, one in enumerate(attempts)
    ]
    for process in processes:
        process.start()
    found = dict(answers.get(timeout=120) for _ in attempts)
    for process in processes:
        process.join(timeout=60)
    return {attempt: found[index] for index, attempt in enumerate(attempts)}


def _attempt(
    index: int, attempt: PaperTable, count: int, barrier: Barrier, answers: Queue[tuple[int, list[str]]]
) -> None:
    waves = [
        attempt.wave({0: [(f"{attempt.attempt_id}", number)], number: [("own", number)]}, number)
        for number in range(1, count + 1)
    ]
    barrier.wait(timeout=60)
    said: list[str] = []
    committer = StagedCommitter()
    try:
        committer.fence(attempt.location, attempt.claim)
        said += [f"published {committer.publish(attempt.location, wave).version}" for wave in waves]
    except Fenced:
        said.append("fenced")
    except Exception as error:  # noqa: BLE001 - for the parent, who would wait for an answer
        said.append(repr(error))
    answers.put((index, said))
