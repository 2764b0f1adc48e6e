"""Topics that cannot be looked up while the checks run."""

from pathlib import Path

import pytest
from confluent_kafka.admin import ClusterMetadata

from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.findings import CheckFailedError, Finding, Severity
from rowtide.connector.check.topic_checks import topic_findings
from rowtide.connector.config import from_properties
from rowtide.topics.admin.topic_admin import Overview, TopicAdmin, TopicDescription
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


@pytest.mark.parametrize(
    ("config", "severity", "message"),
    [
        ({"cleanup.policy": "compact,delete"}, Severity.ERROR, "removes dead letters with the same key: set it to"),
        ({"cleanup.policy": "delete", "retention.ms": "604800000"}, Severity.WARNING, "removes old dead letters"),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, None, ""),
    ],
)
def test_a_topic_that_would_lose_dead_letters(
    config: dict[str, str], severity: Severity | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    found = _topics_of(given, {"letters": config}, monkeypatch)
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    assert all(message in one.message and one.subject == "errors.deadletterqueue.topic.name" for one in found)


def test_what_keeps_records_that_cannot_be_sent_is_checked_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "rowtide.large.records": "claim-check",
        "rowtide.large.records.claim.check.url": str(tmp_path / "x"),
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "letters",
    }
    found = _topics_of(given, {}, monkeypatch)
    assert [(one.subject, one.severity) for one in found] == [
        ("errors.deadletterqueue.topic.replication.factor", Severity.ERROR),
        ("rowtide.large.records.claim.check.url", Severity.ERROR),
    ]
    (tmp_path / "x").mkdir()
    assert len(_topics_of(given, {}, monkeypatch)) == 1
    assert _topics_of({**given, "errors.tolerance": "none"}, {}, monkeypatch) == [], "no record goes there"


def _topics_of(
    given: dict[str, str], topics: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> list[Finding]:
    """The findings with one broker that has some topics, by their settings."""
    one = {"offset.storage.topic": "offsets", "offset.storage.replication.factor": "1"}
    monkeypatch.setattr(TopicAdmin, "overview", lambda _admin: Overview(1, dict.fromkeys(topics, 1)))
    monkeypatch.setattr(
        TopicAdmin,
        "describe",
        lambda _admin, name: TopicDescription(name, 1, 1, topics[name]) if name in topics else None,
    )
    monkeypatch.setattr(TopicAdmin, "rejection", lambda *_: None)
    monkeypatch.setattr("rowtide.connector.check.topic_checks.size_findings", lambda *_: ())
    return topic_findings(from_properties({**PROPERTIES, **one, **given}), ())[0]


@pytest.mark.parametrize(
    ("properties", "subjects"),
    [
        ({"offset.storage.topic": "shop.d.t"}, ["offset.storage.topic"]),
        ({"schema.history.internal.kafka.topic": "shop.d.t"}, ["schema.history.internal.kafka.topic"]),
        (
            {
                "schema.history.internal.kafka.topic": "shop.d.t",
                "schema.history.internal.kafka.bootstrap.servers": "other:9092",
            },
            [],
        ),
    ],
)
def test_a_topic_of_the_connector_is_not_that_of_a_table(
    properties: dict[str, str], subjects: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicAdmin, "overview", lambda _admin: Overview(1, {}))
    monkeypatch.setattr(TopicAdmin, "describe", lambda *_: None)
    monkeypatch.setattr(TopicAdmin, "rejection", lambda *_: None)
    monkeypatch.setattr("rowtide.connector.check.topic_checks.size_findings", lambda *_: ())
    found, _ = topic_findings(from_properties({**PROPERTIES, **properties}), (TableFact("d", "t", ()),))
    clashes = [finding for finding in found if "is that of table d.t: name another one" in finding.message]
    assert [(one.severity, one.subject) for one in clashes] == [(Severity.ERROR, name) for name in subjects]
