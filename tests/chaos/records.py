"""The records of a round by table, as envelopes, whatever transforms have made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Records", "envelope", "read_records"]

Values = list[bytes | None]


@dataclass(frozen=True)
class Records:
    """What consumers have read, in order.

    Attributes:
        accounts: the envelopes of ``accounts``.
        entries: the envelopes of ``entries``.
        sent: the numbers in ``outbox`` of each kind.
        made: the envelopes of each other table.
    """

    accounts: Values
    entries: Values
    sent: Mapping[str, list[int]]
    made: Mapping[str, Values]

    def count(self) -> int:
        """The number of records."""
        values = len(self.accounts) + len(self.entries) + sum(map(len, self.made.values()))
        return values + sum(map(len, self.sent.values()))


def read_records(
    read: Callable[[str], Values], database: str, transform: str, kinds: Iterable[str], made: Iterable[str]
) -> Records:
    """Read all topics.

    Args:
        read: reads the values of a topic, whose name is given without the prefix or, for the outbox pattern, in full.
        database: the name of the database.
        transform: the transform of the scenario.
        kinds: the aggregate types of ``outbox``.
        made: the names of further tables.
    """

    def table(name: str) -> Values:
        values = read(f"{database}.{name}")
        return list(map(envelope, values)) if transform == "flattened" else values

    further = {name: table(name) for name in made}
    if transform != "routed":
        sent: dict[str, list[int]] = {kind: [] for kind in kinds}
        for payload in _payloads(table("outbox")):
            sent[payload["after"]["aggregatetype"]].append(int(payload["after"]["payload"]))
        return Records(table("accounts"), table("entries"), sent, further)
    both: dict[str, Values] = {"accounts": [], "entries": []}
    for value in table("all"):
        if value is not None:
            both[json.loads(value)["source"]["table"]].append(value)
    numbers = {kind: [int(json.loads(value or b"0")) for value in read(f"outbox.event.{kind}")] for kind in kinds}
    return Records(both["accounts"], both["entries"], numbers, further)


def envelope(flat: bytes | None) -> bytes | None:
    """The envelope of a record that ``ExtractNewRecordState`` has flattened, without the ``before`` of an update."""
    if flat is None:
        return None
    row = json.loads(flat)
    op, snapshot = row["__op"], row["__source_snapshot"]
    before, after = (row, None) if op == "d" else (None, row)
    return json.dumps({"op": op, "before": before, "after": after, "source": {"snapshot": snapshot}}).encode()


def _payloads(values: Values) -> Iterator[Any]:
    return (json.loads(value) for value in values if value is not None)
