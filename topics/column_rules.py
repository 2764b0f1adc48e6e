"""Rules that truncate, mask or hash the values of columns, and the columns to which they apply.

The rules are properties with a parameter in their name, such as ``column.mask.with.5.chars``. They are applied where
values are written.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.topics.filters import Patterns


@dataclass(frozen=True, slots=True)
class Truncate:
    """Keep the first ``length`` characters (``column.truncate.to.N.chars``)."""

    length: int


@dataclass(frozen=True, slots=True)
class Mask:
    """Write ``length`` asterisks instead of every value, NULL included (``column.mask.with.N.chars``)."""

    length: int


@dataclass(frozen=True, slots=True)
class Hash:
    """Write a salted digest instead of the value (``column.mask.hash[.v2].ALGORITHM.with.salt.SALT``).

    Attributes:
        algorithm: Java's name of the algorithm, for example ``SHA-256``.
        salt: digested before the value.
        version: 2 to digest the bytes of the value, 1 to digest the value as Java serialises it.
    """

    algorithm: str
    salt: str = field(repr=False)
    version: int

    @property
    def hashlib_name(self) -> str:
        """The name of the algorithm in ``hashlib``."""
        return _HASHLIB[self.algorithm.upper()]


ColumnRule = Truncate | Mask | Hash

_HASHLIB = {
    "MD5": "md5",
    "SHA": "sha1",
    "SHA1": "sha1",
    "SHA-1": "sha1",
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512/224": "sha512_224",
    "SHA-512/256": "sha512_256",
    "SHA3-224": "sha3_224",
    "SHA3-256": "sha3_256",
    "SHA3-384": "sha3_384",
    "SHA3-512": "sha3_512",
}
_NAMES = (  # in the order in which Debezium matches them
    re.compile(r"column\.truncate\.to\.(?P<truncate>\d+)\.chars"),
    re.compile(r"column\.mask\.with\.(?P<mask>\d+)\.chars"),
    re.compile(r"column\.mask\.hash\.(?P<hash>[^.]+)\.with\.salt\.(?P<salt>.*)", re.DOTALL),
    re.compile(r"column\.mask\.hash\.v2\.(?P<hash2>[^.]+)\.with\.salt\.(?P<salt>.*)", re.DOTALL),
)


def is_rule_name(name: str) -> bool:
    """Return whether the name of a property is that of a column rule."""
    return any(pattern.fullmatch(name) for pattern in _NAMES)


def parse_rule_name(name: str) -> ColumnRule:
    """Parse the name of a property that is a column rule.

    Raises:
        ValueError: the name is not that of a rule, or the hash algorithm is unknown.
    """
    for pattern in _NAMES:
        if match := pattern.fullmatch(name):
            found = match.groupdict()
            if "truncate" in found:
                return Truncate(int(found["truncate"]))
            if "mask" in found:
                return Mask(int(found["mask"]))
            version = 2 if "hash2" in found else 1
            algorithm = found["hash2" if version == 2 else "hash"]
            known = _HASHLIB.get(algorithm.upper())
            if known is None or known not in hashlib.algorithms_available:
                raise ValueError(f"unknown hash algorithm {algorithm!r}; known are {', '.join(_HASHLIB)}")
            return Hash(algorithm, found["salt"], version)
    raise ValueError(f"{name!r} is not the name of a column rule")


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """All rules; if several match a column, the first applies in Debezium's order: truncate, mask, hash, hash v2.

    Attributes:
        rules: each rule with its patterns for ``db.table.column``.
    """

    rules: tuple[tuple[ColumnRule, Patterns], ...] = ()

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> "ColumnRules":
        """Parse the rules from properties whose names are rules.

        Raises:
            ValueError: a name or a pattern is invalid.
        """
        order = (Truncate, Mask, Hash)
        rules = [
            (rule, Patterns.parse(value))
            for name, value in properties.items()
            # Debezium's patterns require at least one character of salt, and ignore a property without it.
            if not (isinstance(rule := parse_rule_name(name), Hash) and not rule.salt)
        ]
        rules.sort(key=lambda one: (order.index(type(one[0])), one[0].version if isinstance(one[0], Hash) else 0))
        return cls(tuple(rules))

    def rule_for(self, database: str, table: str, column: str) -> ColumnRule | None:
        """Return the rule for a column, or ``None`` if its values are not changed."""
        name = f"{database}.{table}.{column}"
        return next((rule for rule, patterns in self.rules if patterns.match(name)), None)
