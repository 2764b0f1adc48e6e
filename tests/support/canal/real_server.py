"""The server of the real Canal, from a folder with its jars, beside which rowtide is measured and tested."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["real_canal"]

_SOURCE = Path(__file__).parent / "RealCanal.java"
_LOG = """<configuration><appender name="E" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%level %msg%n%ex</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="E"/></root></configuration>"""


def real_canal(jars: Path, made: Path, heap: str = "512m") -> list[str]:
    """The command of the server, to which the folder, the destination and the port are added.

    Args:
        jars: a folder with the jars of Canal 1.1.7 and what they need.
        made: where files are written.
        heap: the largest size of its heap (``-Xmx``).
    """
    classes, log = made / "classes", made / "logback.xml"
    javac = ["javac", "-nowarn", "-Xlint:-unchecked", "-cp", f"{jars}/*", "-d", str(classes), str(_SOURCE)]
    subprocess.run(javac, check=True, capture_output=True)
    log.write_text(_LOG)
    return ["java", f"-Xmx{heap}", f"-Dlogback.configurationFile={log}", "-cp", f"{classes}:{jars}/*", "RealCanal"]
