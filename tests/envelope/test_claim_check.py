"""Claim checks are recognised without doubt, and their values are verified."""

import hashlib

import pytest

from rowtide.envelope.claim_check import ClaimCheck, InvalidClaimCheck

VALUE = b'{"before":null,"after":{"id":1}}'
DIGEST = hashlib.sha256(VALUE).hexdigest()
CHECK = ClaimCheck(f"s3://bucket/large/shop.shop.orders/{DIGEST}", DIGEST, len(VALUE))


def test_the_value_of_a_record_names_its_claim_check() -> None:
    value = CHECK.record_value()
    assert value == f"rowtide-claim-check {DIGEST} {len(VALUE)} {CHECK.url}".encode()
    assert ClaimCheck.parse(value) == CHECK
    assert CHECK.name == f"shop.shop.orders/{DIGEST}"
    assert dict(CHECK.headers()) == {
        "rowtide.claim.check.url": CHECK.url.encode(),
        "rowtide.claim.check.sha256": DIGEST.encode(),
        "rowtide.claim.check.size": b"32",
    }


@pytest.mark.parametrize(
    "url",
    [
        f"s3://bucket/shop.shop.orders/{'0' * 64}",  # the file of another value
        f"file:///data/../{DIGEST}",
        f"file:///data/./{DIGEST}",
        DIGEST,
        "",
    ],
)
def test_a_damaged_claim_check_is_an_error(url: str) -> None:
    with pytest.raises(InvalidClaimCheck, match="damaged"):
        ClaimCheck.parse(f"rowtide-claim-check {DIGEST} 32 {url}".encode())


@pytest.mark.parametrize("stored", [VALUE[:-1], VALUE + b" ", VALUE.replace(b"1", b"2"), b""])
def test_another_value_than_the_stored_one_is_an_error(stored: bytes) -> None:
    CHECK.verify(VALUE)
    with pytest.raises(InvalidClaimCheck, match=CHECK.url):
        CHECK.verify(stored)
