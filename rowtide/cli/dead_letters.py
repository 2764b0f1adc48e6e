"""``rowtide deadletters``: shows the records in the topic of dead letters."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import click

from rowtide.cli.connectors import CONFIG, read_configuration
from rowtide.connector.config import Configuration
from rowtide.connector.records import dead_letters as letters
from rowtide.connector.records.batch import Message
from rowtide.schema_history.store.topic_reader import StoredRecord, TopicReader, TopicReadError

__all__ = ["dead_letters"]

_UNNEEDED = frozenset(
    {
        *("database.hostname", "database.user", "database.password", "database.server.id"),
        *("schema.history.internal.kafka.topic", "schema.history.internal.file.filename"),
    }
)
_TIMEOUT = 15.0  # seconds without an answer of Kafka


@click.command("deadletters")
@click.option(
    "--config",
    multiple=True,
    required=True,
    type=CONFIG,
    help="The configuration of the connector; repeat it for several files.",
)
@click.option("--value", "identity", metavar="ID", help="Print the value of one record, as it was to be sent.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def dead_letters(config: tuple[str, ...], identity: str | None, *, as_json: bool) -> None:
    """Show the records that are in the topic of dead letters, because their own topic does not take them.

    A record that is there several times or in several parts is shown once. The value of a record is put together and
    compared with its hash. Records of other programs in the topic are omitted.

    \b
    Examples:
      rowtide deadletters --config shop.properties
      rowtide deadletters --config shop.properties --value 3f2a9c81d04be6775a1c0f9e8b7d6a54 > value.json
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    if identity is not None and as_json:
        raise click.UsageError("--value and --json exclude each other")
    configuration = read_configuration(config, _UNNEEDED)
    topic = configuration.delivery.large_records.dead_letter_topic
    if topic is None:
        raise click.UsageError(f"{config[-1]} has no errors.deadletterqueue.topic.name")
    try:
        records = _records(configuration, topic)
        if identity is not None:
            click.get_binary_stream("stdout").write(value_of(records, identity))
            return
        for letter in summaries(records):
            click.echo(json.dumps(letter, ensure_ascii=False) if as_json else _line(letter))
    except (TopicReadError, ValueError) as error:
        raise click.ClickException(f"topic {topic}: {error}") from None


def _records(configuration: Configuration, topic: str) -> Iterator[StoredRecord]:
    reader = TopicReader(configuration.kafka.consumer, configuration.kafka.admin, timeout=_TIMEOUT)
    extents = reader.extents(topic)
    if extents is None:
        raise click.ClickException(f"there is no topic {topic}: the connector creates it at its first start")
    return reader.read(topic, extents)


def summaries(records: Iterable[StoredRecord]) -> list[dict[str, Any]]:
    """Return what the headers say of each dead letter, in the order of the topic.

    Args:
        records: of the topic.
    """
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        headers = {name: (text or b"").decode(errors="replace") for name, text in record.headers}
        identity = headers.get(letters.ID_HEADER)
        if identity is None:
            continue
        letter = found.setdefault(
            identity,
            {
                "id": identity,
                "topic": headers[letters.TOPIC_HEADER],
                "position": headers[letters.POSITION_HEADER],
                "size": int(headers[letters.SIZE_HEADER]),
                "parts": int(headers.get(letters.PARTS_HEADER, 1)),
                "present": set(),
                "key": None if record.key is None else record.key.decode(errors="replace"),
                "reason": headers[letters.REASON_HEADER],
            },
        )
        letter["present"].add(letters.part_number(record.headers))
    return [{**letter, "present": len(letter["present"])} for letter in found.values()]


def value_of(records: Iterable[StoredRecord], identity: str) -> bytes:
    """Return the value of a dead letter.

    Args:
        records: of the topic.
        identity: the id of the dead letter.

    Raises:
        ValueError: there is none, a part is missing, or the value is damaged.
    """
    found: dict[int, Message] = {}
    for record in records:
        if dict(record.headers).get(letters.ID_HEADER) == identity.encode():
            found[letters.part_number(record.headers)] = (record.key, record.value, record.headers)
    if not found:
        raise ValueError(f"there is no dead letter {identity}: rowtide deadletters without --value lists them")
    return letters.whole([found[number] for number in sorted(found)])[1] or b""


def _line(letter: dict[str, Any]) -> str:
    missing = "" if letter["present"] == letter["parts"] else f"  {letter['parts'] - letter['present']} parts missing"
    return (
        f"{letter['id']}  {letter['topic']}  before {letter['position']}  {letter['size']} bytes{missing}\n"
        f"  key     {letter['key']}\n  reason  {letter['reason']}"
    )
