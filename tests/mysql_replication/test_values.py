"""JSON documents as mysql-replication's objects: compiled code, Python and mysql-replication agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysqlreplication.json_binary import parse_json

from rowtide.mysql_replication import values
from tests.support.mysql.json_documents import encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
)


def same(ours: Any, theirs: Any) -> bool:
    """Whether two documents are equal, with the types of their values."""
    return repr(ours) == repr(theirs)


@given(DOCUMENTS, st.booleans())
def test_a_document_is_that_of_mysql_replication(document: Any, large: bool) -> None:
    stored = encode(document, large=large)
    expected = parse_json(stored[0], stored[1:])
    assert same(values._document(stored), expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "native", None)
        assert same(values._document(stored), expected)


def test_no_bytes_are_none() -> None:
    assert values._document(b"") is None
