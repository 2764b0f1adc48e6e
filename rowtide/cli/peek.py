"""``rowtide peek``: prints records of a topic."""

import datetime as dt
import difflib
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rowtide.cli.connectors import CONFIG, read_configuration
from rowtide.cli.option_types import SERVERS, URL
from rowtide.cli.record_text import lacks_schema, record_lines
from rowtide.cli.registries import registry_of, registry_source
from rowtide.connector.config.model import RegistryConfig
from rowtide.connector.delivery.claim_check_folder import ClaimCheckFolder, open_folder
from rowtide.decoder.readers import Headers, RegistryReader, in_registry
from rowtide.envelope.claim_check import OPENING, ClaimCheck, InvalidClaimCheck
from rowtide.envelope.json.text import JsonFormat, enveloped_text
from rowtide.envelope.transforms.record import Side
from rowtide.errors import ConnectorError
from rowtide.schema_history.store.topic_reader import (
    Extent,
    StoredRecord,
    TopicReader,
    TopicReadError,
    new_extents,
)

__all__ = ["peek"]

_UNNEEDED = frozenset(
    {
        *("database.hostname", "database.user", "database.password", "database.server.id"),
        *("schema.history.internal.kafka.topic", "schema.history.internal.file.filename"),
    }
)
_TIMEOUT = 15.0  # seconds without an answer of Kafka
_POLL = 1.0  # seconds between look-ups of new records with --follow
_NO_SCHEMAS = (
    "note: these messages have no schemas (value.converter.schemas.enable=false), so decimals, dates, times and bytes "
    "are shown as in the message. rowtide tables decodes them by the schema history"
)
_KEEPING = JsonFormat(replace_null_with_default=False)
_SPARE = 50  # offsets that are read for each record to print: markers and aborted records of transactions have offsets


