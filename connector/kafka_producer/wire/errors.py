"""Errors in the bytes of Kafka's protocol."""


class WireError(Exception):
    """An answer of a broker cannot be used, or a message cannot be sent to it."""


class MalformedAnswer(WireError):
    """The bytes of an answer do not have the form of their version, or belong to no request."""


class NotEncodable(WireError):
    """A message does not fit the version: a value is out of range, or null where the version has no null."""


class UnsupportedBroker(WireError):
    """The broker and rowtide have no version of an API in common, or the broker has no such API."""


class AuthenticationFailed(WireError):
    """The broker refused the credentials, or it could not prove that it has them too."""
