"""Servers for tests, the demo and trials: MySQL, MariaDB, Kafka, ZooKeeper, a schema registry, a Spark cluster.

    from rowtide_stack import Kafka, MySQL

    with MySQL({"binlog_row_metadata": "FULL"}) as mysql, Kafka() as kafka:
        mysql.execute("CREATE DATABASE shop")
        print(mysql.port, kafka.bootstrap)
        mysql.restart()

Each server listens on a free port of the loopback interface and has a temporary folder for its data. It keeps both
through `stop`, `kill` and `start`, and ends with the process that created it, even if that process is killed. The
servers are containers if a Docker engine is running. Otherwise they are local processes, whose programs are downloaded
into a cache folder on first use. ``ROWTIDE_STACK`` (``local`` or ``docker``) overrides the choice, and
``ROWTIDE_CACHE`` sets the cache folder.
"""

from rowtide_stack.errors import ProgramMissingError, StackError, StartFailedError
from rowtide_stack.programs.catalogue import spark_jars
from rowtide_stack.servers.brokers import Kafka, ZooKeeper
from rowtide_stack.servers.registry import Registry
from rowtide_stack.servers.server import Server
from rowtide_stack.servers.spark import Spark
from rowtide_stack.servers.sql import Database, MariaDB, MySQL, SqlServer

__all__ = [
    "Database",
    "Kafka",
    "MariaDB",
    "MySQL",
    "ProgramMissingError",
    "Registry",
    "Server",
    "Spark",
    "SqlServer",
    "StackError",
    "StartFailedError",
    "ZooKeeper",
    "spark_jars",
]
