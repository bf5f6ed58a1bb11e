"""Types of key columns, and which of them may meet in a keyed exchange.

Keys that Spark takes for equal have to fall into one group. For types that may meet here, the canonical forms that
`run.key_columns` hashes see to that; all others are refused. Found by trying every pair of types on Spark 4.2:

* Two decimals are compared, and put into one union, with 38 digits at most. What does not fit is rounded first, so that
  1.4 of decimal(38,10) equals 1 of decimal(38,0). Whole numbers stand for decimals there.
* A float and a whole number are compared as doubles, but as floats where ANSI mode is off.
* A date or a time without a zone equals another timestamp in one session's time zone and not in the next one's.
* A string is cast to what it is compared with. In other collations than UTF8_BINARY strings can be equal and not alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

MOST_DIGITS = 38
EXACT_IN_FLOAT = 5  # digits of the whole numbers of which every one is a float


class KeyKind(Enum):
    """Kinds of values. Of two that may not meet, the one further up is better cast to the other."""

    STRING = auto()
    BOOLEAN = auto()
    BINARY = auto()
    DATE = auto()
    TIMESTAMP_NTZ = auto()
    TIMESTAMP = auto()
    FLOAT = auto()
    WHOLE = auto()
    DECIMAL = auto()
    DOUBLE = auto()
    DAY_TIME = auto()
    YEAR_MONTH = auto()
    STRUCT = auto()
    ARRAY = auto()
    NOTHING = auto()  # of a column that is all NULL
    COLLATED = auto()
    UNUSABLE = auto()  # no equality, or one that no canonical form is known for


NUMBERS = frozenset({KeyKind.WHOLE, KeyKind.DECIMAL, KeyKind.FLOAT, KeyKind.DOUBLE})


@dataclass(frozen=True)
class KeyType:
    """``text`` is Spark's name of the type, ``digits`` are before the point,
    ``parts`` are the types in a nested one.
    """

    kind: KeyKind
    text: str
    digits: int = 0
    scale: int = 0
    parts: tuple[KeyType, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether equal values of this very type have one canonical form."""
        return self.kind not in (KeyKind.COLLATED, KeyKind.UNUSABLE) and all(part.usable for part in self.parts)


def may_meet(kind: KeyType, other: KeyType) -> bool:
    """Whether keys of these types that are equal to Spark, whatever its settings, have equal canonical forms."""
    if not (kind.usable and other.usable):
        return False
    if KeyKind.NOTHING in (kind.kind, other.kind):
        return True
    if {kind.kind, other.kind} <= NUMBERS:
        return _numbers_may_meet(kind, other)
    parts = zip(kind.parts, other.parts, strict=False)
    return kind.kind is other.kind and len(kind.parts) == len(other.parts) and all(may_meet(*pair) for pair in parts)


def _numbers_may_meet(kind: KeyType, other: KeyType) -> bool:
    kinds = {kind.kind, other.kind}
    if KeyKind.DOUBLE in kinds:
        return True
    if KeyKind.FLOAT in kinds:
        return KeyKind.WHOLE not in kinds or max(kind.digits, other.digits) <= EXACT_IN_FLOAT
    return max(kind.digits, other.digits) + max(kind.scale, other.scale) <= MOST_DIGITS
