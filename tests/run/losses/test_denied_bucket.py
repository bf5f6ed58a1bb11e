"""A bucket whose keys may not write, or have run out: said with the lake and what to do, by attempts and commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import boto3
import pytest
from moto import settings as moto
from moto.core.responses import ActionAuthenticatorMixin
from tests.lake.paper_table import PaperTable
from tests.object_store import moto_store
from tests.run.workbench import INTERVAL, NOWHERE, Workbench
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import StageholdError, StorageProblem, StorageUnusable
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import WaveCommit
from stagehold.lake.store import files
from stagehold.lake.store.location import table_location
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.slow

READS = {"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}


@dataclass(frozen=True)
class Written:
    """What is left is to publish."""

    table: PaperTable
    wave: WaveCommit


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """Moto's, whichever store is named for the other tests: its look at keys is switched on here."""
    with moto_store() as address:
        yield address


@pytest.fixture
def settings(tmp_path: Path, s3_lake: str) -> Settings:
    here = Workbench.make(tmp_path, NOWHERE)
    here.write_source(0)
    settings = replace(here.settings, lake=s3_lake)
    rows = here.raw / "numbers" / "part-0.parquet"
    assert files.files_at(s3_lake).create(f"raw/numbers/{rows.name}", rows.read_bytes())
    return settings


def published(settings: Settings) -> PaperTable:
    stage = find_pipeline("toy", settings).stage("by_colour")
    return PaperTable(table_location(settings.lake_uri, "toy", stage, INTERVAL)).create()


def reader() -> dict[str, str]:
    iam = boto3.client("iam")
    iam.create_user(UserName="reader")
    policy = json.dumps({"Version": "2012-10-17", "Statement": [READS]})
    iam.put_user_policy(UserName="reader", PolicyName="reads", PolicyDocument=policy)
    return dict(iam.create_access_key(UserName="reader")["AccessKey"])


def forget_reader(key: str) -> None:
    iam = boto3.client("iam")
    iam.delete_access_key(UserName="reader", AccessKeyId=key)
    iam.delete_user_policy(UserName="reader", PolicyName="reads")
    iam.delete_user(UserName="reader")


@pytest.fixture(params=["may only read", "ran out"])
def keys(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """The store looks at keys from now on."""
    table = published(settings)
    written = Written(table, table.wave({0: [("a", 1)]}))
    made = reader()
    with monkeypatch.context() as denied:
        if request.param == "may only read":
            denied.setenv("AWS_ACCESS_KEY_ID", made["AccessKeyId"])
            denied.setenv("AWS_SECRET_ACCESS_KEY", made["SecretAccessKey"])
        denied.setattr(moto, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
        denied.setattr(ActionAuthenticatorMixin, "request_count", 1)
        files._s3.cache_clear()
        yield written
    forget_reader(made["AccessKeyId"])


def told(settings: Settings, error: StageholdError) -> None:
    assert isinstance(error, StorageUnusable)
    assert (error.problem, error.place) == (StorageProblem.DENIED, settings.lake_uri)
    assert "credentials" in str(error)
    assert "<Error>" not in str(error)


def test_a_wave_is_not_published(settings, keys):
    with pytest.raises(StorageUnusable) as failed, naming_storage(settings):
        StagedCommitter().publish(keys.table.location, keys.wave)
    told(settings, failed.value)


def test_a_file_is_not_written(settings, keys):
    with pytest.raises(StorageUnusable) as failed, naming_storage(settings):
        files.files_at(settings.lake_uri).create("x", b"1")
    told(settings, failed.value)


def test_a_command_says_so_without_a_traceback(settings, keys):
    ended = CliRunner().invoke(app, ["run", "toy", "--interval", INTERVAL], env=dict(settings.environment))
    assert ended.exit_code == 1
    assert isinstance(ended.exception, SystemExit), ended.exception
    assert any(line.startswith(f"{settings.lake_uri} cannot be used") for line in ended.stderr.splitlines()), (
        ended.stderr
    )
