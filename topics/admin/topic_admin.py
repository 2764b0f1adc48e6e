"""Creates, describes and repairs topics through Kafka's admin client.

Every operation has a timeout. Errors name the topic and say what to do.
"""

import copy
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from rowtide.schema_history.store.admin_clients import admin_client
from rowtide.topics.admin.errors import GONE, REFUSED, failed, is_away
from rowtide.topics.errors import KafkaUnreachable, TopicError
from rowtide.topics.internal import wrong_history_config
from rowtide.topics.settings import TopicCreation, TopicSettings
from rowtide.topics.stable_offsets import Ends
from rowtide.topics.watch import TopicIdentity

log = logging.getLogger(__name__)

_PER_REQUEST = 100
"""The most topics in a request. Kafka creates at most 10 000 partitions with one, and may choose their number."""
_FIRST_LOOK_S = 0.01
_LONGEST_LOOK_S = 0.2
"""The first and the longest pause between two checks for created topics, which brokers list after a moment."""
_ERRORS_ONLY = 2
"""Level of librdkafka's log on standard error: its relevant errors are raised as exceptions."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """An existing topic.

    Attributes:
        name: its name.
        partitions: number of partitions.
        replication_factor: number of replicas of its first partition.
        config: all effective configuration values, defaults included.
    """

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Overview:
    """The brokers and topics of a Kafka cluster.

    Attributes:
        brokers: the number of brokers.
        topics: the numbers of partitions of the topics, by name.
    """

    brokers: int
    topics: Mapping[str, int]


class TopicAdmin:
    """The operations on topics that rowtide needs.

    All of them raise :class:`TopicError` if Kafka cannot be reached, or access is denied.

    Args:
        client: librdkafka settings of the connection (``bootstrap.servers``, security and so on).
        timeout: seconds that an operation may take, including retries.
        auto_create: let the broker create a topic that is looked up, if its ``auto.create.topics.enable`` is set.

    Attributes:
        servers: ``bootstrap.servers``.
    """

    def __init__(self, client: Mapping[str, Any], timeout: float = 20.0, *, auto_create: bool = False) -> None:
        self.servers = str(client.get("bootstrap.servers", ""))
        self._user = None if (user := client.get("sasl.username")) is None else str(user)
        self._admin = admin_client({"log_level": _ERRORS_ONLY, **client, "allow.auto.create.topics": auto_create})
        self.timeout = timeout

    def limited(self, timeout: float) -> Self:
        """Return an admin with the same client, whose operations may take this many seconds."""
        limited = copy.copy(self)
        limited.timeout = timeout
        return limited

    def overview(self) -> Overview:
        """Return the brokers and all topics that the account can see."""
        found = self._list(None)
        if not found.brokers:
            raise KafkaUnreachable(f"cannot look up the brokers: none is ready at {self.servers}")
        return Overview(len(found.brokers), {name: len(topic.partitions) for name, topic in found.topics.items()})

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        return str(self._list(None).cluster_id or "")

    def look_up(self, topics: Sequence[str]) -> None:
        """Request the metadata of topics, whether they exist or not; see ``auto_create``.

        Many are looked up by one request. It creates none, so missing ones are requested again.

        Raises:
            KafkaUnreachable: no broker answers.
        """
        for start in range(0, len(topics), _PER_REQUEST):
            some = TopicCollection(list(topics[start : start + _PER_REQUEST]))
            for topic, future in self._admin.describe_topics(some, request_timeout=self.timeout).items():
                try:
                    self._answer("look up", topic, future)
                except KafkaException as failure:
                    if is_away(failure.args[0]):
                        raise self._failed("look up", topic, failure.args[0]) from failure
                    self._list(topic)

    def describe(self, topic: str) -> TopicDescription | None:
        """Describe a topic; ``None`` if it does not exist."""
        metadata = self._list(topic).topics.get(topic)
        if metadata is None or not metadata.partitions:
            return None
        entries = self._result(
            "describe", topic, self._admin.describe_configs([_resource(topic)], request_timeout=self.timeout)
        )
        replicas = len(metadata.partitions[min(metadata.partitions)].replicas)
        config = {name: entry.value for name, entry in entries.items() if entry.value is not None}
        return TopicDescription(topic, len(metadata.partitions), replicas, config)

    def identify(self, topics: Sequence[str]) -> dict[str, TopicIdentity]:
        """Return the identities of topics, without those that do not exist."""
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=self.timeout)
        found = {}
        for topic, future in futures.items():
            try:
                description = self._answer("look up", topic, future)
            except KafkaException as failure:
                if failure.args[0].code() not in GONE:
                    raise self._failed("look up", topic, failure.args[0]) from failure
            else:
                found[topic] = TopicIdentity(str(description.topic_id), len(description.partitions))
        return found

    def ends(self, topics: Sequence[str]) -> dict[tuple[str, int], Ends]:
        """Return the ends of all partitions of topics, by topic and partition, without topics that do not exist."""
        places = [
            TopicPartition(topic, number)
            for topic, found in self.identify(topics).items()
            for number in range(found.partitions)
        ]
        end = self._offsets(places, IsolationLevel.READ_UNCOMMITTED)  # first: the other one may only be larger then
        stable = self._offsets(places, IsolationLevel.READ_COMMITTED)
        return {place: Ends(stable[place], end[place]) for place in end}

    def _offsets(self, places: Sequence[TopicPartition], isolation: IsolationLevel) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        latest = {place: OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
        futures = self._admin.list_offsets(latest, isolation_level=isolation, request_timeout=self.timeout)
        found = {}
        for place, future in futures.items():
            try:
                found[place.topic, place.partition] = self._answer("look up", place.topic, future).offset
            except KafkaException as failure:
                raise self._failed("look up", place.topic, failure.args[0]) from failure
        return found

    def topic_config(self, name: str, topics: Sequence[str]) -> dict[str, str]:
        """Return the value of one setting of many topics, without those that do not exist or may not be described.

        Raises:
            TopicError: Kafka is not reachable.
        """
        if not topics:
            return {}
        resources = [_resource(topic) for topic in topics]
        futures = self._admin.describe_configs(resources, request_timeout=self.timeout)
        found = {resource.name: self._values(future) for resource, future in futures.items()}
        return {topic: values[name] for topic, values in found.items() if name in values}

    def broker_config(self) -> dict[str, str]:
        """Return the settings of one of the brokers; none if they may not be described.

        Raises:
            TopicError: Kafka is not reachable.
        """
        try:
            brokers = self._admin.list_topics(timeout=self.timeout).brokers
        except KafkaException as failure:
            raise KafkaUnreachable(f"cannot look up the brokers: {failure.args[0].str()}") from failure
        if not brokers:
            return {}
        resource = ConfigResource(ResourceType.BROKER, str(min(brokers)))
        (future,) = self._admin.describe_configs([resource], request_timeout=self.timeout).values()
        return self._values(future)

    def _values(self, future: Future[Any]) -> dict[str, str]:
        try:
            entries = future.result(self.timeout + 5)
        except (KafkaException, TimeoutError):
            return {}
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def ensure(self, topic: str, settings: TopicSettings) -> bool:
        """Create a topic if it does not exist, wait until it can be used, and return whether it was created.

        Raises:
            TopicError: it cannot be created: access denied, invalid name or settings, too few brokers, or no answer.
        """
        return topic in self.ensure_all({topic: settings})

    def ensure_all(self, wanted: Mapping[str, TopicSettings]) -> set[str]:
        """Create the topics that do not exist, wait until all can be used, and return the created ones.

        A request has many topics, and each request may take the time-out. If topics cannot be created, the error names
        one of them, and the others of its request may exist.

        Raises:
            TopicError: as :meth:`ensure`.
        """
        topics = list(wanted)
        created = set()
        for start in range(0, len(topics), _PER_REQUEST):
            some = topics[start : start + _PER_REQUEST]
            missing = {topic: wanted[topic] for topic in self._missing(some)}
            if missing:
                created |= self._create(missing)
                self._wait_for(missing)
        return created

    def _create(self, wanted: Mapping[str, TopicSettings]) -> set[str]:
        """Create topics with one request, and return those that did not exist."""
        created, refused = set[str](), dict[str, KafkaError]()
        new = [_new_topic(topic, settings) for topic, settings in wanted.items()]
        for topic, future in self._admin.create_topics(new, request_timeout=self.timeout).items():
            try:
                self._answer("create", topic, future)
            except KafkaException as failure:
                if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    refused[topic] = failure.args[0]
            else:
                created.add(topic)
                _log_created(topic, wanted[topic])
        for topic, error in refused.items():
            if len(wanted) == 1 or is_away(error):
                raise self._failed("create", topic, error, wanted[topic])
            created |= self._create({topic: wanted[topic]})  # what was refused may be the size of the request
        return created

    def _wait_for(self, topics: Iterable[str]) -> None:
        deadline, pause = time.monotonic() + self.timeout, _FIRST_LOOK_S
        left = list(topics)
        while left := self._missing(left):
            if time.monotonic() > deadline:
                raise TopicError(f"topic {left[0]!r} was created, but does not appear after {self.timeout:.0f} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_S)

    def _missing(self, topics: Sequence[str]) -> list[str]:
        found = self.identify(topics)
        return [topic for topic in topics if topic not in found]

    def rejection(self, topic: str, settings: TopicSettings) -> str | None:
        """Let Kafka validate the settings of a topic that does not exist, without creating it.

        Returns:
            Kafka's message if it rejects the settings. ``None`` if it accepts them, or rejects the request for another
            reason (access denied, too few brokers).

        Raises:
            KafkaUnreachable: Kafka does not answer.
        """
        futures = self._admin.create_topics(
            [_new_topic(topic, settings)], request_timeout=self.timeout, validate_only=True
        )
        try:
            self._answer("check the settings of", topic, futures[topic])
        except KafkaException as failure:
            return failure.args[0].str() if failure.args[0].code() in REFUSED else None
        return None

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        """Set configuration values of a topic; all others are kept.

        Raises:
            TopicError: access denied, an invalid value, or no answer.
        """
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._result("alter", topic, self._admin.incremental_alter_configs([resource], request_timeout=self.timeout))

    def verify_history(self, topic: str) -> dict[str, str]:
        """Check that an existing schema history topic keeps every record, and repair it if necessary.

        Returns:
            The settings that were repaired, with their new values.

        Raises:
            TopicError: it has several partitions, or wrong settings that must not or cannot be repaired.
        """
        found = self.describe(topic)
        if found is None:
            raise TopicError(f"schema history topic {topic!r} does not exist")
        if found.partitions != 1:
            raise TopicError(
                f"schema history topic {topic!r} has {found.partitions} partitions and must have exactly 1, because "
                "the order of its records matters. Copy its records into a new topic with one partition and set "
                "schema.history.internal.kafka.topic to it, or start with snapshot.mode=recovery and a new topic"
            )
        wrong = wrong_history_config(found.config)
        if not wrong:
            return {}
        now = ", ".join(f"{name}={found.config[name]}" for name in wrong)
        wanted = ",".join(f"{name}={value}" for name, value in wrong.items())
        by_hand = f"kafka-configs.sh --bootstrap-server {self.servers} --alter --topic {topic} --add-config {wanted}"
        try:
            self.alter(topic, wrong)
        except TopicError as failure:
            raise TopicError(
                f"schema history topic {topic!r} has {now}, so records can be lost, and cannot be repaired: {failure}. "
                f"Repair it as a user with the necessary rights: {by_hand}"
            ) from failure
        log.warning("schema history topic %s had %s, so records could have been lost: set %s", topic, now, wanted)
        return wrong

    def verify_offsets(self, topic: str) -> None:
        """Check that an existing offsets topic keeps the last offset of every connector, as Kafka Connect does.

        Raises:
            TopicError: its ``cleanup.policy`` is not just ``compact``, so stored offsets would be deleted in time.
        """
        found = self.describe(topic)
        if found is None:
            raise TopicError(f"offsets topic {topic!r} does not exist")
        policy = found.config.get("cleanup.policy", "compact")
        if policy != "compact":
            raise TopicError(
                f"offsets topic {topic!r} has cleanup.policy={policy}, so source offsets would eventually be deleted; "
                f"it must be compact: kafka-configs.sh --bootstrap-server {self.servers} --alter --topic {topic} "
                "--add-config cleanup.policy=compact, or name another topic in offset.storage.topic"
            )

    def _list(self, topic: str | None) -> ClusterMetadata:
        try:
            return self._admin.list_topics(topic, timeout=self.timeout)
        except KafkaException as failure:
            raise self._failed("look up", topic or "*", failure.args[0]) from failure

    def _result(self, what: str, topic: str, futures: Mapping[Any, Future[Any]]) -> Any:
        (future,) = futures.values()
        try:
            return self._answer(what, topic, future)
        except KafkaException as failure:
            raise self._failed(what, topic, failure.args[0]) from failure

    def _answer(self, what: str, topic: str, future: Future[Any]) -> Any:
        """Return the result of a request; the client's own time-out, whose message says more, is shorter."""
        try:
            return future.result(self.timeout + 5)
        except TimeoutError as failure:
            raise KafkaUnreachable(f"cannot {what} topic {topic!r}: no answer from {self.servers}") from failure

    def _failed(self, what: str, topic: str, error: KafkaError, settings: TopicSettings | None = None) -> TopicError:
        return failed(what, topic, error, self.servers, settings, self._user)


