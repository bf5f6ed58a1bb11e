"""Where chaos happens: on this machine, with the lake in a bucket, or on a standalone cluster. The last two have the
ledger in PostgreSQL, and faults of their own.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGQUIT
from unittest.mock import patch

from fuzz.chaos.deploys import deploy
from fuzz.chaos.turmoil import NEVER_SAID, Turmoil
from tests.conftest import QUICK_JAVA, free_port
from tests.lake.slow_store import Proxy, Trouble, counted_store
from tests.object_store import GIVEN_STORE, moto_store, new_lake, object_store, way_by_role, way_to
from tests.postgres import PROGRAMS, PostgresServer, own_server
from tests.run.standalone import Cluster, standalone_cluster
from tests.run.workbench import Workbench

from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server, start_server, stop_server
from stagehold.spark.session.remote_server import note_session, remote_server

LONGEST_BURST = 5.0  # seconds, of the minute that calls are tried for
LONGEST_OUTAGE = 12.0  # an attempt waits for ten
MOST_OF_A_RUN = 10.0
OFTEN = 5  # beside 20 of all faults that happen everywhere
SOMETIMES = 2
LEDGER, STORAGE = "cannot be used now", "storage_denied"  # what a run may end with, so that the next try goes on
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
Faults = dict[Callable[[Turmoil], None], int]


@dataclass(frozen=True)
class Backend:
    """``faults`` happen beside those that need nothing but a worker, each as likely as its number says."""

    bench: Workbench
    faults: Faults = field(default_factory=dict)


@contextmanager
def on_this_machine(folder: Path) -> Iterator[Backend]:
    bench = _bench(folder)
    with spark_server(bench.settings):
        yield Backend(bench, {deploy: SOMETIMES})


@contextmanager
def in_a_bucket(folder: Path) -> Iterator[Backend]:
    """Everybody speaks to the store by a proxy, whose bursts of trouble end before anything is checked, and with keys
    that it gives out; a store that was given knows its own keys only.
    """
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # moto's, which tells of each call
    with ExitStack() as started:
        bench, faults = _on_a_server(_bench(folder), started)
        proxy = started.enter_context(
            counted_store(started.enter_context(object_store() if GIVEN_STORE else moto_store()))
        )
        started.enter_context(patch.dict(os.environ))
        if not GIVEN_STORE:
            for name in KEYS:
                os.environ.pop(name, None)
            faults |= {partial(expire, proxy): OFTEN}
        os.environ.update(way_to(proxy.address) if GIVEN_STORE else way_by_role(proxy.address, folder / "pod"))
        bench = Workbench(replace(bench.settings, lake=new_lake()))
        started.enter_context(spark_server(bench.settings))
        yield Backend(bench, faults | {partial(burst, proxy): OFTEN, deploy: SOMETIMES})


@contextmanager
def on_a_cluster(folder: Path) -> Iterator[Backend]:
    (place := folder / "cluster").mkdir()
    with ExitStack() as started:
        bench, faults = _on_a_server(_bench(folder), started)
        cluster = started.enter_context(standalone_cluster(place))
        bench = Workbench(replace(bench.settings, spark_master=cluster.master))
        started.enter_context(spark_server(bench.settings))
        yield Backend(bench, faults | {partial(lose_worker, cluster): OFTEN, renew_token: OFTEN, deploy: SOMETIMES})


BACKENDS = {"folder": on_this_machine, "bucket": in_a_bucket, "cluster": on_a_cluster}


def burst(proxy: Proxy, turmoil: Turmoil) -> None:
    """For some seconds of a run each call is throttled, or reset before or behind the store; nobody has to help."""
    trouble, seconds = turmoil.random.choice(list(Trouble)), turmoil.random.uniform(1, LONGEST_BURST)
    with _beneath_a_run(turmoil) as run:
        hit = proxy.burst(trouble, seconds)
    turmoil.tell("burst", f"of {hit} calls {trouble} in {seconds:.1f} s, ended with {run.codes}", hit=hit > 0)


def expire(proxy: Proxy, turmoil: Turmoil) -> None:
    """The keys that everybody has run out, and who gives them is late."""
    seconds = turmoil.random.uniform(0, LONGEST_BURST)
    with _beneath_a_run(turmoil, STORAGE) as run:
        hit = proxy.expire(seconds)
    told = f"by {hit} calls, {seconds:.1f} s before there were others, ended with {run.codes}"
    turmoil.tell("expired", told, hit=hit > 0)


def lose_worker(cluster: Cluster, turmoil: Turmoil) -> None:
    """A machine of the cluster is lost in the middle of a run, or one after the other; nobody has to help."""
    losses = turmoil.random.choice((1, 1, 2))
    with _beneath_a_run(turmoil) as run:
        for _ in range(losses):
            cluster.lose_worker()
            cluster.add_worker()
            cluster.await_workers()
    turmoil.tell("worker", f"lost {losses} times, ended with {run.codes}", hit=run.hit)


def renew_token(turmoil: Turmoil) -> None:
    """A server that takes another token from now on; the file with the token follows some seconds later."""
    settings, late = turmoil.subject.bench.settings, turmoil.random.uniform(0, LONGEST_BURST)
    file, server = settings.home_path / "token", start_server(settings)
    file.write_text(server.token)
    remote = replace(settings, spark_remote=f"sc://127.0.0.1:{server.port}", spark_token_file=str(file))
    note_session(remote_server(remote), remote)  # it was let in before, or would not wait for a token
    with _beneath_a_run(turmoil, settings=remote) as run:
        stop_server(settings)
        renewed = start_server(settings)
        time.sleep(late)
        file.write_text(renewed.token)
    turmoil.tell("token", f"was another one for {late:.1f} s, ended with {run.codes}", hit=run.hit)


def end_ledger(server: PostgresServer, turmoil: Turmoil) -> None:
    """The ledger's database is away for a while of a run: its server ends, by itself or in the middle of something."""
    number, seconds = turmoil.random.choice((SIGINT, SIGQUIT)), turmoil.random.uniform(0, LONGEST_OUTAGE)
    with _beneath_a_run(turmoil, LEDGER) as run:
        server.stop(number)
        time.sleep(seconds)
        server.start()
    turmoil.tell("database", f"away for {seconds:.1f} s by {number.name}, ended with {run.codes}", hit=run.hit)


