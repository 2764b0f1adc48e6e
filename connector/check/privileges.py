"""The privileges of an account, parsed from ``SHOW GRANTS``; pure.

The server lists the privileges of active roles with the account's own. MySQL's partial revokes and wildcards in the
names of databases are supported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = r"(?:`(?:[^`]|``)*`|\*|[\w$%]+)"
_GRANT = re.compile(
    rf"(?P<verb>GRANT|REVOKE) (?P<what>.+?) ON (?:TABLE )?(?P<database>{_NAME})\.(?P<table>{_NAME}) (?:TO|FROM) ",
    re.DOTALL,
)
_ROLE = re.compile(r"GRANT (?P<roles>(?:[`'][^`']*[`'](?:@[`'][^`']*[`'])?,? ?)+) TO ")
_SYNONYMS = {  # MariaDB's names since 10.5
    "BINLOG MONITOR": "REPLICATION CLIENT",
    "REPLICA MONITOR": "SLAVE MONITOR",
    "REPLICATION REPLICA": "REPLICATION SLAVE",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on a part of the server.

    Attributes:
        revoked: whether this is a partial revoke of MySQL, which withdraws global privileges here.
        names: MySQL's names of the privileges, in upper case; ``ALL PRIVILEGES`` stands for all.
        database: a name or a pattern with ``%`` and ``_``; ``*`` for all.
        table: a name, or ``*`` for all.
    """

    revoked: bool
    names: frozenset[str]
    database: str
    table: str

    def covers(self, database: str | None, table: str | None) -> bool:
        """Return whether the grant applies to an object.

        ``None`` stands for the whole server, or the whole database.
        """
        if self.database == "*":
            return True
        if database is None or not _like(self.database, database):
            return False
        return self.table == "*" or (table is not None and self.table == table)


@dataclass(frozen=True, slots=True)
class Privileges:
    """The privileges of an account.

    Attributes:
        grants: the grants in the server's order.
        roles: the roles granted to the account; the privileges of active ones are among ``grants``.
    """

    grants: tuple[Grant, ...]
    roles: tuple[str, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "Privileges":
        """Parse the rows of ``SHOW GRANTS``; rows that are neither privileges nor roles are ignored."""
        grants: list[Grant] = []
        roles: list[str] = []
        for line in lines:
            if match := _GRANT.match(line):
                grants.append(
                    Grant(
                        match["verb"] == "REVOKE",
                        frozenset(_names(match["what"])),
                        _unquoted(match["database"]),
                        _unquoted(match["table"]),
                    )
                )
            elif match := _ROLE.match(line):
                roles += [role.strip() for role in match["roles"].split(",")]
        return cls(tuple(grants), tuple(roles))

    def has(self, name: str, database: str | None = None, table: str | None = None) -> bool:
        """Return whether the account has a privilege on the whole server, on a database, or on a table.

        A privilege on some columns is not one on the table.
        """
        sufficient = {name, "ALL PRIVILEGES", "ALL"}
        if any(
            grant.revoked and grant.covers(database, table) and grant.names & sufficient
            for grant in self.grants
            if database is not None
        ):
            return False
        return any(
            grant.covers(database, table) and grant.names & sufficient for grant in self.grants if not grant.revoked
        )

    def has_any(self, *names: str) -> bool:
        """Return whether the account has one of several privileges on the whole server."""
        return any(self.has(name) for name in names)


def _names(text: str) -> Iterable[str]:
    plain = re.sub(r"`(?:[^`]|``)*`", "", text)
    for item in re.split(r",(?![^(]*\))", plain):
        name = " ".join(item.split()).upper()
        if "(" not in name:
            yield _SYNONYMS.get(name, name)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _like(pattern: str, name: str) -> bool:
    """Match like MySQL's LIKE, with the backslash as its escape character."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            out.append(re.escape(pattern[at]))
        else:
            out.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
        at += 1
    return re.fullmatch("".join(out), name, re.DOTALL) is not None
