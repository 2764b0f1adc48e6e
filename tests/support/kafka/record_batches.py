"""For tests of record batches: both implementations, and strategies for messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches import partitions, python_records, record_batch
from rowtide.connector.kafka_producer.batches.native.implementation import native
from rowtide.connector.kafka_producer.records import Headers, Record

__all__ = ["IMPLEMENTATIONS", "messages"]

_PYTHON = SimpleNamespace(
    Records=python_records.PythonRecords,
    crc32c=record_batch.python_crc32c,
    split_by_key=partitions.python_split_by_key,
)
IMPLEMENTATIONS: dict[str, Any] = {"python": _PYTHON} | ({} if native is None else {"compiled": native})
"""What encodes records, by name; without ``compiled`` where it was not built."""


def _blobs(most: int) -> st.SearchStrategy[bytes | None]:
    repeated = st.builds(lambda byte, times: byte * times, st.binary(min_size=1, max_size=2), st.integers(0, most))
    return st.none() | st.binary(max_size=40) | repeated


def _headers() -> st.SearchStrategy[Headers]:
    pairs = st.lists(st.tuples(st.text(max_size=5), _blobs(70)), max_size=3)
    return st.just(()) | pairs | pairs.map(tuple)


@st.composite
def messages(draw: st.DrawFn, least: int = 0) -> list[Record]:
    """Messages of a batch; several may share the object of their headers."""
    shared = draw(st.lists(_headers(), min_size=1, max_size=2))
    message = st.tuples(_blobs(200), _blobs(700), st.sampled_from(shared) | _headers())
    return draw(st.lists(message, min_size=least, max_size=8))
