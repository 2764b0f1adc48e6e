"""Reads a dump from a server over TCP.

The client sends the name of the file and, if it wants an end marker, the line ``END``, which the original server does
not read. The server answers ``PONG``; a line for each rows event follows, then the marker, then the end of the stream::

    {"End":true,"Rows":240000,"Offset":17}

From this offset on, the topic has only events after the dump.
rowtide's server answers ``ERROR`` and the reason if it does not have the dump.
"""

import json
import socket
import time
from typing import Final

from rowtide.databus.errors import DumpError
from rowtide.databus.events import RowsEvent

END_REQUEST: Final = b"END\n"
_PONG = b"PONG\n"
_ERROR = b"ERROR "
_CHUNK = 1 << 16
_CONNECT_S = 10.0
_SILENT_S = 60.0
_LONGEST_LINE = 1 << 30


class DumpReader:
    """Reads one dump.

    Args:
        host: the address of the server.
        port: its port.
        file: name of the dump.
        end_marker: whether the dump must end with an end marker.

    Attributes:
        rows: the number of rows so far.
        ended: whether the dump is complete.
        end: from this offset on, the topic has only events after the dump; ``None`` if the server does not send it.

    Raises:
        DumpError: the server cannot be reached, or is not a databus server.
    """

    def __init__(self, host: str, port: int, file: str, *, end_marker: bool) -> None:
        self._name = f"dump {file} of {host}:{port}"
        self._end_marker = end_marker
        self._buffer = bytearray()
        self._searched = 0
        self._waited = 0.0
        self._failure: DumpError | None = None
        self.rows = 0
        self.ended = False
        self.end: int | None = None
        try:
            self._socket = socket.create_connection((host, port), _CONNECT_S)
        except OSError as error:
            raise DumpError(f"{self._name}: the server cannot be reached: {error}. Check that it is running") from error
        try:
            self._socket.sendall(f"{file}\n".encode() + (END_REQUEST if end_marker else b""))
            line = self._line(_CONNECT_S)
        except BaseException:
            self._socket.close()
            raise
        if line is not None and line.startswith(_ERROR):
            self._socket.close()
            raise DumpError(f"{self._name}: {line.removeprefix(_ERROR).decode(errors='replace').strip()}")
        if line != _PONG:
            self._socket.close()
            raise DumpError(
                f"{self._name}: this is not a databus server: it answered {bytes(line or b'')[:80]!r} instead of PONG"
            )

    def poll(self, timeout: float) -> RowsEvent | None:
        """Return the next event if it arrives in time; otherwise, see ``ended``.

        Raises:
            DumpError: the dump is damaged or truncated; further calls raise it again.
        """
        if self._failure is not None:
            raise DumpError(str(self._failure))
        try:
            return None if self.ended else self._next(timeout)
        except DumpError as error:
            self._failure = error
            raise

    def _next(self, timeout: float) -> RowsEvent | None:
        line = self._line(timeout)
        if line is None:
            return None
        if not line:
            if self._end_marker:
                raise self._cut()
            self.ended = True
            return None
        try:
            if self._end_marker and line.startswith(b'{"End":'):
                self._at_end(json.loads(line))
                return None
            event = RowsEvent.decode(bytes(line))
        except ValueError as error:
            raise DumpError(f"{self._name}: the line after {self.rows} rows is not a rows event: {error}") from error
        self.rows += len(event.rows)
        return event

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _at_end(self, marker: dict[str, object]) -> None:
        if marker.get("Rows") != self.rows:
            raise DumpError(
                f"{self._name}: {self.rows} rows have arrived, and its end marker has {marker.get('Rows')}. Start again"
            )
        offset = marker.get("Offset")
        self.end = offset if isinstance(offset, int) else None
        self.ended = True

    def _cut(self) -> DumpError:
        return DumpError(
            f"{self._name}: it ended without an end marker after {self.rows} rows: the connection was cut, the "
            "file was deleted, or the server is the original one (then set dump_end_marker=false). Start again"
        )

    def _line(self, timeout: float) -> bytes | None:
        """Return the next line with its end; empty at the end of the stream, ``None`` if it does not arrive in time."""
        begin = time.monotonic()
        while (place := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > _LONGEST_LINE:
                raise DumpError(f"{self._name}: a line after {self.rows} rows is longer than {_LONGEST_LINE} bytes")
            self._socket.settimeout(max(begin + timeout - time.monotonic(), 0.001))
            try:
                found = self._socket.recv(_CHUNK)
            except TimeoutError:
                self._waited += time.monotonic() - begin
                if self._waited > _SILENT_S:
                    raise DumpError(
                        f"{self._name}: the server has sent nothing for {_SILENT_S:.0f} s. Start again"
                    ) from None
                return None
            except OSError as error:
                raise DumpError(
                    f"{self._name}: the connection was lost after {self.rows} rows: {error}. Start again"
                ) from error
            if not found:
                if self._buffer:
                    raise self._cut()
                return b""
            self._waited = 0.0
            self._buffer += found
        line = bytes(self._buffer[: place + 1])
        del self._buffer[: place + 1]
        self._searched = 0
        return line
