"""The XA transactions that are prepared on the server."""

import re
from collections.abc import Iterable

import pymysql

from rowtide.connector.errors import SnapshotError
from rowtide.connector.protocol.events.classes import xid_text
from rowtide.connector.source.server_queries import DENIED
from rowtide.connector.source.session import Session

_XA_DENIED = frozenset({*DENIED, 1401})  # MySQL answers ER_XAER_RMERR without XA_RECOVER_ADMIN
_END_TRIES, _END_WAIT_S = 10, 0.3
_LITERAL = re.compile(r"(X?)'([^']*)'")


def prepared_transactions(session: Session) -> tuple[str, ...] | None:
    """Return the identifiers of the prepared XA transactions, as ``XA COMMIT`` names them in the binlog.

    Returns:
        ``None`` if the account may not list them, and none was prepared since the server was started.

    Raises:
        SnapshotError: the account may not list them, and some were prepared since the server was started.
    """
    try:
        rows = session.query("XA RECOVER FORMAT='SQL'" if session.mariadb else "XA RECOVER CONVERT XID")
    except pymysql.MySQLError as error:
        if error.args[0] not in _XA_DENIED:
            raise
        ((_, count),) = session.query("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")
        if int(count):
            raise SnapshotError(
                f"applications use XA transactions (Com_xa_prepare is {count}), and the account may not list those "
                f"that are prepared: {error.args[-1]}. Their changes would be missing. GRANT XA_RECOVER_ADMIN ON *.* "
                "to the account of database.user"
            ) from error
        return None
    return tuple(_xid(int(row[0]), int(row[1]), str(row[3])) for row in rows)


def await_ends(session: Session, xids: Iterable[str]) -> set[str]:
    """Wait a few seconds for XA transactions to end, and return those that are still prepared.

    Most of them are prepared only for a moment. The binlog has no trace of one that has changed nothing, so only its
    end proves that none of its changes are missing.
    """
    left = {*xids}
    for _ in range(_END_TRIES):
        left &= {*(prepared_transactions(session) or ())}
        if not left:
            break
        session.execute(f"DO SLEEP({_END_WAIT_S})")
    return left


def _xid(format_id: int, gtrid_length: int, data: str) -> str:
    """Return an XA identifier in the form of the binlog.

    Args:
        format_id: the last part of the identifier.
        gtrid_length: bytes of the first part.
        data: the first two parts: MySQL's ``0x…``, or MariaDB's string literals, hexadecimal if necessary.
    """
    if data.startswith("0x"):
        name = bytes.fromhex(data[2:])
    else:
        name = b"".join(bytes.fromhex(text) if mark else text.encode() for mark, text in _LITERAL.findall(data))
    return xid_text(name[:gtrid_length], name[gtrid_length:], format_id)
