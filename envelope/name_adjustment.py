"""Adjustment of schema and field names for Avro (``schema.name.adjustment.mode``, ``field.name.adjustment.mode``).

The rules are those of Debezium's ``SchemaNameAdjuster``, which replaces UTF-16 units: a character above U+FFFF becomes
two replacements. A leading digit is kept after an underscore; ``avro_unicode`` also escapes the underscore.
"""

from collections.abc import Callable
from functools import lru_cache, partial

ADJUSTMENT_MODES = ("none", "avro", "avro_unicode")


def schema_name_adjuster(mode: str) -> Callable[[str], str]:
    """Return the function of a ``schema.name.adjustment.mode``. It keeps dots."""
    return _adjuster(mode, ".")


def field_name_adjuster(mode: str) -> Callable[[str], str]:
    """Return the function of a ``field.name.adjustment.mode``. It replaces dots too."""
    return _adjuster(mode, "")


def _adjuster(mode: str, also_valid: str) -> Callable[[str], str]:
    if mode == "none":
        return str
    if mode not in ADJUSTMENT_MODES:
        raise ValueError(f"unknown name adjustment {mode!r}; the modes are {', '.join(ADJUSTMENT_MODES)}")

    return partial(_adjusted, also_valid=also_valid, unicode=mode == "avro_unicode")


@lru_cache(maxsize=10_000)
def _adjusted(name: str, *, also_valid: str, unicode: bool) -> str:
    encoded = name.encode("utf-16-be", "surrogatepass")
    units = [chr(high << 8 | low) for high, low in zip(encoded[::2], encoded[1::2], strict=True)]
    result = []
    for index, unit in enumerate(units):
        inner = index > 0 and ("0" <= unit <= "9" or unit in also_valid)
        if inner or _is_letter(unit) or (unit == "_" and not unicode):
            result.append(unit)
        elif unicode:
            result.append(_escape(unit))
        else:
            result.append("_" + unit if index == 0 and unit.isdecimal() else "_")
    return "".join(result)


def _is_letter(unit: str) -> bool:
    return "a" <= unit <= "z" or "A" <= unit <= "Z"


def _escape(unit: str) -> str:
    # Debezium puts two zeros before one or two digits, and none before three.
    digits = f"{ord(unit):x}"
    return "_u" + ("00" + digits if len(digits) <= 2 else digits)
