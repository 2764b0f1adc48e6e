"""The last notifications, for the HTTP endpoint and for callers in this process."""

from collections import deque
from collections.abc import Mapping
from typing import Any

KEPT = 1000
"""The maximum number of notifications that are kept."""


class RecentNotifications:
    """The last thousand notifications of a connector, oldest first. Any thread may add and read."""

    def __init__(self) -> None:
        self._kept: deque[Mapping[str, Any]] = deque(maxlen=KEPT)

    def add(self, notification: Mapping[str, Any]) -> None:
        """Keep a notification; the oldest one gives way."""
        self._kept.append(notification)

    def all(self, signal_id: str | None = None) -> list[Mapping[str, Any]]:
        """The notifications, those of one signal if its id is given."""
        kept = list(self._kept.copy())
        return [one for one in kept if signal_id is None or one["id"] == signal_id]
