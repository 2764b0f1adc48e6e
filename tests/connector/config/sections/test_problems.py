"""Invalid configurations: all problems are reported together, each with its property and a remedy."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.envelope.post_processors import RESELECT


def problems(properties: dict[str, str], environ: dict[str, str] | None = None) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(properties, environ)
    return dict(caught.value.problems)


def test_an_empty_configuration_names_all_required_properties() -> None:
    assert problems({}).keys() == {
        "topic.prefix",
        "database.hostname",
        "database.user",
        "database.server.id",
        "bootstrap.servers",
        "schema.history.internal.kafka.topic",
    }


CASES = [
    ("database.hostnme", "x", "did you mean database.hostname"),
    ("tabel.include.list", "x", "did you mean table.include.list"),
    ("producer.override.linger", "5", "did you mean linger.ms"),
    ("producer.override.fetch.min.bytes", "5", "is not a setting of a producer"),
    ("producer.override.linger.ms", "soon", "must be a whole number from 0 to 900000"),
    ("producer.override.compression.type", "rar", "must be one of none, gzip, snappy, lz4, zstd"),
    ("producer.override.interceptor.classes", "a.B", "names a Java class"),
    ("producer.override.buffer.memory", "32MB", "must be a whole number"),
    ("producer.override.ssl.truststore.location", "/x/trust.jks", "/x/trust.jks cannot be read: No such file"),
    ("producer.override.sasl.jaas.config", "nonsense", "LoginModule required"),
    ("consumer.auto.offset.reset", "now", "must be one of smallest"),
    ("snapshot.mode", "never", "removed in Debezium 3.6; use no_data"),
    ("snapshot.mode", "schema_only", "its new name is no_data"),
    ("snapshot.mode", "schema_only_recovery", "its new name is recovery"),
    ("snapshot.mode", "sometimes", "must be one of initial, initial_only"),
    ("time.precision.mode", "adaptive", "The 'adaptive' time.precision.mode is no longer supported"),
    ("transaction.boundary", "connector", "use poll or interval"),
    ("database.server.name", "x", "renamed in Debezium 2.0: use topic.prefix"),
    ("database.whitelist", "x", "use database.include.list"),
    ("database.history.kafka.topic", "x", "use schema.history.internal.kafka.topic"),
    ("slot.name", "x", "PostgreSQL"),
    ("table.include.list", "shop\\.(a", "invalid regular expression 'shop\\\\.(a': unclosed group"),
    ("column.mask.with.5.chars", "[", "invalid regular expression '['"),
    ("column.mask.hash.NONE.with.salt.x", "a", "unknown hash algorithm 'NONE'"),
    ("message.key.columns", "a.b", "database.table:column"),
    ("custom.sanitize.pattern", "(", "invalid regular expression"),
    ("topic.prefix", "shop/one", "ASCII letters"),
    ("database.hostname", "a b", "host name"),
    ("database.port", "70000", "must be at most 65535, not '70000'"),
    ("database.port", "3306.5", "must be a whole number"),
    ("database.server.id", "0", "must be at least 1"),
    ("rowtide.replica.host", "h" * 61, "at most 60 bytes"),
    ("rowtide.replica.uuid", "a6c0", "must be a UUID"),
    ("rowtide.replica.dump.flags", "5", "must not have the flag 1, which ends the stream"),
    ("rowtide.semi.sync.acknowledge", "sometimes", "must be one of received, delivered"),
    ("database.ssl.mode", "maybe", "must be one of disabled, preferred"),
    ("include.query", "yes", "must be 'true' or 'false', not 'yes'"),
    ("max.queue.size", "2048", "must be greater than max.batch.size"),
    ("rowtide.mirror.read", "always", "always needs rowtide.mirror.directory"),
    ("skipped.operations", "c,x", "x is not one of them"),
    ("skipped.operations", "none,c", "nothing else"),
    ("signal.data.collection", "a", "is not of the form database.table"),
    ("signal.enabled.channels", "source,fax", "may hold file, in-process, jmx, kafka, source; not 'fax'"),
    ("signal.kafka.topic", "a b", "may only contain ASCII letters"),
    (
        "value.converter",
        "io.confluent.connect.json.JsonSchemaConverter",
        "is not supported; org.apache.kafka.connect.json.JsonConverter, ",
    ),
    ("transforms", "unwrap", "transforms.unwrap.type: is required"),
    (
        "notification.enabled.channels",
        "sink",
        "notification.sink.topic.name: is required, since the channel",
    ),
    ("notification.enabled.channels", "mail", "may hold sink, log and jmx, not 'mail'"),
    ("notification.sink.topic.name", "a b", "may only contain ASCII letters"),
    ("bootstrap.servers", "localhost", "'localhost' is not of the form host:port"),
    ("bootstrap.servers", "localhost:99999", "'localhost:99999' is not of the form host:port"),
    ("bootstrap.servers", "a:9092, b:0", "'b:0' is not of the form host:port"),
    ("bootstrap.servers", " , ", "names no broker"),
    ("schema.history.internal.kafka.bootstrap.servers", ",", "names no broker"),
    ("topic.naming.strategy", "com.example.Mine", "must be one of io.debezium.schema.DefaultTopicNamingStrategy"),
    ("topic.regex", "a", "has no effect with DefaultTopicNamingStrategy"),
    ("topic.delimiter", "#", "ASCII letters"),
    ("topic.creation.default.partitions", "0", "must be positive, or -1"),
    ("topic.creation.logs.partitions", "3", "unless topic.creation.groups names the group 'logs'"),
    ("topic.creation.groups", "logs", "is required, since topic.creation.groups names the group"),
    ("snapshot.select.statement.overrides", "a.b", "is required, since snapshot.select.statement.overrides names"),
    ("snapshot.select.statement.overrides.a.b", "select 1", "has no effect unless"),
    ("schema.history.internal", "io.debezium.storage.redis.history.RedisSchemaHistory", "must be one of"),
    ("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory", "file.filename: is required"),
    ("schema.history.internal.redis.address", "x", "does not support yet"),
    ("producer.override.acks", "1", "must be all"),
    ("producer.override.enable.idempotence", "false", "must be true"),
    ("database.protocol", "x", "does not exist for mariadb"),
    ("connector.class", "io.debezium.connector.postgresql.PostgresConnector", "must be one of io.debezium.connector"),
    ("custom.metric.tags", "team", "is not of the form name=value"),
    ("post.processors", "a", "a.type: is required"),
    ("source.struct.version", "v3", "must be one of v2, v1"),
    ("unavailable.value.placeholder", "hex:0g", "hexadecimal"),
    ("database.password", "${file:/does/not/exist:key}", "cannot be resolved: /does/not/exist cannot be read"),
]


@pytest.mark.parametrize(("name", "value", "reason"), CASES, ids=[f"{case[0]}={case[1]}" for case in CASES])
def test_an_invalid_value_is_a_problem_of_its_property(
    name: str, value: str, reason: str, valid: dict[str, str]
) -> None:
    flavor = {"database.flavor": "mariadb"} if "mariadb" in reason else {}
    found = problems(valid | flavor | {name: value})
    assert len(found) == 1
    assert reason in " ".join(f"{subject}: {message}" for subject, message in found.items())


def test_all_problems_are_reported_at_once(valid: dict[str, str]) -> None:
    wrong = [
        case
        for case in CASES
        if "database.flavor" not in case and case[0] not in ("connector.class", "database.protocol")
    ]
    together: dict[str, str] = {}
    for name, value, _ in wrong:
        together.setdefault(name, value)
    found = problems(valid | together)
    assert len(found) > 40
    assert len(found) > len(together) - 8  # some of them take one another's place


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("database.include.list", "database.exclude.list"),
        ("table.include.list", "table.exclude.list"),
        ("column.include.list", "column.exclude.list"),
    ],
)
def test_lists_that_exclude_each_other(one: str, other: str, valid: dict[str, str]) -> None:
    assert problems(valid | {one: "a", other: "b"}) == {other: f"cannot be used together with {one}"}
    from_properties(valid | {one: "a", other: " "})


def test_exactly_once_cannot_be_required_of_a_worker_without_support(valid: dict[str, str]) -> None:
    found = problems(valid | {"exactly.once.support": "required", "exactly.once.source.support": "disabled"})
    assert "enable it" in found["exactly.once.support"]


def test_exactly_once_without_kafka_names_the_way_out(valid: dict[str, str]) -> None:
    found = problems(valid | {"exactly.once.source.support": "enabled", "rowtide.sink": "stdout"})
    assert "disable it to use another rowtide.sink" in found["exactly.once.source.support"]


@pytest.mark.parametrize(
    ("given", "name", "reason"),
    [
        ({"rowtide.large.records": "claim-check"}, "rowtide.large.records.claim.check.url", "is required with"),
        ({"rowtide.large.records": "dead-letter"}, "errors.deadletterqueue.topic.name", "is required with"),
        (
            {
                "rowtide.large.records": "without-before",
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            },
            "rowtide.large.records",
            "needs value.converter=org.apache.kafka.connect.json.JsonConverter",
        ),
        ({"rowtide.large.records": "skip"}, "rowtide.large.records", "must be one of fail, claim-check"),
        *(
            (
                {"rowtide.large.records": "claim-check", "rowtide.large.records.claim.check.url": url},
                "rowtide.large.records.claim.check.url",
                "must not have spaces, a query or credentials",
            )
            for url in ("ftp://me:secret@host/large", "s3://bucket/my folder", "s3://bucket/large?versions=1")
        ),
        ({"errors.deadletterqueue.topic.name": "history"}, "errors.deadletterqueue.topic.name", "is already used for"),
    ],
)
def test_what_large_records_need(given: dict[str, str], name: str, reason: str, valid: dict[str, str]) -> None:
    assert reason in problems(valid | given)[name]


def test_settings_of_large_records_without_effect_are_named(valid: dict[str, str]) -> None:
    given = {"rowtide.large.records.claim.check.url": "/x", "errors.deadletterqueue.topic.name": "letters"}
    found = " ".join(from_properties(valid | given).warnings)
    assert "claim.check.url has no effect without rowtide.large.records=claim-check" in found
    assert "topic.name has no effect without errors.tolerance=all, rowtide.large.records=dead-letter or event" in found
    for effective in (
        {"errors.tolerance": "all"},
        {"rowtide.large.records": "dead-letter"},
        {"event.deserialization.failure.handling.mode": "warn"},
    ):
        assert not any("topic.name" in one for one in from_properties(valid | given | effective).warnings)
    elsewhere = from_properties(valid | given | {"rowtide.large.records": "claim-check", "rowtide.sink": "stdout"})
    assert any("rowtide.large.records has no effect with rowtide.sink=stdout" in one for one in elsewhere.warnings)


def test_what_only_kafka_needs_names_the_files_instead(valid: dict[str, str]) -> None:
    names = ("bootstrap.servers", "schema.history.internal.kafka.topic")
    found = problems({name: text for name, text in valid.items() if name not in names} | {"rowtide.sink": "stdout"})
    assert "offset.storage.file.filename" in found["bootstrap.servers"]
    assert all("schema.history.internal.file.filename" in found[name] for name in names)


def test_a_problem_from_the_environment_names_the_variable(valid: dict[str, str]) -> None:
    assert "database.port (from ROWTIDE_DATABASE_PORT)" in problems(valid, {"ROWTIDE_DATABASE_PORT": "x"})
    assert "databse.port (from ROWTIDE_DATABSE_PORT)" in problems(valid, {"ROWTIDE_DATABSE_PORT": "1"})


def test_two_names_of_one_setting_must_not_contradict_each_other(valid: dict[str, str]) -> None:
    found = problems(valid | {"producer.override.linger.ms": "5", "producer.override.queue.buffering.max.ms": "6"})
    assert "the same setting" in next(iter(found.values()))


def test_the_connectors_own_topics_must_differ(valid: dict[str, str]) -> None:
    assert (
        "shop"
        in problems(valid | {"schema.history.internal.kafka.topic": "shop"})["schema.history.internal.kafka.topic"]
    )


def test_contradicting_kinds_of_server(valid: dict[str, str]) -> None:
    both = {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "database.flavor": "mariadb"}
    assert "contradicts connector.class" in problems(valid | both)["database.flavor"]


TEXT: Any = st.text(max_size=20)


@given(st.dictionaries(st.sampled_from([case[0] for case in CASES]), TEXT))
@example({"producer.override.ssl.truststore.location": "\0"})
def test_any_text_is_parsed_or_refused_with_its_property(properties: dict[str, str]) -> None:
    assert all(subject and message for subject, message in problems(properties).items())


def test_a_reference_that_cannot_be_resolved_is_one_problem(valid: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(valid | {"database.port": "${env:ROWTIDE_TEST_NONE}"}, {})
    assert [problem.property for problem in caught.value.problems] == ["database.port"]


def test_rows_are_read_again_only_if_their_commit_does_not_wait_for_it(valid: dict[str, str]) -> None:
    again = {"post.processors": "again", "again.type": RESELECT, "rowtide.semi.sync": "true"}
    assert "must be received" in problems(valid | again)["rowtide.semi.sync.acknowledge"]
    from_properties(valid | again | {"rowtide.semi.sync.acknowledge": "received"})
