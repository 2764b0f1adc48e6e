"""The text of a GTID set that grows, one transaction after the other, is that of the same set parsed anew."""

import random

import pytest

from rowtide.schema_history.position.gtid import GtidSet

SOURCES = [f"{digit * 8}-1111-1111-1111-111111111111" for digit in "a5c"]


def text_of(transactions: set[tuple[str, str, int]]) -> str:
    """The text of a set that has never had another one."""
    return str(GtidSet.parse(",".join(f"{uuid}:{tag}:{gno}" for uuid, tag, gno in transactions)))


@pytest.mark.parametrize("seed", range(5))
def test_text_of_a_growing_set(seed: int) -> None:
    chosen = random.Random(seed)
    grown, added = GtidSet(), set[tuple[str, str, int]]()
    numbers = {(uuid, tag): chosen.randrange(1, 20) for uuid in SOURCES for tag in ("", "blue")}
    source = SOURCES[0], ""
    for _ in range(300):
        if chosen.random() < 0.2:
            source = chosen.choice(list(numbers))
        numbers[source] += chosen.choice([1, 1, 1, 1, 2, 5])
        gno = numbers[source] if chosen.random() < 0.9 else chosen.randrange(1, numbers[source] + 1)
        grown.add(source[0], gno, source[1])
        added.add((*source, gno))
        if chosen.random() < 0.7:
            assert str(grown) == text_of(added)
    assert str(grown) == text_of(added)


def test_text_after_a_union_and_a_difference() -> None:
    grown = GtidSet.parse(f"{SOURCES[0]}:1-5")
    grown.add(SOURCES[0], 6)
    assert str(grown) == f"{SOURCES[0]}:1-6"
    other = GtidSet.parse(f"{SOURCES[0]}:6-8,{SOURCES[1]}:1")
    assert str(grown - other) == f"{SOURCES[0]}:1-5"
    grown.update(other)
    assert str(grown) == f"{SOURCES[1]}:1,{SOURCES[0]}:1-8"
    grown.add(SOURCES[0], 9)
    assert str(grown) == f"{SOURCES[1]}:1,{SOURCES[0]}:1-9"
    copied = grown.copy()
    grown.add(SOURCES[0], 10)
    assert str(copied) == f"{SOURCES[1]}:1,{SOURCES[0]}:1-9"