def lock_ledger(turmoil: Turmoil) -> None:
    """Somebody else has the ledger's file for a while of a run, so that nobody can write."""
    seconds = turmoil.random.uniform(1, LONGEST_OUTAGE)
    file = turmoil.subject.bench.settings.ledger_url.removeprefix("sqlite:///")
    with (
        _beneath_a_run(turmoil, LEDGER) as run,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
        suppress(sqlite3.OperationalError),
    ):
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
    turmoil.tell("database", f"locked for {seconds:.1f} s, ended with {run.codes}", hit=run.hit)


@dataclass
class Beneath:
    """A run beneath which something happens: whether it was there to be hit, and how it ended; again, if it failed."""

    hit: bool = False
    codes: list[int] = field(default_factory=list)


@contextmanager
def _beneath_a_run(turmoil: Turmoil, ends: str = "", settings: Settings | None = None) -> Iterator[Beneath]:
    """Start a run, have the block happen some time later, and see that nobody has to help: the run gets to its end, or
    says ``ends``, and the next try gets there. No partition is computed more than once for that.
    """
    run, began = Beneath(), turmoil.random.random() * MOST_OF_A_RUN
    turmoil.renew_input()
    before = turmoil.watch.commits()
    worker = turmoil.start(settings=settings)
    time.sleep(began)
    run.hit = worker.poll() is None
    yield run
    run.codes.append(turmoil.wait(worker))
    if run.codes == [1] and ends and ends in worker.err():
        worker = turmoil.start(settings=settings)
        run.codes.append(turmoil.wait(worker))
    assert not any(text in worker.err() for text in NEVER_SAID), worker.err()
    needs_somebody = turmoil.spoilt or turmoil.counts["log"]
    assert run.codes[-1] == 0 or needs_somebody, f"it ended with {run.codes}:\n{worker.err()}"
    twice = {place: count for place, count in (turmoil.watch.commits() - before).items() if count > 1}
    assert not twice, f"computed again though it was committed: {twice}\n{worker.err()}"


def _on_a_server(bench: Workbench, started: ExitStack) -> tuple[Workbench, Faults]:
    """The ledger in PostgreSQL, where this machine has its programs."""
    if PROGRAMS is None:
        return bench, {lock_ledger: OFTEN}
    server = started.enter_context(own_server())
    return Workbench(replace(bench.settings, ledger=server.url)), {partial(end_ledger, server): OFTEN}


def _bench(folder: Path) -> Workbench:
    bench = Workbench.make(folder, "")
    own = {"spark_port": free_port(), "spark_memory": "1g", "spark_java_options": QUICK_JAVA}
    return Workbench(replace(bench.settings, **own))
