"""The producer's settings: defaults, overrides, and those that delivery requires."""

from collections.abc import Callable
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.config.kafka.clients import DEFAULTS
from rowtide.connector.config.kafka.producer_settings import (
    ProducerSettingsError,
    idempotent_settings,
    transactional_id,
    transactional_settings,
)
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.kafka_producer.connection.settings import connection_settings
from rowtide.topics.admin.topic_admin import TopicAdmin
from tests.support.configurations import PROPERTIES

SERVERS = {"bootstrap.servers": "kafka:9092"}


def test_at_least_once_settings_never_lose_reorder_or_expire() -> None:
    settings = idempotent_settings(SERVERS)
    assert settings["bootstrap.servers"] == "kafka:9092"
    assert settings["enable.idempotence"] is True
    assert settings["acks"] == "all"
    assert settings["message.timeout.ms"] == 0
    assert settings["partitioner"] == "murmur2_random"


@pytest.mark.parametrize("name", ["max.in.flight", "max.in.flight.requests.per.connection"])
@pytest.mark.parametrize("settings", [idempotent_settings, lambda client: transactional_settings(client, "x")])
def test_one_request_is_in_flight_whatever_the_user_sets(
    settings: Callable[[dict[str, str]], dict[str, Any]], name: str
) -> None:
    found = settings({**SERVERS, name: "5"})
    assert {key: value for key, value in found.items() if "in.flight" in key} == {
        "max.in.flight.requests.per.connection": 1
    }


@pytest.mark.parametrize("name", ["linger.ms", "queue.buffering.max.ms"])
def test_linger_can_be_set_by_both_names(name: str) -> None:
    assert idempotent_settings(SERVERS)["linger.ms"] == 50
    settings = idempotent_settings({**SERVERS, name: "5"})
    assert {key: settings[key] for key in ("linger.ms", "queue.buffering.max.ms") if key in settings} == {name: "5"}


def test_a_user_may_override_defaults() -> None:
    settings = idempotent_settings({**SERVERS, "queue.buffering.max.kbytes": "1024", "delivery.timeout.ms": "5000"})
    assert settings["queue.buffering.max.kbytes"] == "1024"
    assert settings["delivery.timeout.ms"] == "5000"
    assert "message.timeout.ms" not in settings


@pytest.mark.parametrize("acks", [{"acks": "all"}, {"acks": "-1"}, {"request.required.acks": -1}])
def test_acks_all_is_accepted_in_every_spelling(acks: dict[str, object]) -> None:
    settings = idempotent_settings({**SERVERS, **acks})
    assert settings["acks"] == "all"
    assert "request.required.acks" not in settings


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ({"acks": "1"}, "producer.override.acks=1"),
        ({"request.required.acks": 0}, "producer.override.request.required.acks=0"),
        ({"enable.idempotence": "false"}, "producer.override.enable.idempotence=false"),
        ({"transactional.id": "x"}, "producer.override.transactional.id"),
    ],
)
def test_settings_against_the_delivery_guarantee_are_refused(override: dict[str, object], named: str) -> None:
    with pytest.raises(ProducerSettingsError, match=named.replace(".", r"\.")):
        idempotent_settings({**SERVERS, **override})


def test_exactly_once_sets_an_id_and_no_message_timeout() -> None:
    settings = transactional_settings(SERVERS, "rowtide-shop-0")
    assert settings["transactional.id"] == "rowtide-shop-0"
    assert settings["transaction.timeout.ms"] == 60000
    assert "message.timeout.ms" not in settings


def test_a_transaction_may_last_as_long_as_its_interval() -> None:
    assert transactional_settings(SERVERS, "x", 120_000)["transaction.timeout.ms"] == 180_000
    with pytest.raises(ProducerSettingsError, match=r"must be longer than transaction\.boundary\.interval\.ms=60000"):
        transactional_settings({**SERVERS, "transaction.timeout.ms": "60000"}, "x", 60_000)


def test_the_transactional_id_equals_that_of_a_kafka_connect_task() -> None:
    assert transactional_id("connect-cluster", "inventory") == "connect-cluster-inventory-0"


@pytest.mark.parametrize("settings", [idempotent_settings, lambda client: transactional_settings(client, "x")])
def test_the_largest_message_fits_into_the_buffer_unless_the_user_sets_it(
    settings: Callable[[dict[str, str]], dict[str, Any]],
) -> None:
    def buffer(**more: str) -> int:
        named = {name.replace("_", "."): value for name, value in more.items()}
        return int(settings({**SERVERS, **named})["queue.buffering.max.kbytes"]) * 1024

    assert buffer() == 64 << 20
    assert buffer(message_max_bytes="100000001") >= 100_000_001
    assert buffer(message_max_bytes="100000001", queue_buffering_max_kbytes="7") == 7 * 1024


NOTICED_MS = 30_000
"""A broker that vanished without a word is noticed within this time."""


def test_a_broker_that_vanished_is_noticed_before_the_transaction_ends() -> None:
    config = from_properties({**PROPERTIES, "signal.kafka.topic": "signals", "signal.enabled.channels": "kafka"})
    kafka, history = config.kafka, config.history
    clients = [kafka.producer, kafka.consumer, kafka.admin, history.producer, history.consumer, history.admin]
    transactional = transactional_settings(kafka.producer, "x")
    for settings in (*clients, config.signals.consumer, idempotent_settings(kafka.producer), transactional):
        answer_ms = int(settings["socket.timeout.ms"])
        assert answer_ms < NOTICED_MS
        assert int(settings["socket.connection.setup.timeout.ms"]) + answer_ms <= NOTICED_MS
        assert int(settings.get("request.timeout.ms", 0)) < answer_ms
    assert int(transactional["transaction.timeout.ms"]) >= 2 * NOTICED_MS
    assert TopicAdmin(kafka.admin).timeout < NOTICED_MS / 1000
    native = connection_settings(transactional)
    assert (native.request_timeout, native.connect_timeout) == (20.0, 10.0)


@pytest.mark.parametrize("lasts_ms", [1000, 9000, 30_000, 300_000])
def test_a_short_transaction_waits_for_an_answer_for_less_time(lasts_ms: int) -> None:
    settings = transactional_settings({**SERVERS, **DEFAULTS, "transaction.timeout.ms": str(lasts_ms)}, "x")
    assert int(settings["socket.timeout.ms"]) * 3 <= lasts_ms
    assert int(settings["socket.timeout.ms"]) < NOTICED_MS
    assert int(settings["request.timeout.ms"]) < int(settings["socket.timeout.ms"])
    RecordProducer(settings).close()  # librdkafka accepts none that outlasts the transaction


def test_the_users_time_limits_hold() -> None:
    limits = {"socket.timeout.ms": "7000", "request.timeout.ms": "40000", "socket.connection.setup.timeout.ms": "3000"}
    for settings in (idempotent_settings({**SERVERS, **limits}), transactional_settings({**SERVERS, **limits}, "x")):
        assert {name: settings[name] for name in limits} == limits
