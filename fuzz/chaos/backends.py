"""Where chaos happens: on this machine, with the lake in a bucket, or on a standalone cluster. The last two have faults
of their own.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from fuzz.chaos.turmoil import NEVER_SAID, Turmoil
from tests.conftest import QUICK_JAVA, free_port
from tests.lake.slow_store import Proxy, Trouble, counted_store
from tests.object_store import new_lake, object_store, way_to
from tests.run.standalone import Cluster, standalone_cluster
from tests.run.workbench import Workbench

from stagehold.spark.server.server import spark_server

LONGEST_BURST = 5.0  # seconds, of the minute that calls are tried for
MOST_OF_A_RUN = 15.0
OFTEN = 8  # beside 20 of all other faults


@dataclass(frozen=True)
class Backend:
    """``faults`` are those that can happen there alone, and how likely each is beside the others."""

    bench: Workbench
    faults: Mapping[Callable[[Turmoil], None], int] = field(default_factory=dict)


@contextmanager
def on_this_machine(folder: Path) -> Iterator[Backend]:
    bench = _bench(folder)
    with spark_server(bench.settings):
        yield Backend(bench)


@contextmanager
def in_a_bucket(folder: Path) -> Iterator[Backend]:
    """Everybody speaks to the store by a proxy, whose bursts of trouble end before anything is checked."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # moto's, which tells of each call
    bench = _bench(folder)
    with (
        object_store() as address,
        counted_store(address) as proxy,
        patch.dict(os.environ, way_to(proxy.address)),
    ):
        bench = Workbench(replace(bench.settings, lake=new_lake()))
        with spark_server(bench.settings):
            yield Backend(bench, {partial(burst, proxy): OFTEN})


@contextmanager
def on_a_cluster(folder: Path) -> Iterator[Backend]:
    (place := folder / "cluster").mkdir()
    with standalone_cluster(place) as cluster:
        bench = Workbench(replace(_bench(folder).settings, spark_master=cluster.master))
        with spark_server(bench.settings):
            yield Backend(bench, {partial(lose_worker, cluster): OFTEN})


BACKENDS = {"folder": on_this_machine, "bucket": in_a_bucket, "cluster": on_a_cluster}


def burst(proxy: Proxy, turmoil: Turmoil) -> None:
    """For some seconds of a run each call is throttled, or reset before or behind the store; nobody has to help."""
    trouble, random = turmoil.random.choice(list(Trouble)), turmoil.random
    after, seconds = random.random() * MOST_OF_A_RUN, random.uniform(1, LONGEST_BURST)
    turmoil.renew_input()
    worker = turmoil.start()
    time.sleep(after)
    hit = proxy.burst(trouble, seconds)
    code = turmoil.wait(worker)
    _went_on(turmoil, code, worker.err())
    turmoil.tell("burst", f"of {hit} calls {trouble} in {seconds:.1f} s, ended with {code}", hit=hit > 0)


def lose_worker(cluster: Cluster, turmoil: Turmoil) -> None:
    """A machine of the cluster is lost in the middle of a run, or one after the other; nobody has to help."""
    after, losses = turmoil.random.random() * MOST_OF_A_RUN, turmoil.random.choice((1, 1, 2))
    turmoil.renew_input()
    worker = turmoil.start()
    time.sleep(after)
    hit = worker.poll() is None
    for _ in range(losses):
        cluster.lose_worker()
        cluster.add_worker()
        cluster.await_workers()
    code = turmoil.wait(worker)
    _went_on(turmoil, code, worker.err())
    turmoil.tell("worker", f"lost {losses} times after {after:.1f} s, ended with {code}", hit=hit)


def _went_on(turmoil: Turmoil, code: int, said: str) -> None:
    """To its end by itself, unless what happened before needs a person."""
    assert not any(text in said for text in NEVER_SAID), said
    assert code == 0 or turmoil.spoilt or turmoil.counts["log"], f"it ended with {code}:\n{said}"


def _bench(folder: Path) -> Workbench:
    bench = Workbench.make(folder, "")
    own = {"spark_port": free_port(), "spark_memory": "1g", "spark_java_options": QUICK_JAVA}
    return Workbench(replace(bench.settings, **own))
