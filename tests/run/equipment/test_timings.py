"""Laps follow each other from the start of the process, and only the main thread's count."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from stagehold.run.equipment.timings import Lap, Timings


def test_laps_are_all_of_the_time_and_the_first_wave_is_told_from_the_others():
    timings = Timings()
    began = time.monotonic()
    timings.passed(Lap.START)
    timings.passed(Lap.PLAN)
    for _ in range(3):
        time.sleep(0.02)
        timings.wave_passed()
    timings.passed(Lap.PLAN)
    found = timings.seconds
    assert list(found) == [Lap.START, Lap.PLAN, Lap.FIRST_WAVE, Lap.WAVES]
    assert 0.04 <= found[Lap.WAVES] < sum(found.values()) - found[Lap.START] <= time.monotonic() - began
    assert str(timings).startswith("interpreter and imports ")


def test_what_other_threads_do_goes_on_beside_it():
    timings = Timings()
    thread = threading.Thread(target=timings.passed, args=(Lap.PLAN,))
    thread.start()
    thread.join()
    assert timings.seconds == {}


def test_the_first_lap_begins_with_the_process():
    code = (
        "import time; time.sleep(0.3)\n"
        "from stagehold.run.equipment.timings import TIMINGS, Lap\n"
        "TIMINGS.passed(Lap.START); print(TIMINGS.seconds[Lap.START])"
    )
    began = time.monotonic()
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0.3 <= float(said) <= time.monotonic() - began + 0.02  # the kernel counts in hundredths
