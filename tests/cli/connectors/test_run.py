"""``rowtide run``: what its options set, and what is wrong is reported before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.connectors import run
from rowtide.connector.worker import faust_app
from tests.support.configurations import PROPERTIES


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in PROPERTIES.items()))
    return str(path)


def test_an_empty_token_file_is_an_error(config: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\n")
    result = CliRunner().invoke(main, ["run", config, "--web-token-file", str(file)])
    assert result.exit_code == 1
    assert "the file of --web-token-file is empty" in result.output


def test_the_token_of_a_file_is_that_of_the_web_server(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    tokens: list[str | None] = []
    monkeypatch.setattr(faust_app, "run", lambda app, **_: tokens.append(app.token))
    assert CliRunner().invoke(main, ["run", config, "--web-token-file", str(file)]).exit_code == 0
    assert tokens == ["secret"]


def test_the_sink_of_the_library_cannot_be_run(config: str) -> None:
    result = CliRunner().invoke(main, ["run", config, "--sink", "python"])
    assert result.exit_code == 1
    assert "rowtide.sink=python is for rowtide.Engine" in result.output


def test_options_set_properties(config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Mapping[str, str]] = []

    def read(_common: object, _connectors: object, more: Mapping[str, str]) -> None:
        given.append(more)
        raise click.ClickException("enough")

    monkeypatch.setattr(run, "read_configurations", read)
    for options in ([], ["--sink", "stdout"], ["--from-mirror", str(tmp_path)]):
        assert "enough" in CliRunner().invoke(main, ["run", config, *options]).output
    assert given == [{}, {"rowtide.sink": "stdout"}, {"rowtide.mirror.directory": str(tmp_path)}]


def test_a_mirror_must_exist(config: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["run", config, "--from-mirror", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
