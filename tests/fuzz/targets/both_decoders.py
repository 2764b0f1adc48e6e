"""Transactions with damaged table maps and rows: compiled code and Python must make the same of each input."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change
from rowtide.connector.rows import row_decoder
from tests.fuzz.targets.rows import RowEvents


class BothDecoders(RowEvents):
    """The inputs of the target ``rows``."""

    declared = ()

    def run(self, data: bytes) -> None:
        """Make the records, or the error, in both ways."""
        compiled = self._outcome(data)
        with patch.object(row_decoder, "native", None):
            python = self._outcome(data)
        assert len(compiled) == len(python), f"compiled: {compiled[-1:]}, Python: {python[-1:]}"
        for one, other in zip(compiled, python, strict=True):
            assert one == other, f"compiled: {one}, Python: {other}"

    def _outcome(self, data: bytes) -> list[Any]:
        found: list[Any] = []
        try:
            for output in self.outputs(data):
                if isinstance(output, Batch):
                    found += output.messages
                    found += map(_values, output.changes)
        except ConnectorError as error:
            found.append(f"{type(error).__name__}: {error}")
        return found


def _values(change: Change) -> tuple[Any, ...]:
    """All values; as text, because not a number is not equal to itself."""
    rows = [row if row is None else dict(row) for row in (change.before, change.after)]
    return repr(rows), change.to_debezium()
