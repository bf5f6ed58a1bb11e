"""The metadata database that `stagehold up` prepares, with Airflow's own schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from stagehold.local.airflow_configuration import airflow_database, airflow_home
from stagehold.local.supervisor import prepare_database

pytestmark = pytest.mark.airflow


def test_the_pool_has_the_slots_that_are_set_and_follows_a_change(own_settings):
    for slots in (3, 2):
        settings = replace(own_settings, spark_slots=slots)
        airflow_home(settings).mkdir(parents=True, exist_ok=True)
        prepare_database(settings)
        with closing(sqlite3.connect(airflow_database(settings))) as database:
            assert database.execute("SELECT slots FROM slot_pool WHERE pool = 'stagehold'").fetchall() == [(slots,)]
