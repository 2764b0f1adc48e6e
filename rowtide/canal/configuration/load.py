"""Reads Canal's configuration: ``canal.properties``, and ``NAME/instance.properties`` of each destination.

Properties of instances in ``canal.properties`` are defaults for all instances. ``${name:default}`` stands for an
environment variable, or for its default. All problems of all files are reported together.
"""

import os
import re
import zlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from rowtide.canal.configuration.kafka import OF_DESTINATION, OF_SERVER, ignored_properties, kafka_settings, of_kafka
from rowtide.canal.configuration.model import (
    CanalConfiguration,
    ClusterSettings,
    InstanceSettings,
    ServerSettings,
    StartPosition,
    TlsFiles,
)
from rowtide.canal.configuration.properties import INSTANCE, NO_MANAGER, SERVER, idle_by_mode, problems_and_notes
from rowtide.canal.configuration.reader import CanalPropertyReader, read_properties
from rowtide.canal.entries.filters import EntryColumnFilter, EntryFilter, TablePatterns, parse_fields
from rowtide.canal.entries.sink import EntryKinds
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.secret import Secret
from rowtide.topics.addresses import server_problems

SERVER_FILE, INSTANCE_FILE = "canal.properties", "instance.properties"
_NO_INSTANCES = {"spring", "metrics"}
"""Canal's own folders next to those of the destinations."""
_MYSQL_PORT = 3306
_EVERYWHERE = {"0.0.0.0", "::"}
_LOOPBACK = "127.0.0.1"
_SSL_MODES = {"DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"}


def read_folder(folder: Path, environ: Mapping[str, str] = os.environ) -> CanalConfiguration:
    """Read Canal's configuration folder (``conf``).

    Args:
        folder: with ``canal.properties`` and a folder for each destination.
        environ: the environment, for placeholders.

    Raises:
        ConfigurationError: with all problems.
    """
    common = read_properties(folder / SERVER_FILE, environ)
    reader = CanalPropertyReader(SERVER_FILE, common, {**SERVER, **OF_SERVER})
    server = _server(reader, folder)
    own = {
        name: value
        for name, value in common.items()
        if not _of_instance(name) and not (server.kafka and of_kafka(name))
    }
    problems, notes = problems_and_notes(own, SERVER, SERVER_FILE, kafka=server.kafka)
    notes += idle_by_mode(common, kafka=server.kafka, cluster=server.cluster is not None)
    notes += ignored_properties(common) if server.kafka else []
    problems += reader.problems
    instances: dict[str, InstanceSettings] = {}
    known = {**INSTANCE, **(OF_DESTINATION if server.kafka else {})}
    more, idle = problems_and_notes(_shared(common), known, SERVER_FILE, kafka=server.kafka)
    problems, notes = problems + more, notes + idle
    for name in destinations(folder, server.destinations):
        try:
            instances[name], idle = _instance(folder, name, common, environ, kafka=server.kafka)
            notes += idle
        except ConfigurationError as error:
            problems += error.problems
    if not instances and not problems:
        problems.append(Problem(str(folder), f"there is no folder with an {INSTANCE_FILE}"))
    if problems:
        raise ConfigurationError(list(dict.fromkeys(problems)))
    return CanalConfiguration(server, instances, tuple(dict.fromkeys(notes)))


def read_instance(
    folder: Path, name: str, environ: Mapping[str, str] = os.environ, *, kafka: bool = False
) -> InstanceSettings:
    """Read the settings of one destination again.

    Args:
        folder: as for :func:`read_folder`.
        name: of the destination.
        environ: the environment, for placeholders.
        kafka: whether the server is in Kafka mode, which does not change while it runs.

    Raises:
        ConfigurationError: with all problems.
    """
    return _instance(folder, name, read_properties(folder / SERVER_FILE, environ), environ, kafka=kafka)[0]


def server_properties(folder: Path) -> dict[str, str]:
    """Return the properties of ``canal.properties`` that only a start reads, with their defaults.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    own = read_properties(folder / SERVER_FILE, os.environ)
    return {name: own.get(name, "").strip() or default for name, default in SERVER.items()}


def destinations(folder: Path, required: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the destinations in a folder, and of those that must be there."""
    found = {path.parent.name for path in folder.glob(f"*/{INSTANCE_FILE}")} - _NO_INSTANCES
    return sorted(found | set(required))


def _of_instance(name: str) -> bool:
    return name.startswith("canal.instance.") or name in OF_DESTINATION


