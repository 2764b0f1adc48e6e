"""The settings of signals, and of the snapshots that they start."""

from dataclasses import dataclass

from rowtide.connector.config.catalogue import topics
from rowtide.connector.config.catalogue.property import given
from rowtide.connector.config.choices import NewTables, Watermarking
from rowtide.connector.config.kafka.clients import ClientSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsConfig:
    """Signals to the running connector.

    Attributes:
        source: whether rows of ``signal.data.collection`` are signals.
        topic: the topic of the channel ``kafka``; ``None`` if the channel is off.
        consumer: the settings of its consumer, with librdkafka's names.
        file: the file of the channel ``file``; ``None`` if the channel is off.
    """

    source: bool
    topic: str | None
    consumer: ClientSettings
    poll_timeout_ms: int = given(topics.SIGNAL_POLL_TIMEOUT)
    file: str | None
    poll_interval_ms: int = given(topics.SIGNAL_POLL)
    ignore_position: bool = given(topics.IGNORE_POSITION)


@dataclass(frozen=True, slots=True)
class IncrementalConfig:
    """Incremental snapshots.

    Attributes:
        chunk_size: rows of the first chunk of a table.
        target_ms: the desired time to read a chunk, to which its size adapts; 0 for a fixed size.
        threads: the number of chunks read at the same time.
        watermarking: the way in which windows are written to the
            signal table.
        read_only: whether nothing is written to the database.
        new_tables: what to do with the rows of tables that are captured later; ``None`` for the default of the mode.
    """

    chunk_size: int = 1024
    target_ms: int = 0
    threads: int = 1
    watermarking: Watermarking = Watermarking.INSERT_INSERT
    read_only: bool = False
    new_tables: NewTables | None = None
