"""A batch of changes, as the engine returns it."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn, overload

from rowtide.connector.records.change import Change

if TYPE_CHECKING:
    import pyarrow as pa

    from rowtide.connector.records.arrow_values import WideDecimals


class ChangeBatch(Sequence[Change]):
    """Changes in commit order, with the position after them.

    Args:
        changes: the changes.
        ack: stores the position; see :meth:`ack`.
    """

    __slots__ = ("_ack", "_changes")

    def __init__(self, changes: Sequence[Change], ack: Callable[[], bool]) -> None:
        self._changes = changes
        self._ack = ack

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self._changes[index]

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ChangeBatch cannot be pickled: only this process can acknowledge it; pickle list(batch)")

    def __repr__(self) -> str:
        if not self._changes:
            return "<ChangeBatch of 0 changes>"
        last = self._changes[-1].position
        return f"<ChangeBatch of {len(self._changes)} changes up to {last.file}:{last.pos}>"

    def ack(self) -> bool:
        """Store the position after this batch and all batches before it: they are not delivered again.

        Returns:
            Whether it is stored. False if the batch was rolled back, or if the connector has restarted since:
            then its changes are delivered again.

        Raises:
            OffsetStoreError: the position cannot be stored.
        """
        return self._ack()

    def to_arrow(self, *, wide_decimals: "WideDecimals" = "string") -> "dict[str, list[pa.RecordBatch]]":
        """Return the changes as Arrow record batches by table (``database.table``); needs the extra ``rowtide[arrow]``.

        A table has one record batch, or several in order if its structure changes within this batch. Their columns are
        those of the table after the change (before it, for ``d``), preceded by ``__op``, ``__ts`` (when the source
        changed the row), ``__file``, ``__pos``, ``__row`` and ``__unavailable``. If the table has a column of such a
        name, the added one begins with a further underscore.

        Args:
            wide_decimals: the type of DECIMAL columns with more than 38 digits. ``string`` is exact, and all libraries
                read it; ``decimal256`` is exact, but few libraries read it; ``decimal128`` has 38 digits.

        Raises:
            EngineError: a value does not fit its type, such as one with too many digits for ``decimal128``.
        """
        from rowtide.connector.engine.changes.arrow import record_batches  # noqa: PLC0415 - pyarrow is an extra

        return record_batches(self._changes, wide_decimals)
