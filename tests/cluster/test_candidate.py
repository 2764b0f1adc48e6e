"""When a server begins and ends to run something, without ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from rowtide.cluster.candidate import WAIT_S, Candidate
from rowtide.cluster.fence import OWN_RUNNING, Contest, FencedNodes
from rowtide.cluster.session import FoundNode, RefusedError, ZooKeeperError, ZooKeeperSession

CONTEST = Contest("topic t", "/running", "/term")
OWN, OTHER = 7, 8


@dataclass
class _ZooKeeper:
    """One node, and the session of the server."""

    running: FoundNode | None = None
    away: bool = False
    id: int = OWN
    timeout_s: float = 8.0
    terms: list[bool] = field(default_factory=list)
    now: float = 100.0

    def get(self, _path: str) -> FoundNode | None:
        if self.away:
            raise ZooKeeperError("no answer")
        return self.running

    def remove(self, _path: str) -> None:
        self.running = None

    def taken(self, owner: int, version: int = OWN_RUNNING) -> None:
        self.running = FoundNode(b"server", version, owner)

    def begin(self, running: bool) -> FencedNodes:
        if not running and self.running is not None:
            raise RefusedError(0, "NodeExistsError")
        self.taken(OWN)
        self.terms.append(running)
        return _Nodes(self)


class _Nodes(FencedNodes):
    def __init__(self, zookeeper: _ZooKeeper) -> None:
        super().__init__(cast("ZooKeeperSession", zookeeper), CONTEST, len(zookeeper.terms))
        self._zookeeper = zookeeper

    def end(self) -> None:
        self._zookeeper.get("")
        self._zookeeper.running = None


@pytest.fixture
def zookeeper() -> _ZooKeeper:
    return _ZooKeeper()


@pytest.fixture
def server(zookeeper: _ZooKeeper) -> Candidate[FencedNodes]:
    return Candidate(cast("ZooKeeperSession", zookeeper), CONTEST, zookeeper.begin, lambda: zookeeper.now)


def test_a_free_place_is_taken_unless_it_may_not(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    server.look(may_begin=False)
    assert server.nodes is None
    server.look()
    assert server.nodes is not None
    server.look(may_begin=False)  # only beginning is forbidden
    assert server.nodes is not None
    assert zookeeper.terms == [False]


def test_a_term_is_certain_for_the_time_out_behind_the_last_contact(
    zookeeper: _ZooKeeper, server: Candidate[FencedNodes]
) -> None:
    server.look()
    zookeeper.now += 5
    server.look()
    zookeeper.away = True
    with pytest.raises(ZooKeeperError):
        server.look()
    zookeeper.now += 7.9
    assert server.nodes is not None
    zookeeper.now += 0.1
    assert server.nodes is None
    zookeeper.away = False
    server.look()  # it was only away: the term goes on
    assert server.nodes is not None
    assert zookeeper.terms == [False]


def test_another_server_is_waited_for(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    zookeeper.taken(OTHER)
    server.look()
    zookeeper.running = None
    for _ in range(2):
        server.look()
        assert server.nodes is None
        zookeeper.now += WAIT_S / 2
    server.look()
    assert server.nodes is not None


def test_a_server_that_comes_first_ends_the_term(
    zookeeper: _ZooKeeper, server: Candidate[FencedNodes], caplog: pytest.LogCaptureFixture
) -> None:
    server.look()
    zookeeper.taken(OTHER)
    server.look()
    assert server.nodes is None
    assert "topic t: another server runs it: server" in caplog.text


def test_another_session_of_this_server_is_another_server(
    zookeeper: _ZooKeeper, server: Candidate[FencedNodes]
) -> None:
    server.look()
    zookeeper.id = OTHER
    server.look()
    assert server.nodes is None


def test_a_node_that_is_gone_ends_the_term(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    server.look()
    zookeeper.running = None
    server.look(may_begin=False)
    assert server.nodes is None
    server.look()
    assert server.nodes is not None
    assert server.nodes.term == 2


def test_a_lost_answer_to_the_begin_is_made_up_for(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    zookeeper.taken(OWN)
    server.look()
    assert server.nodes is not None
    assert zookeeper.terms == [True]


def test_a_race_for_a_free_place_is_lost_quietly(zookeeper: _ZooKeeper) -> None:
    def begin(running: bool) -> FencedNodes:
        zookeeper.taken(OTHER)
        return zookeeper.begin(running)

    server = Candidate(cast("ZooKeeperSession", zookeeper), CONTEST, begin, lambda: zookeeper.now)
    server.look()
    assert server.nodes is None
    zookeeper.running = None
    server.look()
    assert server.nodes is None  # the other one may come back


def test_a_released_term_is_not_begun_again_at_once(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    server.release()
    server.look()
    server.release()
    assert (server.nodes, zookeeper.running) == (None, None)
    server.look()
    assert server.nodes is None
    zookeeper.now += WAIT_S
    server.look()
    assert server.nodes is not None


def test_a_release_without_an_answer_ends_the_term_as_well(
    zookeeper: _ZooKeeper, server: Candidate[FencedNodes], caplog: pytest.LogCaptureFixture
) -> None:
    server.look()
    zookeeper.away = True
    server.release()
    assert server.nodes is None
    assert "topic t: no answer" in caplog.text


def test_a_node_that_was_changed_is_withdrawn(zookeeper: _ZooKeeper, server: Candidate[FencedNodes]) -> None:
    server.look()
    zookeeper.taken(OWN, OWN_RUNNING + 1)
    server.look()
    assert (server.nodes, zookeeper.running) == (None, None)
    server.look()
    assert server.nodes is None
