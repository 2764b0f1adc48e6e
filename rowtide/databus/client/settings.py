"""The settings of a client, with the original's names in a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rowtide.databus.discovery import ROOT
from rowtide.databus.errors import SettingsError

_NAMES = {
    "brokers": "brokers",
    "zkpath": "zookeeper",
    "nodename": "node_name",
    "topic": "topic",
    "firstload": "first_load",
    "serverip": "server_ip",
    "serverport": "server_port",
    "mirror_enable": "discover_server",
    "keepalivepath": "keep_alive_path",
    "replinfopath": "offset_file",
    "mastername": "master_name",
    "masterpos": "master_pos",
    "zkroot": "zookeeper_root",
    "start": "start",
    "save_on_get": "save_on_get",
    "unreadable": "unreadable",
    "dump_end_marker": "dump_end_marker",
    "kafka": "kafka",
}
"""The settings of a TOML file, and the attributes. The last six are not in the original."""
_WITHOUT_EFFECT = ("logfile", "log_level", "log_dir")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of a client (``Config`` of the original; its TOML names are in parentheses).

    Attributes:
        brokers: Kafka brokers, ``host:port`` (``brokers``).
        topic: the topic; partition 0 is read (``topic``).
        offset_file: the file in which the client stores its position (``replinfopath``).
        first_load: without an offset file, begin with a dump (``firstload``).
        master_name: without an offset file and without a dump, begin at this binlog file (``mastername``) ...
        master_pos: ... and position (``masterpos``); an event must have them as its key.
        start: whether the event at ``master_name`` and ``master_pos`` is the first one (``inclusive``), or the one
            after it (``exclusive``). The original loses this event.
        save_on_get: save the position as soon as an event is returned, as in the original, instead of when the event is
            acknowledged; a crash can then lose the event.
        zookeeper: ZooKeeper servers, ``host:port`` (``zkpath``); for dumps.
        zookeeper_root: the root of the nodes.
        node_name: node of the dump descriptors (``nodename``).
        keep_alive_path: node of the running server (``keepalivepath``).
        discover_server: take the address of the dump server from ZooKeeper (``mirror_enable``).
        server_ip: otherwise, the address of the dump server (``serverip``) ...
        server_port: ... and its port (``serverport``).
        dump_end_marker: a dump must end with the end marker of rowtide's server; set it to false for the original
            server, whose complete dumps cannot be distinguished from truncated ones.
        unreadable: what to do with a message that is not in databus' form: ``fail``, or ``skip`` with a warning.
        kafka: further settings of librdkafka's consumer (``security.protocol``, ``sasl.username`` ...).
    """

    brokers: tuple[str, ...]
    topic: str
    offset_file: Path = Path("Repl.info")
    first_load: bool = False
    master_name: str = ""
    master_pos: int = 0
    start: str = "inclusive"
    save_on_get: bool = False
    zookeeper: tuple[str, ...] = ()
    zookeeper_root: str = ROOT
    node_name: str = ""
    keep_alive_path: str = ""
    discover_server: bool = False
    server_ip: str = ""
    server_port: int = 0
    dump_end_marker: bool = True
    unreadable: str = "fail"
    kafka: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings; raises SettingsError with all problems."""
        problems = [*self._problems()]
        if problems:
            raise _unusable("the settings of the databus client", problems)

    def _problems(self) -> list[str]:
        found = []
        if not self.brokers:
            found.append("brokers is empty: name at least one Kafka broker, host:port")
        if not self.topic:
            found.append("topic is missing")
        if self.start not in ("inclusive", "exclusive"):
            found.append(f"start is {self.start!r} instead of inclusive or exclusive")
        if self.unreadable not in ("fail", "skip"):
            found.append(f"unreadable is {self.unreadable!r} instead of fail or skip")
        if self.master_pos < 0:
            found.append(f"masterpos is {self.master_pos}: a position in the binlog is a positive number")
        if self.first_load:
            found += self._dump_problems()
        return found

    def _dump_problems(self) -> list[str]:
        found = []
        if not self.zookeeper:
            found.append("firstload needs zkpath: the servers of ZooKeeper, where the description of the dump is")
        if not self.node_name:
            found.append("firstload needs nodename: the node of the descriptions of dumps")
        if self.discover_server and not self.keep_alive_path:
            found.append("mirror_enable needs keepalivepath: the node of the running server")
        if not self.discover_server and not (self.server_ip and self.server_port):
            found.append("firstload needs mirror_enable=true, or serverip and serverport: where dumps are served")
        return found

    @classmethod
    def read(cls, path: Path) -> "ClientSettings":
        """Read a TOML file.

        Raises:
            SettingsError: with all problems.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"the settings in {path} cannot be read: {error}") from error
        by_name = {name.lower(): value for name, value in found.items()}
        problems, values = [], {}
        for name, value in by_name.items():
            if name in _WITHOUT_EFFECT:
                continue  # Python's logging decides
            if name not in _NAMES:
                problems.append(f"{name} is unknown; known are {', '.join(sorted(_NAMES))}")
                continue
            try:
                values[_NAMES[name]] = _converted(_NAMES[name], value)
            except (TypeError, ValueError):
                problems.append(f"{name} is {value!r}, which has the wrong type")
        for name in ("brokers", "topic"):
            values.setdefault(name, () if name == "brokers" else "")
        try:
            settings = cls(**values)
        except SettingsError as error:
            problems += [line.removeprefix("  * ") for line in str(error).splitlines()[1:]]
        if problems:
            raise _unusable(f"the settings in {path}", problems)
        return settings


def _unusable(what: str, problems: Sequence[str]) -> SettingsError:
    return SettingsError("\n".join([f"{what} cannot be used:", *(f"  * {problem}" for problem in problems)]))


def _converted(name: str, value: Any) -> Any:
    kind = {item.name: item.type for item in fields(ClientSettings)}[name]
    if kind is bool:
        if not isinstance(value, bool):
            raise TypeError
        return value
    if kind is int:
        return int(value)  # the original's ports are texts
    if kind is Path:
        return Path(value)
    if name == "kafka":
        return dict(value)
    if kind is str:
        return _text(value)
    return tuple(_text(item) for item in value) if isinstance(value, list) else (_text(value),)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
