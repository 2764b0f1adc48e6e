"""Ends a run when a topic that it relies on is deleted or created again; it checks in a thread.

Records of a deleted topic are lost, and Kafka's clients do not report it: a broker may create the topic again,
and librdkafka may continue sending to the former leader of a partition. A new run creates missing topics with their
settings, stores the position again, and sends the records after the stored position. A schema history cannot be created
anew: without it, a later start could not decode rows.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from rowtide.connector.delivery.errors import TopicReplaced
from rowtide.connector.delivery.kafka.sink import TransactionalSink
from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.topics.errors import TopicError
from rowtide.topics.stable_offsets import Ends, StableOffsets
from rowtide.topics.watch import LOOKS_UNTIL_DELETED, TopicChange, TopicChangeKind, TopicWatch

log = logging.getLogger(__name__)

_EVERY_S = 10.0
_AGAIN_S = 3.0
"""The time between two checks of a missing topic: brokers that have just started list all topics after a moment."""
_CLEAN_UP_S = 30.0
"""How much later than its timeout a coordinator may end a transaction: it looks every ten seconds."""
_MOST_TOPICS = 500
"""How many data topics are looked up together at most; the next lookup continues with those that follow."""


class HangingTransactions:
    """Reports transactions whose end Kafka has lost.

    Args:
        ends: looks up the ends of the partitions of topics.
        sink: the sink whose transactions they are.
        servers: ``bootstrap.servers``, for the commands that end them.
        clock: seconds.
    """

    def __init__(
        self,
        ends: Callable[[Sequence[str]], Mapping[tuple[str, int], Ends]],
        sink: TransactionalSink,
        servers: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ends = ends
        self._sink = sink
        self._servers = servers
        self._clock = clock
        self._offsets = StableOffsets(sink.transaction_timeout_s + _CLEAN_UP_S)

    def look(self, topics: Sequence[str]) -> None:
        """Check topics once, and log hanging transactions.

        Raises:
            TopicError: Kafka is not reachable.
        """
        for found in self._offsets.news(self._ends(topics), self._clock()):
            own = "" if self._sink.producer_id is None else f" (this connector's is {self._sink.producer_id})"
            log.error(
                "a transaction hangs in partition %d of topic %s: it has been open at offset %d for %.0f s, which is "
                "longer than transaction.timeout.ms=%.0f, so Kafka has lost its end. Consumers with "
                "isolation.level=read_committed get nothing after it. %s%s",
                found.partition,
                found.topic,
                found.offset,
                found.seconds,
                self._sink.transaction_timeout_s * 1000,
                found.remedy(self._servers),
                own,
            )


class TopicGuard:
    """Checks the topics of a connector every ten seconds.

    Args:
        topics: checks the topic of the offsets and data topics.
        offsets: the topic of the offsets, if there is one.
        data: returns the topics that records were sent to.
        history_topics: checks the topic of the schema history, which may be in another Kafka cluster.
        history: the topic of the schema history, if there is one.
        on_failure: called in the guard's thread, once, with the failure that ends the run.
        name: the connector's name, for the name of the thread.
        transactions: looks for transactions that hang; ``None`` without exactly-once delivery.

    Attributes:
        failure: the reason why the run has to end.
    """

    def __init__(
        self,
        topics: TopicWatch,
        offsets: str | None,
        data: Callable[[], Sequence[str]],
        history_topics: TopicWatch,
        history: str | None,
        on_failure: Callable[[BaseException], None],
        name: str = "rowtide",
        transactions: "HangingTransactions | None" = None,
    ) -> None:
        self.failure: BaseException | None = None
        self._topics = topics
        self._offsets = offsets
        self._data = data
        self._history_topics = history_topics
        self._history = history
        self._on_failure = on_failure
        self._transactions = transactions
        self._next = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{name}/topics", daemon=True)

    def start(self) -> None:
        """Check the topics now, and then in a thread.

        Raises:
            TopicError: Kafka is not reachable, or access is denied.
        """
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """End the thread, without waiting for it."""
        self._stop.set()

    def explain(self) -> BaseException | None:
        """Check again after delivery has failed, because the reason may be a deleted topic, and return ``failure``."""
        with contextlib.suppress(TopicError):
            for _ in range(LOOKS_UNTIL_DELETED):
                if self._topics.missing or self._history_topics.missing:
                    time.sleep(_AGAIN_S)
                self.look()
        return self.failure

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
                if self._transactions is not None:
                    self._transactions.look([*_named(self._offsets), *self._some_data()])
            except TopicError as failure:  # delivery reports it if it needs Kafka
                log.debug("the topics cannot be looked up: %s", failure)
            except Exception as failure:  # noqa: BLE001 - whatever it is: otherwise the thread would end unnoticed
                self.failure = failure
            if self.failure is not None and not self._stop.is_set():
                self._on_failure(self.failure)
                return

    def look(self) -> None:
        """Check the topics once, and set ``failure`` if the run has to end.

        Raises:
            TopicError: Kafka is not reachable.
        """
        for change in self._history_topics.changes(_named(self._history)):
            self.failure = UnusableHistory(
                f"the schema history topic {change.topic!r} {_what(change)} while the connector ran, so the structures "
                "of the tables would be missing at the next start. Start once with snapshot.mode=recovery, before a "
                "captured table is altered"
            )
            return
        for change in self._topics.changes([*_named(self._offsets), *self._some_data()]):
            if change.kind is TopicChangeKind.REPARTITIONED:
                log.warning("topic %s %s: keys may move to other partitions", change.topic, _what(change))
            else:
                self.failure = TopicReplaced(change.topic, _what(change))

    def _some_data(self) -> list[str]:
        topics = self._data()
        self._next = self._next if self._next < len(topics) else 0
        some = topics[self._next : self._next + _MOST_TOPICS]
        self._next += _MOST_TOPICS
        return [topic for topic in some if topic != self._offsets]


def _named(topic: str | None) -> list[str]:
    return [] if topic is None else [topic]


def _what(change: TopicChange) -> str:
    if change.kind is TopicChangeKind.REPARTITIONED:
        return f"now has {change.now} partitions instead of {change.before}"
    return str(change.kind.value)
