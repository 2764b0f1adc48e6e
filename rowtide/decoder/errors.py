"""Errors of the decoder."""

from rowtide.errors import ConnectorError


class DecodeError(ConnectorError):
    """A record that cannot be decoded. Its message names the topic, and what the record is instead."""
