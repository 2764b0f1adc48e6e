"""Heartbeats (``heartbeat.interval.ms``): periodic messages that carry the offset even if no captured table changes."""

import logging
import time
from collections.abc import Callable

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.schema import INT64, STRING, struct

log = logging.getLogger(__name__)

KEY_SCHEMA = struct("io.debezium.connector.common.ServerNameKey", {"serverName": STRING}, version=1)
VALUE_SCHEMA = struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64}, version=1)


class HeartbeatRecords:
    """Builds a heartbeat when one is due.

    Args:
        settings: topic, prefix and converters.
        interval_s: seconds between heartbeats; 0 for none.
        action: runs ``heartbeat.action.query``, if it is set.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        interval_s: float,
        action: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._interval = interval_s
        self._action = action
        self._due = time.monotonic() + interval_s

    def __call__(self, offset: SourceOffset) -> Batch | None:
        """Return the heartbeat, or ``None`` if none is due."""
        if not self._interval or time.monotonic() < self._due:
            return None
        self._due = time.monotonic() + self._interval
        if self._action is not None:
            self._action()
        settings, now = self._settings, time.time_ns() // 1_000_000
        key = json_message(KEY_SCHEMA, {"serverName": settings.topic_prefix}, settings.keys)
        value = json_message(VALUE_SCHEMA, {"ts_ms": now}, settings.values)
        message = (key, value, ())
        size, schemas = len(key) + len(value), (KEY_SCHEMA, VALUE_SCHEMA)
        batch = Batch(settings.naming.heartbeat, 0, [message], offset, size, now, schemas)
        return Transformer(settings.transforms).batch(batch) if settings.transforms else batch
