"""What can go wrong with the local stack."""

__all__ = ["ProgramMissingError", "StackError", "StartFailedError"]


class StackError(Exception):
    """Base of every error of the local stack; the message says what failed and the way out."""


class ProgramMissingError(StackError):
    """A program that is needed is not on this machine and cannot be installed here."""


class StartFailedError(StackError):
    """A server ended, or did not answer in time; the message ends with the last lines of its log."""
