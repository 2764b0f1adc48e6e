"""The settings of the databus server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatabusConfig:
    """The databus server.

    Attributes:
        topic: the topic of its messages; ``None`` if it is not set.
    """

    topic: str | None
