"""The stack's command line, without servers."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from rowtide_stack import StackError, __main__


def test_it_explains_itself() -> None:
    result = CliRunner().invoke(__main__.main, ["--help"])
    assert result.exit_code == 0
    assert {"up", "install"} <= set(result.output.split())


def test_an_unknown_server_is_refused_with_those_that_are_known() -> None:
    result = CliRunner().invoke(__main__.main, ["up", "oracle"])
    assert result.exit_code == 2
    assert all(name in result.output for name in __main__.SERVERS)


def test_programs_are_downloaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in __main__.PROGRAMS:
        monkeypatch.setitem(__main__.PROGRAMS, name, lambda name=name: asked.append(name))
    assert CliRunner().invoke(__main__.main, ["install", "kafka", "mysql"]).output == "kafka is there\nmysql is there\n"
    assert CliRunner().invoke(__main__.main, ["install"]).exit_code == 0
    assert asked == ["kafka", "mysql", *sorted(__main__.PROGRAMS)]


def test_what_cannot_be_done_is_a_message_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise StackError("Java 17 is needed")

    monkeypatch.setitem(__main__.PROGRAMS, "java", fail)
    result = CliRunner().invoke(__main__.main, ["install", "java"])
    assert (result.exit_code, result.output) == (1, "Error: Java 17 is needed\n")
