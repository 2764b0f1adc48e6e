"""The life cycle of servers, their errors, and containers, with stubs for the programs, Docker and the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rowtide_stack import ProgramMissingError, StackError, StartFailedError
from rowtide_stack.programs import debian, host
from rowtide_stack.runners.containers import ContainerRunner
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan
from rowtide_stack.servers.server import Server

SERVE = """
import socket, sys, time
print("first line of the log", flush=True)
time.sleep(0.2)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""
SILENT = "import time; print('not listening', flush=True); time.sleep(600)"
BROKEN = "print('\\n'.join(f'line {n}' for n in range(100)), flush=True); raise SystemExit('no licence')"


class Listener(Server):
    """A server that is ready when something listens on its port."""

    name = "listener"
    patience = 30

    def __init__(self, program: str) -> None:
        super().__init__()
        self.program = program

    def _ready(self) -> bool:
        import socket

        socket.create_connection((self.host, self.port), 1).close()
        return True

    def _local(self) -> LocalPlan:
        return LocalPlan(lambda folder: [sys.executable, "-c", self.program, str(self.port)])

    def _container(self) -> ContainerPlan:
        return ContainerPlan("listener:1.0.0", 80, ("serve",), {"A": "b"}, {Path("/tls"): "/tls"})


@pytest.fixture(autouse=True)
def local_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWTIDE_STACK", "local")


def test_a_server_is_ready_inside_of_with_and_removed_after_it() -> None:
    with Listener(SERVE) as server:
        assert server._ready()
        assert server.running
        assert server.log() == "first line of the log\n"
        assert repr(server) == f"<Listener 127.0.0.1:{server.port}>"
        server.start()
        server.stop()
        server.restart()
        server.kill()
        assert not server.running
        server.start()
        assert server._ready()
    assert (server.running, server.log()) == (False, "")


def test_a_server_can_be_stopped_before_its_start() -> None:
    server = Listener(SERVE)
    server.stop()
    server.kill()
    server.pause()
    server.resume()
    server.close()
    assert not server.running


def test_the_error_of_a_program_that_exits_has_the_end_of_its_log() -> None:
    with pytest.raises(StartFailedError) as caught, Listener(BROKEN):
        pass
    message = str(caught.value)
    assert "Listener on 127.0.0.1:" in message
    assert "exited during its start" in message
    assert message.endswith("line 99\nno licence")
    assert "line 10\n" not in message


def test_the_start_of_a_program_that_never_answers_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "patience", 0.5)
    with (
        pytest.raises(StartFailedError, match=r"(?s)within 0\.5 s \(ConnectionRefusedError.*not listening"),
        Listener(SILENT),
    ):
        pass


def test_a_server_can_be_started_again_after_its_plan_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Listener(SERVE)
    monkeypatch.setattr(server, "_local", lambda: LocalPlan(lambda folder: host.run(["false"]).split()))
    with pytest.raises(StackError, match="false exited with code 1"):
        server.start()
    monkeypatch.undo()
    monkeypatch.setenv("ROWTIDE_STACK", "local")
    with server:
        assert server.running


class FakeContainer:
    """A stub of the Docker library's container."""

    short_id = "0123"

    def __init__(self, **definition: object) -> None:
        self.definition = definition
        self.calls: list[str] = []
        self.status = "created"

    def start(self) -> None:
        self.calls.append("start")
        self.status = "running"

    def stop(self, timeout: int) -> None:
        self.calls.append(f"stop {timeout}")
        self.status = "exited"

    def kill(self) -> None:
        self.calls.append("kill")
        self.status = "exited"

    def wait(self) -> None:
        self.calls.append("wait")

    def pause(self) -> None:
        self.status = "paused"

    def unpause(self) -> None:
        self.status = "running"

    def reload(self) -> None:
        pass

    def logs(self) -> bytes:
        return b"log of the container"

    def remove(self, *, force: bool, v: bool) -> None:
        self.calls.append(f"remove force={force} volumes={v}")


