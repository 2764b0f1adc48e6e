"""``rowtide tables --job``: a file with the options of a run."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.tables import run_settings, tables
from rowtide.cli.tables_job import json_schema
from rowtide.spark_consumers.settings import Layout, SchemaChange, Settings, Shard

NEEDED = "bootstrap-servers: h:1\ntopic-prefix: p\noutput: /nowhere\n"


def parsed(*arguments: str) -> dict[str, Any]:
    parent = click.Context(main, **main.context_settings)
    return tables.make_context("tables", [*arguments], parent).params


def settings(path: Path, text: str, *arguments: str) -> Settings:
    path.write_text(text)
    return run_settings(parsed("--job", str(path), *arguments))[1]


def problems(path: Path, text: str) -> str:
    path.write_text(text)
    result = CliRunner().invoke(main, ["tables", "--job", str(path)])
    assert result.exit_code == 1
    return result.output


def test_a_file_can_say_what_the_options_say(tmp_path: Path) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(
        f"""
        bootstrap-servers: h:1,h:2
        topic-prefix: 007
        topics: p[.].*
        config: []
        output: /out
        state: /state
        partition-by: ["bucket(4, id)"]
        cluster-by: day
        where: region = 'eu'
        columns: [id, "region, day"]
        compute: {{total: "a = b, 1", n: 1}}
        format: iceberg
        catalog: lake
        table-property: {{write.merge.mode: copy-on-write, format-version: 2}}
        keyless: append
        soft-delete: true
        metadata: [op, "pos,gtid"]
        schema-change: lenient
        include-changes: column
        exclude-changes: [alter.column.type, truncate.table]
        max-records: 1000
        parallel: 4
        schemas: {file}
        registry: http://registry:8081
        numeric-decimals: yes
        unavailable-placeholder: none
        claim-checks: s3a://bucket
        kafka-property: {{security.protocol: SSL}}
        follow: true
        trigger: 30s
        web-port: 0
        web-bind: 0.0.0.0
        optimize: true
        vacuum: 7d
        expire: 30d
        upkeep-every: 100 batches
        master: local[1]
        packages: a:b:1
        jars: a.jar
        spark-conf: {{spark.ui.enabled: false}}
        verbose: false
        json: true
        available-now: false
        append: false
        history: false
        """
    )
    named = set(json_schema(tables)["properties"]) - {"tables"}
    lines = {line.split(":")[0].strip() for line in file.read_text().splitlines() if line.strip()}
    assert lines == named, "this test has all of them"
    given = parsed("--job", str(file))
    arguments = [
        "--bootstrap-servers", "h:1,h:2", "--topic-prefix", "007", "--topics", "p[.].*", "--output", "/out",
        "--partition-by", "bucket(4, id)", "--cluster-by", "day", "--where", "region = 'eu'", "--columns", "id",
        "--columns", "region, day", "--compute", "total=a = b, 1", "--compute", "n=1", "--state",
        "/state", "--format", "iceberg", "--catalog", "lake", "--table-property", "write.merge.mode=copy-on-write",
        "--table-property", "format-version=2", "--keyless", "append", "--soft-delete", "--metadata",
        "op", "--metadata", "pos,gtid", "--schema-change", "lenient", "--include-changes", "column",
        "--exclude-changes",
        "alter.column.type", "--exclude-changes", "truncate.table", "--max-records", "1000", "--parallel", "4",
        "--schemas", str(file), "--registry", "http://registry:8081", "--numeric-decimals", "--unavailable-placeholder",
        "none", "--claim-checks", "s3a://bucket", "--kafka-property", "security.protocol=SSL", "--follow", "--trigger",
        "30s", "--web-port", "0", "--web-bind", "0.0.0.0", "--optimize", "--vacuum", "7d", "--expire", "30d",
        "--upkeep-every", "100 batches", "--master", "local[1]", "--packages", "a:b:1", "--jars", "a.jar",
        "--spark-conf", "spark.ui.enabled=false", "--json",
    ]  # fmt: skip
    assert {**given, "job": None} == parsed(*arguments)


def test_the_command_line_takes_precedence(tmp_path: Path) -> None:
    given = settings(tmp_path / "t.yaml", f"{NEEDED}parallel: 4\nmetadata: [op]\n", "--parallel", "3", "--output", "/o")
    assert (given.parallel, given.output, [field.name for field in given.metadata]) == (3, "/o", ["op"])


def test_tables_have_options_of_their_own_by_the_first_pattern_that_matches(tmp_path: Path) -> None:
    given = settings(
        tmp_path / "t.yaml",
        f"""{NEEDED}
soft-delete: true
metadata: [op]
table-property: {{a: 1, b: 2}}
tables:
- table: shop[.](orders|items)
  history: true
  metadata: [pos]
  table-property: {{b: 3}}
  partition-by: [day, id]
- into: lake.$1
  table: shop[.](.*)
  shard-column: shard
  schema-change: ignore
- table: log
  soft-delete: false
  where: "level > 3 "
  columns: [id, "level, text"]
  compute: {{n: length(text)}}
