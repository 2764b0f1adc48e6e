"""The steps of a verification, without servers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.verify.comparison import RowDifference
from rowtide.verify.verification import Result, TableVerification, VerifyOptions

REPLACED = RowDifference("stale", {"id": "i9"}, None, None)


@pytest.mark.parametrize("further", [[], ["range"]])
def test_replaced_rows_are_looked_for_unless_more_differ_than_are_compared(further: list[str]) -> None:
    """As many rows were repaired as are compared at most, and TRUNCATE has replaced others."""
    made: Any = object.__new__(TableVerification)
    made.result, made._options, made._repair = Result("d.t"), VerifyOptions(most=1), object()
    fold = SimpleNamespace(counts=lambda: (1, 1), completed=(), ranges=lambda _keys, _most: further, close=lambda: None)
    made._fold, made._unlike = (lambda _path: fold), (lambda *_: iter([("i1",)]))
    made._confirmed = lambda *_: [RowDifference("stale", {"id": "i1"}, None, None)]
    made._replaced = lambda *_: [REPLACED]
    for step in (
        "_read_source",
        "_refuse_doubled",
        "_topic",
        "_consume",
        "_old_forms",
        "_refuse_missing",
        "_changes_keys",
    ):
        setattr(made, step, lambda *_: None)
    sent: list[str] = []
    made._send_again = lambda *_: sent.append("again")

    def repaired(*_: object) -> list[RowDifference]:
        made.result.repaired.append(REPLACED)
        return []

    made._repaired = repaired
    made._keyed(Path())
    result = cast("Result", made.result)
    assert result.more == bool(further)
    assert (result.differences, sent) == (([], []) if further else ([REPLACED], ["again"]))
