"""What is in ZooKeeper: positions in Canal's form, the schema history, and who may change them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rowtide.canal.cluster import history
from rowtide.canal.cluster.cluster import ClusterMember
from rowtide.canal.cluster.history import ZooKeeperHistory
from rowtide.canal.cluster.nodes import DestinationNodes, Paths, running_text
from rowtide.canal.cluster.storage import ZooKeeperStorage
from rowtide.canal.instance.client_positions import ClientPositions, Resumption
from rowtide.canal.instance.positions import Master
from rowtide.canal.server.stored_entry import LogPosition
from rowtide.cluster.fence import TermEndedError, put
from rowtide.cluster.session import RefusedError, ZooKeeperError, ZooKeeperSession
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.history_store import UnusableHistory, json_object

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from rowtide_stack import ZooKeeper

pytestmark = pytest.mark.servers

MASTER = Master("db", 3306, 7)


@pytest.fixture
def name() -> str:
    return f"d{uuid.uuid4().hex[:8]}"


@contextmanager
def opened(zookeeper: ZooKeeper) -> Iterator[ZooKeeperSession]:
    session = ZooKeeperSession(f"{zookeeper.host}:{zookeeper.port}", "canal.zkServers")
    session._client.start(30)
    try:
        yield session
    finally:
        session.close()


@pytest.fixture
def session(zookeeper: ZooKeeper) -> Iterator[ZooKeeperSession]:
    with opened(zookeeper) as found:
        yield found


@pytest.fixture
def canal(session: ZooKeeperSession) -> KazooClient:
    """Another program at the same nodes."""
    return session._client


def begun(session: ZooKeeperSession, name: str, address: str = "10.0.0.1:11111") -> DestinationNodes:
    return DestinationNodes.begin(session, name, address, running=False)


def place(pos: int) -> LogPosition:
    file, gtids = "binlog.000001", "u:1-5"
    return LogPosition(file, pos, 1, 7000, gtids, SourceOffset(file, pos + 31, gtids, ts_sec=7))


def acknowledged(nodes: DestinationNodes, pos: int) -> ClientPositions:
    positions = ClientPositions(ZooKeeperStorage(nodes), MASTER)
    positions.subscribed(1001, "shop\\..*")
    positions.acknowledged(1001, place(pos))
    positions.flush()
    return positions


def test_positions_are_in_canals_form_and_another_server_resumes_behind_them(
    session: ZooKeeperSession, canal: KazooClient, name: str
) -> None:
    nodes = begun(session, name)
    acknowledged(nodes, 100)
    root = f"/otter/canal/destinations/{name}"
    position = (
        '"identity":{"slaveId":7,"sourceAddress":{"address":"db","port":3306}},"postion":{"gtid":"u:1-5",'
        '"included":false,"journalName":"binlog.000001","position":100,"serverId":1,"timestamp":7000}}'
    )
    cursor = '{"@type":"com.alibaba.otter.canal.protocol.position.LogPosition",' + position
    assert canal.get(f"{root}/1001/cursor")[0].decode() == cursor
    assert canal.get(f"{root}/parse")[0].decode() == "{" + position
    assert canal.get(f"{root}/1001/filter")[0] == rb"shop\..*"
    assert canal.get(f"{root}/running")[0] == b'{"active":true,"address":"10.0.0.1:11111"}'
    nodes.end()
    again = ClientPositions(ZooKeeperStorage(begun(session, name)), MASTER)
    assert again.resumption() == Resumption(place(100).offset)
    assert again.filter == r"shop\..*"


def test_a_client_that_unsubscribes_leaves_nothing(session: ZooKeeperSession, canal: KazooClient, name: str) -> None:
    positions = acknowledged(begun(session, name), 100)
    client = f"{Paths(name).root}/1001"
    canal.create(f"{client}/mark/0000000001", b"{}", makepath=True)  # of a Canal
    positions.unsubscribed(1001)
    positions.flush()
    assert canal.exists(client) is None


@pytest.mark.parametrize("by_canal", [False, True])
def test_a_server_that_was_replaced_changes_nothing(
    zookeeper: ZooKeeper, canal: KazooClient, session: ZooKeeperSession, name: str, *, by_canal: bool
) -> None:
    """A split brain: the first one has not noticed yet that its node is gone, and another one runs the destination."""
    first = begun(session, name)
    positions = acknowledged(first, 100)
    paths = Paths(name)
    canal.delete(paths.running)  # as ZooKeeper does after the time-out
    with opened(zookeeper) as other:
        if by_canal:
            other._client.create(paths.running, running_text("10.0.0.2:11111"), ephemeral=True)
        else:
            acknowledged(begun(other, name, "10.0.0.2:11111"), 200)
        before = {path: canal.get(path)[0] for path in first.tree(paths.root)}
        positions.acknowledged(1001, place(300))
        with pytest.raises(TermEndedError, match=f"destination {name}: this server no longer runs it"):
            positions.flush()
        with pytest.raises(TermEndedError):
            first.end()
        assert {path: canal.get(path)[0] for path in first.tree(paths.root)} == before


def test_only_one_server_begins_a_term(zookeeper: ZooKeeper, session: ZooKeeperSession, name: str) -> None:
    begun(session, name)
    with opened(zookeeper) as other, pytest.raises(RefusedError):
        begun(other, name, "10.0.0.2:11111")


def test_an_answer_that_is_lost_is_made_up_for(session: ZooKeeperSession, canal: KazooClient, name: str) -> None:
    """What was written is not certain then; the next attempt finds out."""
    nodes = begun(session, name)
    positions = acknowledged(nodes, 100)
    change = session.change

    def lost(changes: object) -> object:
        change(changes)  # type: ignore[arg-type]
        raise ZooKeeperError("no answer")

    session.change = lost  # type: ignore[method-assign, assignment]
    positions.acknowledged(1002, place(200))
    with pytest.raises(ZooKeeperError):
        positions.flush()
    session.change = change  # type: ignore[method-assign]
    positions.acknowledged(1002, place(300))
    positions.flush()
    assert b'"position":300' in canal.get(Paths(name).cursor(1002))[0]


def test_the_term_is_gone_on_with_if_the_answer_to_its_begin_was_lost(
    session: ZooKeeperSession, canal: KazooClient, name: str
) -> None:
    begun(session, name)
    cluster = ClusterMember(session, "10.0.0.1:11111")
    cluster.poll([name])
    nodes = cluster.nodes(name)
    assert nodes is not None
    nodes.change([put(f"{nodes.paths.term}/x", b"", exists=False)])


def test_canals_administration_withdraws_a_destination(
    session: ZooKeeperSession, canal: KazooClient, name: str
) -> None:
    now = [100.0]
    cluster = ClusterMember(session, "10.0.0.1:11111", lambda: now[0])
    cluster.poll([name])
    assert cluster.nodes(name) is not None
    canal.set(Paths(name).running, b'{"active":false,"address":"10.0.0.1:11111"}')
    cluster.poll([name])
    assert cluster.nodes(name) is None
    assert canal.exists(Paths(name).running) is None
    cluster.poll([name])
    assert cluster.nodes(name) is None
    now[0] += 6
    cluster.poll([name])
    assert cluster.nodes(name) is not None


def test_a_server_waits_for_another_that_may_return(zookeeper: ZooKeeper, session: ZooKeeperSession, name: str) -> None:
    now = [100.0]
    standby = ClusterMember(session, "10.0.0.1:11111", lambda: now[0])
    with opened(zookeeper) as other:
        first = ClusterMember(other, "10.0.0.2:11111", lambda: now[0])
        first.poll([name])
        standby.poll([name])
        assert (first.nodes(name) is None, standby.nodes(name)) == (False, None)
        assert sorted(session.children(Paths(name).cluster)) == ["10.0.0.1:11111", "10.0.0.2:11111"]
        assert "10.0.0.2:11111" in session.children("/otter/canal/cluster")
        first.release(name)
    standby.poll([name])
    assert standby.nodes(name) is None
    now[0] += 6
    standby.poll([name])
    assert standby.nodes(name) is not None
    assert session.children(Paths(name).cluster) == ["10.0.0.1:11111"]


def test_without_contact_a_server_is_certain_until_the_time_out(session: ZooKeeperSession, name: str) -> None:
    now = [100.0]
    cluster = ClusterMember(session, "10.0.0.1:11111", lambda: now[0])
    cluster.poll([name])
    session._client.stop()
    now[0] += session.timeout_s - 1
    cluster.poll([name])
    assert cluster.nodes(name) is not None
    now[0] += 1
    assert cluster.nodes(name) is None


def test_a_schema_history_is_kept_in_parts(
    session: ZooKeeperSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_PART", 40)
    nodes = begun(session, name)
    kept = ZooKeeperHistory(nodes)
    assert (kept.exists(), list(kept.replay(json_object))) == (False, [])
    texts = [f'{{"n":{number},"text":"é"}}' for number in range(9)]
    with kept.buffered():
        for text in texts[:5]:
            kept.append(text)
        assert not kept.exists()
    for text in texts[5:]:
        kept.append(text)
    nodes.end()
    again = ZooKeeperHistory(begun(session, name))
    assert list(again.replay(json_object)) == texts
    assert [stored.text for stored in again.texts(7)] == texts[7:]
    assert len(nodes.children(nodes.paths.history)) > 2


def test_a_snapshot_that_was_not_completed_does_not_count(session: ZooKeeperSession, name: str) -> None:
    kept = ZooKeeperHistory(begun(session, name))

    def interrupted() -> None:
        with kept.buffered():
            kept.append("{}")
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert not kept.exists()


def test_a_damaged_schema_history_is_named(session: ZooKeeperSession, canal: KazooClient, name: str) -> None:
    kept = ZooKeeperHistory(begun(session, name))
    kept.append("{}")
    canal.set(f"{Paths(name).history}/0000000000", b"x")
    with pytest.raises(UnusableHistory, match=rf"damaged: ZooKeeper's {Paths(name).history}/0000000000\. Stop all"):
        list(kept.replay(json_object))


def test_a_schema_history_begins_after_a_canal(session: ZooKeeperSession, canal: KazooClient, name: str) -> None:
    nodes = begun(session, name)
    acknowledged(nodes, 100)
    kept = ZooKeeperHistory(nodes)
    kept.append("{}")
    ZooKeeperStorage(nodes).load()
    assert kept.exists()
    cursor = Paths(name).cursor(1001)
    canal.set(cursor, canal.get(cursor)[0].replace(b'"position":100', b'"position":900'))
    positions = ClientPositions(ZooKeeperStorage(nodes), MASTER)
    assert not kept.exists()
    found = positions.resumption()
    assert found is not None
    assert found.offset.pos == 900


def test_a_damaged_position_is_named(session: ZooKeeperSession, canal: KazooClient, name: str) -> None:
    nodes = begun(session, name)
    acknowledged(nodes, 100)
    canal.set(Paths(name).cursor(1001), b"{")
    with pytest.raises(OffsetError, match=rf"ZooKeeper's {Paths(name).cursor(1001)} is damaged"):
        ZooKeeperStorage(nodes).load()


def test_a_client_that_has_acknowledged_nothing_loses_nothing_to_a_canal(
    session: ZooKeeperSession, canal: KazooClient, name: str
) -> None:
    """Without a cursor, a Canal that takes over would begin with the present."""
    nodes, begin = begun(session, name), SourceOffset("binlog.000001", 4, ts_sec=7)
    positions = ClientPositions(ZooKeeperStorage(nodes), MASTER)
    positions.subscribed(1001, "")
    positions.begins(begin, 7000)
    text = canal.get(Paths(name).cursor(1001))[0].decode()
    assert '"included":false,"journalName":"binlog.000001","position":4,' in text
    assert ClientPositions(ZooKeeperStorage(nodes), MASTER).resumption() == Resumption(begin, since_ms=7000)
