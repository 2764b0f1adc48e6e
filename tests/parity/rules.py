"""The known and intended differences from Debezium: narrow rules, each with its class and its reason.

The classes are those of ``tests/support/recordings/differences.py``: *damage* (Debezium loses or changes a value,
rowtide does not) and *stops* (Debezium stops, rowtide continues).
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tests.parity.compare import Difference, Message

__all__ = ["LOST", "RULES", "STOPS", "Rule", "is_lost", "rule_for", "stop_for"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A known difference.

    Attributes:
        reason: the reason, with the class.
        applies: whether the rule applies to a difference in a column of a type.
    """

    reason: str
    applies: Callable[[Difference, str], bool]


_DAY_MS = 86_400_000


def _year_zero(difference: Difference, kind: str) -> bool:
    return kind.startswith("year") and difference.want in {"1900", "2000"} and difference.have == "0"


def _rounded_default(difference: Difference, kind: str) -> bool:
    # (A null of a column with a default is written as the default.)
    want, have = _integer(difference.want), _integer(difference.have)
    return abs(have) > 2**53 and float(want) == float(have)


def _undecoded(difference: Difference, kind: str) -> bool:
    return "\ufffd" in difference.want and "\ufffd" not in difference.have


def _gregorian(difference: Difference, kind: str) -> bool:
    days = _integer(difference.want) - _integer(difference.have)
    in_snapshot = '"op":"r"' in (difference.message.value or "")
    return in_snapshot and days in {10, *(10 * _DAY_MS * unit for unit in (1, 10**3, 10**6))}


def _partial_date(difference: Difference, kind: str) -> bool:
    in_snapshot = '"op":"r"' in (difference.message.value or "")
    return in_snapshot and kind.startswith("date") and difference.have in {"0", "null"}


def _integer_unsigned(difference: Difference, kind: str) -> bool:
    wrapped = _integer(difference.have) - _integer(difference.want) == 2**32
    typed = (difference.want, difference.have) == ('"int32"', '"int64"')
    return wrapped or typed


def _lacking_label(difference: Difference, kind: str) -> bool:
    if len(difference.want) != len(difference.have):
        return False
    pairs = [pair for pair in zip(difference.want, difference.have, strict=True) if pair[0] != pair[1]]
    return all(have == "?" for _, have in pairs)


def _turned_bits(difference: Difference, kind: str) -> bool:
    in_snapshot = '"op":"r"' in (difference.message.value or "")
    if not kind.startswith("bit(") or not in_snapshot:
        return False
    want, have = (base64.b64decode(text.strip('"')) for text in (difference.want, difference.have))
    return want[::-1] == have


def _second_of_several(difference: Difference, kind: str) -> bool:
    if not any(part == "zz" or part.endswith(":zz") for part in difference.path):
        return False
    return (difference.want, difference.have) in {
        ("false", "true"),
        ("true", "false"),
        ("0", "null"),
        ("false", "(nothing)"),
        ("(nothing)", "true"),
    }


def _unselected_key(difference: Difference, kind: str) -> bool:
    value = difference.message.value or ""
    if '"op":"r"' not in value or difference.path[:2] != ("key", "payload"):
        return False
    record = json.loads(value)
    return difference.path[2] not in record.get("payload", record)["after"]


def _half_character(difference: Difference, kind: str) -> bool:
    return (
        any("\ud800" <= char <= "\udfff" for char in difference.want) and difference.want[:-2] == difference.have[:-1]
    )


def _null_text(difference: Difference, kind: str) -> bool:
    nothing = difference.have in {"null", "(nothing)"}
    return nothing and difference.want in {
        '"null"',
        '"bnVsbA=="',
        '"6e756c6c"',
        *(["false"] * kind.startswith("bit(1)")),
    }


def _stale_query(difference: Difference, kind: str) -> bool:
    value = difference.message.value or ""
    about_structure = '"tableChanges":' in value or '"op":"t"' in value
    return about_structure and difference.path[-2:] == ("source", "query") and difference.have == "null"


def _other_charset(difference: Difference, kind: str) -> bool:
    # The same bytes, read in two character sets.
    if not (difference.want.startswith('"') and difference.have.startswith('"')):
        return False
    # (Both may have been cut to the same number of characters.)
    pairs = itertools.product(_bytes_of(difference.want), _bytes_of(difference.have))
    same_length = len(difference.want) == len(difference.have)
    return any(one == other or (same_length and other.startswith(one) and one) for one, other in pairs)


def _bytes_of(text: str) -> set[bytes]:
    found = set()
    for codec in _CODECS:
        with contextlib.suppress(UnicodeEncodeError):
            found.add(str(json.loads(text)).encode(codec))
    return found


