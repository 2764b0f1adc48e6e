"""What can go wrong with topics.

TopicError             a topic cannot be created, read or repaired; the message names it and the way out
└── KafkaUnreachable   no broker answered in time: the same may succeed later
"""


class TopicError(Exception):
    """A topic cannot be created, read or repaired; the message names it and says what to do."""


class KafkaUnreachable(TopicError):
    """No broker answered in time."""
