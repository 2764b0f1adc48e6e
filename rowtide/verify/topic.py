"""Reads the records of topics with their places: first all of them, and then new ones."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rowtide.connector.records.change import Change
from rowtide.decoder.decoder import Decoder
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader, new_extents
from rowtide.verify.errors import Undecided
from rowtide.verify.positions import Order, RecordPlace, ViewOrder


class TopicRecord(NamedTuple):
    """A record of a topic.

    Attributes:
        topic: the topic.
        record: its bytes.
        change: its change; ``None`` for a tombstone.
        place: its place.
    """

    topic: str
    record: StoredRecord
    change: Change | None
    place: RecordPlace


class Topic:
    """The topics of a table: one, unless transforms route its records to several.

    Args:
        names: their names.
        reader: reads them.
        decoder: decodes their records.

    Attributes:
        names: their names.
    """

    def __init__(self, names: list[str], reader: TopicReader, decoder: Decoder) -> None:
        self.names = names
        self._reader, self._decoder = reader, decoder
        self._read: dict[str, Mapping[int, Extent]] = {}
        self._last: dict[tuple[str, int], RecordPlace] = {}

    @property
    def partitions(self) -> int:
        """The number of partitions that were read."""
        return sum(map(len, self._read.values()))

    def has_passed(self, order: ViewOrder, position: Callable[[], Callable[[RecordPlace], bool | None]]) -> bool:
        """Return whether the last record of each partition is later than a view.

        Records are in the order of the binlog.

        Args:
            order: the order of records and the view.
            position: creates the test whether a record is before the end of the server's binlog. A transaction that the
                server lacks proves nothing, because it came from another server.
        """
        last = self._last.values()
        if len(last) != self.partitions or not last or any(order.order(place) is not Order.AFTER for place in last):
            return False
        return all(map(position(), last))

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the offsets after the last committed record of each partition, by topic and partition."""
        known = {name: self._reader.extents(name) or {} for name in self.names}
        return {(name, partition): extent.high for name, of in known.items() for partition, extent in of.items()}

    def missing(self) -> list[str]:
        """Return the topics that do not exist."""
        return [name for name in self.names if self._reader.extents(name) is None]

    def new_records(self) -> Iterator[TopicRecord]:
        """Yield the committed records that were added since the last call; the first call yields all.

        Raises:
            TopicReadError: Kafka cannot be read.
            DecodeError: a record cannot be decoded.
            Undecided: a topic was deleted or created again.
        """
        for name in self.names:
            extents = self._reader.extents(name)
            if extents is None:
                if name in self._read:
                    raise Undecided(f"topic {name} was deleted during the run")
                continue
            before = self._read.get(name, {})
            for partition, extent in before.items():
                now = extents.get(partition)
                if now is None or now.high < extent.high:
                    raise Undecided(f"topic {name} was created again during the run")
            added, self._read[name] = new_extents(before, extents), extents
            for found in self._records(name, added):
                if found.change is not None:
                    self._last[name, found.place.partition] = found.place
                yield found

    def extents(self, name: str) -> Mapping[int, Extent]:
        """Return the offsets of a topic, by partition; none if it does not exist."""
        return self._reader.extents(name) or {}

    def topic_id(self, name: str) -> str | None:
        """Return the id that Kafka gave a topic, as Java spells it; ``None`` if there is none."""
        found = self._reader.topic_id(name)  # librdkafka uses the other alphabet of Base64
        return None if found is None else found.replace("+", "-").replace("/", "_")

    def records_before(self, name: str, ends: Mapping[int, int]) -> Iterator[TopicRecord]:
        """Yield the committed records of a topic before an offset of each partition.

        Raises:
            TopicReadError: Kafka cannot be read.
            DecodeError: a record cannot be decoded.
        """
        known = self.extents(name)
        yield from self._records(name, {p: Extent(known[p].low, end) for p, end in ends.items() if p in known})

    def _records(self, name: str, extents: Mapping[int, Extent]) -> Iterator[TopicRecord]:
        number = self.names.index(name)
        for record in self._reader.read(name, extents):
            change = self._decoder.decode(name, record.key, record.value, record.headers)
            op, position = ("tombstone", None) if change is None else (change.op, change.position)
            yield TopicRecord(
                name, record, change, RecordPlace.of(number, record.partition, record.offset, op, position)
            )
