"""Notices a failure of the worker and reports it once on standard error, with a traceback if it is unexpected."""

import contextlib
import errno
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

from rowtide.connector.check.findings import CheckFailedError
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.delivery.errors import ProducerFenced, TakenOver
from rowtide.connector.errors import ConnectorError, exhausted
from rowtide.connector.source.binlog_stream import ReplicaReplaced
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.connection.tls import TlsError
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.topics.errors import TopicError

log = logging.getLogger(__name__)

EXPECTED = (
    CheckFailedError,
    ConfigurationError,
    ConnectorError,
    DatabaseUnreachableError,
    SchemaHistoryError,
    TlsError,
    TopicError,
)
"""Errors whose message says what is wrong and what to do; a traceback would not help the user."""

CONTEST_S = 60.0
"""If a connector is taken over twice in this time from the process that may run it, another program will not stop."""


class StopTimeoutError(ConnectorError):
    """The connector did not stop within ``task.shutdown.graceful.timeout.ms``.

    Args:
        limit_ms: the limit.
    """

    def __init__(self, limit_ms: int) -> None:
        super().__init__(
            f"it did not stop within task.shutdown.graceful.timeout.ms={limit_ms}, because a server does not answer; "
            "undelivered changes are read again at the next start"
        )


def is_taken_over(failure: BaseException | None) -> bool:
    """Return whether a connector has ended because another process runs it, as Kafka or the database server reports."""
    return isinstance(failure, ProducerFenced | TakenOver | ReplicaReplaced)


def report(failure: BaseException, connector: str, *, as_log: bool = False) -> None:
    """Write a failure to standard error.

    Args:
        failure: the failure.
        connector: the connector's name.
        as_log: log it instead, so that every line of the log has the same format.
    """
    if as_log:
        log.critical("connector %s has failed: %s", connector, describe(failure))
    else:
        with contextlib.suppress(OSError):  # nobody reads it, or the disk is full: the exit code says it all the same
            sys.stderr.write(f"\nconnector {connector} has failed: {describe(failure)}\n")


def describe(failure: BaseException) -> str:
    """Return the message of a failure, with the traceback and a request to report it if it is unexpected."""
    if isinstance(failure, OSError) and failure.errno == errno.EADDRINUSE:
        return f"the web server cannot listen: {failure.strerror}. Choose another --web-port, or --no-web"
    if isinstance(failure, EXPECTED):
        return str(failure)
    if (used_up := exhausted(failure)) is not None:
        log.debug("this error ended the process", exc_info=failure)
        return " ".join([used_up, *(f"({note})" for note in getattr(failure, "__notes__", ()))])
    trace = "".join(traceback.format_exception(failure))
    return f"{type(failure).__name__}: {failure}. This is an error in rowtide; please report this traceback\n{trace}"


@contextlib.contextmanager
def failed_threads(stop: Callable[[BaseException], None]) -> Iterator[None]:
    """While the block runs, call ``stop`` in a thread that ends with an exception, and pass the exception.

    A process without one of its threads would continue as if nothing had happened: healthy, but without doing its work.

    Args:
        stop: lets the process end; it must not wait. It is called once, because later failures are consequences.
    """
    once = threading.Lock()

    def failed(thread: threading.ExceptHookArgs) -> None:
        error = thread.exc_value
        if error is None or isinstance(error, SystemExit) or not once.acquire(blocking=False):
            return
        error.add_note(f"in the thread {thread.thread.name if thread.thread else 'of a library'}")
        stop(error)

    former = threading.excepthook
    threading.excepthook = failed
    try:
        yield
    finally:
        threading.excepthook = former
