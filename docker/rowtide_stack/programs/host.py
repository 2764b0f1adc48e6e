"""Programs of the machine itself: Java, Maven and apt-get, found or installed.

Nothing here names a server to download from: apt-get and mvn go where this machine is configured to go.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rowtide_stack.errors import ProgramMissingError, StackError
from rowtide_stack.programs.cache import locked

__all__ = ["JAVA_VERSION", "java", "maven", "run"]

JAVA_VERSION = 17
"""The oldest Java that Kafka 4 brokers and Spark 4 run on."""


def run(
    argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, text: str = ""
) -> str:
    """Run a program to its end and give what it printed.

    Raises:
        StackError: it failed; the message has the command and the end of its output.
    """
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise StackError(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{tail}")
    return done.stdout


def java() -> Path:
    """The ``java`` of this machine (``$JAVA_HOME`` first), of at least `JAVA_VERSION`; installed if root may do so."""
    return _find_java() or _install(f"openjdk-{JAVA_VERSION}-jre-headless", f"Java {JAVA_VERSION}", _find_java)


def maven() -> Path:
    """The ``mvn`` of this machine; installed if root may do so."""
    java()  # mvn needs it, and its Debian package would bring any version
    return _find("mvn") or _install("maven", "Maven (mvn)", lambda: _find("mvn"))


def _find(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _find_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin/java"] if home else []
    candidates += [path for path in (_find("java"),) if path]
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"))  # installed, but not the machine's default
    return next((path for path in candidates if path.exists() and _java_version(path) >= JAVA_VERSION), None)


def _java_version(path: Path) -> int:
    # "17.0.15" since Java 9; "1.8.0_402" before
    told = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else 0


def _install(package: str, what: str, find: Callable[[], Path | None]) -> Path:
    advice = f"{what} is needed: install it (on Debian: apt-get install {package}), or start a Docker engine"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise ProgramMissingError(advice)
    with locked("apt-get"):
        if not find():
            print(f"installing {package} ...", file=sys.stderr, flush=True)
            quiet = {"DEBIAN_FRONTEND": "noninteractive"}
            run(["apt-get", "-q", "update"], env=quiet)
            run(["apt-get", "-q", "install", "-y", "--no-install-recommends", package], env=quiet)
    found = find()
    if found is None:
        raise ProgramMissingError(advice)
    return found
