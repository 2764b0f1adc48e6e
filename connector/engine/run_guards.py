"""Ends a run when its topics are deleted, or another program runs the same connector."""

from collections.abc import Callable, Sequence

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.errors import DeliveryError, TakenOver
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.second_writer import SecondWriterWatch, still_writing
from rowtide.connector.delivery.kafka.writer import Writer
from rowtide.connector.engine.run_stop import RunStop
from rowtide.connector.engine.topic_guard import TopicGuard
from rowtide.connector.engine.wiring import Components, topic_guard


class RunGuards:
    """Watches the topics and the offsets of a run.

    Args:
        stop: ends the run.
        on_loss: called from other threads with the failure that ends the run.

    Attributes:
        topics: looks at the topics of the connector; ``None`` before it has begun.
        second_writer: looks for another program that stores the connector's offsets; ``None`` without Kafka.
        taken_over: another program was started later, and has taken over.
    """

    def __init__(self, stop: RunStop, on_loss: Callable[[BaseException], None]) -> None:
        self.topics: TopicGuard | None = None
        self.second_writer: SecondWriterWatch | None = None
        self.taken_over: TakenOver | None = None
        self._stop = stop
        self._on_loss = on_loss

    def exclude_second_writer(self, config: Configuration, offsets: KafkaOffsetStore, *, check: bool) -> None:
        """Refuse to start while Debezium runs, and watch for a second writer from now on.

        Args:
            config: of the connector.
            offsets: where its offsets are stored.
            check: whether to refuse.

        Raises:
            TakenOver: another program stores offsets.
        """

        def newer(writer: Writer) -> None:
            if self._stop.requested:
                return
            self.taken_over = TakenOver(
                f"{writer} was started later and has taken over connector {config.name}, so this process stops. Run "
                "only one of them, or give each its own name and topic.prefix"
            )
            self._on_loss(self.taken_over)

        self.second_writer = SecondWriterWatch(offsets, newer)
        self.second_writer.start()
        interval = config.delivery.offset_flush_interval_ms / 1000
        if check and still_writing(offsets, interval, self._stop.wait) is not None:
            raise TakenOver(
                f"another program, such as Kafka Connect with Debezium, still stores offsets for {config.name} "
                f"(topic.prefix={config.topics.prefix}) in topic {offsets.topic}. Stop the connector there first"
            )

    def watch_topics(self, config: Configuration, components: Components, sent: Callable[[], Sequence[str]]) -> None:
        """Watch the topics from now on.

        Args:
            config: of the connector.
            components: of the run.
            sent: returns the topics that records were sent to.

        Raises:
            TopicError: Kafka is not reachable, or access is denied.
        """
        self.topics = topic_guard(config, components.admins, sent, self._on_loss, components.sink)
        self.topics.start()

    def stop(self) -> None:
        """End, without waiting for Kafka."""
        if self.second_writer is not None:
            self.second_writer.close()
        if self.topics is not None:
            self.topics.stop()

    def cause_of(self, failure: BaseException | None) -> BaseException | None:
        """Return why the run has failed: its topics may have been deleted."""
        if self.topics is None or self.taken_over is not None or self._stop.requested:
            return failure
        return (self.topics.explain() if isinstance(failure, DeliveryError) else self.topics.failure) or failure
