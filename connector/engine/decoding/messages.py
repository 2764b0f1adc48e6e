"""The messages between a decoder process and its parent; the events and the outputs themselves are in shared memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rowtide.connector.engine.decoding.chunks import End
from rowtide.connector.engine.decoding.forms import Form
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.model import Table


class Setup(NamedTuple):
    """The first message to a process.

    Attributes:
        settings: of the pipeline.
        form: of the outputs.
        clock: for the processing times, in ns since the epoch.
    """

    settings: PipelineSettings
    form: Form[Any]
    clock: Callable[[], int]


class Ready(NamedTuple):
    """The process is ready for chunks."""


class ChunkRequest(NamedTuple):
    """A chunk to be decoded; see :class:`~rowtide.connector.engine.decoding.chunks.EventChunk`.

    Attributes:
        slot: the slot with its events, and for its outputs.
        sizes: bytes of each event.
        tables: the tables that this process has not received yet; ``None`` for one that is not captured.
        format: the FORMAT_DESCRIPTION of the events.
    """

    slot: int
    sizes: Sequence[int]
    start: SourceOffset
    head: Sequence[bytes]
    events: int
    position: int
    tables: Sequence[tuple[TableStructure, Table | None]]
    format: FormatDescription


class Continue(NamedTuple):
    """The parent has read a part: the process can write the next part of the chunk over it."""


class ChunkState(NamedTuple):
    """The state of a pipeline.

    Attributes:
        progress: of its progress.
        end: the progress in the form that is compared with the assumption of the next chunk.
        position: of its decoder.
    """

    progress: Mapping[str, Any]
    end: End
    position: int


class ChunkPart(NamedTuple):
    """Outputs of a chunk.

    Attributes:
        slot: the slot of the chunk.
        pieces: for each piece in it, its size in bytes and the number from its form.
        events: the number of events of the chunk that are processed so far.
        state: the state after them.
        last: whether the chunk is complete.
    """

    slot: int
    pieces: Sequence[tuple[int, int]]
    events: int
    state: ChunkState
    last: bool

    @property
    def size(self) -> int:
        """Bytes in the slot."""
        return sum(size for size, _ in self.pieces)


class Declined(NamedTuple):
    """The parent has to process the rest of the chunk in a slot."""

    slot: int
