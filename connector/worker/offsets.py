"""Shows and changes the stored position of a stopped connector, in Kafka Connect's form."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.errors import OffsetStoreError
from rowtide.connector.engine.wiring import offset_store
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.worker.web.connect_rest import BadRequest, StoreUnavailable

_THREADS = ThreadPoolExecutor(4, thread_name_prefix="offsets")
"""Threads that wait for Kafka, which may not answer: connectors stop and start in those of the event loop."""
_ANSWER_S = 5.0


async def read_offsets(config: Configuration) -> list[dict[str, Any]]:
    """Return the stored position: ``[{"partition": {"server": ...}, "offset": {...}}]``, or nothing.

    Raises:
        StoreUnavailable: it cannot be read, or not in time.
    """
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, _read, config)
    except TimeoutError:
        raise StoreUnavailable(
            f"the position of {config.name} cannot be read: Kafka has not answered for {_ANSWER_S:.0f} s. Ask again "
            "when it is available"
        ) from None


async def write_offsets(config: Configuration, changes: list[Any] | None) -> None:
    """Store a position, or delete it. This has no time limit: it waits until the outcome is known.

    Args:
        config: the configuration of the connector, which must not run.
        changes: as :func:`read_offsets` returns it, with ``None`` as the offset to delete it; ``None`` deletes all.

    Raises:
        BadRequest: it is not a position of this connector. Kafka Connect stores anything.
        StoreUnavailable: it cannot be written.
    """
    offset = None if changes is None else _offset(config, changes)
    await asyncio.get_running_loop().run_in_executor(_THREADS, _write, config, offset)


def _read(config: Configuration) -> list[dict[str, Any]]:
    try:
        found = offset_store(config).load()
    except OffsetStoreError as error:
        raise StoreUnavailable(str(error)) from error
    return [] if found is None else [{"partition": {"server": config.topics.prefix}, "offset": found.to_map()}]


def _write(config: Configuration, offset: SourceOffset | None) -> None:
    try:
        offset_store(config).save(offset)
    except OffsetStoreError as error:
        raise StoreUnavailable(str(error)) from error


def _offset(config: Configuration, changes: list[Any]) -> SourceOffset | None:
    partition = {"server": config.topics.prefix}
    match changes:
        case [{"partition": found, "offset": None}] if found == partition:
            return None
        case [{"partition": found, "offset": dict(offset)}] if found == partition:
            try:
                return SourceOffset.from_map(offset)
            except ValueError as error:
                raise BadRequest(f"the offset is not a position of a binlog: {error}") from None
    raise BadRequest(f"one offset is needed, with the partition {partition}: the connector has no other")
