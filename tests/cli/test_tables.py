"""``rowtide tables`` before Spark starts: its help, and mistakes in its options."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.tables import _registry, _trigger, run_settings
from rowtide.spark_consumers.errors import SettingsError


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["tables", *arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--topic-prefix", "p"], "no Kafka brokers: set --bootstrap-servers, or --config"),
        (["--bootstrap-servers", "h:1"], "no topics: set --topic-prefix or --topics"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--kafka-property", "x"], "x: expected NAME=VALUE"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--spark-conf", "x"], "x: expected NAME=VALUE"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--table-property", "x"], "x: expected NAME=VALUE"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--append", "--soft-delete"], "choose one of them"),
        (
            ["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--append", "--history"],
            "--append and --history: choose",
        ),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--metadata", "op, lsn"], "'lsn' is unknown; there are"),
    ],
)
def test_a_missing_or_wrong_option_is_reported_before_spark_starts(arguments: list[str], what: str) -> None:
    status, text = run("--output", "/nowhere", *arguments)
    assert status == 1
    assert what in text


def test_only_a_catalog_with_a_directory_for_offsets_replaces_the_output() -> None:
    for arguments in ((), ("--catalog", "lake"), ("--state", "/nowhere")):
        status, text = run("--topic-prefix", "p", "--bootstrap-servers", "h:1", "--format", "iceberg", *arguments)
        assert status == 1
        assert "no directory for tables: set --output, or --catalog and --state" in text


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--trigger", "10s"], "--trigger needs --follow"),
        (["--web-port", "0"], "--web-port needs --follow"),
        (["--follow", "--available-now"], "--follow and --available-now: choose one of them"),
        (["--follow", "--trigger", "often"], "--trigger often: expected a duration such as 30s"),
        (["--optimize", "--upkeep-every", "1h"], "--upkeep-every needs --follow"),
        (["--follow", "--upkeep-every", "1h"], "--upkeep-every needs --follow, and --optimize"),
        (["--optimize", "--restart", "d.t"], "run the command twice"),
        (["--vacuum", "7"], "--vacuum 7: expected a duration with its unit, such as 7d or 168h"),
        (["--follow", "--optimize", "--upkeep-every", "x"], "such as 1h or '100 batches'"),
        (["--expire", "1h"], "--expire 1h: transactions that are running need the commits since their start. Give 24h"),
        (["--format", "parquet", "--optimize"], "Tables in parquet need none"),
    ],
)
def test_options_of_streaming_and_upkeep_are_checked_first(arguments: list[str], what: str) -> None:
    status, text = run("--output", "/nowhere", "--topic-prefix", "p", "--bootstrap-servers", "h:1", *arguments)
    assert status == 1
    assert what in text


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--exclude-changes", "colum"], "--exclude-changes colum: unknown kind; there are add.column, alter.column"),
        (["--include-changes", "drop.column"], "drop.column needs rename.column"),
    ],
)
def test_kinds_of_changes_are_checked_first(arguments: list[str], what: str) -> None:
    status, text = run("--output", "/nowhere", "--topic-prefix", "p", "--bootstrap-servers", "h:1", *arguments)
    assert status == 1
    assert what in text


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (None, "10 seconds"), ("5", "5 seconds"), ("30s", "30 seconds"), ("30 seconds", "30 seconds"),
        ("1 minute", "1 minutes"), ("2m", "2 minutes"), ("200ms", "200 milliseconds"),
        ("1 millisecond", "1 milliseconds"), ("1h", "1 hours"),
    ],
)  # fmt: skip
def test_a_trigger_is_given_to_spark_in_its_words(interval: str | None, expected: str) -> None:
    given = {"follow": True, "available_now": False, "trigger": interval, "web_port": None}
    assert _trigger(given) == {"processingTime": expected}


def test_given_schemas_must_be_json(tmp_path: Path) -> None:
    for text, what in [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"p.d.t": []}', 'p.d.t needs a JSON object {"key": SCHEMA, "value": SCHEMA}'),
        ('{"p.d.t": {"key": "int32"}}', "p.d.t needs a JSON object"),
    ]:
        file = tmp_path / "schemas.json"
        file.write_text(text)
        status, output = run(
            "--output", "/nowhere", "--topic-prefix", "p", "--bootstrap-servers", "h:1", "--schemas", str(file)
        )
        assert status == 1
        assert what in output


def options(file: Path | None = None, **given: object) -> dict[str, object]:
    """The options of a call, most of them with their defaults."""
    usual = {
        "config": (str(file),) if file else (), "bootstrap_servers": None, "topic_prefix": None, "topics": None,
        "kafka_properties": (),
        "output": "/nowhere", "state": None, "table_format": "delta", "keyless": "apply", "max_records": None,
        "numeric_decimals": False, "schemas": None, "unavailable_placeholder": None, "parallel": 2,
        "claim_checks": None, "catalog": None, "table_properties": (), "metadata": (),
        "partition_by": (), "cluster_by": (), "where": None, "columns": (), "compute": (),
        "append": False, "soft_delete": False, "history": False, "job": None,
        "schema_change": "evolve", "include_changes": (), "exclude_changes": (),
    }  # fmt: skip
    return {**usual, **given}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.properties", "# c\n! d\ntopic.prefix = p\nbootstrap.servers: a:1,\\\n    b:2\ndatabase.password=x\n"),
        ("c.json", '{"name": "n", "config": {"topic.prefix": "p", "bootstrap.servers": "a:1,b:2"}}'),
        ("c.yaml", "topic: {prefix: p}\nbootstrap.servers: [a:1, b:2]\ndatabase.password: ${env:ROWTIDE_TEST_NONE}\n"),
    ],
)
def test_a_connectors_configuration_has_the_addresses_of_kafka(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    properties, found = run_settings(options(file))
    assert (properties, found.prefix) == ({"bootstrap.servers": "a:1,b:2"}, "p")
    properties, found = run_settings(options(file, topic_prefix="q", bootstrap_servers="c:3"))
    assert (properties, found.prefix) == ({"bootstrap.servers": "c:3"}, "q")


@pytest.mark.parametrize(
    ("url", "given", "expected"),
    [
        ("s3://bucket/large", None, "s3a://bucket/large"),
        ("/data/s3:", None, "/data/s3:"),
        ("s3://bucket/large", "hdfs://n/large", "hdfs://n/large"),
        ("", None, None),
    ],
)
def test_the_folder_of_claim_checks_is_that_of_the_connector(
    tmp_path: Path, url: str, given: str | None, expected: str | None
) -> None:
    file = tmp_path / "c.properties"
    file.write_text(f"topic.prefix=p\nbootstrap.servers=a:1\nrowtide.large.records.claim.check.url={url}\n")
    properties, found = run_settings(options(file, claim_checks=given))
    assert properties == {"bootstrap.servers": "a:1"}
    assert found.claim_checks == expected


def test_the_environment_counts_as_it_does_for_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.properties"
    file.write_text("topic.prefix=p\nbootstrap.servers=a:1\nsasl.password=${env:ROWTIDE_TEST_WORD}\n")
    monkeypatch.setenv("ROWTIDE_BOOTSTRAP_SERVERS", "d:4")
    monkeypatch.setenv("ROWTIDE_TEST_WORD", "secret")
    properties, _ = run_settings(options(file))
    assert properties == {"bootstrap.servers": "d:4", "sasl.password": "secret"}


@pytest.mark.parametrize(("name", "text"), [("c.json", "{"), ("c.json", "[]"), ("c.yaml", "{"), ("c.yaml", "- a")])
def test_a_broken_configuration_is_an_error_with_its_name(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(SettingsError, match=name):
        run_settings(options(file))


def test_a_reference_that_cannot_be_resolved_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    file.write_text("topic.prefix=p\nbootstrap.servers=a:1\nsasl.jaas.config=${env:ROWTIDE_TEST_NONE}\n")
    with pytest.raises(SettingsError, match=r"sasl\.jaas\.config: .*ROWTIDE_TEST_NONE.*--kafka-property"):
        run_settings(options(file))
    properties, _ = run_settings(options(file, kafka_properties=("sasl.jaas.config=x",)))
    assert properties["sasl.jaas.config"] == "x"


def test_the_placeholder_of_unavailable_values_is_that_of_the_connector(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    text = "topic.prefix=p\nbootstrap.servers=a:1\n"
    file.write_text(text)
    assert run_settings(options(file))[1].unavailable_placeholder == b"__debezium_unavailable_value"
    file.write_text(f"{text}unavailable.value.placeholder=hex:00ff\n")
    properties, found = run_settings(options(file))
    assert (properties, found.unavailable_placeholder) == ({"bootstrap.servers": "a:1"}, b"\x00\xff")
    properties, found = run_settings(options(file, unavailable_placeholder="?"))
    assert (properties, found.unavailable_placeholder) == ({"bootstrap.servers": "a:1"}, b"?")
    with pytest.raises(SettingsError, match=r"unavailable\.value\.placeholder=hex:x"):
        run_settings(options(file, unavailable_placeholder="hex:x"))


def test_a_connector_that_accepts_rows_without_numbers_has_no_tables(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    text = "topic.prefix=p\nbootstrap.servers=a:1\nbinlog.row.image.minimal.allowed="
    file.write_text(f"{text}true\n")
    with pytest.raises(SettingsError, match=r"binlog\.row\.image\.minimal\.allowed=true.*binlog_row_image=FULL"):
        run_settings(options(file))
    file.write_text(f"{text}false\n")
    assert run_settings(options(file))[0] == {"bootstrap.servers": "a:1"}


def test_a_registry_is_that_of_the_connector_unless_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    text = "topic.prefix=p\nbootstrap.servers=a:1\nname=n\nschema.history.internal.kafka.topic=h\n"
    file.write_text(text)
    assert _registry("", ()) is None
    assert _registry("", (str(file),)) is None
    converter = "io.confluent.connect.avro.AvroConverter"
    url = "value.converter.schema.registry.url=http://u:secret@r:1"
    file.write_text(f"{text}value.converter={converter}\n{url}\n")
    found, named = _registry("", (str(file),)), _registry("http://other:2", (str(file),))
    assert found is not None
    assert named is not None
    assert (found.place, named.place) == ("r:1", "http://other:2")
    file.write_text(f"{text}value.converter={converter}\n{url}\nvalue.converter.schema.registry.urls=x\n")
    with pytest.raises(SettingsError, match=r"value\.converter\.schema\.registry\.urls"):
        _registry("", (str(file),))


def test_jars_come_from_the_environment() -> None:
    code = (
        "import sys, rowtide.spark_consumers.jvm.session as session, rowtide.cli.tables as cli\n"
        "cli.require_listener = lambda servers: None\n"
        "session.build_session = lambda **settings: sys.exit(settings['jars'])\n"
        "cli.tables(['--output', '/nowhere', '--topic-prefix', 'p', '--bootstrap-servers', 'h:1'])"
    )
    environment = {**os.environ, "ROWTIDE_SPARK_JARS": "/opt/*.jar"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stderr == "/opt/*.jar\n"


def test_ctrl_c_ends_it_at_once() -> None:
    code = (
        "import os, signal, rowtide.spark_consumers.jvm.session as session, rowtide.cli.tables as cli\n"
        "cli.require_listener = lambda servers: None\n"
        "session.build_session = lambda **settings: os.kill(os.getpid(), signal.SIGINT)\n"
        "cli.tables(['--output', '/nowhere', '--topic-prefix', 'p', '--bootstrap-servers', 'h:1'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "\nInterrupted. Run the command again: no record is lost or applied twice.\n"


def failing_start(*options: str) -> subprocess.CompletedProcess[str]:
    """A run whose Spark prints something, then does not start."""
    code = (
        "import os, sys, rowtide.spark_consumers.jvm.session as session, rowtide.cli.tables as cli\n"
        "cli.require_listener = lambda servers: None\n"
        "def start(output, **settings):\n"
        "    os.write(2 if output is None else output.fileno(), b'no such package\\n')\n"
        "    raise RuntimeError('Java has ended')\n"
        "session.build_session = start\n"
        f"cli.tables(['--output', '/nowhere', '--topic-prefix', 'p', '--bootstrap-servers', 'h:1', *{options}])"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_what_spark_prints_is_shown_if_it_does_not_start() -> None:
    for options in [(), ("--verbose",)]:
        done = failing_start(*options)
        assert done.stderr.startswith("no such package\n")
        assert done.stderr.endswith("RuntimeError: Java has ended\n")
