"""The changes of one table since the last write, folded: the last image of each key, or the count of each image."""

from collections.abc import Iterable, Sequence
from typing import Any

from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.records.change import Change
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.model import Column

Image = tuple[Any, ...]


class Pending:
    """The changes of a table with one structure.

    Args:
        name: of the table, for errors.
        columns: its columns.
        key: the names of the columns of its key; none for a table without one.
        empty: whether the table has no rows except those of a snapshot in progress, which reads each row once.

    Attributes:
        rows: with a key, the last image of each row; ``None`` if it was deleted.
        counts: without a key, how many rows of each image were added; negative if they were deleted.
        read: rows of a snapshot of an empty table, which has each once.
        changed: whether rows may already be in the table.
    """

    def __init__(self, name: str, columns: Sequence[Column], key: Sequence[str], *, empty: bool) -> None:
        self.columns = columns
        places = {column.name.lower(): place for place, column in enumerate(columns)}
        try:
            self.key_places = [places[one.lower()] for one in key]
        except KeyError as error:
            raise DeliveryError(
                f"table {name}: its key column {error.args[0]} is not captured, so its rows cannot be found. Capture "
                "the column (column.include.list, column.exclude.list)"
            ) from None
        self._name = name
        self.changed = not empty
        self._days = {place for place, one in enumerate(columns) if one.data_type in ("date", "datetime", "timestamp")}
        self.rows: dict[Image, Image | None] = {}
        self.counts: dict[Image, int] = {}
        self._images: dict[Image, Image] = {}
        self.read: list[Image] = []

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes in their order.

        Raises:
            DeliveryError: a change cannot be applied to the table exactly.
        """
        for change in changes:
            before, after = change.images
            if change.op == "r" and not self.changed:
                assert after is not None
                self.read.append(after)
                continue
            self.changed = True
            if self.key_places:
                self._upsert(before, after)
            else:
                self._count(change, before, after)

    @property
    def any(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.read or self.rows or self.counts)

    def image(self, counted: Image) -> Image:
        """Return the values of an image in ``counts``."""
        return self._images[counted]

    def _upsert(self, before: Image | None, after: Image | None) -> None:
        old_key = None if before is None else self._key_of(before)
        if after is None:
            assert old_key is not None
            self._require_known(old_key)
            self.rows[old_key] = None
            return
        if UNAVAILABLE in after:
            after = self._filled(after, before)
        new_key = self._key_of(after)
        self._require_known(new_key)
        if before is None and UNAVAILABLE in after:  # an earlier row of this key has nothing to do with it
            raise self._incomplete()
        if old_key is not None and old_key != new_key and UNAVAILABLE not in old_key:
            self._moved(old_key, after)
        known = self.rows.get(new_key)
        if known is not None and UNAVAILABLE in after:
            after = self._filled(after, known)
        self.rows[new_key] = after

    def _moved(self, old_key: Image, after: Image) -> None:
        if UNAVAILABLE in after:
            raise self._incomplete()
        self.rows[old_key] = None

    def _count(self, change: Change, before: Image | None, after: Image | None) -> None:
        if change.op == "r":
            raise DeliveryError(
                f"table {self._name} has no primary key: a snapshot on demand would duplicate its rows. Delete the "
                "tables "
                "and the schema history to take a new snapshot of everything, or give the table a primary key"
            )
        for image, number in ((before, -1), (after, 1)):
            if image is not None:
                if UNAVAILABLE in image:
                    raise self._incomplete()
                counted = tuple(self._counted(place, value) for place, value in enumerate(image))
                self._images.setdefault(counted, image)
                total = self.counts.get(counted, 0) + number
                if total:
                    self.counts[counted] = total
                else:
                    self.counts.pop(counted, None)

    def _counted(self, place: int, value: Any) -> Any:
        """Return a value that is equal if the stored one is: a date that does not exist is stored as NULL."""
        if isinstance(value, list):
            return tuple(value)
        return None if place in self._days and isinstance(value, str) else value

    def _key_of(self, image: Image) -> Image:
        return tuple(image[place] for place in self.key_places)

    def _filled(self, image: Image, other: Image | None) -> Image:
        if other is None:
            return image
        return tuple(old if new is UNAVAILABLE else new for new, old in zip(image, other, strict=True))

    def _require_known(self, key: Image) -> None:
        if UNAVAILABLE in key:
            raise self._incomplete()
        pairs = zip(self.key_places, key, strict=True)
        if any(place in self._days and isinstance(value, str) for place, value in pairs):
            raise DeliveryError(
                f"table {self._name} has a key with a date that is not in the calendar, such as 0000-00-00: its rows "
                "cannot "
                "be distinguished. Exclude the table (table.exclude.list), or correct the date in the source"
            )

    def _incomplete(self) -> DeliveryError:
        return DeliveryError(
            f"table {self._name}: the binlog omits columns that are needed to find or to write the row. Set "
            "binlog_row_image=FULL in the source, and take a new snapshot"
        )
