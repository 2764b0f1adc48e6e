"""The forms in which a decoder process returns outputs: records for the event store, or lines of text."""

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from rowtide.connector.records.batch import Batch, Output

T_co = TypeVar("T_co", covariant=True)


class Form(Protocol[T_co]):
    """How outputs cross the border between two processes. It is pickled itself, once for each process."""

    def packed(self, outputs: Sequence[Output]) -> tuple[bytes, int]:
        """Convert outputs, in the decoder process; returns a number with them that the parent gets."""
        ...

    def unpacked(self, data: memoryview, pieces: Sequence[tuple[int, int]]) -> T_co:
        """Convert several results of :meth:`packed` back, in the parent.

        Args:
            data: their bytes, valid until the next result is requested.
            pieces: for each of them how many bytes it has, and its number.
        """
        ...

    def direct(self, outputs: Sequence[Output]) -> T_co:
        """Convert outputs that the parent has made itself."""
        ...


class RecordForm:
    """The outputs themselves."""

    def packed(self, outputs: Sequence[Output]) -> tuple[bytes, int]:
        """Pickle the outputs; the schemas, which only transforms need, are left out."""
        plain = [output._replace(schemas=None) if isinstance(output, Batch) else output for output in outputs]
        return pickle.dumps(plain, pickle.HIGHEST_PROTOCOL), 0

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
        text: the lines; valid until the next ones are requested.
        records: how many there are.
    """

    text: bytes | memoryview
    records: int


class LineForm:
    """A JSON object for each record, one a line; records of the schema history are left out."""

    def packed(self, outputs: Sequence[Output]) -> tuple[bytes, int]:
        """The lines, and how many there are."""
        batches = [output for output in outputs if isinstance(output, Batch)]
        pieces = (piece for batch in batches for piece in batch.destinations())
        return "".join(_lines(pieces)).encode(), sum(len(batch.messages) for batch in batches)

    def unpacked(self, data: memoryview, pieces: Sequence[tuple[int, int]]) -> Lines:
        """The lines, in the memory of the process."""
        return Lines(data, sum(records for _, records in pieces))

    def direct(self, outputs: Sequence[Output]) -> Lines:
        """The lines."""
        return Lines(*self.packed(outputs))


_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _lines(batches: Iterable[Batch]) -> Iterator[str]:
    for batch in batches:
        topic = _text(batch.topic)
        for key, value, headers in batch.messages:
            pairs = [[name, None if text is None else text.decode()] for name, text in headers]
            shown = _text(pairs) if pairs else "[]"
            yield f'{{"topic":{topic},"key":{_part(key)},"value":{_part(value)},"headers":{shown}}}\n'


def _part(data: bytes | None) -> str:
    return "null" if data is None else _text(data.decode())
