"""The error of the demo."""

__all__ = ["DemoError"]


class DemoError(Exception):
    """A step failed. The message names the step and the log with the details."""
