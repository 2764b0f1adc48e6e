"""The contents of the nodes in ZooKeeper."""

from __future__ import annotations

import pytest

from rowtide.databus.discovery import DumpDescriptor, KeepAlive, root_path
from rowtide.databus.errors import DiscoveryError
from rowtide.databus.events import Position


@pytest.mark.parametrize(
    ("text", "file"), [("DB.Data1.Json:mysql-bin.000003:154:9", "DB.Data1.Json"), ("a:b:bin.1:4:0", "a:b")]
)
def test_a_dump_descriptor_is_read_from_its_end(text: str, file: str) -> None:
    found = DumpDescriptor.decode(text, "/Databus/DumpMeta/t")
    assert found.file == file
    assert found.encoded() == text


def test_a_dump_descriptor_has_all_four_parts() -> None:
    assert DumpDescriptor.decode("f:bin.1:4:17", "n") == DumpDescriptor("f", Position("bin.1", 4), 17)


@pytest.mark.parametrize(
    ("text", "ip", "time_s"),
    [("10.0.0.1:888:shop.t:1500000000", "10.0.0.1", 1500000000), ("[2001:db8::1]:888:t:7", "2001:db8::1", 7)],
)
def test_a_keep_alive_node_has_its_time_and_an_address_of_either_kind(text: str, ip: str, time_s: int) -> None:
    # The original takes the fourth character of the text for the time.
    found = KeepAlive.decode(text, "/Databus/KeepAliveNode/t")
    assert (found.ip, found.port, found.time_s) == (ip, 888, time_s)
    assert found.encoded() == text


@pytest.mark.parametrize("text", ["", "a", "a:b:c", "f:bin.1:x:0", "f:bin.1:4:-1", ":bin.1:4:0", "f::4:0", "f:b:٣:0"])
def test_damaged_descriptors_are_named(text: str) -> None:
    with pytest.raises(DiscoveryError, match=r"^Decode Data From zk Wrong: node /Databus/DumpMeta/t has"):
        DumpDescriptor.decode(text, "/Databus/DumpMeta/t")


@pytest.mark.parametrize("text", ["", "a:b:c:d", "h:1:t", ":1:t:5"])
def test_damaged_keep_alive_nodes_are_named(text: str) -> None:
    with pytest.raises(DiscoveryError, match=r"^Decode Data From zk Wrong: node n has .* instead of IP:Port:Topic"):
        KeepAlive.decode(text, "n")


def test_the_root_is_absolute() -> None:
    assert root_path("/Databus/") == "/Databus"
    for wrong in ("", "Databus"):
        with pytest.raises(DiscoveryError, match=r"^initPath must len > 0 or begin with / "):
            root_path(wrong)