def _new_topic(topic: str, settings: TopicSettings) -> NewTopic:
    return NewTopic(topic, settings.partitions, settings.replication_factor, config=dict(settings.config))


def _log_created(topic: str, settings: TopicSettings) -> None:
    log.info(
        "created topic %s (partitions %s, replication factor %s, %s)",
        topic,
        settings.partitions if settings.partitions > 0 else "by default",
        settings.replication_factor if settings.replication_factor > 0 else "by default",
        dict(settings.config) or "default settings",
    )


def _resource(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


class MissingTopics:
    """Creates the topics of records before the first record is sent to each.

    Args:
        admin: creates the topics.
        rules: their settings; if not ``enabled``, creating missing topics is left to the broker, for which ``admin``
            needs ``auto_create``.
    """

    def __init__(self, admin: TopicAdmin, rules: TopicCreation) -> None:
        self._admin = admin
        self._rules = rules

    def __call__(self, topics: Collection[str]) -> None:
        """Create the topics that do not exist.

        Raises:
            TopicError: as ``TopicAdmin.ensure_all``, or as ``TopicAdmin.look_up``.
        """
        if self._rules.enabled:
            self._admin.ensure_all({topic: self._rules.settings_for(topic) for topic in topics})
        else:
            self._admin.look_up(list(topics))
