"""Are the ports free that a server is about to listen on?"""

from __future__ import annotations

import socket
from errno import EADDRINUSE
from itertools import chain

from stagehold.errors import PortTaken

LOOPBACK = "127.0.0.1"


def require_free(port: int, *, service: str, setting: str) -> None:
    """Refuse a port that something listens on, naming ``setting`` and a free port to use instead.

    Does not reserve the port: another program can still take it before the service does, and the service's own log says
    so then.

    :param service: who wants the port, in the words of the error text.
    :param setting: the environment variable that chooses another port.
    """
    if not is_free(port):
        raise PortTaken(port=port, service=service, setting=setting, free=_next_free(port))


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections that linger from a service that has just stopped do not keep the next one from listening.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != EADDRINUSE:
                raise
            return False
    return True


def usual_or_free(port: int) -> int:
    """The port, or another one if something listens on it; nothing reserves either."""
    return port if is_free(port) else free_port()


def free_port() -> int:
    """A port that is free now; nothing reserves it."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _next_free(port: int) -> int:
    return next(candidate for candidate in chain(range(port + 1, 65536), range(1024, port)) if is_free(candidate))
