"""Topics that cannot be looked up while the checks run."""

import pytest
from confluent_kafka.admin import ClusterMetadata

from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.findings import CheckFailedError, Severity
from rowtide.connector.check.topic_checks import topic_findings
from rowtide.connector.config import from_properties
from rowtide.topics.admin.topic_admin import Overview, TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError
from tests.support.configurations import PROPERTIES


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


@pytest.mark.parametrize(
    ("topics", "severities"),
    [
        ((), [Severity.ERROR, Severity.ERROR]),
        (("shop.d.t",), [Severity.WARNING, Severity.ERROR]),
        (("offsets",), [Severity.ERROR, Severity.WARNING]),
        (("shop.d.t", "offsets"), [Severity.WARNING, Severity.WARNING]),
    ],
)
def test_a_broker_that_is_away_does_not_keep_a_connector_from_its_topics(
    topics: tuple[str, ...], severities: list[Severity], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three brokers are enough for topics that exist."""
    monkeypatch.setattr(TopicAdmin, "overview", lambda _admin: Overview(2, dict.fromkeys(topics, 1)))
    monkeypatch.setattr(TopicAdmin, "describe", lambda *_: None)
    monkeypatch.setattr(TopicAdmin, "rejection", lambda *_: None)
    monkeypatch.setattr("rowtide.connector.check.topic_checks.size_findings", lambda *_: ())
    factors = {
        "topic.creation.default.replication.factor": "3",
        "topic.creation.default.partitions": "1",
        "offset.storage.topic": "offsets",
        "offset.storage.replication.factor": "3",
    }
    found, _ = topic_findings(from_properties({**PROPERTIES, **factors}), (TableFact("d", "t", ()),))
    assert [finding.subject for finding in found] == [name for name in factors if name.endswith("factor")]
    assert [finding.severity for finding in found] == severities


def test_a_helper_table_whose_records_were_written_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of its own may have such a name, and was captured before these names were omitted."""
    monkeypatch.setattr(TopicAdmin, "overview", lambda _admin: Overview(1, {"shop.d._t_new": 1, "shop.d.t": 1}))
    monkeypatch.setattr(TopicAdmin, "describe", lambda *_: None)
    monkeypatch.setattr(TopicAdmin, "rejection", lambda *_: None)
    monkeypatch.setattr("rowtide.connector.check.topic_checks.size_findings", lambda *_: ())
    tables = tuple(TableFact("d", name) for name in ("t", "_t_new", "_t_gho"))
    found, _ = topic_findings(from_properties({**PROPERTIES, "topic.creation.default.partitions": "1"}), tables)
    (finding,) = (finding for finding in found if finding.subject == "rowtide.online.schema.change.tables")
    assert finding.severity is Severity.WARNING
    assert "d._t_new is skipped as a helper table of d.t, but topic shop.d._t_new exists" in finding.message


def test_a_cluster_without_a_broker_that_is_ready_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has just started may answer before it is one of the cluster's brokers."""
    admin = TopicAdmin({"bootstrap.servers": "127.0.0.1:1"}, 0.1)
    monkeypatch.setattr(admin, "_list", lambda _topic: ClusterMetadata())
    with pytest.raises(KafkaUnreachable, match="none is ready"):
        admin.overview()
