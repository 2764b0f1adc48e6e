"""The signals of one connector: the data that outlives its runs, and the channels of a run."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.actions import SignalAction, SignalHook, Signals
from rowtide.connector.signals.channel import ChannelThread, PolledChannel
from rowtide.connector.signals.file_channel import FileChannel
from rowtide.connector.signals.inbox import ReceivedSignal, SignalInbox, position_of
from rowtide.connector.signals.kafka_channel import KafkaChannel
from rowtide.connector.signals.signal import from_fields
from rowtide.connector.signals.snapshots import SnapshotsOnDemand

KEPT = 1000
"""The maximum number of notifications that are kept."""


def new_signal_id() -> str:
    """Return a new id for a signal, or for a request without one."""
    return str(uuid.uuid4())


class RecentNotifications:
    """The last thousand notifications of a connector, oldest first. Any thread may add and read."""

    def __init__(self) -> None:
        self._kept: deque[Mapping[str, Any]] = deque(maxlen=KEPT)

    def add(self, notification: Mapping[str, Any]) -> None:
        """Add a notification, and drop the oldest one if necessary."""
        self._kept.append(notification)

    def all(self, signal_id: str | None = None) -> list[Mapping[str, Any]]:
        """Return the notifications, those of one signal if its id is given."""
        kept = list(self._kept.copy())
        return [one for one in kept if signal_id is None or one["id"] == signal_id]


@dataclass(slots=True)
class Signalling:
    """The data about signals that outlives the runs of a connector.

    Attributes:
        inbox: the signals that wait.
        hooks: users' own actions, by type of signal.
        notifications: the last notifications.
    """

    inbox: SignalInbox = field(default_factory=SignalInbox)
    hooks: dict[str, SignalHook] = field(default_factory=dict)
    notifications: RecentNotifications = field(default_factory=RecentNotifications)
    _threads: list[ChannelThread] = field(default_factory=list)

    def send(self, fields: Mapping[str, Any], channel: str) -> str:
        """Put a signal into the inbox; it is carried out when the connector streams.

        Args:
            fields: ``id`` (by default a new one), ``type`` and ``data``.
            channel: ``http`` or ``in-process``.

        Returns:
            Its id.

        Raises:
            SignalError: it is not a signal, or too many wait.
        """
        signal = from_fields(fields, channel, new_signal_id)
        if self.inbox.is_full:
            raise SignalError("too many signals are waiting: send the signal again when the connector streams")
        self.inbox.put(ReceivedSignal(signal, channel))
        return signal.id

    def actions(
        self,
        config: Configuration,
        settings: PipelineSettings,
        snapshots: SnapshotsOnDemand,
        more: Mapping[str, SignalAction],
    ) -> Signals:
        """Return the actions of a run, with further ones by type."""
        return Signals(settings, time.time_ns, snapshots, self.hooks, from_table=config.signals.source, more=more)

    def start(self, config: Configuration, start: SourceOffset, last_stored: Callable[[], SourceOffset | None]) -> None:
        """Start polling the channels of a run.

        Args:
            config: the configuration of the channels.
            start: the start position, with those of the channels.
            last_stored: returns the last stored offset.
        """
        signals = config.signals
        polled: list[PolledChannel] = []
        if signals.topic is not None:
            timeout, prefix = signals.poll_timeout_ms / 1000, config.topics.prefix
            position = position_of(KafkaChannel.name, start)
            polled.append(KafkaChannel(signals.consumer, signals.topic, prefix, position, timeout, new_signal_id))
        if signals.file is not None:
            polled.append(FileChannel(Path(signals.file), position_of(FileChannel.name, start), new_signal_id))
        self.inbox.held = False
        interval = signals.poll_interval_ms / 1000
        self._threads = [ChannelThread(channel, self.inbox, interval, last_stored) for channel in polled]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop polling. The next run reads signals that are not carried out again, from the stored positions."""
        for thread in self._threads:
            thread.stop()
        self._threads = []
        self.inbox.forget_positioned()
