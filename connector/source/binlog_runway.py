"""Computes how long the server keeps the binlog file that a stored position needs.

A server deletes its oldest files when it begins a new one: by their age (``binlog_expire_logs_seconds``), which counts
from the last event of a file, and by the size of all files (``max_binlog_total_size`` of MariaDB 11.4, the same as
``binlog_space_limit`` of Percona Server). Files that a connected replica reads stay, and MariaDB may wait for replicas
(``slave_connections_needed_for_purge``); a connector that is stopped cannot rely on either, so neither counts here.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import pymysql

from rowtide.connector.config import Configuration
from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol.header import HEADER
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import Client
from rowtide.connector.source.position.check import check_position
from rowtide.connector.source.search.places import ServerFiles
from rowtide.connector.source.server_queries import DENIED, GONE, binlog_files

_DAY_S = 86_400
_AGES = {"binlog_expire_logs_seconds": 1, "expire_logs_days": _DAY_S}
_SIZES = ("max_binlog_total_size", "binlog_space_limit")
_SWITCH = "binlog_expire_logs_auto_purge"
_VARIABLES = (*_AGES, *_SIZES, _SWITCH, "basedir")
_RDS_BASE = "/rdsdbbin/"
_RDS_HOURS = "binlog retention hours"


class RetentionUnknown(ConnectorError):
    """The account is not allowed to see how long the server keeps its binlog."""


class Limit(NamedTuple):
    """A limit of the binlog.

    Attributes:
        value: seconds or bytes.
        setting: the server's setting and its value.
    """

    value: float
    setting: str


@dataclass(frozen=True, slots=True)
class BinlogRetention:
    """The limits by which a server deletes its binlog.

    Attributes:
        age: the age of the last event of a file, in seconds; ``None`` for no limit.
        size: the size of all files, in bytes; ``None`` for no limit.
    """

    age: Limit | None = None
    size: Limit | None = None


@dataclass(frozen=True, slots=True)
class Runway:
    """The minimum time for which the server keeps the binlog file of a position.

    Attributes:
        file: the file.
        seconds: the seconds until the server may delete it; 0 if it may do so now, or has done so; ``None`` if it never
            deletes it automatically.
        retention_s: the same for a position at the end of the binlog; ``None`` if there is no limit.
        reason: the setting that limits it, or the reason why the server does not have the position.
    """

    file: str
    seconds: float | None = None
    retention_s: float | None = None
    reason: str = "the server does not delete binlog files automatically"

    @property
    def short(self) -> bool:
        """Whether it is at most a day, and at most half of that of a position at the end of the binlog."""
        if self.seconds is None:
            return False
        return self.seconds <= min(_DAY_S, _DAY_S if self.retention_s is None else self.retention_s / 2)

    @property
    def text(self) -> str:
        """The runway in words."""
        if self.seconds is None:
            return self.reason
        if not self.seconds:
            return f"the server may delete {self.file} at any moment, or has done so ({self.reason})"
        return f"the server keeps {self.file} for {self.seconds / 3600:,.1f} hours at least ({self.reason})"


def kept_age(value: Callable[[str], str | None]) -> Limit | None:
    """Return how long files are kept by their age, in seconds; ``None`` for no limit.

    Args:
        value: returns the value of a global variable; ``None`` if the server does not have it.
    """
    if (value(_SWITCH) or "").upper() == "OFF":
        return None
    for name, unit in _AGES.items():
        text = value(name)
        if text and float(text):
            return Limit(float(text) * unit, f"{name}={text}")
    return None


def kept_size(value: Callable[[str], str | None]) -> Limit | None:
    """Return how many bytes of files are kept; arguments and result are those of :func:`kept_age`."""
    for name in _SIZES:
        text = value(name)
        if text and int(text):
            return Limit(int(text), f"{name}={text}")
    return None


def runway(
    files: Sequence[tuple[str, int]], file: str, retention: BinlogRetention, started: Callable[[str], float], now: float
) -> Runway | None:
    """Compute how long the server keeps a file. Pure.

    The age of a file counts from its last event, which is about when the next file began; the file that is being
    written counts as if it ended now. By size, the rate at which the server has written since the file began counts.

    Args:
        files: names and sizes of the server's files, oldest first.
        file: the file.
        retention: the server's settings.
        started: returns when a file began, in seconds since the epoch by the server's clock.
        now: the server's time.

    Returns:
        ``None`` if the server does not have the file.
    """
    names = [name for name, _ in files]
    if file not in names:
        return None
    place = names.index(file)
    found: list[tuple[float, float, str]] = []
    if retention.age is not None:
        ended = now if file == names[-1] else started(names[place + 1])
        found.append((ended + retention.age.value - now, retention.age.value, retention.age.setting))
    if retention.size is not None:
        since = sum(size for _, size in files[place:])
        rate = max(1, since) / max(1.0, now - started(file))
        found.append(((retention.size.value - since) / rate, retention.size.value / rate, retention.size.setting))
    if not found:
        return Runway(file)
    seconds, full, setting = min(found)
    return Runway(file, max(0.0, seconds), full, setting)


class RunwayQuery:
    """Queries a server for the runway of positions. Results about files are cached for the next query.

    Args:
        config: the connection settings, and the GTIDs that count.
    """

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._mariadb = config.mariadb
        self._started: dict[str, float] = {}

    def ask(self, client: Client, offset: SourceOffset, files: Sequence[tuple[str, int]] | None = None) -> Runway:
        """Return the runway of a position.

        Args:
            client: a connection to the server.
            offset: the position.
            files: names and sizes of the server's files, if they are known.

        Raises:
            ConnectorError: the connection is lost, or the server does not send the first event of a file.
            RetentionUnknown: the account is not allowed to see the setting.
            pymysql.MySQLError: the server refuses a query.
        """
        listed = binlog_files(client) if files is None else files
        kept = dict(listed)
        self._started = {name: at for name, at in self._started.items() if name in kept}
        now = float(client.fetch("SELECT UNIX_TIMESTAMP()")[0][0])
        found = runway(listed, offset.file, retention(client), lambda file: self._start(listed, file), now)
        if found is not None:
            return found
        check = check_position(client, offset, self._config.capture.gtid_sources, mariadb=self._mariadb)
        if not check.available:
            return Runway(offset.file, 0.0, None, check.reason)
        # By its GTIDs, the server has it in files with other names: it is not the server of the position.
        raise RetentionUnknown(f"the position belongs to another server: this one has no file {offset.file}")

    def _start(self, files: Sequence[tuple[str, int]], file: str) -> float:
        if file not in self._started:
            with closing(ServerFiles(self._config.database, files, mariadb=self._mariadb).events(file)) as events:
                self._started[file] = float(HEADER.unpack_from(next(events))[0])
        return self._started[file]


def retention(client: Client) -> BinlogRetention:
    """Read how long the server keeps its binlog.

    On Amazon RDS, the service deletes the files by ``binlog retention hours`` (``mysql.rds_set_configuration``), and
    the server's variables are meaningless.

    Raises:
        RetentionUnknown: the account is not allowed to see the setting.
        ConnectorError: the connection is lost.
        pymysql.MySQLError: the server refuses a query.
    """
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    rows = client.fetch(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    values: Mapping[str, str] = {str(name).lower(): str(text) for name, text in rows}
    if values.get("basedir", "").startswith(_RDS_BASE):
        return BinlogRetention(_kept_by_rds(client))
    return BinlogRetention(kept_age(values.get), kept_size(values.get))


def _kept_by_rds(client: Client) -> Limit:
    try:
        rows = client.fetch(f"SELECT value FROM mysql.rds_configuration WHERE name = '{_RDS_HOURS}'")
    except pymysql.MySQLError as error:
        if error.args[0] not in DENIED | GONE:
            raise
        raise RetentionUnknown(
            f"the server runs on Amazon RDS, and its {_RDS_HOURS!r} cannot be read: {error.args[-1]}. Grant the user "
            "SELECT on mysql.rds_configuration"
        ) from error
    hours = rows[0][0] if rows else None
    return Limit(float(hours or 0) * 3600, f"{_RDS_HOURS}={'NULL' if hours is None else hours}")
