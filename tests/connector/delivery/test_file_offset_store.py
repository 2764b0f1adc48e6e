"""Offsets in a file, in Java's serialization, as Kafka Connect's FileOffsetBackingStore writes it."""

import base64
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.file_offset_store import FileOffsetStore, deserialized, serialized
from rowtide.connector.records.offset import SourceOffset

BY_JAVA = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAA"
    "ABAAAAACdXIAAltCrPMX+AYIVOACAAB4cAAAABRbIngiLHsic2VydmVyIjoicCJ9XXVxAH4AAgAAABZ7ImZpbGUiOiJiLjEiLCJw"
    "b3MiOjR9dXEAfgACAAAAFFsieSIseyJzZXJ2ZXIiOiJxIn1dcHg="
)
"""What Java 17 wrote of a HashMap of ``["x",{"server":"p"}]`` and of a second key without a value."""
OFFSET = SourceOffset("binlog.000002", 7, gtids="a:1-5", event=2, row=1)


def test_a_file_of_javas_is_read(tmp_path: Path) -> None:
    path = tmp_path / "offsets.dat"
    path.write_bytes(BY_JAVA)
    assert FileOffsetStore(path, "x", "p").load() == SourceOffset("b.1", 4)
    assert FileOffsetStore(path, "y", "q").load() is None, "a null value is a deleted offset"
    assert FileOffsetStore(path, "z", "p").load() is None


def test_what_is_written_is_what_java_writes() -> None:
    assert serialized(deserialized(BY_JAVA)) == BY_JAVA


def test_offsets_of_other_connectors_stay(tmp_path: Path) -> None:
    path = tmp_path / "offsets.dat"
    one, other = FileOffsetStore(path, "a", "p"), FileOffsetStore(path, "b", "p")
    assert one.load() is None
    one.save(OFFSET)
    other.save(SourceOffset("b.9", 9))
    one.save(None)
    assert (one.load(), other.load()) == (None, SourceOffset("b.9", 9))
    one.save(OFFSET)
    assert (one.load(), other.load()) == (OFFSET, SourceOffset("b.9", 9))
    assert [file.name for file in tmp_path.iterdir()] == ["offsets.dat"]


def test_connectors_write_to_one_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "offsets.dat"

    def write(name: str) -> SourceOffset | None:
        store = FileOffsetStore(path, name, "p")
        for pos in range(100):
            store.save(SourceOffset("b.1", pos))
            assert store.load() == SourceOffset("b.1", pos)
        return store.load()

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(write, "abc")) == [SourceOffset("b.1", 99)] * 3


@given(st.dictionaries(st.binary(max_size=40), st.none() | st.binary(max_size=40), max_size=40))
def test_maps_come_back(entries: dict[bytes, bytes | None]) -> None:
    assert deserialized(serialized(entries)) == entries


@given(st.integers(min_value=0, max_value=len(BY_JAVA) - 1))
def test_a_file_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises((ValueError, IndexError, struct.error)):
        deserialized(BY_JAVA[:length])


NO_ARRAY = BY_JAVA.replace(b"uq\0~\0\2", b"qq\0~\0\2")
"""A reference to the description of arrays, where an array is expected."""


@pytest.mark.parametrize(
    "data",
    [b"{}", BY_JAVA[:40], BY_JAVA[:-1], NO_ARRAY, b"\xac\xed\x00\x05t\x00\x01x"],
)
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "offsets.dat"
    path.write_bytes(data)
    with pytest.raises(OffsetStoreError, match=f"{path} is not an offset file of Kafka Connect"):
        FileOffsetStore(path, "x", "p").load()


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    store = FileOffsetStore(tmp_path / "none/offsets.dat", "x", "p")
    assert store.load() is None
    with pytest.raises(OffsetStoreError, match=r"cannot be written to .*none/offsets\.dat") as caught:
        store.save(OFFSET)
    assert not caught.value.restartable


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_passes_and_leaves_the_last_offset(tmp_path: Path) -> None:
    path = tmp_path / "offsets.dat"
    store = FileOffsetStore(path, "x", "p")
    store.save(OFFSET)
    Path(f"{path}.new").symlink_to("/dev/full")
    with pytest.raises(OffsetStoreUnavailable, match=r"offsets\.dat .*No space left") as caught:
        store.save(SourceOffset("binlog.000003", 8))
    assert caught.value.restartable
    assert store.load() == OFFSET
