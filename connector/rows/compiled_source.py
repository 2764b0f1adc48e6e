"""Compiles generated source. Tables of the same form, such as those of many tenants, share the compiled code."""

from functools import lru_cache
from types import CodeType

_SHARED_CODES = 1000
_SHARED_LENGTH = 20_000
"""Longer sources are those of tables with very many columns, of which there are few."""


def define(source: str, label: str, names: dict[str, object]) -> None:
    """Execute source that defines functions.

    Args:
        source: the source.
        label: stands for the file in tracebacks.
        names: the constants of the functions; the functions are added to it.
    """
    code = _shared_code(source, label) if len(source) <= _SHARED_LENGTH else compile(source, label, "exec")
    exec(code, names)


@lru_cache(maxsize=_SHARED_CODES)
def _shared_code(source: str, label: str) -> CodeType:
    return compile(source, label, "exec")
