"""Errors of databus. Where the original SDK (grandet) has a text, the message begins with it."""


class DatabusError(Exception):
    """Base class of the errors; the message says what is wrong and what to do."""


class SettingsError(DatabusError):
    """The settings cannot be used; the message has all problems."""


class StartError(DatabusError):
    """The client cannot start at the position in its settings or its offset file."""


class OverflowOffset(StartError):
    """The topic has no event with a position (``Overflow Offset``); the message distinguishes the causes."""


class UnreadableMessage(DatabusError):
    """A message of the topic, or a line of a dump, is not in databus' form."""


class DiscoveryError(DatabusError):
    """ZooKeeper cannot be reached, or a node has unexpected content."""


class DumpError(DatabusError):
    """A dump cannot be read completely."""


class DumpDiscarded(DatabusError):
    """A finished dump cannot be announced; another one is made."""


class OffsetFileError(DatabusError):
    """The offset file is damaged, or cannot be read or written."""


class TopicError(DatabusError):
    """The topic cannot be read."""


class HandlerInterrupted(DatabusError):
    """Raised by a handler to end the run (``do handler error, interrupted``).

    Args:
        cause: the reason, for the message.
    """

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"do handler error, interrupted: {cause}" if cause else "do handler error, interrupted")


class Closed(DatabusError):
    """The client or the server is closed (``canal was closed``)."""

    def __init__(self, way_out: str) -> None:
        super().__init__(f"canal was closed: {way_out}")


class NoStatement(DatabusError):
    """An event has no SQL statements (``Do: Have No Match Action``, ``Do: Have No Statement``)."""
