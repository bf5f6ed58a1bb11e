"""Airflow's retries, as the pipeline's restart strategy decides them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy

from stagehold.plan.restart.replay import first_delay
from stagehold.plan.restart.rules import TERMINATED, diagnose, rules_of
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.restart import RestartStrategy

if TYPE_CHECKING:
    from airflow.sdk import Context

# Airflow counts tries for each task and forgets none; the strategies count for each run, and some forget. So this is
# only the number at which Airflow gives up.
MOST_RETRIES = 100


def retry_arguments(pipeline: Pipeline) -> dict[str, Any]:
    """Arguments of every region task, mapped or not."""
    return {
        "retries": 0 if pipeline.restart.strategy is RestartStrategy.NONE else MOST_RETRIES,
        "retry_delay": first_delay(pipeline.restart),
        "retry_policy": StrategyRetryPolicy(pipeline),
    }


class StrategyRetryPolicy(RetryPolicy):
    """Carries out the decision that was recorded with the attempt's failure: it fails the task, or has it wait for the
    strategy's delay.

    Airflow does not ask it about a process that was killed: that task waits for the first delay, and the next try asks
    the strategy.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,  # noqa: ARG002
    ) -> RetryDecision:
        # Imported here because DAG files import this module, and the journal reaches ledger and planner.
        from stagehold.run.journal.journal import verdict_of

        verdict = verdict_of(exception)
        if verdict is None:
            return self._unrecorded(exception)
        if verdict.decision is None or not verdict.decision.restart:
            return RetryDecision.fail(str(verdict))
        return RetryDecision.retry(verdict.decision.delay, str(verdict))

    def _unrecorded(self, exception: BaseException) -> RetryDecision:
        """The decision about an error without a record. The ledger was away, and the task has tried for as long as it
        may; or this error belongs to no run. A try that a SIGTERM ended may be repeated: the next try asks the
        strategy.
        """
        diagnosis = diagnose(exception, rules_of(self.pipeline.failures))
        reason = f"{diagnosis.kind} failure (rule {diagnosis.rule.name}) that could not be recorded"
        if diagnosis.rule.name == TERMINATED:
            return RetryDecision.retry(first_delay(self.pipeline.restart), reason)
        return RetryDecision.fail(reason)
