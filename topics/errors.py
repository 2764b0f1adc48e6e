"""Errors of topics.

TopicError             a topic cannot be created, read or repaired
├── TopicDenied        the account lacks a right
└── KafkaUnreachable   no broker answered in time; a retry may succeed
"""

from rowtide.errors import ConnectorError


class TopicError(ConnectorError):
    """A topic cannot be created, read or repaired; the message names it and says what to do."""


class TopicDenied(TopicError):
    """The account lacks a right; the message has the command that grants it."""


class KafkaUnreachable(TopicError):
    """No broker answered in time."""
