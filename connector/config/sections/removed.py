"""Names that Debezium once had, each with what to write today."""

import re

_H = "schema.history.internal"

REMOVED = {
    "database.server.name": "it was renamed in Debezium 2.0: use topic.prefix",
    "database.whitelist": "it was renamed: use database.include.list",
    "database.blacklist": "it was renamed: use database.exclude.list",
    "table.whitelist": "it was renamed: use table.include.list",
    "table.blacklist": "it was renamed: use table.exclude.list",
    "column.whitelist": "it was renamed: use column.include.list",
    "column.blacklist": "it was renamed: use column.exclude.list",
    "database.history.store.only.monitored.tables.ddl": f"it was renamed: use {_H}.store.only.captured.tables.ddl",
    "sanitize.field.names": "it was replaced in Debezium 2.0: use field.name.adjustment.mode=avro",
    "gtid.new.channel.position": "it was removed in Debezium 1.5: new sources are read from their beginning",
    "snapshot.new.tables": "it was removed in Debezium 1.9: new tables are read by signals (incremental snapshots)",
    "internal.implementation": "it was removed in Debezium 2.0",
    "snapshot.minimal.locks": "it was replaced: use snapshot.locking.mode=minimal or extended",
    "schema.include.list": "MySQL's schemas are databases: use database.include.list",
    "schema.exclude.list": "MySQL's schemas are databases: use database.exclude.list",
    "database.dbname": "it is a property of other connectors: use database.include.list",
    "database.names": "it is a property of other connectors: use database.include.list",
    "slot.name": "it is a property of the PostgreSQL connector",
    "plugin.name": "it is a property of the PostgreSQL connector",
    "interval.handling.mode": "it is a property of the PostgreSQL connector",
}

_PREFIXES = ((re.compile(r"database\.history(\..*|$)"), _H),)


def replacement_for(name: str) -> str | None:
    """What to write instead of a name that is gone, or ``None`` if Debezium never had it."""
    if name in REMOVED:
        return REMOVED[name]
    for pattern, prefix in _PREFIXES:
        if match := pattern.fullmatch(name):
            return f"it was renamed in Debezium 2.0: use {prefix}{match[1]}"
    return None
