"""Two drivers commit to one table in an object store whose PUT of a log entry takes half a second: how many commits are
lost?

Once with appends by delta-spark, each driver a Spark server of its own, and once with staged commits by delta-rs.
Prints both counts and writes results/s3_commit_race.json. The number that delta-spark loses differs from run to run;
that it loses some, and tells nobody, does not. Run it from the project's folder: `python -m
bench.s3_commit_race`.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

import boto3
from tests.lake.commit.racers import race
from tests.lake.paper_table import PaperTable
from tests.lake.slow_store import slow_store

from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.sessions import open_session, release_session

RESULTS = Path(__file__).parent / "results" / "s3_commit_race.json"
SECONDS = 0.5
DRIVERS, COMMITS = 2, 9
PORTS = (15113, 15114)
BUCKET = "race"


def main() -> None:
    with object_store():
        found = {"delta-spark": by_delta_spark(), "staged": by_delta_rs()}
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake", "moto")}
    shape = {
        "drivers": DRIVERS,
        "commits_per_driver": COMMITS,
        "put_seconds": SECONDS,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.write_text(json.dumps(facts | shape | {"commits": found}, indent=2) + "\n")
    for name, counts in found.items():
        print(
            f"{name:12} {counts['claimed']} commits were said to have landed, {counts['present']} are there: "
            f"{counts['lost']} lost"
        )


@contextmanager
def object_store() -> Iterator[None]:
    """A bucket behind a slow proxy, found by everything in this process and its children."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    keys = {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "tester",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with slow_store(endpoint, SECONDS) as slow:
        os.environ.update(keys | {"AWS_ENDPOINT_URL": slow})
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield
    server.stop()


def by_delta_spark() -> dict[str, int]:
    table = PaperTable.own(f"s3://{BUCKET}/{uuid4()}")
    context = get_context("spawn")
    barrier, answers = context.Barrier(DRIVERS), context.Queue()
    drivers = [
        context.Process(target=append, args=(table.location.uri, number, barrier, answers)) for number in range(DRIVERS)
    ]
    for driver in drivers:
        driver.start()
    claimed = sum(answers.get(timeout=600) for _ in drivers)
    for driver in drivers:
        driver.join()
    return counted(claimed, table.handle().to_pyarrow_table().num_rows)


def append(uri: str, number: int, barrier: Barrier, answers: Queue[int]) -> None:
    """One driver: a Spark server of its own, which appends one row per commit."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=home, spark_port=PORTS[number], spark_memory="1g", spark_cores=1)
        with spark_server(settings):
            session = str(uuid4())
            spark = open_session(settings, session)
            claimed = 0
            barrier.wait(timeout=300)
            for commit in range(COMMITS):
                frame = spark.createDataFrame(
                    [(f"driver {number}", commit, number)], "name string, amount bigint, _partition int"
                )
                frame.write.format("delta").mode("append").save(uri.replace("s3://", "s3a://"))
                claimed += 1
            release_session(settings, session)
            answers.put(claimed)


def by_delta_rs() -> dict[str, int]:
    first = PaperTable.published(f"s3://{BUCKET}/{uuid4()}")
    said = race(first, first.on("2026-11-21"), waves=COMMITS)
    claimed = sum(answer.startswith("published") for answers in said.values() for answer in answers)
    # every wave has one of its own beside the one that all replace
    present = sum(1 for _, partition, *_ in first.seen() if partition)
    return counted(claimed, present)


def counted(claimed: int, present: int) -> dict[str, int]:
    return {"claimed": claimed, "present": present, "lost": claimed - present}


if __name__ == "__main__":
    main()
