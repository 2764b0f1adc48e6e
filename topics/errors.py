"""Errors of topics.

TopicError             a topic cannot be created, read or repaired
└── KafkaUnreachable   no broker answered in time; a retry may succeed
"""

from rowtide.errors import ConnectorError


class TopicError(ConnectorError):
    """A topic cannot be created, read or repaired; the message names it and says what to do."""


class KafkaUnreachable(TopicError):
    """No broker answered in time."""
