"""What happens if rows of an event are missing or cannot be decoded."""

import logging

from rowtide.connector.errors import ProtocolError
from rowtide.envelope.settings import FailureMode

log = logging.getLogger(__name__)


def skip_rows(problem: ProtocolError, mode: FailureMode) -> None:
    """Skip rows that are missing or cannot be decoded, if the settings allow it.

    Args:
        problem: the problem.
        mode: ``event.processing.failure.handling.mode``.

    Raises:
        ProtocolError: the problem, with ``fail``.
    """
    if mode == "fail":
        raise problem
    if mode == "warn":
        log.warning("skipped because of event.processing.failure.handling.mode=warn: %s", problem)
