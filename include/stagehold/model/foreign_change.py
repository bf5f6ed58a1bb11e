"""What somebody else did to a published table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ForeignChange:
    """Rows of a partition that a commit of somebody else took out of its table.

    ``version`` is None when the log no longer has the commit; what it does not tell is None as well.
    """

    version: int | None
    operation: str | None = None
    who: str | None = None
    at: datetime | None = None

    def __str__(self) -> str:
        if self.version is None:
            return "removed by a commit that is no longer in the table's log"
        when = f" at {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at else ""
        return (
            f"removed by commit {self.version} ({self.operation or 'unnamed'}) of "
            f"{self.who or 'somebody unnamed'}{when}"
        )
