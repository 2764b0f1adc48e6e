"""``rowtide mirror``: its options, and its pages."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.binlog.mirror import SizeText
from rowtide.cli.binlog.mirror_web import served
from rowtide.connector.source.mirror.mirror import MirrorStatus


@pytest.mark.parametrize(
    ("text", "size"),
    [("10", 10), ("3K", 3072), ("500M", 500 << 20), ("2g", 2 << 30), ("1 TiB", 1 << 40), ("5MB", 5 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert SizeText().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "10 apples"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size such as 500M or 200G"):
        SizeText().convert(text, None, None)


def test_a_server_that_is_not_there_ends_nothing_but_a_wrong_configuration_does(tmp_path: Path) -> None:
    config = tmp_path / "c.properties"
    config.write_text("database.flavor=mysql\ndatabase.user=u\n")
    result = CliRunner().invoke(main, ["mirror", str(config), "--to", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "database.hostname" in result.output


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_pages_show_the_status() -> None:
    status = MirrorStatus(error="no connection")
    with served(status, "127.0.0.1", 0) as port:
        code, text = get(port, "/health")
        assert code == 503
        assert json.loads(text)["error"] == "no connection"
        status.connected, status.error = True, None
        status.file, status.pos, status.copied_bytes = "binlog.000042", 1234, 99
        code, text = get(port, "/health?x")
        assert code == 200
        assert json.loads(text)["position"] == {"file": "binlog.000042", "pos": 1234}
        code, text = get(port, "/metrics")
        assert code == 200
        for line in ("connected{} 1", "file_number{} 42", "position_bytes{} 1234", "copied_bytes_total{} 99"):
            assert f"rowtide_mirror_{line}\n" in text
        assert get(port, "/other")[0] == 404