@click.command()
@click.argument("topic")
@click.option(
    "--config",
    multiple=True,
    type=CONFIG,
    help="The configuration of the connector, for the addresses of Kafka and the topic prefix; repeat it for several "
    "files.",
)
@click.option("--bootstrap-servers", type=SERVERS, metavar="HOST:PORT,...", help="Addresses of Kafka brokers.")
@click.option(
    "--registry",
    type=URL,
    metavar="URL",
    help="The schema registry of records in Avro and Protobuf; by default that of the configuration.",
)
@click.option(
    "--claim-checks",
    metavar="URL",
    help="The folder of values that are too large for Kafka; by default that of the configuration.",
)
@click.option("--limit", "-n", type=click.IntRange(min=1), default=10, show_default=True, help="Number of records.")
@click.option("--from-start", is_flag=True, help="Print the first records of the topic instead of the last ones.")
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Then print new records until Ctrl-C. Waits for a topic that does not exist yet.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, with key and value as they are.")
def peek(
    topic: str,
    *,
    config: tuple[str, ...],
    bootstrap_servers: str | None,
    registry: str | None,
    claim_checks: str | None,
    limit: int,
    from_start: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the last records of TOPIC in a readable form.

    TOPIC is the full name of a topic, or with --config a database.table. Decimals, dates, times and bytes are decoded
    if the messages have schemas; otherwise a note says that they are shown as in the message. Records of transactions
    that are not committed are omitted. It stores neither a consumer group nor an offset in Kafka.

    \b
    Examples:
      rowtide peek shop.orders --config shop.properties
      rowtide peek shop.shop.orders --bootstrap-servers localhost:9092 --follow
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    if from_start and follow:
        raise click.UsageError("--from-start and --follow are mutually exclusive")
    clients = _clients(config, bootstrap_servers)
    printer = _Printer(registry or "", clients.registry, claim_checks or clients.claim_checks, as_json=as_json)
    reader = TopicReader(clients.consumer, clients.admin, timeout=_TIMEOUT)
    try:
        name, extents = _existing_topic(reader, clients, topic, wait=follow)
        for record in _records(reader, name, extents, limit, from_start=from_start):
            printer.print(name, record)
        while follow:
            time.sleep(_POLL)
            extents = new_extents(extents, reader.extents(name) or {})
            for record in reader.read(name, extents):
                printer.print(name, record)
    except (TopicReadError, KafkaException, ConnectorError, InvalidClaimCheck) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        if not follow:
            raise


class _Clients(NamedTuple):
    """The settings of the Kafka clients, and settings from a configuration.

    Attributes:
        consumer: of consumers.
        admin: of admin clients.
        prefix: the topic prefix.
        registry: the schema registry.
        claim_checks: the folder of values that are too large for Kafka.
    """

    consumer: Mapping[str, str]
    admin: Mapping[str, str]
    prefix: str
    registry: RegistryConfig | None = None
    claim_checks: str | None = None


def _clients(config: tuple[str, ...], bootstrap_servers: str | None) -> _Clients:
    given = {"bootstrap.servers": bootstrap_servers} if bootstrap_servers else {}
    if config:
        configuration = read_configuration(config, _UNNEEDED)
        kafka = configuration.kafka
        if not kafka.bootstrap_servers and not given:
            raise click.UsageError(f"{config[-1]} has no bootstrap.servers: add --bootstrap-servers")
        return _Clients(
            {**kafka.consumer, **given},
            {**kafka.admin, **given},
            configuration.topics.prefix,
            registry_of(configuration),
            configuration.delivery.large_records.claim_check_url,
        )
    if not given:
        raise click.UsageError("the addresses of Kafka are needed: --config or --bootstrap-servers")
    return _Clients(given, given, "")


def _existing_topic(reader: TopicReader, clients: _Clients, topic: str, *, wait: bool) -> tuple[str, dict[int, Extent]]:
    """Return the full name of the topic, and the offsets of its partitions.

    With ``wait``, first wait until it is created.
    """
    names = [topic, f"{clients.prefix}.{topic}"] if clients.prefix else [topic]
    waiting = False
    while True:
        for name in names:
            extents = reader.extents(name)
            if extents is not None:
                return name, extents
        if not wait:
            raise _no_topic(clients, names)
        if not waiting:
            click.echo(f"waiting for the topic {' or '.join(names)}", err=True)
        waiting = True
        time.sleep(_POLL)


def _no_topic(clients: _Clients, names: Sequence[str]) -> click.ClickException:
    known = AdminClient({**clients.admin, "log_level": 2}).list_topics(timeout=_TIMEOUT).topics
    near = difflib.get_close_matches(names[-1], known, n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else f"; Kafka has {len(known)} other topics"
    return click.ClickException(f"there is no topic {' or '.join(names)}{hint}")


def _records(
    reader: TopicReader, topic: str, extents: Mapping[int, Extent], limit: int, *, from_start: bool
) -> Iterator[StoredRecord]:
    """Yield the first or last records over all partitions, at most ``limit``, in the order of their timestamps."""
    window = limit * _SPARE
    found: list[StoredRecord] = []
    for partition, extent in extents.items():
        if from_start:
            part = Extent(extent.low, min(extent.high, extent.low + window))
            found += sorted(reader.read(topic, {partition: part}), key=_age)[:limit]
        else:
            part = Extent(max(extent.low, extent.high - window), extent.high)
            found += deque(reader.read(topic, {partition: part}), maxlen=limit)
    found.sort(key=_age)
    yield from found[:limit] if from_start else found[-limit:]


def _age(record: StoredRecord) -> tuple[int, int, int]:
    return record.timestamp, record.partition, record.offset


class _Printer:
    """Prints records, and notes once, on standard error, that messages have no schemas.

    Args:
        url: the URL of the schema registry; empty for that of the connector.
        registry: the schema registry of the connector.
        claim_checks: the folder of values that are too large for Kafka.
        as_json: print one JSON object per line, with key and value as they are, or converted to JSON.
    """

    def __init__(
        self,
        url: str = "",
        registry: RegistryConfig | None = None,
        claim_checks: str | None = None,
        *,
        as_json: bool,
    ) -> None:
        self._claim_checks = claim_checks
        self._as_json = as_json
        self._noted = as_json
        self._url = url
        self._registry = registry

    @cached_property
    def _reader(self) -> RegistryReader:
        return RegistryReader(registry_source(self._url, self._registry))

    def _json(self, side: Side, data: bytes | None, headers: Headers) -> bytes | None:
        """Return a key or value in Avro or Protobuf as JSON with its schema."""
        if data is None or not in_registry(side, data, headers):
            return data
        if not self._url and self._registry is None:
            raise click.ClickException(
                "the records need a schema registry: --registry URL, or --config of the connector"
            )
        from rowtide.envelope.avro.reader import connect_value  # noqa: PLC0415

        parsed = self._reader.parsed(side, data, headers)
        assert parsed.schema is not None
        return enveloped_text(parsed.schema, connect_value(parsed.schema, parsed.value), _KEEPING).encode()

    @cached_property
    def _folder(self) -> ClaimCheckFolder:
        assert self._claim_checks is not None, "there is no folder"
        return open_folder(self._claim_checks)

    def _claimed(self, record: StoredRecord) -> bytes | None:
        """Return the value that a claim check points to.

        The value itself, even of a claim check, if there is no folder.
        """
        if self._claim_checks is None or record.value is None or not record.value.startswith(OPENING):
            return record.value
        check = ClaimCheck.parse(record.value)
        value = self._folder.get(check.name)
        check.verify(value)
        return value

    def print(self, topic: str, record: StoredRecord) -> None:
        """Print a record."""
        headers = record.headers
        key, value = self._json("key", record.key, headers), self._json("value", self._claimed(record), headers)
        record = replace(record, key=key, value=value)
        if not self._noted and lacks_schema(record.value):
            self._noted = True
            click.echo(_NO_SCHEMAS, err=True)
        _print(topic, record, as_json=self._as_json)


def _print(topic: str, record: StoredRecord, *, as_json: bool) -> None:
    if as_json:
        key, value = (None if data is None else data.decode(errors="replace") for data in (record.key, record.value))
        fields = {
            "topic": topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": key,
            "value": value,
        }
        click.echo(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
        return
    written = ""
    if record.timestamp >= 0:
        moment = dt.datetime.fromtimestamp(record.timestamp / 1000, dt.UTC)
        written = f"  written {moment:%Y-%m-%d %H:%M:%S} UTC"
    click.secho(f"{topic}  partition {record.partition}  offset {record.offset}{written}", dim=True)
    for line in record_lines(record.key, record.value):
        click.echo(line)
