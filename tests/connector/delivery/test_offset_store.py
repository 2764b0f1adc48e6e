"""Source offsets: Kafka Connect's key, and the store in memory."""

import pytest

from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, is_offset_key, offset_key
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000003", 484, gtids="24bc7850-0000-0000-0000-000000000001:1-5", event=2, row=1)


def test_the_key_has_kafka_connects_format() -> None:
    assert offset_key("inventory-connector", "dbserver1") == b'["inventory-connector",{"server":"dbserver1"}]'
    assert offset_key("Größe", "p") == '["Größe",{"server":"p"}]'.encode()


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        (b'["c",{"server":"p"}]', True),
        (b'[ "c", { "server" : "p" } ]', True),
        (b'["\\u0063",{"server":"p"}]', True),
        (b'["c",{"server":"other"}]', False),
        (b'["d",{"server":"p"}]', False),
        (b'["c",{"server":"p","more":1}]', False),
        (b"not json", False),
        (b"[" * 100_000, False),
        (b"\xff", False),
        (None, False),
    ],
)
def test_the_key_is_recognized_in_any_json_format(raw: bytes | None, ours: bool) -> None:
    assert is_offset_key(raw, "c", "p") is ours


def test_the_in_memory_store_keeps_the_last_offset() -> None:
    store = InMemoryOffsetStore()
    assert store.load() is None
    store.save(OFFSET)
    assert store.load() == OFFSET
    store.save(None)
    assert store.load() is None
