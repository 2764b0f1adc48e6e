"""The settings of signals."""

from dataclasses import dataclass

from rowtide.connector.config.kafka.clients import ClientSettings


@dataclass(frozen=True, slots=True)
class SignalsConfig:
    """Signals to the running connector.

    Attributes:
        source: whether rows of ``signal.data.collection`` are signals.
        topic: the topic of the channel ``kafka``; ``None`` if the channel is off.
        consumer: the settings of its consumer, with librdkafka's names.
        poll_timeout_ms: how long a poll of the topic waits for records.
        file: the file of the channel ``file``; ``None`` if the channel is off.
        poll_interval_ms: the interval between two polls of a channel.
    """

    source: bool
    topic: str | None
    consumer: ClientSettings
    poll_timeout_ms: int
    file: str | None
    poll_interval_ms: int
