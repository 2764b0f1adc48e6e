"""Transaction metadata (``provide.transaction.metadata``): BEGIN and END records, and the block in row records."""

from collections.abc import Mapping
from typing import Any

from rowtide.envelope.json.text import string_text
from rowtide.envelope.schema import INT64, OPTIONAL_INT64, STRING, Schema, struct

KEY_SCHEMA = struct("io.debezium.connector.common.TransactionMetadataKey", {"id": STRING}, version=1)
_COLLECTION = struct("event.collection", {"data_collection": STRING, "event_count": INT64}, version=1, optional=True)
VALUE_SCHEMA = struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    {
        "status": STRING,
        "id": STRING,
        "event_count": OPTIONAL_INT64,
        "data_collections": Schema("array", optional=True, items=_COLLECTION),
        "ts_ms": INT64,
    },
    version=1,
)


def begin_value(transaction_id: str, ts_ms: int) -> dict[str, Any]:
    """Return the value of a BEGIN record; ``ts_ms`` is the time of the server."""
    return {"status": "BEGIN", "id": transaction_id, "event_count": None, "data_collections": None, "ts_ms": ts_ms}


def end_value(transaction_id: str, counts: Mapping[str, int], ts_ms: int) -> dict[str, Any]:
    """Return the value of an END record; ``counts`` has the number of events of each table (``db.table``)."""
    return {
        "status": "END",
        "id": transaction_id,
        "event_count": sum(counts.values()),
        "data_collections": [{"data_collection": name, "event_count": count} for name, count in counts.items()],
        "ts_ms": ts_ms,
    }


def block_text(transaction_id: str, total_order: int, collection_order: int) -> str:
    """Return the ``transaction`` field of a row record as JSON."""
    return (
        f'"transaction":{{"id":{string_text(transaction_id)},"total_order":{total_order},'
        f'"data_collection_order":{collection_order}}}'
    )
