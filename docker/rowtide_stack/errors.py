"""The errors of the local stack."""

__all__ = ["ProgramMissingError", "StackError", "StartFailedError"]


class StackError(Exception):
    """Base of all errors of the local stack. The message says what failed and what to do about it."""


class ProgramMissingError(StackError):
    """A program is not installed on this machine and cannot be installed automatically."""


class StartFailedError(StackError):
    """A server exited, or did not answer in time. The message ends with the last lines of its log."""
