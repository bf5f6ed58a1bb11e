"""What a stage says of data that is there although something has changed, or time gone by."""

from __future__ import annotations

from stagehold.model.units import PositiveDuration
from stagehold.spec.settings.fields import KeyParts, SpecPart


class KeepSettings(SpecPart):
    """Which changes leave recorded partitions as they are, and how old they may be."""

    keep: KeyParts = ()
    """Changes that leave recorded partitions as they are, besides those that the pipeline names: of `code`, `params`,
    `environment` (versions of Python and Spark), `sources`. For a stored output. Example: `keep: [environment]`"""

    max_age: PositiveDuration | None = None
    """How old its data may be when a run begins; what is older runs again. Example: `max_age: 7d`"""
