"""Names of schemas and fields made valid for Avro: ``schema.name.adjustment.mode`` and ``field.name.adjustment.mode``.

The rules are those of Debezium's ``SchemaNameAdjuster``, which looks at UTF-16 units: a character above U+FFFF becomes
two replacements. A digit at the start is kept behind an underscore; ``avro_unicode`` escapes the underscore too.
"""

from collections.abc import Callable
from functools import lru_cache

ADJUSTMENT_MODES = ("none", "avro", "avro_unicode")


def schema_name_adjuster(mode: str) -> Callable[[str], str]:
    """What ``schema.name.adjustment.mode`` makes of a schema's name; points stay."""
    return _adjuster(mode, ".")


def field_name_adjuster(mode: str) -> Callable[[str], str]:
    """What ``field.name.adjustment.mode`` makes of a field's name; a point is replaced too."""
    return _adjuster(mode, "")


def _adjuster(mode: str, also_valid: str) -> Callable[[str], str]:
    if mode == "none":
        return str
    if mode not in ADJUSTMENT_MODES:
        raise ValueError(f"unknown name adjustment {mode!r}; known are {', '.join(ADJUSTMENT_MODES)}")

    @lru_cache(maxsize=10_000)
    def adjusted(name: str) -> str:
        return _adjusted(name, also_valid, unicode=mode == "avro_unicode")

    return adjusted


def _adjusted(name: str, also_valid: str, *, unicode: bool) -> str:
    encoded = name.encode("utf-16-be", "surrogatepass")
    units = [chr(high << 8 | low) for high, low in zip(encoded[::2], encoded[1::2], strict=True)]
    result = []
    for place, unit in enumerate(units):
        inner = place > 0 and ("0" <= unit <= "9" or unit in also_valid)
        if inner or _is_letter(unit) or (unit == "_" and not unicode):
            result.append(unit)
        elif unicode:
            result.append(_escape(unit))
        else:
            result.append("_" + unit if place == 0 and unit.isdecimal() else "_")
    return "".join(result)


def _is_letter(unit: str) -> bool:
    return "a" <= unit <= "z" or "A" <= unit <= "Z"


def _escape(unit: str) -> str:
    # Two zeros stand before one or two digits, nothing before three: Debezium's own way.
    digits = f"{ord(unit):x}"
    return "_u" + ("00" + digits if len(digits) <= 2 else digits)
