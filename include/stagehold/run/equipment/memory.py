"""How much memory an attempt and its Spark server have now."""

from __future__ import annotations

from stagehold.model.pulse import Memory
from stagehold.settings import Settings
from stagehold.spark.processes import resident_bytes, session_members
from stagehold.spark.server.server_record import read_state


def memory_now(settings: Settings) -> Memory:
    """The memory of this process, and of a local server with its Python workers; a server elsewhere cannot be asked."""
    client = resident_bytes()
    state = None if settings.spark_remote else read_state(settings)
    if state is None or not state.process.alive:
        return Memory(client)
    return Memory(client, sum(map(resident_bytes, session_members(state.pid))))
