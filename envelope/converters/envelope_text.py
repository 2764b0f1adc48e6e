"""The JSON of change events around their rows, for the stream, snapshots and compiled code."""

from rowtide.envelope.converters.json import wrapping
from rowtide.envelope.schema import Schema
from rowtide.envelope.settings import JsonSettings

BETWEEN_ROWS = ',"after":'
SOURCE = ',"source":'
"""What follows the row after the change."""
NO_TRANSACTION = '"transaction":null'


class EnvelopeText:
    """The parts of the envelopes of one table, in order: ``opening``, a row, ``BETWEEN_ROWS``, a row, ``SOURCE``, tail.

    Args:
        schema: the schema of the envelope.
        settings: the settings of the JSON.

    Attributes:
        opening: what precedes the row before the change.
    """

    __slots__ = ("_closing", "opening")

    def __init__(self, schema: Schema | None, settings: JsonSettings) -> None:
        opening, closing = wrapping(schema, settings)
        self.opening, self._closing = opening + b'{"before":', closing.decode()

    def tail(self, op: str, source: str, times: str, transaction: str = NO_TRANSACTION) -> str:
        """Return the text after ``SOURCE``, or after the row number in it.

        Args:
            op: the operation.
            source: the ``source`` block, or the rest of it.
            times: of the processing, from `processing_times`.
            transaction: the ``transaction`` field.
        """
        return f'{source},{transaction},"op":"{op}",{times}}}{self._closing}'

    def around(self, op: str, source: str, times: str) -> tuple[bytes, bytes]:
        """Return the text around the only row of each change: the row before a delete, the row after all others."""
        tail = f"{SOURCE}{self.tail(op, source, times)}".encode()
        if op == "d":
            return self.opening, f"{BETWEEN_ROWS}null".encode() + tail
        return self.opening + f"null{BETWEEN_ROWS}".encode(), tail


def processing_times(now: int) -> str:
    """Return the fields of the time of processing, in ns since the epoch."""
    micros = now // 1000
    return f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{now}'
