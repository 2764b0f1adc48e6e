"""Damages bytes, texts and JSON values. All choices come from a generator with a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

MOST = 4
"""The most changes of one input."""
_NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    250,
    251,
    252,
    253,
    254,
    255,
    256,
    32767,
    32768,
    65535,
    2**24 - 1,
    2**31,
    2**32 - 1,
    2**63,
)
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, float("inf"), float("nan"), "", " ", "0",
    "-1", "9" * 5000, "x" * 70_000, "\0", "\ud800", "\U0001f600", "'", '"', "`", "%", "${a}", "..", "/", [], [[]], {},
    {"": None},
)  # fmt: skip
"""Values in the place of others in JSON."""


def mutated(random: Random, data: bytes, tokens: Sequence[bytes] = ()) -> bytes:
    """The bytes after one to `MOST` random changes.

    Args:
        random: decides.
        data: what to change.
        tokens: words to insert.
    """
    out = bytearray(data)
    for _ in range(random.randint(1, MOST)):
        if tokens and random.random() < 0.5:
            _token(random, out, tokens)
        else:
            random.choice(_CHANGES)(random, out)
    return bytes(out)


def _span(random: Random, out: bytearray) -> tuple[int, int]:
    at = random.randrange(len(out) + 1)
    return at, min(len(out), at + random.choice((1, 1, 2, 4, 8, random.randint(1, 64))))


def _flip(random: Random, out: bytearray) -> None:
    if out:
        out[random.randrange(len(out))] ^= 1 << random.randrange(8)


def _set(random: Random, out: bytearray) -> None:
    if out:
        out[random.randrange(len(out))] = random.choice((0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF))


def _number(random: Random, out: bytearray) -> None:
    """Overwrite one to eight bytes with a number: lengths, counts, offsets."""
    size = random.choice((1, 2, 3, 4, 6, 8))
    at = random.randrange(len(out) + 1)
    value = random.choice(_NUMBERS) + random.choice((0, 0, -1, 1))
    if random.random() < 0.3:
        value = len(out) + random.randint(-8, 8)
    raw = (value % (1 << 8 * size)).to_bytes(size, random.choice(("little", "little", "big")))
    out[at : at + size] = raw


def _delete(random: Random, out: bytearray) -> None:
    at, end = _span(random, out)
    del out[at:end]


def _insert(random: Random, out: bytearray) -> None:
    at, _ = _span(random, out)
    out[at:at] = random.randbytes(random.choice((1, 2, 4, 16)))


def _repeat(random: Random, out: bytearray) -> None:
    at, end = _span(random, out)
    out[at:at] = out[at:end] * random.choice((1, 2, 8, 100))


def _truncate(random: Random, out: bytearray) -> None:
    del out[random.randrange(len(out) + 1) :]


def _move(random: Random, out: bytearray) -> None:
    """Copy a part over another."""
    at, end = _span(random, out)
    to = random.randrange(len(out) + 1)
    part = bytes(out[at:end])
    out[to : to + len(part)] = part


def _token(random: Random, out: bytearray, tokens: Sequence[bytes]) -> None:
    at, end = _span(random, out)
    out[at : random.choice((at, end))] = random.choice(tokens)


_CHANGES: tuple[Callable[[Random, bytearray], None], ...] = (
    _flip, _flip, _set, _set, _number, _number, _delete, _insert, _repeat, _truncate, _move,
)  # fmt: skip


def spliced(random: Random, first: bytes, second: bytes) -> bytes:
    """The beginning of one and the end of the other."""
    return first[: random.randrange(len(first) + 1)] + second[random.randrange(len(second) + 1) :]


def mutated_json(random: Random, value: Any) -> Any:
    """A copy of a JSON value in which some members or elements are others, missing or repeated."""
    copied = _copy(value)
    for _ in range(random.randint(1, MOST)):
        place = _place(random, copied)
        if place is None:
            return _copy(random.choice(HOSTILE))
        container, name = place
        action = random.randrange(8)
        if action == 0:
            del container[name]
        elif action == 1 and isinstance(container, list):
            container.insert(name, _copy(container[name]))
        elif action == 2 and isinstance(container, dict):
            container[random.choice((*container, "x", ""))] = _copy(container[name])
        elif action == 3:
            container[name] = [container[name]]
        else:
            container[name] = _copy(random.choice(HOSTILE))
    return copied


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(element) for element in value] if isinstance(value, list) else value


def _place(random: Random, value: Any) -> tuple[Any, Any] | None:
    """A random container in a value, and the name or index of one of its members."""
    if not isinstance(value, dict | list) or not value:
        return None
    name = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
    inner = _place(random, value[name]) if random.random() < 0.8 else None
    return inner or (value, name)
