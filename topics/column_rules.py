"""What is done to the text of a column before it is published: truncated, masked, or hashed.

The rules come from properties whose names carry a parameter (``column.mask.with.5.chars``). How the text is changed
is the business of whoever writes values; this module says which rule holds for which column.
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
    """Write ``length`` asterisks instead of any value, NULL too (``column.mask.with.N.chars``)."""

    length: int


@dataclass(frozen=True, slots=True)
class Hash:
    """Write a salted digest instead of the value (``column.mask.hash[.v2].ALGORITHM.with.salt.SALT``).

    Attributes:
        algorithm: Java's name of the algorithm, for example ``SHA-256``.
        salt: digested before the value.
        version: 2 digests the value's bytes, 1 the value as Java serialises it.
    """

    algorithm: str
    salt: str = field(repr=False)
    version: int

    @property
    def hashlib_name(self) -> str:
        """The same algorithm's name in ``hashlib``."""
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
_NAMES = (  # in the order in which Debezium asks them
    re.compile(r"column\.truncate\.to\.(?P<truncate>\d+)\.chars"),
    re.compile(r"column\.mask\.with\.(?P<mask>\d+)\.chars"),
    re.compile(r"column\.mask\.hash\.(?P<hash>[^.]+)\.with\.salt\.(?P<salt>.*)", re.DOTALL),
    re.compile(r"column\.mask\.hash\.v2\.(?P<hash2>[^.]+)\.with\.salt\.(?P<salt>.*)", re.DOTALL),
)


def is_rule_name(name: str) -> bool:
    """Whether a property's name has the form of a column rule."""
    return any(pattern.fullmatch(name) for pattern in _NAMES)


def parse_rule_name(name: str) -> ColumnRule:
    """The rule that a property's name describes.

    Raises:
        ValueError: no such rule, or an unknown hash algorithm.
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
    """All rules; where several match a column, Debezium's order decides: truncate, mask, hash, hash v2.

    Attributes:
        rules: each rule with the columns it holds for, on ``db.table.column``.
    """

    rules: tuple[tuple[ColumnRule, Patterns], ...] = ()

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> "ColumnRules":
        """Read the rules out of properties whose names are rules.

        Raises:
            ValueError: a name or a pattern is not valid.
        """
        order = (Truncate, Mask, Hash)
        rules = [
            (rule, Patterns.parse(value))
            for name, value in properties.items()
            # Debezium's patterns want at least one character of salt, and leave such a property alone.
            if not (isinstance(rule := parse_rule_name(name), Hash) and not rule.salt)
        ]
        rules.sort(key=lambda one: (order.index(type(one[0])), one[0].version if isinstance(one[0], Hash) else 0))
        return cls(tuple(rules))

    def rule_for(self, database: str, table: str, column: str) -> ColumnRule | None:
        """The rule for a column, or ``None`` if its values are published as they are."""
        name = f"{database}.{table}.{column}"
        return next((rule for rule, patterns in self.rules if patterns.match(name)), None)
