"""A signal, its form in channels, and its place in the stream."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId

WINDOW_OPEN, WINDOW_CLOSE = "snapshot-window-open", "snapshot-window-close"
"""Rows that an incremental snapshot writes to the signal table around the read of a chunk."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A request to the connector.

    Attributes:
        id: identifies the signal in notifications; the sender chooses it.
        type: the action.
        data: the parameters of the action; empty if the signal has none.
        channel: the channel through which it arrived: ``source``, ``kafka``, ``file``, ``http`` or ``in-process``.
    """

    id: str
    type: str
    data: Mapping[str, Any]
    channel: str

    def text(self, name: str) -> str | None:
        """Return a parameter that is a string; ``None`` if it is missing.

        Raises:
            SignalError: it is something else.
        """
        value = self.data.get(name)
        if value is None or isinstance(value, str):
            return value
        raise SignalError(f"{name!r} in the data must be a string, not {value!r:.200}")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a parameter that is a list of strings; empty if it is missing.

        Raises:
            SignalError: it is something else.
        """
        value = self.data.get(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise SignalError(f"{name!r} in the data must be a list of strings, not {value!r:.200}")


@dataclass(frozen=True, slots=True)
class SignalContext:
    """The place of a signal in the stream.

    Attributes:
        at: the resume position before the signal; that of its outputs.
        after: the resume position after it.
        progress: the position in the stream.
        tables: every table's structure.
        captured: the captured tables.
        table: the signal table, if the signal is a row of it.
        answer: further fields of ``additional_data`` in the notification that the signal is carried out.
    """

    at: SourceOffset
    after: SourceOffset
    progress: Progress
    tables: Tables
    captured: CapturedTables
    table: TableId | None = None
    answer: dict[str, str] = field(default_factory=dict)


def from_columns(signal_id: object, kind: object, data: object, channel: str = "source") -> Signal:
    """Return the signal of a row of the signal table, whose columns are id, type and data.

    Args:
        signal_id: a text.
        kind: a text.
        data: a JSON object as text, or ``None``.
        channel: the channel.

    Raises:
        SignalError: a value is not text, or ``data`` is not a JSON object; it names the signal as far as it can be
            read.
    """
    if not isinstance(signal_id, str) or not isinstance(kind, str):
        raise SignalError(
            f"the columns of the signal table must be id, type and data, all of them text; here, id is "
            f"{signal_id!r:.100} and type is {kind!r:.100}"
        )
    if data is not None and not isinstance(data, str):
        raise SignalError(f"the data of signal {signal_id!r} must be text, not {data!r:.100}", signal_id, kind)
    try:
        return Signal(signal_id, kind, _json_object(data, "data") if data and data.strip() else {}, channel)
    except SignalError as error:
        raise SignalError(str(error), signal_id, kind) from error


def from_message(text: str | bytes, channel: str, new_id: Callable[[], str]) -> Signal:
    """Return the signal of a message ``{"id": …, "type": …, "data": {…}}``.

    Args:
        text: the message.
        channel: the channel through which it arrived.
        new_id: makes an id for a signal without one.

    Raises:
        SignalError: it is not such a message; it names the signal as far as it can be read.
    """
    fields = _json_object(text, "a signal")
    return from_fields(fields, channel, new_id)


def from_fields(fields: Mapping[str, Any], channel: str, new_id: Callable[[], str]) -> Signal:
    """Return the signal of ``id``, ``type`` and ``data``; see :func:`from_message`.

    ``data`` may also be JSON as text.
    """
    _require_unicode(fields, "a signal")
    signal_id, kind, data = fields.get("id"), fields.get("type"), fields.get("data")
    if signal_id is None:
        signal_id = new_id()
    if not isinstance(signal_id, str):
        raise SignalError(f"the id of a signal must be a string, not {signal_id!r:.100}")
    if not isinstance(kind, str) or not kind:
        what = "is missing" if kind is None else f"must be a string, not {kind!r:.100}"
        raise SignalError(f"the type of signal {signal_id!r} {what}", signal_id)
    if data is None or isinstance(data, str):
        return from_columns(signal_id, kind, data, channel)
    if not isinstance(data, dict):
        raise SignalError(f"the data of signal {signal_id!r} must be a JSON object, not {data!r:.100}", signal_id, kind)
    return Signal(signal_id, kind, data, channel)


def _json_object(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SignalError(f"{what} is not JSON ({error}): {text!r:.200}") from error
    if not isinstance(found, dict):
        raise SignalError(f"{what} must be a JSON object, not {text!r:.200}")
    _require_unicode(found, what)
    return found


def _require_unicode(value: object, what: str) -> None:
    """Refuse half of a surrogate pair, which JSON can contain, but records and offsets cannot."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise SignalError(f"{what} has a character that is not valid in Unicode: {error}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise SignalError(f"{what} cannot be written as JSON: {error}") from None
