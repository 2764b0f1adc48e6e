"""Notifications (``notification.enabled.channels``) about snapshots and signals, to a topic or to the log."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset, java_hash_map_order
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.schema import INT64, STRING, Schema, struct
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

KEY_SCHEMA = struct("io.debezium.connector.common.NotificationKey", {"id": STRING}, version=1)
VALUE_SCHEMA = struct(
    "io.debezium.connector.common.Notification",
    {
        "id": STRING,
        "type": STRING,
        "aggregate_type": STRING,
        "additional_data": Schema("map", optional=True, keys=STRING, items=STRING),
        "timestamp": INT64,
    },
    version=1,
)

_COPIED_MAP = 8
"""The capacity of Debezium's map of ``additional_data``, the copy of one with three to five fields."""
_LONGEST_LIST = 250_000
"""Characters; of up to four bytes each in UTF-8, they leave space below ``max.message.bytes`` (1 MB by default)."""

End = Literal["COMPLETED", "SKIPPED", "ABORTED", "PAUSED", "RESUMED"]
Kind = (
    Literal["STARTED", "IN_PROGRESS", "TABLE_CHUNK_IN_PROGRESS", "TABLE_CHUNK_COMPLETED", "TABLE_SCAN_COMPLETED"] | End
)


class Notifier:
    """Sends notifications to the enabled channels.

    Args:
        settings: channels, topic and converters.
        clock: returns nanoseconds since the epoch.
        new_id: returns a unique id for a notification that does not answer a signal.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        clock: Callable[[], int],
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id

    def notify(
        self,
        aggregate: str,
        kind: str,
        data: Mapping[str, str],
        offset: SourceOffset,
        *,
        signal_id: str | None = None,
        at: int | None = None,
        error: str | None = None,
    ) -> Iterator[Batch]:
        """Send a notification.

        Args:
            aggregate: its subject: ``Initial Snapshot``, ``Incremental Snapshot``, ``Signal``.
            kind: the kind of event, such as ``STARTED``.
            data: ``additional_data``; ``connector_name`` is added. The fields get the order of Java's maps.
            offset: the resume position of its record.
            signal_id: the id of the signal that it answers.
            at: when it happened, in ns since the epoch; by default now.
            error: the error: a field that Debezium does not have, only for the HTTP endpoint and callers in this
                process.

        Yields:
            Its record, if there is a topic for notifications.
        """
        settings, millis = self._settings, (self._clock() if at is None else at) // 1_000_000
        value = self._value(aggregate, kind, data, signal_id or self._new_id(), millis)
        if settings.log_notifications:
            log.info("notification: %s", value)
        if settings.on_notification is not None:
            settings.on_notification(value if error is None else {**value, "error": error})
        if settings.notification_topic is not None:
            key = json_message(KEY_SCHEMA, {"id": value["id"]}, settings.keys)
            text = json_message(VALUE_SCHEMA, value, settings.values)
            schemas = KEY_SCHEMA, VALUE_SCHEMA
            message = key, text, ()
            yield Batch(settings.notification_topic, -1, [message], offset, len(key) + len(text), millis, schemas)

    def keep(
        self, aggregate: str, kind: str, data: Mapping[str, str], signal_id: str, error: str | None = None
    ) -> None:
        """Make a notification that Debezium does not have, only for the HTTP endpoint and callers in this process."""
        if self._settings.on_notification is not None:
            value = self._value(aggregate, kind, data, signal_id, self._clock() // 1_000_000)
            self._settings.on_notification(value if error is None else {**value, "error": error})

    def _value(
        self, aggregate: str, kind: str, data: Mapping[str, str], notification_id: str, millis: int
    ) -> dict[str, Any]:
        data = {**data, "connector_name": self._settings.topic_prefix}
        return {
            "id": notification_id,
            "type": kind,
            "aggregate_type": aggregate,
            "additional_data": java_hash_map_order(data, _COPIED_MAP),
            "timestamp": millis,
        }


class Notifications:
    """Builds the notifications of one initial or blocking snapshot; none if no channel is enabled.

    The fields of ``additional_data`` and the tables in them have the order of Java's maps and sets, as in Debezium.

    Args:
        settings: channels, topic and converters.
        clock: returns nanoseconds since the epoch.
        new_id: returns a unique id for each notification.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        clock: Callable[[], int],
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._notifier = Notifier(settings, clock, new_id)
        self._clock = clock
        self._settings = settings
        self._tables = self._sorted_tables = ""
        self._started_ns = 0

    def begin(self) -> None:
        """Record the start time of the snapshot; its position is known only later."""
        self._started_ns = self._clock()

    def started(self, offset: SourceOffset) -> Iterator[Batch]:
        """Report that the snapshot has started, at the time of :meth:`begin`."""
        yield from self._notified("STARTED", {}, offset, self._started_ns)

    def reading(self, tables: Sequence[TableId], captured: Sequence[TableId]) -> None:
        """Set the tables whose rows will be read, and the tables of the snapshot, which include the signal table.

        Their names are in two notifications of each table. If there are very many tables, the list is shortened to keep
        the notification below Kafka's default limit, at which Debezium's snapshot fails.
        """
        settings = self._settings
        if not (settings.notification_topic or settings.log_notifications or settings.on_notification):
            return
        self._tables = joined(java_hash_map_order(dict.fromkeys(map(str, tables))))
        self._sorted_tables = joined(sorted(map(str, captured)))

    def in_progress(self, table: TableId, offset: SourceOffset) -> Iterator[Batch]:
        """Report that the snapshot reads a table."""
        data = {
            "current_collection_in_progress": str(table),
            "data_collections": self._tables,
        }
        yield from self._notified("IN_PROGRESS", data, offset)

    def part_in_progress(
        self, table: TableId, number: int, total: int, rows: int, offset: SourceOffset
    ) -> Iterator[Batch]:
        """Report that one of several connections reads a part of a table.

        Args:
            table: the table.
            number: the part's number, from 0.
            total: the parts of the table, as far as is known.
            rows: rows of the table that were read until now.
            offset: the offset of the snapshot.
        """
        data = {
            "current_collection_in_progress": str(table),
            "chunk_index": str(number),
            "total_chunks": str(total),
            "total_rows_scanned": str(rows),
        }
        yield from self._notified("TABLE_CHUNK_IN_PROGRESS", data, offset)

    def part_completed(self, table: TableId, number: int, total: int, offset: SourceOffset) -> Iterator[Batch]:
        """Report that all rows of a part were read; see :meth:`part_in_progress`."""
        data = {
            "scanned_collection": str(table),
            "chunk_index": str(number),
            "total_chunks": str(total),
            "data_collections": self._sorted_tables,
            "status": "SUCCEEDED",
        }
        yield from self._notified("TABLE_CHUNK_COMPLETED", data, offset)

    def table_completed(self, table: TableId, rows: int, offset: SourceOffset) -> Iterator[Batch]:
        """Report that all rows of a table were read."""
        data = {
            "scanned_collection": str(table),
            "total_rows_scanned": str(rows),
            "data_collections": self._sorted_tables,
            "status": "SUCCEEDED",
        }
        yield from self._notified("TABLE_SCAN_COMPLETED", data, offset)

    def table_failed(self, table: TableId, offset: SourceOffset) -> Iterator[Batch]:
        """Report that a table cannot be read; the snapshot is aborted."""
        yield from self._notified(
            "TABLE_SCAN_COMPLETED", {"scanned_collection": str(table), "status": "SQL_EXCEPTION"}, offset
        )

    def ended(self, kind: End, offset: SourceOffset) -> Iterator[Batch]:
        """Report that a snapshot is complete, not needed or aborted, or that a blocking one was paused or resumed."""
        yield from self._notified(kind, {}, offset)

    def _notified(
        self, kind: Kind, data: Mapping[str, str], offset: SourceOffset, at: int | None = None
    ) -> Iterator[Batch]:
        yield from self._notifier.notify("Initial Snapshot", kind, data, offset, at=at)


def joined(names: Iterable[str]) -> str:
    """Return comma-separated names, up to `_LONGEST_LIST` characters, and the number of those that are omitted."""
    text = ",".join(names)
    if len(text) <= _LONGEST_LIST:
        return text
    kept = text[: text.rindex(",", 0, _LONGEST_LIST)]
    return f"{kept},... ({text.count(',') - kept.count(',')} more)"
