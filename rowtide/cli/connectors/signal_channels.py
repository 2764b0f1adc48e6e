"""Sends a signal to a connector through one of its channels."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pymysql
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from rowtide.cli.connectors.worker_client import WorkerClient
from rowtide.connector.config import Configuration
from rowtide.connector.source.connection import DatabaseUnreachableError, connect

_KAFKA_S = 30.0
_COLUMNS = 3
_MOST_BYTES = 100_000
"""Bytes of the data of a signal. Stored positions have the keys that are to be read."""


def send(config: Configuration, fields: Mapping[str, Any], channel: str, worker: WorkerClient) -> None:
    """Send a signal.

    Args:
        config: of the connector.
        fields: ``id``, ``type`` and ``data``.
        channel: ``http``, ``source``, ``kafka`` or ``file``.
        worker: the worker that runs the connector.

    Raises:
        click.ClickException: the channel is not enabled, or cannot be written.
    """
    if channel == "http":
        worker.send(fields)
    elif channel == "source":
        _to_table(config, fields)
    elif channel == "kafka":
        _to_topic(config, json.dumps(fields))
    else:
        _to_file(config, json.dumps(fields))


def require(config: Configuration, channel: str) -> int:
    """Check that a channel can be used, before anything is sent, and return how many bytes the data may have.

    Raises:
        click.ClickException: it is not enabled, or its table, topic or file does not exist.
    """
    signals = config.signals
    if channel == "source":
        return _require_table(config)
    if channel == "kafka" and signals.topic is not None:
        try:
            brokers = signals.consumer["bootstrap.servers"]
            admin = AdminClient({**config.kafka.admin, "bootstrap.servers": brokers, "log_level": 2})
            found = admin.list_topics(signals.topic, timeout=_KAFKA_S).topics.get(signals.topic)
        except KafkaException as error:
            raise click.ClickException(f"the topic {signals.topic} of signals cannot be read: {error}") from None
        if found is None or found.error is not None:
            raise click.ClickException(
                f"the topic {signals.topic} (signal.kafka.topic) does not exist: create it with one partition"
            )
    if channel == "file" and signals.file is not None and not os.access(Path(signals.file).parent, os.W_OK):
        raise click.ClickException(f"the folder of {signals.file} (signal.file) cannot be written")
    if (channel == "kafka" and signals.topic is None) or (channel == "file" and signals.file is None):
        raise click.ClickException(f"the channel {channel} needs {channel} in signal.enabled.channels")
    return _MOST_BYTES


def _require_table(config: Configuration) -> int:
    database, table = _signal_table(config)
    columns = (
        "SELECT CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s "
        "ORDER BY ORDINAL_POSITION"
    )
    try:
        with connect(config.database) as connection, connection.cursor() as cursor:
            cursor.execute(columns, (database, table))
            lengths = [length for (length,) in cursor.fetchall()]
    except (DatabaseUnreachableError, pymysql.MySQLError) as error:
        raise click.ClickException(f"the signal table {database}.{table} cannot be read: {error}") from None
    if len(lengths) != _COLUMNS or None in lengths:
        what = "does not exist, or the account lacks INSERT on it" if not lengths else "is not a signal table"
        raise click.ClickException(
            f"{database}.{table} (signal.data.collection) {what}: it must have the columns id, type and data, all of "
            "them text"
        )
    return min(int(lengths[-1]), _MOST_BYTES)


def _signal_table(config: Configuration) -> tuple[str, str]:
    if not (config.signals.source and config.capture.tables.always):
        raise click.ClickException(
            "the channel source needs signal.data.collection, and source in signal.enabled.channels"
        )
    return min(config.capture.tables.always)


def _to_table(config: Configuration, fields: Mapping[str, Any]) -> None:
    database, table = _signal_table(config)
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (database, table))
    row = fields["id"], fields["type"], json.dumps(fields["data"])
    try:
        with connect(config.database) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {name} VALUES (%s, %s, %s)", row)
    except DatabaseUnreachableError as error:
        raise click.ClickException(str(error)) from None
    except pymysql.MySQLError as error:
        raise click.ClickException(
            f"the signal cannot be inserted into {database}.{table}: {error}. Its account needs INSERT on the table, "
            "which has the columns id, type and data"
        ) from None


def _to_topic(config: Configuration, text: str) -> None:
    topic = config.signals.topic
    if topic is None:
        raise click.ClickException("the channel kafka needs kafka in signal.enabled.channels")
    brokers = config.signals.consumer["bootstrap.servers"]
    failures: list[str] = []
    try:
        producer = Producer({**config.kafka.producer, "bootstrap.servers": brokers, "log_level": 2})
        producer.produce(
            topic,
            text.encode(),
            config.topics.prefix.encode(),
            partition=0,
            on_delivery=lambda error, _message: failures.append(error.str()) if error is not None else None,
        )
        if producer.flush(_KAFKA_S):
            failures.append(f"no answer from {brokers} in {_KAFKA_S:.0f} s")
    except KafkaException as error:
        failures.append(str(error))
    if failures:
        raise click.ClickException(f"the signal cannot be written to topic {topic}: {failures[0]}")


def _to_file(config: Configuration, text: str) -> None:
    path = config.signals.file
    if path is None:
        raise click.ClickException("the channel file needs file in signal.enabled.channels")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, text.encode() + b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise click.ClickException(f"the signal cannot be appended to {path} (signal.file): {error}") from None
