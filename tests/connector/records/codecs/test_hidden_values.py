"""errors.log.include.messages: values of rows are in messages only if it is set."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.connector.errors import SchemaError
from rowtide.connector.records.codecs.builder import conversion_failure
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.table import RecordRules
from rowtide.topics.naming import StandardNaming


@pytest.mark.parametrize("show", [False, True])
@pytest.mark.parametrize("mode", ["fail", "warn"])
def test_a_value_that_cannot_be_converted(mode: Any, show: bool, caplog: pytest.LogCaptureFixture) -> None:
    rules = RecordRules(ValueSettings(event_converting_failure_handling_mode=mode))
    settings = PipelineSettings("mysql", "shop", StandardNaming("shop"), rules=rules, show_values=show)
    record: Any = SimpleNamespace(column=SimpleNamespace(name="pin", column_type="time"), null=None)
    failed = conversion_failure(settings, record)
    if mode == "fail":
        with pytest.raises(SchemaError) as caught:
            failed("4711", ValueError("4711 is too large"))
        message = str(caught.value)
    else:
        with caplog.at_level(logging.WARNING):
            failed("4711", ValueError("4711 is too large"))
        (message,) = caplog.messages
        assert message.endswith("Records have null instead (event.converting.failure.handling.mode=warn)")
    assert "column pin (time)" in message
    assert ("4711" in message) is show
    assert ("errors.log.include.messages" in message) is not show
