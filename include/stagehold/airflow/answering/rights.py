"""Rights of Stagehold's own, beside Airflow's: for actions that cannot be undone, or that let data through which a gate
refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from fastapi import HTTPException, status

from stagehold.errors import InvalidSetting

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from stagehold.settings import Settings

VARIABLE = "STAGEHOLD_RIGHTS"
EVERYBODY = "*"
USUAL = frozenset({"op", "admin"})


class Right(StrEnum):
    """An action that needs more than the right to resume the run."""

    WAIVE = "waive"
    DISPOSE = "dispose_savepoint"

    @property
    def deed(self) -> str:
        return {Right.WAIVE: "Waiving what a gate refuses", Right.DISPOSE: "Disposing of a savepoint"}[self]


def roles_with(settings: Settings) -> Mapping[Right, frozenset[str]]:
    """Airflow's roles that have each right.

    :raises InvalidSetting: the setting names no right, or gives a right to nobody.
    """
    granted = dict.fromkeys(Right, USUAL)
    for part in filter(None, map(str.strip, settings.rights.split(";"))):
        name, _, roles = part.partition("=")
        named = frozenset(role.strip().lower() for role in roles.split(",") if role.strip())
        if name.strip() not in set(Right) or not named:
            raise InvalidSetting(VARIABLE, part, f"RIGHT=ROLE,ROLE; ... with {', '.join(Right)}; `*` is everybody")
        granted[Right(name.strip())] = named
    return granted


def has_right(right: Right, user: BaseUser, settings: Settings) -> bool:
    granted = roles_with(settings)[right]
    return EVERYBODY in granted or not granted.isdisjoint(_roles(user))


def require_right(right: Right, user: BaseUser, settings: Settings) -> None:
    """Refuse a user without the right.

    :raises HTTPException: the user has none of the roles; it names the roles, and who can change them.
    """
    if not has_right(right, user, settings):
        wanted, own = sorted(roles_with(settings)[right]), ", ".join(sorted(_roles(user))) or "no role"
        raise HTTPException(
            status.HTTP_403_FORBIDDEN,
            f"{right.deed} needs the role {' or '.join(wanted)}, and {user.get_name()} has {own}. Ask somebody who has "
            f"it; {VARIABLE} ({right}=...) of the api-server says which roles do.",
        )


def _roles(user: BaseUser) -> frozenset[str]:
    """The user's roles. Airflow's simple auth manager gives a user one role by its name, FAB several objects with
    names.
    """
    roles = getattr(user, "roles", None) or [getattr(user, "role", None)]
    return frozenset(str(getattr(role, "name", role)).lower() for role in roles if role)
