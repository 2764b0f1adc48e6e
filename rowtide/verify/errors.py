"""Errors of a verification."""

from rowtide.errors import ConnectorError


class Undecided(ConnectorError):
    """Raised if the equality of a table and its topic cannot be decided; the message says why and what to do."""
