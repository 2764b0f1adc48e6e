"""The version of an API that rowtide and a broker have in common."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.wire.apis import (
    APIS,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    BrokerVersions,
    api_of,
)
from rowtide.connector.kafka_producer.wire.errors import UnsupportedBroker
from rowtide.connector.kafka_producer.wire.messages.opening import (
    ApiRange,
    ApiVersionsAnswer,
    FinalizedFeature,
)


def versions(lowest: int, highest: int, **features: int) -> BrokerVersions:
    return BrokerVersions({PRODUCE.key: (lowest, highest)}, features)


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"), [(0, 13, 13), (0, 99, 13), (3, 3, 3), (0, 7, 7), (13, 20, 13)]
)
def test_the_highest_common_version(lowest: int, highest: int, expected: int) -> None:
    assert versions(lowest, highest).version(PRODUCE) == expected


def test_a_limit_for_one_request() -> None:
    assert versions(0, 13).version(PRODUCE, at_most=11) == 11
    assert versions(0, 9).version(PRODUCE, at_most=11) == 9
    with pytest.raises(UnsupportedBroker, match="the versions 12 to 13 of Produce, rowtide has 3 to 11"):
        versions(12, 13).version(PRODUCE, at_most=11)


def test_no_common_version() -> None:
    with pytest.raises(UnsupportedBroker, match="the broker has the versions 0 to 2 of Produce, rowtide has 3 to 13"):
        versions(0, 2).version(PRODUCE)
    with pytest.raises(UnsupportedBroker, match="the broker has the versions 14 to 15 of Produce"):
        versions(14, 15).version(PRODUCE)
    with pytest.raises(UnsupportedBroker, match="the broker does not support the API InitProducerId"):
        versions(0, 13).version(INIT_PRODUCER_ID)


def test_what_an_answer_says() -> None:
    features = tuple(
        FinalizedFeature(name=name, min_version_level=0, max_version_level=level)
        for name, level in (("transaction.version", 2), ("group.version", 1))
    )
    answer = ApiVersionsAnswer(
        error=0,
        api_keys=(ApiRange(api_key=3, min_version=4, max_version=12),),
        finalized_features=features,
    )
    known = BrokerVersions.of(answer)
    assert known.version(METADATA) == 12
    assert known.features == {"transaction.version": 2, "group.version": 1}


@pytest.mark.parametrize(("level", "expected"), [(None, False), (1, False), (2, True), (3, True)])
def test_transactions_of_version_2(level: int | None, *, expected: bool) -> None:
    features = {} if level is None else {"transaction.version": level}
    assert versions(0, 13, **features).transactions_v2 is expected


def test_every_request_has_its_api() -> None:
    for api in APIS:
        assert api_of(api.request.__new__(api.request)) is api
