"""MySQL and MariaDB servers."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rowtide_stack.errors import StackError
from rowtide_stack.programs import catalogue
from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.host import run
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan
from rowtide_stack.servers.options import MARIADB_DEFAULTS, MYSQL_DEFAULTS, Options, arguments, merged, option_file
from rowtide_stack.servers.server import Server
from rowtide_stack.servers.tls import TlsFiles

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

__all__ = ["Database", "MariaDB", "MySQL", "SqlServer"]

_PASSWORD = "rowtide"  # the servers are temporary and listen on the loopback interface only


class SqlServer(Server):
    """A MySQL or MariaDB server with the binlog enabled. ``root`` may connect from every host with `password`."""

    user = "root"
    password = _PASSWORD
    defaults: ClassVar[Options]
    image: ClassVar[str]

    def __init__(self, options: Options | None = None) -> None:
        """Create a server; ``options`` are options of mysqld that override the defaults (see `Options`).

        For example, ``{"gtid_mode": "OFF", "log_bin": False, "mysqlx": None}`` sets ``gtid_mode=OFF`` and
        ``skip_log_bin``, and leaves ``mysqlx`` at the server's own default.
        """
        super().__init__()
        self.options = merged(self.defaults, options or {})
        self._tls: TlsFiles | None = None
        self._volumes = contextlib.ExitStack()

    @property
    def tls(self) -> TlsFiles:
        """The certificates of the server, which accepts both plain and encrypted connections.

        Raises:
            StackError: the server has not been started yet.
        """
        if self._tls is None:
            raise StackError(f"{type(self).__name__} has no certificates before its first start")
        return self._tls

    @property
    def version(self) -> str:
        """The result of ``VERSION()``."""
        return str(self.query("SELECT VERSION()")[0][0])

    def connect(self, database: str | None = None, **arguments: Any) -> "Connection[Cursor]":
        """Connect as root with autocommit; ``arguments`` are those of `pymysql.connect`."""
        import pymysql  # noqa: PLC0415 - not needed by users of Kafka alone

        own = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "autocommit": True}
        return pymysql.connect(**{**own, "database": database, "charset": "utf8mb4", **arguments})

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Execute statements over one connection as root."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def query(self, statement: str, values: Sequence[object] = (), *, database: str | None = None) -> list[Any]:
        """Execute a statement and return its rows as tuples."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    @contextlib.contextmanager
    def database(self, prefix: str = "db") -> Iterator["Database"]:
        """Create a database with a unique name; it is dropped at the end if the server runs."""
        name = f"{prefix}_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield Database(self, name)
        finally:
            if self.running:
                self.execute(f"DROP DATABASE IF EXISTS {name}")

    def close(self) -> None:
        """End the server and remove its data and certificates."""
        super().close()
        self._tls = None
        self._volumes.close()

    def _ready(self) -> bool:
        with self.connect(connect_timeout=2, read_timeout=5) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return True

    def _local(self) -> LocalPlan:
        return LocalPlan(self._prepare)

    def _prepare(self, folder: Path) -> list[str]:
        # Initialising a data folder takes seconds; copying it does not.
        shutil.copytree(self._template(), folder / "data")
        self._tls = TlsFiles.make(folder / "tls")
        own = {
            **self._paths(),
            **_user(),
            **_tls_options(folder / "tls"),
            "port": self.port,
            "bind_address": self.host,
            "datadir": str(folder / "data"),
            "socket": str(folder / "socket"),
            "pid_file": str(folder / "pid"),
            "tmpdir": str(folder),
        }
        (folder / "my.cnf").write_text(option_file(merged(own, self.options)))
        return [*self._program(), f"--defaults-file={folder / 'my.cnf'}"]

    def _container(self) -> ContainerPlan:
        folder = Path(self._volumes.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-tls-")))
        folder.chmod(0o755)  # the server in the container runs as another user
        self._tls = TlsFiles.make(folder)
        return ContainerPlan(
            image=self.image,
            port=3306,
            command=arguments(merged(_tls_options("/tls"), self.options)),
            # Both images read these variables
            environment={"MYSQL_ROOT_PASSWORD": self.password, "MYSQL_ROOT_HOST": "%"},
            volumes={folder: "/tls"},
        )

    def _template(self) -> Path:
        """Return an initialised data folder from the cache, one for each set of the options in `_fixed`."""
        fixed: Options = {name: self.options[name] for name in self._fixed if self.options.get(name)}
        source = str(self._paths()["basedir"]) + json.dumps([fixed, _TEMPLATE], sort_keys=True)
        digest = hashlib.sha256(source.encode()).hexdigest()[:12]
        return cached(f"{self.name}-data-{digest}", lambda folder: self._initialise(folder / "data", fixed)) / "data"

    _fixed: ClassVar[tuple[str, ...]] = ("innodb_page_size", "lower_case_table_names", "innodb_undo_tablespaces")
    """Options that cannot change after the data folder has been initialised."""

    @abstractmethod
    def _program(self) -> list[str]:
        """Return the command of the server program."""

    @abstractmethod
    def _paths(self) -> dict[str, str]:
        """Return the options with the paths of the program's own files."""

    @abstractmethod
    def _initialise(self, data: Path, options: Options) -> None:
        """Initialise a data folder."""


def _tls_options(folder: Path | str) -> Options:
    # Always set, because otherwise MariaDB generates a certificate at every start, which takes seconds.
    return {"ssl_ca": f"{folder}/ca.pem", "ssl_cert": f"{folder}/server.pem", "ssl_key": f"{folder}/server.key"}


def _user() -> Options:
    # A server that is started by root requires this option. It stays root, as only root can read its folder.
    return {"user": "root"} if os.geteuid() == 0 else {}


_TEMPLATE = 2  # increment it when the initialisation changes, so that older cache entries are not used
_ROOT_SQL = (
    f"ALTER USER root@localhost IDENTIFIED BY '{_PASSWORD}'",
    f"CREATE USER root@'%' IDENTIFIED BY '{_PASSWORD}'",
    "GRANT ALL PRIVILEGES ON *.* TO root@'%' WITH GRANT OPTION",
)


class MySQL(SqlServer):
    """MySQL 9.7 as a local process, or 8.4 as a container, with GTIDs."""

    name = "mysql"
    defaults = MYSQL_DEFAULTS
    image = "mysql:8.4.6"

    def _program(self) -> list[str]:
        return catalogue.mysql_command("sbin/mysqld")

    def _paths(self) -> dict[str, str]:
        root = catalogue.mysql() / "usr"
        share = root / "share/mysql"
        return {
            "basedir": str(root),
            "lc_messages_dir": str(share),
            "character_sets_dir": str(share / "charsets"),
            "plugin_dir": str(root / "lib/mysql/plugin"),
        }

    def _initialise(self, data: Path, options: Options) -> None:
        init = data.with_suffix(".sql")
        init.write_text("".join(f"{statement};\n" for statement in _ROOT_SQL))
        # Without a binlog, so that the first event of a new server is the first statement of its user.
        own: Options = {"datadir": str(data), "init_file": str(init), "log_bin": False, "mysqlx": 0}
        program_arguments = arguments(merged(self._paths(), _user(), own, options))
        run([*self._program(), "--no-defaults", "--initialize-insecure", *program_arguments])
        (data / "auto.cnf").unlink()  # has the UUID of the server, which must be different for each


class MariaDB(SqlServer):
    """MariaDB 11.4."""

    name = "mariadb"
    defaults = MARIADB_DEFAULTS
    image = f"mariadb:{catalogue.MARIADB_VERSION}"

    def _program(self) -> list[str]:
        return [str(catalogue.mariadb() / "bin/mariadbd")]

    def _paths(self) -> dict[str, str]:
        base = catalogue.mariadb()
        return {"basedir": str(base), "lc_messages_dir": str(base / "share")}

    def _initialise(self, data: Path, options: Options) -> None:
        program_arguments = arguments(merged(self._paths(), _user(), {"datadir": str(data)}, options))
        script = catalogue.mariadb() / "scripts/mariadb-install-db"
        run([script, "--no-defaults", *program_arguments, "--auth-root-authentication-method=normal", "--skip-test-db"])
        # Bootstrap mode reads one statement a line, and has no users before FLUSH PRIVILEGES.
        # Other users that the script creates, such as root@127.0.0.1, would take precedence over root@'%'.
        other = "User = '' OR User = 'root' AND Host <> 'localhost'"
        statements = (f"DELETE FROM mysql.global_priv WHERE {other}", "FLUSH PRIVILEGES", *_ROOT_SQL)
        text = "".join(f"{statement};\n" for statement in statements)
        run([*self._program(), "--no-defaults", *program_arguments, "--bootstrap"], text=text)


class Database:
    """A database of a server."""

    def __init__(self, server: SqlServer, name: str) -> None:
        self.server = server
        self.name = name

    def connect(self, **arguments: Any) -> "Connection[Cursor]":
        """Connect as root to this database; ``arguments`` are those of `pymysql.connect`."""
        return self.server.connect(self.name, **arguments)

    def execute(self, *statements: str) -> None:
        """Execute statements over one connection."""
        self.server.execute(*statements, database=self.name)

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Execute a statement and return its rows as tuples."""
        return self.server.query(statement, values, database=self.name)
