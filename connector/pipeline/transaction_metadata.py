"""Counting the events of a transaction, for transaction metadata (``provide.transaction.metadata``)."""

from collections.abc import Mapping
from typing import Any

from rowtide.connector.records.offset import java_hash_map_order
from rowtide.envelope.transaction import block_text

_ORDER = "transaction_data_collection_order_"


class TransactionMonitor:
    """Knows the transaction in hand: its id, and how many records each table has had.

    Attributes:
        id: of the transaction, ``None`` outside of one.
    """

    def __init__(self, restored: Mapping[str, Any] | None) -> None:
        self.id: str | None = None
        self._counts: dict[str, int] = {}
        # Counts of a transaction that was cut by a stop; they hold if the stream comes back to it.
        self._restored = dict(restored or {})

    def begin(self, transaction_id: str) -> bool:
        """A transaction begins; returns whether it is a new one, and not the rest of one that was cut by a stop."""
        self.id = transaction_id
        again = self._restored.pop("transaction_id", None) == transaction_id
        self._counts = {}
        if again:
            self._counts = {name.removeprefix(_ORDER): int(count) for name, count in self._restored.items()}
        self._restored = {}
        return not again

    def end(self) -> None:
        """The transaction ends."""
        self._counts, self.id = {}, None

    @property
    def counts(self) -> Mapping[str, int]:
        """Records so far by ``db.table``, in the order of Debezium's map."""
        return java_hash_map_order(self._counts)

    def blocks(self, collection: str, number: int) -> list[str]:
        """The ``transaction`` fields of the next records of a table; only within a transaction."""
        assert self.id is not None
        total = sum(self._counts.values())
        order = self._counts.get(collection, 0)
        self._counts[collection] = order + number
        return [block_text(self.id, total + place, order + place) for place in range(1, number + 1)]

    def block(self, collection: str) -> dict[str, Any] | None:
        """The ``transaction`` field of the next record of a table as a value, ``None`` outside of a transaction."""
        if self.id is None:
            return None
        order = self._counts[collection] = self._counts.get(collection, 0) + 1
        return {"id": self.id, "total_order": sum(self._counts.values()), "data_collection_order": order}

    def offset_fields(self) -> dict[str, Any]:
        """The fields of the offset; none outside of a transaction."""
        if self.id is None:
            return {}
        return {"transaction_id": self.id, **{f"{_ORDER}{name}": count for name, count in self._counts.items()}}
