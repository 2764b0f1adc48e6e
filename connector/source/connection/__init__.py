"""Connections to the database: log-in, TLS, time limits, and one error for a connection that fails.

:func:`connect` returns a :class:`Client` that is ready for queries. Every connection that fails or is lost raises
:class:`DatabaseUnreachableError`, whose ``retriable`` says whether a later attempt may succeed.
"""

from rowtide.connector.source.connection.client import Client
from rowtide.connector.source.connection.errors import AnswerUnreadableError, DatabaseUnreachableError
from rowtide.connector.source.connection.login import connect, log_in

__all__ = ["AnswerUnreadableError", "Client", "DatabaseUnreachableError", "connect", "log_in"]
