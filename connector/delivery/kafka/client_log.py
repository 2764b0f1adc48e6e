"""The logger for Kafka's clients. A broker that is down is logged every 30 seconds, not at every attempt."""

import logging
import re

log = logging.getLogger(__name__)

_REPORTED_AS_ERRORS = {"FAIL", "ERROR"}
"""librdkafka's log facilities for connections; the error callback reports the same errors."""
_DETAILS = re.compile(r" \(after .*\)$")
"""``(after 3ms in state CONNECT, 150 identical error(s) suppressed)``: differs every time."""
_INTERVAL_S = 30


class RepeatFilter(logging.Filter):
    """Drops messages that were logged within the last 30 seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record."""
        if isinstance(record.args, tuple) and record.args and record.args[0] in _REPORTED_AS_ERRORS:
            return False
        recent = {text: when for text, when in self._logged_at.items() if record.created - when < _INTERVAL_S}
        self._logged_at = recent
        text = _DETAILS.sub("", record.getMessage())
        if text in recent:
            return False
        recent[text] = record.created
        return True


log.addFilter(RepeatFilter())