def _session(difference: Difference, kind: str) -> bool:
    return difference.topic.endswith("-history") and difference.path == ("value", "session")


def _position(difference: Difference, kind: str) -> bool:
    return difference.topic.endswith("-history") and difference.path[1:2] == ("position",)


def _integer(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else 0


_CODECS = ("latin-1", "cp1252", "cp1250", "cp1251", "cp1257", "cp850", "cp852", "cp866", "iso8859-2", "iso8859-7",
           "iso8859-8", "iso8859-9", "iso8859-13", "koi8-r", "mac-latin2", "mac-roman", "utf-8", "gbk", "gb2312",
           "big5", "euc-kr", "euc-jp", "shift-jis", "cp932", "utf-16-be", "utf-16-le", "utf-32-be",
           "tis-620")  # fmt: skip

RULES: tuple[Rule, ...] = (
    Rule("damage: YEAR 0 is made 1900 (stream) or 2000 (snapshot)", _year_zero),
    Rule("damage: a BIGINT's default is rounded to a double", _rounded_default),
    Rule("damage: text is decoded in another character set than the column's, and becomes U+FFFD", _undecoded),
    Rule("damage: text is read in another character set, after ALTER TABLE ... DEFAULT CHARACTER SET", _other_charset),
    Rule("damage: a snapshot makes other dates of partial ones (0000-10-10)", _partial_date),
    Rule("damage: a snapshot moves the ten days that the calendar of 1582 left out", _gregorian),
    Rule("damage: MariaDB's INTEGER UNSIGNED of a statement is taken for signed (put right in Debezium 3.6)",
         _integer_unsigned),
    Rule("damage: labels have characters that their character set lacks: they are ? on the server", _lacking_label),
    Rule("damage: a text is cut between the two halves of a character", _half_character),
    Rule("damage: a snapshot does not select a key's column that is left out of the records", _unselected_key),
    Rule("damage: a snapshot turns the bytes of a BIT in a key around twice", _turned_bits),
    Rule("damage: in MariaDB's ADD COLUMN (a, b) b gets the NOT NULL of a, and 0 for null", _second_of_several),
    Rule("damage: after MySQL's ALTER ... SET DEFAULT NULL the default is the word null", _null_text),
    Rule("damage: a change of structure behind an XA transaction has that one's last query", _stale_query),
    Rule("more: the history has the session of a statement that would otherwise be parsed differently", _session),
    Rule("elsewhere: positions in the history are compared by tests/interop", _position),
)  # fmt: skip

_UNIQUE_INDEX = re.compile(r'"ddl" ?: ?"(CREATE\s+)?UNIQUE\s+INDEX')
_RENAMED_ON = re.compile(r'"ddl" : "RENAME\b[^"]*",\s*"tableChanges" : \[ *\]')
STOPS: dict[str, str] = {
    "Unexpected value for JDBC type 92": "a TIME that the time.precision.mode has no form for",
    "field name duplication": "a column with a capital letter in its name that is moved",
    "no viable alternative at input 'ALTER TABLE": "PARTITION BY KEY () of MariaDB",
    "Invalid value: null used for required field": "a value without a form in a NOT NULL column",
    "doc has already been set": "a column of a spatial type with a comment",
}
"""Texts of Debezium's errors, and why it should not stop."""


LOST = (
    "damage: with store.only.captured.tables.ddl CREATE UNIQUE INDEX is neither in the topic nor in the history, and "
    "of RENAME TABLE a TO tmp, b TO a, tmp TO b the first part is not in the history"
)


def is_lost(message: Message, options: Mapping[str, str]) -> bool:
    """Whether Debezium is known to lose a message that rowtide writes (`LOST`)."""
    only_captured = "schema.history.internal.store.only.captured.tables.ddl" in options
    return only_captured and bool(_UNIQUE_INDEX.search(message.value or "") or _RENAMED_ON.search(message.value or ""))


def rule_for(difference: Difference, column_type: str) -> Rule | None:
    """The rule that applies to a difference, if any."""
    return next((rule for rule in RULES if rule.applies(difference, column_type)), None)


def stop_for(trace: str, hashed: Collection[str]) -> str | None:
    """The known reason why Debezium should not have stopped, if any.

    Args:
        trace: the stack trace of its error.
        hashed: tables of MariaDB that have had a unique key of long columns.
    """
    found = _SIZES.search(trace)
    if found and found[1] in hashed and int(found[3]) > int(found[2]):
        return "a unique key of long columns, which has a hidden column in MariaDB"
    return next((reason for text, reason in STOPS.items() if text in trace), None)


_SIZES = re.compile(r"row in (.+), internal schema size (\d+), but row size (\d+) ,")
