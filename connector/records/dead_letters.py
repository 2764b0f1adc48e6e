"""Dead letters: records that could not be sent to their topic, whole or in parts, with the reason in headers.

The headers are those of Kafka Connect's ``DeadLetterQueueReporter``, and rowtide's own for what it has no name for.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowtide.connector.records.batch import Batch, Headers, Message

CONNECT = "__connect.errors."
ID_HEADER = "rowtide.dead.letter.id"
TOPIC_HEADER = "rowtide.dead.letter.topic"
REASON_HEADER = "rowtide.dead.letter.reason"
POSITION_HEADER = "rowtide.dead.letter.position"
SIZE_HEADER = "rowtide.dead.letter.size"
SHA256_HEADER = "rowtide.dead.letter.sha256"
PART_HEADER = "rowtide.dead.letter.part"
PARTS_HEADER = "rowtide.dead.letter.parts"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record became a dead letter.

    Attributes:
        stage: the step that rejected it, as Kafka Connect names it.
        kind: the name of the error.
        message: the error.
    """

    stage: str
    kind: str
    message: str


def dead_letter(
    batch: Batch, message: Message, reason: Reason, *, connector: str, context: bool
) -> tuple[Message, str]:
    """Return the dead letter of a record, and its id, which is the same when the record is read again.

    The key, the value and the headers stay as they are.

    Args:
        batch: of the record.
        message: the record.
        reason: why it is one.
        connector: the connector's name.
        context: whether to add the headers of Kafka Connect (``errors.deadletterqueue.context.headers.enable``).
    """
    key, value, headers = message
    content = value or b""
    sha256 = hashlib.sha256(content).hexdigest()
    offset = batch.offset
    of_record = json.dumps([batch.topic, offset.file, offset.pos, sha256, hashlib.sha256(key or b"").hexdigest()])
    identity = hashlib.sha256(of_record.encode()).hexdigest()[:32]
    added: list[tuple[str, bytes | None]] = [
        (ID_HEADER, identity.encode()),
        (TOPIC_HEADER, batch.topic.encode()),
        (REASON_HEADER, reason.message.encode()),
        (POSITION_HEADER, f"{offset.file}:{offset.pos}".encode()),
        (SIZE_HEADER, str(len(content)).encode()),
        (SHA256_HEADER, sha256.encode()),
    ]
    if context:
        names = {
            "topic": batch.topic,
            "connector.name": connector,
            "task.id": "0",
            "stage": reason.stage,
            "exception.class.name": reason.kind,
            "exception.message": reason.message,
        }
        added += [(CONNECT + name, text.encode()) for name, text in names.items()]
    return (key, value, [*headers, *added]), identity


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


def part_number(headers: Headers) -> int:
    """Return the number of a part, from 0."""
    return int(dict(headers).get(PART_HEADER) or 0)


def whole(found: Sequence[Message]) -> Message:
    """Return the dead letter of its parts, without the headers of parts.

    Args:
        found: its parts in the order of their numbers, or the dead letter alone.

    Raises:
        ValueError: a part is missing, or the value is not that of the record.
    """
    key, _, headers = found[0]
    given = dict(headers)
    count = int(given.get(PARTS_HEADER) or 1)
    if len(found) != count:
        raise ValueError(f"the dead letter has {count} parts, and {len(found)} of them are in the topic")
    value = found[0][1] if count == 1 else b"".join(part or b"" for _, part, _ in found)
    if hashlib.sha256(value or b"").hexdigest().encode() != given.get(SHA256_HEADER):
        raise ValueError("the value of the dead letter is not that of the record: its SHA-256 differs")
    return key, value, _without(headers, PART_HEADER, PARTS_HEADER)


def _without(headers: Headers, *names: str) -> Headers:
    return [(name, text) for name, text in headers if name not in names]
