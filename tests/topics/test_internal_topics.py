"""Settings of the history topic and the offsets topic."""

import pytest

from rowtide.topics.internal import history_settings, offsets_settings, wrong_history_config


def test_a_history_topic_has_one_partition_and_no_retention() -> None:
    settings = history_settings(3)
    assert (settings.partitions, settings.replication_factor) == (1, 3)
    assert settings.config == {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert wrong_history_config(settings.config) == {}


def test_offsets_are_compacted() -> None:
    settings = offsets_settings()
    assert (settings.partitions, settings.replication_factor) == (25, -1)
    assert settings.config == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete"}, {"retention.ms": "-1"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        (
            {"cleanup.policy": "compact,delete", "retention.bytes": "1"},
            {"cleanup.policy": "delete", "retention.bytes": "-1"},
        ),
        ({}, {}),
    ],
)
def test_settings_that_can_lose_history_are_found(config: dict[str, str], wrong: dict[str, str]) -> None:
    assert wrong_history_config(config) == wrong


@pytest.mark.parametrize("retention", ["-1", str(2**63 - 1), str(200 * 366 * 86_400_000)])
def test_retention_for_centuries_is_not_a_finding(retention: str) -> None:
    assert wrong_history_config({**history_settings().config, "retention.ms": retention}) == {}


@pytest.mark.parametrize("retention", ["604800000", "0", "-2", "much"])
def test_shorter_retention_is_one(retention: str) -> None:
    assert wrong_history_config({**history_settings().config, "retention.ms": retention}) == {"retention.ms": "-1"}
