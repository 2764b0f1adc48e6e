"""The forms in which a decoder process returns outputs: records for the event store, or lines of text."""

import pickle
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from rowtide.connector.engine.decoding.lines import put, put_lines
from rowtide.connector.records.batch import Batch, Output

_FIRST_ROOM = 1 << 18
"""The initial space for the lines of an event. Those of an event of 8 KB, the default, take 100 to 1000 KB."""

T_co = TypeVar("T_co", covariant=True)


class Form(Protocol[T_co]):
    """Transfers outputs between two processes. The form itself is pickled once for each process."""

    def pack(self, outputs: Sequence[Output], memory: memoryview) -> tuple[int, int]:
        """Convert outputs in the decoder process, and return their size in bytes and a number for the parent.

        Args:
            outputs: the outputs.
            memory: the memory for the bytes.

        Raises:
            BufferError: the memory is too small for them.
        """
        ...

    def unpacked(self, data: memoryview, pieces: Sequence[tuple[int, int]]) -> T_co:
        """Convert several results of :meth:`pack` back, in the parent.

        Args:
            data: their bytes, valid until the next result is requested.
            pieces: the size in bytes and the number of each.
        """
        ...

    def direct(self, outputs: Sequence[Output]) -> T_co:
        """Convert outputs that the parent made itself."""
        ...


class RecordForm:
    """The outputs themselves."""

    def pack(self, outputs: Sequence[Output], memory: memoryview) -> tuple[int, int]:
        """Pickle the outputs; the schemas, which only transforms need, are omitted."""
        plain = [output._replace(schemas=None) if isinstance(output, Batch) else output for output in outputs]
        return put(memory, pickle.dumps(plain, pickle.HIGHEST_PROTOCOL)), 0

    def unpacked(self, data: memoryview, pieces: Sequence[tuple[int, int]]) -> Sequence[Output]:
        """Unpickle them."""
        outputs: list[Output] = []
        begin = 0
        for size, _ in pieces:
            outputs += pickle.loads(data[begin : begin + size])
            begin += size
        return outputs

    def direct(self, outputs: Sequence[Output]) -> Sequence[Output]:
        """Return them as they are."""
        return outputs


class Lines(NamedTuple):
    """Records as JSON lines.

    Attributes:
        packed: the lines, for :func:`~rowtide.connector.engine.decoding.lines.write_lines`; valid until the next ones
            are requested.
        records: their number.
    """

    packed: memoryview
    records: int


class LineForm:
    """A JSON object for each record, one per line; records of the schema history are omitted."""

    def __init__(self) -> None:
        self._memory = bytearray()  # of the lines that were returned last

    def pack(self, outputs: Sequence[Output], memory: memoryview) -> tuple[int, int]:
        """Pack the lines; the number is that of the records."""
        size = records = 0
        for output in outputs:
            if isinstance(output, Batch):
                for batch in output.destinations():
                    size += put_lines(memory[size:], batch.topic, batch.messages)
                    records += len(batch.messages)
        return size, records

    def unpacked(self, data: memoryview, pieces: Sequence[tuple[int, int]]) -> Lines:
        """Return the lines, in the memory of the process."""
        return Lines(data, sum(records for _, records in pieces))

    def direct(self, outputs: Sequence[Output]) -> Lines:
        """Return the lines, in memory that is used again: its pages are mapped, and often in the processor's cache."""
        while True:
            memory = memoryview(self._memory)
            try:
                size, records = self.pack(outputs, memory)
            except BufferError:
                self._memory = bytearray(max(2 * len(memory), _FIRST_ROOM))
            else:
                return Lines(memory[:size], records)
