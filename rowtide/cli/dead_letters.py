"""``rowtide deadletters``: shows the records in the topic of dead letters, and replays them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from rowtide.cli.connectors import CONFIG, read_configuration
from rowtide.cli.sql_script import apply_script
from rowtide.connector.config.model import DeadLettersConfig
from rowtide.connector.delivery.stored_dead_letters import Letter, letters_of, whole
from rowtide.connector.engine.dead_letter_replay import DeadLetterReplay, Newer, NewerRecord, Replayed
from rowtide.errors import ConnectorError
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.server.query_event import Flavor, Server
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
@click.option("--value", "identity", metavar="ID", help="Print the value of one record, joined from its parts.")
@click.option(
    "--replay",
    multiple=True,
    metavar="ID",
    help="Send a record to its topic; repeat it for several records, or give all for all that were not replayed.",
)
@click.option("--overwrite", is_flag=True, help="Replay records even if they replace a newer one with the same key.")
@click.option("--omit-newer", is_flag=True, help="Replay all but the records that have a newer one with the same key.")
@click.option(
    "--structures",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CREATE TABLE statements of tables as they were at the events, where the schema history is wrong.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def dead_letters(
    config: tuple[str, ...],
    identity: str | None,
    replay: tuple[str, ...],
    structures: Path | None,
    *,
    overwrite: bool,
    omit_newer: bool,
    as_json: bool,
) -> None:
    """Show the records in the topic of dead letters, and replay them.

    A record becomes a dead letter because a transform or a converter rejected it, because it is too large for its
    topic, or because an event of the binlog could not be decoded. A dead letter that is stored several times or in
    several parts is shown once. Records written by other programs are omitted.

    Replay them after you have corrected the cause. Each is sent once, in the order of the topic, in a transaction
    together with a note that it was replayed. A dead letter stays if its topic has a newer record with the same key.

    \b
    Examples:
      rowtide deadletters --config shop.properties
      rowtide deadletters --config shop.properties --value 3f2a9c81d04be6775a1c0f9e8b7d6a54 > value.json
      rowtide deadletters --config shop.properties --replay all
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    if (identity is not None) + bool(replay) + as_json > 1:
        raise click.UsageError("--value, --replay and --json are mutually exclusive")
    for option, given in (("--overwrite", overwrite), ("--omit-newer", omit_newer), ("--structures", structures)):
        if given and not replay:
            raise click.UsageError(f"{option} needs --replay")
    if overwrite and omit_newer:
        raise click.UsageError("--overwrite and --omit-newer are mutually exclusive")
    configuration = read_configuration(config, _UNNEEDED)
    letters = configuration.delivery.dead_letters
    if letters is None:
        raise click.UsageError(f"{config[-1]} has no errors.deadletterqueue.topic.name")
    reader = TopicReader(configuration.kafka.consumer, configuration.kafka.admin, timeout=_TIMEOUT)
    try:
        if identity is not None:
            records = _records(reader, letters)
            click.get_binary_stream("stdout").write(whole(records, identity)[1] or b"")
        elif replay:
            tables = None if structures is None else _structures(structures, configuration.flavor)
            with DeadLetterReplay(configuration, letters, reader, tables) as sender:
                # Another process may have replayed some of them before the producer was opened, which ends the other's
                # transaction.
                chosen = _chosen(letters_of(_records(reader, letters)), replay)
                _replay(sender, chosen, "overwrite" if overwrite else "omit" if omit_newer else "stay")
        else:
            for letter in letters_of(_records(reader, letters)):
                click.echo(json.dumps(_as_json(letter), ensure_ascii=False) if as_json else _lines(letter))
    except (ConnectorError, TopicError, TopicReadError, ValueError) as error:
        raise click.ClickException(f"topic {letters.topic}: {error}") from None


def _records(reader: TopicReader, letters: DeadLettersConfig) -> Iterator[StoredRecord]:
    extents = reader.extents(letters.topic)
    if extents is None:
        raise click.ClickException(f"there is no topic {letters.topic}: the connector creates it with its first record")
    return reader.read(letters.topic, {0: extents.get(0, Extent(0, 0))})


def _chosen(found: Sequence[Letter], replay: Sequence[str]) -> list[Letter]:
    """Return the dead letters to replay, in the order of the topic."""
    known = {letter.id: letter for letter in found}
    for identity in replay:
        if identity == _ALL:
            continue
        if identity not in known:
            raise ValueError(f"there is no dead letter {identity}: rowtide deadletters without --replay lists them")
        if known[identity].replayed:
            raise ValueError(f"dead letter {identity} was replayed before")
    return [letter for letter in found if not letter.replayed and ({_ALL, letter.id} & set(replay))]


def _structures(script: Path, flavor: Flavor) -> Tables:
    """Return the tables that a file of statements creates."""
    tables = Tables(Server(flavor))
    text = script.read_bytes().decode("utf-8-sig", "surrogateescape")
    for made in apply_script(text, flavor, tables):
        if made["error"] is not None:
            raise click.ClickException(f"{script}, line {made['line']}: {made['error']}")
    return tables


def _replay(sender: DeadLetterReplay, chosen: Sequence[Letter], newer: Newer) -> None:
    stayed = 0
    for letter in chosen:
        try:
            sent = sender.replay(letter, newer)
        except (NewerRecord, ConnectorError, SchemaHistoryError, ValueError) as reason:
            stayed += 1
            click.echo(f"{letter.id}  not replayed: {reason}", err=True)
            continue
        click.echo(f"{letter.id}  replayed to {_destination(sent)}")
    if stayed:
        raise click.ClickException(
            f"{stayed} of {len(chosen)} dead letters stay. If a newer record is the reason, --omit-newer replays the "
            "other records of the dead letter, and --overwrite all"
        )


def _destination(sent: Replayed) -> str:
    if not sent.topics:
        return f"no topic: {'newer records replace' if sent.omitted else 'the configuration drops'} it"
    number = f" ({sent.records} records)" if sent.records > 1 else ""
    omitted = f", without {sent.omitted} that have a newer one" if sent.omitted else ""
    return f"{', '.join(sent.topics)}{number}{omitted}"


_REMEDIES = {
    "TASK_POLL": "update rowtide if it could not decode the event, or correct the structure, and replay it",
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
    origin = letter.topic or f"an event of {letter.table or 'the binlog'}"
    return (
        f"{letter.id}  {origin}  {place}\n"
        f"  key     {key}\n  stage   {letter.stage}\n  reason  {letter.reason}\n  state   {state}"
    )


def _as_json(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "topic": letter.topic,
        "table": letter.table or None,
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
