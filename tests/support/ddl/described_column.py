"""Columns as Debezium describes them, for tests of types that need no table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Described"]


@dataclass(frozen=True)
class Described:
    """Debezium's description of a column."""

    type_name: str
    jdbc_type: int = 0
    length: int | None = None
    scale: int | None = None
    name: str = "c"
    optional: bool = True
    enum_values: tuple[str, ...] = ()
