"""``io.debezium.transforms.partitions.PartitionRouting``: chooses partitions by fields of changes."""

from dataclasses import dataclass, replace
from typing import Any

from rowtide.envelope.java_hashes import java_hash, murmur_hash
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, TransformError, require_struct

_HASHES = {"java": java_hash, "murmur": murmur_hash}
_MOST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PartitionRouting:
    """Chooses the partition of a change by the sum of the hashes of fields.

    Attributes:
        paths: ``partition.payload.fields``; ``change`` is ``after``, and ``before`` for a deletion.
        partitions: ``partition.topic.num``.
        hash_function: ``partition.hash.function``: ``java`` or ``murmur``.
    """

    paths: tuple[tuple[str, ...], ...]
    partitions: int
    hash_function: str

    @classmethod
    def from_options(cls, options: Options) -> "PartitionRouting":
        """Read the options of Debezium."""
        fields = options.items("partition.payload.fields")
        if not fields or not all(fields):
            options.problem("partition.payload.fields", "is required, for example change.customer_id")
        partitions = 1
        if options.required_text("partition.topic.num"):
            partitions = options.integer("partition.topic.num", 1)
        if partitions < 1:
            options.problem("partition.topic.num", f"must be at least 1, not {partitions}")
        paths = tuple(tuple(part.strip() for part in field.split(".")) for field in fields)
        return cls(paths, max(partitions, 1), options.choice("partition.hash.function", tuple(_HASHES), "java"))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with its partition; a record that has none of the fields remains unchanged."""
        if record.value is None or not record.is_envelope or record.value["op"] in ("t", "m"):
            return record
        schema, change = require_struct(record.value_schema, record.value)
        row = "before" if change["op"] == "d" else "after"
        make, total, found = _HASHES[self.hash_function], 0, False
        for path in self.paths:
            names = (row if name == "change" and at < len(path) - 1 else name for at, name in enumerate(path))
            described, value = _value(schema, change, tuple(names))
            if described is None or value is None:
                continue
            try:
                total += make(described, value)
            except ValueError as error:
                raise TransformError(f"partition.payload.fields: {'.'.join(path)}: {error}") from error
            found = True
        if not found:
            return record
        positive = total & _MOST
        return replace(record, partition=(0 if positive == _MOST else positive) % self.partitions)


def _value(schema: Schema, struct: Any, path: tuple[str, ...]) -> tuple[Schema | None, Any]:
    """Return a value within structs, with its schema.

    ``None`` for both if a field does not exist, or a struct is null.
    """
    described: Schema | None = schema
    value = struct
    for name in path:
        field = None if described is None or value is None or described.type != "struct" else described.field(name)
        if field is None:
            return None, None
        described, value = field.schema, value.get(name)
        value = described.default if value is None else value
    return described, value
