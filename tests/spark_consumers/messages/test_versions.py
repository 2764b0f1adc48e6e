"""The schemas of keys and envelopes."""

from __future__ import annotations

import re
from typing import Any

import pytest

DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "price"}


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"type": "int32"}, '{"type": "int32"} is not the Connect schema of a column (\'field\' is missing)'),
        ({"field": "id"}, "('type' is missing)"),
        (DECIMAL, "('scale' is missing)"),
        ({**DECIMAL, "parameters": {"scale": "x"}}, "(invalid literal for int() with base 10: 'x')"),
        ({"type": "list", "field": "id"}, "('fields' is missing)"),
        (5, "5 is not the Connect schema of a column"),
    ],
)
def test_a_wrong_schema_of_a_column_is_an_error_of_its_topic(field: Any, reason: str) -> None:
    from rowtide.spark_consumers.columns.conversion import ConverterSettings
    from rowtide.spark_consumers.errors import NotAnEnvelopeError
    from rowtide.spark_consumers.messages.versions import key_version, value_version

    row = {"type": "struct", "fields": [field]}
    images = [{"field": "before", **row}, {"field": "after", **row}, {"field": "source"}, {"field": "op"}]
    settings = ConverterSettings()
    with pytest.raises(NotAnEnvelopeError, match=re.escape("topic t: ") + ".*" + re.escape(reason)):
        key_version(None, row, settings, "t")
    with pytest.raises(NotAnEnvelopeError, match=re.escape(reason)):
        value_version(None, {"type": "struct", "fields": images}, settings, "t")
