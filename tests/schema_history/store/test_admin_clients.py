"""Clients of Kafka's admin interface that several share."""

from __future__ import annotations

from weakref import ref

import pytest
from confluent_kafka import KafkaException

from rowtide.schema_history.store.admin_clients import admin_client

SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def test_those_with_the_same_settings_share_a_client() -> None:
    first = admin_client(SETTINGS)
    assert admin_client(dict(reversed(SETTINGS.items()))) is first
    assert admin_client({**SETTINGS, "client.id": "other"}) is not first
    assert admin_client({**SETTINGS, "log_level": 1}) is not first


def test_a_client_ends_with_its_last_user() -> None:
    first = admin_client(SETTINGS)
    second, gone = admin_client(SETTINGS), ref(first)
    del first
    assert gone() is second
    del second
    assert gone() is None


def test_settings_that_are_refused_are_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(KafkaException):
            admin_client({**SETTINGS, "security.protocol": "none of them"})
