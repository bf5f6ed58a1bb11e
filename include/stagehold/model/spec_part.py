"""What every part of a pipeline's spec is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(strict=True, ge=1)]


class SpecPart(BaseModel):
    """Base of every part of a spec: immutable, and no field is silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
