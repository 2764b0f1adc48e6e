"""Encodes Python values as MySQL's binary JSON; pairs of a type and bytes are opaque values."""

from __future__ import annotations

import struct

__all__ = ["encode", "size"]


def size(length: int) -> bytes:
    """A length as binary JSON has it: seven bits in each byte, the lowest first."""
    parts = []
    while length > 0x7F:
        parts.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*parts, length])


def _scalar(value: object) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, tuple):
        kind, raw = value
        return 15, bytes([kind]) + size(len(raw)) + raw
    assert isinstance(value, str)
    return 12, size(len(value.encode())) + value.encode()


def encode(value: object, *, large: bool) -> bytes:
    """The document of a Python value; containers are large ones if ``large``."""
    kind, raw = _encode(value, large)
    return bytes([kind]) + raw


def _encode(value: object, large: bool) -> tuple[int, bytes]:
    if not isinstance(value, (list, dict)):
        return _scalar(value)
    number, width = ("<I", 4) if large else ("<H", 2)
    keys = sorted((k.encode() for k in value), key=lambda k: (len(k), k)) if isinstance(value, dict) else []
    values = [value[k.decode()] for k in keys] if isinstance(value, dict) else value
    at = 2 * width + len(keys) * (width + 2) + len(values) * (width + 1)
    key_entries, entries, rest = b"", b"", b"".join(keys)
    for key in keys:
        key_entries += struct.pack(number, at) + struct.pack("<H", len(key))
        at += len(key)
    for element in values:
        kind, raw = _encode(element, large)
        if kind in {4, 5, 6} or (large and kind in {7, 8}):
            entries += bytes([kind]) + raw.ljust(width, b"\xff" if kind == 5 and raw[1] & 0x80 else b"\0")
        else:
            entries += bytes([kind]) + struct.pack(number, at)
            at, rest = at + len(raw), rest + raw
    body = struct.pack(number, len(values)) + struct.pack(number, at) + key_entries + entries + rest
    return (0 if isinstance(value, dict) else 2) + large, body
