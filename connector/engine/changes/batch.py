"""A batch of changes, as the engine hands it out."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

from rowtide.connector.records.change import Change

if TYPE_CHECKING:
    import pyarrow as pa


class ChangeBatch(Sequence[Change]):
    """Changes in commit order, with the position behind them.

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

    def __repr__(self) -> str:
        if not self._changes:
            return "<ChangeBatch of 0 changes>"
        last = self._changes[-1].position
        return f"<ChangeBatch of {len(self._changes)} changes up to {last.file}:{last.pos}>"

    def ack(self) -> bool:
        """Store the position behind this batch and all batches before it: they do not come again.

        Returns:
            Whether it is stored. False if the batch was rolled back, or if the connector has started again meanwhile:
            then its changes come again.

        Raises:
            OffsetStoreError: the position cannot be stored.
        """
        return self._ack()

    def to_arrow(self) -> "dict[str, list[pa.RecordBatch]]":
        """The changes as Arrow record batches by table (``database.table``); needs the extra ``rowtide[arrow]``.

        A table has one record batch, or several in order if its structure changes within this batch. Their columns are
        those of the table after the change (before it, for ``d``), preceded by ``__op``, ``__ts`` (when the source
        changed the row), ``__file``, ``__pos`` and ``__row``.
        """
        from rowtide.connector.engine.changes.arrow import record_batches  # noqa: PLC0415 - pyarrow is an extra

        return record_batches(self._changes)
