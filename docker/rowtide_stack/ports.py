"""Free ports of the loopback interface that nothing else takes while a server is down."""

import random
import socket

__all__ = ["HOST", "free_port", "is_free"]

HOST = "127.0.0.1"
# Below the range of ports for outgoing connections (Linux 32768-60999, others 49152-65535). A port in that range could
# be taken while a server is stopped.
_RANGE = range(20_000, 30_000)
_returned: set[int] = set()


def free_port() -> int:
    """Return a port on which nothing listens, and which this function has not returned before in this process.

    Raises:
        OSError: no port is free.
    """
    for port in random.sample(_RANGE, len(_RANGE)):
        if port not in _returned and is_free(port):
            _returned.add(port)
            return port
    raise OSError(f"no free port in {_RANGE.start}-{_RANGE.stop - 1}")


def is_free(port: int) -> bool:
    """Return whether nothing listens on a port of the loopback interface."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
