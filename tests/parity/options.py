"""Random configurations: properties that affect records, chosen by a seed."""

from __future__ import annotations

import random

__all__ = ["choose"]

_EXTRACT = "io.debezium.transforms.ExtractNewRecordState"
_REGEX = "io.debezium.schema.DefaultRegexTopicNamingStrategy"
_CHOICES: tuple[tuple[float, str, tuple[str, ...]], ...] = (
    (0.5, "decimal.handling.mode", ("double", "string", "precise")),
    (0.4, "bigint.unsigned.handling.mode", ("precise", "long")),
    (0.6, "time.precision.mode", ("connect", "isostring", "microseconds", "nanoseconds", "adaptive_time_microseconds")),
    (0.5, "binary.handling.mode", ("base64", "base64-url-safe", "hex", "bytes")),
    (0.3, "include.schema.comments", ("true",)),
    (0.3, "include.query", ("true",)),
    (0.3, "provide.transaction.metadata", ("true",)),
    (0.3, "tombstones.on.delete", ("false",)),
    (0.4, "skipped.operations", ("none", "u", "d", "c,t", "u,d")),
    (0.2, "skip.messages.without.change", ("true",)),
    (0.3, "schema.name.adjustment.mode", ("avro", "avro_unicode")),
    (0.3, "field.name.adjustment.mode", ("avro", "avro_unicode")),
    (0.1, "extended.headers.enabled", ("false",)),
    (0.1, "include.schema.changes", ("false",)),
    (0.1, "enable.time.adjuster", ("false",)),
    (0.15, "event.converting.failure.handling.mode", ("skip", "warn")),
    (0.15, "schema.history.internal.store.only.captured.tables.ddl", ("true",)),
    (0.1, "topic.delimiter", ("_", "-")),
    (0.1, "topic.transaction", ("tx",)),
    (0.2, "column.propagate.source.type", (".*", r".*\.(a|b|c|id)")),
    (0.15, "datatype.propagate.source.type", (r".+\.VARCHAR,.+\.DECIMAL", r".+\.INT,.+\.(CHAR|BLOB)", ".*")),
    (0.12, "column.mask.with.5.chars", (r".*\.(a|b)", r".*\.c")),
    (0.12, "column.truncate.to.3.chars", (r".*\.(c|d|val)", r".*\.data")),
    (0.12, "column.mask.hash.v2.SHA-256.with.salt.pepper", (r".*\.(e|f)", r".*\.n")),
    (0.12, "message.key.columns", (r"(.*)\.t1:a;(.*)\.t2:b,c", r".*:id", r"(.*)\.(t1|t2|t3):Name")),
    (0.1, "column.exclude.list", (r".*\.(a|b|status)", r".*\.data")),
    (0.1, "table.exclude.list", (r".*\.t7", r".*\.T4,.*\.t2")),
    (0.06, "column.include.list", (r".*\.(id|ID|a|b|c|d|v|Name|zz)",)),
    (0.06, "table.include.list", (r".*\.(t1|t2|t3|T4|zz_end)", r".*\.t.*,.*\.zz_end")),
    (0.06, "column.mask.with.0.chars", (r".*\.val",)),
    (0.06, "column.mask.hash.MD5.with.salt.s", (r".*\.(a|ts)",)),
    (0.06, "min.row.count.to.stream.results", ("0", "1")),
    (0.06, "database.initial.statements", ("SET SESSION sort_buffer_size = 1000000",)),
    (0.06, "topic.regex", (r"(.*)\.(t1|t2)$",)),
    (0.1, "snapshot.mode", ("no_data", "initial")),
    (0.1, "snapshot.locking.mode", ("extended", "none")),
    (0.25, "value.converter.schemas.enable", ("false",)),
    (0.1, "value.converter.decimal.format", ("NUMERIC",)),
    (0.1, "value.converter.replace.null.with.default", ("false",)),
    (0.06, "topic.naming.strategy", ("io.debezium.schema.SchemaTopicNamingStrategy",
                                     "io.debezium.schema.DefaultUnicodeTopicNamingStrategy")),
)  # fmt: skip
_TRANSFORMS: tuple[dict[str, str], ...] = (
    {"transforms": "x", "transforms.x.type": _EXTRACT},
    {
        "transforms": "x",
        "transforms.x.type": _EXTRACT,
        "transforms.x.delete.tombstone.handling.mode": "rewrite",
        "transforms.x.add.fields": "op,table,source.pos",
        "transforms.x.add.headers": "db,op",
    },
    {
        "transforms": "x",
        "transforms.x.type": _EXTRACT,
        "transforms.x.delete.tombstone.handling.mode": "tombstone",
        "transforms.x.replace.null.with.default": "false",
    },
    {
        "transforms": "z",
        "transforms.z.type": "io.debezium.transforms.TimezoneConverter",
        "transforms.z.converted.timezone": "+05:30",
    },
    {
        "transforms": "r",
        "transforms.r.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.r.exclude": "transaction",
    },
    {
        "transforms": "i,m",
        "transforms.i.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.i.static.field": "static",
        "transforms.i.static.value": "here",
        "transforms.m.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.m.regex": "(.*)t([0-9])",
        "transforms.m.replacement": "$1table$2",
    },
    {
        "transforms": "l",
        "transforms.l.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.l.topic.regex": r"(.*)\.(t1|t2|t3)",
        "transforms.l.topic.replacement": "$1.together",
    },
)


def choose(rng: random.Random, *, mariadb: bool = False) -> dict[str, str]:
    """A choice of properties, which is empty in one of four cases."""
    if rng.random() < 0.25:
        return {}
    found = {name: rng.choice(values) for chance, name, values in _CHOICES if rng.random() < chance * 0.7}
    if "value.converter.decimal.format" in found or "value.converter.replace.null.with.default" in found:
        found.setdefault("value.converter.schemas.enable", "true")
    if rng.random() < 0.12:
        found |= rng.choice(_TRANSFORMS)
    if mariadb and found.get("time.precision.mode") == "nanoseconds":
        del found["time.precision.mode"]  # Debezium 3.5 lets them wrap around outside 1677 to 2262, in keys too
    if "topic.regex" in found:
        found |= {"topic.naming.strategy": _REGEX, "topic.replacement": "$1.merged"}
    for kind in ("column", "table"):
        if f"{kind}.include.list" in found:
            found.pop(f"{kind}.exclude.list", None)
    if "column.propagate.source.type" in found or "datatype.propagate.source.type" in found:
        for name in [name for name in found if name.startswith("column.mask.hash")]:
            del found[name]  # Debezium does not mask a column that is to be hashed and whose type is propagated
    for side in ("key", "value"):
        own = [name for name in found if name.startswith(f"{side}.converter.")]
        if own:
            found[f"{side}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
    return found
