"""Edge: sends a signal to a connector by one of its channels."""

import json
import os
from collections.abc import Mapping
from typing import Any

import click
import pymysql
from confluent_kafka import KafkaException, Producer

from rowtide.cli.connectors.worker_client import WorkerClient
from rowtide.connector.config import Configuration
from rowtide.connector.source.connection import DatabaseUnreachableError, connect

_KAFKA_S = 30.0


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


def _to_table(config: Configuration, fields: Mapping[str, Any]) -> None:
    if not (config.signals.source and config.capture.tables.always):
        raise click.ClickException(
            "the channel source needs signal.data.collection, and source in signal.enabled.channels"
        )
    database, table = min(config.capture.tables.always)
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
