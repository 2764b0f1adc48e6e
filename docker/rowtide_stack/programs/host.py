"""Programs of the machine: runs them, and finds or installs Java, Maven, npm and a browser.

Downloads come only from the repositories that apt-get and mvn are configured with.
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

__all__ = ["JAVA_VERSION", "chromium", "java", "maven", "npm", "run"]

JAVA_VERSION = 17
"""The oldest Java version that Kafka 4 brokers and Spark 4 support."""


def run(
    argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, text: str = ""
) -> str:
    """Run a program and return its standard output.

    Raises:
        StackError: its exit code is not 0. The message contains the command and the end of its output.
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
        raise StackError(f"{' '.join(map(str, argv))} exited with code {done.returncode}:\n{tail}")
    return done.stdout


def java() -> Path:
    """Return the ``java`` of this machine, at least of `JAVA_VERSION`; ``$JAVA_HOME`` is tried first.

    Root installs it.
    """
    return _find_java() or _install(f"openjdk-{JAVA_VERSION}-jre-headless", f"Java {JAVA_VERSION}", _find_java)


def maven() -> Path:
    """Return the ``mvn`` of this machine. Root installs it."""
    java()  # mvn needs it, and the Debian package of mvn may install another version
    return _find("mvn") or _install("maven", "Maven (mvn)", lambda: _find("mvn"))


def chromium() -> Path:
    """The browser of this machine that has Chromium's protocol for developers. Root installs Chromium."""
    return _find_chromium() or _install("chromium", "Chromium", _find_chromium)


def npm() -> Path:
    """The ``npm`` of this machine. Root installs it."""
    return _find("npm") or _install("npm", "npm", lambda: _find("npm"))


def _find_chromium() -> Path | None:
    names = "chromium", "chromium-browser", "google-chrome"
    return next((found for name in names if (found := _find(name))), None)


def _find(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _find_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin/java"] if home else []
    candidates += [path for path in (_find("java"),) if path]
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"))  # installed, but not the default
    return next((path for path in candidates if path.exists() and _java_version(path) >= JAVA_VERSION), None)


def _java_version(path: Path) -> int:
    # "17.0.15" since Java 9; "1.8.0_402" before
    output = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', output)
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
