"""The value of a column that is not known."""

from typing import Final


class Unavailable:
    """The type of :data:`UNAVAILABLE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "rowtide.UNAVAILABLE"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "UNAVAILABLE"  # copies and pickles are the same object, so that "is" works


UNAVAILABLE: Final = Unavailable()
"""The value of a column that the binlog omits (``binlog_row_image`` is NOBLOB or MINIMAL).

It is not known: unchanged by an update, the default of the column in an INSERT with MINIMAL.
"""
