"""Other code in the project's files while somebody is at work."""

from __future__ import annotations

import time

from fuzz.chaos.subjects import Toy
from fuzz.chaos.turmoil import NEVER_SAID, Turmoil

MOST_BETWEEN = 0.5  # seconds
VERSIONS = (2, 3)  # what numbers are multiplied by


def deploy(turmoil: Turmoil) -> None:
    """Code is deployed beneath a run, again and again, and perhaps rolled back at its end. Whatever the run was
    computed with then, the next one gives what the code says that is there.
    """
    subject, random = turmoil.subject, turmoil.random
    if not isinstance(subject, Toy):
        turmoil.tell("deploy", "of code that has one version", hit=False)
        return
    turmoil.renew_input()
    before, deployed, worker = subject.times, 0, turmoil.start()
    while worker.poll() is None:
        time.sleep(random.uniform(0, MOST_BETWEEN))
        subject.deploy(random.choice(VERSIONS))
        deployed += 1
    rolled_back = random.random() < 1 / 2
    subject.deploy(before if rolled_back else random.choice(VERSIONS))
    code = turmoil.wait(worker)
    assert not any(text in worker.err() for text in NEVER_SAID), worker.err()
    turmoil.finished = False
    turmoil.watch.forget()
    told = f"{deployed} times{', and rolled back' if rolled_back else ''}, ended with {code}"
    turmoil.tell("deploy", told, hit=deployed > 0)