def _shared(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults of all instances."""
    return {name: value for name, value in properties.items() if _of_instance(name)}


def _server(reader: CanalPropertyReader, folder: Path) -> ServerSettings:
    mode = reader.text("canal.serverMode")
    if mode.lower() not in ("tcp", "kafka"):
        reader.problem("canal.serverMode", f"only tcp and kafka are supported, not {mode!r}")
    instances = reader.text("canal.instance.global.mode").lower()
    if instances == "manager":
        reader.problem("canal.instance.global.mode", NO_MANAGER + "set spring")
    elif instances != "spring":
        reader.problem("canal.instance.global.mode", f"must be spring, not {instances!r}")
    interval = float(reader.number("canal.auto.scan.interval", 1, 5))
    data = reader.text("canal.file.data.dir").replace("../conf", str(folder)) or str(folder)
    cluster = _cluster(reader)
    flush = "canal.zookeeper.flush.period" if cluster else "canal.file.flush.period"
    return ServerSettings(
        mode.lower() == "kafka",
        reader.text("canal.ip") or ("" if cluster else _LOOPBACK),
        reader.number("canal.port", 0, 11111),
        Credentials(reader.text("canal.user"), reader.text("canal.passwd")),
        Path(data),
        reader.number(flush, 1, 1000) / 1000,
        interval if reader.flag("canal.auto.scan") else None,
        reader.number("canal.metrics.pull.port") or None,
        _tls(reader),
        tuple(name.strip() for name in reader.text("canal.destinations").split(",") if name.strip()),
        cluster,
    )


def _cluster(reader: CanalPropertyReader) -> ClusterSettings | None:
    name = "canal.zkServers"
    servers = reader.text(name)
    if not servers:
        return None
    for problem in server_problems(servers.partition("/")[0], "ZooKeeper server"):
        reader.problem(name, problem)
    if find_spec("kazoo") is None:
        reader.problem(name, "needs the package kazoo: pip install 'rowtide[canal]'")
    host = reader.text("canal.register.ip") or reader.text("canal.ip")
    return ClusterSettings(servers, "" if host in _EVERYWHERE else host)


def _tls(reader: CanalPropertyReader) -> TlsFiles | None:
    files = {name: reader.text(f"canal.tls.{name}") for name in ("certificate", "key", "clientCa")}
    for name, path in files.items():
        if path and not Path(path).is_file():
            reader.problem(f"canal.tls.{name}", f"there is no file {path!r}")
        if path and not files["certificate"]:
            reader.problem(f"canal.tls.{name}", "needs canal.tls.certificate")
    if not files["certificate"]:
        return None
    key, client_ca = (Path(files[name]) if files[name] else None for name in ("key", "clientCa"))
    return TlsFiles(Path(files["certificate"]), key, client_ca)


def _instance(
    folder: Path, name: str, common: Mapping[str, str], environ: Mapping[str, str], *, kafka: bool
) -> tuple[InstanceSettings, list[str]]:
    place = f"{name}/{INSTANCE_FILE}"
    own = read_properties(folder / name / INSTANCE_FILE, environ)
    server = CanalPropertyReader(SERVER_FILE, common, {**SERVER, **OF_SERVER})
    known = {**INSTANCE, **(OF_DESTINATION if kafka else {})}
    problems, notes = problems_and_notes(own, known, place, kafka=kafka)
    reader = CanalPropertyReader(
        place, {**_shared(common), **{key: value for key, value in own.items() if value}}, known
    )
    host, port = reader.parsed("canal.instance.master.address", _address, ("", _MYSQL_PORT))
    slave_id = reader.number("canal.instance.mysql.slaveId", 1, -1)
    mode = reader.text("canal.instance.memory.batch.mode")
    if mode not in ("MEMSIZE", "ITEMSIZE"):
        reader.problem("canal.instance.memory.batch.mode", f"must be MEMSIZE or ITEMSIZE, not {mode!r}")
    ssl_mode = reader.text("canal.instance.master.sslMode").upper()
    if ssl_mode not in _SSL_MODES:
        reader.problem("canal.instance.master.sslMode", f"must be one of {', '.join(sorted(_SSL_MODES))}")
    unit = reader.number("canal.instance.memory.buffer.memunit", 1, 1024)
    size = reader.number("canal.instance.memory.buffer.size", 1, 16384)
    if size & (size - 1):
        reader.problem("canal.instance.memory.buffer.size", f"must be a power of 2, as in Canal, not {size}")
    counts_entries = mode == "ITEMSIZE"
    if counts_entries and own.get("canal.instance.memory.buffer.memunit"):
        notes.append("canal.instance.memory.buffer.memunit has no effect: canal.instance.memory.batch.mode=ITEMSIZE")
    if kafka and own.get("canal.instance.filter.transaction.entry"):
        notes.append("canal.instance.filter.transaction.entry has no effect here: that of canal.properties counts")
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
        EntryColumnFilter(
            reader.parsed("canal.instance.filter.field", parse_fields, {}),
            reader.parsed("canal.instance.filter.black.field", parse_fields, {}),
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
        size,
        reader.flag("canal.instance.get.ddl.isolation"),
        reader.flag("canal.instance.ddl.executable"),
        reader.flag("canal.instance.filter.table.error"),
        _snapshot(reader),
        kafka_settings(server, common, reader, name) if kafka else None,
    )
    if problems := [*problems, *reader.problems, *server.problems]:
        raise ConfigurationError(problems)
    return settings, notes


def _snapshot(reader: CanalPropertyReader) -> bool:
    name = "canal.instance.snapshot"
    mode = reader.text(name).lower()
    if mode not in ("never", "initial"):
        reader.problem(name, f"must be never or initial, not {mode!r}")
    start = _start(reader)
    if mode == "initial" and (start.file or start.ts_ms or start.gtid):
        reader.problem(
            name,
            "an initial snapshot begins at the current position; "
            "remove canal.instance.master.journal.name and similar properties",
        )
    return mode == "initial"


def _start(reader: CanalPropertyReader) -> StartPosition:
    prefix = "canal.instance.master."
    return StartPosition(
        reader.text(prefix + "journal.name"),
        reader.number(prefix + "position", 0, 4) or 4,
        reader.number(prefix + "timestamp"),
        reader.text(prefix + "gtid"),
    )


def _server_id(name: str, host: str, port: int) -> int:
    """Return an id that stays the same, and is unlikely to collide with those of other instances.

    Canal derives it in a similar way.
    """
    return zlib.crc32(f"{name} {host}:{port}".encode()) % 0x7FFF_0000 + 0x1_0000


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", str(_MYSQL_PORT))
    if not host:
        raise ValueError("is required, as host:port")
    return host.strip("[]"), int(port)
