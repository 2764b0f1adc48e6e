"""The codecs: what they write is read by other libraries, and wrong settings are explained."""

from __future__ import annotations

import gzip
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches.compression import NONE, codec

NAMES = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_numbers_are_those_of_the_format(number: int, name: str) -> None:
    assert (codec(name).name, codec(name).number) == (name, number)


@given(data=st.binary(max_size=300), times=st.integers(1, 2000), name=st.sampled_from(NAMES))
def test_everything_is_read_back(data: bytes, times: int, name: str) -> None:
    each, raw = codec(name), memoryview(data * times)
    assert each.decompress(memoryview(each.compress(raw))) == raw


@pytest.mark.parametrize(
    ("name", "levels"), [("gzip", (None, 0, 1, 9)), ("lz4", (None, 0, 1, 17)), ("zstd", (None, -5, 0, 1, 22))]
)
def test_levels_are_applied(name: str, levels: tuple[int | None, ...]) -> None:
    raw = memoryview(b"".join(b'{"id":%d,"name":"name %d"}' % (n, n * n) for n in range(3000)))
    made = [codec(name, level).compress(raw) for level in levels]
    assert all(codec(name).decompress(memoryview(data)) == raw for data in made)
    assert len(made[-1]) < len(made[-2])
    assert codec(name).compress(raw) == made[0]


@pytest.mark.parametrize("name", ["none", "snappy"])
def test_codecs_without_levels_ignore_the_level(name: str) -> None:
    raw = memoryview(b"abc" * 100)
    assert codec(name, 12).compress(raw) == codec(name).compress(raw)


@pytest.mark.parametrize(("name", "level"), [("gzip", 10), ("gzip", -1), ("lz4", 18), ("lz4", -1), ("zstd", 23)])
def test_a_wrong_level_is_named(name: str, level: int) -> None:
    with pytest.raises(ValueError, match=rf"compression\.level={level} is not a level of {name}: .* to (9|17|22)$"):
        codec(name, level)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(ValueError, match=r"compression\.type=brotli is not one of none, gzip, snappy, lz4, zstd"):
        codec("brotli")


@pytest.mark.parametrize(("name", "package"), [("snappy", "cramjam"), ("lz4", "lz4"), ("zstd", "zstandard")])
def test_a_missing_library_is_named_at_the_start(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4.frame" if name == "lz4" else package, None)
    with pytest.raises(ValueError, match=rf"compression\.type={name} needs .*pip install {package}, or choose"):
        codec(name)
    assert codec("gzip").number == 1, "no other codec needs it"


def test_the_forms_that_java_requires() -> None:
    """KafkaLZ4BlockInputStream reads only independent blocks; a gzip stream has the header of RFC 1952."""
    raw = memoryview(bytes(range(256)) * 2000)
    frame = codec("lz4").compress(raw)
    assert frame[:4] == bytes.fromhex("04224d18")
    assert frame[4] == 0b0110_0000, "version 1, independent blocks, no checksums, no size"
    assert frame[5] == 0b0101_0000, "blocks of 256 KB"
    assert gzip.decompress(codec("gzip").compress(raw)) == raw
    assert codec("snappy").compress(raw)[:3] == bytes.fromhex("80a01f"), "the size as a varint: one raw block"


def test_none_keeps_the_bytes() -> None:
    assert NONE.compress(memoryview(b"abc")) == b"abc"
