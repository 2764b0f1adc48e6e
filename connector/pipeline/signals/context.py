"""Where a signal stands in the stream, and what its action may use."""

from dataclasses import dataclass, field

from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId


@dataclass(frozen=True, slots=True)
class SignalContext:
    """Where a signal stands in the stream.

    Attributes:
        at: the resume position before the signal; that of its outputs.
        behind: the resume position behind it.
        progress: the position in the stream.
        tables: every table's structure.
        captured: the captured tables.
        table: the signal table, if the signal is a row of it.
        answer: further fields of ``additional_data`` in the notification that the signal is carried out.
    """

    at: SourceOffset
    behind: SourceOffset
    progress: Progress
    tables: Tables
    captured: CapturedTables
    table: TableId | None = None
    answer: dict[str, str] = field(default_factory=dict)
