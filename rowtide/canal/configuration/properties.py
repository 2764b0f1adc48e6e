"""Canal's properties, and how rowtide handles each of them.

Names and defaults are those of Canal 1.1.8 (``canal.properties``, ``instance.properties``).
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from rowtide.connector.config.errors import Problem

SERVER: Mapping[str, str] = {
    "canal.ip": "",
    "canal.port": "11111",
    "canal.user": "",
    "canal.passwd": "",
    "canal.destinations": "",
    "canal.auto.scan": "true",
    "canal.auto.scan.interval": "5",
    "canal.file.data.dir": "",
    "canal.file.flush.period": "1000",
    "canal.serverMode": "tcp",
    "canal.instance.global.mode": "spring",
    "canal.metrics.pull.port": "",
    "canal.tls.certificate": "",
    "canal.tls.key": "",
    "canal.tls.clientCa": "",
    "canal.zkServers": "",
    "canal.zookeeper.flush.period": "1000",
    "canal.register.ip": "",
}
"""Properties of the server that have an effect, with their defaults."""

INSTANCE: Mapping[str, str] = {
    "canal.instance.mysql.slaveId": "",
    "canal.instance.gtidon": "false",
    "canal.instance.master.address": "",
    "canal.instance.master.journal.name": "",
    "canal.instance.master.position": "",
    "canal.instance.master.timestamp": "",
    "canal.instance.master.gtid": "",
    "canal.instance.master.sslMode": "PREFERRED",
    "canal.instance.dbUsername": "",
    "canal.instance.dbPassword": "",
    "canal.instance.filter.regex": r".*\..*",
    "canal.instance.filter.black.regex": "",
    "canal.instance.filter.field": "",
    "canal.instance.filter.black.field": "",
    "canal.instance.filter.transaction.entry": "false",
    "canal.instance.filter.query.ddl": "false",
    "canal.instance.filter.query.dml": "false",
    "canal.instance.filter.rows": "false",
    "canal.instance.filter.dml.insert": "false",
    "canal.instance.filter.dml.update": "false",
    "canal.instance.filter.dml.delete": "false",
    "canal.instance.filter.table.error": "false",
    "canal.instance.get.ddl.isolation": "false",
    "canal.instance.ddl.executable": "false",
    "canal.instance.snapshot": "never",
    "canal.instance.memory.buffer.size": "16384",
    "canal.instance.memory.buffer.memunit": "1024",
    "canal.instance.memory.batch.mode": "MEMSIZE",
}
"""Properties of an instance that have an effect, with their defaults."""

_OWN_HISTORY = "rowtide keeps its own schema history next to the positions"
_ALWAYS = "rowtide does not need it"
WITHOUT_EFFECT: Mapping[str, str] = {
    r"canal\.id|canal\.withoutNetty|canal\.instance\.global\..*|canal\.conf\.dir": _ALWAYS,
    r"canal\.admin\.(?!manager).*": "there is no administration server",
    r"canal\.auto\.reset\.latest\.pos\.mode": "rowtide never skips to the latest position on its own",
    r"canal\.instance\.tsdb\..*": _OWN_HISTORY,
    r"canal\.instance\.parser\..*|canal\.instance\.transaction\.size|canal\.instance\.memory\.rawEntry": _ALWAYS,
    r"canal\.instance\.network\..*": "the operating system sizes buffers, and rowtide chooses its time-outs",
    r"canal\.instance\.detecting\..*": "rowtide notices a lost connection by the binlog's heartbeats",
    r"canal\.instance\.binlog\.(format|image)": "every format and image of rows is read",
    r"canal\.instance\.filter\.(druid\.ddl|query\.dcl)": "rowtide parses statements; GRANT makes no entry",
    r"canal\.instance\.connectionCharset": "texts are decoded with the character set of their column",
    r"canal\.instance\.enableDruid|canal\.instance\.fallbackIntervalInSeconds": _ALWAYS,
    r"canal\.instance\.multi\.stream\.on": "MariaDB's and PolarDB's streams are read as they come",
    r"canal\.aliyun\..*|canal\.instance\.rds\..*": "backups of Alibaba Cloud are not read",
    r"canal\.mq\.(canalGetTimeout|send\.thread\.size|build\.thread\.size)": "messages are sent immediately, in order",
    r"canal\.mq\.(accessChannel|enableDynamicQueuePartition|producerGroup|namespace)": "it belongs to another queue",
    r"rocketmq\..*|rabbitmq\..*|pulsarmq\..*": "messages are sent to Kafka only",
}
"""Patterns of properties that have no effect, and why."""

_OF_KAFKA = r"canal\.mq\..*|kafka\..*"
_PREFIXES = ("canal.", "kafka.", "rocketmq.", "rabbitmq.", "pulsarmq.")

NO_MANAGER = (
    "there is no administration server (canal-admin): the files of this folder would be served instead of its "
    "configuration. Export that to canal.properties and NAME/instance.properties, and "
)
REFUSED: Mapping[str, str] = {
    r"canal\.admin\.manager": NO_MANAGER + "remove this property",
    r"canal\.instance\.standby\..*": "a standby server is not supported; give the address that follows the fail-over",
    r"canal\.instance\.pwdPublicKey": "encrypted passwords are not supported; use canal.instance.dbPassword",
}
"""Patterns of properties that would change what clients see, and cannot be omitted."""


def problems_and_notes(
    properties: Mapping[str, str], known: Mapping[str, str], place: str, *, kafka: bool
) -> tuple[list[Problem], list[str]]:
    """Return the problems with the names of properties, and notes on properties that have no effect.

    Args:
        properties: the properties of a file; empty ones count as absent.
        known: the properties that have an effect.
        place: the file, for messages.
        kafka: whether ``canal.serverMode=kafka``.
    """
    problems, idle = [], []
    for name, value in properties.items():
        if not value or name in known or not name.startswith(_PREFIXES):
            continue
        refusal = _match(REFUSED, name)
        reason = _match(WITHOUT_EFFECT, name)
        if reason is None and not kafka and re.fullmatch(_OF_KAFKA, name):
            reason = "canal.serverMode=tcp"
        if refusal is not None:
            problems.append(Problem(f"{place}: {name}", refusal))
        elif reason is not None:
            idle.append(f"{name} has no effect: {reason}")
        else:
            near = get_close_matches(name, known, 1, 0.8)
            hint = f"did you mean {near[0]}?" if near else "Canal has no such property"
            problems.append(Problem(f"{place}: {name}", f"unknown property; {hint}"))
    return problems, idle


def _match(patterns: Mapping[str, str], name: str) -> str | None:
    return next((reason for pattern, reason in patterns.items() if re.fullmatch(pattern, name)), None)


def idle_by_mode(properties: Mapping[str, str], *, kafka: bool, cluster: bool) -> list[str]:
    """Return notes on the properties of ``canal.properties`` that have an effect only in another mode.

    Args:
        properties: the properties of the file; empty ones count as absent.
        kafka: whether ``canal.serverMode=kafka``.
        cluster: whether ``canal.zkServers`` is set.
    """

    def given(name: str) -> bool:
        return bool(properties.get(name))

    reasons: dict[str, str] = {}
    if kafka:
        unused = ["canal.user", "canal.passwd", "canal.tls.certificate", "canal.tls.key", "canal.tls.clientCa"]
        unused += [] if cluster else ["canal.port"]  # servers of a cluster are known by it
        unused += [] if cluster or given("canal.metrics.pull.port") else ["canal.ip"]
        reasons |= dict.fromkeys(unused, "canal.serverMode=kafka")
        if properties.get("canal.mq.exactlyOnce", "").strip().lower() != "true":
            reasons["canal.mq.offsetsTopic"] = "canal.mq.exactlyOnce=false"
    in_files, in_zookeeper = ("canal.file.data.dir", "canal.file.flush.period"), ("canal.zookeeper.flush.period",)
    if cluster:
        reasons |= dict.fromkeys(in_files, "canal.zkServers is set, and positions are in ZooKeeper")
    else:
        reasons |= dict.fromkeys((*in_zookeeper, "canal.register.ip"), "canal.zkServers is not set")
    if properties.get("canal.auto.scan", "").strip().lower() == "false":
        reasons["canal.auto.scan.interval"] = "canal.auto.scan=false"
    return [f"{name} has no effect: {reason}" for name, reason in reasons.items() if given(name)]
