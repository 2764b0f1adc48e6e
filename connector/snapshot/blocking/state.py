"""The pending blocking snapshots, and their form in every offset. Pure."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.snapshot_requests import Collections, SnapshotRequest, StopRequest
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_STATE = "rowtide_snapshot_blocking"
_MAX_STORED = 200_000
"""Bytes of the field in an offset. Kafka's default limit is 1 MB for a record."""


@dataclass(frozen=True, slots=True)
class BlockingRequest:
    """A blocking snapshot that a signal requested.

    Attributes:
        signal_id: the id of the signal.
        collections: regular expressions for the tables.
        filters: pairs of a regular expression for tables and the SELECT that reads their rows.
        skipped: regular expressions for tables that ``stop-snapshot`` has removed.
    """

    signal_id: str
    collections: tuple[str, ...]
    filters: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()

    def select(self, tables: Sequence[TableId]) -> list[TableId]:
        """Return the tables to read, in the order of the signal."""
        skipped = {*Collections.parse(self.skipped).select(tables)}
        return [table for table in Collections.parse(self.collections).select(tables) if table not in skipped]

    def unmatched(self, tables: Sequence[TableId]) -> list[str]:
        """Return the expressions that match none of the tables to read, unless ``stop-snapshot`` has removed any."""
        return [] if self.skipped else Collections.parse(self.collections).unmatched(tables)

    def queries(self, tables: Sequence[TableId]) -> dict[tuple[str, str], str]:
        """Return the SELECT of each table that has one; the first filter that matches."""
        found: dict[tuple[str, str], str] = {}
        for collection, query in self.filters:
            for table in Collections.parse([collection]).select(tables):
                found.setdefault((table.database, table.table), query)
        return found


@dataclass(frozen=True, slots=True)
class BlockingState:
    """The pending blocking snapshots, in order.

    Attributes:
        requests: the snapshots; the first one is being taken.
        paused: whether ``pause-snapshot`` was received.
    """

    requests: tuple[BlockingRequest, ...] = ()
    paused: bool = False

    def added(self, request: SnapshotRequest) -> "BlockingState":
        """Return the state with another snapshot after the others.

        Raises:
            SignalError: an offset has no space for it.
        """
        filters = tuple(
            (source, condition.filter) for condition in request.conditions for source in condition.collection.sources
        )
        made = BlockingRequest(request.signal.id, request.collections.sources, filters)
        state = replace(self, requests=(*self.requests, made))
        if (size := len(state.stored().encode())) > _MAX_STORED:
            raise SignalError(
                f"the waiting blocking snapshots need {size} bytes in each stored position, but at most {_MAX_STORED} "
                "are allowed. Send the signal again when they are completed, or name its tables with fewer expressions"
            )
        return state

    def stopped(self, request: StopRequest) -> "BlockingState":
        """Return the state without some tables, or without any snapshot if the request names none."""
        if not request.collections:
            return BlockingState()
        sources = request.collections.sources
        left = tuple(
            replace(
                one,
                collections=tuple(source for source in one.collections if source not in sources),
                skipped=(*one.skipped, *sources),
            )
            for one in self.requests
        )
        left = tuple(one for one in left if one.collections)
        return replace(self, requests=left, paused=self.paused and bool(left))

    def without_first(self) -> "BlockingState":
        """Return the state after the first snapshot."""
        return replace(self, requests=self.requests[1:])

    def carried(self, others: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the fields of all later offsets.

        They are those of ``others`` that do not belong to blocking snapshots, and these.
        """
        fields = {name: value for name, value in (others or {}).items() if name != _STATE}
        if self.requests:
            fields[_STATE] = self.stored()
        return fields or None

    def stored(self) -> str:
        """Return the field of an offset."""
        requests = [
            {"signal": one.signal_id, "collections": one.collections, "filters": one.filters, "left_out": one.skipped}
            for one in self.requests
        ]
        stored = {"paused": self.paused, "requests": requests}
        return json.dumps(stored, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def is_in(fields: Mapping[str, Any] | None) -> bool:
        """Return whether an offset has a state, even an unreadable one."""
        return _STATE in (fields or {})

    @classmethod
    def from_carried(cls, fields: Mapping[str, Any] | None) -> "BlockingState":
        """Return the state in an offset."""
        text = (fields or {}).get(_STATE)
        if text is None:
            return cls()
        try:
            found = json.loads(text)
            return cls(tuple(map(_restored, found["requests"])), bool(found["paused"]))
        except (KeyError, TypeError, ValueError):
            log.exception(
                "the stored position has a blocking snapshot that cannot be read, so it is not taken; send its "
                "execute-snapshot signal again: %.500s", text
            )  # fmt: skip
            return cls()


def _restored(stored: Mapping[str, Any]) -> BlockingRequest:
    return BlockingRequest(
        str(stored["signal"]),
        tuple(map(str, stored["collections"])),
        tuple((str(collection), str(query)) for collection, query in stored["filters"]),
        tuple(map(str, stored["left_out"])),
    )
