"""Spark's daemon of Python workers, made so that the workers write down their stacks on a signal.

Started by `-m stagehold.spark.server.python_daemon`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path

# in the server's environment: the file for them, since Spark starts daemons in folders of its own
STACKS = "PYTHON_STACKS_FILE"

if __name__ == "__main__":
    from pyspark.daemon import manager

    # Handler and file are inherited by every worker, which is a fork of this process. The file is never closed.
    faulthandler.register(signal.SIGUSR1, file=Path(os.environ[STACKS]).open("a"), all_threads=True)  # noqa: SIM115
    manager()
