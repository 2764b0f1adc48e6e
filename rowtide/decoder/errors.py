"""Errors of the decoder."""

from rowtide.errors import ConnectorError


class DecodeError(ConnectorError):
    """A record that cannot be decoded. Its message names the topic and the reason."""


class ClaimCheckUnavailable(ConnectorError):
    """The value of a claim check cannot be read, or is not the one that was stored.

    Do not skip a change because of it.
    """


class RegistryUnavailable(ConnectorError):
    """The schema registry does not answer at the moment. The record is not damaged: decode it again later."""
