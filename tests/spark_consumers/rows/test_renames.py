"""The names of columns in the table, from structures and a schema history."""

import pytest

from rowtide.spark_consumers.rows.renames import Renames, proven_names, table_renames


def _history(*texts: str) -> list[dict[str, int]]:
    """Structures such as ``id:1 a:2``."""
    return [{name: int(number) for name, number in (part.split(":") for part in text.split())} for text in texts]


RENAMED = ("i:1 a:2", "i:1 b:2")


@pytest.mark.parametrize(
    ("structures", "history", "names"),
    [
        (["i a", "i b"], RENAMED, ["i>i a>b", "i>i b>b"]),
        (["I A", "i b"], RENAMED, ["i>i a>b", "i>i b>b"]),
        (["i b", "i a"], RENAMED, ["i>i b>b", "i>i a>b"]),  # read later from another partition
        (["i b", "i a", "i b"], RENAMED, ["i>i b>b", "i>i a>b", "i>i b>b"]),  # written again after a crash
        (["i a", "i b"], (*RENAMED, "i:1 a:2"), ["i>i a>b", "i>i b>b"]),
        (["i a", "i b", "i a"], (*RENAMED, "i:1 a:2"), ["i>i a>a", "i>i b>a", "i>i a>a"]),
        (["i a", "i b"], (*RENAMED, *RENAMED), ["i>i a>b", "i>i b>b"]),  # all ways agree
        (["i a", "i b"], (*RENAMED, "i:1 a:3", "i:1 b:3"), None),  # the first pair and the last one, or a new column
        (["i a", "i b"], ("i:1 a:2", "i:1 b:3"), ["i>i a>a", "i>i b>b"]),  # dropped and added
        (["i a b", "i b a"], ("i:1 a:2 b:3", "i:1 b:2 a:3"), ["i>i a>b b>a", "i>i b>b a>a"]),
        (["i a b", "i b a"], ("i:1 a:2 b:3", "i:1 b:3 a:2"), ["i>i a>a b>b", "i>i b>b a>a"]),  # moved
        (["i a b", "i a"], ("i:1 a:2 b:3", "i:1 a:3"), ["i>i b>a", "i>i a>a"]),  # a is gone, and b has its name
        (["i b", "i b a", "i a"], ("i:1 b:2", "i:1 b:3 a:2", "i:1 a:3"), ["i>i", "i>i b>a", "i>i a>a"]),
        (["i a", "i c a"], ("i:1 a:2", "i:1 c:2 a:3"), ["i>i a>c", "i>i c>c a>a"]),
        (["i a", "i x"], RENAMED, None),
        (["i a", "i b"], (), None),
    ],
)
def test_names_in_the_table(structures, history, names) -> None:
    found = proven_names([text.split() for text in structures], _history(*history))
    shown = found and [" ".join(f"{old}>{new}" for old, new in of.items()) for of in found.of]
    assert shown == names


def test_the_newest_structure_gives_the_names() -> None:
    texts = ["i b", "i a"]
    found = proven_names([text.split() for text in texts], _history(*RENAMED))
    assert found is not None
    assert texts[found.newest] == "i b"


def test_too_many_ways_prove_nothing() -> None:
    history = _history(*(RENAMED * 20))
    assert proven_names([["i", "a"], ["i", "b"]] * 4, history) is None


@pytest.mark.parametrize(
    ("columns", "names", "renames"),
    [
        ("i a", {"i": "i", "a": "b"}, Renames({"a": "b"})),
        ("i A", {"i": "i", "a": "a"}, Renames({})),
        ("i a b", {"i": "i", "a": "b", "b": "a"}, Renames({"a": "b", "b": "a"})),
        ("i a b", {"i": "i", "b": "a"}, Renames({"b": "a"}, ("a",))),
        ("i b", {"i": "i", "a": "b"}, Renames({})),  # the user has renamed it
        ("i x a", {"i": "i", "a": "x"}, Renames({"a": "x"}, ("x",))),  # x was dropped long ago
    ],
)
def test_renames_of_a_table(columns, names, renames) -> None:
    found = table_renames(columns.split(), names)
    assert found == renames
    assert bool(found) == bool(renames.names)
    assert [found.new_name(name) for name in found.dropped] == [None] * len(found.dropped)


def test_columns_that_are_dropped_besides() -> None:
    found = Renames({"a": "b", "c": "d"}, ("d",)).without(["a", "c", "d", "e"], {"b", "e"})
    assert found == Renames({"c": "d"}, ("d", "a", "e"))
    assert Renames({}, ("a",))
