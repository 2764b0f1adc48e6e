"""Errors of a verification."""

from rowtide.errors import ConnectorError


class Undecided(ConnectorError):
    """It cannot be decided whether a table and its topic are equal; the message says why and what to do."""