""",
    )
    orders, others, all_ = given.of("shop.orders"), given.of("shop.orders_2"), given.of("shops.orders")
    assert [one.layout for one in (orders, others, all_)] == [Layout.HISTORY, Layout.SOFT_DELETE, Layout.SOFT_DELETE]
    assert [one.changes.behavior for one in (orders, others)] == [SchemaChange.EVOLVE, SchemaChange.IGNORE]
    assert [[field.name for field in one.metadata] for one in (orders, others)] == [["source.pos"], ["op"]]
    assert [one.column for one in orders.partition_by] == ["day", "id"]
    assert others.partition_by == []
    assert orders.table_properties == {"a": "1", "b": "3"}
    assert all_ is given
    assert [one.where for one in (all_, given.of("log"))] == [None, "level > 3"]
    assert [one.columns for one in (all_, given.of("log"))] == [[], ["id", "level", "text"]]
    assert [one.computed for one in (all_, given.of("log"))] == [{}, {"n": "length(text)"}]
    assert (orders.shard, others.shard) == (None, Shard("shard", "shop.orders_2"))
    assert [given.table(f"p.shop.{name}").path for name in ("orders", "x")] == ["shop/orders", "lake/x"]


def test_all_problems_are_reported_together_with_their_lines(tmp_path: Path) -> None:
    text = problems(
        tmp_path / "t.yaml",
        """topic-prefix: p
formt: delta
parallel: many
max-records: 0
format: orc
metadata: [op, lsn]
follow: 1
output: [/a, /b]
state:
exclude-changes: colum
vacuum: 7
table-property: x
restart: shop.orders
topic-prefix: q
topics: "p(["
tables:
- table: shop[.]orders
  history: true
  append: true
  output: /x
- metadata: [pos]
- shop
- table: "shop(["
""",
    )
    assert "t.yaml has 19 problems:" in text
    for line, what in [
        (2, "formt is unknown: did you mean format?"),
        (3, "parallel: many: expected a whole number of at least 1"),
        (4, "max-records: 0: expected a whole number of at least 1"),
        (5, "format: 'orc' is not one of 'delta', 'iceberg', 'parquet'"),
        (6, "metadata: 'lsn' is unknown; there are op, ts_ms"),
        (7, "follow: 1: expected true or false"),
        (8, "output: expected a single value"),
        (9, "state: a value is missing"),
        (10, "exclude-changes: colum: unknown kind; there are add.column"),
        (11, "vacuum: 7: expected a duration with its unit, such as 7d or 168h"),
        (12, "table-property: expected a map, such as {NAME: VALUE}"),
        (13, "restart is an action, not a setting: give it on the command line"),
        (14, "topic-prefix appears twice: remove one of them"),
        (15, "topics: invalid regular expression 'p(['"),
        (17, "append and history: choose one of them"),
        (20, "output applies to all tables: move it to the top of the file"),
        (21, "table is missing: give a regular expression of DATABASE.TABLE, such as shop[.]orders"),
        (22, "expected a map of options, such as 'table: shop[.]orders'"),
    ]:
        assert f"  line {line}: {what}" in text
    assert "  line 23: table: invalid regular expression" in text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "line 1: the file is empty"),
        ("- output: /a", "line 1: expected a map of options, such as 'output: /data/tables'"),
        ("output: /a\n  x: [", "line 2: YAML syntax error: mapping values are not allowed here"),
        ("output: !!python/object:os.system /a\nformt: a", "line 2: formt"),
        (f"{NEEDED}table-property: {{a: 1, a: 2}}", "line 4: table-property: a appears twice: remove one of them"),
        (f"{NEEDED}spark-conf: {{a=b: 1}}", "line 4: spark-conf: a=b: a name cannot contain ="),
        ("tables: {a: b}", "line 1: tables: expected a list, with '- table: PATTERN' for each element"),
        (f"{NEEDED}tables:\n- table: a\n  include-changes: drop.column", "line 5: drop.column needs rename.column"),
        (f"{NEEDED}include-changes: drop.column", "drop.column needs rename.column"),
        (f"{NEEDED}tables:\n- table: a\n  into: b.$1", "line 5: into: the replacement 'b.$1' refers to group 1"),
        (f"{NEEDED}tables:\n- table: a\n  cluster-by: lower(a)", "line 6: cluster-by: lower(a): expected a column, or"),
        (
            f"{NEEDED}tables:\n- table: a\n  cluster-by: days(a)",
            "line 5: --cluster-by days(`a`): Delta Lake has",
        ),
        (f"{NEEDED}tables:\n- table: a\n  shard-column: s", "line 5: shard-column needs into, the name of the table"),
        (f"{NEEDED}columns: [id, '']", "line 4: columns: the name of a column is missing"),
        (
            f"{NEEDED}tables:\n- table: a\n  compute: {{A: 1, a: 2}}",
            "line 5: --compute: two columns have the same",
        ),
        (
            f"{NEEDED}compute: {{a: ' '}}",
            "--compute: a name or an expression is missing, as in total_eur='total",
        ),
        (f"{NEEDED}where: ' '", "line 4: where: a condition in Spark SQL is missing, such as region = 'eu'"),
    ],
)
def test_a_file_that_is_not_a_job_says_why(tmp_path: Path, text: str, what: str) -> None:
    assert what in problems(tmp_path / "t.yaml", text)


def test_the_schema_names_each_option_with_its_values() -> None:
    schema = json.loads(CliRunner().invoke(main, ["tables", "--job-schema"]).stdout)
    options = {
        option.opts[-1].removeprefix("--"): option for option in tables.params if isinstance(option, click.Option)
    }
    properties = schema["properties"]
    assert properties.keys() == {*options, "tables"} - {"job", "job-schema", "restart"}
    assert properties["schema-change"]["enum"] == [*SchemaChange]
    assert properties["parallel"] | {"description": ""} == {"type": "integer", "minimum": 1, "description": ""}
    assert properties["follow"]["type"] == "boolean"
    assert properties["metadata"]["oneOf"][1]["type"] == "array"
    assert properties["spark-conf"]["type"] == "object"
    of_table = schema["properties"]["tables"]["items"]
    assert (of_table["required"], of_table["additionalProperties"]) == (["table"], False)
    assert (
        {"history", "metadata", "table"}
        < of_table["properties"].keys()
        < {*properties, "table", "into", "shard-column"}
    )
