"""Errors of the decoder."""

from rowtide.errors import ConnectorError


class DecodeError(ConnectorError):
    """A record that cannot be decoded. Its message names the topic, and what the record is instead."""


class ClaimCheckUnavailable(ConnectorError):
    """The value of a claim check cannot be read, or is not the one that was stored. No change may be skipped for it."""


class RegistryUnavailable(ConnectorError):
    """The schema registry cannot be asked now. The record is not damaged: decode it again later."""
