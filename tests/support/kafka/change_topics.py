"""Hand-written change events of a topic, for cases that are not recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.recordings.recorded_tables import Recorded

__all__ = ["Topic"]

_SOURCE = {
    **dict.fromkeys(("ts_ms", "server_id", "pos"), "int64"),
    **dict.fromkeys(("name", "gtid", "file"), "string"),
    "row": "int32",
}


@dataclass
class Topic:
    """The records of a topic.

    Attributes:
        name: the name of the topic.
        columns: Connect schemas of the columns, with the column's name as ``field``.
        key: names of the key columns.
        schemas: whether the messages have schemas.
        connector: ``topic.prefix`` in the source of the events.
    """

    name: str
    columns: Sequence[Mapping[str, Any]]
    key: Sequence[str] = ()
    schemas: bool = True
    records: list[Recorded] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    connector: str = "p"

    def change(
        self,
        op: str,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        pos: int,
        *,
        partition: int = 0,
        file: int | None = 1,
        row: int = 0,
    ) -> Recorded:
        """Append a change event with a position in the binlog; without ``file`` if the server has none."""
        source = {
            "name": self.connector,
            "ts_ms": pos,
            "server_id": 1,
            "gtid": None,
            "file": "" if file is None else f"bin.{file:06d}",
            "pos": pos,
            "row": row,
        }
        image = after if after is not None else before
        key = {name: image[name] for name in self.key} if image is not None and self.key else None
        payload = {"before": before, "after": after, "source": source, "op": op}
        return self._write(partition, key, payload)

    def tombstone(self, key: Mapping[str, Any], *, partition: int = 0) -> Recorded:
        """Append a tombstone."""
        return self._write(partition, key, None)

    def again(self, record: Recorded) -> Recorded:
        """Append a record once more, as a connector does after a crash."""
        return self._append(record.partition, record.key, record.value)

    def _write(self, partition: int, key: Mapping[str, Any] | None, payload: Any) -> Recorded:
        return self._append(
            partition,
            None if key is None else self._message(_struct(self._key_schema()), key),
            None if payload is None else self._message(self._envelope(), payload),
        )

    def _key_schema(self) -> list[Mapping[str, Any]]:
        return [column for column in self.columns if column["field"] in self.key]

    def _append(self, partition: int, key: str | None, value: str | None) -> Recorded:
        offset = self.ends.get(partition, 0)
        self.ends[partition] = offset + 1
        record = Recorded(self.name, partition, offset, key, value)
        self.records.append(record)
        return record

    def _message(self, schema: Mapping[str, Any], payload: Any) -> str:
        content = {"schema": schema, "payload": payload} if self.schemas else payload
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    def _envelope(self) -> Mapping[str, Any]:
        images = [{**_struct(self.columns), "optional": True, "field": name} for name in ("before", "after")]
        source = _struct([{"type": kind, "optional": True, "field": name} for name, kind in _SOURCE.items()])
        return _struct([*images, {**source, "field": "source"}, {"type": "string", "optional": False, "field": "op"}])


def _struct(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": False}
