"""What an account may do in a Kafka with access control."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from rowtide_stack import Kafka

from rowtide.connector.check import CheckedTable, Finding
from rowtide.connector.check.broker import broker_findings
from rowtide.connector.check.kafka_access import access_findings
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.worker.group_lock import GroupLock
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.internal import history_settings
from rowtide.topics.settings import TopicSettings
from tests.support.configurations import PROPERTIES

pytestmark = pytest.mark.servers

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TABLES = tuple(CheckedTable("d", name, None, None, f"shop.d.{name}") for name in ("allowed", "read_only", "new"))


class GuardedKafka(Kafka):
    """A broker with passwords and access control, and the accounts ``admin`` and ``app``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.client.plain.sasl.jaas.config": f'{LOGIN} user_admin="admin" user_app="app";',
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
            }
        )

    def client(self, user: str) -> dict[str, str]:
        """The client settings of an account."""
        login = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": user}
        return {"bootstrap.servers": self.bootstrap, "security.protocol": "SASL_PLAINTEXT", **login}

    def _ready(self) -> bool:
        return bool(AdminClient({**self.client("admin"), "log_level": 0}).list_topics(timeout=2).brokers)


@pytest.fixture(scope="module")
def guarded() -> Iterator[GuardedKafka]:
    with GuardedKafka() as kafka:
        admin = TopicAdmin(kafka.client("admin"))
        for topic in ("shop.d.allowed", "shop.d.read_only", "offsets", "history", "letters"):
            admin.ensure(topic, TopicSettings(1, 1))
        yield kafka


def config(kafka: GuardedKafka, password: str = "app") -> Configuration:
    more = {
        "bootstrap.servers": kafka.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="app" password="{password}";',
        "offset.storage.topic": "offsets",
        "exactly.once.source.support": "enabled",
        "exactly.once.support": "required",
        "rowtide.standby": "true",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "letters",
    }
    return from_properties({**PROPERTIES, **more})


def grant(kafka: GuardedKafka, *rights: tuple[ResourceType, str, AclOperation]) -> None:
    """Grant rights to ``app``, and wait until the broker applies them."""
    allow = AclPermissionType.ALLOW
    new = [AclBinding(kind, name, ResourcePatternType.LITERAL, "User:app", "*", op, allow) for kind, name, op in rights]
    client = AdminClient(kafka.client("admin"))  # the requests end with it
    for future in client.create_acls(new).values():
        future.result(20)


def found(kafka: GuardedKafka) -> list[Finding]:
    configuration = config(kafka)
    existing = TopicAdmin(configuration.kafka.admin).overview().topics
    return list(access_findings(configuration, TABLES, existing))


def test_an_account_without_rights_gets_all_that_a_start_needs(guarded: GuardedKafka) -> None:
    """With a transform that keeps topics, as most configurations of Debezium have one."""
    nobody = config(guarded)
    more = {
        "topic.prefix": "other",
        "offset.storage.topic": "other-offsets",
        "schema.history.internal.kafka.topic": "other-history",
        "heartbeat.interval.ms": "1000",
        "provide.transaction.metadata": "true",
        "signal.enabled.channels": "kafka",
        "signal.kafka.topic": "offsets",
        "signal.kafka.groupId": "other",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }
    nobody = from_properties({**nobody.properties, **more})
    tables = (CheckedTable("d", "t", None, None, "other.d.t"),)
    found = [str(one) for one in access_findings(nobody, tables, {"letters": 1, "offsets": 1})]
    texts = "\n".join(found)
    records = "__debezium-heartbeat.other, other, other.d.t, other.transaction"
    assert f"the account may neither see nor create the topics {records}: grant it" in texts
    own = "--operation Create --operation Describe --operation Read --operation Write --operation DescribeConfigs"
    assert f"{own} --topic other-offsets" in texts
    assert f"{own} --topic other-history" in texts
    assert "signal.kafka.groupId: the account may not join the consumer group other: grant it READ" in texts


def texts(kafka: GuardedKafka, *, errors: int) -> list[str]:
    """The findings, as soon as there are so many: brokers apply new rights with a delay."""
    end = time.monotonic() + 60
    while len(findings := found(kafka)) != errors and time.monotonic() < end:
        time.sleep(0.5)
    return [str(finding) for finding in findings]


