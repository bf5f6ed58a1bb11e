"""Batch pipelines of PySpark stages that go on from the last consumable partition."""

from __future__ import annotations

from stagehold.model.context import StageContext, stage

__all__ = ["StageContext", "stage"]
