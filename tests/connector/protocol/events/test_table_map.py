"""TABLE_MAP events: types and their metadata, and what full row metadata adds."""

import pytest

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent, UnsupportedEvent
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import TableMap
from rowtide.connector.protocol.events.table_map import parse_structure
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.protocol.header import EventType
from tests.support.mysql.packets import captured, captured_one, event, started


def maps(server: str, table: str) -> list[TableStructure]:
    decoder = EventDecoder()
    events = [e for e in map(decoder.decode, captured(server)) if isinstance(e, TableMap)]
    return [e.structure for e in events if e.structure.table == table]


def body(columns: bytes, metadata: bytes = b"", nulls: bytes = b"\0", optional: bytes = b"") -> bytes:
    names = b"\x01d\0\x01t\0"
    return names + bytes([len(columns)]) + columns + bytes([len(metadata)]) + metadata + nulls + optional


COMMON = {
    "ti": (1, 0), "d": (246, 10 * 256 + 3), "f": (4, 4), "db": (5, 8), "bt": (16, 10), "y": (13, 0), "c": (254, 5),
    "vc": (15, 1200), "tx": (252, 2), "tt": (252, 1), "mt": (252, 3), "lt": (252, 4), "cb": (254, 800), "bin": (254, 5),
    "vb": (15, 50), "bl": (252, 2), "e": (247, 1), "s": (248, 1), "dt": (10, 0), "t": (19, 3), "dtm": (18, 6),
    "ts": (17, 2), "g": (255, 4), "nn": (3, 0), "e2": (247, 1),
}  # fmt: skip


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_full_metadata_of_a_table_with_all_types(server: str) -> None:
    full, minimal = maps(server, "types_my")
    assert full.full
    assert not minimal.full
    columns = {column.name: column for column in full.columns}
    assert {name: (columns[name].type, columns[name].metadata) for name in COMMON} == COMMON
    assert [(c.type, c.metadata, c.nullable, c.unsigned) for c in full.columns] == [
        (c.type, c.metadata, c.nullable, c.unsigned) for c in minimal.columns
    ]
    unsigned = {name for name, column in columns.items() if column.unsigned}
    assert unsigned == {"tiu", "si", "i", "bi", "d", "f", "y"}
    assert {name for name, column in columns.items() if not column.nullable} == {"c", "p", "nn"}
    names = list(columns)
    assert full.primary_key == ((names.index("c"), 3), (names.index("nn"), 0))
    collations = {name: columns[name].collation for name in ("c", "tx", "lt", "bin", "vb", "bl", "e", "e2", "i")}
    assert collations == {"c": 8, "tx": 28, "lt": 33, "bin": 63, "vb": 63, "bl": 63, "e": 8, "e2": 51, "i": None}
    assert columns["vc"].collation == columns["s"].collation == (255 if server == "mysql" else 45)
    assert (columns["e"].values, columns["s"].values) == ((b"a", b"b", b"\xe9"), (b"x", b"y"))
    assert [columns[name].geometry_type for name in ("g", "p", "ls", "mp", "gc", "i")] == [0, 1, 2, 6, 7, None]


def test_metadata_that_only_mysql_writes() -> None:
    columns = {column.name: column for column in maps("mysql", "types_my")[0].columns}
    assert [columns[name].dimensions for name in ("v", "v2", "i")] == [4, 100, None]
    assert [columns[name].visible for name in ("inv", "nn")] == [False, True]
    assert columns["j"].type == BinlogType.JSON


def test_types_of_mariadb() -> None:
    columns = {column.name: column for column in maps("mariadb", "types_my")[0].columns}
    assert [(columns[n].type, columns[n].metadata, columns[n].collation) for n in ("u", "i4", "i6")] == [
        (254, 16, 63), (254, 4, 63), (254, 16, 63),
    ]  # fmt: skip
    assert [(columns[n].type, columns[n].collation) for n in ("cc", "ct", "cbb")] == [(141, 45), (140, 8), (140, 63)]
    assert columns["j"].collation == 46


