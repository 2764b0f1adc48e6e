"""Topic naming strategies from their properties to records; a recorded stream replayed with other names."""

import json

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from tests.support.recordings.golden import Case, Written, by_topic, written

STRATEGY = "io.debezium.schema."


def replayed(name: str, **more: str) -> dict[str, list[Written]]:
    case = Case(name)
    settings = pipeline_settings(from_properties(case.properties() | more), "run")
    return by_topic(written(replay(case.binlog, settings, case.start)))


def keys(messages: list[Written]) -> list[tuple[list[str], dict[str, object]]]:
    found = []
    for message in messages:
        assert message.key is not None
        key = json.loads(message.key)
        found.append(([field["field"] for field in key["schema"]["fields"]], key["payload"]))
    return found


def test_schema_strategies_leave_out_the_database() -> None:
    topics = replayed("keys", **{"topic.naming.strategy": STRATEGY + "SchemaTopicNamingStrategy"})
    assert "keys.late" in topics
    value = topics["keys.late"][0].value
    assert value is not None
    assert json.loads(value)["schema"]["name"] == "keys.late.Envelope"


def test_unicode_strategies_escape_what_kafka_does_not_allow() -> None:
    topics = replayed("weird-names", **{"topic.naming.strategy": STRATEGY + "DefaultUnicodeTopicNamingStrategy"})
    assert "weird_u005fPre-fix.2._u00dcn_u00ef_u0020db.t_u00e0ble" in topics


REGEX = {
    "topic.naming.strategy": STRATEGY + "DefaultRegexTopicNamingStrategy",
    "topic.regex": "(.*)[.](late|func|comp)",
    "topic.replacement": "$1.all",
}


def test_regex_strategies_join_tables_and_keep_their_keys_distinct() -> None:
    plain, joined = replayed("keys"), replayed("keys", **REGEX)
    assert {"keys.k.late", "keys.k.func", "keys.k.comp"}.isdisjoint(joined)
    messages = joined["keys.k.all"]
    assert len(messages) == sum(len(plain[f"keys.k.{name}"]) for name in ("late", "func", "comp"))
    for fields, payload in keys(messages):
        assert fields[-1] == "__dbz__physicalTableIdentifier"
        assert payload[fields[-1]] in {"keys.k.late", "keys.k.func", "keys.k.comp"}
    fields, payload = next(found for found in keys(messages) if found[1][found[0][-1]] == "keys.k.func")
    assert len(fields) == 1  # a table without a key has one of that field alone
    assert list(payload) == fields


def test_name_and_value_of_the_key_field_can_be_configured() -> None:
    more = {
        "topic.key.field.name": "shard",
        "topic.key.field.regex": "keys[.]k[.](.*)",
        "topic.key.field.replacement": "<$1>",
    }
    joined = replayed("keys", **REGEX, **more)["keys.k.all"]
    assert {str(payload["shard"]) for _, payload in keys(joined)} == {"<late>", "<func>", "<comp>"}


def test_the_key_field_can_be_disabled() -> None:
    joined = replayed("keys", **REGEX, **{"topic.key.enforce.uniqueness": "false"})["keys.k.all"]
    assert any(message.key is None for message in joined)
    with_key = [message for message in joined if message.key is not None]
    assert {name for fields, _ in keys(with_key) for name in fields} <= {"a", "b", "c"}


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_context_headers_can_be_omitted(enabled: str) -> None:
    messages = replayed("keys", **{"extended.headers.enabled": enabled})["keys.k.late"]
    assert all(bool(message.headers) == (enabled == "true") for message in messages)
