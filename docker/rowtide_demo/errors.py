"""What can go wrong in the demo."""

__all__ = ["DemoError"]


class DemoError(Exception):
    """A step failed; the message says what, and which log tells more."""
