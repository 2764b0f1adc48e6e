"""Claim checks: records that point to a value that is stored outside of Kafka, because it is too large.

The value of such a record is a line of text, ``rowtide-claim-check <sha256> <size> <url>``. Its parts are also in
headers. No converter writes a change that begins like this: JSON begins with ``{``, Avro and Protobuf with a zero
byte. So a consumer without support for claim checks fails instead of reading a row. The value is not null, because a
record without a value deletes its key.
"""

import hashlib
import re
from typing import NamedTuple, Self

OPENING = b"rowtide-claim-check "
"""The first bytes of the value of such a record."""

URL_HEADER = "rowtide.claim.check.url"
SHA256_HEADER = "rowtide.claim.check.sha256"
SIZE_HEADER = "rowtide.claim.check.size"

_FORM = re.compile(rb"rowtide-claim-check ([0-9a-f]{64}) ([0-9]+) (\S+/([A-Za-z0-9._-]+)/\1)")


class InvalidClaimCheck(ValueError):
    """A record that begins like a claim check but is not one, or a value that does not match its claim check."""


class ClaimCheck(NamedTuple):
    """A reference to a stored value.

    Attributes:
        url: of the file.
        sha256: of the value, in hexadecimal digits.
        size: of the value in bytes.
    """

    url: str
    sha256: str
    size: int

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Return the claim check of a record, whose value begins with :data:`OPENING`.

        Raises:
            InvalidClaimCheck: the value is damaged.
        """
        found = _FORM.fullmatch(value)
        if found is None or found[4] in (b".", b".."):
            raise InvalidClaimCheck(f"it begins like a claim check but is damaged: {value[:200]!r}")
        return cls(found[3].decode(), found[1].decode(), int(found[2]))

    @property
    def name(self) -> str:
        """The name of the file in its folder: ``<topic>/<sha256>``."""
        return "/".join(self.url.split("/")[-2:])

    def record_value(self) -> bytes:
        """Return the value of the record."""
        return OPENING + f"{self.sha256} {self.size} {self.url}".encode()

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Return the headers of the record."""
        return [
            (URL_HEADER, self.url.encode()),
            (SHA256_HEADER, self.sha256.encode()),
            (SIZE_HEADER, str(self.size).encode()),
        ]

    def verify(self, value: bytes) -> None:
        """Compare a value with this claim check.

        Raises:
            InvalidClaimCheck: it is not the value that was stored.
        """
        if len(value) != self.size or hashlib.sha256(value).hexdigest() != self.sha256:
            raise InvalidClaimCheck(
                f"the file {self.url} has {len(value)} bytes, and not the {self.size} bytes with the SHA-256 "
                f"{self.sha256} that were stored: it was changed or damaged"
            )
