"""What rowtide does not support, and `rowtide.ignore.unsupported`, which leaves out what changes no record."""

import pytest

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES
from rowtide.connector.config.catalogue.property import Status
from tests.support import configurations

IGNORE = {"rowtide.ignore.unsupported": "true"}


def problems_of(properties: dict[str, str]) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(configurations.PROPERTIES | properties)
    return {problem.property: problem.message for problem in caught.value.problems}


HARMLESS = {"poll.dispatch.interval.ms": "5", "queue.provider.type": "disk"}
HARMFUL = {"schema.history.internal.redis.address": "a", "tabel.include.list": "a"}


def test_without_the_option_every_unsupported_property_is_an_error_that_names_the_option() -> None:
    found = problems_of(HARMLESS | HARMFUL)
    assert found.keys() == HARMLESS.keys() | HARMFUL.keys()
    assert {name for name, message in found.items() if "--ignore-unsupported" in message} == HARMLESS.keys()


def test_with_it_they_are_omitted_and_listed() -> None:
    warnings = from_properties(configurations.PROPERTIES | HARMLESS | IGNORE).warnings
    for name in HARMLESS:
        assert any(warning.startswith(f"{name} is skipped") for warning in warnings)


def test_what_changes_records_is_never_left_out() -> None:
    assert problems_of(HARMFUL | HARMLESS | IGNORE).keys() == HARMFUL.keys()


def test_no_property_with_an_influence_on_records_may_be_omitted() -> None:
    may = {one.name for one in PROPERTIES.values() if one.ignorable} | {one.form for one in FAMILIES if one.ignorable}
    assert may == {
        "database.connection.factory.class",
        "internal.custom.retriable.exception",
        "poll.dispatch.interval.ms",
        "queue.provider.type",
        "snapshot.locking.mode.custom.name",
        "snapshot.mode.custom.name",
        "snapshot.query.mode.custom.name",
    }
    assert all(PROPERTIES[name].status is Status.NOT_YET or PROPERTIES[name].refused for name in may)


def test_interceptors_that_only_measure_have_no_effect() -> None:
    name = "producer.interceptor.classes"
    monitoring = "io.confluent.monitoring.clients.interceptor.MonitoringProducerInterceptor"
    assert "interceptor.classes" not in from_properties(configurations.PROPERTIES | {name: monitoring}).kafka.producer
    assert problems_of({name: f"{monitoring},a.B"}).keys() == {name}
