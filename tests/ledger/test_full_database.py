"""A PostgreSQL whose disk is full."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from tests.disks import fill, needs_disks, small_disk
from tests.ledger.samples import record
from tests.postgres import BACK_ENDS, GIVEN_SERVER, own_schema

from stagehold.errors import LedgerUnavailable, StorageProblem
from stagehold.ledger import Ledger

pytestmark = [
    needs_disks,
    pytest.mark.skipif(GIVEN_SERVER is not None or "postgresql" not in BACK_ENDS, reason="no PostgreSQL of our own"),
]

REMEDY = StorageProblem.FULL.remedy


@pytest.fixture
def disk() -> Iterator[Path]:
    """Not below pytest's own folders, which only their owner may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with small_disk(Path(folder) / "disk", size="8m") as disk:
            yield disk


@pytest.fixture
def url(postgres_server: str, disk: Path) -> Iterator[str]:
    """A ledger all of whose tables are on that disk."""
    disk.chmod(0o755)
    space = disk / "space"
    space.mkdir()
    shutil.chown(space, "postgres")
    engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE TABLESPACE small LOCATION '{space}'"))
        with own_schema(postgres_server) as own:
            options = f"{make_url(own).query['options']} -cdefault_tablespace=small"
            yield make_url(own).update_query_dict({"options": options}).render_as_string(hide_password=False)
        connection.execute(text("DROP TABLESPACE small"))
    engine.dispose()


def test_it_is_said_so_nothing_is_half_written_and_it_goes_on_once_there_is_room(url, disk):
    with Ledger.open(url) as ledger:
        lease = ledger.leases.acquire("x", "me", 3600)
        fill(disk)
        with pytest.raises(
            LedgerUnavailable, match=r"No space left on device .* disk space\. Nothing is .*Make room on its disk"
        ) as failed:
            ledger.partitions.record([record(number) for number in range(2000)], lease)
        assert failed.value.problem is StorageProblem.FULL
        assert ledger.partitions.newest_of(record(0).cell.pipeline, record(0).cell.interval) == {}
        (disk / "filler").unlink()
        ledger.partitions.record([record(number) for number in range(200)], lease)
        (found,) = ledger.partitions.newest_of(record(0).cell.pipeline, record(0).cell.interval).values()
        assert len(found) == 200
