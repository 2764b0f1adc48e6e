"""A server that answers one dump request after the other with given bytes, and the rows that our client reads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from rowtide.databus.client.dump import DumpReader
from rowtide.databus.events import RowsEvent


@contextmanager
def dump_server(*answers: Sequence[bytes], host: str = "127.0.0.1") -> Iterator[tuple[int, list[bytes]]]:
    """Serve; yields the port, and the requests as they come."""
    requests: list[bytes] = []
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:

        def serve() -> None:
            for answer in answers:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(1000))
                    for part in answer:
                        connection.sendall(part)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], requests
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def read_dump(reader: DumpReader) -> list[RowsEvent]:
    """Everything that a reader has until the end of its dump; closes it."""
    found = []
    with closing(reader):
        while not reader.ended:
            event = reader.poll(5)
            if event is not None:
                found.append(event)
    return found
