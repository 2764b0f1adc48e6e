"""Connections to a real broker: plain text, TLS, and a login by each mechanism."""

from __future__ import annotations

import time

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka.admin import AdminClient, NewTopic

from rowtide.connector.delivery.kafka.tls import tls_context
from rowtide.connector.kafka_producer.connection.connection import Connection
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.connection.settings import connection_settings
from rowtide.connector.kafka_producer.librdkafka_settings import MECHANISMS
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed
from rowtide.connector.kafka_producer.wire.messages.cluster import MetadataRequest
from rowtide.connector.kafka_producer.wire.messages.produce import (
    PartitionData,
    ProduceRequest,
    TopicData,
)
from rowtide.connector.kafka_producer.wire.messages.transactions import InitProducerIdRequest
from tests.support.kafka.listeners import PASSWORD, SESSION_MS, USER, Listeners

pytestmark = pytest.mark.servers


def opened(bootstrap: str, **settings: str) -> Connection:
    """An open connection; ``settings`` have underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    read = connection_settings({"bootstrap.servers": bootstrap, **given})
    connection = Connection(read.bootstrap, read, tls_context(read.tls) if read.tls else None, "1.0")
    connection.open()
    return connection


def answers(connection: Connection) -> bool:
    """Whether the broker of an open connection answers."""
    return bool(connection.call(MetadataRequest(topics=())).brokers)


def test_plain_text(listeners: Listeners) -> None:
    connection = opened(listeners.plain)
    assert answers(connection)
    assert connection.versions.transactions_v2
    connection.close()


def test_tls(listeners: Listeners) -> None:
    connection = opened(listeners.tls, security_protocol="ssl", ssl_ca_location=str(listeners.files.ca))
    assert answers(connection)
    connection.close()
    with pytest.raises(ConnectionFailed, match="its certificate cannot be verified"):
        opened(listeners.tls, security_protocol="ssl")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_login(listeners: Listeners, mechanism: str) -> None:
    settings = {
        "security_protocol": "sasl_plaintext",
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
        "sasl_password": PASSWORD,
    }
    connection = opened(listeners.sasl, **settings)
    assert answers(connection)
    connection.close()
    with pytest.raises(AuthenticationFailed, match=f"refused the credentials for {mechanism}"):
        opened(listeners.sasl, **{**settings, "sasl_password": "wrong"})


def test_a_listener_with_another_protocol(listeners: Listeners) -> None:
    with pytest.raises(ConnectionFailed, match=r"check that security\.protocol"):
        opened(listeners.tls)
    with pytest.raises(AuthenticationFailed, match=r"security\.protocol"):
        opened(
            listeners.plain,
            security_protocol="sasl_plaintext",
            sasl_mechanism="PLAIN",
            sasl_username=USER,
            sasl_password=PASSWORD,
        )


def test_a_session_that_ends_is_renewed(listeners: Listeners) -> None:
    connection = opened(
        listeners.sasl,
        security_protocol="sasl_plaintext",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username=USER,
        sasl_password=PASSWORD,
    )
    end = time.monotonic() + 1.5 * SESSION_MS / 1000  # the broker closes connections whose session has ended
    while time.monotonic() < end:
        assert answers(connection)
        time.sleep(0.1)
    connection.close()


def test_large_requests(listeners: Listeners) -> None:
    admin = AdminClient({"bootstrap.servers": listeners.plain})
    for done in admin.create_topics([NewTopic("large", 1, 1)]).values():
        done.result()
    for connection in (
        opened(listeners.plain),
        opened(listeners.tls, security_protocol="ssl", ssl_ca_location=str(listeners.files.ca)),
    ):
        made = connection.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        builder = DefaultRecordBatchBuilder(2, 0, False, made.producer_id, made.producer_epoch, 0, 1 << 20)
        builder.append(0, 1_700_000_000_000, b"key", b"x" * 900_000, [])
        partition = PartitionData(index=0, records=builder.build())
        request = ProduceRequest(timeout_ms=30_000, topic_data=(TopicData(name="large", partition_data=(partition,)),))
        result = connection.call(request, at_most=12).responses[0].partition_responses[0]
        assert ErrorCode(result.error).name == "NONE"
        connection.close()
