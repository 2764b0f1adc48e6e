"""The consumer group of a fleet before a worker joins it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException

from rowtide.connector.fleet import topics
from rowtide.connector.fleet.topics import GroupInUse
from rowtide.topics.errors import KafkaUnreachable
from tests.connector.fleet.test_settings import settings


def look(monkeypatch: pytest.MonkeyPatch, folder: Path, *members: str) -> None:
    """Look up a group with members of these client ids."""
    found = SimpleNamespace(
        state=ConsumerGroupState.STABLE,
        partition_assignor="faust",
        members=[SimpleNamespace(client_id=one) for one in members],
    )
    look_up(monkeypatch, folder, lambda: found)


def look_up(monkeypatch: pytest.MonkeyPatch, folder: Path, result: Callable[[], object]) -> None:
    """Look up a group whose description is the result of a function."""
    answer = SimpleNamespace(result=result)
    admin: Any = SimpleNamespace(describe_consumer_groups=lambda names, **_: {names[0]: answer})
    monkeypatch.setattr(topics, "admin_client", lambda _settings: admin)
    topics.require_group(settings(folder))


def test_workers_of_another_fleet_in_the_group_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GroupInUse, match="=other-config are in this group") as error:
        look(monkeypatch, tmp_path, "rowtide:crew-config", "rowtide:other-config")
    assert "this worker has crew-config" in str(error.value)
    assert "If these workers were killed, such as before a change of config.storage.topic, wait 6 s" in str(error.value)


def test_workers_of_the_fleet_and_older_ones_may_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(monkeypatch, tmp_path, "rowtide:crew-config", "faust-0.15.3")


def test_a_code_without_a_text_has_that_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, "ConsumerGroupDescribe: "))

    with pytest.raises(KafkaUnreachable, match=r"crew cannot be looked up: .*: Broker: Coordinator not available$"):
        look_up(monkeypatch, tmp_path, fail)
