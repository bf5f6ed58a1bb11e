"""Who has the rights that are Stagehold's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from stagehold.errors import InvalidSetting
from stagehold.settings import Settings

pytestmark = pytest.mark.airflow


@dataclass
class User:
    """A user as Airflow's auth managers have them: with one role by its name, or with several."""

    role: str | None = None
    roles: list[SimpleNamespace] = field(default_factory=list)


@pytest.mark.parametrize(
    ("setting", "user", "may"),
    [
        pytest.param("", User("op"), True, id="op by default"),
        pytest.param("", User("user"), False, id="no user by default"),
        pytest.param("", User(), False, id="no role"),
        pytest.param("", User(roles=[SimpleNamespace(name="Admin")]), True, id="a role of FAB's"),
        pytest.param("waive=on call", User(roles=[SimpleNamespace(name="On Call")]), True, id="a role of one's own"),
        pytest.param("waive=on call", User("admin"), False, id="admin is no exception"),
        pytest.param("waive=*", User(), True, id="everybody"),
        pytest.param("dispose_savepoint=user", User("user"), False, id="another right"),
        pytest.param("dispose_savepoint=user; waive=user,op", User("user"), True, id="two rights"),
    ],
)
def test_the_setting_says_which_roles_have_a_right(setting, user, may):
    from stagehold.airflow.answering.rights import Right, has_right

    assert has_right(Right.WAIVE, user, Settings(rights=setting)) is may


@pytest.mark.parametrize("setting", ["wave=op", "waive", "waive=", "op"])
def test_a_setting_that_names_no_right_is_refused(setting):
    from stagehold.airflow.answering.rights import roles_with

    with pytest.raises(InvalidSetting, match="waive, dispose_savepoint"):
        roles_with(Settings(rights=setting))
