"""Selects which of several copies may run a connector: the consumer that has the only partition of a topic.

All copies are members of one consumer group, and subscribe to the topic of the schema history. Kafka assigns its
partition to one of them, and keeps it there (cooperative-sticky) until that member leaves the group or its session
ends. No record is read.
"""

import hashlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from rowtide.connector.config import Configuration
from rowtide.connector.config.kafka.producer_settings import standby_group
from rowtide.connector.engine.wiring import TopicAdmins, ensure_history
from rowtide.schema_history.store.admin_clients import admin_client
from rowtide.topics.admin.errors import acl_command
from rowtide.topics.errors import KafkaUnreachable, TopicError

log = logging.getLogger(__name__)

SESSION_S = 6.0
"""After this time without a heartbeat, Kafka gives the lock to another copy: the least that brokers accept."""

_CONSUMER = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": int(SESSION_S * 1000),
    "heartbeat.interval.ms": 500,  # so soon another copy learns that the lock is free
    "max.poll.interval.ms": 10_000,
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "latest",
    "queued.max.messages.kbytes": 1024,
    "log_level": 2,  # errors only
}
_TICK_S = 0.5
_RETRY_S = 1.0
_CLOSE_S = 3.0
_LOOK_S = 2.0
_ANSWER_S = 2.0
_REFUSED = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}


class GroupLock:
    """Tries to get the lock of a connector, and keeps it, in a thread.

    All callbacks are called in that thread.

    Args:
        config: of the connector.
        on_change: called when this process gets or loses the lock, with whether it has it. It must stop the connector
            if the lock is lost.
        on_failure: called if the lock cannot be obtained, with the reason and what to do.
        on_problem: called if Kafka does not answer, with the reason, and with ``None`` when it answers again.
        on_wait: called when another process has the lock.

    Attributes:
        owned: whether this process has the lock, as far as it knows.
    """

    def __init__(
        self,
        config: Configuration,
        on_change: Callable[["GroupLock", bool], None],
        on_failure: Callable[["GroupLock", TopicError], None],
        on_problem: Callable[["GroupLock", str | None], None],
        on_wait: Callable[["GroupLock"], None],
    ) -> None:
        self._config = config
        self._topic = config.history.topic or ""
        self._group = standby_group(config.delivery.group_id, config.name)
        self._on_change = on_change
        self._on_failure = on_failure
        self._on_problem = on_problem
        self._on_wait = on_wait
        self._told = ""
        self._problem: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{config.name}/standby", daemon=True)
        self.owned = False

    def start(self) -> None:
        """Start trying."""
        self._thread.start()

    def close(self) -> None:
        """Release the lock for another copy. Wait for Kafka for a few seconds at most."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        try:
            if self._prepared():
                self._hold()
        except TopicError as error:
            self._on_failure(self, error)
        except KafkaException as error:
            reason = error.args[0].str()
            self._on_failure(
                self, TopicError(f"rowtide.standby: not a member of consumer group {self._group}: {reason}")
            )
        finally:
            self._change(owned=False)

    def _prepared(self) -> bool:
        """Create the topic if it is missing, and return whether the lock is available."""
        while not self._stop.is_set():
            try:
                ensure_history(self._config, TopicAdmins(self._config))
            except KafkaUnreachable as error:
                self._say(str(error))
                self._stop.wait(_RETRY_S)
            else:
                self._say(None)
                return True
        return False

    def _hold(self) -> None:
        consumer = Consumer(
            {
                **self._config.history.consumer,
                **_CONSUMER,
                "group.id": self._group,
                "client.id": client_id(self._config),
                "error_cb": self._failed,
            }
        )
        try:
            consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
            while not self._stop.is_set():
                message = consumer.poll(_TICK_S)
                error = None if message is None else message.error()
                if error is not None:
                    self._failed(error)
                if self._problem is not None and self._answers(consumer):
                    self._say(None)
        finally:
            consumer.close()

    def _answers(self, consumer: Consumer) -> bool:
        try:
            consumer.list_topics(self._topic, timeout=_ANSWER_S)
        except KafkaException:
            return False
        return True

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._say(None)
        consumer.incremental_assign(partitions)
        if partitions:
            consumer.pause(partitions)  # nothing is read
            self._change(owned=True)
        elif not self.owned:
            self._on_wait(self)
            if (owner := self._owner()) != self._told:  # each copy that comes or goes is a reason to ask
                self._told = owner
                log.info("connector %s stands by: %s", self._config.name, owner)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._change(owned=False)

    def _change(self, *, owned: bool) -> None:
        if self.owned != owned:
            self.owned = owned
            self._on_change(self, owned)

    def _failed(self, error: KafkaError) -> None:
        if error.code() not in _REFUSED:
            self._say(error.str())
            return
        kafka = self._config.history.consumer
        user = kafka.get("sasl.username")
        servers, name = str(kafka.get("bootstrap.servers", "")), None if user is None else str(user)
        self._stop.set()
        self._on_failure(
            self,
            TopicError(
                f"rowtide.standby: the account may not join the consumer group {self._group}, or not read the topic "
                f"{self._topic}: {error.str()}. Grant the rights: "
                f"{acl_command(servers, 'Read', 'group', [self._group], name)} --topic {self._topic}"
            ),
        )

    def _say(self, problem: str | None) -> None:
        if problem != self._problem:
            self._problem = problem
            self._on_problem(self, problem)

    def _owner(self) -> str:
        """Return which copy runs the connector, and whether its configuration differs."""
        try:
            admin = admin_client({"log_level": 2, **self._config.history.admin})
            found = admin.describe_consumer_groups([self._group], request_timeout=_LOOK_S)[self._group].result()
        except KafkaException:
            return "another copy runs it"
        owners = [one for one in found.members if one.assignment.topic_partitions]
        if not owners:
            return "another copy is about to run it"
        process, _, digest = owners[0].client_id.removeprefix("rowtide-").rpartition("-")
        differs = "" if digest == digest_of(self._config) else ", with another configuration than this copy has"
        return f"{process} runs it{differs}"


def client_id(config: Configuration) -> str:
    """Return the name of this process as a member of the group, by which other members recognise its configuration."""
    return f"rowtide-{socket.gethostname()}-{os.getpid()}-{digest_of(config)}"


def digest_of(config: Configuration) -> str:
    """Return a short digest of a configuration, without its secrets."""
    text = json.dumps(sorted(config.masked_properties().items()))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
