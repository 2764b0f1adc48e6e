"""Source offsets: Kafka Connect's key, and the store in a file."""

import json
from pathlib import Path

import pytest

from rowtide.connector.delivery_errors import OffsetStoreError
from rowtide.connector.offset import SourceOffset
from rowtide.connector.offset_store import FileOffsetStore, InMemoryOffsetStore, is_offset_key, offset_key

OFFSET = SourceOffset("binlog.000003", 484, gtids="24bc7850-0000-0000-0000-000000000001:1-5", event=2, row=1)


def test_the_key_is_spelt_as_kafka_connect_spells_it() -> None:
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
        (b"\xff", False),
        (None, False),
    ],
)
def test_our_key_is_known_in_any_spelling(raw: bytes | None, ours: bool) -> None:
    assert is_offset_key(raw, "c", "p") is ours


def test_memory_keeps_the_last_offset() -> None:
    store = InMemoryOffsetStore()
    assert store.load() is None
    store.save(OFFSET)
    assert store.load() == OFFSET
    store.save(None)
    assert store.load() is None


def test_a_file_keeps_the_last_offset_of_each_connector(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    one, two = FileOffsetStore(path, "one", "p"), FileOffsetStore(path, "two", "p")
    assert one.load() is None
    one.save(OFFSET)
    two.save(SourceOffset("binlog.000009", 4))
    one.save(SourceOffset("binlog.000004", 4))
    assert FileOffsetStore(path, "one", "p").load() == SourceOffset("binlog.000004", 4)
    assert json.loads(path.read_text())['["two",{"server":"p"}]'] == {"file": "binlog.000009", "pos": 4}
    one.save(None)
    assert one.load() is None
    assert two.load() is not None
    assert [each.name for each in tmp_path.iterdir()] == ["offsets.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap", "Java's serialisation"),
        (b'{"half', "damaged"),
        (b"[1]", "JSON object"),
        (b'{"[\\"one\\",{\\"server\\":\\"p\\"}]": {"pos": 4}}', "'file'"),
        (b'{"[\\"one\\",{\\"server\\":\\"p\\"}]": 17}', "offset file"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_and_kept(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "offsets"
    path.write_bytes(content)
    store = FileOffsetStore(path, "one", "p")
    with pytest.raises(OffsetStoreError, match=said):
        store.load()
    assert path.read_bytes() == content


def test_javas_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    path.write_bytes(b"\xac\xed\x00\x05")
    with pytest.raises(OffsetStoreError):
        FileOffsetStore(path, "one", "p").save(OFFSET)
    assert path.read_bytes() == b"\xac\xed\x00\x05"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OffsetStoreError, match="missing"):
        FileOffsetStore(tmp_path / "missing" / "offsets", "one", "p").save(OFFSET)
