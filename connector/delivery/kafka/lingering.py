"""Decides when to send the records of incomplete batches, instead of librdkafka's ``linger.ms``. Pure.

One request to a broker is in flight at a time (see ``producer_settings``). While a record that is older than
``linger.ms`` waits for its answer, librdkafka polls without a pause, which takes more processor time than everything
else if the broker is slow. Its ``linger.ms`` is therefore long: it sends complete batches, and ``flush`` sends the
others.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rowtide.connector.config.kafka.producer_settings import DEFAULTS

FLUSH_S = 0.001
"""Duration of a flush: enough for librdkafka's threads to notice it. If they do not, the next one sends the records."""

_IDLE_S = 0.01
"""Seconds between two flushes if nothing else is ready to be sent."""
_LONGEST_MS = 10_000
_ALIAS = "queue.buffering.max.ms"
_TIMEOUTS = ("message.timeout.ms", "delivery.timeout.ms", "transaction.timeout.ms")


class Lingering:
    """The time since incomplete batches were sent.

    Args:
        settings: the producer's settings; ``linger.ms`` is the time from one flush to the next.
        clock: seconds of a monotonic clock.

    Attributes:
        client_settings: the settings for librdkafka.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Callable[[], float]) -> None:
        given_ms = float(settings.get("linger.ms", settings.get(_ALIAS, DEFAULTS["linger.ms"])))
        limits = [float(settings.get(name, 0)) / 2 for name in _TIMEOUTS]  # librdkafka requires a shorter linger.ms
        longest_ms = int(max(given_ms, min([_LONGEST_MS, *filter(None, limits)])))
        self.client_settings = {
            "sticky.partitioning.linger.ms": int(2 * given_ms),  # librdkafka's default is twice its own linger.ms
            **{name: value for name, value in settings.items() if name != _ALIAS},
            "linger.ms": longest_ms,
        }
        self._linger_s = given_ms / 1000
        self._clock = clock
        self._begin = clock()

    def is_over(self, *, idle: bool) -> bool:
        """Return whether incomplete batches should be sent.

        Args:
            idle: nothing else is ready to be sent, so that waiting does not make the batches larger.
        """
        return self._clock() - self._begin >= (min(self._linger_s, _IDLE_S) if idle else self._linger_s)

    def restart(self) -> None:
        """Note that incomplete batches are sent now."""
        self._begin = self._clock()

    def end(self) -> None:
        """Have incomplete batches sent as soon as possible."""
        self._begin = float("-inf")
