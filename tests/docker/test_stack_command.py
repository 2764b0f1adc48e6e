"""The command line of the local stack, without servers."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from rowtide_stack import Server, StackError, __main__


def test_the_help_lists_the_commands() -> None:
    result = CliRunner().invoke(__main__.main, ["--help"])
    assert result.exit_code == 0
    assert {"up", "install"} <= set(result.output.split())


def test_the_error_for_an_unknown_server_lists_the_known_ones() -> None:
    result = CliRunner().invoke(__main__.main, ["up", "oracle"])
    assert result.exit_code == 2
    assert all(name in result.output for name in __main__.SERVERS)


def test_programs_are_downloaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []
    for name in __main__.PROGRAMS:
        monkeypatch.setitem(__main__.PROGRAMS, name, lambda name=name: installed.append(name))
    assert (
        CliRunner().invoke(__main__.main, ["install", "kafka", "mysql"]).output
        == "kafka is installed\nmysql is installed\n"
    )
    assert CliRunner().invoke(__main__.main, ["install"]).exit_code == 0
    assert installed == ["kafka", "mysql", *sorted(__main__.PROGRAMS)]


def test_servers_can_have_their_default_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    class Started(Exception):
        """Ends the command when the server would start."""

    def start(server: Server) -> Server:
        raise Started(server.address)

    monkeypatch.setattr(Server, "start", start)
    monkeypatch.setattr(__main__, "is_free", lambda port: True)
    result = CliRunner().invoke(__main__.main, ["up", "--default-ports", "kafka"])
    assert str(result.exception) == "127.0.0.1:9092"
    monkeypatch.setattr(__main__, "is_free", lambda port: False)
    result = CliRunner().invoke(__main__.main, ["up", "--default-ports", "mysql"])
    assert (result.exit_code, result.output) == (
        1,
        "Error: port 3306 of mysql is in use: stop what listens there, or omit --default-ports\n",
    )


def test_a_stack_error_is_printed_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise StackError("Java 17 is needed")

    monkeypatch.setitem(__main__.PROGRAMS, "java", fail)
    result = CliRunner().invoke(__main__.main, ["install", "java"])
    assert (result.exit_code, result.output) == (1, "Error: Java 17 is needed\n")
