"""Canal's clients, each as its authors published it, with a small program around it that writes what it gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.catalogue import java_command
from rowtide_stack.programs.host import run
from rowtide_stack.programs.maven import copy_jars

__all__ = ["CLIENTS", "Program"]

HERE = Path(__file__).parent / "programs"
_JAVA = ("com.alibaba.otter:canal.client:1.1.8", "com.alibaba.otter:canal.protocol:1.1.8")
_JSON = "com.alibaba.fastjson2:fastjson2:2.0.31"
_PYTHON = ("canal-python==0.4", "protobuf==3.20.3")  # its classes were generated for an old protobuf


@dataclass(frozen=True)
class Program:
    """A client program: its command, to which an address and a destination are added, and variables."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, where: tuple[str, str], destination: str, output: Path) -> subprocess.Popen[bytes]:
        """Start it; it writes to a file."""
        environment = {**os.environ, **self.environment}
        with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
            return subprocess.Popen([*self.command, *where, destination], stdout=out, stderr=err, env=environment)


def _java() -> Program:
    jars = cached("canal-client-1.1.8", lambda folder: copy_jars(folder, *_JAVA, _JSON))
    quiet = f"-Dlogback.configurationFile={HERE / 'logback.xml'}"
    command = java_command(jars, "256m", HERE / "Follow.java")
    return Program([command[0], quiet, *command[1:]])


def _go() -> Program:
    def build(folder: Path) -> None:
        source = folder / "source"
        shutil.copytree(HERE / "go", source)
        run(["go", "build", "-o", folder / "follow", "."], cwd=source)

    return Program([str(cached("canal-go-1.1.2-2", build) / "follow")])


def _python() -> Program:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-warn-conflicts", "--target"]
    packages = cached("canal-python-0.4", lambda folder: run([*pip, folder, *_PYTHON]) and None)
    variables = {"PYTHONPATH": str(packages), "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    return Program([sys.executable, str(HERE / "follow.py")], variables)


CLIENTS: Mapping[str, Callable[[], Program]] = {"java": _java, "go": _go, "python": _python}
"""By name, what prepares a client: Canal's own 1.1.8 (needs a JDK), canal-go 1.1.2 (needs Go), canal-python 0.4."""
