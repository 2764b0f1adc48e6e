"""CRC-32C: known checksums, and the same ones from every implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kafka.record_batches import IMPLEMENTATIONS

FUNCTIONS: dict[str, Callable[[bytes], int]] = {name: each.crc32c for name, each in IMPLEMENTATIONS.items()}
if "compiled" in IMPLEMENTATIONS:
    FUNCTIONS["portable"] = IMPLEMENTATIONS["compiled"].crc32c_portable


@pytest.mark.parametrize("crc32c", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        # RFC 3720, appendix B.4, as numbers
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_known_checksums(crc32c: Callable[[bytes], int], data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@given(data=st.binary(max_size=100), skipped=st.integers(0, 9))
def test_all_implementations_agree_at_every_alignment(data: bytes, skipped: int) -> None:
    rest = memoryview(data)[skipped:]
    assert {each(rest) for each in FUNCTIONS.values()} == {calc_crc32c(bytes(rest))}  # type: ignore[arg-type]


@pytest.mark.parametrize("crc32c", FUNCTIONS.values(), ids=FUNCTIONS)
def test_only_bytes_have_a_checksum(crc32c: Callable[[object], int]) -> None:
    with pytest.raises(TypeError):
        crc32c("text")
