"""Edge: reads Canal's configuration: ``canal.properties``, and ``NAME/instance.properties`` of each destination.

Properties of instances in ``canal.properties`` are defaults for all instances. ``${name:default}`` stands for a
variable of the environment, or for its default. All problems of all files are reported at once.
"""

import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rowtide.canal.instance.filters import EntryFilter, TablePatterns
from rowtide.canal.instance.properties import INSTANCE, SERVER, problems_and_notes
from rowtide.canal.instance.sink import EntryKinds
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.files.files import read_file
from rowtide.connector.config.secret import Secret
from rowtide.topics.java_regex import InvalidPatternError

SERVER_FILE, INSTANCE_FILE = "canal.properties", "instance.properties"
_NO_INSTANCES = {"spring", "metrics"}
"""Folders of Canal's own beside those of the destinations."""
_PLACEHOLDER = re.compile(r"\$\{([^}:]+)(?::([^}]*))?\}")
_MYSQL_PORT = 3306
_SSL_MODES = {"DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server.

    Attributes:
        host: the address on which it listens; ``""`` for all.
        port: the port; 0 for a free one.
        credentials: which clients are admitted.
        data: the folder of ``meta.dat`` files; each destination has a folder of its own in it.
        flush_s: how often positions of clients are written, in seconds.
        scan_s: how often the folder is scanned for destinations that appear, change or vanish; ``None`` for never.
        destinations: those of ``canal.destinations``, which have to exist.
    """

    host: str
    port: int
    credentials: Credentials
    data: Path
    flush_s: float
    scan_s: float | None
    destinations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where an instance begins if its clients have no position.

    Attributes:
        file: binlog file; ``""`` for the current end of the binlog, or by time.
        pos: position in it.
        ts_ms: the time of the first transaction that is wanted, in milliseconds since the epoch; 0 for none.
        gtid: the executed GTID set; ``""`` for none.
    """

    file: str
    pos: int
    ts_ms: int
    gtid: str


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """The settings of an instance.

    Attributes:
        destination: its name.
        host: of the server.
        port: of the server.
        user: of the server.
        password: of the server.
        ssl_mode: Debezium's ``database.ssl.mode``.
        server_id: of the replica.
        slave_id: ``canal.instance.mysql.slaveId``; -1 if none is set.
        start: where it begins without positions of clients.
        gtids: ``canal.instance.gtidon``.
        filter: the tables.
        kinds: the kinds of entries that clients see.
        mode: what fetch sizes count.
        buffer_size: how many entries are kept for clients.
        isolate_ddl: whether DDL has a batch of its own.
        skip_broken_tables: leave out rows that do not fit the structure of their table, with a warning.
    """

    destination: str
    host: str
    port: int
    user: str
    password: Secret
    ssl_mode: str
    server_id: int
    slave_id: int
    start: StartPosition
    gtids: bool
    filter: EntryFilter
    kinds: EntryKinds
    mode: BatchMode
    buffer_size: int
    isolate_ddl: bool
    skip_broken_tables: bool


class _Reader:
    """Reads values of properties, and collects what is wrong."""

    def __init__(self, place: str, values: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        self._place = place
        self._values = {**defaults, **{name: value for name, value in values.items() if value}}
        self.problems: list[Problem] = []

    def problem(self, name: str, message: str) -> None:
        self.problems.append(Problem(f"{self._place}: {name}", message))

    def text(self, name: str) -> str:
        return self._values[name].strip()

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            self.problem(name, "is required")
        return value

    def parsed(self, name: str, parse: Callable[[str], T], otherwise: T) -> T:
        try:
            return parse(self.text(name))
        except (ValueError, InvalidPatternError) as error:
            self.problem(name, str(error))
            return otherwise

    def number(self, name: str, minimum: int = 0, otherwise: int = 0) -> int:
        def parse(text: str) -> int:
            if not text.isascii() or not text.isdigit() or int(text) < minimum:
                raise ValueError(f"must be an integer of at least {minimum}, not {text!r}")
            return int(text)

        return self.parsed(name, parse, otherwise) if self.text(name) else otherwise

    def flag(self, name: str) -> bool:
        def parse(text: str) -> bool:
            if text.lower() not in ("true", "false"):
                raise ValueError(f"must be true or false, not {text!r}")
            return text.lower() == "true"

        return self.parsed(name, parse, otherwise=False)


@dataclass(frozen=True, slots=True)
class CanalConfiguration:
    """A folder of Canal's.

    Attributes:
        server: the settings of the server.
        instances: those of its destinations, by name.
        notes: which properties have no effect, and why.
    """

    server: ServerSettings
    instances: Mapping[str, InstanceSettings]
    notes: tuple[str, ...]


def read_folder(folder: Path, environ: Mapping[str, str] = os.environ) -> CanalConfiguration:
    """Read a folder of Canal's (``conf``).

    Args:
        folder: with ``canal.properties`` and a folder for each destination.
        environ: the environment, for placeholders.

    Raises:
        ConfigurationError: with all problems.
    """
    common = _read(folder / SERVER_FILE, environ)
    server_values = {name: value for name, value in common.items() if not _of_instance(name)}
    problems, notes = problems_and_notes(server_values, SERVER, SERVER_FILE)
    reader = _Reader(SERVER_FILE, common, SERVER)
    server = _server(reader, folder)
    problems += reader.problems
    instances: dict[str, InstanceSettings] = {}
    shared = {name: value for name, value in common.items() if _of_instance(name)}
    more, idle = problems_and_notes(shared, INSTANCE, SERVER_FILE)
    problems, notes = problems + more, notes + idle
    for name in destinations(folder, server.destinations):
        try:
            instances[name], idle = _instance(folder, name, shared, environ)
            notes += idle
        except ConfigurationError as error:
            problems += error.problems
    if not instances and not problems:
        problems.append(Problem(str(folder), f"there is no folder with an {INSTANCE_FILE}"))
    if problems:
        raise ConfigurationError(problems)
    return CanalConfiguration(server, instances, tuple(dict.fromkeys(notes)))


def read_instance(folder: Path, name: str, environ: Mapping[str, str] = os.environ) -> InstanceSettings:
    """Read the settings of one destination again.

    Raises:
        ConfigurationError: with all problems.
    """
    common = _read(folder / SERVER_FILE, environ)
    shared = {key: value for key, value in common.items() if _of_instance(key)}
    return _instance(folder, name, shared, environ)[0]


def destinations(folder: Path, required: tuple[str, ...] = ()) -> list[str]:
    """The names of the destinations in a folder, and those that have to be there."""
    found = {path.parent.name for path in folder.glob(f"*/{INSTANCE_FILE}")} - _NO_INSTANCES
    return sorted(found | set(required))


def _of_instance(name: str) -> bool:
    return name.startswith("canal.instance.")


def _server(reader: _Reader, folder: Path) -> ServerSettings:
    if reader.text("canal.serverMode") != "tcp":
        reader.problem("canal.serverMode", f"only tcp is supported yet, not {reader.text('canal.serverMode')!r}")
    if reader.text("canal.zkServers"):
        reader.problem("canal.zkServers", "clusters by ZooKeeper are not supported yet; leave it empty")
    interval = float(reader.number("canal.auto.scan.interval", 1, 5))
    data = reader.text("canal.file.data.dir").replace("../conf", str(folder)) or str(folder)
    return ServerSettings(
        reader.text("canal.ip"),
        reader.number("canal.port", 0, 11111),
        Credentials(reader.text("canal.user"), reader.text("canal.passwd")),
        Path(data),
        reader.number("canal.file.flush.period", 1, 1000) / 1000,
        interval if reader.flag("canal.auto.scan") else None,
        tuple(name.strip() for name in reader.text("canal.destinations").split(",") if name.strip()),
    )


def _instance(
    folder: Path, name: str, shared: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[InstanceSettings, list[str]]:
    place = f"{name}/{INSTANCE_FILE}"
    own = _read(folder / name / INSTANCE_FILE, environ)
    problems, notes = problems_and_notes(own, INSTANCE, place)
    reader = _Reader(place, {**shared, **{key: value for key, value in own.items() if value}}, INSTANCE)
    host, port = reader.parsed("canal.instance.master.address", _address, ("", _MYSQL_PORT))
    slave_id = reader.number("canal.instance.mysql.slaveId", 1, -1)
    mode = reader.text("canal.instance.memory.batch.mode")
    if mode not in ("MEMSIZE", "ITEMSIZE"):
        reader.problem("canal.instance.memory.batch.mode", f"must be MEMSIZE or ITEMSIZE, not {mode!r}")
    ssl_mode = reader.text("canal.instance.master.sslMode").upper()
    if ssl_mode not in _SSL_MODES:
        reader.problem("canal.instance.master.sslMode", f"must be one of {', '.join(sorted(_SSL_MODES))}")
    unit = reader.number("canal.instance.memory.buffer.memunit", 1, 1024)
    counts_entries = mode == "ITEMSIZE"
    nothing = TablePatterns.parse("")
    settings = InstanceSettings(
        name,
        host,
        port,
        reader.required("canal.instance.dbUsername"),
        Secret(reader.text("canal.instance.dbPassword")),
        ssl_mode.lower(),
        slave_id if slave_id > 0 else _server_id(name, host, port),
        slave_id,
        _start(reader),
        reader.flag("canal.instance.gtidon"),
        EntryFilter(
            reader.parsed("canal.instance.filter.regex", TablePatterns.parse, nothing),
            reader.parsed("canal.instance.filter.black.regex", TablePatterns.parse, nothing),
        ),
        EntryKinds(
            reader.flag("canal.instance.filter.transaction.entry"),
            reader.flag("canal.instance.filter.query.ddl"),
            reader.flag("canal.instance.filter.query.dml"),
            reader.flag("canal.instance.filter.rows"),
            reader.flag("canal.instance.filter.dml.insert"),
            reader.flag("canal.instance.filter.dml.update"),
            reader.flag("canal.instance.filter.dml.delete"),
        ),
        BatchMode(counts_entries, 1 if counts_entries else unit),
        reader.number("canal.instance.memory.buffer.size", 1, 16384),
        reader.flag("canal.instance.get.ddl.isolation"),
        reader.flag("canal.instance.filter.table.error"),
    )
    if problems or reader.problems:
        raise ConfigurationError([*problems, *reader.problems])
    return settings, notes


def _start(reader: _Reader) -> StartPosition:
    prefix = "canal.instance.master."
    return StartPosition(
        reader.text(prefix + "journal.name"),
        reader.number(prefix + "position", 0, 4) or 4,
        reader.number(prefix + "timestamp"),
        reader.text(prefix + "gtid"),
    )


def _server_id(name: str, host: str, port: int) -> int:
    """An id that stays the same, and hardly collides with those of other instances; Canal derives one likewise."""
    return zlib.crc32(f"{name} {host}:{port}".encode()) % 0x7FFF_0000 + 0x1_0000


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", str(_MYSQL_PORT))
    if not host:
        raise ValueError("is required, as host:port")
    return host.strip("[]"), int(port)


def _read(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    def value(match: re.Match[str]) -> str:
        return environ.get(match[1].strip(), match[2] or "")

    return {name: _PLACEHOLDER.sub(value, text) for name, text in read_file(path).properties.items()}