class FakeEngine:
    """A stub of testcontainers' connection to an engine. testcontainers' container class is the real one."""

    made: list[FakeContainer]
    closed: int

    def __init__(self) -> None:
        self.client = self

    def create(self, image: str, **definition: object) -> FakeContainer:
        self.made.append(FakeContainer(image=image, **definition))
        return self.made[-1]

    def start(self, container: FakeContainer) -> None:
        container.start()

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[FakeEngine]:
    from testcontainers.core.config import testcontainers_config

    FakeEngine.made, FakeEngine.closed = [], 0
    monkeypatch.setattr("testcontainers.core.container.DockerClient", FakeEngine)
    monkeypatch.setattr(testcontainers_config, "_ryuk_disabled", True)
    monkeypatch.setattr(Listener, "_ready", lambda self: True)
    monkeypatch.setenv("ROWTIDE_STACK", "docker")
    return FakeEngine


def test_a_container_is_defined_by_its_plan_and_bound_to_loopback(engine: type[FakeEngine]) -> None:
    with Listener("") as server:
        (made,) = engine.made
        expected = {
            "image": "listener:1.0.0",
            "command": ["serve"],
            "environment": {"A": "b"},
            "name": f"rowtide-listener-{server.port}",
            "ports": {"80/tcp": ("127.0.0.1", server.port)},
            "volumes": {"/tls": {"bind": "/tls", "mode": "ro"}},
        }
        assert {key: made.definition[key] for key in expected} == expected


def test_a_container_is_stopped_and_started_again_and_removed_once(engine: type[FakeEngine]) -> None:
    with Listener("") as server:
        (made,) = engine.made
        server.start()
        server.stop()
        server.start()
        server.pause()
        assert server.running
        server.resume()
        server.kill()
        assert not server.running
        server.start()
        assert server.log() == "log of the container"
    assert made.calls == ["start", "stop 30", "start", "kill", "wait", "start", "remove force=True volumes=True"]
    assert engine.closed == 1


def test_closing_a_container_that_was_never_created_removes_nothing(engine: type[FakeEngine]) -> None:
    ContainerRunner("listener", 1, Listener("")._container()).close()
    assert (engine.made, engine.closed) == ([], 1)


def test_the_error_without_java_and_without_root_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_find_java", lambda: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ProgramMissingError, match=r"apt-get install openjdk-17-jre-headless.*Docker engine"):
        host.java()


def test_java_is_installed_for_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[Any] = []
    found = iter([None, None, Path("/usr/bin/java")])
    monkeypatch.setenv("ROWTIDE_CACHE", str(tmp_path))
    monkeypatch.setattr(host, "_find_java", lambda: next(found))
    monkeypatch.setattr(host, "run", lambda argv, **named: commands.append(argv[2:4]))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert host.java() == Path("/usr/bin/java")
    assert commands == [["update"], ["install", "-y"]]


@pytest.mark.parametrize(
    ("output", "version"), [('openjdk version "17.0.15" 2025', 17), ('java version "1.8.0_402"', 8), ("", 0)]
)
def test_the_version_of_java(monkeypatch: pytest.MonkeyPatch, output: str, version: int) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", output))
    assert host._java_version(Path("java")) == version


def test_debian_packages_come_from_the_mirror_that_apt_is_configured_with(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "http://mirror.test/debian-security/\nhttp://mirror.test/debian/\n"
    monkeypatch.setattr(debian, "run", lambda argv: listed)
    assert debian._mirror() == "http://mirror.test/debian"


def test_the_error_without_debian_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ProgramMissingError, match=r"mysql-server-core.*Docker engine"):
        debian.unpack_packages(tmp_path, "sid", "mysql-server-core")
    monkeypatch.setattr(debian, "run", lambda argv: "http://mirror.test/ubuntu/\n")
    with pytest.raises(ProgramMissingError, match="no Debian mirror"):
        debian._mirror()
