"""``rowtide deadletters``: shows the records in the topic of dead letters, and replays them."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from rowtide.cli.connectors import CONFIG, read_configuration
from rowtide.connector.config.model import DeadLettersConfig
from rowtide.connector.delivery.stored_dead_letters import Letter, letters_of, whole
from rowtide.connector.engine.dead_letter_replay import DeadLetterReplay, NewerRecord
from rowtide.errors import ConnectorError
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader, TopicReadError
from rowtide.topics.errors import TopicError

__all__ = ["dead_letters"]

_UNNEEDED = frozenset(
    {
        *("database.hostname", "database.user", "database.password", "database.server.id"),
        *("schema.history.internal.kafka.topic", "schema.history.internal.file.filename"),
    }
)
_TIMEOUT = 15.0  # seconds without an answer of Kafka
_ALL = "all"


@click.command("deadletters")
@click.option(
    "--config",
    multiple=True,
    required=True,
    type=CONFIG,
    help="The configuration of the connector; repeat it for several files.",
)
@click.option("--value", "identity", metavar="ID", help="Print the value of one record, put together.")
@click.option(
    "--replay",
    multiple=True,
    metavar="ID",
    help="Send a record to its topic; repeat it for several records, or give all for those that were not replayed.",
)
@click.option("--overwrite", is_flag=True, help="Replay also what replaces a newer record with the same key.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def dead_letters(
    config: tuple[str, ...], identity: str | None, replay: tuple[str, ...], *, overwrite: bool, as_json: bool
) -> None:
    """Show the records in the topic of dead letters, and replay them.

    They are there because a transform or a converter rejected them, or because they are too large for their topic.
    A record that is there several times or in several parts is shown once. Records of other programs are omitted.

    Replay them after you have corrected the cause. Each is sent once, in the order of the topic, in a transaction with
    the note that it was replayed. A record whose topic has a newer one with the same key stays.

    \b
    Examples:
      rowtide deadletters --config shop.properties
      rowtide deadletters --config shop.properties --value 3f2a9c81d04be6775a1c0f9e8b7d6a54 > value.json
      rowtide deadletters --config shop.properties --replay all
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    if (identity is not None) + bool(replay) + as_json > 1:
        raise click.UsageError("--value, --replay and --json exclude each other")
    if overwrite and not replay:
        raise click.UsageError("--overwrite needs --replay")
    configuration = read_configuration(config, _UNNEEDED)
    letters = configuration.delivery.dead_letters
    if letters is None:
        raise click.UsageError(f"{config[-1]} has no errors.deadletterqueue.topic.name")
    reader = TopicReader(configuration.kafka.consumer, configuration.kafka.admin, timeout=_TIMEOUT)
    try:
        records = _records(reader, letters)
        if identity is not None:
            click.get_binary_stream("stdout").write(whole(records, identity)[1] or b"")
        elif replay:
            chosen = _chosen(letters_of(records), replay)
            with DeadLetterReplay(configuration, letters, reader) as sender:
                _replay(sender, chosen, overwrite=overwrite)
        else:
            for letter in letters_of(records):
                click.echo(json.dumps(_as_json(letter), ensure_ascii=False) if as_json else _lines(letter))
    except (ConnectorError, TopicError, TopicReadError, ValueError) as error:
        raise click.ClickException(f"topic {letters.topic}: {error}") from None


def _records(reader: TopicReader, letters: DeadLettersConfig) -> Iterator[StoredRecord]:
    extents = reader.extents(letters.topic)
    if extents is None:
        raise click.ClickException(f"there is no topic {letters.topic}: the connector creates it with its first record")
    return reader.read(letters.topic, {0: extents.get(0, Extent(0, 0))})


def _chosen(found: Sequence[Letter], replay: Sequence[str]) -> list[Letter]:
    """The dead letters to replay, in the order of the topic."""
    known = {letter.id: letter for letter in found}
    for identity in replay:
        if identity == _ALL:
            continue
        if identity not in known:
            raise ValueError(f"there is no dead letter {identity}: rowtide deadletters without --replay lists them")
        if known[identity].replayed:
            raise ValueError(f"dead letter {identity} was replayed before")
    return [letter for letter in found if not letter.replayed and ({_ALL, letter.id} & set(replay))]


def _replay(sender: DeadLetterReplay, chosen: Sequence[Letter], *, overwrite: bool) -> None:
    stayed = 0
    for letter in chosen:
        try:
            topics = sender.replay(letter, overwrite=overwrite)
        except NewerRecord as reason:
            stayed += 1
            click.echo(f"{letter.id}  not replayed: {reason}", err=True)
        except (ConnectorError, ValueError) as error:
            stayed += 1
            click.echo(f"{letter.id}  not replayed: {error}", err=True)
        else:
            click.echo(f"{letter.id}  replayed to {', '.join(topics) or 'no topic: the transforms drop it'}")
    if stayed:
        raise click.ClickException(
            f"{stayed} of {len(chosen)} dead letters stay. --overwrite replays those with a newer record, too"
        )


_REMEDIES = {
    "TASK_POLL": "read the table again by an incremental snapshot: rowtide signal",
    "TRANSFORMATION": "correct the transforms, and replay it",
    "KAFKA_PRODUCE": "raise max.message.bytes of the topic and producer.override.max.request.size, and replay it",
}


def _lines(letter: Letter) -> str:
    missing = letter.parts - len(letter.present)
    size = f"{letter.size} bytes{f'  {missing} parts missing' if missing else ''}"
    if letter.size < 0 or letter.parts < 1:
        size = "its headers are damaged"
    place = f"before {letter.position}  {size}"
    state = "replayed" if letter.replayed else _REMEDIES.get(letter.stage, "correct the converter, and replay it")
    key = None if letter.key is None else letter.key.decode(errors="replace")
    return (
        f"{letter.id}  {letter.topic or 'an event of the binlog'}  {place}\n"
        f"  key     {key}\n  stage   {letter.stage}\n  reason  {letter.reason}\n  state   {state}"
    )


def _as_json(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "topic": letter.topic,
        "position": letter.position,
        "size": letter.size,
        "parts": letter.parts,
        "present": len(letter.present),
        "key": None if letter.key is None else letter.key.decode(errors="replace"),
        "stage": letter.stage,
        "reason": letter.reason,
        "ts_ms": letter.timestamp,
        "replayed": letter.replayed,
    }
