"""Settings: the original's TOML, and all problems together."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtide.databus.client.settings import ClientSettings
from rowtide.databus.errors import SettingsError

ORIGINAL = """
brokers = ["10.29.204.73:19092", "10.27.185.100:19092"]
zkpath = ["10.29.204.73:12181"]
firstload = true
nodename = "DumpMeta"
topic = "databustest.test"
serverip = "10.169.117.85"
serverport = "888"
log_level = "debug"
log_dir = "/root/log"
logfile = "grandet_error.log"
mirror_enable = true
keepalivepath = "KeepAliveNode"
replinfopath = "data/Repl.info"
mastername = "binlog.000145"
masterpos = 2165057
"""


def test_a_file_of_the_original_is_read(tmp_path: Path) -> None:
    path = tmp_path / "client.toml"
    path.write_text(ORIGINAL)
    assert ClientSettings.read(path) == ClientSettings(
        brokers=("10.29.204.73:19092", "10.27.185.100:19092"),
        topic="databustest.test",
        offset_file=Path("data/Repl.info"),
        first_load=True,
        master_name="binlog.000145",
        master_pos=2165057,
        zookeeper=("10.29.204.73:12181",),
        node_name="DumpMeta",
        keep_alive_path="KeepAliveNode",
        discover_server=True,
        server_ip="10.169.117.85",
        server_port=888,
    )


def test_librdkafka_s_settings_are_a_table(tmp_path: Path) -> None:
    path = tmp_path / "client.toml"
    path.write_text('brokers="b:1"\ntopic="t"\nstart="exclusive"\n[kafka]\n"security.protocol"="SSL"\n')
    found = ClientSettings.read(path)
    assert (found.brokers, found.start, found.kafka) == (("b:1",), "exclusive", {"security.protocol": "SSL"})
    assert found.offset_file == Path("Repl.info")


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "client.toml"
    path.write_text('firstload = true\nmirror_enable = true\nmasterpos = "x"\nbroker = "b"\nstart = "now"\n')
    with pytest.raises(SettingsError) as raised:
        ClientSettings.read(path)
    text = str(raised.value)
    for part in ("broker is unknown", "masterpos is 'x'", "brokers is empty", "topic is missing", "zkpath", "nodename",
                 "keepalivepath", "start is 'now'", str(path)):  # fmt: skip
        assert part in text


def test_a_file_that_is_not_toml_or_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "client.toml"
    path.write_text("brokers = [")
    for wrong in (path, tmp_path / "missing"):
        with pytest.raises(SettingsError, match=wrong.name):
            ClientSettings.read(wrong)
