"""Limits of the sizes of messages that are compared without a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from rowtide.connector.check.message_sizes import size_findings
from rowtide.connector.config import Configuration
from rowtide.topics.admin.topic_admin import TopicAdmin


class Brokers:
    """Brokers with default settings, and no topics."""

    def broker_config(self) -> Mapping[str, str]:
        return {"message.max.bytes": "1048588", "socket.request.max.bytes": "104857600"}

    def topic_config(self, _name: str, _topics: Sequence[str]) -> Mapping[str, str]:
        return {}


@pytest.mark.parametrize(("limit", "findings"), [("1000", 1), ("104857600", 0), ("1MB", 0), ("", 0), ("-1", 0)])
def test_the_limit_of_new_topics(limit: str, findings: int, configured: Callable[..., Configuration]) -> None:
    """A limit that is not a number is reported by Kafka, and does not end the check."""
    config = configured({"topic.creation.default.max.message.bytes": limit})
    found = list(size_findings(config, ["shop.d.t"], cast("TopicAdmin", Brokers())))
    assert len(found) == findings
    claim_checks = {"rowtide.large.records": "claim-check", "rowtide.large.records.claim.check.url": "/data"}
    config = configured({"topic.creation.default.max.message.bytes": limit, **claim_checks})
    assert list(size_findings(config, ["shop.d.t"], cast("TopicAdmin", Brokers()))) == []
