"""What an event adds to the records of its rows: where the stream stands, as JSON text."""

from collections.abc import Callable, Sequence

from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.codecs.rows import EventContext
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.source import SourceTemplate, stream_snapshot_marker


def row_context(
    settings: PipelineSettings,
    progress: Progress,
    now: int,
    source: SourceTemplate,
    transactions: Callable[[int], Sequence[str]] | None,
) -> EventContext:
    """The context of an event.

    Args:
        settings: converters and headers.
        progress: where the stream stands.
        now: the connector's clock, in ns since the epoch.
        source: of the table.
        transactions: gives the next ``"transaction":…`` fields, if transaction metadata is on.
    """
    micros, ts_us = now // 1000, progress.change_micros()
    return EventContext(
        source.prefix(
            ts_us,
            stream_snapshot_marker(settings.values.json_format),
            progress.server_id,
            progress.gtid,
            progress.file,
            progress.pos,
        ),
        source.suffix(progress.thread, progress.query),
        f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{now}',
        settings.headers,
        transactions,
        progress.source_position(ts_us, now),
    )
