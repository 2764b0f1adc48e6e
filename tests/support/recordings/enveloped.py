"""Messages of ``JsonConverter`` with ``schemas.enable=true``."""

import json
from decimal import Decimal
from typing import Any

from rowtide.envelope.json.reader import schema_from_json, value_from_json
from rowtide.envelope.schema import Schema


def parse_enveloped(text: str | bytes) -> tuple[Schema | None, Any]:
    """Parse the schema and the value of a message."""
    document = json.loads(text, parse_float=Decimal)
    assert set(document) == {"schema", "payload"}
    if document["schema"] is None:
        return None, document["payload"]
    schema = schema_from_json(document["schema"])
    return schema, value_from_json(schema, document["payload"])
