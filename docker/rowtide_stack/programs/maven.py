"""Downloads jars and their dependencies with Maven."""

import tarfile
import tempfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

from rowtide_stack.programs.host import maven, run

__all__ = ["copy_jars", "unpack_jar", "unpack_tar"]

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.rowtide</groupId><artifactId>stack</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_MVN = ("-q", "-B", "-ntp")


def copy_jars(target: Path, *coordinates: str) -> None:
    """Copy artifacts (``group:artifact:version``) and their run-time dependencies into ``target``."""
    dependencies = "".join(_dependency(coordinate) for coordinate in coordinates)
    with tempfile.TemporaryDirectory(prefix="rowtide-maven-") as folder:
        (Path(folder) / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        options = [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        run([maven(), *_MVN, "dependency:copy-dependencies", *options], cwd=Path(folder))


def unpack_jar(target: Path, coordinate: str) -> None:
    """Unpack one artifact (``group:artifact:version``), without its dependencies, into ``target``."""
    with tempfile.TemporaryDirectory(prefix="rowtide-maven-") as folder:
        run([maven(), *_MVN, "dependency:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}"], cwd=target)
        for jar in Path(folder).glob("*.jar"):
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(target)


def unpack_tar(target: Path, coordinate: str) -> None:
    """Unpack an archive (``group:artifact:version:tar.gz:classifier``) into ``target``."""
    with tempfile.TemporaryDirectory(prefix="rowtide-maven-") as folder:
        run([maven(), *_MVN, "dependency:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}"], cwd=target)
        for path in Path(folder).glob("*.tar.gz"):
            with tarfile.open(path) as archive:
                archive.extractall(target, filter="data")


def _dependency(coordinate: str) -> str:
    group, artifact, version = map(escape, coordinate.split(":"))
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
    )
