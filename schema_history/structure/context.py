"""Everything that determines the effect of a statement except its text: server, session variables, default database."""

import re
from dataclasses import dataclass, field

from rowtide.schema_history.ddl.lexer import MAXDB, NO_BACKSLASH_ESCAPES, ORACLE, Dialect
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

# flags2 of MariaDB's Query events: OPTION_EXPLICIT_DEF_TIMESTAMP.
_MARIADB_EXPLICIT_TIMESTAMP = 1 << 24


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one statement.

    Attributes:
        server: the server.
        dialect: the dialect of its text.
        database: the default database, ``""`` if none.
        explicit_timestamp: ``explicit_defaults_for_timestamp``.
        server_collation: the default collation of new databases.
        client_charset: the character set of the statement's bytes.
        connection_charset: the character set of its strings.
        collations: default collations of character sets that the session has changed.
    """

    server: Server
    dialect: Dialect
    database: str = ""
    explicit_timestamp: bool = True
    server_collation: str = ""
    client_charset: str = "utf8mb4"
    connection_charset: str = "utf8mb4"
    collations: dict[str, str] = field(default_factory=dict)

    @property
    def flavor(self) -> Flavor:
        """MySQL or MariaDB."""
        return self.server.flavor

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return self.server.flavor is Flavor.MARIADB

    def default_collation(self, charset: str) -> str:
        """Return the default collation of a character set."""
        changed = self.collations.get(charset)
        if changed is not None:
            return changed
        return charsets.default_collation(charset, self.flavor, self.server.version_number)

    def string_bytes(self, text: str) -> bytes:
        """Return the bytes of a string in the statement: both servers convert it to the connection's character set."""
        if self.connection_charset in ("binary", self.client_charset):
            return text.encode(charsets.codec(self.client_charset), "surrogateescape")
        kept = charsets.representable(text, self.connection_charset)
        return kept.encode(charsets.codec(self.connection_charset), "replace")

    def string_text(self, text: str, charset: str | None) -> str:
        """Return a string of the statement as stored in a column of a character set.

        If the connection's character set is ``binary``, the column takes over the bytes of the statement. Otherwise the
        conversion can lose characters.
        """
        if self.connection_charset != "binary":
            return charsets.representable(text, self.connection_charset)
        if charset is None or charset == self.client_charset:
            return text
        return charsets.decoded(self.string_bytes(text), charset, marks_bytes=self.mariadb)


def client_charset(event: QueryEvent, flavor: Flavor) -> str:
    """Return the character set of the statement's bytes."""
    if event.charset is None:
        return "utf8mb4"
    name = charsets.collation_name(event.charset[0], flavor)
    return charsets.charset_of(name) if name else "utf8mb4"


def connection_charset(event: QueryEvent, flavor: Flavor) -> str:
    """Return the character set of the statement's strings."""
    name = charsets.collation_name(event.charset[1], flavor) if event.charset is not None else None
    return charsets.charset_of(name) if name else "utf8mb4"


# Statements that the server rewrites: CREATE TABLE ... SELECT, and tables with a generated invisible primary key
_SERVERS_OWN = re.compile(
    rb"(?s)CREATE (?:OR REPLACE )?(?:TEMPORARY )?TABLE (?:IF NOT EXISTS )?[`\"].*[`\"] \(\n  [`\"].*\n\).*"
)


def _is_servers_own(event: QueryEvent) -> bool:
    data = event.sql if isinstance(event.sql, bytes) else event.sql.encode("utf-8", "surrogateescape")
    return _SERVERS_OWN.fullmatch(data) is not None


def statement_text(event: QueryEvent, flavor: Flavor) -> str:
    """Return the statement's text. Bytes that are invalid in the client character set become surrogates.

    A text that the server has rewritten is in UTF-8, whatever the event's client character set is.
    """
    codec = charsets.codec(client_charset(event, flavor))
    if codec == "utf_8" or event.sql.isascii():
        return event.sql if isinstance(event.sql, str) else event.sql.decode("utf_8", "surrogateescape")
    try:
        data = event.sql if isinstance(event.sql, bytes) else event.sql.encode(codec, "surrogateescape")
        if _SERVERS_OWN.fullmatch(data):
            return data.decode("utf_8")
    except UnicodeError:
        pass  # not rewritten by the server after all
    return event.sql if isinstance(event.sql, str) else event.sql.decode(codec, "surrogateescape")


def context_of(event: QueryEvent, server: Server) -> Context:
    """Return the context of an event, with the server's defaults for settings that the event lacks."""
    sql_mode = event.sql_mode or 0
    client, connection = client_charset(event, server.flavor), connection_charset(event, server.flavor)
    if _is_servers_own(event):
        sql_mode &= ~(NO_BACKSLASH_ESCAPES | MAXDB | ORACLE)
        client = connection = "utf8mb4"
    dialect = Dialect(server.flavor, server.version_number, sql_mode)
    explicit = server.explicit_defaults_for_timestamp
    if server.flavor is Flavor.MARIADB and event.flags2 is not None:
        explicit = bool(event.flags2 & _MARIADB_EXPLICIT_TIMESTAMP)
    elif event.explicit_defaults_for_timestamp is not None:
        explicit = event.explicit_defaults_for_timestamp
    server_collation = server.collation
    if event.charset is not None:
        server_collation = charsets.collation_name(event.charset[2], server.flavor) or server_collation
    if not server_collation:
        server_collation = "utf8mb4_general_ci" if server.flavor is Flavor.MARIADB else "utf8mb4_0900_ai_ci"
    return Context(
        server,
        dialect,
        event.database,
        explicit,
        server_collation,
        client,
        connection,
        _session_collations(event, server.flavor),
    )


def _session_collations(event: QueryEvent, flavor: Flavor) -> dict[str, str]:
    changed = {}
    if event.default_collation_for_utf8mb4 is not None:
        name = charsets.collation_name(event.default_collation_for_utf8mb4, flavor)
        if name:
            changed["utf8mb4"] = name
    for _, number in event.character_set_collations:
        name = charsets.collation_name(number, flavor)
        if name:
            changed[charsets.charset_of(name)] = name
    return changed
