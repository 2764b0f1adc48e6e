"""Errors of databus. Where the original SDK (grandet) has a text, the message begins with it."""


class DatabusError(Exception):
    """Base class of the errors; the message says what is wrong, and the way out."""


class SettingsError(DatabusError):
    """The settings cannot be used; the message has all problems."""


class StartError(DatabusError):
    """The client cannot begin where its settings or its offset file say."""


class OverflowOffset(StartError):
    """The topic has no event with a position (``Overflow Offset``); the message distinguishes the causes."""


class UnreadableMessage(DatabusError):
    """A message of the topic, or a line of a dump, is not one of databus."""


class DiscoveryError(DatabusError):
    """ZooKeeper cannot be reached, or a node does not have what it should."""


class DumpError(DatabusError):
    """A dump cannot be read to its end."""


class DumpDiscarded(DatabusError):
    """A dump that was made cannot be announced; another one is made."""


class OffsetFileError(DatabusError):
    """The offset file is damaged, or cannot be read or written."""


class TopicError(DatabusError):
    """The topic cannot be read."""


class HandlerInterrupted(DatabusError):
    """Raised by a handler to end the run (``do handler error, interrupted``).

    Args:
        cause: why, for the message.
    """

    def __init__(self, cause: str = "") -> None:
        super().__init__(f"do handler error, interrupted: {cause}" if cause else "do handler error, interrupted")


class Closed(DatabusError):
    """The client or the server is closed (``canal was closed``)."""

    def __init__(self, way_out: str) -> None:
        super().__init__(f"canal was closed: {way_out}")


class NoStatement(DatabusError):
    """An event has no SQL statements (``Do: Have No Match Action``, ``Do: Have No Statement``)."""
