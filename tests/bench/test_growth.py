"""The made events of the benchmark of growth are decoded, and become as many messages as there are rows."""

from __future__ import annotations

import pytest

from tests.bench.growth import Shape, events, growing, messages, started

SHAPES = [
    Shape(rows=7, tables=3, single=True, transaction=2),
    Shape(rows=2500, transaction=2000),
    Shape(rows=3, columns=300, text=20_000),
    Shape(rows=5, query=100, options=(("include.query", "true"),)),
    Shape(rows=6, tables=2, transaction=6, single=True, options=(("provide.transaction.metadata", "true"),)),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_row_becomes_a_message(shape: Shape) -> None:
    pipeline, packets = started(shape), list(events(shape))
    assert [messages(pipeline, packets) for _ in range(2)] == [shape.rows, shape.rows]


def test_what_grows_is_in_the_shapes() -> None:
    for sizes in growing().values():
        assert len({size for size, _shape in sizes}) == len(sizes)
