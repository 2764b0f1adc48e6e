"""``rowtide run``: what its options set, and what is wrong is reported before anything is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.connectors import run
from rowtide.connector.config import Configuration, ConfigurationError
from rowtide.connector.worker import faust_app
from rowtide.connector.worker.reload import ConfigurationFiles
from rowtide.connector.worker.standalone_app import App
from tests.support.configurations import PROPERTIES


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in PROPERTIES.items()))
    return str(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\n", "is empty"),
        (b"\xff\xfe", "printable ASCII"),
        ("gehe\u00edm".encode(), "printable ASCII"),
        (b"a\nb", "one token"),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["snapshot", "status"]])
def test_a_file_without_a_token_is_an_error(
    config: str, tmp_path: Path, command: list[str], content: bytes, reason: str
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    result = CliRunner().invoke(main, [*command, config, "--web-token-file", str(file)])
    assert result.exit_code == 1
    assert "the file of --web-token-file " in result.output
    assert reason in result.output


@pytest.mark.parametrize("number", ["nan", "inf", "1e400"])
def test_a_number_that_is_not_finite_is_refused(config: str, number: str) -> None:
    result = CliRunner().invoke(main, ["run", config, "--summary-interval", number])
    assert result.exit_code == 2
    assert "is not a finite number" in result.output


def test_the_token_of_a_file_is_that_of_the_web_server(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    tokens: list[str | None] = []
    monkeypatch.setattr(faust_app, "run", lambda app, **_: tokens.append(app.web_settings.token))
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


def again(options: list[str], monkeypatch: pytest.MonkeyPatch) -> ConfigurationFiles:
    """What a worker reads again that was started with these options."""
    apps: list[App] = []
    monkeypatch.setattr(faust_app, "run", lambda app, **_: apps.append(app))
    result = CliRunner().invoke(main, ["run", *options])
    assert result.exit_code == 0, result.output
    files = apps[0].connectors.files
    assert files is not None
    return files


def test_a_directory_has_a_connector_in_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, common = tmp_path / "connectors", tmp_path / "worker.properties"
    folder.mkdir()
    (folder / "..data").mkdir()
    for name in ("notes.txt", ".shop.properties.swp", ".hidden.properties"):
        (folder / name).write_text("no connector")
    for command in ("run", "check"):
        result = CliRunner().invoke(main, [command, "--connector", str(folder)])
        assert result.exit_code == 1
        assert f"no configuration file is in {folder}: its suffix is one of .env, .json, .properties" in result.output

    common.write_text("".join(f"{name}={text}\n" for name, text in PROPERTIES.items()))
    for number, name in enumerate(("b.json", "a.properties")):
        own = {"name": name[0], "topic.prefix": name[0], "database.server.id": str(number + 1)}
        text = json.dumps(own) if name == "b.json" else "".join(f"{key}={value}\n" for key, value in own.items())
        (folder / name).write_text(text)
    files = again(["--connector", str(folder), str(common)], monkeypatch)
    assert files.running == {str(folder / "a.properties"): "a", str(folder / "b.json"): "b"}
    assert files.several

    (folder / "c.yaml").write_text("{name: c, topic.prefix: c, database.server.id: 3}")
    (folder / "a.properties").unlink()
    (folder / "b.json").write_text('{"rowtide.sink": "python"}')
    read = files.read()
    assert list(read) == [str(folder / "b.json"), str(folder / "c.yaml")]
    assert "rowtide.sink=python is for rowtide.Engine" in str(read[str(folder / "b.json")])
    assert isinstance(read[str(folder / "c.yaml")], Configuration)

    (folder / "c.yaml").unlink()
    (folder / "c.yaml").symlink_to(folder / "..data" / "c.yaml")
    assert "cannot be read: No such file" in str(files.read()[str(folder / "c.yaml")]), "its connector does not stop"

    for file in folder.iterdir():
        file.rename(folder / f".{file.name}")
    with pytest.raises(ConfigurationError, match="--connector: no configuration file is in"):
        files.read()

    def no_access(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", no_access)
        with pytest.raises(ConfigurationError, match="cannot be read: Permission denied"):
            files.read()

    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="is no longer a directory"):
        files.read()


def test_a_file_that_is_gone_is_an_error_of_its_connector(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = again([config], monkeypatch)
    assert (files.running, files.several) == ({config: "inventory"}, False)
    Path(config).unlink()
    assert "cannot be read" in str(files.read()[config])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--log-file", "/dev/null/log"], "--log-file: /dev/null/log cannot be written"),
        (["--web-port", "8080", "--web-bind", "256.1.1.1"], "256.1.1.1"),
    ],
)
def test_a_worker_of_a_fleet_says_what_is_wrong_before_it_waits_for_kafka(
    tmp_path: Path, options: list[str], text: str
) -> None:
    path = tmp_path / "fleet.properties"
    topics = "config.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n"
    path.write_text(f"bootstrap.servers=127.0.0.1:1\ngroup.id=fleet\n{topics}")
    result = CliRunner().invoke(main, ["worker", str(path), *options])
    assert result.exit_code == 1
    assert text in result.output
