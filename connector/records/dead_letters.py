"""Dead letters: records that could not be written or sent, whole or in parts, with the reason in headers.

The headers are those of Kafka Connect's ``DeadLetterQueueReporter``, and rowtide's own for everything else.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.messages import message_bytes

CONNECT = "__connect.errors."
ID_HEADER = "rowtide.dead.letter.id"
TOPIC_HEADER = "rowtide.dead.letter.topic"
PARTITION_HEADER = "rowtide.dead.letter.partition"
STAGE_HEADER = "rowtide.dead.letter.stage"
REASON_HEADER = "rowtide.dead.letter.reason"
POSITION_HEADER = "rowtide.dead.letter.position"
OFFSET_HEADER = "rowtide.dead.letter.offset"
"""Of an event: the resume position before it, as it is stored."""
TABLE_HEADER = "rowtide.dead.letter.table"
"""Of an event: its table, if that is known."""
TIMESTAMP_HEADER = "rowtide.dead.letter.timestamp"
"""The timestamp that a transform gave the record."""
SIZE_HEADER = "rowtide.dead.letter.size"
SHA256_HEADER = "rowtide.dead.letter.sha256"
PART_HEADER = "rowtide.dead.letter.part"
PARTS_HEADER = "rowtide.dead.letter.parts"
REPLAYED_HEADER = "rowtide.dead.letter.replayed"
"""The only header of a record that says that the dead letter with this id was replayed."""

ADDED = "rowtide.dead.letter.", CONNECT
"""The prefix of the headers that a dead letter has in addition to those of its record."""

_MOST_REASON = 2000
"""The most characters of an error in a dead letter: an error may show a value, and headers cannot be divided."""

Stage = Literal["TASK_POLL", "TRANSFORMATION", "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER", "KAFKA_PRODUCE"]
"""The step that rejected a record, as Kafka Connect names it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a record became a dead letter.

    Attributes:
        stage: the step that rejected it.
        kind: the name of the error.
        message: the error.
    """

    stage: Stage
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The topic of dead letters, and their information about the connector.

    Attributes:
        topic: ``errors.deadletterqueue.topic.name``.
        connector: the connector's name.
        context: ``errors.deadletterqueue.context.headers.enable``.
    """

    topic: str
    connector: str = ""
    context: bool = False

    def event(self, batch: Batch, event: bytes, before: SourceOffset, table: str | None, reason: Reason) -> Batch:
        """Return the dead letter of an event of the binlog, as :meth:`letter` does for a record.

        Args:
            batch: an empty one with the position after the event.
            event: a binlog file of the event and those that it depends on.
            before: the resume position before it.
            table: its table, if that is known.
            reason: the reason why it is a dead letter.
        """
        place = replace(before, carried=None, prepared=()).to_json()
        headers: list[tuple[str, bytes | None]] = [(OFFSET_HEADER, place.encode())]
        if table is not None:
            headers.append((TABLE_HEADER, table.encode()))
        return self.letter(batch, (None, event, headers), reason)

    def letter(self, batch: Batch, message: Message, reason: Reason) -> Batch:
        """Return the dead letter of a record as a batch, to be sent instead of the record; it has no id yet.

        Its key, its value and its headers stay unchanged.

        Args:
            batch: of the record; without a topic for an event of the binlog.
            message: the record.
            reason: the reason why it is a dead letter.
        """
        key, value, headers = message
        content, text = value or b"", reason.message[:_MOST_REASON].encode("utf-8", "backslashreplace")
        added: list[tuple[str, bytes | None]] = [
            (TOPIC_HEADER, batch.topic.encode()),
            (STAGE_HEADER, reason.stage.encode()),
            (REASON_HEADER, text),
            (POSITION_HEADER, f"{batch.offset.file}:{batch.offset.pos}".encode()),
            (SIZE_HEADER, str(len(content)).encode()),
            (SHA256_HEADER, hashlib.sha256(content).hexdigest().encode()),
        ]
        if batch.partition >= 0:
            added.append((PARTITION_HEADER, str(batch.partition).encode()))
        if batch.timestamp:
            added.append((TIMESTAMP_HEADER, str(batch.timestamp).encode()))
        if self.context:
            added += [
                (f"{CONNECT}topic", batch.topic.encode()),
                (f"{CONNECT}connector.name", self.connector.encode()),
                (f"{CONNECT}task.id", b"0"),
                (f"{CONNECT}stage", reason.stage.encode()),
                (f"{CONNECT}exception.class.name", reason.kind.encode()),
                (f"{CONNECT}exception.message", text),
            ]
        written = key, value, [*headers, *added]
        size = message_bytes([written])
        return batch._replace(
            topic=self.topic, partition=0, messages=[written], size=size, schemas=None, pieces=(), timestamp=0
        )


def identified(letter: Message, offset: SourceOffset, number: int) -> tuple[Message, str]:
    """Return a dead letter with its id, and the id: it is the same if the same bytes are sent again.

    Args:
        letter: the dead letter.
        offset: the position after its record.
        number: the number of dead letters before it at this position. Without it, equal rows of a table without a key
            would be one.
    """
    key, value, headers = letter
    given = dict(headers)
    topic, sha256 = (text_of(given, name) for name in (TOPIC_HEADER, SHA256_HEADER))
    place = offset.file, offset.pos, offset.event, offset.row
    of_record = json.dumps([topic, *place, sha256, hashlib.sha256(key or b"").hexdigest(), number])
    identity = hashlib.sha256(of_record.encode()).hexdigest()[:32]
    return (key, value, [*headers, (ID_HEADER, identity.encode())]), identity


def text_of(headers: dict[str, bytes | None], name: str) -> str:
    """Return the text of a header; empty if it is missing."""
    return (headers.get(name) or b"").decode(errors="replace")


def parts(message: Message, most: int) -> Iterator[Message]:
    """Yield a dead letter in parts: records with the same key and headers, and a part of the value each.

    Args:
        message: the dead letter.
        most: bytes of the value of a part.
    """
    key, value, headers = message
    assert value is not None, "only a value can be divided"
    count = -(-len(value) // most)
    for number in range(count):
        numbers = [(PART_HEADER, str(number).encode()), (PARTS_HEADER, str(count).encode())]
        yield key, value[number * most : (number + 1) * most], [*headers, *numbers]
