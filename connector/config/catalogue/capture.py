"""Properties: captured databases, tables and columns, keys, operations, GTID sources."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, escaped_names, helper_names, names, patterns, text
from rowtide.connector.config.catalogue.property import Family, Property
from rowtide.connector.config.choices import CascadedChanges
from rowtide.topics.online_schema_change import WELL_KNOWN_HELPERS

TITLE = "What to capture"

DATABASE_INCLUDE = Property(
    "database.include.list",
    patterns(),
    None,
    "Regular expressions for the databases to capture. The lists of this section are comma-separated; an expression "
    "must match the whole name, ignoring the case of ASCII letters.",
)
DATABASE_EXCLUDE = Property(
    "database.exclude.list", patterns(), None, "Regular expressions for the databases not to capture."
)
TABLE_INCLUDE = Property(
    "table.include.list", patterns(), None, "Regular expressions for the tables to capture, on `database.table`."
)
TABLE_EXCLUDE = Property(
    "table.exclude.list", patterns(), None, "Regular expressions for the tables not to capture, on `database.table`."
)
COLUMN_INCLUDE = Property(
    "column.include.list",
    patterns(),
    None,
    "Regular expressions for the columns to publish, on `database.table.column`. A key always has all its columns.",
)
COLUMN_EXCLUDE = Property(
    "column.exclude.list",
    patterns(),
    None,
    "Regular expressions for the columns not to publish, on `database.table.column`.",
)
IGNORE_BUILTIN = Property(
    "table.ignore.builtin",
    boolean(),
    True,
    "Exclude the server's own databases: mysql, performance_schema, sys, information_schema.",
)
ONLINE_SCHEMA_CHANGE = Property(
    "rowtide.online.schema.change.tables",
    helper_names(),
    WELL_KNOWN_HELPERS,
    "The helper tables of online schema changes, whose rows are not captured: `well-known` for the names of gh-ost, "
    "pt-online-schema-change and Spirit, and regular expressions for further names, each with one group for the name "
    "of the table that is changed, such as `_(.+)_shadow`; or `none`. A table is a helper table only if there is that "
    "other table, and not if `table.include.list` names it exactly.",
)
MESSAGE_KEY_COLUMNS = Property(
    "message.key.columns",
    text(separator=";"),
    "",
    "The columns of the record key instead of those of the primary key: `database.table:column,column;…`, all of them "
    "regular expressions.",
)
SKIPPED_OPERATIONS = Property(
    "skipped.operations",
    names(),
    ("t",),
    "Operations without records: any of c (insert), u (update), d (delete), t (truncate), or none.",
    default_text="t",
    exact=("none",),
)
SKIP_UNCHANGED = Property(
    "skip.messages.without.change",
    boolean(),
    False,
    "Publish no record for an update that changes no published column.",
)
CASCADED_CHANGES = Property(
    "rowtide.cascaded.changes",
    choice(CascadedChanges),
    CascadedChanges.IGNORE,
    "What to do about rows that foreign keys delete or change and that the server does not log (MySQL before 9.6, "
    "MariaDB): ignore, or derive: ON DELETE CASCADE gives deletes with the header `rowtide.derived` where the foreign "
    "key is the child's primary key; all other such foreign keys are refused. Needs "
    "`binlog.row.image.minimal.allowed=true`, because derived deletes have the key only.",
)
GTID_INCLUDES = Property(
    "gtid.source.includes",
    patterns(),
    None,
    "Regular expressions for the sources (server UUIDs; MariaDB: `domain-server`) whose GTIDs are considered in the "
    "position. A server that lacks transactions of other sources can then be read.",
)
GTID_EXCLUDES = Property(
    "gtid.source.excludes",
    patterns(),
    None,
    "Regular expressions for the sources whose GTIDs are ignored.",
)
GTID_FILTER_DML = Property(
    "gtid.source.filter.dml.events",
    boolean(),
    True,
    "Publish no rows from ignored sources; if false, these sources are ignored in the position only. Statements that "
    "change structures are processed from all sources.",
)
GTID_IGNORE_ON_RECOVERY = Property(
    "gtid.ignore.on.recovery",
    boolean(),
    False,
    "Start from the stored file and position even if the server has GTIDs.",
)
SIGNAL_COLLECTION = Property(
    "signal.data.collection",
    escaped_names(),
    (),
    "The table, as `database.table`, whose rows are signals to the connector. It is captured regardless of the lists.",
    default_text="",
)
COLUMN_TRUNCATE = Family(
    "column.truncate.to.<length>.chars",
    r"column\.truncate\.to\.\d+\.chars",
    "Regular expressions for text columns that are truncated to that many characters, on `database.table.column`.",
)
COLUMN_MASK = Family(
    "column.mask.with.<length>.chars",
    r"column\.mask\.with\.\d+\.chars",
    "Regular expressions for columns whose values are replaced by that many asterisks.",
)
COLUMN_HASH = Family(
    "column.mask.hash[.v2].<algorithm>.with.salt.<salt>",
    r"column\.mask\.hash\.(?:v2\.)?[^.]+\.with\.salt\.(?s:.*)",
    "Regular expressions for text columns whose values are replaced by a salted hash; v2 is portable, the older "
    "version hashes the value as Java serializes it.",
)
