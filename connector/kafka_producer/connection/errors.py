"""Errors of connections."""


class ConnectionFailed(Exception):
    """A broker cannot be reached, or the connection to it was lost; another attempt may succeed."""


class Interrupted(Exception):
    """Another thread interrupted the connection."""


class NotSupported(ValueError):
    """A setting needs librdkafka.

    Attributes:
        setting: its name.
    """

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting
