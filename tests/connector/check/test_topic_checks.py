"""Topics that cannot be looked up while the checks run."""

import pytest
from configurations import PROPERTIES

from rowtide.connector.check.findings import CheckFailedError
from rowtide.connector.check.topic_checks import topic_findings
from rowtide.connector.config import from_properties
from rowtide.topics.admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError


@pytest.mark.parametrize(("error", "passes"), [(KafkaUnreachable, True), (TopicError, False)])
def test_only_a_broker_that_is_away_is_looked_up_again(
    error: type[TopicError], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error("cannot look up the topic")

    monkeypatch.setattr(TopicAdmin, "overview", fail)
    monkeypatch.setattr(TopicAdmin, "describe", fail)
    found, partitions = topic_findings(from_properties(PROPERTIES))
    assert partitions is None
    assert [finding.subject for finding in found] == ["bootstrap.servers", "schema.history.internal.kafka.topic"]
    assert CheckFailedError(found).retriable is passes
