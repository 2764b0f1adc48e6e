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

_PASSWORD = "rowtide"  # of servers that only this machine can reach, for as long as a test runs


class SqlServer(Server):
    """A MySQL or MariaDB server with its binlog on, and ``root`` allowed from everywhere with the password here."""

    user = "root"
    password = _PASSWORD
    defaults: ClassVar[Options]
    image: ClassVar[str]

    def __init__(self, options: Options | None = None) -> None:
        """Make a server; ``options`` are mysqld's, over the stack's.

        ``{"gtid_mode": "OFF", "log_bin": False, "mysqlx": None}`` gives ``gtid_mode=OFF`` and ``skip_log_bin``, and
        leaves ``mysqlx`` to the server; see `Options`.
        """
        super().__init__()
        self.options = merged(self.defaults, options or {})
        self._tls: TlsFiles | None = None
        self._volumes = contextlib.ExitStack()

    @property
    def tls(self) -> TlsFiles:
        """The certificates of a server that has been started: it takes both plain and encrypted connections.

        Raises:
            StackError: it has never been started.
        """
        if self._tls is None:
            raise StackError(f"{type(self).__name__} has its certificates when it has been started")
        return self._tls

    @property
    def version(self) -> str:
        """The server's own ``VERSION()``."""
        return str(self.query("SELECT VERSION()")[0][0])

    def connect(self, database: str | None = None, **arguments: Any) -> "Connection[Cursor]":
        """A connection as root that commits every statement; ``arguments`` are pymysql's."""
        import pymysql  # noqa: PLC0415 - a user of Kafka alone may lack it

        own = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "autocommit": True}
        return pymysql.connect(**{**own, "database": database, "charset": "utf8mb4", **arguments})

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Execute statements, one each, over one connection as root."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def query(self, statement: str, values: Sequence[object] = (), *, database: str | None = None) -> list[Any]:
        """The rows of a statement, as tuples."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    @contextlib.contextmanager
    def database(self, prefix: str = "db") -> Iterator["Database"]:
        """A new database of a name that was never used before; dropped at the end if the server runs."""
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
        # An initialised data folder takes seconds to make and a blink to copy.
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
        folder.chmod(0o755)  # the server in the container is another user
        self._tls = TlsFiles.make(folder)
        return ContainerPlan(
            image=self.image,
            port=3306,
            command=arguments(merged(_tls_options("/tls"), self.options)),
            # Both images read these; MariaDB's has names of its own too, but keeps MySQL's
            environment={"MYSQL_ROOT_PASSWORD": self.password, "MYSQL_ROOT_HOST": "%"},
            volumes={folder: "/tls"},
        )

    def _template(self) -> Path:
        """An initialised data folder, from the cache; one for each set of options that are fixed by initialising."""
        fixed: Options = {name: self.options[name] for name in self._fixed if self.options.get(name)}
        source = str(self._paths()["basedir"]) + json.dumps([fixed, _TEMPLATE], sort_keys=True)
        digest = hashlib.sha256(source.encode()).hexdigest()[:12]
        return cached(f"{self.name}-data-{digest}", lambda folder: self._initialise(folder / "data", fixed)) / "data"

    _fixed: ClassVar[tuple[str, ...]] = ("innodb_page_size", "lower_case_table_names", "innodb_undo_tablespaces")

    @abstractmethod
    def _program(self) -> list[str]:
        """The command of the server program."""

    @abstractmethod
    def _paths(self) -> dict[str, str]:
        """Options that say where the program's own files are."""

    @abstractmethod
    def _initialise(self, data: Path, options: Options) -> None:
        """Make a data folder."""


def _tls_options(folder: Path | str) -> Options:
    # A certificate of ours even where none is asked for: MariaDB would make one at every start, which takes it seconds.
    return {"ssl_ca": f"{folder}/ca.pem", "ssl_cert": f"{folder}/server.pem", "ssl_key": f"{folder}/server.key"}


def _user() -> Options:
    # A server started by root wants to be told whom to become; it may stay root, in a folder that only root can read.
    return {"user": "root"} if os.geteuid() == 0 else {}


_TEMPLATE = 2  # raise it when data folders are initialised in another way: those in the cache are then not used
_ROOT_SQL = (
    f"ALTER USER root@localhost IDENTIFIED BY '{_PASSWORD}'",
    f"CREATE USER root@'%' IDENTIFIED BY '{_PASSWORD}'",
    "GRANT ALL PRIVILEGES ON *.* TO root@'%' WITH GRANT OPTION",
)


class MySQL(SqlServer):
    """MySQL: 9.7 as a local process, 8.4 as a container; GTIDs on."""

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
        # The binlog is off, so that a new server's first event is its user's first statement.
        own: Options = {"datadir": str(data), "init_file": str(init), "log_bin": False, "mysqlx": 0}
        given = arguments(merged(self._paths(), _user(), own, options))
        run([*self._program(), "--no-defaults", "--initialize-insecure", *given])
        (data / "auto.cnf").unlink()  # the server's UUID: every server makes its own


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
        given = arguments(merged(self._paths(), _user(), {"datadir": str(data)}, options))
        script = catalogue.mariadb() / "scripts/mariadb-install-db"
        run([script, "--no-defaults", *given, "--auth-root-authentication-method=normal", "--skip-test-db"])
        # Bootstrapping reads one statement a line, and knows no users before it is told to load them.
        # The script's further users, root@127.0.0.1 among them, would be found before root@'%'.
        other = "User = '' OR User = 'root' AND Host <> 'localhost'"
        statements = (f"DELETE FROM mysql.global_priv WHERE {other}", "FLUSH PRIVILEGES", *_ROOT_SQL)
        text = "".join(f"{statement};\n" for statement in statements)
        run([*self._program(), "--no-defaults", *given, "--bootstrap"], text=text)


class Database:
    """One database of a server."""

    def __init__(self, server: SqlServer, name: str) -> None:
        self.server = server
        self.name = name

    def connect(self, **arguments: Any) -> "Connection[Cursor]":
        """A connection as root to this database; ``arguments`` are pymysql's."""
        return self.server.connect(self.name, **arguments)

    def execute(self, *statements: str) -> None:
        """Execute statements, one each, over one connection."""
        self.server.execute(*statements, database=self.name)

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a statement, as tuples."""
        return self.server.query(statement, values, database=self.name)
