"""The configuration of the connector, and its account in MySQL."""

from pathlib import Path
from typing import TYPE_CHECKING

from rowtide_demo.shop.schema import DATABASE

if TYPE_CHECKING:
    from rowtide_stack import Kafka, MySQL, Registry

__all__ = ["PREFIX", "canal_files", "create_account", "properties"]

PREFIX = "shop"
"""The first part of every topic's name."""

_USER, _PASSWORD = "rowtide", "rowtide"
_PRIVILEGES = Path(__file__).parents[1] / "config/mysql-privileges.sql"

_PROPERTIES = """\
# The connector of the demo, with the property names of Debezium and Kafka Connect: see "rowtide properties NAME".
name = shop
topic.prefix = {prefix}

database.hostname = {mysql.host}
database.port = {mysql.port}
database.user = {user}
database.password = {password}
database.server.id = 184054
database.include.list = {database}
# Keeps the values that exceed a signed 64-bit integer
bigint.unsigned.handling.mode = precise

bootstrap.servers = {kafka.bootstrap}
offset.storage.topic = rowtide-offsets
schema.history.internal.kafka.bootstrap.servers = {kafka.bootstrap}
schema.history.internal.kafka.topic = rowtide-schema-history
topic.creation.default.partitions = 1
topic.creation.default.replication.factor = 1
topic.creation.default.compression.type = lz4
producer.override.compression.type = lz4
exactly.once.source.support = enabled
"""


_AVRO = """\
key.converter = io.confluent.connect.avro.AvroConverter
key.converter.schema.registry.url = {registry.url}
value.converter = io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url = {registry.url}
"""


def properties(mysql: "MySQL", kafka: "Kafka", registry: "Registry | None") -> str:
    """Return the text of the configuration file; with a schema registry, records are in Avro."""
    text = _PROPERTIES + ("" if registry is None else _AVRO)
    return text.format(
        prefix=PREFIX, mysql=mysql, kafka=kafka, registry=registry, user=_USER, password=_PASSWORD, database=DATABASE
    )


_CANAL = """\
canal.serverMode = kafka
kafka.bootstrap.servers = {kafka.bootstrap}
canal.mq.flatMessage = true
canal.mq.exactlyOnce = true
"""
_CANAL_INSTANCE = """\
canal.instance.master.address = {mysql.host}:{mysql.port}
canal.instance.dbUsername = {user}
canal.instance.dbPassword = {password}
canal.instance.filter.regex = {database}\\\\..*
canal.instance.snapshot = initial
canal.mq.topic = canal
canal.mq.dynamicTopic = .*\\\\..*
"""


def canal_files(mysql: "MySQL", kafka: "Kafka") -> dict[str, str]:
    """Return the texts of the files of Canal's configuration folder, by their paths in it."""
    instance = _CANAL_INSTANCE.format(mysql=mysql, user=_USER, password=_PASSWORD, database=DATABASE)
    return {"canal.properties": _CANAL.format(kafka=kafka), "shop/instance.properties": instance}


def create_account(mysql: "MySQL") -> None:
    """Create the account with the privileges that the compose file grants: those that rowtide needs."""
    lines = [line for line in _PRIVILEGES.read_text().splitlines() if not line.startswith("--")]
    grants = [statement.strip() for statement in " ".join(lines).split(";")]
    mysql.execute(f"CREATE USER {_USER} IDENTIFIED BY '{_PASSWORD}'", *filter(None, grants))
