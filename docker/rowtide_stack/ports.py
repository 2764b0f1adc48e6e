"""Free ports of the loopback interface that stay ours while a server is down."""

import random
import socket

__all__ = ["HOST", "free_port"]

HOST = "127.0.0.1"
# Below the range from which the kernel (Linux 32768-60999, others 49152-65535) takes ports for outgoing connections:
# a port from there could be taken while a server is stopped, and it could not come back on it.
_RANGE = range(20_000, 30_000)
_given: set[int] = set()


def free_port() -> int:
    """A port on which nothing listens, and that this process was not given before.

    Raises:
        OSError: there is none.
    """
    for port in random.sample(_RANGE, len(_RANGE)):
        if port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no free port in {_RANGE.start}-{_RANGE.stop - 1}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
