"""CloudEvents whose metadata is in headers; what Debezium writes is in the recordings."""

import pytest

from rowtide.envelope.converters.cloud_events import CloudEventsConverter, CloudEventsFormat
from rowtide.envelope.schema import STRING, Schema, struct
from rowtide.envelope.transforms.record import ConnectRecord, Header

BLOCK = struct("s", {"db": STRING})


@pytest.mark.parametrize(("schema", "value"), [(STRING, "shop"), (BLOCK, {"db": "shop"})])
def test_a_header_that_is_not_the_source_of_a_change_is_an_error(schema: Schema, value: object) -> None:
    generated = dict.fromkeys(("id", "type", "dataSchemaName"), "generate")
    converter = CloudEventsConverter(CloudEventsFormat(metadata="header", fields=generated))  # type: ignore[arg-type]
    headers = (Header("source", schema, value), Header("op", STRING, "c"))
    record = ConnectRecord("t", None, None, None, struct("r", {"v": STRING}), {"v": "1"}, headers)
    with pytest.raises(ValueError, match="source is not that of a change"):
        converter.data(record, "value", [])