def test_rights_that_are_missing_and_then_granted(guarded: GuardedKafka) -> None:
    (wrong,) = broker_findings(config(guarded, "wrong"), timeout=5)
    assert wrong.subject == "sasl.jaas.config"
    topic, group = ResourceType.TOPIC, "connect-cluster"
    read, write, describe = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
    grant(guarded, (topic, "shop.d.allowed", write), (topic, "shop.d.read_only", read), (topic, "history", describe))
    grant(guarded, (topic, "offsets", write), (topic, "letters", describe))
    wrong_texts = texts(guarded, errors=11)
    expected = [
        "producer.override: the account may not write to the topic shop.d.read_only: grant it WRITE",
        "offset.storage.topic: the account may not read the topic offsets: grant it READ",
        "offset.storage.topic: the account may not describe the configuration of the topic offsets",
        "errors.deadletterqueue.topic.name: the account may not write to the topic letters: grant it WRITE",
        "errors.deadletterqueue.topic.name: the account may not describe the configuration of the topic letters",
        "schema.history.internal.producer: the account may not write to the topic history: grant it WRITE",
        "schema.history.internal.consumer: the account may not read the topic history: grant it READ",
        "schema.history.internal.producer: the account may not describe the configuration of the topic history",
        "topic.creation.enable: the account may neither see nor create the topics shop, shop.d.new: grant it",
        f"exactly.once.source.support: the account may not use the transactional id {group}-inventory-0: grant",
        f"rowtide.standby: the account may not join the consumer group {group}-inventory-standby: grant it",
    ]
    assert [text[: len(start)] for text, start in zip(wrong_texts, expected, strict=True)] == expected
    command = f"kafka-acls.sh --bootstrap-server {guarded.bootstrap} --add --allow-principal User:app --operation "
    assert f"{command}Write --topic shop.d.read_only" in wrong_texts[0]
    assert f"{command}DescribeConfigs --topic offsets" in wrong_texts[2]
    assert f"{command}Write --operation Describe --transactional-id {group}-inventory-0" in wrong_texts[-2]
    assert f"{command}Read --group {group}-inventory-standby" in wrong_texts[-1]
    configs = AclOperation.DESCRIBE_CONFIGS
    grant(guarded, *((topic, name, configs) for name in ("offsets", "history", "letters")), (topic, "letters", write))
    grant(guarded, (topic, "shop.d.read_only", write), (topic, "offsets", read), (topic, "history", read))
    grant(guarded, (topic, "history", write), *((topic, name, AclOperation.CREATE) for name in ("shop", "shop.d.new")))
    grant(guarded, (ResourceType.GROUP, f"{group}-inventory-standby", read))
    grant(guarded, (ResourceType.TRANSACTIONAL_ID, f"{group}-inventory-0", write))
    (seen,) = texts(guarded, errors=1)
    assert f"the account may see the transactional id {group}-inventory-0." in seen
    grant(guarded, (ResourceType.TRANSACTIONAL_ID, f"{group}-inventory-0-check", write))
    assert texts(guarded, errors=0) == []
    assert "shop.d.new" not in TopicAdmin(guarded.client("admin")).overview().topics  # the check creates nothing


def test_a_copy_that_may_not_stand_by_says_why(guarded: GuardedKafka) -> None:
    """Kafka refuses the member of a group to which another account has the right."""
    standby, topic = config(guarded), "own-history"
    standby = replace(standby, name="another", history=replace(standby.history, topic=topic))
    TopicAdmin(guarded.client("admin")).ensure(topic, history_settings())
    for right in (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS):
        grant(guarded, (ResourceType.TOPIC, topic, right))
    failures: list[Exception] = []
    failed = threading.Event()

    def fail(_lock: GroupLock, error: Exception) -> None:
        failures.append(error)
        failed.set()

    lock = GroupLock(standby, lambda *_: None, fail, lambda *_: None, lambda *_: None)
    lock.start()
    assert failed.wait(60)
    lock.close()
    command = f"kafka-acls.sh --bootstrap-server {guarded.bootstrap} --add --allow-principal User:app --operation Read"
    assert f"{command} --group connect-cluster-another-standby --topic {topic}" in str(failures[0])
