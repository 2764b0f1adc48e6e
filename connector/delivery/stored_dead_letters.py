"""Dead letters in their topic: each is returned once, with its record reassembled."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from rowtide.connector.records import dead_letters as letters
from rowtide.connector.records.batch import Message
from rowtide.schema_history.store.topic_reader import StoredRecord


@dataclass(slots=True)
class Letter:
    """A dead letter in its topic, as its headers describe it.

    Attributes:
        id: its id.
        topic: the topic of its record.
        partition: the partition of its record, or -1 if none is chosen, or if the header is damaged.
        stage: the step that rejected the record.
        reason: the error.
        position: the resume position after the record, ``<file>:<position>``.
        size: of the value in bytes; -1 if the header is damaged.
        key: of the record.
        timestamp: when it was sent (milliseconds since the epoch).
        parts: how many records it has; -1 if the header is damaged.
        present: the parts that are in the topic.
        first: the offset of the first record.
        last: the offset of the last one.
        sent_again: when it was sent the last time, after a crash; ``timestamp`` if it was sent once.
        record_timestamp: the timestamp that a transform gave the record; 0 if none did.
        replayed: whether it was replayed.
        offset: of an event: the resume position before it, as JSON; empty for records.
        table: of an event: its table; empty if it is not known.
    """

    id: str
    topic: str
    partition: int
    stage: str
    reason: str
    position: str
    size: int
    key: bytes | None
    timestamp: int
    parts: int
    present: set[int]
    first: int
    last: int
    sent_again: int
    record_timestamp: int = 0
    replayed: bool = False
    offset: str = ""
    table: str = ""


def letters_of(records: Iterable[StoredRecord]) -> list[Letter]:
    """Return the dead letters of a topic, each once, by their first records; other records are omitted."""
    found: dict[str, Letter] = {}
    for record in records:
        given = dict(record.headers)
        replayed, identity = letters.text_of(given, letters.REPLAYED_HEADER), letters.text_of(given, letters.ID_HEADER)
        if replayed in found:
            found[replayed].replayed = True
        if not identity:
            continue
        letter = found.setdefault(
            identity,
            Letter(
                identity,
                letters.text_of(given, letters.TOPIC_HEADER),
                _number(given, letters.PARTITION_HEADER, -1, -1),
                letters.text_of(given, letters.STAGE_HEADER),
                letters.text_of(given, letters.REASON_HEADER),
                letters.text_of(given, letters.POSITION_HEADER),
                _number(given, letters.SIZE_HEADER, -1, -1),
                record.key,
                record.timestamp,
                _number(given, letters.PARTS_HEADER, 1, -1),
                set(),
                record.offset,
                record.offset,
                record.timestamp,
                _number(given, letters.TIMESTAMP_HEADER, 0, 0),
                offset=letters.text_of(given, letters.OFFSET_HEADER),
                table=letters.text_of(given, letters.TABLE_HEADER),
            ),
        )
        letter.present.add(_number(given, letters.PART_HEADER, 0, -1))
        letter.last = record.offset
        letter.sent_again = max(letter.sent_again, record.timestamp)
    return list(found.values())


def whole(records: Iterable[StoredRecord], identity: str) -> Message:
    """Return the reassembled record of a dead letter, compared with its hash, without the added headers.

    Args:
        records: of the topic, or from the first record of the dead letter to its last one.
        identity: the id of the dead letter.

    Raises:
        ValueError: it does not exist, a part is missing, or the value or a header is damaged.
    """
    found: dict[int, StoredRecord] = {}
    for record in records:
        given = dict(record.headers)
        if letters.text_of(given, letters.ID_HEADER) == identity:
            found[_number(given, letters.PART_HEADER, 0)] = record
    if not found:
        raise ValueError(f"there is no dead letter {identity}: rowtide deadletters without --value lists them")
    pieces = [found[number] for number in sorted(found)]
    given = dict(pieces[0].headers)
    _number(given, letters.PARTITION_HEADER, -1)  # a damaged one must not send the record to another partition
    count = _number(given, letters.PARTS_HEADER, 1)
    if len(pieces) != count:
        raise ValueError(f"dead letter {identity} has {count} parts, and {len(pieces)} of them are in the topic")
    value = pieces[0].value if count == 1 else b"".join(piece.value or b"" for piece in pieces)
    if hashlib.sha256(value or b"").hexdigest() != letters.text_of(given, letters.SHA256_HEADER):
        raise ValueError(f"the value of dead letter {identity} is not that of the record: its SHA-256 differs")
    headers = [(name, text) for name, text in pieces[0].headers if not name.startswith(letters.ADDED)]
    return pieces[0].key, value, headers


def _number(given: dict[str, bytes | None], header: str, missing: int, damaged: int | None = None) -> int:
    """Return the number in a header.

    Args:
        given: the headers.
        header: its name.
        missing: the number without this header.
        damaged: the number for a text that is not a number.

    Raises:
        ValueError: the text is not a number, and ``damaged`` is not given.
    """
    text = letters.text_of(given, header)
    if not text:
        return missing
    try:
        return int(text)
    except ValueError:
        if damaged is not None:
            return damaged
        identity = letters.text_of(given, letters.ID_HEADER)
        raise ValueError(f"the header {header} of dead letter {identity} is {text!r}") from None
