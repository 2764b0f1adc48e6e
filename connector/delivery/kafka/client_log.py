"""The log of Kafka's client, for an operator: a broker that is away is told once in a while, not at every attempt."""

import logging
import re

log = logging.getLogger(__name__)

_TOLD_BESIDES = {"FAIL", "ERROR"}
"""librdkafka's lines about connections; it reports the same as errors of the client."""
_CIRCUMSTANCES = re.compile(r" \(after .*\)$")
"""``(after 3ms in state CONNECT, 150 identical error(s) suppressed)``: is another one each time."""


class Sparing(logging.Filter):
    """Lets a message pass once in 30 seconds only."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message was not told lately."""
        if isinstance(record.args, tuple) and record.args and record.args[0] in _TOLD_BESIDES:
            return False
        self._told = {text: when for text, when in self._told.items() if record.created - when < 30}
        text = _CIRCUMSTANCES.sub("", record.getMessage())
        if text in self._told:
            return False
        self._told[text] = record.created
        return True


log.addFilter(Sparing())
