"""What counts as a difference of two servers, and the form in which they are compared, without servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.config import load
from rowtide.verify import servers
from rowtide.verify.comparison import RowDifference
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import Row
from rowtide.verify.servers import FORM, ServerComparison, ServerTable, compared
from rowtide.verify.verification import Result, VerifyOptions

CONFIGURATION = """
name=shop
connector.class=io.debezium.connector.mysql.MySqlConnector
topic.prefix=shop
bootstrap.servers=127.0.0.1:1
database.hostname=127.0.0.1
database.user=cdc
database.password=secret
database.server.id=7
schema.history.internal.kafka.bootstrap.servers=127.0.0.1:1
schema.history.internal.kafka.topic=history
"""
LOSSY = """
enable.time.adjuster=true
zero.date.handling.mode=epoch
rowtide.bool.handling.mode=boolean
event.converting.failure.handling.mode=warn
key.converter.replace.null.with.default=true
value.converter.replace.null.with.default=true
value.converter.decimal.format=NUMERIC
converters=flags
flags.type=io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter
post.processors=reselector
reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
"""


class Side:
    """A server whose row of each key has the next of some values whenever it is read.

    Args:
        *values: of the row; ``None`` if there is none. The last one stays.
    """

    texts = SimpleNamespace(key_names=["id"])
    table = None

    def __init__(self, *values: str | None) -> None:
        self._values, self._next = values, iter(values)
        self.source = self

    def of_keys(self, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Row]:
        value = next(self._next, self._values[-1])
        return {} if value is None else {key: {"id": key[0], "n": f"s{value}"} for key in keys}

    @contextmanager
    def view(self, _table: None) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(end="here")


def confirmed(source: Side, other: Side, timeout_s: float = 300) -> list[RowDifference]:
    replication: Any = SimpleNamespace(replicates=True, await_executed=lambda *_: None)
    sides: list[Any] = [source, other]
    return ServerComparison(*sides, replication, VerifyOptions(timeout_s=timeout_s), Result("d.t"))._confirmed(
        [("i1",)]
    )


def test_a_row_that_goes_back_and_forth_is_not_a_difference() -> None:
    """The source has the same row before and after the other one is read, which was changed and changed back."""
    assert confirmed(Side("a", "a", "a", "a", "b", "b", "b"), Side("b", "b", "a", "b")) == []
    assert confirmed(Side("a", "a", "b", "b", "a"), Side("b", "a", "b", "a", "a")) == []


@pytest.mark.parametrize(("other", "kind"), [("b", "stale"), (None, "lost")])
def test_a_row_that_stays_different_is_a_difference(other: str | None, kind: str) -> None:
    (found,) = confirmed(Side("a"), Side(other), 0)
    assert (found.kind, found.columns) == (kind, ("n",) if other else ())
    (found,) = confirmed(Side("c", "d", "a"), Side(other))
    assert found.kind == kind, "a row that changes once while it is read"


def test_rows_that_never_stay_are_undecided() -> None:
    values = [str(number // 2) for number in range(200)]
    with pytest.raises(Undecided, match="1 rows change faster than they can be read"):
        confirmed(Side(*values), Side("other"), 0)


def counted(tmp_path: Path, source: Sequence[str], other: Sequence[str]) -> Result:
    """Compare tables without a key that have one row, with these values one after the other."""
    result, replication = Result("d.t"), SimpleNamespace(replicates=True, await_executed=lambda *_: None)
    sides: list[Any] = [Side(*source), Side(*other)]
    for side in sides:
        side.all = partial(_rows, side)
    ServerComparison(*sides, cast("Any", replication), VerifyOptions(), result)._counted(tmp_path / "rows")
    return result


def _rows(side: Side) -> Iterator[Row]:
    yield from side.of_keys([("i1",)]).values()


def test_a_row_without_a_key_that_goes_back_and_forth_is_undecided(tmp_path: Path) -> None:
    with pytest.raises(Undecided, match="changes while it is read"):
        counted(tmp_path, ["a", "a", "b", "b", "a", "a"], ["b", "a", "b"])
    (tmp_path / "same").mkdir()
    found = counted(tmp_path / "same", "a", "b")
    assert [one.kind for one in found.differences] == ["lost", "extra"]


def table(*columns: str, key: Sequence[str] = (), names: Sequence[str] = ()) -> Any:
    texts = SimpleNamespace(compared=columns, key_names=names or key, kinds=dict.fromkeys(columns, "int"))
    return SimpleNamespace(texts=texts, table=SimpleNamespace(key=key))


def test_tables_of_which_only_one_has_a_key_are_not_compared() -> None:
    """``message.key.columns`` names the same key for both, which identifies the rows of one of them only."""
    with pytest.raises(Undecided, match="different keys: id on the source, none on the other server"):
        servers._refuse_unlike(table("id", key=["id"]), table("id", names=["id"]))


def test_rows_without_a_key_have_their_columns_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(_table: ServerTable, _blocks: object) -> Iterator[tuple[Any, Row]]:
        yield (), {"b": "i2", "a": "i1"}

    monkeypatch.setattr(ServerTable, "_of", rows)
    given: Any = SimpleNamespace(rows=lambda *_: ())
    side: Any = ServerTable(given, given, given, given)
    assert [list(row) for row in side.all()] == [["a", "b"]]


@pytest.fixture
def configuration(tmp_path: Path) -> Callable[[str], Any]:
    def read(more: str) -> Any:
        path = tmp_path / "shop.properties"
        path.write_text(CONFIGURATION + more)
        return load([str(path)], more=FORM)

    return read


def test_values_are_exact_whatever_a_configuration_says(configuration: Callable[[str], Any]) -> None:
    """Year 24 and 2024, NULL and a default, or two long decimals would be equal otherwise."""
    plain, lossy = configuration(""), configuration(LOSSY)
    assert lossy.values == plain.values
    assert lossy.converters == plain.converters
    assert lossy.failure == plain.failure


class Server:
    """A server without tables, by what it says of itself.

    Args:
        place: its host, port and folder.
    """

    def __init__(self, place: tuple[str, int, str]) -> None:
        self._place, self.session = place, self

    def server(self) -> SimpleNamespace:
        return SimpleNamespace(identity="1", server_id="1")

    def query(self, statement: str) -> list[tuple[str, int, str]]:
        assert statement == "SELECT @@GLOBAL.hostname, @@GLOBAL.port, @@GLOBAL.datadir"
        return [self._place]

    def captured(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass


def test_servers_of_the_same_id_are_compared_without_converters_unless_they_are_the_same(
    configuration: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB's default server_id is 1, and a copied MySQL may have the server_uuid of its origin."""
    places = [("a", 3306, "/data/"), ("b", 3306, "/data/"), ("a", 3306, "/data/"), ("a", 3306, "/data/")]
    left, given = iter(places), []

    def source(config: Any, settings: Any, _pace: object) -> Server:
        given.append((config.column_converters, config.post_processors, settings.transforms))
        return Server(next(left))

    monkeypatch.setattr(servers, "TableSource", source)
    lossy, decoder = configuration(LOSSY), pytest.fail
    assert list(compared(lossy, lossy, decoder, VerifyOptions())) == []
    with pytest.raises(Undecided, match=r"both configurations name the server 1 at a:3306 \(/data/\)"):
        list(compared(lossy, lossy, decoder, VerifyOptions()))
    assert lossy.column_converters
    assert given == [((), (), None)] * 4