def test_long_char_columns_and_enums_are_logged_as_string() -> None:
    structure = parse_structure(body(b"\xfe\xfe\xfe\xfe", b"\xfe\x05\xee\x20\xf7\x02\xf8\x08"), mariadb=False)
    assert [(c.type, c.metadata) for c in structure.columns] == [(254, 5), (254, 0x120), (247, 2), (248, 8)]


def test_a_typed_array_of_a_functional_index_is_parsed() -> None:
    structure = parse_structure(body(b"\x14\x14\x03", b"\x0f\x01\x02\x03\xf6\x0a\x02"), mariadb=False)
    assert [c.metadata for c in structure.columns] == [15 << 24 | 0x030201, 246 << 24 | 0x0A02, 0]


def test_default_and_column_charsets_and_a_simple_key() -> None:
    optional = b"\x02\x05\xfc\xff\x00\x01\x08" + b"\x0a\x03\x08\x01\x3f" + b"\x08\x02\x02\x00" + b"\x01\x00"
    columns, metadata = b"\x0f\xfe\x0f\xfe", b"\x0a\x00\xf7\x01\x0a\x00\xf8\x01"
    structure = parse_structure(body(columns, metadata, b"\x05", optional), mariadb=False)
    assert [c.collation for c in structure.columns] == [255, 8, 8, 63]
    assert [c.nullable for c in structure.columns] == [True, False, True, False]
    assert structure.primary_key == ((2, 0), (0, 0))


def test_the_same_table_map_yields_the_same_structure_object() -> None:
    packet = captured_one("mysql", EventType.TABLE_MAP)
    decoder = started()
    first, again = decoder.decode(packet), decoder.decode(packet)
    reopened = decoder.decode(event(EventType.TABLE_MAP, b"\x77\x66\x55\x44\x33\x22" + packet[25:-4]))
    assert isinstance(first, TableMap)
    assert isinstance(again, TableMap)
    assert isinstance(reopened, TableMap)
    assert first.structure is again.structure is reopened.structure
    assert reopened.table_id == 0x223344556677


@pytest.mark.parametrize(
    ("raw", "error", "message"),
    [
        (body(b"\x03\x63"), UnsupportedEvent, "column 2 of table d.t has the unknown type 99"),
        (body(b"\x03", optional=b"\x0e\x01\x00"), UnsupportedEvent, "table map of d.t with unknown metadata field 14"),
        (body(b"\x03", b"\x01"), RemoteProtocolError, "1 surplus bytes in the type metadata of table d.t"),
        (body(b"\x0f", b"\x01"), TruncatedEvent, "needs 2 bytes where 1 are left"),
        (body(b"\x03", optional=b"\x04\x04\x01a\x01b"), RemoteProtocolError, "d.t: 2 values of name for 1 columns"),
        (body(b"\x03", optional=b"\x0d\x01\x04"), RemoteProtocolError, "1 values of dimensions for 0 columns"),
        (body(b"\xfc", b"\x7f"), RemoteProtocolError, "length has 127 bytes"),
        (body(b"\xfc", b"\x00"), RemoteProtocolError, "length has 0 bytes"),
        (body(b"\x03", optional=b"\x08\x01\x01"), RemoteProtocolError, "d.t: its primary key has column 2 of 1"),
        (body(b"\x03", optional=b"\x09\x02\x01\x05"), RemoteProtocolError, "its primary key has column 2 of 1"),
        (body(b"\x14", b"\x14" * 250), RemoteProtocolError, "its elements are arrays"),
        (body(b"\x03", optional=b"\x01\x05\x00"), TruncatedEvent, "needs 5 bytes where 1 are left"),
    ],
)
def test_damaged_or_unknown_table_maps_are_refused(raw: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_structure(raw, mariadb=False)


def test_metadata_of_absent_column_types_is_ignored() -> None:
    structure = parse_structure(body(b"\x03", optional=b"\x01\x01\x80\x04\x02\x01i"), mariadb=True)
    assert structure.columns == (MappedColumn(3, 0, False, unsigned=True, name="i"),)
