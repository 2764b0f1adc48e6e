"""A run with another layout or filter than that with which a table was built."""

from __future__ import annotations

import pytest

from rowtide.spark_consumers.errors import ComputedColumnsError, LayoutError, ProjectionError, RowFilterError
from rowtide.spark_consumers.job import require_same_rows
from rowtide.spark_consumers.settings import Keyless, Layout, Settings
from rowtide.spark_consumers.state import Batch, Computed, Projection, RowFilter

EU = RowFilter("region = 'eu'")


@pytest.mark.parametrize(
    ("done", "wanted", "error"),
    [
        ({"layout": "rows"}, {"layout": Layout.APPEND}, LayoutError),
        ({"layout": "append"}, {"layout": Layout.ROWS}, LayoutError),
        ({"layout": "history"}, {"layout": Layout.SOFT_DELETE}, LayoutError),
        ({"layout": "rows"}, {"keyless": Keyless.APPEND, "layout": Layout.HISTORY}, LayoutError),
        ({"layout": "append"}, {"keyless": Keyless.APPEND}, None),
        ({"layout": "append"}, {"keyless": Keyless.APPEND, "layout": Layout.HISTORY}, None),
        ({"layout": "rows"}, {}, None),
        ({"layout": "rows"}, {"where": "a > 1"}, RowFilterError),
        ({"layout": "rows", "where": EU}, {}, RowFilterError),
        ({"layout": "rows", "where": EU}, {"where": EU.sql}, None),
        ({"columns": ("id",)}, {"where": "a > 1"}, RowFilterError),
        ({"columns": ("id",)}, {"layout": Layout.APPEND}, None),
        ({"layout": "rows"}, {"columns": ["id"]}, ProjectionError),
        ({"layout": "rows", "projection": Projection(("id", "a"), ("id", "b"))}, {"columns": ["A", "id"]}, None),
        ({"layout": "rows"}, {"computed": {"b": "a + 1"}}, ComputedColumnsError),
        ({"layout": "rows", "computed": Computed({"b": "a + 1"}, {"a": "c"})}, {}, ComputedColumnsError),
        ({"layout": "rows", "computed": Computed({"b": "a + 1"}, {"a": "c"})}, {"computed": {"b": "a + 1"}}, None),
        ({}, {"where": "a > 1", "layout": Layout.APPEND}, None),
    ],
)
def test_another_layout_filter_or_choice_of_columns_is_noticed_without_new_records(done, wanted, error) -> None:
    batch, settings = Batch("rowtide-p.d.t", number=1, **done), Settings("out", "state", **wanted)
    if error is None:
        require_same_rows("d.t", batch, settings)
    else:
        with pytest.raises(error, match=r"table d.t was built with.*and this run is with"):
            require_same_rows("d.t", batch, settings)
